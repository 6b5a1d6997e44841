"""Directed networks: R and C against their definitions, strong connectivity, seeds, chi, and every refusal."""

import json
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import adom
from adom.errors import InputError
from adom.networks import (
    DirectedNetwork,
    directed_erdos_renyi,
    directed_geometric,
    directed_ring,
    from_digraphs,
    geometric,
    path,
    ring,
    star,
)
from adom.networks.classic import random_pairs
from adom.networks.edges import Links
from adom.networks.pool import Batch, Pool
from adom.networks.spectra import second_modulus


def brute_force_chi(network):
    """Take 1 / (1 - rho) from matrices written down entry by entry, as in the definition."""
    rho = 0.0
    for k in range(network.period):
        graph = network.graph(k)
        n = len(graph)
        R, C = np.zeros((n, n)), np.zeros((n, n))
        for i in range(n):
            R[i, [i, *graph.predecessors(i)]] = 1 / (1 + graph.in_degree(i))
            C[[i, *graph.successors(i)], i] = 1 / (1 + graph.out_degree(i))
        np.testing.assert_allclose(network.row_stochastic(k), R, atol=1e-15)
        np.testing.assert_allclose(network.column_stochastic(k), C, atol=1e-15)
        for matrix in (R, C):
            rho = max(rho, sorted(abs(value) for value in np.linalg.eigvals(matrix))[-2])
    return 1 / (1 - rho)


def check(network):
    n = network.nodes
    for k in range(network.period):
        R, C = network.row_stochastic(k), network.column_stochastic(k)
        arcs = network.arcs(int(network.order[k]))
        assert arcs.dtype == np.int32
        assert (arcs[:, 0] != arcs[:, 1]).all()
        codes = arcs[:, 1].astype(np.int64) * n + arcs[:, 0]
        assert (np.diff(codes) > 0).all(), "unique and sorted by (receiver, sender)"
        pattern = np.eye(n, dtype=bool)
        pattern[arcs[:, 1], arcs[:, 0]] = True
        np.testing.assert_array_equal(R > 0, pattern)
        np.testing.assert_array_equal(C > 0, pattern)
        np.testing.assert_allclose(R.sum(axis=1), 1, atol=1e-13)
        np.testing.assert_allclose(C.sum(axis=0), 1, atol=1e-13)
        assert all(np.ptp(row[row > 0]) == 0 for row in R), "a receiver weighs alike what it hears"
        assert all(np.ptp(column[column > 0]) == 0 for column in C.T), "a sender splits evenly"
        assert nx.is_strongly_connected(network.graph(k))
        assert sorted(network.graph(k).edges) == sorted(map(tuple, arcs.tolist()))


@st.composite
def networks(draw):
    nodes, graphs, seed = draw(st.integers(2, 14)), draw(st.integers(1, 4)), draw(st.integers(0, 10**6))
    if draw(st.booleans()):
        return directed_erdos_renyi(nodes, draw(st.floats(0, 1)), graphs=graphs, seed=seed)
    return directed_geometric(nodes, draw(st.floats(0.01, 2)), graphs=graphs, seed=seed)


@settings(max_examples=60, deadline=None)
@given(networks())
def test_matrices_are_stochastic_with_the_graphs_pattern_and_the_chi_of_a_brute_force_computation(network):
    check(network)
    assert network.chi == pytest.approx(brute_force_chi(network), rel=1e-6)


@settings(max_examples=20, deadline=None)
@given(networks(), st.integers(0, 10**9))
def test_rounds_are_pure_and_periodic(network, k):
    for read in (network.row_stochastic, network.column_stochastic):
        before = read(k)
        read(k)[:] = 7.0
        network.chi  # noqa: B018 - computing it must not disturb anything
        np.testing.assert_array_equal(read(k), before)
        np.testing.assert_array_equal(read(k + network.period), before)


@settings(max_examples=25, deadline=None)
@given(networks())
def test_graphs_make_the_round_trip_with_positions(network):
    back = from_digraphs([network.graph(k) for k in range(network.period)])
    for k in range(network.period):
        np.testing.assert_array_equal(back.arcs(int(back.order[k])), network.arcs(k))
        np.testing.assert_array_equal(back.row_stochastic(k), network.row_stochastic(k))
        places = back.positions(int(back.order[k])), network.positions(k)
        assert (places[0] is None and places[1] is None) or np.array_equal(*places)


@pytest.mark.parametrize("n", [2, 3, 4, 10, 101, 500, 5000])
def test_directed_ring_has_the_closed_form_chi(n):
    network = directed_ring(n)
    assert network.chi == pytest.approx(1 / (1 - math.cos(math.pi / n)), rel=1e-8)
    assert set(map(tuple, network.arcs(0).tolist())) == {(i, (i + 1) % n) for i in range(n)}
    if n < 1000:
        check(network)


