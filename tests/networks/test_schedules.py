"""Schedules: which graph in which round."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adom.errors import InputError
from adom.networks import (
    alternate,
    complete,
    cyclic,
    erdos_renyi,
    failing,
    from_matrices,
    geometric,
    path,
    redraw,
    ring,
    star,
    static,
)


def same(a, k, b, j):
    np.testing.assert_array_equal(a.matrix(k), b.matrix(j))


def test_static_freezes_one_round():
    changing = geometric(12, 0.3, graphs=4, seed=1)
    for k in (0, 3, 6):
        frozen = static(changing, k)
        assert (frozen.graphs, frozen.period) == (1, 1)
        for j in (0, 1, 17):
            same(frozen, j, changing, k)
        assert frozen.chi == pytest.approx(1 / changing.spectrum[k % 4, 0])
        np.testing.assert_array_equal(frozen.positions(0), changing.positions(k % 4))


def test_cyclic_goes_through_one_period_of_each():
    a, b, c = geometric(12, 0.3, graphs=3), ring(12), nx.path_graph(12)
    network = cyclic([a, b, c])
    assert (network.period, network.graphs) == (5, 5)
    for k in range(3):
        same(network, k, a, k)
    same(network, 3, b, 0)
    same(network, 9, path(12), 0)
    assert network.chi == pytest.approx(max(a.chi, b.chi, path(12).chi))


def test_members_that_share_a_pool_share_their_graphs():
    a = geometric(12, 0.3, graphs=3)
    network = cyclic([a, ring(12), a])
    assert (network.graphs, network.period) == (4, 7)
    assert network.order.tolist() == [0, 1, 2, 3, 0, 1, 2]


@settings(max_examples=30, deadline=None)
@given(
    periods=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    every=st.integers(1, 6),
    k=st.integers(0, 10_000),
)
def test_alternate_lets_each_member_go_on_where_it_stopped(periods, every, k):
    members = [erdos_renyi(6, 0.5, graphs=period, seed=i) for i, period in enumerate(periods)]
    network = alternate(members, every=every)
    turn, within = divmod(k, every)
    cycle, who = divmod(turn, len(members))
    same(network, k, members[who], cycle * every + within)


def test_alternate_ring_and_star_as_in_the_paper():
    network = alternate([ring(100), star(100)], every=20)
    assert network.period == 40
    assert network.order.tolist() == [0] * 20 + [1] * 20
    assert network.chi == pytest.approx(1 / np.sin(np.pi / 100) ** 2)  # about 1000


def test_redraw_is_uniform_over_the_pool_and_independent_over_time():
    base = geometric(8, 0.4, graphs=5)
    network = redraw(base, rounds=20_000, seed=3)
    assert (network.period, network.graphs) == (20_000, 5)
    counts = np.bincount(network.order, minlength=5)
    assert ((counts - 4000) ** 2 / 4000).sum() < 20
    pairs = np.bincount(5 * network.order[:-1] + network.order[1:], minlength=25)
    assert ((pairs - 800) ** 2 / 800).sum() < 60
    same(network, 7, base, int(network.order[7]))
    np.testing.assert_array_equal(network.order, redraw(base, rounds=20_000, seed=3).order)
    assert not np.array_equal(network.order, redraw(base, rounds=20_000, seed=4).order)


@settings(max_examples=30, deadline=None)
@given(probability=st.floats(0, 1), seed=st.integers(0, 1000))
def test_failing_links_are_restored_only_as_connectivity_needs(check_gossip, probability, seed):
    base = geometric(15, 0.3, graphs=3, seed=seed)
    network = failing(base, probability, graphs=7, seed=seed, repair=True)
    check_gossip(network)
    for k in range(7):
        left = {tuple(e) for e in network.edges(k).tolist()}
        assert left <= {tuple(e) for e in base.edges(k % 3).tolist()}


def test_every_restored_link_is_needed():
    base, probability = complete(12), 0.9
    network = failing(base, probability, graphs=50, seed=1, repair=True)
    as_they_are, added = failing(base, probability, graphs=50, seed=1), 0
    for k in range(50):
        rng = np.random.default_rng(np.random.SeedSequence(1, spawn_key=(k,)))
        survived = base.edges(0)[rng.random(66) >= probability]
        rest = nx.empty_graph(12)
        rest.add_edges_from(survived.tolist())
        kept = {tuple(e) for e in network.edges(k).tolist()}
        assert {tuple(e) for e in survived.tolist()} <= kept
        assert len(kept) == len(survived) + nx.number_connected_components(rest) - 1
        assert as_they_are.edges(k).tolist() == survived.tolist()
        added += len(kept) - len(survived)
    assert network.recipe["links_added"] == added
    assert as_they_are.window > network.window == 1
    with pytest.raises(InputError, match="repair=True restores links that have failed, but some graphs fall apart"):
        failing(as_they_are, 0.1, repair=True)


def test_links_fail_with_the_given_probability():
    base = complete(30)
    network = failing(base, 0.3, graphs=200, seed=2)
    sizes = np.array([len(network.edges(g)) for g in range(200)])
    assert sizes.mean() == pytest.approx(0.7 * 435, rel=0.01)
    assert failing(base, 0.0, graphs=2).edges(0).tolist() == base.edges(0).tolist()
    assert nx.is_tree(failing(base, 1.0, graphs=1, repair=True).graph(0))
    with pytest.raises(InputError, match="all links of rounds 0 to 2 together leave 30 components"):
        failing(base, 1.0, graphs=3)


def test_failing_keeps_relative_weights():
    W = np.array([[3.0, -1.0, -2.0], [-1.0, 5.0, -4.0], [-2.0, -4.0, 6.0]])
    whole = failing(from_matrices([W]), 0.0, graphs=1)
    np.testing.assert_allclose(whole.matrix(0), W / np.linalg.eigvalsh(W)[-1], atol=1e-14)


def test_recipes_nest():
    network = alternate([ring(5), static(geometric(5, 0.3, graphs=3), 2)], every=4)
    recipe = network.recipe
    assert recipe["every"] == 4
    assert recipe["networks"][0] == {"generator": "ring", "nodes": 5}
    assert recipe["networks"][1]["network"]["generator"] == "geometric"


def test_failing_takes_the_graph_of_each_round():
    whole = failing(alternate([ring(8), complete(8)], every=2), 0.0, graphs=9)
    assert [len(whole.edges(k)) for k in range(9)] == [8, 8, 28, 28, 8, 8, 28, 28, 8]
