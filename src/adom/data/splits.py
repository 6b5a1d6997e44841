"""Splits of samples over nodes, from similar nodes to very different ones."""

import heapq
from numbers import Real
from typing import Any

import numpy as np

from ..errors import InputError, nearest, shown
from ..util.checks import check_whole

SPLITS = ("contiguous", "shuffled", "label", "dirichlet")
"""The ways to split samples over nodes."""
CONCENTRATION, LARGEST_CONCENTRATION = 0.5, 1e6


def split(
    features: Any,
    labels: Any,
    nodes: int,
    how: str = "shuffled",
    *,
    seed: int = 0,
    concentration: float = CONCENTRATION,
) -> list[tuple[Any, np.ndarray]]:
    """Split samples over nodes, in the form that `LogisticRegression.from_nodes` takes.

    ============  =========================================================================================
    contiguous    cut into pieces in the given order, as `LogisticRegression` does
    shuffled      shuffled, then cut into pieces: nodes are similar
    label         sorted by label, then cut into pieces: most nodes have only one class
    dirichlet     each class split in proportions drawn from a Dirichlet distribution (Hsu, Qi and Brown
                  2019, arXiv:1909.06335): the smaller the concentration, the more nodes differ in classes
                  and in size
    ============  =========================================================================================

    Every sample goes to one node, and no node is empty: a node to which the Dirichlet draw gives nothing gets a sample
    of the largest node. In the other splits, sizes of nodes differ by at most one sample.

    Parameters
    ----------
    features : array or scipy.sparse array of shape (samples, features)
    labels : array of shape (samples,)
    nodes : int
    how : str
    seed : int
        Seed of the shuffle and of the Dirichlet draw.
    concentration : float
        Concentration of the Dirichlet distribution: nodes are similar if it is large; near 0, each class goes to few.

    Returns
    -------
    list of (features, labels)
        One pair per node, with samples in their original order.

    Examples
    --------
    >>> A, b = np.arange(12.0).reshape(6, 2), np.array([1, -1, 1, -1, 1, -1])
    >>> [b_i.tolist() for _, b_i in split(A, b, 2, "label")]
    [[-1, -1, -1], [1, 1, 1]]
    """
    matrix = features.tocsr() if hasattr(features, "tocsr") else np.asarray(features)
    values = np.asarray(labels)
    if matrix.ndim != 2 or values.shape != (matrix.shape[0],):
        raise InputError(
            f"features of shape {matrix.shape} and labels of shape {values.shape} do not match; "
            "give (samples, features) and (samples,)"
        )
    split_rows = shares(values, nodes, how, seed=seed, concentration=concentration)
    return [(matrix[rows], values[rows]) for rows in split_rows]


def shares(
    labels: Any, nodes: int, how: str = "shuffled", *, seed: int = 0, concentration: float = CONCENTRATION
) -> list[np.ndarray]:
    """Return the rows that each node gets; see `split`.

    Examples
    --------
    >>> [rows.tolist() for rows in shares([1, -1, 1, -1, 1], 2, "contiguous")]
    [[0, 1, 2], [3, 4]]
    >>> [rows.tolist() for rows in shares([1, -1, 1, -1, 1], 2, "label")]
    [[0, 1, 3], [2, 4]]
    """
    values = np.asarray(labels)
    if values.ndim != 1:
        raise InputError(f"labels must have shape (samples,), got {values.shape}; give one for every sample")
    nodes, seed = check_whole("nodes", nodes), check_whole("seed", seed, 0)
    if nodes > len(values):
        raise InputError(
            f"{nodes} nodes cannot share {len(values)} samples: every node needs one at least; "
            f"use nodes={len(values)} or fewer"
        )
    if how == "contiguous":
        order = np.arange(len(values))
    elif how == "shuffled":
        order = np.random.default_rng(np.random.SeedSequence(seed)).permutation(len(values))
    elif how == "label":
        order = np.argsort(values, kind="stable")
    elif how == "dirichlet":
        return _dirichlet(values, nodes, seed, concentration)
    else:
        raise InputError(f"samples cannot be split {how!r}; {nearest(how, SPLITS)}")
    return [np.sort(rows) for rows in np.array_split(order, nodes)]


def _dirichlet(labels: np.ndarray, nodes: int, seed: int, concentration: float) -> list[np.ndarray]:
    """Shuffle each class and split it in proportions from a Dirichlet draw."""
    check_concentration("concentration", concentration)
    classes = np.unique(labels)
    parts: list[list[np.ndarray]] = [[] for _ in range(nodes)]
    for value, spawned in zip(classes, np.random.SeedSequence(seed).spawn(len(classes)), strict=True):
        rng = np.random.default_rng(spawned)
        members = rng.permutation(np.flatnonzero(labels == value))
        proportions = rng.dirichlet(np.full(nodes, concentration))
        cuts = np.rint(np.cumsum(proportions)[:-1] * len(members)).astype(np.int64)
        for node, rows in enumerate(np.split(members, np.minimum(cuts, len(members)))):
            parts[node].append(rows)
    return _none_empty([np.sort(np.concatenate(rows)) for rows in parts])


def check_concentration(name: str, value: Any) -> None:
    """Refuse a concentration of the Dirichlet distribution that is not positive or too large."""
    if not (isinstance(value, Real) and 0 < float(value) <= LARGEST_CONCENTRATION):
        raise InputError(
            f"{name} must be positive and at most {LARGEST_CONCENTRATION:g}, got {shown(value)}; "
            "0.5 makes nodes fairly unlike, 100 nearly alike"
        )


def _none_empty(parts: list[np.ndarray]) -> list[np.ndarray]:
    """Give each empty node the last sample of the largest node.

    Examples
    --------
    >>> none = np.array([], dtype=int)
    >>> [rows.tolist() for rows in _none_empty([np.array([0, 1]), np.array([2, 3]), none, none])]
    [[0], [2], [1], [3]]
    """
    most = [(-len(rows), node) for node, rows in enumerate(parts)]
    heapq.heapify(most)
    for node, rows in enumerate(parts):
        if not len(rows):
            size, rich = most[0]
            parts[node], parts[rich] = parts[rich][-1:], parts[rich][:-1]
            heapq.heapreplace(most, (size + 1, rich))
    return parts
