"""Newton's method on the host: the minimiser of the mean of the f_i, and an estimate of its error.

Unlike `oracles`, which solves one equation per node in a compiled loop, this module solves a single equation with
libraries on the host. Nothing is compiled unless a problem's gradients exist only in JAX. Systems are factorised up to
`DENSE` coordinates; above, preconditioned conjugate gradients solve them. Agents take the parts that have no problem:
`damped_step`, `conjugate_gradients`, and what counts as enough or as rounding.

If mu is tiny, a small gradient says little about the distance to the minimiser. So this distance is estimated by one
more Newton step from each of several points, with the last digits of points and gradients changed at random. Without
rounding, all of these steps would end at the same point.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from .base import HessianProduct, Problem

DENSE = 4096
"""The most coordinates for which a Hessian is held in memory."""
SMALL = 512
"""Up to this many coordinates a factor is inverted, which takes less time than loading SciPy to solve with it."""
STEPS = 100
SHORTEST = 2.0**-30
"""The smallest fraction of a step that is tried; if even that does not reduce the residual, the cause is rounding."""
NEAR_ROUNDING = 1e3
"""A residual below this multiple of its rounding error is accepted as soon as one full step fails."""
ACCURACY = 0.01
"""The residual that the oracle `auto` accepts, relative to the distance that z moved in this round."""
ULP = float(np.finfo(np.float64).eps)
PRODUCTS = 20_000
"""The most Hessian products of conjugate gradients in total."""
TIGHT = 1e-10
"""The final tolerance of conjugate gradients."""
PROBES = 4
NUDGE = 2.0**-36
"""The relative move of a probe: large enough to change all roundings, too small to change the curvature."""
SAFETY = 3.0
"""Factor between the distance of the farthest probe and the error estimate."""

Solve = Callable[[np.ndarray, float], tuple[np.ndarray, float]]


class Minimum(NamedTuple):
    """A minimiser, and an estimate of its distance to the true one."""

    x: np.ndarray
    error: float


def minimum(problem: "Problem", start: np.ndarray | None = None, slope: np.ndarray | None = None) -> Minimum:
    """Return the x at which the mean gradient of the f_i is `slope` (default 0), as accurately as float64 allows.

    Examples
    --------
    >>> from adom.problems.linear_model import LeastSquares
    >>> problem = LeastSquares([([[1.0]], [1.0]), ([[3.0]], [0.0])], l2=1.0)  # f' = 2x - 1 and 10x
    >>> x, error = minimum(problem, slope=np.array([1.0]))
    >>> x.round(12).tolist(), error < 1e-14
    ([0.25], True)
    """
    problem = problem.on_device()
    x = np.zeros(problem.dim) if start is None else np.array(start, dtype=np.float64)
    target = np.zeros(problem.dim) if slope is None else slope

    def gradient(x: np.ndarray) -> np.ndarray:
        return np.asarray(problem.mean_gradient(x) - target)

    systems = _Systems(problem)
    g, solve, near, length = gradient(x), systems.at(x), False, 0.0
    first, stiff = float(np.linalg.norm(g)), float(problem.L) if np.isfinite(problem.L) else 0.0
    for _ in range(STEPS):
        size, at = float(np.linalg.norm(g)), float(np.linalg.norm(x))
        if size == 0 or systems.spent:
            break
        direction, _ = solve(g, max(TIGHT, min(0.1, size / first)))
        length = float(np.linalg.norm(direction))
        # If so short a step, or one from so small a gradient, does not help, the cause is rounding: shorter will not.
        near = length <= 1e-8 * at or size <= ULP * (first + stiff * at)
        better = damped_step(gradient, x, g, direction, 1.0 if near else SHORTEST)
        if better is None:
            break
        (x, g), solve = better, systems.at(better[0])
        if length <= ULP * at:
            break
    error = _distance(problem, gradient, solve, x)
    if not near and g.any():  # stopped far from the minimiser: only mu bounds the distance; without one, a guess
        error = max(error, float(np.linalg.norm(g)) / systems.mu if systems.mu else length)
    return Minimum(x, error)


def far_enough(left: Any, t: Any, before: Any) -> Any:
    """Return whether the fraction t of a Newton step reduced a residual's size enough; of numbers or arrays."""
    return left <= (1 - t / 4) * before


