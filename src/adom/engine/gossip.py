"""One communication round as arithmetic: W(k) v for all nodes at once, dense or sparse, counted.

Small networks are held as a stack of dense matrices, one batched product a round. Large ones are held as
lists of directed links, sorted by receiver: W v = (weighted degree) v - sum over links of weight * v[sender].
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..networks import Network

Array = Any
DENSE_NODES = 256  # beyond, links are cheaper than a dense product even for well connected graphs
DENSE_BYTES = 2**30


class DenseGraphs(NamedTuple):
    """All gossip matrices of the pool."""

    W: Array  # (graphs, nodes, nodes)
    order: Array  # (period,): which matrix round k uses
    links: Array  # (graphs,): directed links, over each of which a row travels in a round
    lambda_max: Array

    def times(self, graph: Array, v: Array) -> Array:
        """Return W v for one graph of the pool."""
        return self.W[graph] @ v


class SparseGraphs(NamedTuple):
    """All links of the pool, filled up to the longest list with links of weight zero."""

    receiver: Array  # (graphs, links), sorted
    sender: Array
    weight: Array
    degree: Array  # (graphs, nodes): sum of weights at a node
    order: Array
    links: Array
    lambda_max: Array

    def times(self, graph: Array, v: Array) -> Array:
        """Return W v for one graph of the pool."""
        flow = self.weight[graph][:, None] * v[self.sender[graph]]
        received = jax.ops.segment_sum(flow, self.receiver[graph], v.shape[0], indices_are_sorted=True)
        return self.degree[graph][:, None] * v - received


def lay_out(network: Network) -> DenseGraphs | SparseGraphs:
    """Choose the layout for a network and build it, as NumPy arrays."""
    links = np.array([2 * len(network.edges(g)) for g in range(network.graphs)], dtype=np.int64)
    order = np.asarray(network.order, dtype=np.int32)
    n = network.nodes
    if n <= DENSE_NODES and 8 * n * n * network.graphs <= DENSE_BYTES:
        W = np.zeros((network.graphs, n, n))
        for g in range(network.graphs):
            (u, v), w = network.edges(g).T, network.weights(g)
            W[g, u, v] = W[g, v, u] = -w
            W[g, np.arange(n), np.arange(n)] = -W[g].sum(axis=1)
        return DenseGraphs(W, order, links, np.float64(network.lambda_max))
    longest = int(links.max())
    receiver = np.full((network.graphs, longest), n - 1, dtype=np.int32)
    sender = np.zeros((network.graphs, longest), dtype=np.int32)
    weight, degree = np.zeros((network.graphs, longest)), np.zeros((network.graphs, n))
    for g in range(network.graphs):
        (u, v), w = network.edges(g).T, network.weights(g)
        to, by, both = np.concatenate([u, v]), np.concatenate([v, u]), np.concatenate([w, w])
        ranks = np.lexsort((by, to))
        receiver[g, : to.size], sender[g, : to.size] = to[ranks], by[ranks]
        weight[g, : to.size] = both[ranks]
        degree[g] = np.bincount(to, weights=both, minlength=n)
    return SparseGraphs(receiver, sender, weight, degree, order, links, np.float64(network.lambda_max))


class LocalGossip:
    """The network as a step sees it; after the step the engine reads `clock` and `floats` off again."""

    def __init__(self, graphs: DenseGraphs | SparseGraphs, clock: Array, floats: Array) -> None:
        self.graphs, self.clock, self.floats = graphs, clock, floats

    def __call__(self, *vectors: Array) -> Any:
        """Spend one round: every node sends its rows of all `vectors` over each of its links."""
        widths = [v.shape[-1] for v in vectors]
        graph = self.graphs.order[self.clock % self.graphs.order.shape[0]]
        mixed = self.graphs.times(graph, jnp.concatenate(vectors, axis=-1))
        self.clock = self.clock + 1
        self.floats = self.floats + self.graphs.links[graph] * sum(widths)
        if len(vectors) == 1:
            return mixed
        return tuple(jnp.split(mixed, np.cumsum(widths)[:-1], axis=-1))

    def mix(self, v: Array, rounds: Array) -> Array:
        """Spend `rounds` rounds of v <- (I - W(k) / lambda_max) v."""

        def body(_: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            v, clock, floats = carry
            inner = LocalGossip(self.graphs, clock, floats)
            v = v - inner(v) / self.graphs.lambda_max
            return v, inner.clock, inner.floats

        v, self.clock, self.floats = jax.lax.fori_loop(0, rounds, body, (v, self.clock, self.floats))
        return v

    def project(self, v: Array) -> Array:
        """Spend one round of full averaging, as if every node were linked with every other."""
        n = v.shape[0]
        self.clock = self.clock + 1
        self.floats = self.floats + n * (n - 1) * v.shape[-1]
        return v - v.mean(axis=0)
