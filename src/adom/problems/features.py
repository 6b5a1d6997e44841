"""Labelled samples of all nodes, in a dense and a sparse layout with the same interface.

For the logistic loss, rows are stored multiplied by their label, so `margins` are b_ij a_ij'x_i. Only this module knows
the shape of a per-sample array.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import native
from ..errors import InputError
from ..util import arrays
from .limits import check_memory
from .losses import LOGISTIC
from .samples import dense

if TYPE_CHECKING:
    import scipy.sparse as sp

Array = Any
LARGE = 2**24
"""Above this data size, in numbers, memory bandwidth limits a GPU, not the launch of kernels."""
FULL = 0.1
"""Above this share of non-zeros, products of sparse matrices are slower than those of dense ones."""


class DenseFeatures(NamedTuple):
    """Samples as one (nodes, m, dim) array; nodes with fewer than m samples are padded with zero rows."""

    signed: Array
    weights: Array  # (nodes, m): of the samples, 0 for padding
    targets: Array | None = None  # (nodes, m), unless they are elsewhere

    def described(self) -> str:
        """Return the number of samples as text."""
        return f"{_counted(self.weighed()[0])}, dense"

    def weighed(self) -> tuple[np.ndarray, np.ndarray]:
        """Return each node's number of samples with non-zero weight, and the sum of their weights."""
        weights = np.asarray(self.weights)
        return np.count_nonzero(weights, axis=1), weights.sum(axis=1)

    def margins(self, x: Array) -> Array:
        """Return b_ij a_ij'x_i, shape (nodes, m)."""
        return jnp.einsum("nd,nmd->nm", x, self.signed)  # in this order, a batch of x needs no transposition

    def mean(self, per_sample: Array) -> Array:
        """Return the weighted sum of `per_sample` over each node's samples, shape (nodes,)."""
        return (self.weights * per_sample).sum(axis=-1)

    def weighted_mean(self, per_sample: Array) -> Array:
        """Return the weighted sum of per_sample * b_ij a_ij over each node's samples, shape (nodes, dim)."""
        return jnp.einsum("nm,nmd->nd", self.weights * per_sample, self.signed)

    def logistic_gradient(self, x: Array) -> Array:
        """Return the gradient of the weighted sum of log(1 + exp(-margin)), shape (nodes, dim)."""
        if x.dtype == self.signed.dtype and native.usable():
            return native.logistic_dense(self.for_kernel(), x)
        if x.dtype == self.signed.dtype and native.usable("gpu") and self.signed.shape[-1] <= native.GPU_COLUMNS:
            return _gpu_gradient(self.signed, self.weights, x)
        return _pure_gradient(self, x)

    def for_kernel(self) -> tuple[Array, ...]:
        """Return the sample arrays that kernels take."""
        return self.signed, self.weights

    def gram(self, per_sample: Array) -> Array:
        """Return the weighted sum of per_sample * a_ij a_ij' over each node's samples, (nodes, dim, dim)."""
        scaled = self.signed * (self.weights * per_sample)[..., None]
        return jnp.einsum("nmd,nme->nde", scaled, self.signed)

    def samples(self) -> "Samples":
        """Return the samples of all nodes on the host."""
        signed = np.asarray(self.signed, dtype=np.float64)
        weights = np.asarray(self.weights, dtype=np.float64).ravel()
        targets = None if self.targets is None else np.asarray(self.targets).ravel()
        return Samples(signed.reshape(-1, signed.shape[-1]), weights / signed.shape[0], targets)


def _counted(counts: np.ndarray) -> str:
    least, most = int(counts.min()), int(counts.max())
    return f"{int(counts.sum()):,}, {least:,}{f' to {most:,}' if most > least else ''} a node"


@jax.custom_batching.custom_vmap
def _gpu_gradient(signed: Array, weights: Array, x: Array) -> Array:
    """Return the logistic gradient, by a kernel if there is much data or so little that launches dominate."""
    n, m, d = signed.shape
    few = n <= native.GPU_FEW_NODES and d <= native.GPU_FEW_COLUMNS and m * d <= native.GPU_WHOLE
    if few or signed.size >= LARGE:
        return native.logistic_dense((signed, weights), x)
    return _pure_gradient(DenseFeatures(signed, weights), x)