@pytest.mark.parametrize("undirected", [ring(9), path(6), star(7), geometric(20, 0.4, seed=1)])
def test_symmetric_averaging_gives_the_undirected_chi(undirected):
    averaging = np.eye(undirected.nodes) - undirected.matrix(0) / undirected.lambda_max
    assert 1 / (1 - second_modulus(averaging)) == pytest.approx(undirected.chi)


def test_complete_graph_averages_exactly():
    network = from_digraphs(nx.complete_graph(6))
    np.testing.assert_allclose(network.row_stochastic(0), 1 / 6)
    np.testing.assert_allclose(network.column_stochastic(0), 1 / 6)
    assert network.chi == pytest.approx(1.0)


def test_chi_counts_only_the_rounds_of_the_order():
    quick, slow = directed_erdos_renyi(12, 1.0), directed_ring(12)
    links = Links.of(12, [quick.arcs(0), slow.arcs(0)])
    assert DirectedNetwork(Pool(Batch(links)), [0], {}).chi == pytest.approx(1.0)
    assert DirectedNetwork(Pool(Batch(links)), [0, 1], {}).chi == pytest.approx(slow.chi)


@pytest.mark.parametrize(("draw", "density"), [(directed_erdos_renyi, 0.02), (directed_geometric, 0.18)])
def test_sparse_matrices_and_their_chi(draw, density, monkeypatch):
    monkeypatch.setattr("adom.networks.spectra.DENSE", 500)
    network = draw(501, density, seed=2)
    R, C = network.row_stochastic(0), network.column_stochastic(0)
    assert isinstance(R, sparse.csr_array)
    assert isinstance(C, sparse.csr_array)
    assert R.nnz == C.nnz == len(network.arcs(0)) + 501
    np.testing.assert_allclose(R.sum(axis=1), 1)
    np.testing.assert_allclose(C.sum(axis=0), 1)
    # Row 5 of R and column 5 of C, from the definition.
    senders = network.arcs(0)[network.arcs(0)[:, 1] == 5, 0]
    receivers = network.arcs(0)[network.arcs(0)[:, 0] == 5, 1]
    assert R[[5], :].toarray().nonzero()[1].tolist() == sorted([5, *senders])
    assert C[:, [5]].toarray().nonzero()[0].tolist() == sorted([5, *receivers])
    assert R[5, 5] == pytest.approx(1 / (1 + len(senders)))
    assert C[5, 5] == pytest.approx(1 / (1 + len(receivers)))
    dense = max(second_modulus(M.toarray()) for M in (R, C))
    assert network.chi == pytest.approx(1 / (1 - dense), rel=1e-6)


def test_erdos_renyi_sends_with_probability_p_in_each_direction():
    n, p, graphs = 20, 0.4, 400
    hits = np.zeros((n, n))
    both = 0
    network = directed_erdos_renyi(n, p, graphs=graphs, seed=1)
    for g in range(graphs):
        drawn = np.zeros((n, n))
        drawn[tuple(network.arcs(g).T)] = 1
        hits += drawn
        both += (drawn * drawn.T).sum() / 2
    each = hits[~np.eye(n, dtype=bool)]
    assert np.abs(each - graphs * p).max() < 6 * math.sqrt(graphs * p * (1 - p)), "no ordered pair is preferred"
    pairs = graphs * n * (n - 1) / 2
    spread = math.sqrt(pairs * p**2 * (1 - p**2))
    assert abs(both - pairs * p**2) < 5 * spread, "there and back are independent"


def test_erdos_renyi_without_arcs_becomes_a_random_ring():
    network = directed_erdos_renyi(12, 0.0, graphs=5)
    for k in range(5):
        assert len(network.arcs(k)) == 12
        assert nx.is_isomorphic(network.graph(k), nx.cycle_graph(12, create_using=nx.DiGraph))
    assert len({network.arcs(g).tobytes() for g in range(5)}) == 5, "the rings are random"


def test_repair_adds_at_most_one_arc_a_component():
    for seed in range(20):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        up, down = random_pairs(30, 0.05, rng), random_pairs(30, 0.05, rng)
        bare = nx.DiGraph()
        bare.add_nodes_from(range(30))
        bare.add_edges_from([*up.tolist(), *down[:, ::-1].tolist()])
        final = directed_erdos_renyi(30, 0.05, seed=seed).graph(0)
        count = nx.number_strongly_connected_components(bare)
        assert set(bare.edges) <= set(final.edges)
        added = final.number_of_edges() - bare.number_of_edges()
        assert added == 0 if count == 1 else 0 < added <= count


