"""Connectivity: count components, and join them with as few links as possible.

A graph with c components needs c - 1 more links. Each kind of network chooses them in its own way: at random
(`join_at_random`), among failed links (`joining_rows`), as a fixed chain (`join_in_chain`, for imported graphs), or
the shortest ones (module `near`, for points in the plane).
"""

from typing import Any

import numpy as np

from ..native import graphs as compiled
from .links import Bools, Ints, Longs

NAMED = 6
"""The most components, and nodes of each, that an error message names."""


def adjacency(nodes: int, pairs: Any, values: Any) -> Any:
    """Return a sparse matrix with one entry per pair."""
    from scipy.sparse import coo_array

    return coo_array((values, (pairs[:, 0], pairs[:, 1])), shape=(nodes, nodes)).tocsr()


def raw_labels(nodes: int, pairs: Any, strong: bool = False) -> tuple[int, Ints]:
    """Return the number of (strong) components and each node's component, numbered in no particular order."""
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(pairs), dtype=np.int8)
    count, labels = connected_components(adjacency(nodes, pairs, ones), directed=strong, connection="strong")
    return int(count), labels


def component_labels(nodes: int, pairs: Any, strong: bool = False) -> tuple[int, Ints]:
    """Return the same as `raw_labels`, with components numbered in the order of their smallest nodes."""
    if compiled.usable() and not strong:
        return compiled.labels(nodes, pairs)
    count, labels = raw_labels(nodes, pairs, strong)
    first = np.unique(labels, return_index=True)[1]
    return count, np.argsort(np.argsort(first)).astype(np.int32)[labels]


def name_components(count: int, labels: Ints) -> str:
    """Return text such as `2 components, {0, 1, 4} and {2, 3}`, abbreviated if it is long."""
    names = []
    for label in range(min(count, NAMED)):
        members = np.flatnonzero(labels == label)
        more = f", ... {len(members) - NAMED} more" if len(members) > NAMED else ""
        names.append("{" + ", ".join(str(node) for node in members[:NAMED]) + more + "}")
    last = f"{count - NAMED} more" if count > NAMED else names.pop()
    return f"{count} components, {', '.join(names)} and {last}"


def join_in_chain(nodes: int, pairs: Ints) -> Ints:
    """Return links that chain the components by their smallest nodes, in ascending order.

    Examples
    --------
    >>> join_in_chain(5, np.array([[1, 3]], dtype=np.int32)).tolist()
    [[0, 1], [1, 2], [2, 4]]
    """
    _, labels = component_labels(nodes, pairs)
    first = np.unique(labels, return_index=True)[1].astype(np.int32)
    return np.stack([first[:-1], first[1:]], axis=1)


def join_at_random(nodes: int, pairs: Ints, rng: np.random.Generator) -> Ints:
    """Return links that join each component, the largest first, at random to those before it.

    Each link goes from a random node of the component to a random node of all earlier components. Components of equal
    size come in random order. If there is a giant component, most links go to it, as if random pairs were added until
    the graph is connected.
    """
    count, labels = component_labels(nodes, pairs)
    if count == 1:
        return np.zeros((0, 2), dtype=np.int32)
    ranking = np.lexsort((rng.random(count), -np.bincount(labels)))
    rank = np.argsort(ranking)[labels]
    arranged = np.argsort(rank, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(rank, minlength=count))
    earlier = arranged[rng.integers(0, ends[:-1])]
    own = arranged[rng.integers(ends[:-1], ends[1:])]
    return np.stack([earlier, own], axis=1)


def cheapest_tree(nodes: int, pairs: Any, order: Any) -> Bools:
    """Mark the pairs that Kruskal's method keeps when it takes them in the given order.

    `order` lists the pairs from the cheapest to the most expensive. Pairs must be distinct.
    """
    from scipy.sparse.csgraph import minimum_spanning_tree

    price = np.empty(len(pairs), dtype=np.float64)
    price[order] = np.arange(1, len(pairs) + 1)
    tree = minimum_spanning_tree(adjacency(nodes, pairs, price))
    kept = np.zeros(len(pairs), dtype=np.bool_)
    kept[np.asarray(order)[tree.data.astype(np.int64) - 1]] = True
    return kept


def joining_rows(labels: Ints, pairs: Any, order: Any) -> Longs:
    """Return the rows of the pairs that Kruskal's method adds to the components.

    `labels` has each node's component, numbered from 0 without gaps. `order` lists rows of `pairs`, not necessarily
    all, from the cheapest to the most expensive. The returned rows are in that order.
    """
    a, b = np.sort(labels[pairs[order]], axis=1).astype(np.int64).T
    across = np.flatnonzero(a != b)
    a, b, rows = a[across], b[across], np.asarray(order)[across]
    count = int(labels.max()) + 1
    # Of all pairs that join the same two components, only the cheapest matters.
    first = np.sort(np.unique(a * count + b, return_index=True)[1])
    kept = cheapest_tree(count, np.stack([a[first], b[first]], axis=1), np.arange(len(first)))
    return np.asarray(rows[first[kept]], dtype=np.int64)
