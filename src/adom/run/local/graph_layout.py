"""Graphs of a network as arrays of a compiled loop: all at once, or window by window.

A network that is not held (`Network.held`), or whose matrices would not fit, is laid out for some rounds at a time;
while the device works on one window, a thread draws the next.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from ... import native
from ...networks import DirectedNetwork, Network
from ...util import arrays
from .gossip import DenseMatrices, Graphs, Matrices, PaddedMatrices, SparseMatrices

Array = Any
DENSE_NODES = 256
"""Nodes above which links are cheaper than a dense product even for well connected graphs."""
POOL_BYTES = 2**31
"""Matrices of a whole network beyond which they are laid out window by window."""
WINDOW_BYTES = 2**28
"""Approximate size of one window; it holds one round at least."""
SLACK = 1.1
"""Room for windows with more links than the first, so that the same program fits them."""
CROWDED = 4
"""Largest degree, as a multiple of the mean, to which lists of neighbours are padded."""


class GraphLayout:
    """Matrices of the rounds to come, whole or window by window.

    Parameters
    ----------
    network : Network or DirectedNetwork
    directed : bool
        Whether R and C are wanted instead of W.
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
            return self._lay_out(range(self.network.graphs), self.network.order, 0), np.iinfo(np.int64).max
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
        filled = np.concatenate([pool, np.full(rounds - pool.size, pool[-1])])  # always the same shapes
        return self._lay_out(filled, order, first)

    def _lay_out(self, pool: Any, order: np.ndarray, first: int) -> Graphs:
        network = self.network
        arcs_of = {g: weighted_arcs(network, g, self.directed) for g in {int(g) for g in pool}}
        rounds = [arcs_of[int(g)] for g in pool]
        arcs = [pairs for pairs, _ in rounds]
        counters = (
            np.asarray(order, dtype=np.int32),
            np.int64(first),
            np.array([len(a) for a in arcs], dtype=np.int64),
        )
        columns = zip(*(weighted for _, weighted in rounds), strict=True)  # one for each matrix of a round
        matrices = [self._matrices(arcs, *map(list, zip(*column, strict=True))) for column in columns]
        if self.directed:
            R, C = matrices
            return Graphs(None, R, C, *counters, np.float64(1.0))
        assert isinstance(network, Network)
        return Graphs(matrices[0], None, None, *counters, np.float64(network.lambda_max))

    def _matrices(self, arcs: list[np.ndarray], weights: list[np.ndarray], sums: list[np.ndarray]) -> Matrices:
        n = self.network.nodes
        self.kind = self.kind or _kind(n, arcs)
        if self.kind is DenseMatrices:
            values = arrays.zeros((len(arcs), n, n))
            for matrix, pairs, weight, row_sum in zip(values, arcs, weights, sums, strict=True):
                matrix[pairs[:, 1], pairs[:, 0]] = weight
                matrix[np.arange(n), np.arange(n)] = row_sum - matrix.sum(axis=1)
            return DenseMatrices(values, np.stack(sums))
        degrees = np.stack([np.bincount(pairs[:, 1], minlength=n) for pairs in arcs])
        start = np.zeros((len(arcs), n + 1), dtype=np.int32)
        np.cumsum(degrees, axis=1, out=start[:, 1:])
        need = int(degrees.max() if self.kind is PaddedMatrices else start[:, -1].max())
        if need > self.width:
            self.width = _rounded(need) if self.whole else int(SLACK * need) + 1
        if self.kind is PaddedMatrices:
            return self._padded(arcs, weights, sums, start)
        sender, share = arrays.zeros((len(arcs), self.width), np.int32), arrays.zeros((len(arcs), self.width))
        # The kernels find the receiver of a link by `start`.
        receiver = arrays.empty((len(arcs), 0 if native.usable() else self.width), np.int32)
        receiver[...] = n - 1
        for g, (pairs, weight) in enumerate(zip(arcs, weights, strict=True)):
            order, count = by_receiver(pairs, n), len(pairs)
            sender[g, :count] = pairs[order, 0]
            receiver[g, :count] = pairs[order[: receiver.shape[1]], 1]
            share[g, :count] = weight[order]
        return SparseMatrices(start, receiver, sender, share, np.stack(sums))

    def _padded(
        self, arcs: list[np.ndarray], weights: list[np.ndarray], sums: list[np.ndarray], start: np.ndarray
    ) -> PaddedMatrices:
        n = self.network.nodes
        neighbour, share = arrays.zeros((len(arcs), n, self.width), np.int32), arrays.zeros((len(arcs), n, self.width))
        for g, (pairs, weight) in enumerate(zip(arcs, weights, strict=True)):
            order = by_receiver(pairs, n)
            sender, receiver = pairs[order].T
            slot = np.arange(len(pairs)) - start[g, receiver]
            neighbour[g, receiver, slot], share[g, receiver, slot] = sender, weight[order]
        return PaddedMatrices(neighbour, share, np.stack(sums))


def _kind(n: int, arcs: list[np.ndarray]) -> type[Matrices]:
    """Choose the fastest layout on this device."""
    if native.usable():
        return SparseMatrices
    if n <= DENSE_NODES:
        return DenseMatrices
    largest = max(int(np.bincount(pairs[:, 1]).max()) for pairs in arcs)
    even = largest <= CROWDED * max(len(pairs) for pairs in arcs) / n
    return PaddedMatrices if even and jax.default_backend() != "cpu" else SparseMatrices


def _rounded(need: int) -> int:
    """Round a number of links up, in eight steps per doubling, so that similar networks share a program.

    Without the kernels, which skip the padding, nothing is added.

    Examples
    --------
    >>> [_rounded(need) for need in (7, 1000, 1025)] if native.usable() else [7, 1024, 1152]
    [7, 1024, 1152]
    """
    step = max(1, 1 << need.bit_length() >> 4)
    return -(-need // step) * step if native.usable() else need


def _bytes(network: Network | DirectedNetwork, g: int, directed: bool) -> int:
    """Estimate the size of the matrices of one graph."""
    n, links = network.nodes, len(_arcs(network, g))
    matrix = 8 * n * n if n <= DENSE_NODES and not native.usable() else 16 * links + 16 * n
    return matrix * (2 if directed else 1)


def _arcs(network: Network | DirectedNetwork, g: int) -> np.ndarray:
    """Return (sender, receiver) pairs; an undirected link goes both ways."""
    if isinstance(network, DirectedNetwork):
        return network.arcs(g)
    edges = network.edges(g)
    return np.concatenate([edges, edges[:, ::-1]])


def weighted_arcs(
    network: Network | DirectedNetwork, g: int, directed: bool
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Return the (sender, receiver) pairs of a graph and, for W or for R and C, their weights and the sums of rows."""
    arcs, n = _arcs(network, g), network.nodes
    if not directed:
        assert isinstance(network, Network)
        weights = np.tile(network.weights(g), 2)
        return arcs, [(-weights, np.zeros(n))]
    inward, outward = (1.0 / (1 + np.bincount(arcs[:, end], minlength=n)) for end in (1, 0))
    pushed = outward[arcs[:, 0]]
    arrives = outward + np.bincount(arcs[:, 1], weights=pushed, minlength=n)
    return arcs, [(inward[arcs[:, 1]], np.ones(n)), (pushed, arrives)]


def by_receiver(pairs: np.ndarray, n: int) -> np.ndarray:
    """Return the order by receiver, then sender."""
    order: np.ndarray = np.argsort(pairs[:, 1].astype(np.int64) * n + pairs[:, 0], kind="stable")
    return order
