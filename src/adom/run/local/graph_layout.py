"""Graphs of a network as arrays for the compiled loop: all at once, or window by window.

A network that is not held (`Network.held`), or whose matrices would not fit, is laid out for some rounds at a time;
while the device works on one window, a thread draws the next. At the end: how long messages take to reach all nodes.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from ... import native
from ...errors import InputError
from ...native import graphs as compiled
from ...networks import DirectedNetwork, LossyNetwork, Network
from ...util import arrays
from ..links import lossy_links
from .gossip import DenseMatrices, Graphs, Matrices, PaddedMatrices, SparseMatrices

Array = Any
DENSE_NODES = 256
"""Nodes above which sums over links are cheaper than a dense product, even for well connected graphs."""
POOL_BYTES = 2**31
"""Networks with larger matrices are laid out window by window."""
WINDOW_BYTES = 2**25
"""Approximate size of a window of at least one round: small enough to stay in the last-level cache until used."""
SLACK = 1.1
"""Spare room for windows with more links than the first, so that they fit the same program."""
FOREVER = int(np.iinfo(np.int64).max)
"""End round of graphs that repeat for ever."""
CROWDED = 4
"""Lists of neighbours are padded only if the largest degree is at most this multiple of the mean."""


class GraphLayout:
    """Matrices of the coming rounds, all at once or window by window.

    Parameters
    ----------
    network : Network or DirectedNetwork
    directed : bool
        Whether to lay out R and C instead of W.
    """

    def __init__(self, network: Network | DirectedNetwork, directed: bool) -> None:
        self.network, self.directed = network, directed
        self.kind: type[Matrices] | None = None
        self.width = 0
        sizes = [_bytes(network, g, directed) for g in {int(network.order[0]), int(network.order[-1])}]
        self.whole = network.held and max(sizes) * network.graphs <= POOL_BYTES
        self.rounds = network.period if self.whole else max(1, WINDOW_BYTES // max(sizes))
        self._ahead: tuple[int, int, Future[Graphs]] | None = None
        self._thread = None if self.whole else ThreadPoolExecutor(1, "adom-graphs")

    def window(self, first: int, rounds: int = 0) -> tuple[Graphs, int]:
        """Return the graphs from round `first` on, as NumPy arrays, and the round at which they end."""
        if self.whole or self._thread is None:
            every = range(self.network.graphs)
            return self.lay_out(every, self.network.order, 0, len(every)), FOREVER
        rounds = max(rounds, self.rounds)
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == first and ahead[1] >= rounds:
            rounds, graphs = ahead[1], ahead[2].result()
        else:
            graphs = self._stretch(first, rounds)
        self._ahead = first + rounds, rounds, self._thread.submit(self._stretch, first + rounds, rounds)
        return graphs, first + rounds

    def close(self) -> None:
        """Stop drawing ahead."""
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)

    def _stretch(self, first: int, rounds: int) -> Graphs:
        used = self.network.order[np.arange(first, first + rounds) % self.network.period]
        pool, order = np.unique(used, return_inverse=True)
        return self.lay_out(pool.tolist(), order, first, rounds)

    def lay_out(self, pool: Sequence[int], order: np.ndarray, first: int, room: int) -> Graphs:
        """Lay out the graphs of `pool` in arrays with room for `room` graphs: all windows have the same shapes."""
        network, links = self.network, np.zeros(room, dtype=np.int64)
        links[: len(pool)] = [_count(network, g) for g in pool]
        self.kind = self.kind or _kind(network, pool)
        matrices = self._matrices(pool, room, int(links.max()))
        counters = np.asarray(order, dtype=np.int32), np.int64(first), links
        if self.directed:
            R, C = matrices
            return Graphs(None, R, C, *counters, np.float64(1.0))
        assert isinstance(network, Network)
        loss = lossy_links(network, pool, 0, network.nodes) if isinstance(network, LossyNetwork) else None
        return Graphs(matrices[0], None, None, *counters, np.float64(network.lambda_max), loss=loss)

    def _matrices(self, pool: Sequence[int], room: int, links: int) -> list[Matrices]:
        n, count = self.network.nodes, 2 if self.directed else 1
        sums = [arrays.zeros((room, n)) for _ in range(count)]
        if self.kind is SparseMatrices:
            return self._sparse(pool, room, links, sums)
        graphs = [Rows.empty(n, _count(self.network, g), [one[row] for one in sums]) for row, g in enumerate(pool)]
        for g, rows in zip(pool, graphs, strict=True):
            rows.write(self.network, g, self.directed)
        if self.kind is PaddedMatrices:
            return self._padded(graphs, room, sums)
        values = [arrays.zeros((room, n, n)) for _ in range(count)]
        own = np.arange(n)
        for row, rows in enumerate(graphs):
            for matrix, share, row_sum in zip((one[row] for one in values), rows.shares, rows.sums, strict=True):
                matrix[rows.receiver, rows.sender] = share
                matrix[own, own] = row_sum - matrix.sum(axis=1)
        return [DenseMatrices(*matrix) for matrix in zip(values, sums, strict=True)]

    def _sparse(self, pool: Sequence[int], room: int, links: int, sums: list[np.ndarray]) -> list[Matrices]:
        n, width = self.network.nodes, self.widened(links)
        start, sender = arrays.zeros((room, n + 1), np.int32), arrays.empty((room, width), np.int32)
        shares = [arrays.empty((room, width)) for _ in sums]
        # The kernels find the receiver of a link by `start`.
        receiver = arrays.empty((room, 0 if native.usable() else width), np.int32)
        receiver[...] = n - 1
        for row, g in enumerate(pool):
            rows = Rows(start[row], sender[row], [share[row] for share in shares], [one[row] for one in sums])
            count = rows.write(self.network, g, self.directed)
            for values in (rows.sender, *rows.shares):
                values[count:] = 0
            if receiver.size:
                receiver[row, :count] = rows.receiver
        return [SparseMatrices(start, receiver, sender, share, one) for share, one in zip(shares, sums, strict=True)]

    def _padded(self, graphs: list["Rows"], room: int, sums: list[np.ndarray]) -> list[Matrices]:
        n, width = self.network.nodes, self.widened(max(int(np.diff(rows.start).max()) for rows in graphs))
        neighbour = arrays.zeros((room, n, width), np.int32)
        shares = [arrays.zeros((room, n, width)) for _ in sums]
        for row, rows in enumerate(graphs):
            receiver = rows.receiver
            slot = np.arange(len(receiver)) - rows.start[receiver]
            neighbour[row, receiver, slot] = rows.sender
            for padded, share in zip(shares, rows.shares, strict=True):
                padded[row, receiver, slot] = share
        return [PaddedMatrices(neighbour, share, one) for share, one in zip(shares, sums, strict=True)]

    def widened(self, need: int) -> int:
        """Return the width of the arrays, widened to at least `need`."""
        if need > self.width:
            self.width = _rounded(need) if self.whole else int(SLACK * need) + 1
        return self.width


class Rows(NamedTuple):
    """One graph in CSR form: entries start[i], ..., start[i + 1] - 1 are the links to node i, sorted by sender."""

    start: np.ndarray  # (nodes + 1,)
    sender: np.ndarray  # (links,) or longer
    shares: list[np.ndarray]  # weights of W, or of R and C
    sums: list[np.ndarray]  # row sums of these matrices

    @classmethod
    def empty(cls, nodes: int, links: int, sums: list[np.ndarray]) -> "Rows":
        """Return arrays with room for a graph; `sums` must be zeros."""
        shares = [np.empty(links) for _ in sums]
        return cls(np.zeros(nodes + 1, dtype=np.int32), np.empty(links, dtype=np.int32), shares, sums)

    @property
    def receiver(self) -> np.ndarray:
        """The node that each entry belongs to."""
        return np.repeat(np.arange(len(self.start) - 1, dtype=np.int32), np.diff(self.start))

    def write(self, network: Network | DirectedNetwork, g: int, directed: bool) -> int:
        """Write graph g; return how many entries it has."""
        if compiled.usable() and not directed:
            assert isinstance(network, Network)
            compiled.rows(network.edges(g), network.weights(g), self.start, self.sender, *self.shares)
            return int(self.start[-1])
        arcs, weighted = weighted_arcs(network, g, directed)
        order, count = by_receiver(arcs, network.nodes), len(arcs)
        np.cumsum(np.bincount(arcs[:, 1], minlength=network.nodes), out=self.start[1:])
        self.sender[:count] = arcs[order, 0]
        for share, row_sum, (weights, sums) in zip(self.shares, self.sums, weighted, strict=True):
            share[:count] = weights[order]
            row_sum[:] = sums
        return count


def _kind(network: Network | DirectedNetwork, pool: Sequence[int]) -> type[Matrices]:
    """Choose the fastest layout on this device."""
    n = network.nodes
    if native.usable():
        return SparseMatrices
    if n <= DENSE_NODES:
        return DenseMatrices
    largest = max(int(np.bincount(messages(network, g)[:, 1]).max()) for g in pool)
    even = largest <= CROWDED * max(_count(network, g) for g in pool) / n
    return PaddedMatrices if even and jax.default_backend() != "cpu" else SparseMatrices


def _rounded(need: int) -> int:
    """Round a number of links up, in eight steps per doubling, so that similar networks share a program.

    Only the kernels skip the padding, so without them nothing is added.

    Examples
    --------
    >>> [_rounded(need) for need in (7, 1000, 1025)] if native.usable() else [7, 1024, 1152]
    [7, 1024, 1152]
    """
    step = max(1, 1 << need.bit_length() >> 4)
    return -(-need // step) * step if native.usable() else need


def _bytes(network: Network | DirectedNetwork, g: int, directed: bool) -> int:
    """Estimate the size of the matrices of one graph."""
    n, links = network.nodes, _count(network, g)
    matrix = 8 * n * n if n <= DENSE_NODES and not native.usable() else 16 * links + 16 * n
    return matrix * (2 if directed else 1)


def _count(network: Network | DirectedNetwork, g: int) -> int:
    """Return the number of directed links of a graph."""
    return len(network.arcs(g)) if isinstance(network, DirectedNetwork) else 2 * len(network.edges(g))


def weighted_arcs(
    network: Network | DirectedNetwork, g: int, directed: bool
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Return the (sender, receiver) pairs of a graph and, for W or for R and C, their weights and the row sums."""
    arcs, n = messages(network, g), network.nodes
    if not directed:
        assert isinstance(network, Network)
        weights = np.tile(network.weights(g), 2)
        return arcs, [(-weights, np.zeros(n))]
    inward, outward = (1.0 / (1 + np.bincount(arcs[:, end], minlength=n)) for end in (1, 0))
    pushed = outward[arcs[:, 0]]
    arrives = outward + np.bincount(arcs[:, 1], weights=pushed, minlength=n)
    return arcs, [(inward[arcs[:, 1]], np.ones(n)), (pushed, arrives)]


