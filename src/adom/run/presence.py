"""Errors where nodes come and go: against the solution of the nodes that are there, over their rows alone."""

from typing import Any, NamedTuple

import numpy as np

from ..networks import DirectedNetwork, LossyNetwork, Network
from ..problems.base import Problem
from ..problems.some_nodes import minimum_of

Array = Any


class Presence(NamedTuple):
    """Who is there from which round on, and the solution for them."""

    starts: Array  # (epochs,)
    present: Array  # (epochs, nodes)
    solutions: Array  # (epochs, dim)

    def distances(self, rows: Array, clock: Array) -> tuple[Array, Array]:
        """Return error and consensus of rows (..., nodes, dim) after `clock` (...) rounds."""
        epoch = self._epoch(clock)
        here, solution = self.present[epoch][..., None], self.solutions[epoch][..., None, :]
        rows = rows.astype(np.float64)
        mean = (rows * here).sum(axis=-2, keepdims=True) / here.sum(axis=-2, keepdims=True)
        error, apart = (rows - solution) * here, (rows - mean) * here
        return (error**2).sum(axis=(-2, -1)), (apart**2).sum(axis=(-2, -1))

    def _epoch(self, clock: Array) -> Array:
        """Return the epoch of the last round of so many."""
        epoch = (self.starts < clock[..., None]).sum(axis=-1) - 1
        return epoch * (epoch > 0)

    def marked(self, rows: np.ndarray, clock: float) -> np.ndarray:
        """Return rows after `clock` rounds with those of nodes that are away marked: they are no numbers."""
        return np.where(self.present[self._epoch(np.asarray(clock))][:, None], rows, np.nan).astype(rows.dtype)

    @property
    def settled(self) -> Array:
        """The rounds that are over when those who are left at the end have had one of their own."""
        return self.starts[-1] + 1

    @property
    def start_error(self) -> float:
        """Squared distance of rows of zeros to the solution of the nodes that are there at first."""
        return float(self.present[0].sum() * (self.solutions[0] ** 2).sum())


def presence_on(network: Network | DirectedNetwork, problem: Problem, rounds: int) -> Presence | None:
    """Return who is there when in a run of so many rounds, with the solutions; None where all nodes stay for ever."""
    if not isinstance(network, LossyNetwork) or not network.loss.changing:
        return None
    epochs = network.loss.starts < rounds
    starts, present = network.loss.starts[epochs], network.loss.present[epochs]
    known = {row.tobytes(): minimum_of(problem, row).x for row in np.unique(present, axis=0)}
    return Presence(starts, present, np.stack([known[row.tobytes()] for row in present]))