def test_geometric_arcs_are_those_within_each_nodes_own_range():
    n, radius = 60, 0.3
    network = directed_geometric(n, radius, seed=3)
    points = network.positions(0)
    np.testing.assert_array_equal(points, geometric(n, radius, seed=3).positions(0))
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    adjacent = nx.to_numpy_array(network.graph(0), nodelist=range(n)) > 0
    shortest, longest = 0.5 * radius, 1.5 * radius
    off = ~np.eye(n, dtype=bool)
    assert adjacent[off & (distance < shortest)].all()
    assert not adjacent[distance > longest].any(), "this one needed no repair"
    assert (adjacent != adjacent.T).any(), "ranges differ"
    for i in range(n):
        reached, missed = distance[i, adjacent[i]], distance[i, ~adjacent[i] & off[i]]
        assert reached.max() < missed.min(initial=np.inf), "a node reaches a disc"


def test_geometric_repair_follows_the_spanning_tree_both_ways():
    network = directed_geometric(30, 1e-6, seed=4)
    tree = geometric(30, 1e-6, seed=4).edges(0)
    both = {*map(tuple, tree.tolist()), *map(tuple, tree[:, ::-1].tolist())}
    assert set(map(tuple, network.arcs(0).tolist())) == both


@pytest.mark.parametrize("radius", [3.0, 1e300])
def test_a_huge_radius_reaches_everyone(radius):
    assert len(directed_geometric(8, radius, seed=1).arcs(0)) == 56


def test_digraphs_are_used_in_order_and_alike_ones_held_once():
    there = nx.cycle_graph(5, create_using=nx.DiGraph)
    network = from_digraphs([there, there.reverse(), there])
    assert (network.graphs, network.period, network.order.tolist()) == (2, 3, [0, 1, 0])
    np.testing.assert_array_equal(network.row_stochastic(1), network.row_stochastic(0).T)
    check(network)


def test_labels_are_numbered_in_sorted_order():
    network = from_digraphs([nx.DiGraph([("c", "a"), ("a", "b"), ("b", "c")])])
    assert network.arcs(0).tolist() == [[2, 0], [0, 1], [1, 2]]
    mixed = nx.DiGraph([("x", 1), (1, (2, 3)), ((2, 3), "x")])
    assert from_digraphs([mixed]).arcs(0).tolist() == [[2, 0], [0, 1], [1, 2]], "the graph's own order"


def test_undirected_and_parallel_edges():
    assert from_digraphs(nx.path_graph(3)).arcs(0).tolist() == [[1, 0], [0, 1], [2, 1], [1, 2]]
    parallel = nx.MultiDiGraph([(0, 1), (0, 1), (1, 0)])
    assert from_digraphs(parallel).arcs(0).tolist() == [[1, 0], [0, 1]]


def test_recipes_are_data_and_tell_networks_apart():
    assert directed_ring(4).recipe == {"generator": "directed_ring", "nodes": 4}
    drawn = directed_erdos_renyi(9, 0.5, graphs=2, seed=3).recipe
    assert drawn == {"generator": "directed_erdos_renyi", "nodes": 9, "p": 0.5, "graphs": 2, "seed": 3}
    assert directed_geometric(9, 0.5, seed=3).recipe["radius"] == 0.5
    ring_there = nx.cycle_graph(4, create_using=nx.DiGraph)
    one, two = from_digraphs(ring_there).recipe, from_digraphs(ring_there.reverse()).recipe
    assert one == from_digraphs([ring_there]).recipe
    assert one["sha256"] != two["sha256"]
    json.dumps([drawn, one])


def test_description():
    there = nx.cycle_graph(4, create_using=nx.DiGraph)
    network = from_digraphs([there, there, nx.star_graph(3)])
    assert repr(network) == "DirectedNetwork(from_digraphs, nodes=4, graphs=2, period=3, arcs=4..6)"
    figures = network.describe()
    assert figures.pop("chi") == network.chi
    assert figures == {
        "nodes": 4,
        "graphs": 2,
        "period": 3,
        "window": 1,
        "arcs_min": 4,
        "arcs_mean": pytest.approx(14 / 3),
        "arcs_max": 6,
        "in_degree_min": 1,
        "in_degree_max": 3,
        "out_degree_min": 1,
        "out_degree_max": 3,
    }


def digraph(nodes, arcs):
    graph = nx.empty_graph(nodes, create_using=nx.DiGraph)
    graph.add_edges_from(arcs)
    return graph


