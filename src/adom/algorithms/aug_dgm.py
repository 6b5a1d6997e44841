"""Aug-DGM: gradient tracking in adapt-then-combine form."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle


class State(NamedTuple):
    """State carried from step to step; g is grad F(x), kept so that it is not computed twice."""

    x: Array
    s: Array
    g: Array


@dataclass(frozen=True)
class AugDGM(Method):
    r"""Every node descends along its estimate of the average gradient; iterates and estimates are averaged afterwards.

    .. math::
        x^{k+1} &= M (x^k - a s^k) \qquad (1) \\
        s^{k+1} &= M (s^k + \nabla F(x^{k+1}) - \nabla F(x^k)) \qquad (2)

    with M = I - W / lambda_max. ``s`` tracks the average gradient: its rows sum to those of grad F(x) throughout.
    (2) averages gradients at the result of (1), so a step takes two rounds; SONATA averages s alone and takes one.

    Parameters
    ----------
    a : float
        Positive step size; below 2 / L.

    References
    ----------
    Xu, Zhu, Soh, Xie. Augmented Distributed Gradient Methods for Multi-Agent Optimization Under Uncoordinated Constant
    Stepsizes. CDC 2015. Alghunaim, Ryu, Yuan, Sayed. Decentralized Proximal Gradient Algorithms with Linear Convergence
    Rates. IEEE Transactions on Automatic Control 2021, arXiv:1909.06479, for the step and the rate.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> AugDGM.theory(Constants(mu=1.0, L=4.0)).a
    0.25
    """

    name = "aug-dgm"
    title = "Aug-DGM"
    oracle = "primal"
    vectors_per_round = 1
    rounds_per_step = 2
    needs = "fixed"
    complexity = "max(chi^2, kappa) log(1/eps)"
    reference = "Xu, Zhu, Soh and Xie 2015; the rate in arXiv:1909.06479"

    a: Number

    def __post_init__(self) -> None:
        self._require_positive("a")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """a = 1 / L: contraction of the squared error by the greater of 1 - 1 / kappa and 1 - 1 / chi^2 a step.

        This requires that M has no negative eigenvalue, which is the case here.
        """
        return cls(a=1 / constants.L)

    unit = theory

    def rounds_of_step(self, k: Number) -> Number:
        """Return 2 for every step."""
        return 2

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """x^0 = 0, s^0 = grad F(x^0)."""
        g = oracle.gradient(zeros)
        return State(x=zeros, s=g, g=g)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """Two rounds of one vector."""
        x, s, g = state
        x = gossip.average(x - self.a * s)  # (1)
        g_next = oracle.gradient(x)
        s = gossip.average(s + g_next - g)  # (2)
        return State(x, s, g_next), x
