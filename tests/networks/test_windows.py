"""Networks that are not connected at every instant: the least window, and chi of windows."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adom.errors import InputError
from adom.networks import (
    alternate,
    bounded,
    cyclic,
    failing,
    from_graphs,
    pool,
    ring,
    slowed,
    spectra,
    waypoint,
    windowed,
    windows,
)


def graph_of(nodes, pairs):
    graph = nx.empty_graph(nodes)
    graph.add_edges_from((u % nodes, v % nodes) for u, v in pairs if u % nodes != v % nodes)
    return graph


def joined(network, start, rounds):
    """Return whether some rounds together connect all nodes."""
    union = nx.empty_graph(network.nodes)
    for k in range(start, start + rounds):
        union.add_edges_from(network.graph(k).edges)
    return nx.is_connected(union)


def worst_norm(network, window):
    """Return the norm of averaging over the worst window, on vectors of zero mean."""
    n, norms = network.nodes, []
    for start in range(network.period):
        product = np.eye(n)
        for k in range(start, start + window):
            product = (np.eye(n) - network.matrix(k) / network.lambda_max) @ product
        norms.append(np.linalg.norm(product - 1 / n, 2))
    return max(norms)


PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=7)


@settings(max_examples=80, deadline=None)
@given(nodes=st.integers(2, 7), rounds=st.lists(PAIRS, min_size=1, max_size=7), longer=st.integers(0, 3))
def test_the_window_is_the_least_and_chi_that_of_the_worst_window(nodes, rounds, longer):
    graphs = [graph_of(nodes, pairs) for pairs in rounds]
    assume(nx.is_connected(nx.compose_all(graphs)))
    network = from_graphs(graphs)
    least = next(b for b in range(1, 8) if all(joined(network, k, b) for k in range(network.period)))
    assert network.window == least
    assert network.connected == all(map(nx.is_connected, graphs))
    window = least + longer
    chi = windowed(network, window).chi if longer else network.chi
    assert 1 - 1 / chi == pytest.approx(worst_norm(network, window), abs=1e-9)
    assert network.lambda_max / network.lambda_min_plus == pytest.approx(network.chi)


def test_graphs_without_links_have_a_zero_matrix_and_a_picture():
    network = from_graphs([nx.empty_graph(4), nx.path_graph(4), nx.empty_graph(4)])
    assert (network.window, network.describe()["window"], network.describe()["edges_min"]) == (3, 3, 0)
    assert not network.matrix(0).any()
    assert network.spectrum[network.order[0]].tolist() == [0, 1]
    assert network.graph(2).number_of_edges() == 0
    network.plot([0, 1])
    assert "chi" in network._repr_html_()


@pytest.mark.parametrize("nodes", [300, 2100])
def test_large_networks_have_the_same_windows_and_chi(monkeypatch, nodes):
    """A ring in two halves, whose product of averages is known from its matrix alone."""
    arcs = [(i, (i + 1) % nodes) for i in range(nodes)]
    chords = [(i, (7 * i + 3) % nodes) for i in range(nodes)]
    network = from_graphs([graph_of(nodes, arcs[::2] + chords[::2]), graph_of(nodes, arcs[1::2] + chords[1::2])])
    M = [np.eye(nodes) - np.asarray(getattr(W, "toarray", lambda W=W: W)()) for W in map(network.matrix, (0, 1))]
    product = M[1] @ M[0] - 1 / nodes
    largest = np.linalg.eigvalsh(product.T @ product)[-1]
    assert network.window == 2
    assert 1 - 1 / network.chi == pytest.approx(np.sqrt(largest), rel=1e-9)
    assert network.spectrum[0, 0] == 0


def test_dense_and_sparse_chis_agree(monkeypatch):
    network = failing(ring(12), 0.5, graphs=30, seed=3)
    again = failing(ring(12), 0.5, graphs=30, seed=3)
    dense = network.chis
    monkeypatch.setattr(spectra, "AT_ONCE", 1)
    np.testing.assert_allclose(again.chis, dense, rtol=1e-8)
    assert network.chi == dense.max()


def test_schedules_find_their_own_window():
    halves = from_graphs([graph_of(4, [(0, 1), (2, 3)]), graph_of(4, [(1, 2)])])
    assert (halves.window, slowed(halves, 5).window, cyclic([halves, ring(4)]).window) == (2, 6, 2)
    assert cyclic([ring(4), ring(4)]).window == 1
    assert slowed(windowed(halves, 3), 2).window == 3, "of its own, 2 + 1"
    assert windowed(slowed(halves, 2), 7).window == 7


def test_a_given_window_is_checked_and_kept():
    network = failing(ring(8), 0.5, graphs=50, seed=1)
    with pytest.raises(InputError, match=rf"window must be at least {network.window}, got {network.window - 1}: "):
        windowed(network, network.window - 1)
    longer = windowed(network, 3 * network.window)
    assert longer.chi < network.chi
    assert (longer.recipe["window"], longer.recipe["network"]) == (3 * network.window, network.recipe)
    assert longer.reseeded(1).window == longer.window
    trusted = bounded(longer, chi=9)
    assert (trusted.window, trusted.chi, trusted.chi_known, longer.chi_known) == (longer.window, 9, True, True)
    assert windowed(ring(6), 2).chi == pytest.approx(1 / (1 - (1 - 1 / ring(6).chi) ** 2))


@settings(max_examples=30, deadline=None)
@given(pools=st.lists(st.lists(PAIRS, min_size=1, max_size=5), min_size=2, max_size=3), every=st.integers(1, 4))
def test_pools_in_turn_have_the_windows_that_a_walk_through_all_rounds_finds(pools, every):
    graphs = [[graph_of(5, pairs) for pairs in pool] for pool in pools]
    assume(all(nx.is_connected(nx.compose_all(pool)) for pool in graphs))
    network = alternate([from_graphs(pool) for pool in graphs], every=every)
    assume(network.period <= 200)
    least = next(b for b in range(1, 200) if all(joined(network, k, b) for k in range(network.period)))
    assert network.window == least
    starts = np.arange(network.period)
    rounds = network.order[(starts[:, None] + np.arange(least)) % network.period]
    first, names = windows.distinct_windows(network.order, least)
    assert (rounds[first][names] == rounds).all(), "each round's window is the one it was named after"
    assert len(first) == len(np.unique(rounds, axis=0))


def test_a_period_of_a_million_rounds_looks_at_few_graphs(monkeypatch):
    """Pools of 60 and 41 graphs in turn repeat only after their least common multiple, in few distinct windows."""
    rng = np.random.default_rng(0)
    one, other = (from_graphs([graph_of(6, rng.integers(0, 6, (3, 2)).tolist()) for _ in range(k)]) for k in (60, 41))
    network = alternate([one, other], every=1024)
    assert network.period == 1_259_520
    looked, products = [], []
    components, averaging = windows.component_labels, windows._averaging

    def counted(nodes, pairs, strong=False):
        looked.append(nodes / 6)
        return components(nodes, pairs, strong)

    def stepping(*arguments):
        step = averaging(*arguments)
        return lambda v: products.append(1) or step(v)

    monkeypatch.setattr(windows, "component_labels", counted)
    monkeypatch.setattr(windows, "_averaging", stepping)
    window = network.window
    assert sum(looked) < 20_000, "graphs of six nodes, however many at once"
    assert all(joined(network, k, window) for k in range(0, network.period, 5_003))
    assert not all(joined(network, k, window - 1) for k in range(20_000))
    assert network.chi >= max(windowed(one, window).chi, windowed(other, window).chi) * (1 - 1e-9)
    assert len(products) < network.period / 5


def test_a_step_of_absurdly_many_rounds_is_refused():
    with pytest.raises(InputError, match="window must be at most 100000, got 20000000; it counts the rounds of a step"):
        windowed(ring(6), 20_000_000)


def test_graphs_that_are_not_held_need_a_given_window(monkeypatch):
    monkeypatch.setattr(pool, "HELD_BYTES", 100)
    network = waypoint(12, 0.3, graphs=60, speed=0.1, seed=2)
    assert not network.held
    assert not network.chi_known
    with pytest.raises(InputError, match=r"the window of .* is not known: .* windowed\(network, window\)"):
        network.chi  # noqa: B018  # reading it is what raises
    monkeypatch.undo()
    whole = waypoint(12, 0.3, graphs=60, speed=0.1, seed=2)
    given = windowed(network, whole.window + 2)
    assert given.chi <= windowed(whole, whole.window + 2).chi * (1 + 1e-9), "of some windows, not of all"
    assert np.isfinite(given.chis).sum() == 8
    with pytest.raises(InputError, match=r"rounds .* to .* together leave .*; take a longer window"):
        windowed(network, 1).chis  # noqa: B018  # reading it is what raises
