"""Functions f_i of labelled samples, in NumPy: logistic regression with two or more classes, and least squares.

`adom.problems` has the same functions for many nodes at once.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np

from ..data.node_shards import NodeShard
from ..data.preparing import Agreed
from ..errors import InputError, nearest
from ..problems.checks import is_sparse
from ..problems.curvature import dense, largest_curvature, scaled_rows
from .functions import EPS, Function

Array = np.ndarray
HELD = 2048
"""The largest matrix to invert, by coordinates or by samples; beyond it, conjugate gradients."""
CG_ACCURACY, CG_STEPS = 0.03, 500
"""Relative residual, and the most steps, of conjugate gradients."""


class SampleFunction(Function):
    """weight * (mean over samples of loss(a_j'x) + l2 |x|^2 / 2)."""

    steepest: float
    twist: float  # bound on the loss's third derivative over its second

    def __init__(self, features: Any, targets: Array, l2: float, weight: float = 1.0, vectors: int = 1) -> None:
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
        self.samples, self.dim = self._a.shape[0], vectors * self._a.shape[1]
        top = float(largest_curvature(self._a, np.array([self.samples]))[0])
        self.mu = self._weight * self._l2
        self.L = self._weight * (self._l2 + self.steepest * top)
        squares: Any = self._a.multiply(self._a) if hasattr(self._a, "multiply") else self._a**2
        self._lengths = np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
        self.reach = float(self._lengths.max())
        self.bend = self.twist * self.reach
        self.data = crc32(repr((self._a.shape, l2, weight)).encode(), crc32(values.tobytes(), crc32(self._b.tobytes())))

    def gradient(self, x: Array) -> Array:
        """Return the gradient."""
        sums = self._a.T @ self._slopes(self._a @ x)
        return np.asarray(self._weight * (sums / self.samples + self._l2 * x))

    def noise(self, x: Array) -> float:
        """Return how far rounding may move the gradient, if errors add up as random ones do."""
        slopes, margins = self._slopes(self._a @ x), self._lengths * np.linalg.norm(x)
        return self._noise(np.abs(slopes), margins, x)

    def _noise(self, slopes: Array, margins: Array, x: Array) -> float:
        grown = 2 * (np.sqrt(self.samples) + np.sqrt(self.dim) + 4) * EPS
        off = np.mean(self._lengths * (slopes + self.steepest * margins)) + self._l2 * np.linalg.norm(x)
        return float(grown * self._weight * off)

    def columns(self, x: Array, which: Array) -> Array:
        """Return some columns of the Hessian, as products with unit vectors."""
        product, units = self._product(x), np.eye(self.dim)[:, which]
        return np.stack([product(unit) for unit in units.T], axis=1)

    def hessian(self, x: Array) -> Array:
        """Return the Hessian."""
        gram = dense(self._a.T @ scaled_rows(self._a, self._curvatures(self._a @ x)))
        return np.asarray(self._weight * (gram / self.samples + self._l2 * np.eye(self.dim)))

    def inverse(self, x: Array) -> Callable[[Array], Array]:
        """Return e -> H^-1 e, from the smaller of A'A and A A', or by conjugate gradients if both are large."""
        if self.dim <= min(self.samples, HELD):
            return super().inverse(x)
        if self.samples > HELD:
            return conjugate_gradients(self._product(x))
        s = scaled_rows(self._a, np.sqrt(self._curvatures(self._a @ x) / self.samples))
        inverse = np.linalg.inv(dense(s @ s.T) + self._l2 * np.eye(self.samples))
        return lambda e: np.asarray((e - s.T @ (inverse @ (s @ e))) / (self._weight * self._l2))

    def _product(self, x: Array) -> Callable[[Array], Array]:
        """Return v -> H v for the Hessian H at x."""
        bends = self._curvatures(self._a @ x)
        return lambda v: self._weight * (self._a.T @ (bends * (self._a @ v)) / self.samples + self._l2 * v)

    @abstractmethod
    def _slopes(self, margins: Array) -> Array:
        """Return the loss's derivative for every sample."""

    @abstractmethod
    def _curvatures(self, margins: Array) -> Array:
        """Return the loss's second derivative for every sample."""


class Logistic(SampleFunction):
    """log(1 + exp(-b a'x)), labels b of -1 and 1."""

    steepest, twist = 0.25, 1.0

    def _sigmoid(self, margins: Array) -> Array:
        with np.errstate(over="ignore"):  # 1 / inf = 0 is right
            return np.asarray(1 / (1 + np.exp(self._b * margins)))

    def _slopes(self, margins: Array) -> Array:
        return np.asarray(-self._b * self._sigmoid(margins))

    def _curvatures(self, margins: Array) -> Array:
        s = self._sigmoid(margins)
        return np.asarray(s * (1 - s))


class LeastSquares(SampleFunction):
    """(a'x - b)^2 / 2."""

    steepest, twist = 1.0, 0.0

    def __init__(self, features: Any, targets: Array, l2: float, weight: float = 1.0, vectors: int = 1) -> None:
        super().__init__(features, targets, l2, weight, vectors)
        self.unit = float(self._b.std()) or 1.0

    def _slopes(self, margins: Array) -> Array:
        return np.asarray(margins - self._b)

    def _curvatures(self, margins: Array) -> Array:
        return np.ones_like(margins)


class Softmax(SampleFunction):
    """log sum_k exp(a'x_k) - a'x_b, labels b from 0 on; x holds the x_k one after the other."""

    steepest, twist = 0.5, 2.0**0.5  # two scores differ by at most that times their vector's length

    def _probabilities(self, x: Array) -> Array:
        margins = self._a @ x.reshape(-1, self._a.shape[1]).T
        powers = np.exp(margins - margins.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def gradient(self, x: Array) -> Array:
        """Return the gradient."""
        slopes = self._probabilities(x)
        slopes[np.arange(self.samples), self._b.astype(int)] -= 1
        sums = (self._a.T @ slopes).T
        sums = sums - sums.mean(axis=0)  # the sum is 0 but for rounding, which only l2 would keep small
        return np.asarray(self._weight * (sums.ravel() / self.samples + self._l2 * x))

    def noise(self, x: Array) -> float:
        """Return how far rounding may move the gradient."""
        return self._noise(np.full(self.samples, 2.0), self._lengths * np.linalg.norm(x), x)

    def hessian(self, x: Array) -> Array:
        """Return the Hessian, block by block."""
        p, width = self._probabilities(x), self._a.shape[1]
        hessian = self._l2 * np.eye(self.dim)
        for k, j in np.ndindex(p.shape[1], p.shape[1]):
            bends = p[:, k] * ((k == j) - p[:, j]) / self.samples
            place = np.ix_(k * width + np.arange(width), j * width + np.arange(width))
            hessian[place] += dense(self._a.T @ scaled_rows(self._a, bends))
        return np.asarray(self._weight * hessian)

    def inverse(self, x: Array) -> Callable[[Array], Array]:
        """Return e -> H^-1 e."""
        return Function.inverse(self, x) if self.dim <= HELD else conjugate_gradients(self._product(x))

    def _product(self, x: Array) -> Callable[[Array], Array]:
        p, width = self._probabilities(x), self._a.shape[1]

        def product(v: Array) -> Array:
            along = p * (self._a @ v.reshape(-1, width).T)
            sums = self._a.T @ (along - p * along.sum(axis=1, keepdims=True))
            return np.asarray(self._weight * (sums.T.ravel() / self.samples + self._l2 * v))

        return product

    def _slopes(self, margins: Array) -> Array:
        raise NotImplementedError  # classes depend on each other: see `gradient`

    _curvatures = _slopes


def conjugate_gradients(product: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return e -> d with H d = e approximately, by conjugate gradients."""
    from scipy.sparse.linalg import LinearOperator, cg

    def solve(e: Array) -> Array:
        H = LinearOperator((e.size, e.size), matvec=product, dtype=float)
        return np.asarray(cg(H, e, rtol=CG_ACCURACY, maxiter=CG_STEPS)[0])

    return solve


KINDS: dict[str, type[SampleFunction]] = {"logistic": Logistic, "ridge": LeastSquares}


def from_samples(kind: str, features: Any, labels: Array, l2: float, count: str, classes: Any = None) -> Function:
    """Return the function of one agent's samples.

    Parameters
    ----------
    kind : str
        "logistic" or "ridge".
    count : str
        "nodes": every agent counts alike; "samples": every sample does.
    classes : (smaller, larger), optional
        The two labels; -1 and 1 by default.
    """
    if kind not in KINDS:
        raise InputError(f"unknown problem {kind!r}; {nearest(kind, KINDS)}")
    labels = np.asarray(labels, dtype=float)
    if kind == "logistic":
        smaller, larger = (-1.0, 1.0) if classes is None else (float(value) for value in classes)
        odd = (labels != smaller) & (labels != larger)
        if odd.any():
            raise InputError(
                f"labels must be {smaller:g} or {larger:g}, got {labels[odd][0]:g}; name both, as classes = [0, 1]"
            )
        labels = np.where(labels == larger, 1.0, -1.0)
    return KINDS[kind](features, labels, l2, float(len(labels)) if count == "samples" else 1.0)


def from_prepared(agreed: Agreed, shard: NodeShard) -> Function:
    """Return the function of a shard that was prepared together with others: the f_i of `Agreed.problem`."""
    table, labels = agreed.table(shard), agreed.labels(shard)
    weight = len(agreed.counts) * len(labels) / agreed.samples if agreed.count == "samples" else 1.0
    if agreed.kind == "softmax":
        return Softmax(table, labels, agreed.l2 / weight, weight, agreed.vectors)
    labels = 2.0 * labels - 1 if agreed.kind == "logistic" else labels
    return KINDS[agreed.kind](table, labels, agreed.l2 / weight, weight)
