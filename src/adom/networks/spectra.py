"""Extreme eigenvalues of graph Laplacians: the largest, and the smallest positive one.

The gossip matrix of a graph is symmetric, with W_uv = -weight of link uv and W_uu = sum of the weights at u. It maps
consensus to 0, so on a connected graph its second smallest eigenvalue is the smallest positive one. The algorithm
depends on the number of nodes n:

- n <= 256: dense, compiled, eight graphs at a time (`adom.native.graphs`), if there is a compiler.
- n <= 2,000: dense, `numpy.linalg.eigvalsh`.
- above: sparse, ARPACK (`scipy.sparse.linalg.eigsh`) on the complement of consensus. Its cost grows with the square
  root of (spread of the spectrum / gap beside the wanted eigenvalue): it is fast for expanders, slow for rings and for
  points in the plane. If it does not converge soon, it runs on the inverse, by a sparse factorisation, provided that
  the graph is narrow enough for one (reverse Cuthill-McKee bandwidth). This covers both kinds of graphs, because a
  graph with many small eigenvalues has small separators.
- above 50,000: first a Lanczos iteration that stores three vectors, to three digits.

Everything runs on one thread. Matrices this small gain little from more threads, and on a busy machine the threads of
OpenBLAS wait for each other so long that computations take ten to a hundred times longer.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError
from ..native import graphs as compiled
from ..util.process import one_thread
from .edges import Floats, Ints, Links

DENSE = 2000
"""The most nodes for which an n-by-n array is formed."""
AT_ONCE = 256
"""Up to this many nodes the whole spectrum is cheaper than ARPACK for the largest eigenvalue."""
STACK = 4_000_000
"""The most entries of dense matrices that are stacked for one call of the eigenvalue solver."""
LARGE = 50_000
"""Above this many nodes, bounds 0.2 % off replace the extreme eigenvalues where they are faster to compute."""
ROUGH = 1e-3
"""Relative residual of those bounds."""
STEPS = 300
"""The most products with W that such a bound may take."""
RESTARTS = 15
"""Restarts of ARPACK, about 40 products with W each, before another algorithm is tried."""
MANY_RESTARTS = 1000
"""Restarts of ARPACK when no other algorithm is left."""
SEPARATED = 1e-4
"""Below this ratio to W's largest diagonal entry, the smallest positive eigenvalue is computed by inversion."""
WIDEST = 5000
"""The largest bandwidth, in nodes, that is factorised."""
PRECISION = 1e-10
"""Relative residual at which ARPACK stops; the error of the eigenvalue is about its square over the gap."""
WANTED, BASIS = 6, 80
"""Eigenvalues that ARPACK computes for a directed graph, and its basis: with fewer it may miss the largest."""


def gossip_matrix(nodes: int, edges: Ints, weights: Floats) -> Any:
    """Return W of one graph: dense up to `DENSE` nodes, a `scipy.sparse.csr_array` above."""
    if nodes > DENSE:
        return sparse_matrix(nodes, edges, weights)
    return _dense_stack(Links.of(nodes, [edges]), weights, 0, 1)[0]


def sparse_matrix(nodes: int, edges: Ints, weights: Floats) -> Any:
    """Return W of one graph as a `scipy.sparse.csr_array`."""
    from scipy.sparse import coo_array

    u, v = edges.T
    diagonal = np.arange(nodes, dtype=np.int32)
    data = np.concatenate([-weights, -weights, node_sums(nodes, edges, weights)])
    index = (np.concatenate([u, v, diagonal]), np.concatenate([v, u, diagonal]))
    return coo_array((data, index), shape=(nodes, nodes)).tocsr()


