"""A stretch of a run once more: it is the same run, and another one is refused."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import adom
from adom.errors import InputError
from adom.study.replay import FRAMES, STRIDE, replay


def problem(nodes=6, seed=0):
    rng = np.random.default_rng(seed)
    hessians = np.stack([np.diag(1 + 9 * rng.random(3)) for _ in range(nodes)])
    return adom.Quadratic(hessians, rng.standard_normal((nodes, 3)))


def network(nodes=6):
    return adom.networks.alternate([adom.networks.ring(nodes), adom.networks.star(nodes)], every=3)


@pytest.mark.parametrize("method", ["adom", "diging", "mudag", "apm"])
def test_distances_are_those_of_the_run(method):
    here, links = problem(), network()
    result = adom.solve(here, links, method, "unit", rounds=400)
    seen = replay(result, here, links, progress=False)
    errors = (seen.distances**2).sum(axis=1)
    assert errors[0] == pytest.approx(result.provenance["start_error"])
    saved = result.history.set_index("round")["error"]
    np.testing.assert_allclose(errors[1:], saved[seen.rounds[1:]], rtol=1e-6)
    assert len(seen.rounds) <= FRAMES
    assert np.all(np.diff(seen.rounds) > 0)


def test_each_frame_has_the_links_of_its_last_round():
    here, links = problem(), network()
    seen = replay(adom.solve(here, links, "adom", "unit", rounds=20), here, links, progress=False)
    assert len(seen.edges) == 2
    for k, g in zip(seen.rounds, seen.graph, strict=True):
        np.testing.assert_array_equal(seen.edges[g], links.edges(int(links.order[max(0, k - 1) % links.period])))


def test_long_runs_are_shown_in_part_and_converged_ones_as_far_as_there_is_something_to_see():
    here, links = problem(), network()
    hard = adom.Quadratic(np.asarray(here.H) + 400 * np.diag([0.0, 0.0, 1.0]), np.asarray(here.c))
    slow = adom.solve(hard, links, "adom", "theory", rounds=4000, record_every=50)
    assert replay(slow, hard, links, progress=False).rounds[-1] == STRIDE * (FRAMES - 1)
    quick = adom.solve(here, links, "adom", "unit", rounds=3000, tol=1e-25)
    end = replay(quick, here, links, progress=False)
    assert (end.distances[-1] ** 2).sum() <= 1.01e-10 * quick.provenance["start_error"]
    assert end.rounds[-1] < quick.history["round"].iloc[-1]


def test_places_are_the_networks_own_or_one_layout_for_all():
    here = problem()
    moving = adom.networks.geometric(6, 0.7, graphs=5, seed=1)
    seen = replay(adom.solve(here, moving, "adom", "unit", rounds=5), here, moving, progress=False)
    np.testing.assert_array_equal(seen.places[1], moving.positions(1))
    given = adom.networks.from_graphs([nx.cycle_graph(6), nx.path_graph(6)])
    result = adom.solve(here, given, "adom", "unit", rounds=5)
    first, second = (replay(result, here, given, progress=False) for _ in range(2))
    assert len(first.places) == 1
    assert np.isfinite(first.places[0]).all()
    np.testing.assert_array_equal(first.places[0], second.places[0])


def test_another_run_is_refused():
    here, links = problem(), network()
    result = adom.solve(here, links, "adom", "unit", rounds=20)
    with pytest.raises(InputError, match=r"problem with (mu|L) = .* the saved run had"):
        replay(result, problem(seed=1), links)
    with pytest.raises(InputError, match="not the network of the saved run"):
        replay(result, here, adom.networks.ring(6))
    moved = adom.Quadratic(np.asarray(here.H), np.asarray(here.c) + 1.0)
    with pytest.raises(InputError, match="the error after 1 steps is now"):
        replay(result, moved, links)
    big = adom.networks.ring(101)
    with pytest.raises(InputError, match="100 nodes at most, got 101"):
        replay(result, here, big)
    unknown = {**result.provenance["method"], "name": "mine"}
    with pytest.raises(InputError, match="unknown method 'mine'"):
        replay(replace(result, provenance={**result.provenance, "method": unknown}), here, links)