def by_receiver(pairs: np.ndarray, n: int) -> np.ndarray:
    """Return the order that sorts pairs by receiver, then sender."""
    order: np.ndarray = np.argsort(pairs[:, 1].astype(np.int64) * n + pairs[:, 0], kind="stable")
    return order


def flood_rounds(network: Network | DirectedNetwork, clock: int) -> int:
    """Return how many rounds from `clock` on carry a message from any node to every other.

    Examples
    --------
    >>> from adom import networks
    >>> flood_rounds(networks.ring(9), 0), flood_rounds(networks.complete(9), 5)
    (4, 1)
    """
    n = network.nodes
    if n > FLOOD_NODES:  # each window, one round if graphs are connected, informs at least one more node
        return (n - 1) * network.window
    return _rounds_until_known(network, clock, np.eye(n, dtype=bool))


FLOOD_NODES = 4000
"""Nodes above which the rounds of a flood are bounded instead of counted."""
SOURCES = 16
"""Number of nodes whose messages are followed if there are too many to follow all."""


def flood_estimate(network: Network | DirectedNetwork, clock: int) -> int:
    """Return about how many rounds from `clock` on carry a message from any node to every other.

    In a large network only the messages of `SOURCES` nodes are followed, and their time is doubled. On a fixed graph
    any message reaches one of these nodes in that time, and all other nodes in twice that time.

    Examples
    --------
    >>> from adom import networks
    >>> flood_estimate(networks.ring(9), 0), flood_estimate(networks.ring(1000), 0)
    (4, 1000)
    """
    n = network.nodes
    if n <= FEW_NODES:
        return flood_rounds(network, clock)
    known = np.zeros((n, SOURCES), dtype=bool)
    known[np.linspace(0, n - 1, SOURCES).astype(int), np.arange(SOURCES)] = True
    return 2 * _rounds_until_known(network, clock, known)


