"""Linear models on samples that stay on disk; every gradient reads them once, block by block."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from .base import Array, Problem
from .losses import RIDGE, Loss
from .samples import hessian_sum, prepared, ridge_of, tie

Block = tuple[Any, np.ndarray]
Source = Callable[[], Iterator[Block]]
"""Yields a node's samples in blocks of (dense or sparse) features and targets; a block is valid until the next one."""


class Streamed(Problem):
    r"""f_i(x) = w_i sum_j loss(((a_ij - m) / s)'x + c v, b_ij) + r / 2 |x|^2 + r / 2 v^2, for samples on disk.

    x is one vector, or several concatenated, each followed by its intercept v if c is not 0. If the samples fit into
    memory, `LogisticRegression`, `SoftmaxRegression` and `LeastSquares` are faster.

    Parameters
    ----------
    loss : Loss
    sources : sequence of Source
        One for each node.
    weights : array of shape (nodes,)
        The w_i.
    curvature : array of shape (nodes,)
        The L_i - r.
    l2, column : float
        r and c.
    means, scales : array of shape (features,)
        m and s.
    vectors : int
        The number of vectors in x: one, or one per class.
    loose, free : bool
        As in `LinearModel`.
    """

    array_fields = ("weights", "l2")
    static_fields = ("work", "loose", "free")
    loose: bool
    free: bool
    weights: np.ndarray
    l2: float
    work: "HostWork"

    def __init__(
        self,
        loss: Loss,
        sources: Sequence[Source],
        weights: np.ndarray,
        curvature: np.ndarray,
        *,
        l2: float,
        means: np.ndarray,
        scales: np.ndarray,
        column: float = 0.0,
        vectors: int = 1,
        loose: bool = False,
        free: bool = False,
    ) -> None:
        self.loose, self.free = loose, free
        self.nodes, self.dim = len(sources), vectors * (len(means) + bool(column))
        self.weights, self.l2 = weights, l2
        self.work = HostWork(loss, sources, means, scales, column, vectors)
        self._set_constants(np.full(self.nodes, 0.0 if free else l2), l2 + curvature, bounded=not loose)

    @property
    def constants_claimed(self) -> bool:
        """False: mu and L are computed."""
        return False

    def trouble(self) -> BaseException | None:
        """Return the error met while reading, if any."""
        return self.work.error

    def value_rows(self, x: Array) -> Array:
        """Return f_i(x_i)."""
        losses = _on_host(self.work.values, (x.shape[0],), x)
        return self.weights * losses + (self._held(x) * x).sum(axis=-1) / 2

    def gradient_rows(self, x: Array) -> Array:
        """Return grad f_i(x_i)."""
        return self.weights[:, None] * _on_host(self.work.gradients, x.shape, x) + self._held(x)

    def hessian_product_rows(self, x: Array, v: Array) -> Array:
        """Return the Hessian of f_i at x_i times v_i."""
        return self.weights[:, None] * _on_host(self.work.products, x.shape, x, v) + self._held(v)

    def hessian_rows(self, x: Array) -> Array:
        """Return the Hessians, for which the samples are read once."""
        sums = _on_host(self.work.hessians, (*x.shape, self.dim), x)
        return self.weights[:, None, None] * sums + self._held(np.eye(self.dim))

    def _held(self, x: Array) -> Array:
        """Return the slope of the penalty at x."""
        vectors = self.work.vectors
        ridge = ridge_of(self.l2, self.dim, vectors) if self.free else self.l2
        return ridge * x + (tie(x, vectors) if self.loose and self.work.loss.coupled else 0.0)


def _on_host(function: Callable[..., np.ndarray], shape: tuple[int, ...], *rows: Array) -> Array:
    """Call a function of float64 NumPy arrays, directly or from a compiled program."""
    if all(isinstance(each, np.ndarray) for each in rows):
        return function(*rows)
    dtype = rows[0].dtype
    bits = [jax.lax.bitcast_convert_type(each.astype(np.float64), np.int32) for each in rows]

    def call(*halves: Array) -> np.ndarray:  # as halves, because JAX would truncate 64-bit numbers
        found = function(*(np.asarray(each).view(np.float64)[..., 0] for each in halves))
        return np.ascontiguousarray(found)[..., None].view(np.int32)

    answer = jax.pure_callback(call, jax.ShapeDtypeStruct((*shape, 2), np.int32), *bits, vmap_method="sequential")
    return jax.lax.bitcast_convert_type(answer, np.float64).astype(dtype)


