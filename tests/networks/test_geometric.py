"""Geometric graphs: the paper's recipe (section 5), the search for chi, nodes in motion."""

import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform

from adom.errors import InputError
from adom.networks import edges, geometric, pool, waypoint
from adom.networks.geometric import Walk


def brute_force(cloud, radius):
    """Return the geometric graph and the shortest minimal repair, by Kruskal over all pairs."""
    distance = squareform(pdist(cloud))
    n = len(cloud)
    near = {(u, v) for u in range(n) for v in range(u + 1, n) if distance[u, v] < radius}
    joined = nx.utils.UnionFind(range(n))
    for u, v in near:
        joined.union(u, v)
    extra = set()
    for length, u, v in sorted((distance[i, j], i, j) for i in range(n) for j in range(i + 1, n)):
        if joined[u] != joined[v]:
            assert length >= radius
            extra.add((u, v))
            joined.union(u, v)
    return near, extra


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 40), st.floats(0.01, 1.5), st.integers(0, 10**6))
def test_links_are_the_close_pairs_and_the_shortest_minimal_repair(nodes, radius, seed):
    network = geometric(nodes, radius, graphs=2, seed=seed)
    for g in range(2):
        near, extra = brute_force(network.positions(g), radius)
        assert {tuple(e) for e in network.edges(g).tolist()} == near | extra
        graph = nx.empty_graph(nodes)
        graph.add_edges_from(near)
        assert len(extra) == nx.number_connected_components(graph) - 1


def test_kd_tree_and_all_pairs_agree(monkeypatch, check_gossip):
    few = geometric(120, 0.11, graphs=3, seed=9)
    monkeypatch.setattr(edges, "PAIRWISE", 10)
    tree = geometric(120, 0.11, graphs=3, seed=9)
    for g in range(3):
        np.testing.assert_array_equal(few.edges(g), tree.edges(g))
    check_gossip(few)


def test_points_are_uniform_and_fresh_for_each_graph():
    network = geometric(200, 0.2, graphs=10, seed=0)
    cloud = np.concatenate([network.positions(g) for g in range(10)])
    assert cloud.min() >= 0
    assert cloud.max() <= 1
    counts = np.histogram2d(*cloud.T, bins=4, range=[[0, 1], [0, 1]])[0]
    assert ((counts - 125) ** 2 / 125).sum() < 50  # chi-squared, 15 degrees of freedom
    assert len(np.unique(cloud[:, 0])) == 2000


@pytest.mark.parametrize("chi", [9, 32, 134, 521])
def test_the_papers_condition_numbers_are_reached(chi):
    network = geometric(100, chi=chi, graphs=60, seed=1)
    assert network.chi == pytest.approx(chi, rel=0.1)
    worst = max(np.linalg.eigvalsh(network.matrix(k))[-1] / np.linalg.eigvalsh(network.matrix(k))[1] for k in range(60))
    assert worst == pytest.approx(network.chi, rel=1e-9)
    assert network.recipe["chi"] == chi


def test_thousand_graphs_with_chi_30():
    network = geometric(100, chi=30, graphs=1000)
    assert network.chi == pytest.approx(30, rel=0.1)
    assert "redrawn" not in network.recipe
    again = geometric(100, network.recipe["radius"], graphs=1000)
    for g in range(0, 1000, 97):
        np.testing.assert_array_equal(again.edges(g), network.edges(g))


@pytest.mark.parametrize("seed", range(21))
def test_single_graphs_with_chi_400(seed):
    network = geometric(100, chi=400, seed=seed)
    assert network.chi == pytest.approx(400, rel=0.1)
    radius = network.recipe["radius"]
    near, extra = brute_force(network.positions(0), radius)
    assert {tuple(e) for e in network.edges(0).tolist()} == near | extra


def test_points_are_drawn_afresh_only_where_chi_jumps_and_the_recipe_says_so():
    again = [geometric(100, chi=400, seed=3) for _ in range(2)]
    np.testing.assert_array_equal(again[0].edges(0), again[1].edges(0))
    assert again[0].recipe["redrawn"] == again[1].recipe["redrawn"] != {}
    plain = geometric(100, 0.2, seed=3)
    assert not np.array_equal(plain.positions(0), again[0].positions(0))
    still = geometric(100, chi=400, seed=4)
    assert "redrawn" not in still.recipe
    np.testing.assert_array_equal(geometric(100, 0.2, seed=4).positions(0), still.positions(0))


def test_chi_of_many_nodes_is_reached_without_dense_matrices():
    network = geometric(2500, chi=300)
    assert network.chi == pytest.approx(300, rel=0.1)


def test_chi_1_is_the_complete_graph():
    assert len(geometric(12, chi=1, seed=2).edges(0)) == 66


def test_unreachable_chi_names_the_nearest():
    with pytest.raises(InputError, match=r"chi=6000 cannot be reached.*nearest is chi=\d+.*ask for that") as caught:
        geometric(30, chi=6000)
    nearest = float(str(caught.value).split("nearest is chi=")[1].split()[0])
    assert geometric(30, chi=nearest).chi == pytest.approx(nearest, rel=0.1)


