"""Many graphs on the same nodes, stored in flat arrays.

A thousand graphs are one array of node pairs and one of offsets, not a list of graph objects.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..native import graphs as compiled

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only view of `array`."""
    view = array.view()
    view.flags.writeable = False
    return view


def canonical(pairs: npt.NDArray[Any], nodes: int) -> Ints:
    """Return node pairs with u < v, without duplicates, sorted lexicographically.

    Examples
    --------
    >>> canonical(np.array([[2, 0], [1, 0], [0, 2]]), nodes=3).tolist()
    [[0, 1], [0, 2]]
    """
    if compiled.usable():
        return compiled.canonical(pairs, nodes)
    u, v = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
    codes = distinct_codes(np.minimum(u, v) * nodes + np.maximum(u, v))
    return np.stack([codes // nodes, codes % nodes], axis=1, dtype=np.int32, casting="same_kind")


def distinct_codes(codes: Longs) -> Longs:
    """Sort codes in place and drop duplicates; much faster than `numpy.unique`, which hashes first."""
    codes.sort()
    fresh = np.ones(len(codes), dtype=np.bool_)
    np.not_equal(codes[1:], codes[:-1], out=fresh[1:])
    return codes if fresh.all() else codes[fresh]


def with_links(pairs: Ints, extra: Ints, nodes: int) -> Ints:
    """Insert a few new links into canonical pairs; none of them may be among the pairs.

    Examples
    --------
    >>> with_links(np.array([[0, 1], [1, 2]], dtype=np.int32), np.array([[2, 0]], dtype=np.int32), nodes=3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    if not len(extra):
        return pairs
    extra = canonical(extra, nodes)
    rows = np.searchsorted(pairs @ np.array([nodes, 1]), extra @ np.array([nodes, 1]))
    return np.insert(pairs, rows, extra, axis=0)


@dataclass(frozen=True, eq=False)
class Links:
    """The links of several graphs on nodes 0, ..., nodes - 1.

    Attributes
    ----------
    nodes : int
    edges : (total, 2) int32
        One graph after another; within a graph u < v, unique and sorted lexicographically.
    offsets : (graphs + 1,) int64
        Graph g owns the rows offsets[g], ..., offsets[g + 1] - 1.
    """

    nodes: int
    edges: Ints
    offsets: Longs

    @classmethod
    def of(cls, nodes: int, graphs: Iterable[Ints]) -> "Links":
        """Concatenate graphs, each an (E, 2) array in canonical form."""
        parts = list(graphs)
        offsets = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        edges = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return cls(nodes, np.ascontiguousarray(edges, dtype=np.int32), offsets)

    @property
    def graphs(self) -> int:
        """The number of graphs."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Longs:
        """The number of links of every graph."""
        return np.diff(self.offsets)

    def rows(self, graph: int) -> slice:
        """Return the rows of `edges`, and of any array aligned with it, that belong to one graph."""
        return slice(int(self.offsets[graph]), int(self.offsets[graph + 1]))

    def split(self, values: Floats) -> Iterator[tuple[Ints, Floats]]:
        """Yield the links of every graph and the values aligned with them."""
        for graph in range(self.graphs):
            yield self.edges[self.rows(graph)], values[self.rows(graph)]

    def each(self) -> Iterator[Ints]:
        """Yield the links of every graph."""
        for graph in range(self.graphs):
            yield self.edges[self.rows(graph)]

    def some(self, values: Floats, chosen: Bools) -> tuple["Links", Floats]:
        """Return the chosen graphs and the values aligned with their links."""
        if chosen.all():
            return self, values
        rows = np.repeat(chosen, self.sizes)
        offsets = np.concatenate([[0], np.cumsum(self.sizes[chosen])]).astype(np.int64)
        return Links(self.nodes, self.edges[rows], offsets), values[rows]

    def digest(self, values: Floats, order: Ints) -> str:
        """Return the SHA-256 of graphs, unscaled weights and order, which identifies imported data in a recipe."""
        content = hashlib.sha256(str(self.nodes).encode())
        for array in (order, self.offsets, self.edges, values):
            content.update(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
        return content.hexdigest()
