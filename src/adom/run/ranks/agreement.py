"""What nodes agree on over their own links: the constants of a problem whose data stay home, and when to stop.

Every node repeats the greatest value that it has heard of; after as many rounds as a word takes to get everywhere all
know the greatest of all. These rounds are rounds of the network like any other, and counted.

To stop, nobody needs to know the solution. Let the rows x_i lie in a box of diagonal s, and let g be the mean of the
grad f_i(x_i). At any x_i the gradient of f, the mean of the f_i, is at most |g| + L s, so |x_i - x*| is at most
(|g| + L s) / mu. The box is known from the greatest x and -x. Averaging keeps the mean, so g lies in the box of the
gradients after any number of rounds of averaging, and the more rounds, the smaller that box. The bound is rigorous:
where it says that the error is at most tol, it is.
"""

from math import ceil, log
from typing import NamedTuple

import numpy as np

from ...algorithms import Constants
from ...networks import DirectedNetwork, Network
from .partition import RankGossip, flood_rounds

Array = np.ndarray
SELDOM = 20
"""RankRounds from one look at the rows to the next, over those that a look takes."""


def greatest(gossip: RankGossip, values: Array) -> Array:
    """Return the greatest of all nodes' values, column by column; every rank gets the same."""
    found = gossip.greatest(values, flood_rounds(gossip.rounds.network, gossip.clock))
    return np.asarray(found[0])


class Bound(NamedTuple):
    """What the nodes know of how near they are: of the error, the sum of the |x_i - x*|^2."""

    error: float
    apart: float  # the part that is due to the rows' being apart


class Stop:
    """Decides when to stop: after every step all ranks ask `due`, and then `reached`, which spends rounds.

    Parameters
    ----------
    tol : float
        The error to be certain of.
    network : Network
    constants : Constants
    steepest : float
        The greatest |grad f_i(0)|, from which the rounds of averaging are taken.
    """

    def __init__(self, tol: float, network: Network | DirectedNetwork, constants: Constants, steepest: float) -> None:
        self.tol, self.constants = tol, constants
        wanted = log(constants.mu) + (log(tol) - log(constants.nodes)) / 2 - log(10)
        most = log(steepest) + log(constants.nodes) / 2 if steepest > 0 else wanted
        self.averaging = max(1, ceil(constants.chi * max(log(2.0), most - wanted)))
        self.next = SELDOM * flood_rounds(network, 0)
        self.last: Bound | None = None

    def due(self, clock: int) -> bool:
        """Return whether it is time to look."""
        return clock >= self.next

    def lasts(self, gossip: RankGossip) -> int:
        """Return at most how many rounds a look takes."""
        network = gossip.rounds.network
        one = flood_rounds(network, gossip.clock)
        return one + self.averaging + flood_rounds(network, gossip.clock + one + self.averaging)

    def reached(self, gossip: RankGossip, x: Array, gradient: Array) -> bool:
        """Return whether the error is certainly at most tol; costs rounds."""
        began, c = gossip.clock, self.constants
        apart = c.L * _diagonal(greatest(gossip, np.concatenate([x, -x], axis=1)))
        self.last = Bound(np.inf, c.nodes * _squared(apart / c.mu))
        if not self.last.apart <= self.tol:
            self.next = gossip.clock + SELDOM * (gossip.clock - began)
            return False
        mean = gossip.mix(gradient, self.averaging)
        extreme = greatest(gossip, np.concatenate([mean, -mean], axis=1))
        high, low = np.split(extreme, 2)
        steep = float(np.linalg.norm(np.maximum(np.abs(high), np.abs(low))))
        self.last = Bound(c.nodes * _squared((steep + apart) / c.mu), self.last.apart)
        self.next = gossip.clock + 2 * (gossip.clock - began)
        return self.last.error <= self.tol


def _squared(value: float) -> float:
    """Return the square, infinity where it is beyond all numbers: ``value**2`` would raise an error.

    Examples
    --------
    >>> _squared(3.0), _squared(1e200)
    (9.0, inf)
    """
    return value * value


def _diagonal(extremes: Array) -> float:
    """Return the diagonal of the box whose greatest coordinates, and their negatives' greatest, are given."""
    high, low = np.split(extremes, 2)
    return float(np.linalg.norm(high + low))
