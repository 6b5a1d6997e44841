"""Acc-GT with multi-consensus: several rounds per gradient."""

from dataclasses import dataclass
from typing import Self

from .acc_gt import AccGT, State
from .base import Array, Constants, Gossip, Number, Oracle, halving


@dataclass(frozen=True)
class AccGTMulti(AccGT):
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
    rounds_per_step = None
    complexity = "chi kappa^(1/2) log(1/eps), with kappa^(1/2) log(1/eps) gradients"

    T: Number

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_whole("T")

    @classmethod
    def unit(cls, constants: Constants) -> Self:
        """Acc-GT's step for chi = 2, and T = ceil(chi ln 2), the orders of the source's bounds."""
        easier, T = halving(constants)
        return cls(**AccGT.unit(easier).parameters(), T=T)

    theory = unit

    def rounds_of_step(self, k: Number) -> Number:
        """Return T for every step."""
        return self.T

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """T rounds of three vectors."""
        return super().step(state, oracle, gossip.windows(self.T))  # (1)
