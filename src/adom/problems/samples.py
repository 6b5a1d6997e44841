"""Labelled samples of the nodes, in NumPy: checked and stacked, weighted, regularised; their largest curvature.

Without JAX, so that agents and the command line can use it too. `features` lays the samples out for compiled loops.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError, InputTypeError, nearest
from ..util.arrays import is_sparse
from ..util.checks import check_real, check_whole
from .limits import LARGEST_DIM, REAL, as_array, as_numbers, check_numbers, flaw
from .losses import Loss

if TYPE_CHECKING:
    import scipy.sparse as sp

Matrix = Any  # a float64 array, or a scipy.sparse.csr_array of float64
COUNTS = ("samples", "nodes")
"""What may count equally."""


class Stacked(NamedTuple):
    """The samples of all nodes, one node after another."""

    features: Matrix
    labels: np.ndarray
    counts: np.ndarray  # samples of each node
    weights: np.ndarray | None = None  # per sample, or None for 1 / counts

    def sample_weights(self) -> np.ndarray:
        """Return the weight of every sample."""
        return np.repeat(1.0 / self.counts, self.counts) if self.weights is None else self.weights

    def summing(self, values: np.ndarray, group: Any = 0, groups: int = 1) -> "sp.csr_array":
        """Return the matrix that sums samples, multiplied by `values`, over each node and group of samples."""
        import scipy.sparse as sp

        rows = np.repeat(np.arange(self.counts.size), self.counts) * groups + group
        samples = np.arange(rows.size)
        return sp.csr_array((values, (rows, samples)), shape=(self.counts.size * groups, rows.size))


def dealt(features: Any, labels: Any, nodes: int) -> Stacked:
    """Check samples, and deal them out to nodes in order, as evenly as possible."""
    matrix = check_features(features)
    nodes = check_whole("nodes", nodes, most=LARGEST_DIM)
    if nodes > matrix.shape[0]:
        raise InputError(
            f"{nodes} nodes cannot share {matrix.shape[0]} samples: every node needs one at least; "
            f"use nodes={matrix.shape[0]} or fewer"
        )
    counts = np.full(nodes, matrix.shape[0] // nodes)
    counts[: matrix.shape[0] % nodes] += 1
    return Stacked(matrix, as_labels(labels), counts)


def stack(data: Sequence[tuple[Any, Any]], weights: Sequence[Any] | None = None, count: str = "nodes") -> Stacked:
    """Check and stack one (features, labels) pair per node, and one array of weights per node if given.

    Without weights, `count` says what counts equally: "nodes" or "samples".

    Examples
    --------
    >>> stacked = stack([([[1.0, 0.0]], [1]), ([[0.0, 1.0], [1.0, 1.0]], [-1, 1])])
    >>> stacked.features.shape, stacked.counts.tolist()
    ((3, 2), [1, 2])
    """
    try:
        data = list(data)
    except TypeError:
        raise InputTypeError(
            f"data must be one (features, labels) pair for each node, got {type(data).__name__}; give [(A, b), ...]"
        ) from None
    if not data:
        raise InputError("from_nodes got no nodes; give one (features, labels) pair for each")
    blocks: list[Any] = []
    labels: list[np.ndarray] = []
    for i, pair in enumerate(data):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputTypeError(
                f"node {i} must be a pair (features, labels), got {type(pair).__name__}; give [(A, b), ...]"
            )
        block, label = check_features(pair[0], f"node {i}'s features"), as_labels(pair[1], f"node {i}'s labels")
        if block.shape[0] == 0:
            raise InputError(f"node {i} is empty; every node needs at least one sample: leave it out")
        if label.shape != (block.shape[0],):
            raise InputError(
                f"node {i} has {block.shape[0]} samples but labels of shape {label.shape}; "
                "give one label for every sample"
            )
        if blocks and block.shape[1] != blocks[0].shape[1]:
            raise InputError(
                f"node {i} has {block.shape[1]} features but node 0 has {blocks[0].shape[1]}; "
                "all nodes must have the same features"
            )
        if labels and (label.dtype.kind in "US") != (labels[0].dtype.kind in "US"):
            raise InputError(f"node {i}'s labels are {label.dtype}, node 0's {labels[0].dtype}; give all as one kind")
        blocks.append(block)
        labels.append(label)
    counts = np.array([block.shape[0] for block in blocks])
    if any(is_sparse(block) for block in blocks):
        import scipy.sparse as sp

        stacked = sp.csr_array(sp.vstack([sp.csr_array(b) for b in blocks], format="csr"))
    else:
        stacked = np.concatenate(blocks)
    each = sample_weight(counts, count) if weights is None else None
    all_weights = _stack_weights(weights, counts) if each is None else np.full(int(counts.sum()), each)
    return Stacked(stacked, np.concatenate(labels), counts, all_weights)


def _stack_weights(weights: Sequence[Any] | None, counts: np.ndarray) -> np.ndarray | None:
    if weights is None:
        return None
    try:
        each = [as_numbers(f"node {i}'s weights", w) for i, w in enumerate(weights)]
    except TypeError:
        if not hasattr(weights, "__iter__"):
            raise InputTypeError(f"weights must be one array for each node, got {weights!r}; leave them out") from None
        raise
    if len(each) != counts.size:
        raise InputError(f"weights must be one array for each of the {counts.size} nodes, got {len(each)} of them")
    for i, (w, count) in enumerate(zip(each, counts, strict=True)):
        if w.shape != (count,) or (w < 0).any():
            raise InputError(
                f"node {i} has {count} samples and its weights must be as many finite numbers of at least 0, "
                f"got {w!r}; give one for every sample"
            )
    return np.concatenate(each)


def check_features(features: Any, name: str = "features") -> Matrix:
    """Return features as a finite 2-D float64 array or CSR matrix."""
    if not is_sparse(features):
        array = as_numbers(name, features)
        _check_table(name, array)
        return array
    _check_table(name, features)
    if features.dtype.kind not in REAL:
        raise InputTypeError(f"{name} must be real numbers, got an array of {features.dtype}; convert them first")

    import scipy.sparse as sp

    matrix = sp.csr_array(features, dtype=np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # the arrays may be shared
        matrix.sum_duplicates()
    if bad := flaw(matrix.data):
        (entry,), reason = bad
        row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        raise InputError(f"{name}[{row}, {matrix.indices[entry]}] {reason}")
    return matrix


def _check_table(name: str, table: Any) -> None:
    if table.ndim != 2 or table.shape[1] == 0:
        raise InputError(f"{name} must be a table of shape (samples, features), got {table.shape}; reshape it")


def as_labels(labels: Any, name: str = "labels") -> np.ndarray:
    """Return labels as an array of numbers or of text; refuse missing values and mixtures."""
    array = as_array(name, labels)
    if array.dtype.kind == "O":
        if all(isinstance(label, str) for label in array.flat):
            return array.astype(str)
        array = as_numbers(name, array, np.inf)
    if array.dtype.kind not in REAL + "US":
        raise InputTypeError(f"{name} must be numbers or text, got an array of {array.dtype}; convert them first")
    if array.dtype.kind == "f":
        check_numbers(name, array, np.inf)
    return array


def check_longest(longest: int | None, counts: np.ndarray) -> int | None:
    """Return `longest`; refuse to pad nodes to fewer rows than the largest node has."""
    if longest is None:
        return None
    remedy = f"node {np.argmax(counts)} has {counts.max()} samples; leave it out to have it counted"
    return check_whole("longest", longest, int(counts.max()), remedy, LARGEST_DIM)


def sample_weight(counts: np.ndarray, count: str) -> float | None:
    """Return the weight n / N with which all N samples of n nodes count equally, or None for weights 1 / m_i.

    With n / N, the mean of the f_i is the mean over all samples, as in a fit to the pooled data. If all nodes have
    equally many samples, both weights are the same and None is returned.

    Examples
    --------
    >>> sample_weight(np.array([1, 3]), "samples"), sample_weight(np.array([2, 2]), "samples")
    (0.5, None)
    >>> sample_weight(np.array([1, 3]), "nodes")
    """
    if count not in COUNTS:
        raise InputError(f"count must be 'samples' or 'nodes', got {count!r}; {nearest(count, COUNTS)}")
    if count == "nodes" or (counts == counts[0]).all():
        return None
    return float(counts.size / counts.sum())


def weighting(counts: np.ndarray, totals: np.ndarray) -> dict[str, Any]:
    """Return the fewest and the most samples of a node, and what counts equally: "nodes", "samples" or "neither".

    `counts` has each node's number of samples, `totals` the sum of their weights.

    Examples
    --------
    >>> weighting(np.array([100, 169]), np.array([1.0, 1.0]))
    {'fewest': 100, 'most': 169, 'alike': 'nodes'}
    >>> weighting(np.array([2, 4]), np.array([0.5, 1.0]))["alike"]
    'samples'
    """
    each = totals / np.maximum(counts, 1)
    alike = "nodes" if _even(totals) else "samples" if _even(each) else "neither"
    return {"fewest": int(counts.min()), "most": int(counts.max()), "alike": alike}


def _even(values: np.ndarray) -> bool:
    return bool(np.ptp(values) <= 1e-9 * np.abs(values).max())


def weighting_text(weights: dict[str, Any] | None, *, usual: bool = False) -> str:
    """Return text on how nodes of different sizes are weighted, "" if there is nothing to say.

    That samples count equally is the usual case, which is mentioned only if `usual` is True.

    Examples
    --------
    >>> weighting_text({"fewest": 100, "most": 169, "alike": "nodes"})
    'nodes count alike: 100 to 169 samples each, so a sample of a small node weighs more'
    >>> weighting_text({"fewest": 100, "most": 169, "alike": "samples"}, usual=True)
    'samples count alike, 100 to 169 a node'
    """
    if not weights or weights.get("fewest") == weights.get("most"):
        return ""
    sizes = f"{weights['fewest']:,} to {weights['most']:,}"
    if weights.get("alike") == "samples" and usual:
        return f"samples count alike, {sizes} a node"
    if weights.get("alike") != "nodes":
        return ""
    return f"nodes count alike: {sizes} samples each, so a sample of a small node weighs more"


def penalty_of(loss: Loss, l2: float, weights: dict[str, Any], samples: int) -> dict[str, Any]:
    """Return the penalty as l2 and, if every sample weighs the same, as scikit-learn's C or alpha.

    Examples
    --------
    >>> from adom.problems.losses import LOGISTIC
    >>> penalty_of(LOGISTIC, 0.1, {"alike": "samples"}, 20)
    {'l2': 0.1, 'C': 0.5}
    """
    alike = weights["alike"] == "samples" or weights["fewest"] == weights["most"]
    return loss.penalties(l2, samples) if alike else {"l2": l2}


def penalty_text(penalty: dict[str, Any]) -> str:
    """Return a penalty as text.

    Examples
    --------
    >>> penalty_text({"l2": 0.1, "C": 0.5}), penalty_text({"l2": 0.1})
    ('l2 0.1, C 0.5 as scikit-learn counts', 'l2 0.1')
    """
    if not penalty["l2"]:
        return "none"
    scikit_learn = [f"{name} {penalty[name]:.6g}" for name in ("C", "alpha") if name in penalty]
    return ", ".join([f"l2 {penalty['l2']:.6g}", *(f"{words} as scikit-learn counts" for words in scikit_learn)])


MOST_KAPPA = 1e15
"""Beyond this, mu is lost beside L in rounding."""


def check_regulariser(l2: float | None, kappa: float | None) -> None:
    """Check that exactly one of l2 and kappa is given and within its range."""
    if (l2 is None) == (kappa is None):
        raise InputError(f"give exactly one of l2 and kappa, got l2={l2!r} and kappa={kappa!r}; e.g. kappa=100")
    if l2 is not None:
        check_real("l2", l2, 0, np.inf, "it makes every f_i strongly convex", strict=True)
    else:
        check_real("kappa", kappa, 1, MOST_KAPPA, "it is L / mu of the f_i, of which float64 sees no more", strict=True)


def l2_of(C: float, samples: int, count: str = "samples") -> float:
    """Return the regulariser that corresponds to scikit-learn's C if all samples count equally.

    Examples
    --------
    >>> l2_of(0.5, 100)
    0.02
    """
    C = check_real("C", C, 0, np.inf, "it makes every f_i strongly convex", strict=True)
    if count != "samples":
        raise InputError(
            f"C={C:g} weighs single samples, but here {count} count equally; give l2, or set count to samples"
        )
    return 1 / (C * samples)


def regulariser(curvature: float, l2: float | None, kappa: float | None) -> float:
    """Return the regulariser r: `l2`, or the r with (curvature + r) / r = kappa."""
    check_regulariser(l2, kappa)
    if l2 is not None:
        return float(l2)
    assert kappa is not None
    if curvature == 0:
        raise InputError(
            "kappa cannot be chosen when every feature is zero, or so small that its square is: L = mu for any l2; "
            "give l2 instead, or scale the features"
        )
    return curvature / (float(kappa) - 1)


def ridge_of(l2: Any, dim: int, vectors: int = 1) -> Any:
    """Return the penalty of every coordinate, which is 0 for the last one of each vector, the intercept.

    Examples
    --------
    >>> ridge_of(0.5, 6, vectors=2).tolist()
    [0.5, 0.5, 0.0, 0.5, 0.5, 0.0]
    """
    return l2 * np.tile(np.arange(dim // vectors) < dim // vectors - 1, vectors)


def tie(x: Any, vectors: int) -> Any:
    """Return in every row the mean of its vectors, once for each: the slope of a penalty on a shift of all classes.

    Such a shift changes no prediction, so the penalty moves no other answer; it makes one of them the only one.

    Examples
    --------
    >>> tie(np.array([[1.0, 2.0, 3.0, 6.0]]), vectors=2).tolist()
    [[2.0, 4.0, 2.0, 4.0]]
    """
    parts = x.reshape(x.shape[0], vectors, -1)
    return (0 * parts + parts.mean(axis=1, keepdims=True)).reshape(x.shape)


def dense(matrix: Any) -> np.ndarray:
    """Return a dense or sparse matrix as a dense array."""
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix)


def scaled_rows(matrix: Any, factors: np.ndarray) -> Any:
    """Return a dense or sparse matrix with each row multiplied by a factor."""
    return matrix.multiply(factors[:, None]).tocsr() if is_sparse(matrix) else matrix * factors[:, None]


def prepared(features: Any, means: np.ndarray, scales: np.ndarray, column: float) -> Any:
    """Return features less the means, over the scales, with a constant column at the end if it is not 0.

    The means of sparse features must be 0.
    """
    if not is_sparse(features):
        table = np.full((features.shape[0], features.shape[1] + bool(column)), column)
        table[:, : features.shape[1]] = (features - means) / scales
        return table
    import scipy.sparse as sp

    scaled = sp.csr_array(features @ sp.diags_array(1 / scales))
    if not column:
        return scaled
    return sp.csr_array(sp.hstack([scaled, sp.csr_array(np.full((features.shape[0], 1), column))], format="csr"))


def hessian_sum(
    features: Any, bends: Callable[[np.ndarray], np.ndarray], vectors: int, factors: Any = 1.0
) -> np.ndarray:
    """Return the sum over samples of the Hessians of their losses, times factors, by the `Loss.bends` of the samples.

    Examples
    --------
    >>> hessian_sum(np.array([[1.0], [2.0]]), lambda along: np.array([1.0, 0.5]) * along, 1).tolist()
    [[3.0]]
    """
    samples, blocks = features.shape[0], []
    for unit in np.eye(vectors):
        bend = (bends(unit).T * factors).reshape(-1, samples)
        blocks.append([dense(features.T @ scaled_rows(features, each)) for each in bend])
    return np.block(blocks)


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
