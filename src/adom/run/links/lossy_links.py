"""Links of a lossy network as arrays for the compiled loop: both ends of every pair that is linked in any round."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import InputError
from ...networks import LossyNetwork, Network
from ...networks.lossy import Channel, draws

Array = Any
MOST = 2**27
"""Limit on the weights of links held, over all graphs."""


class LossyLinks(NamedTuple):
    """Links with at least one end on this process; the first end, the node with the smaller number, owns the link."""

    rows: Array  # (graphs or 1, 2, links): indices of both ends' rows among those on this process
    weights: Array  # (graphs, links): zero where a graph has no such link
    code: Array  # (2, links): sender * nodes + receiver of the message that each end hears
    own: Array  # (ends,): the ends at own nodes, out of all 2 x links, sorted by node, then neighbour
    node: Array  # (ends,): the rows of these nodes
    key: Array
    threshold: Array
    starts: Array | None  # (epochs,): the first round of every epoch; None where all nodes stay
    present: Array | None  # (epochs, own nodes)
    up: Array | None  # (epochs, links): whether both ends are present
    messages: Array | None  # (epochs, graphs): directed links of the whole network whose ends are present
    channel: Channel | None  # what happens to messages that arrive; None where nothing does

    def heard(self, clock: Array) -> Array:
        """Return whether each end of each link hears the other end in a round: (2, links)."""
        return draws(self.key, clock.astype(jnp.uint64), self.code) >= self.threshold

    def epoch(self, clock: Array) -> Array:
        """Return the epoch of a round."""
        assert self.starts is not None
        return (self.starts <= clock).sum() - 1

    def at_nodes(self, values: Array, rows: int) -> Array:
        """Return, for every own node, the sum of `values` (2, links, ...) over its ends of links."""
        flat = values.reshape(-1, *values.shape[2:])
        return jax.ops.segment_sum(flat[self.own], self.node, rows, indices_are_sorted=True)


def own_pairs(network: LossyNetwork, first: int, end: int) -> np.ndarray:
    """Return the pairs linked in any graph with at least one node in first, ..., end - 1: (links, 2)."""
    pairs = network.linked_pairs.astype(np.int64)
    inside: np.ndarray = pairs[((pairs >= first) & (pairs < end)).any(axis=1)]
    return inside


def lossy_links(
    network: LossyNetwork, pool: Sequence[int], first: int, end: int, foreign: Sequence[np.ndarray] | None = None
) -> LossyLinks:
    """Lay out the links of own nodes first, ..., end - 1.

    `foreign` lists, for each graph, the nodes whose rows follow the own rows.
    """
    pairs = own_pairs(network, first, end)
    if len(pairs) * len(pool) > MOST:
        raise InputError(
            f"lossy keeps all links of all graphs in memory, at most {MOST:.1e}, got {len(pairs) * len(pool):.1e}; "
            "take fewer graphs or nodes"
        )
    n, loss = network.nodes, network.loss
    codes = pairs @ np.array([n, 1])
    weights = np.zeros((len(pool), len(pairs)))
    for row, g in enumerate(pool):
        at = np.minimum(np.searchsorted(codes, _codes(network, g)), max(0, len(codes) - 1))
        mine = codes[at] == _codes(network, g)
        weights[row, at[mine]] = network.weights(g)[mine]
    rows = pairs.T[None].astype(np.int32)
    if foreign is not None:
        rows = np.stack([_positions(pairs.T, first, end, nodes) for nodes in foreign])
    ends, others = pairs.T.reshape(-1), pairs.T[::-1].reshape(-1)
    own = np.flatnonzero((ends >= first) & (ends < end))
    own = own[np.lexsort((others[own], ends[own]))]
    starts = present = up = messages = None
    if loss.changing:
        starts, present = loss.starts, loss.present[:, first:end]
        up = loss.present[:, pairs].all(axis=2)
        messages = np.stack([2 * loss.present[:, network.edges(g)].all(axis=2).sum(axis=1) for g in pool], axis=1)
    code = (others * n + ends).reshape(2, -1).astype(np.uint64)
    return LossyLinks(
        rows, weights, code, own.astype(np.int32), (ends[own] - first).astype(np.int32), loss.key, loss.threshold,
        starts, present, up, messages, None if network.channel.perfect else network.channel,
    )  # fmt: skip


def _codes(network: Network, g: int) -> np.ndarray:
    """Return u * nodes + v for every link of a graph."""
    codes: np.ndarray = network.edges(g).astype(np.int64) @ np.array([network.nodes, 1])
    return codes


def _positions(nodes: np.ndarray, first: int, end: int, foreign: np.ndarray) -> np.ndarray:
    """Return the index of each node's row; 0 for nodes without a row here, whose links then have weight zero."""
    where = np.minimum(np.searchsorted(foreign, nodes), max(0, len(foreign) - 1))
    there = foreign[where] == nodes if len(foreign) else np.zeros(nodes.shape, dtype=bool)
    own = (nodes >= first) & (nodes < end)
    positions = np.where(own, nodes - first, np.where(there, where + end - first, 0))
    return positions.astype(np.int32)
