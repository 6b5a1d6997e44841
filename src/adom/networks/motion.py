"""Nodes in motion: where everyone is in round k of the random waypoint model.

A step depends on the one before, so the points of round k cannot be drawn by themselves. `Walk` keeps the state of
the latest round that was asked for and, on the way, states at regular distances; from the nearest one before k it
walks on. Rounds that are asked for in order cost one step each.
"""

import threading
from typing import Any, NamedTuple

import numpy as np

from adom.networks import stream
from adom.networks.links import Floats, Longs


class State(NamedTuple):
    """Every node in one round."""

    here: Floats
    target: Floats
    rest: Longs  # rounds left at the target
    targets: Longs  # how many points the node has drawn: its start, and the targets so far

    def copy(self) -> "State":
        """Return a state that does not change with this one."""
        return State(self.here.copy(), self.target.copy(), self.rest.copy(), self.targets.copy())


class Walk:
    """The random waypoint model, round by round; several threads may ask for points.

    Parameters
    ----------
    nodes, rounds : int
    speed : float
        The distance walked in one round.
    pause : int
        Rounds of rest at each target.
    seed : int
        Each node has its own stream of random numbers.
    """

    def __init__(self, nodes: int, rounds: int, speed: float, pause: int, seed: int) -> None:
        self._speed, self._pause, self._seed = speed, pause, seed
        drawn = np.stack([self._stream(i).random((2, 2)) for i in range(nodes)])
        zeros = np.zeros(nodes, dtype=np.int64)
        state = State(drawn[:, 0].copy(), drawn[:, 1].copy(), zeros, zeros + 2)
        self._round, self._state = 0, state
        size = sum(array.nbytes for array in state)
        self._spacing = max(16, -(-4 * rounds * size // stream.HELD_BYTES))  # a quarter of what may be held
        self._saved = {0: state.copy()}
        self._lock = threading.Lock()

    def points(self, k: int) -> Floats:
        """Return the points of round k."""
        with self._lock:
            start = max(saved for saved in self._saved if saved <= k)
            if not start <= self._round <= k:
                self._round, self._state = start, self._saved[start].copy()
            while self._round < k:
                self._step()
            return self._state.here.copy()

    def _stream(self, i: int, targets: int = 0) -> np.random.Generator:
        """Return the random numbers of node i after it has drawn so many points, two numbers each."""
        bits = np.random.PCG64(np.random.SeedSequence(self._seed, spawn_key=(i,)))
        return np.random.Generator(bits.advance(2 * targets) if targets else bits)

    def _step(self) -> None:
        """Walk one round."""
        here, target, rest, targets = self._state
        way = target - here
        left = np.hypot(way[:, 0], way[:, 1])
        moving = rest == 0
        arrive = moving & (left <= self._speed)
        walk = moving & ~arrive
        here[walk] += way[walk] * (self._speed / left[walk])[:, None]
        here[arrive] = target[arrive]
        rest[~moving] -= 1
        rest[arrive] = self._pause
        for i in np.flatnonzero(arrive).tolist():
            target[i] = self._stream(i, int(targets[i])).random(2)
        targets[arrive] += 1
        self._round += 1
        if self._round % self._spacing == 0 and self._round not in self._saved:
            self._saved[self._round] = self._state.copy()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock, which belongs to this process."""
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())
