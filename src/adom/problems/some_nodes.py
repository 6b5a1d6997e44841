"""The solution of a problem restricted to some of its nodes."""

from typing import Any

import numpy as np

from .base import HessianProduct, Problem
from .minimiser import Minimum, minimum


def minimum_of(problem: Problem, chosen: np.ndarray) -> Minimum:
    """Return the minimiser of the sum of the f_i over the chosen nodes, and an estimate of its error.

    Examples
    --------
    >>> from adom.problems.quadratic import Quadratic
    >>> problem = Quadratic([[[1.0]], [[2.0]], [[3.0]]], [[1.0], [5.0], [0.0]])
    >>> x, _ = minimum_of(problem, np.array([True, False, True]))
    >>> x.round(12).tolist()
    [0.25]
    """
    if chosen.all():
        return Minimum(problem.solution(), problem.solution_error)
    some: Any = SomeNodes(problem, chosen)
    return minimum(some)


class SomeNodes:
    """Means over some of the nodes, computed from blocks of consecutive nodes."""

    def __init__(self, problem: Problem, chosen: np.ndarray) -> None:
        edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(int)))
        self._blocks = [problem.block(int(a), int(b)).on_device() for a, b in edges.reshape(-1, 2)]
        self._shares = np.array([block.nodes for block in self._blocks]) / chosen.sum()
        self.dim, self.L, self.mu_nodes = problem.dim, problem.L, np.asarray(problem.mu_nodes)[chosen]
        self._problem = problem

    def on_device(self) -> "SomeNodes":
        """Return self; the blocks are already on the device."""
        return self

    def _mean(self, values: Any) -> Any:
        return sum(share * value for share, value in zip(self._shares, values, strict=True))

    def mean_gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the mean of the gradients at one common x."""
        mean: np.ndarray = self._mean(block.mean_gradient(x) for block in self._blocks)
        return mean

    def mean_hessian(self, x: np.ndarray) -> np.ndarray:
        """Return the mean of the Hessians at one common x."""
        mean: np.ndarray = self._mean(block.mean_hessian(x) for block in self._blocks)
        return mean

    def mean_hessian_product(self, x: np.ndarray) -> HessianProduct:
        """Return v -> H v for the mean H of the Hessians at x, and the diagonal of H if it is cheap."""
        products, diagonals = zip(*(block.mean_hessian_product(x) for block in self._blocks), strict=True)
        diagonal = None if any(d is None for d in diagonals) else self._mean(diagonals)
        return lambda v: self._mean(product(v) for product in products), diagonal

    def holds_hessian(self) -> bool:
        """Return whether the mean Hessian is small enough to hold in memory."""
        return self._problem.holds_hessian()

    def rounding(self, rng: np.random.Generator) -> np.ndarray | float:
        """Return a random error of the mean gradient due to rounding of stored sums, in ulps."""
        return self._problem.rounding(rng)
