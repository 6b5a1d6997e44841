"""Push-DIGing: DIGing on directed graphs, corrected by a weight that every node computes."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle


class State(NamedTuple):
    """State carried from round to round; v has one number per node, g is grad F(x)."""

    x: Array
    v: Array
    s: Array
    g: Array


@dataclass(frozen=True)
class PushDIGing(Method):
    r"""Gradient tracking with a column-stochastic C(k) alone; a weight at every node corrects its uneven averaging.

    .. math::
        u^{k+1} &= C(k) (v^k x^k - a s^k), \qquad v^{k+1} = C(k) v^k \qquad (1) \\
        x^{k+1} &= u^{k+1} / v^{k+1} \qquad (2) \\
        s^{k+1} &= C(k) s^k + \nabla F(x^{k+1}) - \nabla F(x^k) \qquad (3)

    C_ij = 1 / (1 + out-degree of j) where j sends to i or i = j, so a node needs to know only how many nodes it sends
    to. The weights ``v`` start at 1 and sum to the number of nodes throughout; the rows of ``s`` sum to those of
    grad F(x). Every link carries two vectors and one number per round. In an undirected graph every link goes both
    ways.

    Parameters
    ----------
    a : float
        Positive step size, small enough. The source proves linear convergence below a bound with push-sum constants
        that do not follow from mu, L and chi.

    References
    ----------
    Nedic, Olshevsky, Shi. Achieving Geometric Convergence for Distributed Optimization over Time-Varying Graphs.
    SIAM Journal on Optimization 2017, arXiv:1607.03218, Algorithm 2.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> PushDIGing.unit(Constants(mu=1.0, L=4.0, lambda_min_plus=0.5)).a
    0.0625
    """

    name = "push-diging"
    title = "Push-DIGing"
    oracle = "primal"
    vectors_per_round = 3  # one of them is a single number per node
    needs = "windows"
    directed = True
    complexity = "linear; directed graphs, no closed form in chi"
    reference = "Nedic, Olshevsky and Shi 2017, arXiv:1607.03218"

    a: Number

    def __post_init__(self) -> None:
        self._require_positive("a")

    @classmethod
    def unit(cls, constants: Constants) -> Self:
        """a = 1 / (L chi^2), as for DIGing."""
        return cls(a=1 / (constants.L * constants.chi**2))

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """a = v_min / (L chi^2) with v_min the least weight of any node in any round, since (2) divides by the weights.

        The source's bound is far smaller and has push-sum constants that do not follow from mu, L and chi.
        """
        return cls(a=cls.unit(constants).a * constants.least_weight)

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """x^0 = 0, v^0 = 1, s^0 = grad F(x^0)."""
        g = oracle.gradient(zeros)
        return State(x=zeros, v=0 * zeros[:, :1] + 1, s=g, g=g)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """One round of two vectors and one number."""
        x, v, s, g = state
        u, v, C_s = gossip.push(v * x - self.a * s, v, s)  # (1)
        x = u / v  # (2)
        g_next = oracle.gradient(x)
        s = C_s + g_next - g  # (3)
        return State(x, v, s, g_next), x