def test_a_chi_that_no_graph_has_is_refused_before_any_is_drawn(monkeypatch):
    monkeypatch.setattr(sys.modules["adom.networks.geometric"], "uniform_points", None)
    with pytest.raises(InputError, match=r"chi must be at most 6750, which no graph of 30 nodes exceeds, got 1e\+300"):
        geometric(30, chi=1e300)


@pytest.mark.parametrize("pause", [0, 3])
def test_nodes_walk_straight_at_their_speed_and_rest_at_targets(pause):
    speed = 0.06
    network = waypoint(15, 0.3, graphs=200, speed=speed, pause=pause, seed=1)
    cloud = np.stack([network.positions(g) for g in range(200)])
    assert cloud.min() >= 0
    assert cloud.max() <= 1
    steps = np.diff(cloud, axis=0)
    length = np.linalg.norm(steps, axis=2)
    assert length.max() <= speed * (1 + 1e-9)
    full = np.isclose(length, speed)
    assert full.mean() > (0.8 if pause == 0 else 0.6)
    # Between two full steps of one walk the direction stays; it turns only after a shorter (last) step.
    turn = np.abs(steps[:-1] - steps[1:]).max(axis=2) > 1e-9
    assert not (turn & full[:-1] & full[1:]).any()
    resting = length == 0
    assert resting.any() == (pause > 0)
    for node in range(15):
        runs = "".join("r" if r else "w" for r in resting[:, node]).strip("r").split("w")
        assert {len(run) for run in runs if run} <= {pause}


def test_motion_gives_repaired_geometric_graphs_and_does_not_depend_on_its_length():
    long, short = (waypoint(25, 0.15, graphs=graphs, seed=2, repair=True) for graphs in (30, 10))
    bare = waypoint(25, 0.15, graphs=30, seed=2)
    added = 0
    for g in range(10):
        np.testing.assert_array_equal(long.positions(g), short.positions(g))
        near, extra = brute_force(long.positions(g), 0.15)
        added += len(extra)
        assert {tuple(e) for e in long.edges(g).tolist()} == near | extra
        assert {tuple(e) for e in bare.edges(g).tolist()} == near
    assert short.recipe["links_added"] == added > 0
    assert (short.window, bare.connected, bare.window > 1) == (1, False, True)


@pytest.mark.parametrize("nodes", [12, 450])
def test_geometric_graphs_without_a_repair_are_the_close_pairs(nodes, monkeypatch):
    radius = 0.8 / np.sqrt(nodes)
    compiled = geometric(nodes, radius, graphs=20, seed=1, repair=False)
    monkeypatch.setattr(edges.compiled, "usable", lambda: False)
    network = geometric(nodes, radius, graphs=20, seed=1, repair=False)
    for g in range(3):
        pairs, _ = brute_force(network.positions(g), radius)
        assert {tuple(e) for e in network.edges(g).tolist()} == pairs
        np.testing.assert_array_equal(network.edges(g), compiled.edges(g))
    assert network.reseeded(1).edges(2).tolist() == network.edges(2).tolist()
    with pytest.raises(InputError, match="got repair=False; give a radius"):
        geometric(nodes, chi=30, repair=False)


def walked(nodes, rounds, speed, pause, seed):
    """Walk from the start, every node with its stream of random numbers at hand."""
    streams = [np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(i,))) for i in range(nodes)]
    here = np.stack([stream.random(2) for stream in streams])
    target = np.stack([stream.random(2) for stream in streams])
    rest = [0] * nodes
    points = []
    for _ in range(rounds):
        points.append(here.copy())
        for i in range(nodes):
            way = target[i] - here[i]
            left = np.hypot(*way)
            if rest[i]:
                rest[i] -= 1
            elif left <= speed:
                here[i], target[i], rest[i] = target[i], streams[i].random(2), pause
            else:
                here[i] = here[i] + way * (speed / left)
    return np.stack(points)


@pytest.mark.parametrize(("speed", "pause"), [(0.02, 0), (0.3, 0), (0.2, 3)])
def test_any_round_in_any_order(speed, pause):
    expected = walked(8, 100, speed, pause, seed=6)
    walk = Walk(8, 100, speed, pause, 6)
    for k in [0, 1, 2, 50, 49, 99, 0, 17, 16, 15, *np.random.default_rng(0).permutation(100).tolist()]:
        np.testing.assert_array_equal(walk.points(k), expected[k])


def test_states_are_saved_at_distances_that_fit(monkeypatch):
    walk = Walk(8, 100, 0.1, 0, 6)
    walk.points(99)
    assert sorted(walk._saved) == [0, 16, 32, 48, 64, 80, 96]
    monkeypatch.setattr(pool, "HELD_BYTES", 4 * 3 * 8 * 48)  # three states in a quarter
    few = Walk(8, 100, 0.1, 0, 6)
    few.points(99)
    assert sorted(few._saved) == [0, 34, 68]
    np.testing.assert_array_equal(few.points(50), walk.points(50))


def test_what_is_returned_is_the_callers_own():
    walk = Walk(4, 10, 0.1, 0, 1)
    first = walk.points(5)
    kept = first.copy()
    first[:] = 7
    np.testing.assert_array_equal(walk.points(5), kept)
