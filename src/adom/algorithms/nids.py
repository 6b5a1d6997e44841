"""NIDS: gradient descent whose step does not depend on the network."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle


class State(NamedTuple):
    """State carried from round to round: x, and the previous x with its gradient."""

    x: Array
    x_before: Array
    g: Array


@dataclass(frozen=True)
class NIDS(Method):
    r"""EXTRA that also averages the gradient differences; on any network its step size is that of gradient descent.

    .. math::
        x^{k+1} = \frac{I + M(k)}{2} (2 x^k - x^{k-1} - a (\nabla F(x^k) - \nabla F(x^{k-1}))) \qquad (1)

    with M = I - W / lambda_max, and x^1 = x^0 - a grad F(x^0), which needs no messages. The rows of
    x^k - x^{k-1} + a grad F(x^{k-1}) sum to zero throughout. Exact Diffusion is the same recursion from another start.

    Parameters
    ----------
    a : float
        Positive step size; below 2 / L.

    References
    ----------
    Li, Shi, Yan. A Decentralized Proximal-Gradient Method with Network Independent Step-Sizes and Separated Convergence
    Rates. IEEE Transactions on Signal Processing 2019, arXiv:1704.07807, without the proximal part.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> NIDS.theory(Constants(mu=1.0, L=4.0)).a
    0.25
    """

    name = "nids"
    title = "NIDS"
    oracle = "primal"
    vectors_per_round = 1
    needs = "fixed"
    latest = 2
    complexity = "max(chi, kappa) log(1/eps)"
    reference = "Li, Shi and Yan 2019, arXiv:1704.07807"

    a: Number

    def __post_init__(self) -> None:
        self._require_positive("a")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """a = 1 / L: contraction of the squared error by the greater of 1 - 1 / kappa and 1 - 1 / (2 chi) a round."""
        return cls(a=1 / constants.L)

    unit = theory

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """x^0 = 0, and x^1, which every node computes alone."""
        g = oracle.gradient(zeros)
        return State(x=zeros - self.a * g, x_before=zeros, g=g)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """One round of one vector."""
        x, x_before, g = state
        g_next = oracle.gradient(x)
        v = 2 * x - x_before - self.a * (g_next - g)
        x_next = (v + gossip.average(v)) / 2  # (1)
        return State(x_next, x, g_next), x_next
