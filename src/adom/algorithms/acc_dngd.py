"""Acc-DNGD: Nesterov's method in the primal with gradient tracking."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle


class State(NamedTuple):
    """State carried from round to round; g is grad F(y), kept so that it is not computed twice."""

    v: Array
    y: Array
    s: Array
    g: Array


@dataclass(frozen=True)
class AccDNGD(Method):
    r"""Accelerated distributed Nesterov gradient descent, for strongly convex functions (Acc-DNGD-SC).

    With a = (mu eta)^(1/2) and M = I - W / lambda_max:

    .. math::
        x^{k+1} &= M(k) y^k - \eta s^k \qquad (1) \\
        v^{k+1} &= (1 - a) M(k) v^k + a M(k) y^k - (\eta / a) s^k \qquad (2) \\
        y^{k+1} &= (x^{k+1} + a v^{k+1}) / (1 + a) \qquad (3) \\
        s^{k+1} &= M(k) s^k + \nabla F(y^{k+1}) - \nabla F(y^k) \qquad (4)

    ``x`` takes the gradient steps and ``v`` carries the momentum. Gradients are taken at ``y``, which is also the
    iterate reported. ``s`` tracks the average gradient: its rows sum to those of grad F(y) throughout. The method was
    designed and proved for networks that do not change.

    Parameters
    ----------
    eta : float
        Positive step size.
    a : float
        Momentum, in (0, 1].

    References
    ----------
    Qu, Li. Accelerated Distributed Nesterov Gradient Descent. IEEE Transactions on Automatic Control 2020,
    arXiv:1705.07176.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> AccDNGD.unit(Constants(mu=1.0, L=1.0, lambda_min_plus=0.5)).eta
    0.125
    """

    name = "acc-dngd"
    title = "Acc-DNGD"
    oracle = "primal"
    vectors_per_round = 3
    needs = "fixed"
    complexity = "chi^(3/2) kappa^(5/7) log(1/eps)"
    reference = "Qu and Li 2019, arXiv:1705.07176"

    eta: Number
    a: Number

    def __post_init__(self) -> None:
        self._require_positive("eta")
        self._require("lie in (0, 1]", lambda v: (v > 0) & (v <= 1), "a")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """eta = s^2 (1 - s)^3 / 250^2 (mu / L)^(3/7) / L with s = max(1 - 1 / chi, 0.4).

        In the theorem s is any upper bound on the contraction of one round; s = 0.4 gives the longest step.
        """
        s = max(1 - 1 / constants.chi, 0.4)
        return cls._with_step(constants, s**2 * (1 - s) ** 3 / 250**2 * constants.kappa ** (-3 / 7) / constants.L)

    @classmethod
    def unit(cls, constants: Constants) -> Self:
        """eta = (mu / L)^(3/7) / (L chi^3), at most 1 / (4 L).

        Longer steps can diverge where a round averages almost fully.
        """
        return cls._with_step(constants, min(constants.kappa ** (-3 / 7) / constants.chi**3, 1 / 4) / constants.L)

    @classmethod
    def _with_step(cls, constants: Constants, eta: float) -> Self:
        return cls(eta=eta, a=(constants.mu * eta) ** 0.5)

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """v^0 = y^0 = 0, s^0 = grad F(y^0)."""
        g = oracle.gradient(zeros)
        return State(v=zeros, y=zeros, s=g, g=g)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """One round of three vectors."""
        v, y, s, g = state
        eta, a = self.eta, self.a
        M_v, M_y, M_s = gossip.average(v, y, s)
        x = M_y - eta * s  # (1)
        v = (1 - a) * M_v + a * M_y - (eta / a) * s  # (2)
        y = (x + a * v) / (1 + a)  # (3)
        g_next = oracle.gradient(y)
        s = M_s + g_next - g  # (4)
        return State(v, y, s, g_next), y
