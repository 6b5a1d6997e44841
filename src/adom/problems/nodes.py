"""One (features, labels) pair per node, checked and stacked into one matrix."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError, InputTypeError
from ..util.checks import check_whole
from .checks import LARGEST_DIM, REAL, as_array, as_numbers, check_numbers, flaw, is_sparse
from .weighting import sample_weight

if TYPE_CHECKING:
    import scipy.sparse as sp

Matrix = Any  # a float64 array, or a scipy.sparse.csr_array of float64


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
