"""How many rounds a message takes from any node to every other."""

import numpy as np

from ..errors import InputError
from ..networks import DirectedNetwork, Network


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