@_gpu_gradient.def_vmap
def _gpu_gradients(axis_size: int, batched: list[bool], signed: Array, weights: Array, x: Array) -> tuple[Array, bool]:
    """Return the gradients for a batch of x, by matrix products with the slopes in between."""
    fits = axis_size >= native.GPU_MANY and x.shape[-1] <= native.GPU_FEW_COLUMNS
    if fits and x.dtype == np.float64 and not any(batched[:2]):
        many = native.logistic_many(signed, weights, jnp.moveaxis(x, 0, 1))  # the kernel expects the batch axis second
        return jnp.moveaxis(many, 1, 0), True
    axes = [0 if varies else None for varies in batched]
    gradient = jax.vmap(_pure_gradient, in_axes=(DenseFeatures(*axes[:2]), axes[2]), axis_size=axis_size)
    return gradient(DenseFeatures(signed, weights), x), True


class SparseFeatures(NamedTuple):
    """The non-zeros of all samples in one list, ordered by sample; `start` and `node_start` are CSR offsets."""

    value: Array  # per non-zero: b_ij a_ij at one feature
    sample: Array  # per non-zero: its sample, numbered over all nodes
    feature: Array  # per non-zero: its feature
    start: Array  # per sample, plus the end: its first non-zero
    node: Array  # per sample: its node
    node_start: Array  # per node, plus the end: its first sample
    weights: Array  # per sample
    shape: Array  # an empty array of shape (nodes, dim, 0), which stores these sizes
    targets: Array | None = None  # per sample, unless they are elsewhere

    def block(self, first: int, end: int) -> "SparseFeatures":
        """Return the samples of nodes first, ..., end - 1."""
        low, high = int(self.node_start[first]), int(self.node_start[end])
        start, stop = int(self.start[low]), int(self.start[high])
        return SparseFeatures(
            arrays.like(np.asarray(self.value[start:stop])),
            self.sample[start:stop] - low,
            self.feature[start:stop],
            self.start[low : high + 1] - start,
            self.node[low:high] - first,
            self.node_start[first : end + 1] - low,
            self.weights[low:high],
            self.shape[first:end],
            None if self.targets is None else self.targets[low:high],
        )

    def described(self) -> str:
        """Return the number of samples as text."""
        return f"{_counted(self.weighed()[0])}, sparse ({self.value.shape[0]:,} numbers)"

    def weighed(self) -> tuple[np.ndarray, np.ndarray]:
        """Return each node's number of samples with non-zero weight, and the sum of their weights."""
        weights, starts = np.asarray(self.weights), np.asarray(self.node_start)[:-1]
        return np.add.reduceat(weights != 0, starts, dtype=np.int64), np.add.reduceat(weights, starts)

    def margins(self, x: Array) -> Array:
        """Return b_ij a_ij'x_i, one per sample."""
        terms = self.value * x[self.node[self.sample], self.feature]
        return jax.ops.segment_sum(terms, self.sample, self.node.shape[0], indices_are_sorted=True)

    def mean(self, per_sample: Array) -> Array:
        """Return the weighted sum of `per_sample` over each node's samples, shape (nodes,)."""
        return jax.ops.segment_sum(self.weights * per_sample, self.node, self.shape.shape[0], indices_are_sorted=True)

    def weighted_mean(self, per_sample: Array) -> Array:
        """Return the weighted sum of per_sample * b_ij a_ij over each node's samples, shape (nodes, dim)."""
        terms = self.value * (self.weights * per_sample)[self.sample]
        out = jnp.zeros(self.shape.shape[:2], dtype=terms.dtype)
        return out.at[self.node[self.sample], self.feature].add(terms)

    def logistic_gradient(self, x: Array) -> Array:
        """Return the gradient of the weighted sum of log(1 + exp(-margin)), shape (nodes, dim)."""
        if native.usable() and x.dtype == self.value.dtype:
            return native.logistic_sparse(self.for_kernel(), x)
        return _pure_gradient(self, x)

    def for_kernel(self) -> tuple[Array, ...]:
        """Return the sample arrays that kernels take."""
        return self.value, self.feature, self.start, self.node_start, self.weights

    def samples(self) -> "Samples":
        """Return the samples of all nodes on the host."""
        import scipy.sparse as sp

        nodes, dim = self.shape.shape[:2]
        value, start = np.asarray(self.value, dtype=np.float64), np.asarray(self.start)
        matrix = sp.csr_array((value, np.asarray(self.feature), start), shape=(start.size - 1, dim))
        targets = None if self.targets is None else np.asarray(self.targets)
        return Samples(matrix, np.asarray(self.weights, dtype=np.float64) / nodes, targets)


