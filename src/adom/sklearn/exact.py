"""The minimiser that a simulation may know, and does not compute with: what errors are measured against.

`Problem.solution` compiles one program for all of Newton's method, which for small data takes longer than a fit. Here
the steps are taken one by one, by two small programs.
"""

from typing import Any

import jax
import numpy as np
import scipy.linalg

from ..problems.base import Problem
from ..problems.moved import Moved
from ..problems.quadratic import Quadratic

Array = Any
DENSE = 256
"""Beyond so many coordinates Newton's systems are solved by conjugate gradients."""
STEPS = 60
SMALLEST = 2.0**-30
ROUNDING = 4 * float(np.finfo(np.float64).eps)


def gradients(problem: Problem, x: np.ndarray) -> np.ndarray:
    """Return the gradients of the f_i at one common x, shape (nodes, dim)."""
    with jax.enable_x64(True):
        return np.asarray(_gradients(problem, np.broadcast_to(x, (problem.nodes, problem.dim))))


def minimiser(problem: Problem, start: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Return the x at which the mean of the gradients of the f_i is `slope`, to rounding.

    Examples
    --------
    >>> from adom.problems.squares import LeastSquares
    >>> problem = LeastSquares([([[1.0]], [1.0]), ([[3.0]], [0.0])], l2=1.0)  # f' = 2x - 1 and 10x
    >>> minimiser(problem, np.zeros(1), np.array([1.0])).round(12).tolist()
    [0.25]
    """
    if isinstance(problem, Quadratic) and not slope.any():
        return problem.solution()
    if problem.dim > DENSE:
        rows = np.broadcast_to(slope, (problem.nodes, problem.dim))
        return np.asarray(start + Moved(problem, start, rows).solution())
    x, residual = start, gradients(problem, start).mean(axis=0) - slope
    for _ in range(STEPS):
        with jax.enable_x64(True):
            hessian = np.asarray(_mean_hessian(problem, x))
        direction = scipy.linalg.cho_solve(scipy.linalg.cho_factor(hessian), residual)
        size, length = 1.0, float(np.linalg.norm(direction))
        while True:
            trial = x - size * direction
            left = gradients(problem, trial).mean(axis=0) - slope
            if np.linalg.norm(left) <= (1 - size / 4) * np.linalg.norm(residual):
                break
            size /= 2
            # Where not even a short step helps, or a full one is rounding, there is nothing more to gain.
            if size < SMALLEST or length <= 1e-8 * float(np.linalg.norm(x)):
                return x
        x, residual = trial, left
        if length <= ROUNDING * float(np.linalg.norm(x)):
            break
    return x


@jax.jit
def _gradients(problem: Problem, rows: Array) -> Array:
    return problem.gradient_rows(rows)


@jax.jit
def _mean_hessian(problem: Problem, x: Array) -> Array:
    return problem.mean_hessian(x)
