"""One communication round on a lossy network: what arrives over each link, and what its two ends do with it."""

from typing import Any

import jax
import jax.numpy as jnp

from ..links.lossy_links import LossyLinks
from .gossip import Graphs, LocalGossip

Array = Any
SLOPE = 0.03
"""Part of a message's surprise, its difference to the expected rows, that corrects the expected change per round."""
SLOWER = 0.125
"""Limit on that part, relative to the gain on a dithered message: above it, copies oscillate and diverge."""


class LossyGossip(LocalGossip):
    """The network as a step sees it: each end of a link applies its exchange if it hears the other end.

    After the step, `exchanges` holds what each end applied for each gossiped vector, and `told` marks the links whose
    second end has heard the first, the owner. All rounds of a step have the nodes present at its start. `copies` and
    `late` carry over to the next step: see `adom.run.links.ledgers`.
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
        own = vectors[0].shape[0]
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
        sums = links.at_nodes(taken, own) if self.late is None else self._arrived(taken, own)
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

    def _arrived(self, taken: Array, own: int) -> Array:
        """Hold exchanges until their messages arrive; return what arrives in this round at every node."""
        links, channel, late, now = self.links, self.links.channel, self.late, self.clock - 1
        assert channel is not None
        assert late is not None
        slots = late.shape[0]
        if channel.late.key is None:
            late = late.at[(now + slots - 1) % slots].set(links.at_nodes(taken, own))
        else:
            by = channel.late.by(now, links.code, slots - 1)
            for rounds in range(slots):
                part = jnp.where((by == rounds)[:, :, None, None], taken, 0)
                late = late.at[(now + rounds) % slots].add(links.at_nodes(part, own))
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
