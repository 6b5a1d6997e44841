"""Streamed networks: the same graphs as held ones, drawn when asked for, few of them kept, from any thread."""

import copy
import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from adom.errors import InputError
from adom.networks import (
    alternate,
    bounded,
    cyclic,
    directed_erdos_renyi,
    directed_geometric,
    erdos_renyi,
    expander,
    failing,
    from_matrices,
    geometric,
    pool,
    redraw,
    ring,
    slowed,
    static,
    waypoint,
)
from adom.networks.pool import Drawn, Pool

MAKERS = {
    "geometric, few nodes": lambda: geometric(40, 0.2, graphs=12, seed=1),
    "geometric, more": lambda: geometric(500, 0.04, graphs=5, seed=1),
    "geometric, many": lambda: geometric(1300, 0.03, graphs=3, seed=1),
    "geometric in pieces": lambda: geometric(1300, 0.01, graphs=2, seed=1),
    "waypoint": lambda: waypoint(30, 0.2, graphs=60, speed=0.1, pause=2, seed=3),
    "erdos_renyi": lambda: erdos_renyi(60, 0.04, graphs=12, seed=2),
    "erdos_renyi, many": lambda: erdos_renyi(2500, 0.001, graphs=3, seed=2),
    "expander": lambda: expander(50, 6, graphs=12, seed=2),
    "failing": lambda: failing(geometric(40, 0.3, graphs=5), 0.6, graphs=12, seed=2),
    "failing ring": lambda: failing(ring(30), 0.5, graphs=12, seed=2),
    "alternate": lambda: alternate([geometric(40, 0.2, graphs=3), ring(40), erdos_renyi(40, 0.1, graphs=9)], every=2),
    "failing alternate": lambda: failing(
        alternate([geometric(40, 0.2, graphs=3), ring(40)], every=2), 0.3, graphs=12, seed=2
    ),
    "nested": lambda: cyclic([cyclic([erdos_renyi(40, 0.1, graphs=9), ring(40)]), expander(40, 4, graphs=9)]),
    "redraw": lambda: redraw(erdos_renyi(40, 0.1, graphs=9), rounds=30),
    "slowed": lambda: slowed(geometric(40, 0.2, graphs=9), every=3),
    "directed_erdos_renyi": lambda: directed_erdos_renyi(50, 0.03, graphs=12, seed=4),
    "directed_geometric": lambda: directed_geometric(50, 0.15, graphs=12, seed=4),
}


@pytest.fixture
def shrink(monkeypatch):
    """Return a function after whose call no network fits into memory."""

    def limits(held=100, kept=100):
        monkeypatch.setattr(pool, "HELD_BYTES", held)
        monkeypatch.setattr(pool, "KEPT_BYTES", kept)

    return limits


@pytest.fixture
def small(shrink):
    """Let nothing fit."""
    shrink()


def arrays(network, g):
    parts = [network.arcs(g)] if hasattr(network, "arcs") else [network.edges(g), network.weights(g)]
    return [*parts, network.positions(g)]