class Samples(NamedTuple):
    """The samples of all nodes as one NumPy or SciPy matrix; weights are divided by the number of nodes."""

    matrix: Any  # (samples, dim): b_ij a_ij
    weights: np.ndarray
    targets: np.ndarray | None = None

    def margins(self, x: np.ndarray) -> np.ndarray:
        """Return b_ij a_ij'x for one vector x, or for each column of a matrix x."""
        margins: np.ndarray = self.matrix @ x
        return margins

    def sums(self, per_sample: np.ndarray) -> np.ndarray:
        """Return the weighted sum of per_sample * b_ij a_ij, one column for each column of per_sample."""
        weighted = self.weights * per_sample if per_sample.ndim == 1 else self.weights[:, None] * per_sample
        sums: np.ndarray = self.matrix.T @ weighted
        return sums

    def squares(self, per_sample: np.ndarray) -> np.ndarray:
        """Return the weighted sum of per_sample * a_ij^2, element by element: the diagonal of `gram`."""
        weighted = self.weights * per_sample
        if arrays.is_sparse(self.matrix):
            return np.asarray(self.matrix.power(2).T @ weighted)
        return np.asarray(np.einsum("md,md,m->d", self.matrix, self.matrix, weighted))

    def gram(self, per_sample: np.ndarray) -> np.ndarray:
        """Return the weighted sum of per_sample * a_ij a_ij', (dim, dim)."""
        samples, dim = self.matrix.shape
        weighted = self.weights * per_sample
        if arrays.is_sparse(self.matrix) and self.matrix.nnz < FULL * samples * dim:
            import scipy.sparse as sp

            return np.asarray((self.matrix.T @ (sp.diags_array(weighted) @ self.matrix)).toarray())
        total, some = np.zeros((dim, dim)), max(1, 2**22 // dim)
        for start in range(0, samples, some):
            rows = dense(self.matrix[start : start + some])
            scales = weighted[start : start + some, None]
            if (scales >= 0).all():  # a product of a matrix with its own transpose takes half the time
                half = rows * np.sqrt(scales)
                total += half.T @ half
            else:
                total += rows.T @ (rows * scales)
        return total


def _pure_gradient(features: DenseFeatures | SparseFeatures, x: Array) -> Array:
    """Return the logistic gradient in plain JAX."""
    return features.weighted_mean(LOGISTIC.slope(features.margins(x), 1.0))


def lay_out(
    features: Any,
    counts: np.ndarray,
    weights: np.ndarray,
    signs: np.ndarray | None = None,
    longest: int | None = None,
    targets: np.ndarray | None = None,
) -> DenseFeatures | SparseFeatures:
    """Lay out (samples, dim) features, `counts[i]` consecutive rows for node i, each multiplied by its sign.

    Dense nodes are padded to `longest` rows; by default, to the size of the largest node.
    """
    signs = np.ones(features.shape[0]) if signs is None else signs
    if arrays.is_sparse(features):
        return _sparse_layout(features, signs, counts, weights, targets)
    nodes, m, dim = counts.size, int(counts.max()) if longest is None else longest, features.shape[1]
    check_memory(
        f"{nodes} nodes filled up to {m} samples x {dim} features take",
        8 * nodes * m * dim,
        "deal the samples out more evenly, or give them as scipy.sparse arrays",
    )
    real = np.arange(m) < counts[:, None]  # all other rows are padding
    signed, padded = arrays.zeros((nodes, m, dim)), np.zeros((nodes, m))
    if real.all():
        np.multiply(features, signs[:, None], out=signed.reshape(nodes * m, dim))
    else:
        signed[real] = features * signs[:, None]
    padded[real] = weights
    if targets is None:
        return DenseFeatures(signed, padded)
    laid_out = np.zeros((nodes, m))
    laid_out[real] = targets
    return DenseFeatures(signed, padded, laid_out)


def _sparse_layout(
    features: "sp.csr_array", signs: np.ndarray, counts: np.ndarray, weights: np.ndarray, targets: np.ndarray | None
) -> SparseFeatures:
    if features.nnz >= 2**31:
        raise InputError(f"the features have {features.nnz} non-zeros, and at most 2^31 - 1 fit; use fewer samples")
    per_sample = np.diff(features.indptr)
    return SparseFeatures(
        value=arrays.like(features.data * np.repeat(signs, per_sample)),
        sample=np.repeat(np.arange(features.shape[0], dtype=np.int32), per_sample),
        feature=features.indices.astype(np.int32),
        start=features.indptr.astype(np.int32),
        node=np.repeat(np.arange(counts.size, dtype=np.int32), counts),
        node_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        weights=weights,
        shape=np.empty((counts.size, features.shape[1], 0)),
        targets=targets,
    )
