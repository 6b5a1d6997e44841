"""Extreme eigenvalues of graph Laplacians: the largest, and the smallest positive one.

The gossip matrix of a graph is the symmetric matrix with W_uv = -weight of link uv and W_uu = the sum of the
weights at u. It maps consensus to 0, so on a connected graph its second smallest eigenvalue is the smallest
positive one. How the two are computed depends on the number of nodes n:

- n <= 2,000, dense: `numpy.linalg.eigvalsh`, many graphs in one call.
- above, sparse: a Lanczos recurrence on the complement of consensus. Its cost grows with the square root
  of (spread of the spectrum / gap beside the wanted eigenvalue): quick for expanders, slow for rings and
  for points in the plane. When it has not converged after `PATIENCE` steps it is run on the inverse
  instead, with a sparse factorisation, if the graph is narrow enough for one (reverse Cuthill-McKee
  bandwidth). That covers both kinds: a graph with many small eigenvalues has small separators.

All of it runs on one thread. Matrices this small gain little from more, and on a busy machine the threads of
OpenBLAS wait for each other so long that everything takes ten to a hundred times longer.
"""

import importlib
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np

from adom.networks.links import Floats, Links

DENSE = 2000
"""The most nodes for which an n-by-n array is ever formed."""
AT_ONCE = 256
"""Up to this many nodes the whole spectrum is cheaper than a Lanczos run for its upper end."""
CHUNK = 16_000_000
"""Numbers in one stack of dense matrices (128 MB)."""
PATIENCE = 500
"""Lanczos steps before the factorisation is tried for the smallest positive eigenvalue."""
LIMIT = 20_000
"""Lanczos steps after which the best estimate stands."""
TOP_LIMIT = 2000
"""The same for the largest eigenvalue, where a tight upper bound stands in."""
WIDEST = 5000
"""The widest band, in nodes, that is factorised."""
PRECISION = 1e-8
"""Relative residual at which a Lanczos run has converged."""


def dense_matrices(links: Links, weights: Floats, start: int, stop: int) -> Floats:
    """Return the matrices of graphs start, ..., stop - 1, stacked."""
    rows = slice(int(links.offsets[start]), int(links.offsets[stop]))
    owner = np.repeat(np.arange(stop - start), links.sizes[start:stop])
    u, v = links.edges[rows].T
    stack = np.zeros((stop - start, links.nodes, links.nodes))
    stack[owner, u, v] = -weights[rows]
    stack[owner, v, u] = -weights[rows]
    diagonal = np.arange(links.nodes)
    stack[:, diagonal, diagonal] = -stack.sum(axis=2)
    return stack


def sparse_matrix(links: Links, weights: Floats, graph: int) -> Any:
    """Return the matrix of one graph as a `scipy.sparse.csr_array`."""
    from scipy.sparse import coo_array

    rows = links.rows(graph)
    u, v = links.edges[rows].T
    values = weights[rows]
    everyone = np.arange(links.nodes, dtype=np.int32)
    data = np.concatenate([-values, -values, node_sums(links, weights, graph)])
    place = (np.concatenate([u, v, everyone]), np.concatenate([v, u, everyone]))
    return coo_array((data, place), shape=(links.nodes, links.nodes)).tocsr()


def node_sums(links: Links, weights: Floats, graph: int) -> Floats:
    """Return the sum of the weights at every node of one graph."""
    rows = links.rows(graph)
    ends = links.edges[rows].T.ravel()
    sums = np.bincount(ends, weights=np.tile(weights[rows], 2), minlength=links.nodes)
    return sums.astype(np.float64, copy=False)


@cache
def _controller() -> Any:
    """Return what limits the threads of BLAS; None without threadpoolctl, which comes with scikit-learn."""
    try:
        return importlib.import_module("threadpoolctl").ThreadpoolController()
    except ImportError:
        return None


def dense_eigenvalues(matrices: Floats) -> Floats:
    """Return the eigenvalues, ascending, of each symmetric matrix of a stack."""
    control = _controller()
    alone: AbstractContextManager[Any] = (
        nullcontext() if control is None else control.limit(limits=1, user_api="blas")
    )
    with alone:
        return np.linalg.eigvalsh(matrices).astype(np.float64, copy=False)


