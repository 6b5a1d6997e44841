"""Pools of distinct graphs with the weights of their gossip matrices and what is known of their spectra.

`Pool` holds all its graphs in flat arrays. `StreamedPool` draws each one, a pool of its own, when it is asked for.
`JoinedPool` puts pools of either kind one after another without copying them.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from adom.networks import spectra
from adom.networks.links import Floats, Ints, Links, Longs, frozen
from adom.networks.stream import Stream


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

    held = True

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
        scale: Floats | None = None,
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
        scale : (graphs,) float64, optional
            What to divide by instead of the largest eigenvalue, which it must not be below.
        """
        plain = np.ones(len(links.edges)) if relative is None else relative
        if known is None and scale is None and links.nodes <= spectra.AT_ONCE:
            known = spectra.extremes(links, plain)
        if known is None:
            high = spectra.scales(links, plain) if scale is None else scale
            low = np.full(links.graphs, np.nan)
        else:
            high = known[:, 1]
            low = known[:, 0] / high
        # Two ways to the same numbers; the first needs less memory.
        alike = relative is None
        weights = np.repeat(1.0 / high, links.sizes) if alike else plain / np.repeat(high, links.sizes)
        return cls(links, weights, low, np.ones(links.graphs), positions)

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

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.links.nodes

    @property
    def graphs(self) -> int:
        """The number of graphs."""
        return self.links.graphs

    @property
    def bytes(self) -> int:
        """The bytes of links, weights and positions."""
        return self.links.edges.nbytes + self.weights.nbytes + places_bytes(self.positions)

    @property
    def mean_links(self) -> float:
        """The mean number of links of a graph."""
        return len(self.links.edges) / self.graphs

    @property
    def typical(self) -> str:
        """The number of links of a graph, or the least and the most."""
        return span(self.links.sizes)

    def edges_of(self, g: int) -> Ints:
        """Return the links of one graph."""
        return self.links.edges[self.links.rows(g)]

    def weights_of(self, g: int) -> Floats:
        """Return the weights of its links."""
        return self.weights[self.links.rows(g)]

    def positions_of(self, g: int) -> Floats | None:
        """Return where its nodes lie."""
        return self.positions[g]

    def least_weight(self) -> float:
        """Return the smallest weight of all links."""
        return float(self.weights.min())

    def examined(self, used: Longs) -> Longs:
        """Return the graphs whose spectra speak for all that are used: those themselves."""
        return used

    def single(self, g: int) -> "Pool":
        """Return a pool of one graph."""
        chosen = self.links.rows(g)
        links = Links.of(self.nodes, [self.links.edges[chosen]])
        low, high = self._low[g : g + 1].copy(), self._high[g : g + 1].copy()
        return Pool(links, self.weights[chosen], low, high, [self.positions[g]])

    def largest(self, chosen: Longs) -> Floats:
        """Return the largest eigenvalue of each chosen W; the smallest are not computed for it."""
        if np.isnan(self._high[chosen]).any():
            self.spectrum()
        return self._high[chosen]

    def spectra(self, chosen: Longs) -> Floats:
        """Return the smallest positive and the largest eigenvalue of each chosen W."""
        return self.spectrum()[chosen]

    def spectra_known(self, chosen: Longs) -> bool:
        """Say whether these have been computed."""
        return not bool(np.isnan(self._low[chosen]).any() or np.isnan(self._high[chosen]).any())

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


