"""Functions f_i of labelled samples, in NumPy, for every loss.

`adom.problems` has the same functions for many nodes at once.
"""

from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np

from ..data.node_shards import NodeShard
from ..data.preparing import Agreed
from ..errors import InputError, nearest
from ..problems.checks import is_sparse
from ..problems.losses import LOSSES, Loss, models
from ..problems.samples import dense, largest_curvature, scaled_rows
from .functions import EPS, Function, Spend, unpaid

Array = np.ndarray
HELD = 2048
"""The largest matrix to invert, by coordinates or by samples; beyond it, conjugate gradients."""
CG_ACCURACY, CG_STEPS = 0.03, 500
"""Relative residual, and the most steps, of conjugate gradients."""


class SampleFunction(Function):
    """weight * (mean over samples of loss(a_j'x, b_j) + l2 |x|^2 / 2).

    With a vector for each class, x holds the vectors one after the other.
    """

    def __init__(
        self, loss: Loss, features: Any, targets: Array, l2: float, weight: float = 1.0, vectors: int = 1
    ) -> None:
        if not 0 < l2 < np.inf:
            raise InputError(f"l2 must be positive and finite, got {l2!r}; e.g. l2 = 0.01")
        self._a: Any = features if is_sparse(features) else np.asarray(features, dtype=float)
        self._b, self._l2, self._weight = np.asarray(targets, dtype=float), float(l2), float(weight)
        if self._a.ndim != 2 or self._b.shape != self._a.shape[:1] or not self._b.size:
            raise InputError(
                f"features must be (samples, dim) and labels (samples,), got {self._a.shape} and {self._b.shape}; "
                "check that they describe the same samples"
            )
        values = self._a.data if is_sparse(self._a) else self._a
        if not (np.isfinite(values).all() and np.isfinite(self._b).all()):
            raise InputError("features and labels must be finite numbers; drop the samples that are not")
        if flaw := loss.flaw(self._b):
            raise InputError(flaw)
        self.loss, self._vectors = loss, vectors
        self.samples, self.dim = self._a.shape[0], vectors * self._a.shape[1]
        top = float(largest_curvature(self._a, np.array([self.samples]))[0])
        self.mu = self._weight * self._l2
        self.L = self._weight * (self._l2 + loss.steepest * top)
        squares: Any = self._a.multiply(self._a) if hasattr(self._a, "multiply") else self._a**2
        self._lengths = np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
        self.reach = float(self._lengths.max())
        self.bend = loss.twist * self.reach
        self.unit = 1.0 if loss.classes else float(self._b.std()) or 1.0
        self.data = crc32(repr((self._a.shape, l2, weight)).encode(), crc32(values.tobytes(), crc32(self._b.tobytes())))

    def _margins(self, x: Array) -> Array:
        return np.asarray(self._a @ (x.reshape(self._vectors, -1).T if self.loss.coupled else x))

    def gradient(self, x: Array) -> Array:
        """Return the gradient."""
        sums = (self._a.T @ self.loss.slope(self._margins(x), self._b)).T
        if self.loss.coupled:
            sums = (sums - sums.mean(axis=0)).ravel()  # the sum is 0 but for rounding, which only l2 would keep small
        return np.asarray(self._weight * (sums / self.samples + self._l2 * x))

    def noise(self, x: Array) -> float:
        """Return how far rounding may move the gradient, if errors add up as random ones do."""
        slopes: Any = 2.0 if self.loss.coupled else np.abs(self.loss.slope(self._margins(x), self._b))
        margins = self._lengths * np.linalg.norm(x)
        grown = 2 * (np.sqrt(self.samples) + np.sqrt(self.dim) + 4) * EPS
        off = np.mean(self._lengths * (slopes + self.loss.steepest * margins)) + self._l2 * np.linalg.norm(x)
        return float(grown * self._weight * off)

    def columns(self, x: Array, which: Array) -> Array:
        """Return some columns of the Hessian, as products with unit vectors."""
        product, columns = self._product(x), np.zeros((self.dim, len(which)))
        for place, each in enumerate(which):
            columns[:, place] = product(np.eye(1, self.dim, each)[0])
        return columns

    def hessian(self, x: Array) -> Array:
        """Return the Hessian, block by block if there is a vector for each class."""
        width, bends = self._a.shape[1], self.loss.bends(self._margins(x), self._b)
        hessian = self._l2 * np.eye(self.dim)
        for k, unit in enumerate(np.eye(self._vectors)):
            bend = bends(unit).reshape(self.samples, -1)
            for j in range(self._vectors):
                place = np.ix_(k * width + np.arange(width), j * width + np.arange(width))
                hessian[place] += dense(self._a.T @ scaled_rows(self._a, bend[:, j])) / self.samples
        return np.asarray(self._weight * hessian)

    def inverse(self, x: Array, spend: Spend = unpaid) -> Callable[[Array], Array]:
        """Return e -> H^-1 e, from the smaller of A'A and A A', or by conjugate gradients if both are large."""
        if self.dim <= (HELD if self.loss.coupled else min(self.samples, HELD)):
            return super().inverse(x, spend)
        if self.loss.coupled or self.samples > HELD:
            return conjugate_gradients(self._product(x), spend)
        spend(self.samples)
        s = scaled_rows(self._a, np.sqrt(self.loss.curvature(self._margins(x), self._b) / self.samples))
        inverse = np.linalg.inv(dense(s @ s.T) + self._l2 * np.eye(self.samples))
        return lambda e: np.asarray((e - s.T @ (inverse @ (s @ e))) / (self._weight * self._l2))

    def _product(self, x: Array) -> Callable[[Array], Array]:
        """Return v -> H v for the Hessian H at x."""
        bends = self.loss.bends(self._margins(x), self._b)

        def product(v: Array) -> Array:
            sums = self._a.T @ bends(self._margins(v))
            return np.asarray(self._weight * (sums.T.ravel() / self.samples + self._l2 * v))

        return product