def node_sums(nodes: int, edges: Ints, weights: Floats) -> Floats:
    """Return the sum of the weights at every node."""
    sums = np.bincount(edges.T.ravel(), weights=np.tile(weights, 2), minlength=nodes)
    return sums.astype(np.float64, copy=False)


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
    if links.nodes <= AT_ONCE and compiled.usable():
        return compiled.extremes(links.nodes, links.edges, links.offsets, weights)
    values = np.empty((links.graphs, 2))
    width = max(1, STACK // links.nodes**2)
    with one_thread():
        for start in range(0, links.graphs, width):
            stop = min(start + width, links.graphs)
            values[start:stop] = np.linalg.eigvalsh(_dense_stack(links, weights, start, stop))[:, [1, -1]]
    return values


def _dense_stack(links: Links, weights: Floats, start: int, stop: int) -> Floats:
    """Return W of the graphs start, ..., stop - 1 in one stacked array."""
    rows = slice(int(links.offsets[start]), int(links.offsets[stop]))
    graph = np.repeat(np.arange(stop - start), links.sizes[start:stop])
    u, v = links.edges[rows].T
    stack = np.zeros((stop - start, links.nodes, links.nodes))
    stack[graph, u, v] = -weights[rows]
    stack[graph, v, u] = -weights[rows]
    diagonal = np.arange(links.nodes)
    stack[:, diagonal, diagonal] = -stack.sum(axis=2)
    return stack


def largest(links: Links, weights: Floats) -> Floats:
    """Return the largest eigenvalue of every graph, or an upper bound where it does not converge."""
    if links.nodes <= AT_ONCE:
        return extremes(links, weights)[:, 1]
    return np.array([_largest(links.nodes, *graph) for graph in links.split(weights)])


def scales(links: Links, weights: Floats) -> Floats:
    """Return a divisor for the Laplacian of every graph: its largest eigenvalue, or slightly more.

    Above `LARGE` nodes it is an upper bound, 0.2 % too large, which is several times faster and needs less memory.
    """
    if links.nodes <= LARGE:
        return largest(links, weights)
    return np.array([_ceiling(links.nodes, *graph) for graph in links.split(weights)])


def smallest(links: Links, weights: Floats) -> Floats:
    """Return the smallest positive eigenvalue of every graph; each must be connected.

    Above `LARGE` nodes it is a lower bound, 0.2 % too small, where that is found quickly.
    """
    if links.nodes <= DENSE:
        return extremes(links, weights)[:, 0]
    return np.array([_smallest(sparse_matrix(links.nodes, *graph)) for graph in links.split(weights)])


def _largest(nodes: int, edges: Ints, weights: Floats) -> float:
    """Return the largest eigenvalue; if it does not converge, an upper bound."""
    matrix = sparse_matrix(nodes, edges, weights)
    value = _top(lambda v: matrix @ v, nodes, RESTARTS)
    return _ceiling(nodes, edges, weights) if value is None else value


def _ceiling(nodes: int, edges: Ints, weights: Floats) -> float:
    """Return an upper bound of the largest eigenvalue, by a Lanczos iteration that stores three vectors.

    The largest Ritz value is too small by at most the residual, once the iteration has found the top of the spectrum;
    twice the tolerance of the residual is added. The result is at most the bound of Anderson and Morley: the largest
    sum of the weights at both ends of a link.
    """
    bound = float(node_sums(nodes, edges, np.abs(weights))[edges].sum(axis=1).max())
    value = _ritz(laplacian_product(nodes, edges, weights), nodes, lambda top: top)
    return bound if value is None else min(bound, value * (1 + 2 * ROUGH))


def _floor(matrix: Any) -> float | None:
    """Return a bound 0.2 % below the smallest positive eigenvalue; None if it is not found soon.

    This is the method of `_ceiling` on the reversed spectrum; it is fast on graphs that mix well.
    """
    bound = float(abs(matrix).sum(axis=1).max())

    def apply(v: Floats) -> Floats:
        product: Floats = bound * v
        product -= matrix @ v
        product -= product.mean()
        return product

    top = _ritz(apply, matrix.shape[0], lambda top: bound - top)
    return None if top is None else (bound - top) * (1 - 2 * ROUGH)


def laplacian_product(nodes: int, edges: Ints, weights: Floats) -> Callable[[Floats], Floats]:
    """Return v -> W v, for a vector or for columns; sorted links already are the upper half of W in CSR order."""
    from scipy.sparse import csr_array

    starts = np.zeros(nodes + 1, dtype=np.int32)
    np.cumsum(np.bincount(edges[:, 0], minlength=nodes), out=starts[1:])
    above = csr_array((weights, np.ascontiguousarray(edges[:, 1]), starts), shape=(nodes, nodes))
    below = above.T
    diagonal = above.sum(axis=1) + above.sum(axis=0)

    def apply(v: Floats) -> Floats:
        product: Floats = diagonal.reshape(-1, *[1] * (v.ndim - 1)) * v
        product -= above @ v
        product -= below @ v
        return product

    return apply


def _ritz(apply: Callable[[Floats], Floats], size: int, sought: Callable[[float], float]) -> float | None:
    """Return the largest Ritz value once its residual is at most ``ROUGH * sought(value)``; None if it never is.

    SciPy's `eigsh` keeps a basis of vectors, too many for a million nodes, and took seven times as long for 300,000
    points in the plane; three vectors are enough here. The start is orthogonal to consensus. `einsum` computes the
    sums, because those of BLAS depend on the number of threads.
    """
    from scipy.linalg import eigh_tridiagonal

    v = np.random.default_rng(0).standard_normal(size)
    v -= v.mean()
    v /= np.sqrt(np.einsum("i,i->", v, v))
    before, beta = np.zeros_like(v), 0.0
    diagonal: list[float] = []
    beside: list[float] = []
    for step in range(1, STEPS + 1):
        w = apply(v)
        diagonal.append(float(np.einsum("i,i->", v, w)))
        before *= -beta
        before -= diagonal[-1] * v
        w += before
        beta = float(np.sqrt(np.einsum("i,i->", w, w)))
        if step % 10 == 0:
            top, vector = eigh_tridiagonal(diagonal, beside, select="i", select_range=(step - 1, step - 1))
            if beta * abs(vector[-1, 0]) <= ROUGH * sought(float(top[0])):
                return float(top[0])
        beside.append(beta)
        w /= beta
        before, v = v, w
    return None


def _smallest(matrix: Any) -> float:
    """Return the smallest positive eigenvalue of one sparse positive semi-definite matrix."""
    if matrix.shape[0] > LARGE and (rough := _floor(matrix)) is not None:
        return rough
    value = _bottom(matrix, RESTARTS)
    if value is not None and value > SEPARATED * float(matrix.diagonal().max()):
        return value
    if _bandwidth(matrix) <= WIDEST:
        inverse = _top(_inverse(matrix), matrix.shape[0], MANY_RESTARTS)
        if inverse is not None:
            return 1.0 / inverse
    return lowest(matrix)


def lowest(matrix: Any) -> float:
    """Return the smallest eigenvalue of one sparse matrix on the complement of consensus, whatever its sign."""
    value = _bottom(matrix, MANY_RESTARTS)
    if value is None:
        raise InputError(
            f"the smallest eigenvalue of a graph of {matrix.shape[0]} nodes did not converge: it is neither well "
            "mixed nor narrow enough to factorise; use fewer nodes or a better connected graph, or give it with bounded"
        )
    return value


def _bottom(matrix: Any, restarts: int) -> float | None:
    """Return the same as `lowest` by ARPACK on the reversed spectrum; None if it does not converge."""
    bound = float(abs(matrix).sum(axis=1).max())
    top = _top(lambda v: bound * v - matrix @ v, matrix.shape[0], restarts)
    return None if top is None else bound - top


def _bandwidth(matrix: Any) -> int:
    """Return the bandwidth after reverse Cuthill-McKee reordering: a bound on the fill of a factorisation."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    rank = np.argsort(reverse_cuthill_mckee(matrix, symmetric_mode=True))
    entries = matrix.tocoo()
    return int(np.abs(rank[entries.row] - rank[entries.col]).max())


def _inverse(matrix: Any) -> Callable[[Floats], Floats]:
    """Return v -> pinv(W) v, up to a constant, for v of zero mean: solve with node 0 fixed at zero."""
    from scipy.sparse.linalg import splu

    factor = splu(
        matrix[1:, 1:].tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )

    def solve(v: Floats) -> Floats:
        solution: Floats = np.zeros_like(v)
        solution[1:] = factor.solve(v[1:])
        return solution

    return solve


def _top(apply: Callable[[Floats], Any], size: int, restarts: int) -> float | None:
    """Return the largest eigenvalue of a symmetric operator on the complement of consensus, by ARPACK.

    Return None if it has not converged after `restarts` restarts.
    """
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    def deflated(v: Floats) -> Any:
        w = apply(v - v.mean())
        return w - w.mean()

    operator = LinearOperator((size, size), matvec=deflated, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    options = {"v0": start, "ncv": 40, "maxiter": restarts, "tol": PRECISION, "return_eigenvectors": False}
    with one_thread():
        try:
            return float(eigsh(operator, 1, which="LA", **options)[0])
        except ArpackNoConvergence:
            return None


def highest(apply: Callable[[Floats], Any], size: int) -> float:
    """Return the largest eigenvalue of a symmetric operator on the complement of consensus."""
    value = _top(apply, size, MANY_RESTARTS)
    if value is None:
        raise InputError(
            f"chi of windows of a network of {size} nodes did not converge; use fewer nodes or a longer window, "
            "or give it with bounded"
        )
    return value


def second_modulus(matrix: Any) -> float:
    """Return the second largest modulus of the eigenvalues of a row- or column-stochastic matrix.

    For a dense matrix all eigenvalues are computed. For a sparse one, ARPACK runs on ``M - 11'/n``: its eigenvalues are
    those of M with one 1 replaced by 0, because the all-ones vector is a right or left eigenvector of M.
    """
    if isinstance(matrix, np.ndarray):
        with one_thread():
            return float(np.sort(np.abs(np.linalg.eigvals(matrix)))[-2])

    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

    n = matrix.shape[0]
    deflated = LinearOperator((n, n), matvec=lambda v: matrix @ v - v.mean(), dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n)
    options = {"v0": start, "ncv": BASIS, "maxiter": MANY_RESTARTS, "tol": PRECISION, "return_eigenvectors": False}
    with one_thread():
        try:
            return float(np.abs(eigs(deflated, WANTED, which="LM", **options)).max())
        except ArpackNoConvergence:
            raise InputError(
                f"chi of a directed graph of {n} nodes did not converge: too many eigenvalues lie close to the "
                f"second largest; use a better connected graph, or {DENSE} nodes or fewer"
            ) from None
