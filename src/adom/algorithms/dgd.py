"""DGD: decentralized gradient descent, the method that the others improve on."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle


class State(NamedTuple):
    """State carried from round to round."""

    x: Array


@dataclass(frozen=True)
class DGD(Method):
    r"""Every node averages with its neighbours and descends along its own gradient.

    .. math::
        x^{k+1} = M(k) x^k - a \nabla F(x^k) \qquad (1)

    with M = I - W / lambda_max. At the solution only the sum of the nodes' gradients is zero, so each gradient pulls
    its own node away again. With a constant step the run ends in a neighbourhood of the solution whose radius is of
    order a chi.

    Parameters
    ----------
    a : float
        Positive step size.

    References
    ----------
    Nedic, Ozdaglar. Distributed Subgradient Methods for Multi-Agent Optimization. IEEE Transactions on Automatic
    Control 2009, for graphs connected over windows of rounds. Yuan, Ling, Yin. On the Convergence of Decentralized
    Gradient Descent. SIAM Journal on Optimization 2016, arXiv:1310.7063, for the linear rate on a fixed network.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> DGD.theory(Constants(mu=1.0, L=4.0)).a
    0.2
    """

    name = "dgd"
    title = "DGD"
    oracle = "primal"
    vectors_per_round = 1
    needs = "windows"
    complexity = "kappa log(1/eps), to a neighbourhood of radius a chi"
    reference = "Yuan, Ling and Yin 2016, arXiv:1310.7063"

    a: Number

    def __post_init__(self) -> None:
        self._require_positive("a")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """a = 1 / (mu + L), the longest step of the linear rate if M has no negative eigenvalue, as here."""
        return cls(a=1 / (constants.mu + constants.L))

    @classmethod
    def unit(cls, constants: Constants) -> Self:
        """a = 1 / L."""
        return cls(a=1 / constants.L)

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """x^0 = 0."""
        return State(x=zeros)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """One round of one vector."""
        x = gossip.average(state.x) - self.a * oracle.gradient(state.x)  # (1)
        return State(x), x
