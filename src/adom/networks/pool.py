"""A pool of distinct graphs with the weights of their gossip matrices and what is known of their spectra."""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

from adom.networks import spectra
from adom.networks.links import Floats, Ints, Links, Longs, frozen


class Pool:
    """Graphs on the same nodes, each with one weight a link.

    Parameters
    ----------
    links : Links
    weights : (total,) float64
        One weight a row of `links.edges`; W_uv = -weight.
    low, high : (graphs,) float64, optional
        The smallest positive and the largest eigenvalue of each W as far as known; NaN where not.
    positions : sequence of (nodes, 2) arrays or None, optional
        Where the nodes of each graph lie, if anywhere.
    """

    def __init__(
        self,
        links: Links,
        weights: Floats,
        low: Floats | None = None,
        high: Floats | None = None,
        positions: Sequence[Floats | None] | Floats | None = None,
    ) -> None:
        unknown = np.full(links.graphs, np.nan)
        self.links = links
        self.weights = weights
        self._low = unknown.copy() if low is None else low
        self._high = unknown.copy() if high is None else high
        self.positions: list[Floats | None] = (
            [None] * links.graphs
            if positions is None
            else [None if place is None else frozen(place) for place in positions]
        )

    @classmethod
    def laplacian(
        cls,
        links: Links,
        relative: Floats | None = None,
        known: Floats | None = None,
        positions: Sequence[Floats | None] | Floats | None = None,
    ) -> "Pool":
        """Give each graph its Laplacian divided by the Laplacian's own largest eigenvalue.

        Parameters
        ----------
        links : Links
        relative : (total,) float64, optional
            Weights of the links within the Laplacian; all 1 by default.
        known : (graphs, 2) float64, optional
            The Laplacians' smallest positive and largest eigenvalues, if they are already at hand.
        positions : optional
            See `Pool`.
        """
        plain = np.ones(len(links.edges)) if relative is None else relative
        if known is None and links.nodes <= spectra.AT_ONCE:
            known = spectra.extremes(links, plain)
        if known is None:
            high = spectra.largest(links, plain)
            low = np.full(links.graphs, np.nan)
        else:
            high = known[:, 1]
            low = known[:, 0] / high
        return cls(links, plain / np.repeat(high, links.sizes), low, np.ones(links.graphs), positions)

    @classmethod
    def join(cls, pools: Sequence["Pool"]) -> "Pool":
        """Put pools on the same nodes one after another."""
        nodes = pools[0].links.nodes
        parts = [pool.links.edges[pool.links.rows(g)] for pool in pools for g in range(pool.links.graphs)]
        return cls(
            Links.of(nodes, parts),
            np.concatenate([pool.weights for pool in pools]),
            np.concatenate([pool._low for pool in pools]),
            np.concatenate([pool._high for pool in pools]),
            [place for pool in pools for place in pool.positions],
        )

    def take(self, chosen: Sequence[int] | Longs | Ints) -> "Pool":
        """Return a pool of the chosen graphs, in their order."""
        return Pool(
            self.links.take(chosen),
            self.weights[self.links.index(chosen)],
            self._low[chosen],
            self._high[chosen],
            [self.positions[int(graph)] for graph in chosen],
        )

    def spectrum(self) -> Floats:
        """Return the smallest positive and the largest eigenvalue of every W; computed once."""
        missing = np.flatnonzero(np.isnan(self._low) | np.isnan(self._high))
        if missing.size:
            part = self.links.take(missing)
            weights = self.weights[self.links.index(missing)]
            if np.isnan(self._high[missing]).any():
                found = spectra.extremes(part, weights)
                self._low[missing], self._high[missing] = found[:, 0], found[:, 1]
            else:
                self._low[missing] = spectra.smallest(part, weights)
        return np.stack([self._low, self._high], axis=1)

    def degrees(self, graph: int) -> Longs:
        """Return the number of links at every node of one graph."""
        ends = self.links.edges[self.links.rows(graph)].ravel()
        return np.bincount(ends, minlength=self.links.nodes)


def digest(links: Links, values: Floats, order: Ints) -> str:
    """Return the SHA-256 of graphs, unscaled weights and order: the name of imported data in a recipe."""
    content = hashlib.sha256(str(links.nodes).encode())
    for array in (order, links.offsets, links.edges, values):
        content.update(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
    return content.hexdigest()


def distinct(keys: Iterable[bytes]) -> tuple[list[int], Ints]:
    """Return where each distinct key first occurs, and for every key the place of its first occurrence.

    Examples
    --------
    >>> first, order = distinct([b"ring", b"star", b"ring"])
    >>> first, order.tolist()
    ([0, 1], [0, 1, 0])
    """
    first: list[int] = []
    place: dict[bytes, int] = {}
    order = []
    for index, key in enumerate(keys):
        if key not in place:
            place[key] = len(first)
            first.append(index)
        order.append(place[key])
    return first, np.array(order, dtype=np.int32)
