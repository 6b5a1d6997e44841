"""One (features, labels) pair a node: checked, and stacked into one matrix."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..errors import InputError, InputTypeError
from .base import check_finite

Matrix = Any  # a float64 array, or a scipy.sparse.csr_array of float64


class Stacked(NamedTuple):
    """The samples of all nodes, node after node."""

    features: Matrix
    labels: np.ndarray
    counts: np.ndarray  # samples of each node
    weights: np.ndarray | None  # per sample, or None for 1 / counts


def stack(data: Sequence[tuple[Any, Any]], weights: Sequence[Any] | None = None) -> Stacked:
    """Check one (features, labels) pair for every node, and one array of weights if there are any; stack them.

    Examples
    --------
    >>> stacked = stack([([[1.0, 0.0]], [1]), ([[0.0, 1.0], [1.0, 1.0]], [-1, 1])])
    >>> stacked.features.shape, stacked.counts.tolist()
    ((3, 2), [1, 2])
    """
    if not data:
        raise InputError("from_nodes got no nodes; give one (features, labels) pair for each")
    blocks: list[Any] = []
    labels: list[np.ndarray] = []
    for i, pair in enumerate(data):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputTypeError(
                f"node {i} must be a pair (features, labels), got {type(pair).__name__}; give [(A, b), ...]"
            )
        A, b = pair
        block, label = check_features(A, f"node {i}'s features"), np.asarray(b)
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
        blocks.append(block)
        labels.append(label)
    counts = np.array([block.shape[0] for block in blocks])
    if any(sp.issparse(block) for block in blocks):
        stacked = sp.csr_array(sp.vstack([sp.csr_array(b) for b in blocks], format="csr"))
    else:
        stacked = np.concatenate(blocks)
    return Stacked(stacked, np.concatenate(labels), counts, _stack_weights(weights, counts))


def _stack_weights(weights: Sequence[Any] | None, counts: np.ndarray) -> np.ndarray | None:
    if weights is None:
        return None
    if len(weights) != counts.size:
        raise InputError(f"weights must be one array for each of the {counts.size} nodes, got {len(weights)} of them")
    each = [np.asarray(w, dtype=np.float64) for w in weights]
    for i, (w, count) in enumerate(zip(each, counts, strict=True)):
        if w.shape != (count,) or not (np.isfinite(w).all() and (w >= 0).all()):
            raise InputError(
                f"node {i} has {count} samples and its weights must be as many finite numbers of at least 0, "
                f"got {w!r}; give one for every sample"
            )
    return np.concatenate(each)


def check_features(features: Any, name: str = "features") -> Matrix:
    """Return finite float64 features, dense or CSR, of two dimensions."""
    if sp.issparse(features):
        matrix = sp.csr_array(features, dtype=np.float64)
        matrix.sum_duplicates()
        if not np.isfinite(matrix.data).all():
            place = int(np.flatnonzero(~np.isfinite(matrix.data))[0])
            row = int(np.searchsorted(matrix.indptr, place, side="right")) - 1
            raise InputError(
                f"{name}[{row}, {matrix.indices[place]}] is {matrix.data[place]}; all values must be finite: "
                "drop that sample or fill the value in"
            )
        return matrix
    try:
        array = np.asarray(features, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"{name} must be a table of numbers, got {type(features).__name__} ({error})") from None
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(f"{name} must have shape (samples, features), got {array.shape}; reshape it")
    check_finite(name, array)
    return array


def check_longest(longest: int | None, counts: np.ndarray) -> int | None:
    """Refuse a number of rows to fill nodes up to that is below those of the largest node."""
    if longest is None:
        return None
    if isinstance(longest, bool) or not isinstance(longest, int | np.integer) or longest < counts.max():
        raise InputError(
            f"longest must be a whole number of at least {counts.max()}, the samples of node {np.argmax(counts)}, "
            f"got {longest!r}; leave it out to have it counted"
        )
    return int(longest)
