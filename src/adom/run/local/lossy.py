"""One communication round on a lossy network: what arrives, link by link, and what both ends make of it."""

from typing import Any

import jax
import jax.numpy as jnp

from .gossip import Graphs, LocalGossip
from .lossy_links import LossyLinks

Array = Any


class LossyGossip(LocalGossip):
    """The network as a step sees it: each end of a link takes its exchange if it hears the other.

    After the step, `exchanges` has what the ends took for each gossiped vector, and `told` which second ends have heard
    the first, who owns the link. Rounds of one step all have the nodes that are there when it begins.
    """

    def __init__(self, graphs: Graphs, clock: Array, floats: Array, up: Array | None = None) -> None:
        super().__init__(graphs, clock, floats)
        assert graphs.loss is not None
        self.links: LossyLinks = graphs.loss
        self.up = up
        if up is None and self.links.up is not None:
            self.up = self.links.up[self.links.epoch(clock)]
        self.exchanges: list[Array] = []  # each (2, links, vectors, columns)
        self.told: Array = jnp.zeros(self.links.weights.shape[1:], dtype=bool)
        self.carried = 0  # numbers that an owner adds to a message

    @property
    def lossy(self) -> "LossyGossip":
        """The network itself, out of what is wrapped around it."""
        return self

    def __call__(self, *vectors: Array) -> Any:
        """Spend one round: every node sends its rows, and takes the differences to those that it hears."""
        own = vectors[0].shape[0]
        graph, tables = self._round(*vectors)
        links, values = self.links, jnp.stack(tables, axis=1)
        first, second = values[links.rows[jnp.minimum(graph, links.rows.shape[0] - 1)]]
        difference = links.weights[graph][:, None, None] * (first - second)
        heard = links.heard(self.clock - 1)
        heard = heard if self.up is None else heard & self.up
        taken = jnp.where(heard[:, :, None, None], jnp.stack([difference, -difference]), 0)
        self.exchanges.append(taken)
        self.told = self.told | (heard[1] & (links.weights[graph] != 0))
        self.floats = self.floats + self.graphs.links[graph] // 2 * self.carried
        sums = links.at_nodes(taken, own)
        return sums[:, 0] if len(vectors) == 1 else tuple(sums[:, i] for i in range(len(vectors)))

    def averaged_out(self, rounds: Array, *vectors: Array) -> tuple[Array, ...]:
        """Spend `rounds` rounds of averaging; return what they take off every vector."""

        def body(_: Array, carry: Any) -> Any:
            taken, exchanges, told, clock, floats = carry
            inner = LossyGossip(self.graphs, clock, floats, self.up)
            inner.carried = self.carried
            products = inner(*(v - t / self.lambda_max for v, t in zip(vectors, taken, strict=True)))
            products = (products,) if len(vectors) == 1 else products
            taken = tuple(t + p for t, p in zip(taken, products, strict=True))
            return taken, exchanges + inner.exchanges[0], told | inner.told, inner.clock, inner.floats

        sums = tuple(map(jnp.zeros_like, vectors))
        shape = (*self.links.code.shape, len(vectors), vectors[0].shape[-1])
        start = sums, jnp.zeros(shape, vectors[0].dtype), self.told, self.clock, self.floats
        count = jnp.asarray(rounds).astype(jnp.int32)
        sums, exchanges, self.told, self.clock, self.floats = jax.lax.fori_loop(0, count, body, start)
        self.exchanges.append(exchanges)
        return tuple(t / self.lambda_max for t in sums)

    def mix(self, v: Array, rounds: Array) -> Array:
        """Spend `rounds` rounds of averaging."""
        return v - self.averaged_out(rounds, v)[0]


def network_of(graphs: Graphs, clock: Array, floats: Array) -> LocalGossip:
    """Return the network of a step that begins at a round."""
    return LocalGossip(graphs, clock, floats) if graphs.loss is None else LossyGossip(graphs, clock, floats)
