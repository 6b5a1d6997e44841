"""Runs with parameters="auto" on small, thin and bad networks, and where one node is much steeper than all others."""

import networkx as nx
import numpy as np
import pytest

import adom
from adom.run.auto.pilots import planting
from adom.run.local import jitted
from adom.util import programs


def relative(result):
    return result.history["error"].to_numpy() / result.provenance["start_error"]


def diagonals(nodes, steeper, seed=0):
    """Return quadratics that are steeper from node to node."""
    rng = np.random.default_rng(seed)
    return adom.Quadratic([np.diag([1.0, 1 + steeper * i]) for i in range(nodes)], rng.standard_normal((nodes, 2)))


def one_steep(nodes, at, curvature, seed=3):
    H = [np.eye(2)] * nodes
    H[at] = curvature * np.eye(2)
    return adom.Quadratic(H, np.random.default_rng(seed).standard_normal((nodes, 2)))


def ring_links(nodes, every):
    """Return a ring whose links come one at a time, each for `every` rounds."""
    graphs = [nx.empty_graph(nodes) for _ in range(nodes)]
    for i, graph in enumerate(graphs):
        graph.add_edge(i, (i + 1) % nodes)
    return adom.networks.from_graphs([graph for graph in graphs for _ in range(every)])


def one_flat(nodes, curvature=100.0):
    H = [curvature * np.eye(3)] * nodes
    H[0] = np.eye(3)
    return adom.Quadratic(H, np.random.default_rng(0).standard_normal((nodes, 3)))


@pytest.mark.parametrize("network", [adom.networks.star(3), adom.networks.path(3)], ids=["star", "path"])
def test_three_nodes_that_have_long_been_at_rest(network):
    problem = adom.Quadratic([[[1.0]], [[2.0]], [[3.0]]], [[1.0], [0.0], [0.0]])
    assert relative(adom.solve(problem, network, rounds=3000, record_every=100))[-1] < 1e-24


def test_a_network_that_is_dark_half_of_the_time():
    """The canaries are averaged fully in no round that is dark, however little they move."""
    network = adom.networks.from_graphs([nx.path_graph(10)] * 5 + [nx.empty_graph(10)] * 5)
    problem = diagonals(10, 0.25)
    tol = 1e-8 * 10 * float((problem.solution() ** 2).sum())
    result = adom.solve(problem, network, rounds=5000, tol=tol)
    assert result.status == "converged"
    assert result.last["round"] < adom.solve(problem, network, "adom", "unit", rounds=5000, tol=tol).last["round"]


@pytest.mark.parametrize("method", ["adom", "acc-gt", "mudag"])
def test_one_random_link_a_round(method):
    rng, graphs = np.random.default_rng(1), []
    for _ in range(60):
        graphs.append(nx.empty_graph(8))
        graphs[-1].add_edge(*map(int, rng.choice(8, 2, replace=False)))
    network, problem = adom.networks.from_graphs(graphs), diagonals(8, 1.0, seed=1)
    tol = 1e-8 * 8 * float((problem.solution() ** 2).sum())
    assert adom.solve(problem, network, method, rounds=5000, record_every=20, tol=tol).status == "converged"


def test_a_run_at_rest_keeps_its_answer():
    rng, graphs = np.random.default_rng(16), []
    for _ in range(50):
        pairs = rng.permutation(16).reshape(8, 2)
        graphs.append(nx.empty_graph(16))
        graphs[-1].add_edges_from(pairs.tolist())
    result = adom.solve(one_steep(16, 0, 1e4, seed=0), adom.networks.from_graphs(graphs), rounds=2650)
    errors = relative(result)
    assert errors[np.argmax(errors < 1e-22) :].max() < 1e-18


def test_a_process_that_meets_many_shapes_keeps_few_programs(monkeypatch):
    def solved(nodes):
        return adom.solve(diagonals(nodes, 1.0), adom.networks.ring(nodes), rounds=30).x.tobytes()

    shapes = (3, 4, 5, 6, 7)
    before = [solved(nodes) for nodes in shapes]
    kept = [*jitted._programs(True), planting()]
    assert min(program._cache_size() for program in kept) >= len(shapes)
    monkeypatch.setattr(programs, "MOST", 1)
    assert [solved(nodes) for nodes in shapes] == before
    assert max(program._cache_size() for program in kept) < len(shapes)


@pytest.mark.parametrize("method", ["dnm", "msda", "opapc"])
def test_methods_that_no_chi_makes_safe_take_windows_where_rounds_do_not_connect_the_nodes(method):
    """A greater chi gave them more momentum, or a polynomial of higher degree: they grew up to 1e207."""
    problem, network = diagonals(8, 1.0), ring_links(8, 1)
    assert adom.solve(problem, network, method, rounds=3000, rtol=1e-10).status == "converged"
    descent = adom.DNM(theta=problem.mu / network.lambda_max, beta=0.0)  # the safe step
    slow = ring_links(8, 20)
    found, safe = (adom.solve(problem, slow, way, rounds=3000).last["error"] for way in (method, descent))
    assert found < 2 * safe if method != "opapc" else found < 0.1 * problem.nodes * (problem.solution() ** 2).sum()


def test_on_a_network_that_changes_chebyshevs_polynomial_gives_way_to_windows_once_the_run_has_grown():
    network = adom.networks.alternate([adom.networks.ring(8), adom.networks.star(8)], every=1)
    result = adom.solve(one_flat(8), network, "opapc", rounds=4000, rtol=1e-10)
    assert result.status == "converged"
    assert (result.settings["why"] == "the run grew: back to the last good state").sum() > 1


def test_looks_cover_the_whole_network_where_its_links_come_one_at_a_time():
    """Blocks of a few rounds met one link each: the run grew by 1e7 after it had fallen, and stayed above `unit`."""
    problem, network = one_flat(8), ring_links(8, 20)
    found, unit = (adom.solve(problem, network, parameters=way, rounds=6000) for way in ("auto", "unit"))
    assert found.last["error"] < 0.01 * unit.last["error"]
    assert relative(found).max() == relative(found)[0]


def test_growth_between_looks_is_noticed_where_blocks_are_long():
    """The run itself is looked at within a quarter; all nodes are careful until they have agreed to go back."""
    rng, problem = np.random.default_rng(0), None
    H = []
    for _ in range(8):
        q, values = np.linalg.qr(rng.standard_normal((3, 3)))[0], 100.0 ** rng.uniform(0, 1, 3)
        H.append((q * values) @ q.T)
    H[0], H[-1] = np.eye(3), 100 * np.eye(3)
    problem = adom.Quadratic(H, rng.standard_normal((8, 3)))
    result = adom.solve(problem, ring_links(8, 20), "adom+", rounds=6000)
    why = result.settings["why"].tolist()
    assert why[why.index("careful: the run grew") + 1] == "the run grew: back to the last good state"
    assert relative(result)[-1] < 0.1
