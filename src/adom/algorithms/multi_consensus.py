"""Multi-consensus: several rounds of averaging per gradient, in place of one."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from .acc_gt import AccGT
from .adom_plus import ADOMPlus
from .base import Array, Constants, Gossip, Method, Number, Oracle, halving


@dataclass(frozen=True)
class MultiConsensus(Method):
    """A method whose every step takes T rounds as one; a base to put before the method itself.

    With T = ceil(chi ln 2) these rounds halve all disagreement, so the method sees a network with chi = 2.
    """

    single: ClassVar[type[Method]]
    """The method with one round per step."""
    rounds_per_step = None
    complexity = "chi kappa^(1/2) log(1/eps), with kappa^(1/2) log(1/eps) gradients"

    T: Number

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]  # the method's own
        self._require_whole("T")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """The `theory` of the method with one round per step for chi = 2, and T = ceil(chi ln 2)."""
        easier, T = halving(constants)
        return cls(**cls.single.theory(easier).parameters(), T=T)

    @classmethod
    def unit(cls, constants: Constants) -> Self:
        """The `unit` parameters of the method with one round per step for chi = 2, and T = ceil(chi ln 2)."""
        easier, T = halving(constants)
        return cls(**cls.single.unit(easier).parameters(), T=T)

    def rounds_of_step(self, k: Number) -> Number:
        """Return T for every step."""
        return self.T

    def step(self, state: Any, oracle: Oracle, gossip: Gossip) -> tuple[Any, Array]:
        """T rounds."""
        return super().step(state, oracle, gossip.windows(self.T))  # (1)


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


@dataclass(frozen=True)
class ADOMPlusMulti(MultiConsensus, ADOMPlus):
    r"""ADOM+ with T rounds of averaging in place of one: fewest gradients, and as many rounds as ADOM+.

    .. math::
        I - W = M(k + T - 1) \cdots M(k + 1) M(k), \qquad M(k) = I - W(k) / \lambda_{\max} \qquad (1)

    takes the place of W(k) in ADOM+. With T = ceil(chi ln 2) these rounds halve all disagreement, so the method sees a
    network with chi = 2. It takes kappa^(1/2) log(1/eps) gradients and chi times as many rounds.

    Parameters
    ----------
    tau_1, tau_2, sigma_1, sigma_2 : float
        In (0, 1].
    eta, theta, alpha, beta, nu, gamma, delta, zeta : float
        Positive.
    T : int
        Rounds per step, at least 1.

    References
    ----------
    Kovalev, Gasanov, Gasnikov, Richtarik. Lower Bounds and Optimal Algorithms for Smooth and Strongly Convex
    Decentralized Optimization over Time-Varying Networks. NeurIPS 2021, arXiv:2106.04469, Algorithm 2 with
    multi-consensus.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> ADOMPlusMulti.theory(Constants(mu=1.0, L=4.0, lambda_min_plus=0.1)).T
    7
    """

    name = "adom+multi"
    title = "ADOM+ multi-consensus"
    single = ADOMPlus