def assert_same_graph(a, b, g):
    for mine, other in zip(arrays(a, g), arrays(b, g), strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert mine.dtype == other.dtype
            assert mine.tobytes() == other.tobytes(), f"graph {g}"
            assert not mine.flags.writeable


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_streamed_graphs_are_those_of_the_held_network_in_any_order(make, shrink):
    held = make()
    shrink()
    streamed = make()
    assert (held.held, streamed.held) == (True, False)
    assert (held.nodes, held.graphs) == (streamed.nodes, streamed.graphs)
    np.testing.assert_array_equal(held.order, streamed.order)
    mixed = np.random.default_rng(0).permutation(np.tile(np.arange(held.graphs), 2))
    for g in [*range(held.graphs), *mixed.tolist()]:
        assert_same_graph(held, streamed, g)
    inner = {"spectrum", "network", "networks"}
    assert {key: value for key, value in streamed.recipe.items() if key not in inner}.items() <= held.recipe.items()


@pytest.mark.parametrize("make", [MAKERS["erdos_renyi"], MAKERS["alternate"], MAKERS["failing"]])
def test_matrices_and_graphs_agree_too(make, shrink):
    held = make()
    shrink()
    streamed = make()
    for k in range(held.period):
        np.testing.assert_array_equal(held.matrix(k), streamed.matrix(k))
    assert dict(held.graph(1).adj) == dict(streamed.graph(1).adj)
    assert static(streamed, 3).held
    np.testing.assert_array_equal(static(streamed, 3).matrix(0), held.matrix(3))
    assert static(streamed, 3).chi == pytest.approx(static(held, 3).chi)


@pytest.mark.parametrize(
    "make",
    [
        lambda: geometric(2000, 0.05, graphs=4),
        lambda: erdos_renyi(2000, 0.005, graphs=4),
        lambda: expander(2000, 8, graphs=4),
        lambda: failing(expander(2000, 8), 0.4, graphs=4),
        lambda: directed_erdos_renyi(2000, 0.005, graphs=4),
    ],
)
def test_the_size_foretold_is_about_the_size(make, shrink):
    held = make()
    assert held.bytes == sum(a.nbytes for g in range(4) for a in arrays(held, g) if a is not None)
    shrink()
    assert make().bytes == pytest.approx(held.bytes, rel=0.1)
    shrink(held=2 * held.bytes)
    assert make().held


def test_only_the_most_recent_graphs_are_kept(shrink):
    shrink(kept=3.5 * 200 * 16)
    network = expander(100, 4, graphs=50)
    drawn = []
    source = network._pool.sources[0]
    network._pool.sources = (source._replace(draw=lambda g: drawn.append(g) or source.draw(g)),)
    for g in range(20):
        network.edges(g), network.weights(g), network.positions(g)
    assert drawn == list(range(20)), "one draw serves links, weights and positions"
    assert list(network._pool._kept) == [17, 18, 19]
    network.edges(17)
    network.edges(30)
    assert list(network._pool._kept) == [19, 17, 30], "the one that was used least recently goes"
    shrink(kept=0)
    network.edges(31)
    assert list(network._pool._kept) == [30, 31], "two at least"


def test_nothing_is_drawn_before_it_is_asked_for(small):
    networks = [erdos_renyi(10**6, 8e-6, graphs=1000), expander(10**6, graphs=1000)]
    networks += [cyclic(networks), failing(networks[1], 0.1), slowed(networks[0]), directed_geometric(10**6, 1e-3)]
    for network in networks:
        assert not network.held
        assert "about" in repr(network)
        assert not network.chi_known
    assert networks[2].lambda_max == 1.0
    assert bounded(networks[3], 40).chi == 40
    assert bounded(networks[5], 40).chi == pytest.approx(40)
    pools = [network._pool for network in (networks[0], networks[1], networks[3], networks[4], networks[5])]
    assert not any(pool._kept for pool in pools)


class Thing:
    bytes = 1


def test_threads_that_ask_for_the_same_graph_draw_it_once():
    calls, gate = [], threading.Barrier(4)

    def draw(g):
        calls.append(g)
        threading.Event().wait(0.05)
        return Thing()

    things = Pool(Drawn(5, 10, draw, 1, 1, True, {}))

    def ask(_):
        gate.wait(5)
        return things.single(3), things.single(4)

    with ThreadPoolExecutor(4) as pool:
        things_drawn = list(pool.map(ask, range(4)))
    assert sorted(calls) == [3, 4]
    assert len(set(things_drawn)) == 1
    assert not things._turns


@pytest.mark.parametrize("name", ["waypoint", "failing alternate", "geometric, more"])
def test_many_threads_draw_what_one_draws(name, shrink):
    held = MAKERS[name]()
    shrink()
    streamed = MAKERS[name]()
    wanted = np.random.default_rng(1).integers(0, held.graphs, 40).tolist()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda g: assert_same_graph(held, streamed, g), wanted))


def test_a_draw_that_fails_can_be_tried_again():
    outcomes = [MemoryError(), Thing()]

    def draw(_):
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    things = Pool(Drawn(5, 10, draw, 1, 1, True, {}))
    with pytest.raises(MemoryError):
        things.single(0)
    assert isinstance(things.single(0), Thing)


@pytest.mark.parametrize("name", ["waypoint", "alternate", "failing", "directed_geometric"])
def test_streamed_networks_can_be_copied_and_sent(name, small):
    network = MAKERS[name]()
    for again in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert_same_graph(network, again, 2)


