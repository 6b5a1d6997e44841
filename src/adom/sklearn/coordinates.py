"""Coordinates in which the nodes compute: centred features, and a column for the intercept."""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..problems.curvature import largest_curvature
from .partition import Partition

HELD = 10.0
"""The least factor by which the curvature along an intercept exceeds that of the term that holds it."""
RAREST = 1e-4
"""The smallest share of a class that the scale of the intercept is adapted to."""


class Coordinates(NamedTuple):
    """Features less their mean, and a constant column for the intercept; each may be absent.

    With A the features, m their mean and s the column, decisions are (A - m) w + s v = A w + (s v - m'w).
    """

    mean: np.ndarray | None = None
    column: float = 0.0  # 0: no column

    def features(self, X: Any) -> Any:
        """Return the features that the nodes compute with."""
        A = X if self.mean is None else X - self.mean
        if not self.column:
            return A
        constant = np.full((A.shape[0], 1), self.column)
        if sp.issparse(A):
            return sp.csr_array(sp.hstack([A, sp.csr_array(constant)], format="csr"))
        return np.hstack([A, constant])

    def coefficients(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients of shape (..., d) and intercepts of shape (...), for x of shape (..., d or d + 1)."""
        w = x[..., :-1] if self.column else x
        intercept = self.column * x[..., -1] if self.column else np.zeros(x.shape[:-1])
        return w, intercept if self.mean is None else intercept - w @ self.mean

    def point(self, w: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """Return the x of these coefficients and intercepts."""
        if not self.column:
            return w
        offset = intercept if self.mean is None else intercept + w @ self.mean
        return np.concatenate([w, np.asarray(offset)[..., None] / self.column], axis=-1)


def with_intercept(X: Any, parts: Partition, weights: np.ndarray, l2: float, curvature: float) -> Coordinates:
    """Return the coordinates for a fit with an intercept that is not penalised.

    Dense features are centred: the intercept then hardly depends on the coefficients, and L is smaller. The column is
    as large as it may be without making L much larger, and at least so large that the curvature along the intercept
    exceeds the term r / 2 (v - v_k)^2 that holds it (see `adom.sklearn.proximal_loop`) by far.

    `weights` are those of the samples in the mean of the f_i, with sum 1; `l2` is r, and `curvature` about that of the
    objective along the intercept.
    """
    mean = None if sp.issparse(X) else weights @ X
    A = X if mean is None else X - mean
    order = np.concatenate(parts.rows)
    counts = np.array([rows.size for rows in parts.rows])
    spread = float(largest_curvature(A[order], counts, len(counts) * weights[order]).max())
    return Coordinates(mean, math.sqrt(max(spread, HELD * l2 / max(curvature, RAREST))))