def conjugate_gradients(product: Callable[[Array], Array], spend: Spend) -> Callable[[Array], Array]:
    """Return e -> d with H d = e approximately, by conjugate gradients, each product of which counts as a gradient."""
    from scipy.sparse.linalg import LinearOperator, cg

    def counted(v: Array) -> Array:
        spend(1)
        return product(v)

    def solve(e: Array) -> Array:
        H = LinearOperator((e.size, e.size), matvec=counted, dtype=float)
        return np.asarray(cg(H, e, rtol=CG_ACCURACY, maxiter=CG_STEPS)[0])

    return solve


def from_samples(kind: str, features: Any, labels: Array, l2: float, count: str, classes: Any = None) -> Function:
    """Return the function of one agent's samples.

    Parameters
    ----------
    kind : str
        Name of a loss for numbers or for two classes.
    count : str
        "nodes": every agent counts alike; "samples": every sample does.
    classes : (smaller, larger), optional
        The two labels; -1 and 1 by default.
    """
    if kind not in models():
        raise InputError(f"unknown problem {kind!r}; {nearest(kind, models())}")
    loss, labels = LOSSES[kind], np.asarray(labels, dtype=float)
    if loss.classes:
        smaller, larger = (-1.0, 1.0) if classes is None else (float(value) for value in classes)
        odd = (labels != smaller) & (labels != larger)
        if odd.any():
            raise InputError(
                f"labels must be {smaller:g} or {larger:g}, got {labels[odd][0]:g}; name both, as classes = [0, 1]"
            )
        labels = loss.coded(labels == larger)
    return SampleFunction(loss, features, labels, l2, float(len(labels)) if count == "samples" else 1.0)


def from_prepared(agreed: Agreed, shard: NodeShard) -> Function:
    """Return the function of a shard that was prepared together with others: the f_i of `Agreed.problem`."""
    table, targets = agreed.table(shard), agreed.targets(shard)
    weight = len(agreed.counts) * len(targets) / agreed.samples if agreed.count == "samples" else 1.0
    return SampleFunction(agreed.loss, table, targets, agreed.l2 / weight, weight, agreed.vectors)
