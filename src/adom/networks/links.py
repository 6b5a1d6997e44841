"""Many graphs on the same nodes, side by side in flat arrays.

A pool of a thousand graphs is one array of node pairs and one of offsets, never a list of graph objects:
connectivity, spanning trees and spectra then run over all the graphs at once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
    """Return node pairs with u < v, each once, sorted lexicographically.

    Examples
    --------
    >>> canonical(np.array([[2, 0], [1, 0], [0, 2]]), nodes=3).tolist()
    [[0, 1], [0, 2]]
    """
    u, v = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
    codes = distinct_codes(np.minimum(u, v) * nodes + np.maximum(u, v))
    return np.stack([codes // nodes, codes % nodes], axis=1, dtype=np.int32, casting="same_kind")


def distinct_codes(codes: Longs) -> Longs:
    """Sort codes in place and return each once: many times faster than `numpy.unique`, which hashes first."""
    codes.sort()
    fresh = np.ones(len(codes), dtype=np.bool_)
    np.not_equal(codes[1:], codes[:-1], out=fresh[1:])
    return codes if fresh.all() else codes[fresh]


def with_links(pairs: Ints, extra: Ints, nodes: int) -> Ints:
    """Put a few further links, none of them there yet, into their places in canonical pairs.

    Examples
    --------
    >>> with_links(np.array([[0, 1], [1, 2]], dtype=np.int32), np.array([[2, 0]], dtype=np.int32), nodes=3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    if not len(extra):
        return pairs
    extra = canonical(extra, nodes)
    place = np.searchsorted(pairs @ np.array([nodes, 1]), extra @ np.array([nodes, 1]))
    return np.insert(pairs, place, extra, axis=0)


@dataclass(frozen=True, eq=False)
class Links:
    """The links of several graphs on nodes 0, ..., nodes - 1.

    Attributes
    ----------
    nodes : int
    edges : (total, 2) int32
        Graph after graph; within a graph u < v, unique and sorted lexicographically.
    offsets : (graphs + 1,) int64
        Graph g owns the rows offsets[g], ..., offsets[g + 1] - 1.
    """

    nodes: int
    edges: Ints
    offsets: Longs

    @classmethod
    def of(cls, nodes: int, graphs: Iterable[Ints]) -> "Links":
        """Put graphs, each an (E, 2) array in canonical form, side by side."""
        parts = list(graphs)
        offsets = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        edges = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros((0, 2))
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
        """Return the rows of `edges` (and of any array beside it) that belong to one graph."""
        return slice(int(self.offsets[graph]), int(self.offsets[graph + 1]))

    def owners(self) -> Longs:
        """Return the graph that each row of `edges` belongs to."""
        return np.repeat(np.arange(self.graphs), self.sizes)

    def index(self, chosen: Sequence[int] | Longs | Ints) -> Longs:
        """Return the rows of the chosen graphs, in their order."""
        picked = np.asarray(chosen, dtype=np.int64)
        sizes = self.sizes[picked]
        shift = np.repeat(self.offsets[picked] - np.cumsum(sizes) + sizes, sizes)
        return shift + np.arange(int(sizes.sum()))

    def take(self, chosen: Sequence[int] | Longs | Ints) -> "Links":
        """Return the chosen graphs, in their order."""
        offsets = np.zeros(len(chosen) + 1, dtype=np.int64)
        np.cumsum(self.sizes[np.asarray(chosen, dtype=np.int64)], out=offsets[1:])
        return Links(self.nodes, self.edges[self.index(chosen)], offsets)

    def blocks(self, most: int) -> Iterator[tuple[int, int]]:
        """Yield ranges [start, stop) of graphs that hold about `most` nodes together, at least one graph."""
        width = max(1, most // self.nodes)
        for start in range(0, self.graphs, width):
            yield start, min(start + width, self.graphs)

    def merged(self, start: int, stop: int) -> Longs:
        """Return graphs start, ..., stop - 1 as one graph: node u of the j-th is node j * nodes + u."""
        rows = slice(int(self.offsets[start]), int(self.offsets[stop]))
        shift = np.repeat(np.arange(stop - start), self.sizes[start:stop]) * self.nodes
        return self.edges[rows].astype(np.int64) + shift[:, None]
