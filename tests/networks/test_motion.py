"""Nodes in motion: any round in any order is what walking from the start gives."""

import numpy as np
import pytest

from adom.networks import lazy
from adom.networks.geometric import Walk


def walked(nodes, rounds, speed, pause, seed):
    """Walk from the start, every node with its stream of random numbers at hand."""
    streams = [np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(i,))) for i in range(nodes)]
    here = np.stack([one.random(2) for one in streams])
    target = np.stack([one.random(2) for one in streams])
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
    monkeypatch.setattr(lazy, "HELD_BYTES", 4 * 3 * 8 * 48)  # three states in a quarter
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
