"""Errors on networks whose nodes come and go: of present nodes only, against the solution of their problem."""

from typing import Any, NamedTuple

import numpy as np

from ...networks import DirectedNetwork, LossyNetwork, Network
from ...problems.base import Problem
from ...problems.some_nodes import minimum_of

Array = Any


class Presence(NamedTuple):
    """The nodes present in each epoch, and the solution of their problem."""

    starts: Array  # (epochs,): the first round of each
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
        """Return the epoch of the last of `clock` rounds."""
        epoch = (self.starts < clock[..., None]).sum(axis=-1) - 1
        return epoch * (epoch > 0)

    def marked(self, rows: np.ndarray, clock: float) -> np.ndarray:
        """Return the rows after `clock` rounds, with NaN for absent nodes."""
        return np.where(self.present[self._epoch(np.asarray(clock))][:, None], rows, np.nan).astype(rows.dtype)

    @property
    def settled(self) -> Array:
        """Rounds after which the final set of nodes has had one round."""
        return self.starts[-1] + 1

    @property
    def start_error(self) -> float:
        """Squared distance from zero to the solution, summed over the nodes present at first."""
        return float(self.present[0].sum() * (self.solutions[0] ** 2).sum())


def presence_on(network: Network | DirectedNetwork, problem: Problem, rounds: int) -> Presence | None:
    """Return the presence of nodes in a run of `rounds` rounds; None if all nodes are always present."""
    if not isinstance(network, LossyNetwork) or not network.loss.changing:
        return None
    epochs = network.loss.starts < rounds
    starts, present = network.loss.starts[epochs], network.loss.present[epochs]
    known = {row.tobytes(): minimum_of(problem, row).x for row in np.unique(present, axis=0)}
    return Presence(starts, present, np.stack([known[row.tobytes()] for row in present]))
