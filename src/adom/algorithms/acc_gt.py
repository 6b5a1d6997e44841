"""Acc-GT: accelerated gradient tracking over time-varying graphs."""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, MultiConsensus, Number, Oracle


class State(NamedTuple):
    """State carried from round to round; g is grad F(y), kept so that it is not computed twice."""

    x: Array
    z: Array
    s: Array
    g: Array


@dataclass(frozen=True)
class AccGT(Method):
    r"""Nesterov's method in the primal with gradient tracking, proved for changing graphs.

    With theta = (mu a)^(1/2) / 2 and M = I - W / lambda_max:

    .. math::
        y^k     &= \theta z^k + (1 - \theta) x^k \qquad (1) \\
        s^k     &= M(k) s^{k-1} + \nabla F(y^k) - \nabla F(y^{k-1}) \qquad (2) \\
        z^{k+1} &= \frac{M(k) (\frac{\mu a}{\theta} y^k + z^k) - \frac{a}{\theta} s^k}{1 + \mu a / \theta} \qquad (3) \\
        x^{k+1} &= \theta z^{k+1} + (1 - \theta) M(k) x^k \qquad (4)

    ``x`` is the averaged sequence and the iterate reported, ``z`` carries the momentum, and gradients are taken at
    ``y``. ``s`` tracks the average gradient: its rows sum to those of grad F(y). The first step uses s = grad F(y).

    Parameters
    ----------
    a : float
        Positive step size.
    mu : float
        The functions' strong convexity; positive.
    theta : float
        In (0, 1).

    References
    ----------
    Li, Lin. Accelerated Gradient Tracking over Time-varying Graphs for Decentralized Optimization. JMLR 2024,
    arXiv:2104.02596.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> AccGT.unit(Constants(mu=1.0, L=4.0, lambda_min_plus=0.5)).a
    0.03125
    """

    name = "acc-gt"
    title = "Acc-GT"
    oracle = "primal"
    vectors_per_round = 3
    needs = "windows"
    complexity = "chi^(3/2) kappa^(1/2) log(1/eps)"
    reference = "Li and Lin 2021, arXiv:2104.02596"

    a: Number
    mu: Number
    theta: Number

    def __post_init__(self) -> None:
        self._require_positive("a", "mu")
        self._require("lie in (0, 1)", lambda v: (v > 0) & (v < 1), "theta")

    @classmethod
    def unit(cls, constants: Constants) -> Self:
        """a = 1 / (L max(chi, 2)^3), the order of the source's bound.

        On nearly complete graphs 1 / L is too long a step: s contains the latest change of the node's own gradient,
        which no round has averaged yet.
        """
        a = 1 / (constants.L * max(constants.chi, 2.0) ** 3)
        return cls(a=a, mu=constants.mu, theta=sqrt(constants.mu * a) / 2)

    theory = unit

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """x^0 = z^0 = 0; s and the previous gradient start at 0, so the first s is grad F(y^0)."""
        return State(x=zeros, z=zeros, s=zeros, g=zeros)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """One round of three vectors."""
        x, z, s, g = state
        a, theta = self.a, self.theta
        pull = self.mu * a / theta

        y = theta * z + (1 - theta) * x  # (1)
        g_next = oracle.gradient(y)
        M_s, M_yz, M_x = gossip.average(s, pull * y + z, x)
        s = M_s + g_next - g  # (2)
        z = (M_yz - a / theta * s) / (1 + pull)  # (3)
        x = theta * z + (1 - theta) * M_x  # (4)
        return State(x, z, s, g_next), x


@dataclass(frozen=True)
class AccGTMulti(MultiConsensus, AccGT):
    r"""Acc-GT with T rounds of averaging in place of one, which makes its rate optimal in rounds and gradients.

    .. math::
        M = M(k + T - 1) \cdots M(k + 1) M(k), \qquad M(k) = I - W(k) / \lambda_{\max} \qquad (1)

    takes the place of M(k) in Acc-GT. With T = ceil(chi ln 2) these rounds halve all disagreement, so the method sees a
    network with chi = 2.

    Parameters
    ----------
    a : float
        Positive step size.
    mu : float
        The functions' strong convexity; positive.
    theta : float
        In (0, 1).
    T : int
        Rounds per step, at least 1.

    References
    ----------
    Li, Lin. Accelerated Gradient Tracking over Time-varying Graphs for Decentralized Optimization. JMLR 2024,
    arXiv:2104.02596, with multiple consensus.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> multi = AccGTMulti.unit(Constants(mu=1.0, L=4.0, lambda_min_plus=0.1))
    >>> multi.a, multi.T
    (0.03125, 7)
    """

    name = "acc-gt-multi"
    title = "Acc-GT multi-consensus"
    single = AccGT