def extremes(links: Links, weights: Floats) -> Floats:
    """Return the smallest positive and the largest eigenvalue of every graph, shape (graphs, 2).

    Examples
    --------
    The path of three nodes has the Laplacian eigenvalues 0, 1 and 3.

    >>> path = Links.of(3, [np.array([[0, 1], [1, 2]])])
    >>> extremes(path, np.ones(2)).round(12).tolist()
    [[1.0, 3.0]]
    """
    if links.nodes > DENSE:
        return np.stack([smallest(links, weights), largest(links, weights)], axis=1)
    found = np.empty((links.graphs, 2))
    for start, stop in links.blocks(CHUNK // links.nodes):
        found[start:stop] = dense_eigenvalues(dense_matrices(links, weights, start, stop))[:, [1, -1]]
    return found


def largest(links: Links, weights: Floats) -> Floats:
    """Return the largest eigenvalue of every graph, from above if it is not exact."""
    if links.nodes <= AT_ONCE:
        return extremes(links, weights)[:, 1]
    return np.array([_largest(links, weights, graph) for graph in range(links.graphs)])


def smallest(links: Links, weights: Floats) -> Floats:
    """Return the smallest positive eigenvalue of every graph; each must be connected."""
    if links.nodes <= DENSE:
        return extremes(links, weights)[:, 0]
    return np.array([_smallest(sparse_matrix(links, weights, graph)) for graph in range(links.graphs)])


def _largest(links: Links, weights: Floats, graph: int) -> float:
    """Return the largest eigenvalue; if it does not converge, from above.

    Anderson and Morley: it is at most the largest sum of the weights at the two ends of a link.
    """
    matrix = sparse_matrix(links, weights, graph)
    value, residual = lanczos(lambda v: matrix @ v, links.nodes, TOP_LIMIT)
    if residual <= PRECISION * value:
        return value
    sums = node_sums(links, np.abs(weights), graph)
    bound = float(sums[links.edges[links.rows(graph)]].sum(axis=1).max())
    return min(value + residual, bound)


def _smallest(matrix: Any) -> float:
    """Return the smallest positive eigenvalue of one sparse matrix."""
    value, residual = lanczos(lambda v: -(matrix @ v), matrix.shape[0], PATIENCE)
    if residual <= PRECISION * abs(value):
        return -value
    if _bandwidth(matrix) <= WIDEST:
        return 1.0 / lanczos(_inverse(matrix), matrix.shape[0], PATIENCE)[0]
    return -lanczos(lambda v: -(matrix @ v), matrix.shape[0], LIMIT)[0]


def _bandwidth(matrix: Any) -> int:
    """Return the bandwidth after reverse Cuthill-McKee reordering: a bound on the fill of a factorisation."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    place = np.empty(matrix.shape[0], dtype=np.int64)
    place[reverse_cuthill_mckee(matrix, symmetric_mode=True)] = np.arange(matrix.shape[0])
    entries = matrix.tocoo()
    return int(np.abs(place[entries.row] - place[entries.col]).max())


def _inverse(matrix: Any) -> Callable[[Floats], Floats]:
    """Return v -> pinv(W) v for v in the complement of consensus: solve with node 0 held at zero."""
    from scipy.sparse.linalg import splu

    factor = splu(
        matrix[1:, 1:].tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )

    def solve(v: Floats) -> Floats:
        found = np.zeros_like(v)
        found[1:] = factor.solve(v[1:])
        return found

    return solve


def _dot(a: Floats, b: Floats) -> float:
    """Return the inner product without BLAS and its threads."""
    return float(np.einsum("i,i", a, b))


def lanczos(apply: Callable[[Floats], Floats], size: int, limit: int) -> tuple[float, float]:
    """Return the largest eigenvalue of a symmetric operator on the complement of consensus, and its residual.

    The three-term recurrence without re-orthogonalisation: extreme eigenvalues come out right although the
    vectors drift from orthogonality, and memory stays at three vectors. There is an eigenvalue within
    `residual` of the one returned, and when the residual is small beside the gap the error is its square.
    """
    from scipy.linalg import eigh_tridiagonal

    v = np.random.default_rng(0).standard_normal(size)
    v -= v.mean()
    v /= math.sqrt(_dot(v, v))
    before = np.zeros(size)
    inner: list[float] = []
    outer: list[float] = []
    look = 10
    while True:
        w = apply(v) - (outer[-1] if outer else 0.0) * before
        inner.append(_dot(w, v))
        w -= inner[-1] * v
        w -= w.mean()
        length = math.sqrt(_dot(w, w))
        steps = len(inner)
        exhausted = length <= 1e-12 * max(map(abs, inner)) or steps == limit
        if steps == look or exhausted:
            pick = (steps - 1, steps - 1)
            theta, s = eigh_tridiagonal(inner, outer, select="i", select_range=pick)
            value, residual = float(theta[0]), float(abs(length * s[-1, 0]))
            if exhausted or residual <= PRECISION * abs(value):
                return value, residual
            look = steps + max(10, steps // 8)
        outer.append(length)
        before, v = v, w / length
