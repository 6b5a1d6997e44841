"""DIGing: gradient descent with gradient tracking over time-varying graphs."""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle, small_gain_step


class State(NamedTuple):
    """State carried from round to round; g is grad F(x), kept so that it is not computed twice."""

    x: Array
    s: Array
    g: Array


@dataclass(frozen=True)
class DIGing(Method):
    r"""Every node descends along its own estimate of the average gradient.

    .. math::
        x^{k+1} &= M(k) x^k - a s^k \qquad (1) \\
        s^{k+1} &= M(k) s^k + \nabla F(x^{k+1}) - \nabla F(x^k) \qquad (2)

    with M = I - W / lambda_max. ``s`` tracks the average gradient: its rows sum to those of grad F(x) throughout.

    Parameters
    ----------
    a : float
        Positive step size.

    References
    ----------
    Nedic, Olshevsky, Shi. Achieving Geometric Convergence for Distributed Optimization over Time-Varying Graphs.
    SIAM Journal on Optimization 2017, arXiv:1607.03218, Theorem 3.14 with B = 1.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> DIGing.unit(Constants(mu=1.0, L=4.0, lambda_min_plus=0.5)).a
    0.0625
    """

    name = "diging"
    title = "DIGing"
    oracle = "primal"
    vectors_per_round = 2
    needs = "windows"
    complexity = "n^(1/2) chi^2 kappa^(3/2) log(1/eps)"
    reference = "Nedic, Olshevsky and Shi 2017, arXiv:1607.03218"

    a: Number

    def __post_init__(self) -> None:
        self._require_positive("a")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """Theorem 3.14 with B = 1: J = 3 kappa (1 + 4 sqrt(n kappa))."""
        J = 3 * constants.kappa * (1 + 4 * sqrt(constants.nodes * constants.kappa))
        return cls(a=small_gain_step(J, constants.chi, constants.mu))

    @classmethod
    def unit(cls, constants: Constants) -> Self:
        """a = 1 / (L chi^2); it can diverge for chi below 1.4, where a round averages almost fully."""
        return cls(a=1 / (constants.L * constants.chi**2))

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """x^0 = 0, s^0 = grad F(x^0)."""
        g = oracle.gradient(zeros)
        return State(x=zeros, s=g, g=g)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """One round of two vectors."""
        x, s, g = state
        M_x, M_s = gossip.average(x, s)
        x = M_x - self.a * s  # (1)
        g_next = oracle.gradient(x)
        s = M_s + g_next - g  # (2)
        return State(x, s, g_next), x