def test_chi_is_that_of_the_worst_graph_examined_and_the_recipe_says_so(shrink):
    held = erdos_renyi(60, 0.1, graphs=100, seed=2)
    assert held.examined.tolist() == list(range(100))
    assert "spectrum" not in held.recipe
    shrink()
    streamed = erdos_renyi(60, 0.1, graphs=100, seed=2)
    assert streamed.recipe["spectrum"] == {"graphs_examined": 8, "graphs_used": 100}
    chosen = streamed.examined
    assert len(chosen) == 8
    assert {0, 99} <= set(chosen.tolist())
    assert not streamed.chi_known
    assert streamed.lambda_min_plus == held.spectrum[chosen, 0].min()
    assert streamed.chi_known
    assert streamed.chi == 1 / streamed.lambda_min_plus <= held.chi
    np.testing.assert_array_equal(streamed.spectrum[chosen], held.spectrum[chosen])
    assert np.isnan(np.delete(streamed.spectrum, chosen, axis=0)).all()
    facts = streamed.describe()
    assert facts["edges_min"] == min(len(held.edges(g)) for g in chosen.tolist())
    assert facts["edges_mean"] == pytest.approx(np.mean([len(held.edges(g)) for g in chosen.tolist()]))
    assert facts["chi"] == facts["chi_worst"] == streamed.chi
    json.dumps(streamed.recipe)


def test_every_member_of_a_schedule_is_examined(small):
    base = erdos_renyi(60, 0.1, graphs=100, seed=2)
    network = cyclic([base, ring(60)])
    assert len(network.examined) == 9
    assert network.chi == pytest.approx(ring(60).chi)
    assert network.recipe["spectrum"] == {"graphs_examined": 9, "graphs_used": 101}
    few = redraw(network, rounds=5, seed=1)
    assert set(few.examined.tolist()) <= set(few.order.tolist())


def test_directed_chi_is_that_of_the_worst_graph_examined(shrink):
    makers = [partial(make, 30, 0.3, graphs=40, seed=2) for make in (directed_erdos_renyi, directed_geometric)]
    held = [make() for make in makers]
    shrink()
    for whole, streamed in zip(held, [make() for make in makers], strict=True):
        assert streamed.recipe["spectrum"] == {"graphs_examined": 8, "graphs_used": 40}
        assert not streamed.chi_known
        assert 1 < streamed.chi <= whole.chi
        assert streamed.chi_known
        assert streamed.describe()["arcs_max"] <= whole.describe()["arcs_max"]
        np.testing.assert_array_equal(streamed.row_stochastic(7), whole.row_stochastic(7))
        np.testing.assert_array_equal(streamed.column_stochastic(7), whole.column_stochastic(7))


def test_a_given_chi_is_used_and_named(small):
    base = erdos_renyi(60, 0.1, graphs=100, seed=2)
    network = bounded(base, 25)
    assert (network.chi, network.lambda_max, network.lambda_min_plus) == (25, 1, 0.04)
    assert network.chi_known
    assert network.examined.size == 0
    assert network.recipe == {"generator": "bounded", "chi": 25.0, "network": base.recipe}
    assert network.describe()["chi"] == 25
    assert_same_graph(network, base, 7)
    assert np.isnan(network.spectrum).all()
    assert bounded(ring(9), 8).chi == 8
    assert bounded(ring(9), 8).spectrum[0, 0] == ring(9).lambda_min_plus
    directed = bounded(directed_erdos_renyi(20, 0.2, graphs=9), 12.5)
    assert directed.chi == pytest.approx(12.5)
    assert "spectrum" not in directed.recipe


def test_negative_weights_in_a_streamed_schedule_cannot_fail(small):
    W = np.array([[2.0, -3.0, 1.0], [-3.0, 6.0, -3.0], [1.0, -3.0, 2.0]])
    with pytest.raises(InputError, match="links of positive weight, got -1"):
        failing(cyclic([from_matrices([W]), erdos_renyi(3, 0.5, graphs=20)]), 0.1)


def test_spectra_are_those_of_the_graphs_wherever_their_source_begins(shrink):
    shrink()
    network = cyclic([ring(60), erdos_renyi(60, 0.1, graphs=100, seed=2)])  # graph 0 of the second is graph 1 here
    for g in network.examined.tolist():
        values = np.linalg.eigvalsh(network.matrix(g))
        np.testing.assert_allclose(network.spectrum[g], [values[1], 1.0], rtol=1e-7)
