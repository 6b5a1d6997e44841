"""One communication round as arithmetic: W(k) v for all nodes at once, dense or sparse, counted.

Small networks are held as stacks of dense matrices, one product a round. Large ones are held as lists of directed
links, sorted by receiver: A v = diagonal * v + sum over links of weight * v[sender].
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..networks import DirectedNetwork, Network

Array = Any
DENSE_NODES = 256  # beyond, links are cheaper than a dense product even for well connected graphs
DENSE_BYTES = 2**30


class DenseMatrices(NamedTuple):
    """One matrix for every graph of the pool."""

    values: Array  # (graphs, nodes, nodes)

    def times(self, graph: Array, v: Array) -> Array:
        """Return A v for one graph of the pool."""
        return self.values[graph] @ v


class SparseMatrices(NamedTuple):
    """The links of every graph, filled up to the longest list with links of weight zero."""

    receiver: Array  # (graphs, links), sorted
    sender: Array
    weight: Array
    diagonal: Array  # (graphs, nodes)

    def times(self, graph: Array, v: Array) -> Array:
        """Return A v for one graph of the pool."""
        flow = self.weight[graph][:, None] * v[self.sender[graph]]
        received = jax.ops.segment_sum(flow, self.receiver[graph], v.shape[0], indices_are_sorted=True)
        return self.diagonal[graph][:, None] * v + received


Matrices = DenseMatrices | SparseMatrices


class Graphs(NamedTuple):
    """A network as the engine holds it: W, or R and C for a method that runs on directed graphs."""

    W: Matrices | None
    R: Matrices | None
    C: Matrices | None
    order: Array  # (period,): which graph round k uses
    links: Array  # (graphs,): directed links, over each of which a row travels in a round
    lambda_max: Array


def lay_out(network: Network | DirectedNetwork, directed: bool = False) -> Graphs:
    """Choose the layout for a network and build it, as NumPy arrays; `directed` asks for R and C instead of W."""
    n, pool = network.nodes, range(network.graphs)
    arcs = [_arcs(network, g) for g in pool]
    links = np.array([len(a) for a in arcs], dtype=np.int64)
    order = np.asarray(network.order, dtype=np.int32)
    if not directed:
        assert isinstance(network, Network)
        weights = [np.tile(network.weights(g), 2) for g in pool]
        loops = [np.bincount(a[:, 1], weights=w, minlength=n) for a, w in zip(arcs, weights, strict=True)]
        W = _matrices(n, arcs, [-w for w in weights], loops)
        return Graphs(W, None, None, order, links, np.float64(network.lambda_max))
    inward = [1.0 / (1 + np.bincount(a[:, 1], minlength=n)) for a in arcs]
    outward = [1.0 / (1 + np.bincount(a[:, 0], minlength=n)) for a in arcs]
    R = _matrices(n, arcs, [share[a[:, 1]] for a, share in zip(arcs, inward, strict=True)], inward)
    C = _matrices(n, arcs, [share[a[:, 0]] for a, share in zip(arcs, outward, strict=True)], outward)
    return Graphs(None, R, C, order, links, np.float64(1.0))


def _arcs(network: Network | DirectedNetwork, g: int) -> np.ndarray:
    """Return (sender, receiver) pairs; an undirected link goes both ways."""
    if isinstance(network, DirectedNetwork):
        return network.arcs(g)
    edges = network.edges(g)
    return np.concatenate([edges, edges[:, ::-1]])


def _matrices(n: int, arcs: list[np.ndarray], weights: list[np.ndarray], diagonals: list[np.ndarray]) -> Matrices:
    if n <= DENSE_NODES and 8 * n * n * len(arcs) <= DENSE_BYTES:
        values = np.zeros((len(arcs), n, n))
        for matrix, pairs, weight, diagonal in zip(values, arcs, weights, diagonals, strict=True):
            matrix[pairs[:, 1], pairs[:, 0]] = weight
            matrix[np.arange(n), np.arange(n)] = diagonal
        return DenseMatrices(values)
    longest = max(len(pairs) for pairs in arcs)
    receiver = np.full((len(arcs), longest), n - 1, dtype=np.int32)
    sender, weight_of = np.zeros((len(arcs), longest), dtype=np.int32), np.zeros((len(arcs), longest))
    for g, (pairs, weight) in enumerate(zip(arcs, weights, strict=True)):
        ranks = np.lexsort((pairs[:, 0], pairs[:, 1]))
        sender[g, : len(pairs)], receiver[g, : len(pairs)] = pairs[ranks].T
        weight_of[g, : len(pairs)] = weight[ranks]
    return SparseMatrices(receiver, sender, weight_of, np.stack(diagonals))


class LocalGossip:
    """The network as a step sees it; after the step the engine reads `clock` and `floats` off again."""

    def __init__(self, graphs: Graphs, clock: Array, floats: Array) -> None:
        self.graphs, self.clock, self.floats = graphs, clock, floats

    def _round(self, width: int) -> Array:
        """Spend one round in which `width` numbers travel over every link; return its graph."""
        graph = self.graphs.order[self.clock % self.graphs.order.shape[0]]
        self.clock = self.clock + 1
        self.floats = self.floats + self.graphs.links[graph] * width
        return graph

    def __call__(self, *vectors: Array) -> Any:
        """Spend one round: every node sends its rows of all `vectors` over each of its links."""
        assert self.graphs.W is not None
        widths = [v.shape[-1] for v in vectors]
        mixed = self.graphs.W.times(self._round(sum(widths)), jnp.concatenate(vectors, axis=-1))
        if len(vectors) == 1:
            return mixed
        return tuple(jnp.split(mixed, np.cumsum(widths)[:-1], axis=-1))

    def average(self, *vectors: Array) -> Any:
        """Spend one round of averaging: M(k) v = v - W(k) v / lambda_max for every vector."""
        moved = self(*vectors)
        if len(vectors) == 1:
            return vectors[0] - moved / self.graphs.lambda_max
        return tuple(v - w / self.graphs.lambda_max for v, w in zip(vectors, moved, strict=True))

    def mix(self, v: Array, rounds: Array) -> Array:
        """Spend `rounds` rounds of averaging."""

        def body(_: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            v, clock, floats = carry
            inner = LocalGossip(self.graphs, clock, floats)
            return inner.average(v), inner.clock, inner.floats

        count = jnp.asarray(rounds).astype(jnp.int32)
        v, self.clock, self.floats = jax.lax.fori_loop(0, count, body, (v, self.clock, self.floats))
        return v

    def push_pull(self, pulled: Array, pushed: Array) -> tuple[Array, Array]:
        """Spend one round on a directed graph: R(k) pulled and C(k) pushed."""
        assert self.graphs.R is not None
        assert self.graphs.C is not None
        graph = self._round(pulled.shape[-1] + pushed.shape[-1])
        return self.graphs.R.times(graph, pulled), self.graphs.C.times(graph, pushed)

    def project(self, v: Array) -> Array:
        """Spend one round of full averaging, as if every node were linked with every other."""
        n = v.shape[0]
        self.clock = self.clock + 1
        self.floats = self.floats + n * (n - 1) * v.shape[-1]
        return v - v.mean(axis=0)
