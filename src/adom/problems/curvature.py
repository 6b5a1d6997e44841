"""The largest curvature of linear models on samples, computed with NumPy and SciPy only."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .checks import is_sparse

if TYPE_CHECKING:
    import scipy.sparse as sp


def dense(matrix: Any) -> np.ndarray:
    """Return a dense or sparse matrix as a dense array."""
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix)


def scaled_rows(matrix: Any, factors: np.ndarray) -> Any:
    """Return a dense or sparse matrix with each row multiplied by a factor."""
    return matrix.multiply(factors[:, None]).tocsr() if is_sparse(matrix) else matrix * factors[:, None]


def largest_curvature(features: Any, counts: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the largest eigenvalue of A_i'A_i / m_i, or of A_i'diag(weights_i)A_i, for every node."""
    if weights is not None:
        features = scaled_rows(features, np.sqrt(weights * np.repeat(counts, counts)))
    if isinstance(features, np.ndarray) and (counts == counts[0]).all():
        return _batched_curvature(features.reshape(counts.size, int(counts[0]), features.shape[1]))
    starts = np.cumsum(counts) - counts
    return np.array([_node_curvature(features[start : start + n]) for start, n in zip(starts, counts, strict=True)])


def _batched_curvature(blocks: np.ndarray) -> np.ndarray:
    nodes, m, dim = blocks.shape
    chunk = max(1, 2**22 // (min(m, dim) ** 2 + m * dim))  # a few tens of megabytes at a time
    out = np.empty(nodes)
    for start in range(0, nodes, chunk):
        A = blocks[start : start + chunk]
        gram = A.transpose(0, 2, 1) @ A if dim <= m else A @ A.transpose(0, 2, 1)
        out[start : start + chunk] = np.linalg.eigvalsh(gram)[:, -1]
    result: np.ndarray = np.maximum(out, 0.0) / m
    return result


def _node_curvature(block: Any) -> float:
    m, dim = block.shape
    if is_sparse(block):
        if block.nnz == 0:
            return 0.0
        if dim > block.nnz:  # drop features that do not occur: they cost time and memory
            occurring, columns = np.unique(block.indices, return_inverse=True)
            dim = occurring.size
            block = type(block)((block.data, columns, block.indptr), shape=(m, dim))
    gram = block.T @ block if dim <= m else block @ block.T
    if is_sparse(gram) and min(m, dim) > 1000:
        return _largest_eigenvalue(gram) / int(m)
    return max(float(np.linalg.eigvalsh(dense(gram))[-1]), 0.0) / int(m)


def _largest_eigenvalue(gram: "sp.csr_array") -> float:
    """Return the largest eigenvalue of a sparse A'A, or an upper bound if the iteration does not converge."""
    from scipy.sparse.linalg import ArpackError, eigsh

    bound = float(abs(gram).sum(axis=1).max())  # no eigenvalue exceeds the largest absolute row sum
    if not 0 < bound < np.inf:
        return bound
    start = np.random.default_rng(0).standard_normal(gram.shape[0])
    try:
        top = float(eigsh(gram / bound, k=1, which="LA", return_eigenvectors=False, v0=start)[0])
    except ArpackError:
        return bound
    return bound * min(max(top, 0.0), 1.0)
