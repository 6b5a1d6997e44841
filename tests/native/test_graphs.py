"""Graphs in C++ against NumPy, SciPy and closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adom import networks
from adom.native import graphs as compiled
from adom.networks import edges, spectra
from adom.networks.edges import Links
from adom.run.local.graph_layout import GraphLayout

pytestmark = pytest.mark.skipif(not compiled.usable(), reason="no C++ compiler here")


@pytest.fixture
def plain(monkeypatch):
    """Return a function that calls another one without the compiled functions."""

    def call(function, *arguments):
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "usable", lambda: False)
            return function(*arguments)

    return call


def some_pairs(nodes, count, seed, hub=0.0):
    """Return pairs of different nodes, some of them several times, a share of them with node 0."""
    rng = np.random.default_rng(seed)
    u = np.where(rng.random(count) < hub, 0, rng.integers(0, nodes, count))
    return np.stack([u, (u + rng.integers(1, nodes, count)) % nodes], axis=1).astype(np.int32)


CASES = [(2, 3, 0.0), (5, 0, 0.0), (9, 40, 0.0), (30, 60, 0.0), (200, 150, 0.0), (200, 3000, 0.3), (40, 500, 1.0)]


@pytest.mark.parametrize(("nodes", "count", "hub"), CASES)
def test_links_are_sorted_and_distinct(plain, nodes, count, hub):
    pairs = some_pairs(nodes, count, 1, hub)
    expected = plain(edges.canonical, pairs, nodes)
    for given_pairs in (pairs, pairs.astype(np.int64), pairs[:, ::-1]):
        found = edges.canonical(given_pairs, nodes)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("nodes", "count", "hub"), CASES)
def test_components_are_numbered_as_by_scipy(plain, nodes, count, hub):
    pairs = some_pairs(nodes, count, 2, hub)
    expected = plain(edges.component_labels, nodes, pairs)
    found = edges.component_labels(nodes, pairs)
    assert found[0] == expected[0]
    np.testing.assert_array_equal(found[1], expected[1])


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 40), st.integers(0, 1000))
def test_trees_are_the_shortest(nodes, seed):
    clouds = np.random.default_rng(seed).random((5, nodes, 2))
    trees = compiled.trees(clouds)
    for cloud, tree in zip(clouds, trees, strict=True):
        np.testing.assert_array_equal(tree, edges.spanning_tree(cloud))


def test_coincident_points_are_joined():
    clouds = np.round(np.random.default_rng(4).random((20, 30, 2)), 1)
    for cloud, tree in zip(clouds, compiled.trees(clouds), strict=True):
        for joined in (tree, edges.near_graph(cloud, 0.01)):
            assert edges.component_labels(30, joined)[0] == 1
        lengths = edges.squares(cloud, edges.spanning_tree(cloud))
        np.testing.assert_array_equal(np.sort(edges.squares(cloud, tree)), np.sort(lengths))


@pytest.mark.parametrize("repair", [False, True])
@pytest.mark.parametrize(("nodes", "radius"), [(2, 0.5), (7, 0.01), (33, 0.3), (100, 0.1), (100, 2.0)])
def test_close_pairs_and_the_links_that_join_them_are_those_of_scipy(plain, nodes, radius, repair):
    points = np.random.default_rng(nodes).random((9, nodes, 2))
    found, expected = (make(edges.Clouds, points, repair) for make in (lambda f, *a: f(*a), plain))
    assert found._trees is not None
    assert expected._trees is None
    for mine, other in zip(found.links(radius).each(), expected.links(radius).each(), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_a_pair_exactly_at_the_radius_is_not_near():
    clouds = np.array([[[0.0, 0.0], [0.3, 0.4], [0.6, 0.8]]])
    trees = np.array([[[0, 1], [0, 1]]], dtype=np.int32)
    square = 0.3**2 + 0.4**2  # as NumPy rounds it
    assert compiled.near(clouds, np.sqrt(square), trees)[0].tolist() == [[0, 1]]


@pytest.mark.parametrize("nodes", [2, 3, 4, 9, 16, 61, 256])
def test_extreme_eigenvalues_are_those_of_lapack(plain, nodes):
    rng = np.random.default_rng(nodes)
    tree = np.stack([np.arange(nodes - 1), np.arange(1, nodes)], axis=1)
    parts = [edges.canonical(np.concatenate([tree, some_pairs(nodes, 2 * nodes, seed)]), nodes) for seed in range(11)]
    graphs = Links.of(nodes, parts)
    weights = rng.random(len(graphs.edges)) + 0.01
    found, expected = spectra.extremes(graphs, weights), plain(spectra.extremes, graphs, weights)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14 * nodes**0.5 * expected.max())


@pytest.mark.parametrize("nodes", [3, 8, 40])
def test_extreme_eigenvalues_of_graphs_with_a_name(nodes):
    ring = 4 * np.sin(np.pi * np.array([1, nodes // 2]) / nodes) ** 2
    path = 4 * np.sin(np.pi / 2 * np.array([1, nodes - 1]) / nodes) ** 2
    cases = {"ring": ring, "path": path, "star": (1, nodes), "complete": (nodes, nodes)}
    for name, expected in cases.items():
        network = getattr(networks, name)(nodes)
        graphs = Links.of(nodes, [network.edges(0)])
        found = spectra.extremes(graphs, np.ones(len(graphs.edges)))[0]
        np.testing.assert_allclose(found, expected, rtol=1e-13 * nodes)
        assert found[0] <= found[1]


def test_eigenvalues_of_a_graph_do_not_depend_on_those_beside_it():
    network = networks.erdos_renyi(30, 0.2, graphs=19, seed=1)
    edges = [network.edges(g) for g in range(19)]
    together = spectra.extremes(Links.of(30, edges), np.ones(sum(map(len, edges))))
    for g, pairs in enumerate(edges):
        np.testing.assert_array_equal(spectra.extremes(Links.of(30, [pairs]), np.ones(len(pairs)))[0], together[g])


@pytest.mark.parametrize(
    "network",
    [
        networks.erdos_renyi(40, 0.1, graphs=5, seed=2),
        networks.star(30),
        networks.from_matrices([[[0.7, -0.5, -0.2], [-0.5, 0.6, -0.1], [-0.2, -0.1, 0.3]]]),
        networks.path(2),
    ],
    ids=repr,
)
def test_rows_are_laid_out_as_by_numpy(plain, network):
    found = GraphLayout(network, directed=False).window(0)[0]
    expected = plain(lambda: GraphLayout(network, directed=False).window(0)[0])
    assert found.W._fields == expected.W._fields
    for ours, theirs in zip(found.W, expected.W, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(found.links, expected.links)