def damped_step(
    residual: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    e: np.ndarray,
    direction: np.ndarray,
    shortest: float = SHORTEST,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Halve the step x - direction until it reduces the residual e; return the point and its residual, None if none.

    Examples
    --------
    >>> damped_step(np.arctan, np.array([2.0]), np.arctan([2.0]), np.array([5.0]))[0]  # -3 and -0.5: twice the length
    array([-0.5])
    """
    before, t = float(np.linalg.norm(e)), 1.0
    while t >= shortest:
        trial = x - t * direction
        e_trial = residual(trial)
        if far_enough(np.linalg.norm(e_trial), t, before):
            return trial, e_trial
        t /= 2
    return None


def conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray],
    b: np.ndarray,
    tolerance: float,
    most: int,
    diagonal: np.ndarray | None = None,
) -> np.ndarray:
    """Solve product(v) = b to a relative residual in at most so many products, preconditioned by the diagonal if given.

    Examples
    --------
    >>> conjugate_gradients(lambda v: np.array([1.0, 4.0]) * v, np.array([1.0, 2.0]), 1e-12, 10).round(9).tolist()
    [1.0, 0.5]
    """
    from scipy.sparse.linalg import LinearOperator, cg

    shape = (b.size, b.size)
    scaled = None if diagonal is None else LinearOperator(shape, matvec=lambda v: v / diagonal, dtype=float)
    solution, _ = cg(LinearOperator(shape, matvec=product, dtype=float), b, rtol=tolerance, maxiter=most, M=scaled)
    return np.asarray(solution)


def _distance(problem: "Problem", gradient: Callable[[np.ndarray], np.ndarray], solve: Solve, x: np.ndarray) -> float:
    """Return an estimate of how far x is from the minimiser."""
    rng = np.random.default_rng(0)
    farthest = ULP * float(np.linalg.norm(x))
    for _ in range(PROBES):
        moved = x + NUDGE * x * rng.choice([-1.0, 1.0], x.size)
        step, slack = solve(gradient(moved) + ULP * problem.rounding(rng), TIGHT)
        farthest = max(farthest, float(np.linalg.norm((moved - x) - step)) + slack)
    return SAFETY * farthest if np.isfinite(farthest) else np.inf


class _Systems:
    """Solvers of Newton's linear systems, and how many Hessian products conjugate gradients may still take."""

    def __init__(self, problem: "Problem") -> None:
        self.problem, self.left = problem, PRODUCTS
        self.mu = float(np.asarray(problem.mu_nodes).mean())  # a lower bound for the mean of the f_i

    @property
    def spent(self) -> bool:
        """Whether no products are left."""
        return self.left <= 0

    def at(self, x: np.ndarray) -> Solve:
        """Return a solver at x: (right-hand side, tolerance) -> (solution, bound of its error)."""
        if self.problem.holds_hessian():
            return self._factorised(self.problem.mean_hessian(x))
        return self._iterative(x)

    def _factorised(self, hessian: np.ndarray) -> Solve:
        if not np.isfinite(hessian).all():
            return lambda v, _: (np.full_like(v, np.nan), np.inf)
        try:
            lower = np.linalg.cholesky(hessian)
        except np.linalg.LinAlgError:  # rounding made eigenvalues smaller than mu
            values, vectors = np.linalg.eigh(hessian)
            values = np.maximum(values, max(self.mu, ULP * abs(values).max()))
            return lambda v, _: (vectors @ ((vectors.T @ v) / values), 0.0)
        if len(lower) <= SMALL:
            inverse = np.linalg.inv(lower)
            return lambda v, _: (inverse.T @ (inverse @ v), 0.0)

        from scipy.linalg import cho_solve

        return lambda v, _: (cho_solve((lower, True), v, check_finite=False), 0.0)

    def _iterative(self, x: np.ndarray) -> Solve:
        product, diagonal = self.problem.mean_hessian_product(x)

        def counted(v: np.ndarray) -> np.ndarray:
            self.left -= 1
            return product(v)

        def solve(v: np.ndarray, tolerance: float) -> tuple[np.ndarray, float]:
            most = min(max(self.left, 100), 10 * x.size + 100)
            p = conjugate_gradients(counted, v, tolerance, most, diagonal)
            return p, float(np.linalg.norm(v - product(p))) / self.mu

        return solve


def minimum_of(problem: "Problem", chosen: np.ndarray) -> Minimum:
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

    def __init__(self, problem: "Problem", chosen: np.ndarray) -> None:
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

    def mean_hessian_product(self, x: np.ndarray) -> "HessianProduct":
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
