"""Pools of graphs: all in memory ("held"), or drawn on demand with only the most recent ones cached.

Graphs that would take more than `HELD_BYTES` together are not held: graph g is then drawn from its own seed whenever it
is needed. The same seed gives the same graphs, held or not.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import spectra
from .edges import Bools, Floats, Ints, Links, Longs, component_labels, frozen

HELD_BYTES = 2**30
"""The most bytes of links, weights and positions of all graphs for which a pool is held."""
KEPT_BYTES = 2**28
"""The most bytes of recently drawn graphs that a pool caches; it always caches at least two graphs."""
EXAMINED = 8
"""Of graphs that are drawn on demand, how many of those in use, spread evenly, represent the spectra of all."""
EDGE, WEIGHT, POINT = 8, 8, 16
"""Bytes of a link's two ends, of its weight, and of a node's position."""

Positions = Sequence[Floats | None] | Floats | None


class Graph(NamedTuple):
    """One graph of a pool; a directed one has no weights."""

    edges: Ints
    weights: Floats | None = None
    positions: Floats | None = None
    added: int = 0  # links that a repair added


class Batch:
    """Graphs in memory, in flat arrays.

    Parameters
    ----------
    links : Links
        For directed graphs the rows are arcs (sender, receiver), sorted by (receiver, sender).
    weights : (total,) float64, optional
        One weight per row of `links.edges`; W_uv = -weight. Directed graphs have none.
    positions : sequence of (nodes, 2) arrays or None, optional
        The positions of each graph's nodes, if they have any.
    low, high : (graphs,) float64, optional
        The smallest positive and the largest eigenvalue of each W, if known.
    apart : (graphs,) bool, optional
        Which graphs are disconnected; by default none. Their smallest eigenvalue counts as 0.
    added : int
        The number of links that a repair added.
    """

    def __init__(
        self,
        links: Links,
        weights: Floats | None = None,
        positions: Positions = None,
        low: Floats | None = None,
        high: Floats | None = None,
        apart: Bools | None = None,
        added: int = 0,
    ) -> None:
        self.links, self.weights, self.added = links, weights, added
        self.apart: Bools = np.zeros(links.graphs, dtype=np.bool_) if apart is None else apart
        self.nodes, self.graphs, self.sizes = links.nodes, links.graphs, links.sizes
        points: Any = [None] * links.graphs if positions is None else positions
        self.positions: list[Floats | None] = [None if cloud is None else frozen(cloud) for cloud in points]
        self._low, self._high = low if low is None else np.where(self.apart, 0.0, low), high
        self.connected = not self.apart.any()
        self.least_weight = 1.0 if weights is None else float(weights.min(initial=np.inf))

    @classmethod
    def laplacian(
        cls,
        links: Links,
        relative: Floats | None = None,
        known: Floats | None = None,
        positions: Positions = None,
        scale: float | None = None,
        *,
        joined: bool = True,
        added: int = 0,
    ) -> "Batch":
        """Set each W to the graph's Laplacian divided by its largest eigenvalue; W is 0 for a graph without links.

        `relative` has the weights of the Laplacian, all 1 by default. `known`, shape (graphs, 2), has its extreme
        eigenvalues if they are known. `scale` is a divisor to use instead; it must not be below the largest eigenvalue.
        `joined` says that all graphs are connected.
        """
        apart = None if joined else np.array([component_labels(links.nodes, e)[0] > 1 for e in links.each()])
        high = np.full(links.graphs, 1.0 if scale is None else scale)
        if known is None and scale is None:
            plain = np.ones(len(links.edges)) if relative is None else relative
            if links.nodes <= spectra.AT_ONCE:
                known = spectra.extremes(links, plain)
            else:
                linked = links.sizes > 0
                high[linked] = spectra.scales(*links.some(plain, linked))
        if known is not None:
            high = np.where(links.sizes > 0, known[:, 1], 1.0)
        low = None if known is None else known[:, 0] / high
        # Both give the same numbers; the first needs less memory.
        alike = relative is None
        weights = np.repeat(1.0 / high, links.sizes) if alike else relative / np.repeat(high, links.sizes)
        return cls(links, weights, positions, low, np.ones(links.graphs), apart, added)

    @property
    def bytes(self) -> int:
        """The bytes of links, weights and positions; positions shared by several graphs count once."""
        points = {cloud.ctypes.data: cloud.nbytes for cloud in self.positions if cloud is not None}
        weights = 0 if self.weights is None else self.weights.nbytes
        return self.links.edges.nbytes + weights + sum(points.values())

    def graph(self, g: int) -> Graph:
        """Return one graph."""
        rows = self.links.rows(g)
        weights = None if self.weights is None else frozen(self.weights[rows])
        return Graph(frozen(self.links.edges[rows]), weights, self.positions[g])

    def single(self, g: int) -> "Batch":
        """Return a batch of one graph."""
        graph = self.graph(g)
        low, high = (None if values is None else values[g : g + 1] for values in (self._low, self._high))
        apart = self.apart[g : g + 1]
        return Batch(Links.of(self.nodes, [graph.edges]), graph.weights, [graph.positions], low, high, apart)

    def largest(self) -> Floats:
        """Return the largest eigenvalue of each W, without the smallest ones if it is known already."""
        return self.spectra()[:, 1] if self._high is None else self._high

    def spectra(self) -> Floats:
        """Return the smallest positive and the largest eigenvalue of each W, computed on first use."""
        if self._low is None or self._high is None:
            assert self.weights is not None
            if self._high is None:
                self._low, self._high = spectra.extremes(self.links, self.weights).T
            else:
                self._low = np.zeros(self.graphs)
                self._low[~self.apart] = spectra.smallest(*self.links.some(self.weights, ~self.apart))
        return np.stack([self._low, self._high], axis=1)

    @property
    def spectra_known(self) -> bool:
        """Whether the spectra have been computed."""
        return self._low is not None and self._high is not None


class Drawn(NamedTuple):
    """Graphs that are drawn on demand. Each W is scaled to a largest eigenvalue of at most 1.

    Attributes
    ----------
    nodes, graphs : int
    draw : callable
        ``draw(g)`` returns graph g as a batch: a pure, thread-safe function of g.
    links : float
        The approximate number of links of a graph.
    bytes : int
        The approximate number of bytes of all graphs.
    connected : bool
        Whether every graph is known to be connected.
    lows : dict
        The smallest positive eigenvalues computed so far, by graph.
    """

    nodes: int
    graphs: int
    draw: Callable[[int], Batch]
    links: float
    bytes: int
    connected: bool
    lows: dict[int, float]


class Pool:
    """The graphs of some sources on the same nodes, one source after another, without copies.

    Parameters
    ----------
    sources : Batch or Drawn
    """

    def __init__(self, *sources: Batch | Drawn) -> None:
        self.sources = sources
        self._starts = np.cumsum([0, *(source.graphs for source in sources)])
        self.nodes: int = sources[0].nodes
        self.graphs: int = int(self._starts[-1])
        self.bytes: int = sum(source.bytes for source in sources)
        self.connected: bool = all(source.connected for source in sources)
        self.held: bool = all(isinstance(source, Batch) for source in sources)
        self.__setstate__({})

    def graph(self, g: int) -> Graph:
        """Return one graph."""
        source, inside = self._place(g)
        return source.graph(inside) if isinstance(source, Batch) else self.single(g).graph(0)

    def single(self, g: int) -> Batch:
        """Return a batch of one graph; if several threads ask for one that must be drawn, it is drawn once."""
        source, inside = self._place(g)
        if isinstance(source, Batch):
            return source.single(inside)
        with self._lock:
            if g in self._kept:
                self._kept.move_to_end(g)
                return self._kept[g]
            turn = self._turns.setdefault(g, threading.Lock())
        with turn:
            with self._lock:
                if g in self._kept:
                    return self._kept[g]
            graph = source.draw(inside)
            with self._lock:
                self._kept[g] = graph
                self._turns.pop(g, None)
                total = sum(batch.bytes for batch in self._kept.values())
                while total > KEPT_BYTES and len(self._kept) > 2:
                    total -= self._kept.popitem(last=False)[1].bytes
        return graph

    @property
    def mean_links(self) -> float:
        """The mean number of links of a graph."""
        sums = (len(each.links.edges) if isinstance(each, Batch) else each.links * each.graphs for each in self.sources)
        return sum(sums) / self.graphs

    @property
    def typical(self) -> str:
        """The number of links per graph as text, as a range if it varies."""
        if self.held:
            return span(np.concatenate([each.sizes for each in self.sources if isinstance(each, Batch)]))
        texts = (span(each.sizes) if isinstance(each, Batch) else f"about {each.links:.3g}" for each in self.sources)
        return " or ".join(dict.fromkeys(texts))

    @property
    def least_weight(self) -> float:
        """The smallest weight of all links; 0 if they are not all known, which are all positive then."""
        return min(each.least_weight if isinstance(each, Batch) else 0.0 for each in self.sources)

    @property
    def added(self) -> int:
        """The number of links that a repair added to graphs in memory."""
        return sum(each.added for each in self.sources if isinstance(each, Batch))

    def examined(self, used: Longs) -> Longs:
        """Return the graphs whose spectra represent all used graphs: `EXAMINED` of a source that is drawn."""
        chosen = []
        for source, inside, start in self._parts(used):
            count = len(inside) if isinstance(source, Batch) else min(EXAMINED, len(inside))
            chosen.append(inside[np.linspace(0, len(inside) - 1, count).round().astype(np.int64)] + start)
        return np.concatenate(chosen)

    def largest(self, chosen: Longs) -> Floats:
        """Return the largest eigenvalue of each chosen W, ascending in g; 1 where it must be drawn."""
        found = []
        for source, inside, _ in self._parts(chosen):
            found.append(source.largest()[inside] if isinstance(source, Batch) else np.ones(len(inside)))
        return np.concatenate(found)

    def spectra(self, chosen: Longs) -> Floats:
        """Return the smallest positive and the largest eigenvalue of each chosen W, ascending in g."""
        found = []
        for source, inside, start in self._parts(chosen):
            if isinstance(source, Batch):
                found.append(source.spectra()[inside])
                continue
            for g in inside.tolist():  # one graph in memory at a time
                if g not in source.lows:
                    source.lows[g] = float(self.single(g + start).spectra()[0, 0])
            found.append(np.array([[source.lows[g], 1.0] for g in inside.tolist()]))
        return np.concatenate(found)

    def spectra_known(self, chosen: Longs) -> bool:
        """Return whether the spectra of the chosen graphs have been computed."""
        return all(
            source.spectra_known if isinstance(source, Batch) else source.lows.keys() >= set(inside.tolist())
            for source, inside, _ in self._parts(chosen)
        )

    def _place(self, g: int) -> tuple[Batch | Drawn, int]:
        """Return the source that has graph g, and the graph's number in it."""
        which = int(np.searchsorted(self._starts, g, side="right")) - 1
        return self.sources[which], g - int(self._starts[which])

    def _parts(self, chosen: Longs) -> Iterator[tuple[Batch | Drawn, Longs, int]]:
        """Yield each source with chosen graphs, the numbers of these in it, and its first number; `chosen` ascends."""
        for source, start in zip(self.sources, self._starts.tolist(), strict=False):
            inside = chosen[(chosen >= start) & (chosen < start + source.graphs)] - start
            if len(inside):
                yield source, inside, start

    def __getstate__(self) -> dict[str, Any]:
        """Leave out locks and cached graphs, which belong to this process."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_kept", "_turns", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._kept: OrderedDict[int, Batch] = OrderedDict()
        self._turns: dict[int, threading.Lock] = {}
        self._lock = threading.Lock()


def pool_of(
    nodes: int,
    graphs: int,
    draw: Callable[..., Batch],
    links: float,
    *,
    weights: bool = True,
    positions: bool = False,
    lazy: bool = False,
    connected: bool = True,
) -> Pool:
    """Return a pool of graphs, held if they are expected to fit in memory and `lazy` is False.

    ``draw(*chosen)`` returns the chosen graphs as one batch. `links` is the expected number of links per graph;
    `weights` and `positions` say whether graphs have these; `connected` says that all graphs are connected.
    """
    size = graphs * (links * (EDGE + WEIGHT * weights) + nodes * POINT * positions)
    if lazy or size > HELD_BYTES:
        return Pool(Drawn(nodes, graphs, draw, links, int(size), connected, {}))
    return Pool(draw(*range(graphs)))


def gather(
    nodes: int,
    draw: Callable[[int], Graph],
    scale: float | None,
    *chosen: int,
    joined: bool = True,
    directed: bool = False,
) -> Batch:
    """Draw graphs, undirected ones with relative weights, one by one; `joined` says that all are connected."""
    edges, weights, positions, added = zip(*(draw(g) for g in chosen), strict=True)
    links = Links.of(nodes, edges)
    if directed:
        return Batch(links, positions=positions)
    relative = None if weights[0] is None else np.concatenate(weights)
    return Batch.laplacian(links, relative, positions=positions, scale=scale, joined=joined, added=sum(added))


def span(sizes: Longs) -> str:
    """Return the range of some numbers as text, or the number if all are equal."""
    least, most = sizes.min(), sizes.max()
    return str(least) if least == most else f"{least}..{most}"