def test_error_names_the_strong_components_of_all_rounds_together():
    one = digraph(5, [(3, 0), (1, 2), (2, 4), (0, 1)])
    other = digraph(5, [(0, 3), (2, 1), (4, 1)])
    with pytest.raises(InputError) as caught:
        from_digraphs([one, other])
    assert str(caught.value) == (
        "the arcs of all 2 rounds together are not strongly connected: 2 components, {0, 3} and {1, 2, 4}; "
        "some nodes never hear of some others: add arcs between them"
    )
    with pytest.raises(InputError, match=r"the graph of round 0 is not strongly connected: 3 components, .*; some"):
        from_digraphs([nx.path_graph(3, create_using=nx.DiGraph)] * 2)
    assert from_digraphs([one, other, digraph(5, [(1, 0)])]).window == 3


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 6), st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=6), min_size=1))
def test_the_window_is_the_least_and_chi_that_of_the_worst_windows_product(nodes, rounds):
    graphs = [digraph(nodes, {(a % nodes, b % nodes) for a, b in arcs if (a - b) % nodes}) for arcs in rounds[:6]]
    period = len(graphs)

    def joined(length):
        unions = (nx.compose_all([graphs[(s + i) % period] for i in range(length)]) for s in range(period))
        return all(map(nx.is_strongly_connected, unions))

    if not joined(period):
        with pytest.raises(InputError, match="not strongly connected"):
            from_digraphs(graphs)
        return
    network, rho = from_digraphs(graphs), 0.0
    assert network.window == next(length for length in range(1, period + 1) if joined(length))
    assert network.connected == (network.window == 1)
    for start in range(period):
        for matrix in (network.row_stochastic, network.column_stochastic):
            product = np.eye(nodes)
            for k in range(start, start + network.window):
                product = matrix(k) @ product
            rho = max(rho, np.sort(np.abs(np.linalg.eigvals(product)))[-2])
    # Where eigenvalues meet, they are known to the root of rounding only; windows take a further root of them.
    assert 1 - 1 / network.chi == pytest.approx(rho ** (1 / network.window), rel=1e-3, abs=0.01)


def test_dense_and_sparse_windows_have_the_same_chi(monkeypatch):
    arcs = [(i, (i + 1) % 120) for i in range(120)] + [(i, (7 * i + 3) % 120) for i in range(120) if i != 59]
    halves = [digraph(120, [arc for arc in arcs[part::2] if arc[0] != arc[1]]) for part in (0, 1)]
    dense = from_digraphs(halves)
    assert dense.window == 2
    assert dense.describe()["chi"] == dense.chi
    monkeypatch.setattr("adom.networks.spectra.DENSE", 100)
    assert from_digraphs(halves).chi == pytest.approx(dense.chi, rel=1e-6)


def test_the_remedy_for_self_loops_works():
    graph = nx.DiGraph([("a", "b"), ("b", "b"), ("b", "a")])
    graph.remove_edges_from(nx.selfloop_edges(graph))
    assert from_digraphs(graph).arcs(0).tolist() == [[1, 0], [0, 1]]


def test_chi_that_does_not_converge_says_so(monkeypatch):
    monkeypatch.setattr("adom.networks.spectra.MANY_RESTARTS", 2)
    with pytest.raises(InputError, match=r"chi of a directed graph of 2001 nodes did not converge.*; use"):
        from_digraphs(nx.cycle_graph(2001, create_using=nx.DiGraph)).chi  # noqa: B018 - reading it is what raises


def test_chi_is_infinite_where_rho_is_one_to_rounding():
    links = Links.of(2, [np.array([[1, 0], [0, 1]], dtype=np.int32)])
    assert DirectedNetwork(Pool(Batch(links)), [0], {}, rho=1.0).chi == math.inf


def test_the_least_weight_that_pushing_leaves_a_node():
    up = [nx.DiGraph([(i, i + 1) for i in range(9)] + [(i, 0) for i in range(1, 10)])]
    for network in (from_digraphs(up), directed_geometric(20, 0.4, graphs=5, seed=1)):
        weights, least = np.ones(network.nodes), []
        for k in range(500):
            weights = network.column_stochastic(k) @ weights
            least.append(weights.min())
        assert network.least_weight == pytest.approx(min(least), rel=1e-4)
    assert directed_ring(7).least_weight == 1.0


def test_push_diging_by_theory_converges_where_weights_vanish():
    """With 1 / (L chi^2) it diverges."""
    network = from_digraphs([nx.DiGraph([(i, i + 1) for i in range(13)] + [(i, 0) for i in range(1, 14)])])
    H = np.stack([np.diag([1.0, 1 + i % 5]) for i in range(14)])
    problem = adom.Quadratic(H, np.random.default_rng(0).standard_normal((14, 2)))
    bold, safe = (
        adom.solve(problem, network, "push-diging", parameters, rounds=4000, record_every=50)
        for parameters in ("unit", "theory")
    )
    assert bold.status == "diverged"
    assert safe.status == "max_rounds"
    assert safe.history["error"].iloc[-1] < safe.provenance["start_error"]
