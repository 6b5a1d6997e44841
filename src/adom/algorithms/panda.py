"""PANDA: dual ascent with tracking of the average primal point."""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle, small_gain_step


class State(NamedTuple):
    """State carried from round to round."""

    x: Array
    s: Array
    y: Array


@dataclass(frozen=True)
class PANDA(Method):
    r"""Dual gradient ascent in which every node tracks the average of the primal points.

    .. math::
        x^{k+1} &= \nabla F^*(y^k) \qquad (1) \\
        s^{k+1} &= M(k) s^k + x^{k+1} - x^k \qquad (2) \\
        y^{k+1} &= y^k - c (x^{k+1} - s^{k+1}) \qquad (3)

    with M = I - W / lambda_max. ``s`` tracks the average of the rows of x (their sums agree throughout), so x - s
    estimates the dual gradient P x, and the rows of ``y`` keep summing to zero. It is DIGing on the dual.

    Parameters
    ----------
    c : float
        Positive step size.

    References
    ----------
    Maros, Jalden. PANDA: A Dual Linearly Converging Method for Distributed Optimization over Time-Varying Undirected
    Graphs. CDC 2018, arXiv:1803.08328.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> PANDA.unit(Constants(mu=1.0, L=4.0, lambda_min_plus=0.25)).c
    0.0625
    """

    name = "panda"
    title = "PANDA"
    oracle = "dual"
    vectors_per_round = 1
    needs = "windows"
    complexity = "chi^2 kappa^(3/2) log(1/eps)"
    reference = "Maros and Jalden 2018, arXiv:1803.08328"

    c: Number

    def __post_init__(self) -> None:
        self._require_positive("c")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """DIGing's small-gain step for the dual, which is 1 / L-strongly convex.

        The source proves its rate by the same argument, with a constant that has no n. J here is not that constant but
        DIGing's without the n.
        """
        J = 3 * constants.kappa * (1 + 4 * sqrt(constants.kappa))
        return cls(c=small_gain_step(J, constants.chi, 1 / constants.L))

    @classmethod
    def unit(cls, constants: Constants) -> Self:
        """c = mu / chi^2."""
        return cls(c=constants.mu / constants.chi**2)

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """y^0 = 0, x^0 = s^0 = grad F*(0)."""
        x = oracle.dual_gradient(zeros)
        return State(x=x, s=x, y=zeros)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """One round of one vector."""
        x, s, y = state
        x_next = oracle.dual_gradient(y)  # (1)
        s = gossip.average(s) + x_next - x  # (2)
        y = y - self.c * (x_next - s)  # (3)
        return State(x_next, s, y), x_next
