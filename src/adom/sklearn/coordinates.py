"""Coordinates in which the nodes compute: centred features, and a column for the intercept."""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..problems.samples import largest_curvature
from .partition import Partition

HELD = 10.0
"""The curvature along the intercept is at least this multiple of r, the curvature of the proximal term."""
RAREST = 1e-4
"""Smallest curvature along the intercept, about the share of the rarest class, that the column is scaled for."""


class Coordinates(NamedTuple):
    """Features, optionally centred, and an optional constant column for the intercept.

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
        """Return the x that belongs to coefficients and intercepts."""
        if not self.column:
            return w
        offset = intercept if self.mean is None else intercept + w @ self.mean
        return np.concatenate([w, np.asarray(offset)[..., None] / self.column], axis=-1)


def with_intercept(X: Any, parts: Partition, weights: np.ndarray, l2: float, curvature: float) -> Coordinates:
    """Return the coordinates for a fit with an intercept that is not penalised.

    Dense features are centred, which makes the intercept almost independent of the coefficients, and L smaller. The
    column is as large as possible without making L much larger. It is at least so large that the curvature along the
    intercept far exceeds that of the proximal term r / 2 (v - v_k)^2 (see `adom.sklearn.proximal_loop`).

    `weights` are the samples' weights in the mean of the f_i and sum to 1, `l2` is r, and `curvature` is roughly the
    objective's along the intercept.
    """
    mean = None if sp.issparse(X) else weights @ X
    A = X if mean is None else X - mean
    order = np.concatenate(parts.rows)
    counts = np.array([rows.size for rows in parts.rows])
    spread = float(largest_curvature(A[order], counts, len(counts) * weights[order]).max())
    return Coordinates(mean, math.sqrt(max(spread, HELD * l2 / max(curvature, RAREST))))
