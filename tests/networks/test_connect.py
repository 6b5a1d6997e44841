"""Repair: connected afterwards, with exactly components - 1 more links."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform

from adom.networks import edges
from adom.networks.edges import (
    canonical,
    cheapest_tree,
    component_labels,
    join_at_random,
    join_in_chain,
    joining_rows,
    near_graph,
    spanning_tree,
    squares,
    with_links,
)


@st.composite
def loose_graphs(draw):
    nodes = draw(st.integers(2, 30))
    node = st.integers(0, nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node).filter(lambda p: p[0] != p[1]), max_size=40))
    return nodes, canonical(np.array(pairs, dtype=np.int32).reshape(-1, 2), nodes)


def components_of(nodes, pairs):
    graph = nx.empty_graph(nodes)
    graph.add_edges_from(pairs.tolist())
    return list(nx.connected_components(graph))


@settings(max_examples=150, deadline=None)
@given(loose_graphs(), st.integers(0, 1000))
def test_repair_adds_components_minus_one_links_and_connects(graph, seed):
    nodes, pairs = graph
    parts = components_of(nodes, pairs)
    for extra in (join_in_chain(nodes, pairs), join_at_random(nodes, pairs, np.random.default_rng(seed))):
        assert len(extra) == len(parts) - 1
        assert len(components_of(nodes, np.concatenate([pairs, extra]))) == 1


@settings(max_examples=100, deadline=None)
@given(loose_graphs())
def test_components_are_those_of_networkx(graph):
    nodes, pairs = graph
    count, labels = component_labels(nodes, pairs)
    parts = sorted(components_of(nodes, pairs), key=min)
    assert count == len(parts)
    assert [set(np.flatnonzero(labels == i)) for i in range(count)] == parts


@settings(max_examples=60, deadline=None)
@given(loose_graphs(), st.integers(0, 1000))
def test_cheapest_tree_is_kruskals(graph, seed):
    nodes, pairs = graph
    order = np.random.default_rng(seed).permutation(len(pairs))
    kept = cheapest_tree(nodes, pairs, order)
    below = nx.utils.UnionFind(range(nodes))
    for row in order:
        u, v = pairs[row].tolist()
        assert kept[row] == (below[u] != below[v])
        below.union(u, v)


def test_random_links_mostly_meet_the_giant_component():
    giant = np.stack([np.arange(99), np.arange(1, 100)], axis=1).astype(np.int32)
    extra = join_at_random(110, giant, np.random.default_rng(0))
    assert (extra.min(axis=1) < 100).sum() >= 7
    assert sorted(extra.max(axis=1).tolist()) == list(range(100, 110))


def tree_length(points, tree):
    return np.linalg.norm(points[tree[:, 0]] - points[tree[:, 1]], axis=1).sum()


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 80), st.integers(0, 1000))
def test_a_spanning_tree_is_the_shortest(nodes, seed):
    cloud = np.random.default_rng(seed).random((nodes, 2))
    tree = spanning_tree(cloud)
    assert len(components_of(nodes, tree)) == 1
    best = nx.minimum_spanning_tree(nx.from_numpy_array(squareform(pdist(cloud))))
    np.testing.assert_allclose(tree_length(cloud, tree), best.size(weight="weight"))


def test_triangulation_and_all_pairs_give_the_same_tree(monkeypatch):
    cloud = np.random.default_rng(1).random((300, 2))
    meshed = spanning_tree(cloud)
    monkeypatch.setattr(edges, "FEW", 300)
    np.testing.assert_array_equal(meshed, spanning_tree(cloud))


def test_a_triangulated_tree_survives_coincident_points():
    cloud = np.random.default_rng(1).random((60, 2))
    cloud[10] = cloud[20]
    tree = spanning_tree(cloud)
    assert len(tree) == 59
    assert len(components_of(60, tree)) == 1
    assert [10, 20] in tree.tolist()


def clouds(kind, nodes, seed):
    rng = np.random.default_rng(seed)
    cloud = rng.random((nodes, 2))
    if kind == "dense in a corner":
        return cloud**3
    if kind == "two clusters":
        return 0.01 * cloud + rng.integers(0, 2, (nodes, 1)) * 0.7
    return cloud


@pytest.mark.parametrize("degree", [0.1, 2, 5, 8, 20])
@pytest.mark.parametrize("kind", ["uniform", "dense in a corner", "two clusters"])
def test_a_near_graph_is_the_close_pairs_and_the_longer_links_of_the_spanning_tree(kind, degree):
    for seed, nodes in enumerate((12, 150, 800, 2500)):
        cloud = clouds(kind, nodes, seed)
        radius = np.sqrt(degree / np.pi / nodes)
        pairs = canonical(np.stack(np.triu_indices(nodes, 1), axis=1), nodes)
        close = pairs[squares(cloud, pairs) < radius**2]
        expected = canonical(np.concatenate([close, spanning_tree(cloud)]), nodes)
        np.testing.assert_array_equal(near_graph(cloud, radius), expected)


@settings(max_examples=60, deadline=None)
@given(loose_graphs(), st.integers(0, 1000))
def test_joining_rows_go_on_where_kruskal_stands(graph, seed):
    nodes, pairs = graph
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(pairs))
    done = int(rng.integers(0, len(pairs) + 1))
    kept = cheapest_tree(nodes, pairs, order)
    _, labels = component_labels(nodes, pairs[order[:done]])
    rest = order[done:]
    assert joining_rows(labels, pairs, rest).tolist() == rest[kept[rest]].tolist()


@settings(max_examples=60, deadline=None)
@given(loose_graphs(), st.integers(0, 1000))
def test_links_are_put_in_their_places(graph, seed):
    nodes, pairs = graph
    extra = np.random.default_rng(seed).permuted(join_in_chain(nodes, pairs), axis=1)
    expected = canonical(np.concatenate([pairs, extra]), nodes)
    np.testing.assert_array_equal(with_links(pairs, extra, nodes), expected)


def test_points_on_a_line_make_a_path():
    along = np.random.default_rng(3).permutation(30) / 30
    tree = spanning_tree(np.stack([along, 0 * along], axis=1))
    assert np.allclose(np.abs(along[tree[:, 0]] - along[tree[:, 1]]), 1 / 30)
