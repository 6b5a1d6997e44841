"""Mudag: multi-consensus decentralized accelerated gradient descent."""

from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle


class State(NamedTuple):
    """State carried from step to step: x, y, and the previous y with its gradient."""

    x: Array
    y: Array
    y_before: Array
    g_before: Array


@dataclass(frozen=True)
class Mudag(Method):
    r"""Nesterov's method in the primal with K rounds of averaging after every gradient.

    With momentum a = (mu / L)^(1/2):

    .. math::
        x^{k+1} &= \mathrm{mix}(y^k + x^k - y^{k-1} - (\nabla F(y^k) - \nabla F(y^{k-1})) / L, K) \qquad (1) \\
        y^{k+1} &= x^{k+1} + \frac{1 - a}{1 + a} (x^{k+1} - x^k) \qquad (2)

    ``x`` takes the gradient steps, ``y`` extrapolates. The differences track the average gradient: the mean of the rows
    of x obeys x' = y - (mean gradient) / L. All nodes start at one point, y^{-1} = y^0 = x^0, with a previous gradient
    of 0. Every round of averaging uses the network's next graph.

    Parameters
    ----------
    step_size : float
        1 / L.
    a : float
        Momentum, in (0, 1].
    K : int
        Rounds of averaging after every gradient, at least 1.

    References
    ----------
    Ye, Luo, Zhou, Zhang. Multi-consensus Decentralized Accelerated Gradient Descent. JMLR 2023, arXiv:2005.00797. The
    source uses accelerated averaging, which a changing network does not allow; plain averaging takes chi log(kappa)
    rounds.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> Mudag.theory(Constants(mu=1.0, L=100.0, lambda_min_plus=0.1)).K
    47
    """

    name = "mudag"
    title = "Mudag"
    oracle = "primal"
    vectors_per_round = 1
    rounds_per_step = None
    needs = "connected"
    complexity = "chi kappa^(1/2) log(kappa) log(1/eps)"
    reference = "Ye, Luo, Zhou and Zhang 2020, arXiv:2005.00797"

    step_size: Number
    a: Number
    K: Number

    def __post_init__(self) -> None:
        self._require_positive("step_size")
        self._require("lie in (0, 1]", lambda v: (v > 0) & (v <= 1), "a")
        self._require_whole("K")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """K = ceil(chi log kappa); the source gives only the order."""
        return cls(
            step_size=1 / constants.L,
            a=sqrt(1 / constants.kappa),
            K=max(1, ceil(constants.chi * log(constants.kappa))),
        )

    unit = theory

    def rounds_of_step(self, k: Number) -> Number:
        """Return K for every step."""
        return self.K

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """Everything starts at 0, also the previous gradient."""
        return State(x=zeros, y=zeros, y_before=zeros, g_before=zeros)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """K rounds of one vector."""
        x, y, y_before, g_before = state
        g = oracle.gradient(y)
        x_next = gossip.mix(y + x - y_before - self.step_size * (g - g_before), self.K)  # (1)
        y_next = x_next + (1 - self.a) / (1 + self.a) * (x_next - x)  # (2)
        return State(x_next, y_next, y, g), x_next
