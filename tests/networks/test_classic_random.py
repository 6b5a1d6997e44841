"""Classic graphs against their closed forms, and random ones against their law."""

import math

import networkx as nx
import numpy as np
import pytest

from adom.networks import complete, erdos_renyi, expander, path, ring, spectra, star, torus
from adom.networks.classic import random_pairs


def ring_values(n):
    return [4 * math.sin(math.pi * j / n) ** 2 for j in range(n)]


def chi_of(values):
    ordered = sorted(values)
    return ordered[-1] / ordered[1]


@pytest.mark.parametrize("n", [3, 4, 9, 100, 257, 1999, 2001, 5000])
def test_ring_and_path_have_the_closed_form_chi(n):
    assert ring(n).chi == pytest.approx(chi_of(ring_values(n)), rel=1e-6)
    assert path(n).chi == pytest.approx(chi_of(ring_values(2 * n)[:n]), rel=1e-6)


@pytest.mark.parametrize("n", [3, 10, 300, 3000])
def test_star_has_chi_n(n):
    network = star(n)
    assert network.chi == pytest.approx(n, rel=1e-9)
    assert network.weights(0) == pytest.approx(1 / n)


@pytest.mark.parametrize("n", [2, 3, 50, 300])
def test_complete_graph_averages_exactly(n):
    network = complete(n)
    np.testing.assert_allclose(network.matrix(0), np.eye(n) - 1 / n, atol=1e-12)
    assert network.chi == pytest.approx(1.0)


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (4, 7), (17, 17), (50, 50)])
def test_torus_has_sums_of_ring_eigenvalues(rows, columns):
    values = [a + b for a in ring_values(rows) for b in ring_values(columns)]
    network = torus(rows, columns)
    assert network.nodes == rows * columns
    assert network.chi == pytest.approx(chi_of(values), rel=1e-7)


@pytest.mark.parametrize(
    ("network", "twin"),
    [
        (ring(8), nx.cycle_graph(8)),
        (star(8), nx.star_graph(7)),
        (path(8), nx.path_graph(8)),
        (complete(8), nx.complete_graph(8)),
        (torus(4, 5), nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 5, periodic=True), ordering="sorted")),
        (torus(4), nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 4, periodic=True), ordering="sorted")),
    ],
)
def test_links_are_those_of_networkx(network, twin):
    assert nx.utils.graphs_equal(nx.Graph(network.graph(0).edges), nx.Graph(twin.edges))


def test_erdos_renyi_links_pairs_with_probability_p():
    n, p, graphs = 40, 0.2, 300
    network = erdos_renyi(n, p, graphs=graphs, seed=1)
    pairs = n * (n - 1) / 2
    hits = np.zeros((n, n))
    for g in range(graphs):
        u, v = network.edges(g).T
        hits[u, v] += 1
    spread = math.sqrt(graphs * pairs * p * (1 - p))
    assert abs(hits.sum() - graphs * pairs * p) < 5 * spread
    each = hits[np.triu_indices(n, 1)]
    assert np.abs(each - graphs * p).max() < 6 * math.sqrt(graphs * p * (1 - p)), "no pair is preferred"


def test_random_pairs_reach_every_pair_and_only_pairs():
    rng = np.random.default_rng(0)
    assert random_pairs(6, 1.0, rng).tolist() == [[u, v] for u in range(6) for v in range(u + 1, 6)]
    assert random_pairs(6, 0.0, rng).shape == (0, 2)
    assert random_pairs(6, 1e-300, rng).shape == (0, 2)


def test_erdos_renyi_without_links_becomes_a_tree():
    network = erdos_renyi(30, 0.0, graphs=5)
    assert [len(network.edges(g)) for g in range(5)] == [29] * 5
    assert all(nx.is_tree(network.graph(k)) for k in range(5))
    assert len({network.edges(g).tobytes() for g in range(5)}) == 5, "the links are random"


def test_large_sparse_graph_has_the_right_degree():
    network = erdos_renyi(20_000, 10 / 20_000, seed=3)
    assert network.describe()["degree_mean"] == pytest.approx(10, rel=0.02)
    assert 10 < network.chi < 100


@pytest.mark.parametrize(("nodes", "degree"), [(3, 2), (40, 2), (41, 4), (300, 6)])
def test_an_expander_is_a_union_of_rings_through_all_nodes(nodes, degree):
    network = expander(nodes, degree, graphs=4, seed=5)
    for k in range(4):
        rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(k,)))
        twin = nx.empty_graph(nodes)
        for _ in range(degree // 2):
            nx.add_cycle(twin, rng.permutation(nodes).tolist())
        assert nx.utils.graphs_equal(nx.Graph(network.graph(k).edges), nx.Graph(twin.edges))


def test_an_expander_mixes_as_fast_as_the_theorem_says(monkeypatch):
    degree, edge = 8, 2 * math.sqrt(7)
    network = expander(1500, degree, graphs=2, seed=1)
    assert network.chi == pytest.approx((degree + edge) / (degree - edge), rel=0.05)
    monkeypatch.setattr(spectra, "LARGE", 1000)
    divided = expander(1500, degree, graphs=2, seed=1)
    assert divided.weights(0)[0] == 1 / (1.002 * (degree + edge))
    values = np.linalg.eigvalsh(divided.matrix(0))
    assert 0.97 < values[-1] <= 1.0
    assert divided.lambda_max == 1.0
    assert divided.chi == pytest.approx(1 / min(values[1], np.linalg.eigvalsh(divided.matrix(1))[1]))
