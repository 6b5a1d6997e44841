"""One run of a fit: the f_i of a rank's nodes relative to a common point, with terms that hold the intercepts."""

from pathlib import Path
from typing import Any

import numpy as np

from ...data.preparing import Agreed
from ...problems.base import Problem
from ...problems.shifted import Shifted

Array = np.ndarray


class Stage:
    """A problem with a rank's own nodes only, as `adom.run.ranks.solve.run` takes it.

    Parameters
    ----------
    own : Problem
        The f_i of this rank's nodes.
    agreed : Agreed
    centre : array of shape (dim,)
    tilt : array of shape (own nodes, dim)
        Linear terms: some that sum to 0 over all nodes, and those that move the intercepts' penalty to the centre.
    """

    def __init__(self, own: Problem, agreed: Agreed, centre: Array, tilt: Array) -> None:
        self.nodes, self.dim, self.reading = len(agreed.names), own.dim, Path()
        self._own, self._agreed = own, agreed
        self._shifted = Shifted(own, centre, tilt)

    def open(self, first: int, end: int) -> Shifted:
        """Return the problem of this rank's nodes."""
        return self._shifted

    def curvature(self, block: Shifted) -> Array:
        """Return L_i less the regulariser, for some nodes."""
        return block.L_nodes - self._agreed.l2

    def settle(self, block: Shifted, most: float) -> Shifted:
        """Set mu and L of all nodes, from the greatest curvature."""
        for problem in (block, self._own):
            problem.mu, problem.L = self._agreed.l2, self._agreed.l2 + most
        return block

    def listed(self) -> list[str]:
        """Return the names of all nodes, which all ranks must share."""
        return self._agreed.names

    def weighting(self) -> dict[str, Any]:
        """Return the fewest and most samples of a node, and whether samples or nodes count alike."""
        counts = self._agreed.counts
        return {"fewest": int(counts.min()), "most": int(counts.max()), "alike": self._agreed.count}

    def model(self, l2: float) -> dict[str, Any]:
        """Return the facts about the model, without its coefficients."""
        return self._agreed.about()
