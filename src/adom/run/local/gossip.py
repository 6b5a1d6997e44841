"""One communication round as arithmetic: W(k) v for all nodes at once, counted, and what arrives on a lossy network.

Products are computed from differences between rows: row i of A v is s_i v_i + sum_j a_ij (v_j - v_i), where s_i is the
sum of A's row i, zero for W. A part that all rows share then causes no rounding, however large it is, and the rows of
W v sum to zero as closely as the rows of v agree. Without this, long runs drift away from their solution.

`adom.run.local.graph_layout` chooses the format of the matrices by their size and the device.
"""

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from ... import native
from ...algorithms.base import Averaging, Turn
from ..links import LossyLinks

Array = Any


class DenseMatrices(NamedTuple):
    """A dense matrix for every graph, for few nodes: one product per round."""

    values: Array  # (graphs, nodes, nodes)
    row_sum: Array  # (graphs, nodes)

    def times(self, graph: Array, vectors: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return A v for every vector v and one graph."""
        alike = len({v.shape for v in vectors}) == 1 and len(vectors) <= native.GPU_VECTORS
        if native.usable("gpu") and alike and self.values.dtype == vectors[0].dtype:
            products: tuple[Array, ...] = _gpu_products(self, graph, vectors)
            return products
        return _products(self, graph, vectors)


def _products(matrices: DenseMatrices, graph: Array, vectors: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return A v for vectors of shape (nodes, ..., dim)."""
    rows = jnp.concatenate(vectors, axis=-1)
    sums = matrices.row_sum[graph].reshape(-1, *[1] * (rows.ndim - 1))
    mixed = jnp.tensordot(matrices.values[graph], rows - rows[0], axes=1) + sums * rows[0]
    widths = np.cumsum([v.shape[-1] for v in vectors])
    return tuple(jnp.split(mixed, widths[:-1], axis=-1))


@jax.custom_batching.custom_vmap
def _gpu_products(matrices: DenseMatrices, graph: Array, vectors: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the products from the GPU kernel: one launch, where XLA needs three."""
    return native.gossip_dense(graph, matrices.values, matrices.row_sum, vectors)


@_gpu_products.def_vmap
def _gpu_products_of_batch(axis_size: int, batched: Any, *operands: Any) -> tuple[Any, Any]:
    """Return the products for a batch of vectors: matrix products again, with the batch as the second axis."""
    matrices, graph, vectors = operands
    if any(jax.tree.leaves(batched[:2])) or not all(batched[2]):
        axes = jax.tree.map(lambda varies: 0 if varies else None, tuple(batched))
        products = jax.vmap(_products, in_axes=axes, axis_size=axis_size)(matrices, graph, vectors)
    else:
        placed = _products(matrices, graph, tuple(jnp.moveaxis(v, 0, 1) for v in vectors))
        products = tuple(jnp.moveaxis(v, 1, 0) for v in placed)
    return products, (True,) * len(vectors)


class SparseMatrices(NamedTuple):
    """The links of every graph, sorted by receiver and padded with links of weight zero to one length."""

    start: Array  # (graphs, nodes + 1): each receiver's first link
    receiver: Array  # (graphs, links)
    sender: Array
    weight: Array
    row_sum: Array  # (graphs, nodes)

    def times(self, graph: Array, vectors: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return A v for every vector v and one graph."""
        if native.usable():
            return tuple(native.gossip(graph, self.start, self.sender, self.weight, self.row_sum, v) for v in vectors)
        receiver, sender, weight = self.receiver[graph], self.sender[graph], self.weight[graph][:, None]
        n = self.row_sum.shape[-1]  # fewer than v's rows if rows of other ranks follow
        return tuple(
            self.row_sum[graph][:, None] * v[:n]
            + jax.ops.segment_sum(weight * (v[sender] - v[receiver]), receiver, n, indices_are_sorted=True)
            for v in vectors
        )


class PaddedMatrices(NamedTuple):
    """Every node's neighbours, padded to the largest degree: the layout that accelerators gather fastest."""

    neighbour: Array  # (graphs, nodes, degree)
    weight: Array
    row_sum: Array  # (graphs, nodes)

    def times(self, graph: Array, vectors: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return A v for every vector v and one graph."""
        neighbour, weight = self.neighbour[graph], self.weight[graph][:, :, None]
        row_sum = self.row_sum[graph][:, None]
        return tuple(row_sum * v + (weight * (v[neighbour] - v[:, None])).sum(axis=1) for v in vectors)


Matrices = DenseMatrices | SparseMatrices | PaddedMatrices


class Wire(Protocol):
    """The connection to processes that hold the other nodes; it returns the clock unchanged, to order the exchanges."""

    @property
    def nodes(self) -> int:
        """Number of nodes on all processes."""

    def neighbours(self, clock: Array, vectors: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        """Return the clock, and every vector followed by the rows of other processes that this round needs."""

    def project(self, clock: Array, v: Array) -> tuple[Array, Array]:
        """Return the clock, and v less the mean of all nodes' rows."""


class Graphs(NamedTuple):
    """A network, or a stretch of its rounds: W, or R and C for a method that runs on directed graphs."""

    W: Matrices | None
    R: Matrices | None
    C: Matrices | None
    order: Array  # the graph of each round from `first` on, repeated for ever
    first: Array
    links: Array  # (graphs,): how many directed links; a row travels over each in a round
    lambda_max: Array
    wire: Wire | None = None  # where other processes hold the other nodes
    loss: LossyLinks | None = None  # where messages may be lost


class CountingGossip(Averaging):
    """The gossip that a step sees (`adom.algorithms.base.Gossip`): its counters, but not the products."""

    def __init__(self, clock: Any, floats: Any, lambda_max: Any) -> None:
        self.clock, self.floats, self.lambda_max = clock, floats, lambda_max

    def count(self, links: Any, width: int) -> None:
        """Count one round in which `width` numbers travel over every link."""
        self.clock = self.clock + 1
        self.floats = self.floats + links * width


class LocalGossip(CountingGossip):
    """The network as a step sees it; after the step the loop reads `clock` and `floats`."""

    def __init__(self, graphs: Graphs, clock: Array, floats: Array) -> None:
        super().__init__(clock, floats, graphs.lambda_max)
        self.graphs = graphs

    def _round(self, *vectors: Array) -> tuple[Array, tuple[Array, ...]]:
        """Spend one round in which rows travel over every link; return its graph, and all rows that it needs."""
        graph = self.graphs.order[(self.clock - self.graphs.first) % self.graphs.order.shape[0]]
        if self.graphs.wire is not None:
            self.clock, vectors = self.graphs.wire.neighbours(self.clock, vectors)
        self.count(self.messages(graph), sum(v.shape[-1] for v in vectors))
        return graph, vectors

    def messages(self, graph: Array) -> Array:
        """Return how many messages a round has: one over each directed link."""
        return self.graphs.links[graph]

    def __call__(self, *vectors: Array) -> Any:
        """Spend one round: every node sends its rows of all `vectors` over each of its links."""
        assert self.graphs.W is not None
        products = self.graphs.W.times(*self._round(*vectors))
        return products[0] if len(vectors) == 1 else products

    def repeat(self, rounds: Any, turn: Turn, carried: Any) -> Any:
        """Repeat ``carried = turn(network, carried)`` `rounds` times in a compiled loop; return the last `carried`."""

        def body(_: Array, state: tuple[Any, Array, Array]) -> tuple[Any, Array, Array]:
            carried, clock, floats = state
            inner = LocalGossip(self.graphs, clock, floats)
            return turn(inner, carried), inner.clock, inner.floats

        count = jnp.asarray(rounds).astype(jnp.int32)
        start = carried, self.clock, self.floats
        carried, self.clock, self.floats = jax.lax.fori_loop(0, count, body, start)
        return carried

    def push_pull(self, pulled: Array, pushed: Array) -> tuple[Array, Array]:
        """Spend one round on a directed graph; return R(k) pulled and C(k) pushed."""
        assert self.graphs.R is not None
        assert self.graphs.C is not None
        graph, (pulled, pushed) = self._round(pulled, pushed)
        return self.graphs.R.times(graph, (pulled,))[0], self.graphs.C.times(graph, (pushed,))[0]

    def push(self, *vectors: Array) -> Any:
        """Spend one round on a directed graph; return C(k) v for every vector v given."""
        assert self.graphs.C is not None
        products = self.graphs.C.times(*self._round(*vectors))
        return products[0] if len(vectors) == 1 else products

    def project(self, v: Array) -> Array:
        """Spend one round of full averaging, as if every node were linked with every other."""
        wire = self.graphs.wire
        n = v.shape[0] if wire is None else wire.nodes
        if wire is None:
            v = v - v.mean(axis=0)
        else:
            self.clock, v = wire.project(self.clock, v)
        self.count(n * (n - 1), v.shape[-1])
        return v


SLOPE = 0.03
"""Part of a message's surprise, its difference to the expected rows, that corrects the expected change per round."""
SLOWER = 0.125
"""Limit on that part, relative to the gain on a dithered message: above it, copies oscillate and diverge."""


class LossyGossip(LocalGossip):
    """The network as a step sees it: each end of a link applies its exchange if it hears the other end.

    After the step, `exchanges` holds what each end applied for each gossiped vector, and `told` marks the links whose
    second end has heard the first, the owner. All rounds of a step have the nodes present at its start. `copies` and
    `late` carry over to the next step: see `adom.run.links`.
    """

    def __init__(self, graphs: Graphs, clock: Array, floats: Array, epoch: Array | None = None) -> None:
        super().__init__(graphs, clock, floats)
        assert graphs.loss is not None
        self.links: LossyLinks = graphs.loss
        self.epoch = self.links.epoch(clock) if epoch is None and self.links.up is not None else epoch
        self.up = None if self.links.up is None else self.links.up[self.epoch]
        self.exchanges: list[Array] = []  # each (2, links, vectors, columns)
        self.told: Array = jnp.zeros(self.links.weights.shape[1:], dtype=bool)
        self.carried = 0  # numbers that an owner adds to a message
        self.copies: Array | None = None  # (2, 2, links, vectors of a step, columns): expected rows, slopes
        self.late: Array | None = None  # (delay + 1, rows, vectors, columns): sums that arrive in later rounds
        self.vectors = 0  # number gossiped so far in this step

    @property
    def lossy(self) -> "LossyGossip":
        """The network without the wrappers around it."""
        return self

    def messages(self, graph: Array) -> Array:
        """Return how many messages a round has: two for each link whose ends are both present."""
        return super().messages(graph) if self.links.messages is None else self.links.messages[self.epoch, graph]

    def count(self, links: Array, width: int) -> None:
        """Count one round; coded messages are counted where they are made."""
        coded = self.links.channel is not None and self.links.channel.coders
        super().count(links, 0 if coded else width)

    def __call__(self, *vectors: Array) -> Any:
        """Spend one round: every node sends its rows, and sums the weighted differences to the rows that it hears."""
        rows = vectors[0].shape[0]
        graph, tables = self._round(*vectors)
        links, values = self.links, jnp.stack(tables, axis=1)
        first, second = self._sent(values[links.rows[jnp.minimum(graph, links.rows.shape[0] - 1)]], graph)
        difference = links.weights[graph][:, None, None] * (first - second)
        heard = links.heard(self.clock - 1)
        heard = heard if self.up is None else heard & self.up
        taken = jnp.stack([difference, -difference])
        if links.channel is not None and links.channel.noise is not None:
            noise = links.channel.noise.heard(self.clock - 1, links.code, difference.shape[1:])
            taken = taken - links.weights[graph][:, None, None] * noise.astype(taken.dtype)
        taken = jnp.where(heard[:, :, None, None], taken, 0)
        self.exchanges.append(taken)
        self.vectors += len(vectors)
        self.told = self.told | (heard[1] & (links.weights[graph] != 0))
        self.floats = self.floats + self.messages(graph) // 2 * self.carried
        sums = links.at_nodes(taken, rows) if self.late is None else self._arrived(taken, rows)
        return sums[:, 0] if len(vectors) == 1 else tuple(sums[:, i] for i in range(len(vectors)))

    def _sent(self, rows: Array, graph: Array) -> Array:
        """Return the rows of both ends of all links as the links transmit them, (2, links, vectors, columns)."""
        channel = self.links.channel
        if channel is None or not channel.coders:
            return rows
        vectors, columns = rows.shape[-2:]
        message = channel.floats(vectors, columns, 8 * rows.dtype.itemsize)
        self.floats = self.floats + self.messages(graph) * message
        clock, code = self.clock - 1, self.links.code[::-1]  # of the messages that each end sends
        if self.copies is None:
            return channel.coded(rows, clock, code)
        # Rows may keep changing by a common part, which W does not see, as ADOM's m does; slopes predict that change.
        these = slice(self.vectors, self.vectors + vectors)
        expected, slope = self.copies[:, :, :, these]
        linked = (self.links.weights[graph] != 0)[:, None, None]
        gain = 1 / (1 + channel.spread(columns))
        surprise = jnp.where(linked, gain * channel.coded(rows - expected, clock, code), 0)
        after, slope = expected + surprise, slope + jnp.minimum(SLOPE, SLOWER * gain) * surprise
        self.copies = self.copies.at[:, :, :, these].set(jnp.stack([after + slope, slope]))
        return after

    def _arrived(self, taken: Array, rows: int) -> Array:
        """Hold exchanges until their messages arrive; return what arrives in this round at every node."""
        links, channel, late, now = self.links, self.links.channel, self.late, self.clock - 1
        assert channel is not None
        assert late is not None
        slots = late.shape[0]
        if channel.late.key is None:
            late = late.at[(now + slots - 1) % slots].set(links.at_nodes(taken, rows))
        else:
            by = channel.late.by(now, links.code, slots - 1)
            for rounds in range(slots):
                part = jnp.where((by == rounds)[:, :, None, None], taken, 0)
                late = late.at[(now + rounds) % slots].add(links.at_nodes(part, rows))
        arrived = late[now % slots]
        self.late = late.at[now % slots].set(0)
        return arrived

    def averaged_out(self, rounds: Array, *vectors: Array) -> tuple[Array, ...]:
        """Spend `rounds` rounds of averaging; return what they subtract from every vector."""

        def body(_: Array, carry: Any) -> Any:
            taken, exchanges, told, clock, floats, copies = carry
            inner = LossyGossip(self.graphs, clock, floats, self.epoch)
            inner.carried, inner.copies, inner.vectors = self.carried, copies, self.vectors
            products = inner(*(v - t / self.lambda_max for v, t in zip(vectors, taken, strict=True)))
            products = (products,) if len(vectors) == 1 else products
            taken = tuple(t + p for t, p in zip(taken, products, strict=True))
            return taken, exchanges + inner.exchanges[0], told | inner.told, inner.clock, inner.floats, inner.copies

        sums = tuple(map(jnp.zeros_like, vectors))
        shape = (*self.links.code.shape, len(vectors), vectors[0].shape[-1])
        start = sums, jnp.zeros(shape, vectors[0].dtype), self.told, self.clock, self.floats, self.copies
        count = jnp.asarray(rounds).astype(jnp.int32)
        ended = jax.lax.fori_loop(0, count, body, start)
        sums, exchanges, self.told, self.clock, self.floats, self.copies = ended
        self.exchanges.append(exchanges)
        self.vectors += len(vectors)
        return tuple(t / self.lambda_max for t in sums)

    def mix(self, v: Array, rounds: Array) -> Array:
        """Spend `rounds` rounds of averaging."""
        return v - self.averaged_out(rounds, v)[0]


def network_of(graphs: Graphs, clock: Array, floats: Array) -> LocalGossip:
    """Return the network of a step that begins in round `clock`."""
    return LocalGossip(graphs, clock, floats) if graphs.loss is None else LossyGossip(graphs, clock, floats)
