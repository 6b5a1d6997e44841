"""Agreement over the nodes' own links: on the constants of a problem whose data stays private, and on when to stop.

Every node passes on the greatest value that it has heard. After as many rounds as the network's diameter, all nodes
know the greatest value of all. These rounds count like any others.

Stopping does not require the solution. Let the rows x_i lie in a box of diagonal s, and let g be the mean of the
grad f_i(x_i). At any x_i the gradient of f, the mean of the f_i, is at most |g| + L s, so |x_i - x*| is at most
(|g| + L s) / mu. The box is known from the greatest x and -x. Averaging keeps the mean, so g lies in the box of the
gradients after any number of rounds of averaging, and the more rounds, the smaller that box. The bound is rigorous:
if it is at most tol, so is the error.
"""

from math import ceil, log
from typing import NamedTuple

import numpy as np

from ...algorithms import Constants
from ...networks import DirectedNetwork, Network
from ..local.graph_layout import flood_rounds
from .rank_rounds import RankGossip

Array = np.ndarray
SPACING = 20
"""Rounds between two checks, as a multiple of the rounds of a check."""
AT_ONCE = 2**20
"""Most numbers per message when every node sends values to all."""


def greatest(gossip: RankGossip, values: Array) -> Array:
    """Return the greatest of all nodes' values, column by column; every rank gets the same."""
    maxima = gossip.greatest(values, flood_rounds(gossip.network, gossip.clock))
    return np.asarray(maxima[0])


class GossipLinks:
    """The nodes' own links, over which every node receives the values of all."""

    def __init__(self, gossip: RankGossip, first: int) -> None:
        self.gossip, self._first = gossip, first

    def everyone(self, values: Array) -> Array:
        """Return the rows of all nodes: every node passes on what it has heard, until all know everything."""
        nodes, (own, width) = self.gossip.network.nodes, values.shape
        found = np.empty((nodes, width))
        some = max(1, AT_ONCE // nodes)
        for start in range(0, width, some):
            part = values[:, start : start + some]
            heard = np.full((own, nodes, part.shape[1]), -np.inf)
            heard[np.arange(own), self._first + np.arange(own)] = part
            found[:, start : start + some] = greatest(self.gossip, heard.reshape(own, -1)).reshape(nodes, -1)
        return found


class Bound(NamedTuple):
    """Upper bound on the error, the sum of the |x_i - x*|^2."""

    error: float
    disagreement: float  # its part from differences between rows


class AgreedStop:
    """Stopping rule: after every chunk of steps all ranks call `due`, and if it is time `reached`, which costs rounds.

    Parameters
    ----------
    tol : float
        The error to guarantee.
    network : Network
    constants : Constants
    steepest : float
        The greatest |grad f_i(0)|, which determines the rounds of averaging.
    began : int
        Rounds already spent.
    """

    def __init__(
        self,
        tol: float,
        network: Network | DirectedNetwork,
        constants: Constants,
        steepest: float,
        began: int = 0,
    ) -> None:
        self.tol, self.constants = tol, constants
        wanted = log(constants.mu) + (log(tol) - log(constants.nodes)) / 2 - log(10)
        most = log(steepest) + log(constants.nodes) / 2 if steepest > 0 else wanted
        self.averaging = network.window * max(1, ceil(constants.chi * max(log(2.0), most - wanted)))
        self.next = began + SPACING * flood_rounds(network, 0)
        self.last: Bound | None = None

    def due(self, clock: int) -> bool:
        """Return whether it is time to check."""
        return clock >= self.next

    def lasts(self, gossip: RankGossip) -> int:
        """Return the most rounds that a check takes."""
        network = gossip.network
        first = flood_rounds(network, gossip.clock) + self.averaging
        return first + flood_rounds(network, gossip.clock + first)

    def reached(self, gossip: RankGossip, x: Array, gradient: Array) -> bool:
        """Return whether the error is certainly at most tol; costs rounds."""
        began, c = gossip.clock, self.constants
        apart = c.L * _diagonal(greatest(gossip, np.concatenate([x, -x], axis=1)))
        self.last = Bound(np.inf, c.nodes * _squared(apart / c.mu))
        if not self.last.disagreement <= self.tol:
            self.next = gossip.clock + SPACING * (gossip.clock - began)
            return False
        mean = gossip.mix(gradient, self.averaging)
        extreme = greatest(gossip, np.concatenate([mean, -mean], axis=1))
        high, low = np.split(extreme, 2)
        steep = float(np.linalg.norm(np.maximum(np.abs(high), np.abs(low))))
        self.last = Bound(c.nodes * _squared((steep + apart) / c.mu), self.last.disagreement)
        self.next = gossip.clock + 2 * (gossip.clock - began)
        return self.last.error <= self.tol


def _squared(value: float) -> float:
    """Return the square, infinity where it overflows; ``value**2`` would raise an error.

    Examples
    --------
    >>> _squared(3.0), _squared(1e200)
    (9.0, inf)
    """
    return value * value


def _diagonal(extremes: Array) -> float:
    """Return the diagonal of a box from the greatest x and -x in it."""
    high, low = np.split(extremes, 2)
    return float(np.linalg.norm(high + low))
