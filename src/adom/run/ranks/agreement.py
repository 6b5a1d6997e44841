"""Agreement over the nodes' own links: on the constants of a problem whose data stays private, and on when to stop.

Every node passes on the greatest value that it has heard. After as many rounds as the network's diameter, all nodes
know the greatest value of all. These rounds count like any others.

Stopping does not require the solution. Let the rows x_i lie in a box of diagonal s, and let g be the mean of the
grad f_i(x_i). At any x_i the gradient of f, the mean of the f_i, is at most |g| + L s, so |x_i - x*| is at most
(|g| + L s) / mu. The box is known from the greatest x and -x. Averaging keeps the mean, so g lies in the box of the
gradients after any number of rounds of averaging, and the more rounds, the smaller that box. The bound is rigorous:
if it is at most tol, so is the error.

With mu = 0, or where it is small, this says little. If every node can compute sums over its samples, it is better to
look at a single point that all know, the middle y of the box of the rows: `adom.problems.nearness` bounds the distance
from y to x* by the mean gradient and the mean Hessian there, which the nodes send to all.
"""

from collections.abc import Callable
from math import ceil, log, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...algorithms import Constants
from ...networks import DirectedNetwork, Network
from ..local.graph_layout import flood_rounds
from .rank_rounds import RankGossip

if TYPE_CHECKING:
    from ...data.node_sums import NodeSums

Array = np.ndarray
SPACING = 20
"""Rounds between two checks, as a multiple of the rounds of a check."""
FIRST_CHECK = 5
"""Rounds before the first check at sums over samples, as a multiple of the rounds of its first part and one more."""
SOONER = 0.6
"""The next check is after this part of the rounds that the pace so far would take: the first rounds are the slowest."""
ROUGH_FLOOR = 1e-3
"""The most that rounding may leave of the distance where a fit ends anyway."""
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

    def reached(self, gossip: RankGossip, x: Array, gradient: Callable[[Array], Array]) -> bool:
        """Return whether the error is certainly at most tol; costs rounds, and a gradient."""
        began, c = gossip.clock, self.constants
        apart = c.L * _diagonal(greatest(gossip, np.concatenate([x, -x], axis=1)))
        self.last = Bound(np.inf, c.nodes * _squared(apart / c.mu))
        if not self.last.disagreement <= self.tol:
            self.next = gossip.clock + SPACING * (gossip.clock - began)
            return False
        mean = gossip.mix(gradient(x), self.averaging)
        extreme = greatest(gossip, np.concatenate([mean, -mean], axis=1))
        high, low = np.split(extreme, 2)
        steep = float(np.linalg.norm(np.maximum(np.abs(high), np.abs(low))))
        self.last = Bound(c.nodes * _squared((steep + apart) / c.mu), self.last.disagreement)
        self.next = gossip.clock + 2 * (gossip.clock - began)
        return self.last.error <= self.tol


class CertifiedStop:
    """Stopping rule of fits whose nodes can compute sums over their samples: no constant of the problem enters.

    The next check is due when the rows will be near enough, if they go on to approach each other as they did.

    Parameters
    ----------
    tol : float
        The error to guarantee.
    network : Network
    sums : NodeSums
    first : int
        The first node of this rank.
    began : int
        Rounds already spent.
    anyway : bool
        Whether to stop also where rounding allows no more.
    """

    def __init__(
        self,
        tol: float,
        network: Network | DirectedNetwork,
        sums: "NodeSums",
        first: int,
        began: int = 0,
        *,
        anyway: bool = False,
    ) -> None:
        self.tol, self._network, self._sums, self._first, self._anyway = tol, network, sums, first, anyway
        self._began = began
        self.next = began + FIRST_CHECK * (1 + flood_rounds(network, began))
        self.last: Bound | None = None
        self.kappa: float | None = None

    def due(self, clock: int) -> bool:
        """Return whether it is time to check."""
        return clock >= self.next

    def lasts(self, gossip: RankGossip) -> int:
        """Return the most rounds that a check takes."""
        numbers = self._network.nodes * (1 + self._sums.dim * (self._sums.dim + 5) // 2)
        return sum(flood_rounds(self._network, gossip.clock) for _ in range(2 + 2 * ceil(numbers / AT_ONCE)))

    def reached(self, gossip: RankGossip, x: Array, gradient: Callable[[Array], Array]) -> bool:
        """Return whether the error is certainly at most tol; costs rounds."""
        began, nodes = gossip.clock, self._network.nodes
        near = sqrt(self.tol / nodes) / 2
        high, low = np.split(greatest(gossip, np.concatenate([x, -x], axis=1)), 2)
        y, apart = (high - low) / 2, float(np.linalg.norm(high + low)) / 2
        self.last = Bound(np.inf, nodes * _squared(apart))
        links, spent_out = GossipLinks(gossip, self._first), False
        if apart <= near:
            reach = near
            found = self._sums.nearness(y, reach, links)
            if self._anyway and np.isinf(found.distance) and near / 2 < found.floor < ROUGH_FLOOR:
                reach = 4 * found.floor
                found = self._sums.nearness(y, reach, links)
                spent_out = np.isfinite(found.distance)
            self.kappa = found.kappa
            self.last = Bound(nodes * _squared(apart + found.distance), self.last.disagreement)
        elif np.isfinite(apart):
            self._sums.check_separable(y, links)
        spent, cost = began - self._began, gossip.clock - began
        length = float(np.linalg.norm(y))
        steps = float(spent)  # twice as many, if nothing is known
        if near < apart < length:
            steps = SOONER * spent * log(apart / near) / log(length / apart)
        elif apart <= near:
            steps = spent / 8
        self.next = gossip.clock + int(min(max(steps, 2 * cost), spent))
        return bool(self.last.error <= self.tol or spent_out)


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