class HostWork:
    """Sums over samples in NumPy; compared by identity, because it is a static part of a compiled program."""

    def __init__(
        self,
        loss: Loss,
        sources: Sequence[Source],
        means: np.ndarray,
        scales: np.ndarray,
        column: float,
        vectors: int,
    ) -> None:
        self.loss, self.sources, self.column, self.vectors = loss, list(sources), column, vectors
        self.means, self.scales = means, scales
        self.error: BaseException | None = None

    def gradients(self, x: np.ndarray) -> np.ndarray:
        """Return each node's sum of the gradients of its samples' losses."""
        return self._each(x, lambda margins, targets, _: self.loss.slope(margins, targets))

    def products(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return each node's sum of the Hessians of its samples' losses at x, times v."""
        return self._each(x, lambda margins, targets, along: self.loss.bends(margins, targets)(along), v)

    def hessians(self, x: np.ndarray) -> np.ndarray:
        """Return each node's sum of the Hessians of its samples' losses."""
        found = np.zeros((*x.shape, x.shape[1]))
        for node, source in enumerate(self.sources):
            for A, targets in self._blocks(source):
                bends = self.loss.bends(self._margins(A, *self._split(x[node])), targets)
                found[node] += hessian_sum(prepared(A, self.means, self.scales, self.column), bends, self.vectors)
        return found

    def values(self, x: np.ndarray) -> np.ndarray:
        """Return each node's sum of losses."""
        found = np.zeros(len(x))
        for node, source in enumerate(self.sources):
            for A, targets in self._blocks(source):
                found[node] += self.loss.value(self._margins(A, *self._split(x[node])), targets).sum()
        return found

    def _blocks(self, source: Source) -> Iterator[Block]:
        try:
            yield from source()
        except BaseException as error:  # a compiled program would raise a different error
            self.error = error
            raise

    def _each(self, x: np.ndarray, slope: Callable[..., np.ndarray], v: np.ndarray | None = None) -> np.ndarray:
        """Return each node's sum over its samples of slopes times features."""
        found = np.zeros(x.shape)
        d = len(self.means)
        for node, source in enumerate(self.sources):
            at = self._split(x[node])
            along = None if v is None else self._split(v[node])
            sums, total = np.zeros((d, self.vectors)), np.zeros(self.vectors)
            for A, targets in self._blocks(source):
                slopes = slope(self._margins(A, *at), targets, None if along is None else self._margins(A, *along))
                slopes = slopes.reshape(len(targets), self.vectors)
                sums += A.T @ slopes
                total += slopes.sum(axis=0)
            parts = (sums - self.means[:, None] * total) / self.scales[:, None]
            rows = np.concatenate([parts, self.column * total[None]]) if self.column else parts
            found[node] = rows.T.ravel()
        return found

    def _split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients for the features as stored on disk, shape (features, vectors), and the offsets."""
        d = len(self.means)
        vectors = x.reshape(self.vectors, -1)
        u = (vectors[:, :d] / self.scales).T
        offset = self.column * vectors[:, d] if self.column else np.zeros(self.vectors)
        return u, offset - self.means @ u

    def _margins(self, A: Any, u: np.ndarray, offset: np.ndarray) -> np.ndarray:
        margins: np.ndarray = A @ u + offset
        return margins if self.loss.coupled else margins[:, 0]


def top_curvature(source: Source, means: np.ndarray, scales: np.ndarray) -> float:
    """Return the largest eigenvalue of the sum of a a' over a node's samples, for a = (features - means) / scales.

    Above `HELD` features it is found iteratively by products and multiplied by `SAFE`.
    """
    d = len(means)
    if d <= HELD:
        gram, total, count = np.zeros((d, d)), np.zeros(d), 0
        for A, labels in source():
            gram += dense_product(A)
            total += np.asarray(A.sum(axis=0)).ravel()
            count += len(labels)
        gram -= np.outer(total, means) + np.outer(means, total) - count * np.outer(means, means)
        return max(float(np.linalg.eigvalsh(gram / np.outer(scales, scales))[-1]), 0.0)
    from scipy.sparse.linalg import LinearOperator, eigsh

    work = HostWork(RIDGE, [source], means, scales, 0.0, 1)
    at = np.zeros((1, d))
    operator = LinearOperator((d, d), matvec=lambda v: work.products(at, v.reshape(1, d))[0], dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(d)
    return SAFE * float(eigsh(operator, k=1, which="LA", return_eigenvectors=False, v0=start, tol=1e-4)[0])


HELD = 4000
"""The most features for which the Gram matrix is held in memory."""
SAFE = 1.001


def dense_product(A: Any) -> np.ndarray:
    """Return A'A as a dense array."""
    product = A.T @ A
    return np.asarray(product.toarray() if hasattr(product, "toarray") else product)
