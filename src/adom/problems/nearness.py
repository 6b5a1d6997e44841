"""How far a point is from the minimiser of a sum of losses: bounds from gradients and Hessians at that point.

Let g be the gradient of f at y, H its Hessian there, and d = x* - y. With u^2 = g' H^-1 g and m the least eigenvalue of
H, neither mu nor L of f is needed, nor a penalty:

- if the Hessian is at least H everywhere within r of y, the slope along d grows from at least -|g'd| by at least d'Hd,
  so |d| <= u / sqrt(m) if that is at most r;
- if within r it changes by at most a factor 1 + e, then d = -(H + C)^-1 g for a C that is at most e H, and so
  |d| <= |H^-1 g| + e u / sqrt(m) if that is at most r. It does not lose the root of the condition number.
"""

from collections.abc import Sequence
from math import inf, log1p, sqrt
from typing import Any

import numpy as np

from .losses import Loss
from .minimiser import ULP
from .samples import hessian_sum

Array = np.ndarray
AT_ONCE = 64
"""Samples that are summed in double precision."""


def within(g: Array, noise: float, bend: float, values: Array, vectors: Array) -> float:
    """Return a bound on |x* - y| from the gradient at y, lower bounds on the Hessian's eigenvalues, and its vectors.

    Parameters
    ----------
    g, noise : array, float
        The gradient at y, and how far rounding may have moved it.
    bend : float
        Along any direction k, the Hessian changes by at most a factor exp(bend |k|); 0 if the values hold all the way.
    values, vectors : array
        The vectors may be unknown, an empty array.

    Examples
    --------
    >>> within(np.array([0.3, 0.4]), 0.0, 0.0, np.array([1.0, 1.0]), np.eye(2))  # a quadratic: exact
    0.5
    >>> within(np.array([0.3, 0.4]), 0.0, 2.0, np.array([1.0, 1.0]), np.eye(2))  # far away, as far as is known
    inf
    """
    least = float(values.min())
    if not 0 < least < np.inf:
        return np.inf
    along = np.abs(vectors.T @ g) if vectors.size else np.array([np.linalg.norm(g)])
    step = float(np.linalg.norm(along / np.sqrt(values)) + noise / sqrt(least))
    if not np.isfinite(step):
        return np.inf
    if bend == 0:
        return step / sqrt(least)
    bent = bend * step / sqrt(least)
    return -log1p(-bent) / bend if bent < 1 else inf


def least_eigenvalues(H: Array) -> tuple[Array, Array]:
    """Return lower bounds on the eigenvalues of a symmetric matrix, whatever rounding did, and its eigenvectors."""
    values, vectors = np.linalg.eigh(H)
    return values - 32 * ULP * len(H) * np.abs(values).max(), vectors


def least_hessian(loss: Loss, A: Any, t: Array, y: Array, reach: Array, vectors: int = 1) -> Array:
    """Return the sum of the losses' Hessians at margins t.

    If they change by more than a factor near t, because the loss has kinks, return a lower bound on them wherever the
    margin of each sample moves by its `reach`. Curvatures have one peak in t, so they are least at an end.
    """
    if loss.twist < inf:
        return hessian_sum(A, loss.bends(t, y), vectors)
    least = np.minimum(loss.curvature(t - reach, y), loss.curvature(t + reach, y))
    return hessian_sum(A, lambda along: least * along, 1)


def exact_sum(A: Any, slopes: Array) -> tuple[Array, Array]:
    """Return the sum over samples of features times slopes, and the square of its rounding, for every entry.

    Few samples are summed at a time, and these sums in longer numbers, so errors of rounding average out over many
    samples instead of growing with their number.

    Examples
    --------
    >>> total, noise = exact_sum(np.array([[1.0], [2.0]]), np.array([[0.5], [-0.25]]))
    >>> total.tolist(), noise.tolist() < [1e-25]
    ([0.0], True)
    """
    total = np.zeros((A.shape[1], slopes.shape[1]), dtype=np.longdouble)
    for start in range(0, len(slopes), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        total += np.asarray(A[some].T @ slopes[some])
    return np.asarray(total.T.ravel(), dtype=float), AT_ONCE * ULP**2 * squares_sum(A, slopes)


def squares_sum(A: Any, slopes: Array) -> Array:
    """Return the sum over samples of squared features times squared slopes."""
    found: Array = np.asarray(_squares(A).T @ slopes**2).T.ravel()
    return found


def slope_noise(loss: Loss, A: Any, t: Array, y: Array, x: Array) -> Array:
    """Return the rounding of the losses' slopes, in their shape, for margins t = A x."""
    products = np.sqrt(np.asarray(_squares(A) @ x**2))
    curvature = loss.curvature(t, y)
    found: Array = 2 * ULP * (np.abs(loss.slope(t, y)) + curvature * (1 + sqrt(len(x)) * products))
    return found


def terms(loss: Loss, t: Array, y: Array, lengths: Array, size: float) -> float:
    """Return the size of all terms of the sum of the losses' gradients at an x of this size.

    `lengths` are those of the samples.
    """
    slopes: Any = 2.0 if loss.coupled else np.abs(loss.slope(t, y))
    curvature: Any = loss.steepest if loss.steepest < inf else loss.curvature(t, y)
    return float(np.sum(lengths * (slopes + curvature * lengths * size)))


def noise_of(terms: float, samples: int, dim: int) -> float:
    """Return how far rounding may move a gradient with terms of this size, if errors add up as random ones do."""
    return 2 * (sqrt(samples) + sqrt(dim) + 4) * ULP * terms


def lengths_of(A: Any) -> Array:
    """Return the lengths of the rows of a dense or sparse matrix."""
    lengths: Array = np.sqrt(np.asarray(_squares(A).sum(axis=1)).ravel())
    return lengths


def _squares(A: Any) -> Any:
    return A.multiply(A) if hasattr(A, "multiply") else A * A


ALIASED = 1e-11
"""Smallest eigenvalue of a Hessian scaled to a diagonal of 1, above which its columns count as independent."""
NAMED = 0.1
"""Share of the largest entry from which on a column is named as a part of a direction."""


def flat_direction(hessian: np.ndarray) -> np.ndarray | None:
    """Return a direction in which a function is flat, None if there is none; features may be of any scale."""
    scale = np.sqrt(np.abs(np.diag(hessian)))
    if not np.isfinite(scale).all():
        return None
    if (scale == 0).any():
        return np.asarray(scale == 0, dtype=float)
    values, vectors = np.linalg.eigh(hessian / np.outer(scale, scale))
    return None if values[0] > ALIASED else np.asarray(vectors[:, 0] / scale)


def named(direction: Array, names: Sequence[str]) -> list[str]:
    """Return the names of the columns that make up a direction.

    Examples
    --------
    >>> named(np.array([1.0, 0.01, -1.0]), ["age", "dose", "intercept"])
    ['age', 'intercept']
    """
    largest = np.abs(direction).max()
    return [name for name, part in zip(names, direction, strict=False) if abs(part) >= NAMED * largest]