class StreamedPool(Stream[Pool]):
    """Graphs that are drawn one by one; each W is a Laplacian divided so that its largest eigenvalue is at most 1."""

    def __init__(self, nodes: int, graphs: int, draw: Callable[[int], Pool], links: float, size: float) -> None:
        super().__init__(nodes, graphs, draw, links, size)
        self._lows: dict[int, float] = {}

    def edges_of(self, g: int) -> Ints:
        """Return the links of one graph."""
        return self[g].edges_of(0)

    def weights_of(self, g: int) -> Floats:
        """Return the weights of its links."""
        return self[g].weights_of(0)

    def positions_of(self, g: int) -> Floats | None:
        """Return where its nodes lie."""
        return self[g].positions_of(0)

    def least_weight(self) -> float:
        """Return a bound on the weights: all are positive."""
        return 0.0

    def single(self, g: int) -> Pool:
        """Return a pool of one graph."""
        return self[g]

    def largest(self, chosen: Longs) -> Floats:
        """Return 1 for every graph, without drawing it."""
        return np.ones(len(chosen))

    def spectra(self, chosen: Longs) -> Floats:
        """Return the smallest positive and the largest eigenvalue of each chosen W, drawn one after another."""
        for g in chosen.tolist():
            if g not in self._lows:
                self._lows[g] = float(self[g].spectrum()[0, 0])
        return np.stack([[self._lows[g] for g in chosen.tolist()], self.largest(chosen)], axis=1)

    def spectra_known(self, chosen: Longs) -> bool:
        """Say whether these have been computed."""
        return all(g in self._lows for g in chosen.tolist())


class JoinedPool:
    """Pools on the same nodes one after another, none of them copied."""

    nodes: int
    graphs: int
    held: bool
    bytes: int
    mean_links: float
    typical: str

    def __init__(self, members: Sequence["AnyPool"]) -> None:
        self._members = members
        self._starts = np.cumsum([0, *(member.graphs for member in members)])
        self.nodes = members[0].nodes
        self.graphs = int(self._starts[-1])
        self.held = all(member.held for member in members)
        self.bytes = sum(member.bytes for member in members)
        self.mean_links = sum(member.mean_links * member.graphs for member in members) / self.graphs
        self.typical = " or ".join(dict.fromkeys(member.typical for member in members))

    def _at(self, g: int) -> tuple["AnyPool", int]:
        """Return the member that graph g belongs to, and its number there."""
        which = int(np.searchsorted(self._starts, g, side="right")) - 1
        return self._members[which], g - int(self._starts[which])

    def _parts(self, chosen: Longs) -> Iterator[tuple["AnyPool", Longs, int]]:
        """Yield each member, which of its own graphs are among the chosen (ascending), and where it starts."""
        for member, start in zip(self._members, self._starts.tolist(), strict=False):
            own = chosen[(chosen >= start) & (chosen < start + member.graphs)] - start
            if len(own):
                yield member, own, start

    def edges_of(self, g: int) -> Ints:
        """Return the links of one graph."""
        member, own = self._at(g)
        return member.edges_of(own)

    def weights_of(self, g: int) -> Floats:
        """Return the weights of its links."""
        member, own = self._at(g)
        return member.weights_of(own)

    def positions_of(self, g: int) -> Floats | None:
        """Return where its nodes lie."""
        member, own = self._at(g)
        return member.positions_of(own)

    def least_weight(self) -> float:
        """Return a bound on the weights of all links."""
        return min(member.least_weight() for member in self._members)

    def single(self, g: int) -> Pool:
        """Return a pool of one graph."""
        member, own = self._at(g)
        return member.single(own)

    def examined(self, used: Longs) -> Longs:
        """Return the graphs whose spectra speak for all that are used: those that speak for each member."""
        return np.concatenate([member.examined(own) + start for member, own, start in self._parts(used)])

    def largest(self, chosen: Longs) -> Floats:
        """Return the largest eigenvalue of each chosen W, ascending in g."""
        return np.concatenate([member.largest(own) for member, own, _ in self._parts(chosen)])

    def spectra(self, chosen: Longs) -> Floats:
        """Return the smallest positive and the largest eigenvalue of each chosen W, ascending in g."""
        return np.concatenate([member.spectra(own) for member, own, _ in self._parts(chosen)])

    def spectra_known(self, chosen: Longs) -> bool:
        """Say whether these have been computed."""
        return all(member.spectra_known(own) for member, own, _ in self._parts(chosen))


AnyPool = Pool | StreamedPool | JoinedPool


def places_bytes(places: Sequence[Floats | None]) -> int:
    """Return the bytes of positions, those that several graphs share counted once."""
    return sum({place.ctypes.data: place.nbytes for place in places if place is not None}.values())


def span(sizes: Longs) -> str:
    """Return the least and the most of some numbers, or the only one."""
    least, most = sizes.min(), sizes.max()
    return str(least) if least == most else f"{least}..{most}"


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
