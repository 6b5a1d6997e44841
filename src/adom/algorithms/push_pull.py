"""Push-Pull: gradient tracking on directed graphs, pulling the iterates and pushing the gradients."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle


class State(NamedTuple):
    """State carried from round to round; g is grad F(x), kept so that it is not computed twice."""

    x: Array
    s: Array
    g: Array


@dataclass(frozen=True)
class PushPull(Method):
    r"""Nodes pull iterates with a row-stochastic R(k) and push tracked gradients with a column-stochastic C(k).

    .. math::
        x^{k+1} &= R(k) (x^k - a s^k) \qquad (1) \\
        s^{k+1} &= C(k) s^k + \nabla F(x^{k+1}) - \nabla F(x^k) \qquad (2)

    R preserves consensus and C preserves sums: the rows of ``s`` sum to those of grad F(x) throughout. Both are built
    from the same directed graph, R_ij = 1 / (1 + in-degree of i) and C_ij = 1 / (1 + out-degree of j) where j sends to
    i or i = j, so a node needs to know only its own neighbours. In an undirected graph every link goes both ways. The
    source proves convergence on fixed graphs and for random gossip. A close relative, TV-AB, is proved on changing
    graphs (arXiv:1810.07393).

    Parameters
    ----------
    a : float
        Positive step size, small enough. The source proves linear convergence below a bound that depends on how each
        matrix contracts in its own norm; it has no closed form in mu, L and chi.

    References
    ----------
    Pu, Shi, Xu, Nedic. Push-Pull Gradient Methods for Distributed Optimization in Networks. IEEE Transactions on
    Automatic Control 2021, arXiv:1810.06653.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> PushPull.unit(Constants(mu=1.0, L=4.0, lambda_min_plus=0.5)).a
    0.0625
    """

    name = "push-pull"
    title = "Push-Pull"
    oracle = "primal"
    vectors_per_round = 2
    needs = "fixed"
    directed = True
    complexity = "linear; directed graphs, no closed form in chi"
    reference = "Pu, Shi, Xu and Nedic 2020, arXiv:1810.06653"

    a: Number

    def __post_init__(self) -> None:
        self._require_positive("a")

    @classmethod
    def unit(cls, constants: Constants) -> Self:
        """a = 1 / (L chi^2), as for DIGing; the source's bound cannot be computed from these constants."""
        return cls(a=1 / (constants.L * constants.chi**2))

    theory = unit

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """x^0 = 0, s^0 = grad F(x^0)."""
        g = oracle.gradient(zeros)
        return State(x=zeros, s=g, g=g)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """One round of two vectors."""
        x, s, g = state
        x, C_s = gossip.push_pull(x - self.a * s, s)  # (1)
        g_next = oracle.gradient(x)
        s = C_s + g_next - g  # (2)
        return State(x, s, g_next), x