FEW_NODES = 256
"""Nodes up to which every node's message is followed."""


def _rounds_until_known(network: Network | DirectedNetwork, clock: int, known: np.ndarray) -> int:
    """Return how many rounds it takes until every node knows all messages, given who knows which at first."""
    n = network.nodes
    for count in range(4 * n * max(1, network.period)):
        if known.all():
            return count
        g = int(network.order[(clock + count) % network.period])
        known = known | _heard(messages(network, g), known)
    raise InputError(f"not every node of {network!r} can reach every other; take a connected network")


def _heard(arcs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return what every node hears in a round over arcs (from, to)."""
    heard = np.zeros_like(known)
    if len(arcs):
        senders, receivers = arcs[np.argsort(arcs[:, 1], kind="stable")].T
        starts = np.flatnonzero(np.append(True, receivers[1:] != receivers[:-1]))
        heard[receivers[starts]] = np.logical_or.reduceat(known[senders], starts, axis=0)
    return heard


def messages(network: Network | DirectedNetwork, g: int) -> np.ndarray:
    """Return the (sender, receiver) pairs of a graph; an undirected link goes both ways."""
    if isinstance(network, DirectedNetwork):
        return network.arcs(g)
    edges = network.edges(g)
    return np.concatenate([edges, edges[:, ::-1]])
