"""APM: the accelerated penalty method, Nesterov's method with ever more averaging."""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle, at_least, ceiling


class State(NamedTuple):
    """State carried from step to step."""

    x: Array
    x_before: Array
    k: Number


@dataclass(frozen=True)
class APM(Method):
    r"""Nesterov's method in the primal with T_k rounds of averaging after the gradient of step k, T_k growing with k.

    With momentum a = (mu / L)^(1/2):

    .. math::
        y^k     &= x^k + \frac{1 - a}{1 + a} (x^k - x^{k-1}) \qquad (1) \\
        x^{k+1} &= \mathrm{mix}(y^k - \nabla F(y^k) / L, T_k), \qquad T_k = \max(1, \lceil k a \chi \rceil) \qquad (2)

    with k = 0, 1, ... Nothing tracks the average gradient, so the averaging has to become as exact as the error wanted.
    T_k therefore grows, and the total rounds grow like log^2(1/eps). Every round of averaging uses the network's next
    graph. The first source derives the method from a growing penalty on disagreement. Here, as in the second, plain
    averaging replaces the penalty's step.

    Parameters
    ----------
    step_size : float
        1 / L.
    a : float
        Momentum, in (0, 1].
    growth : float
        a chi, the rounds of averaging that each step adds; positive.

    References
    ----------
    Li, Fang, Yin, Lin. A Sharp Convergence Rate Analysis for Distributed Accelerated Gradient Methods. 2018,
    arXiv:1810.01053 (APM-C), published as Decentralized Accelerated Gradient Methods With Increasing Penalty
    Parameters, IEEE Transactions on Signal Processing 2020. Rogozin, Gasnikov. Towards Accelerated Rates for
    Distributed Optimization over Time-Varying Networks. 2020, arXiv:2009.11069, for changing graphs.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> APM.theory(Constants(mu=1.0, L=100.0, lambda_min_plus=0.05)).growth
    2.0
    """

    name = "apm"
    title = "APM"
    oracle = "primal"
    vectors_per_round = 1
    rounds_per_step = None
    needs = "connected"
    complexity = "chi kappa^(1/2) log^2(1/eps)"
    reference = "Li, Fang, Yin and Lin 2018, arXiv:1810.01053"

    step_size: Number
    a: Number
    growth: Number

    def __post_init__(self) -> None:
        self._require_positive("step_size", "growth")
        self._require("lie in (0, 1]", lambda v: (v > 0) & (v <= 1), "a")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """T_k = ceil(k a chi), the order that the analysis requires; the sources differ in its constant."""
        a = sqrt(1 / constants.kappa)
        return cls(step_size=1 / constants.L, a=a, growth=a * constants.chi)

    unit = theory

    def rounds_of_step(self, k: Number) -> Number:
        """Return T_k = max(1, ceil(k growth))."""
        return at_least(1, ceiling(k * self.growth))

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """x^0 = x^{-1} = 0."""
        return State(x=zeros, x_before=zeros, k=0)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """T_k rounds of one vector."""
        x, x_before, k = state
        y = x + (1 - self.a) / (1 + self.a) * (x - x_before)  # (1)
        x_next = gossip.mix(y - self.step_size * oracle.gradient(y), self.rounds_of_step(k))  # (2)
        return State(x_next, x, k + 1), x_next
