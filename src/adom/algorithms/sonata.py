"""SONATA: gradient tracking that descends before it averages, in one round."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle


class State(NamedTuple):
    """State carried from round to round; g is grad F(x), kept so that it is not computed twice."""

    x: Array
    s: Array
    g: Array


@dataclass(frozen=True)
class SONATA(Method):
    r"""Every node descends along its estimate of the average gradient, then averages the result with its neighbours.

    .. math::
        x^{k+1} &= M(k) (x^k - a s^k) \qquad (1) \\
        s^{k+1} &= M(k) s^k + \nabla F(x^{k+1}) - \nabla F(x^k) \qquad (2)

    with M = I - W / lambda_max. ``s`` tracks the average gradient: its rows sum to those of grad F(x) throughout. This
    is NEXT and SONATA with local functions replaced by their tangents. It lies between DIGing, which averages x before
    it descends, and Aug-DGM, which also averages the gradient differences. The first source proves the rate of another
    such recursion; the form here is that of the other sources.

    Parameters
    ----------
    a : float
        Positive step size, small enough; the sources have no bound in closed form in mu, L and chi.

    References
    ----------
    Sun, Daneshmand, Scutari. Distributed Optimization Based on Gradient-tracking Revisited: Enhancing Convergence Rate
    via Surrogation. SIAM Journal on Optimization 2022, arXiv:1905.02637, for the rate. Scutari, Sun. Distributed
    Nonconvex Constrained Optimization over Time-Varying Digraphs. Mathematical Programming 2019, arXiv:1809.01106, for
    this form. Di Lorenzo, Scutari. NEXT: In-Network Nonconvex Optimization. 2016, arXiv:1602.00591.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> SONATA.unit(Constants(mu=1.0, L=4.0, lambda_min_plus=0.5)).a
    0.0625
    """

    name = "sonata"
    title = "SONATA"
    oracle = "primal"
    vectors_per_round = 2
    needs = "windows"
    complexity = "linear; no closed form in chi"
    reference = "Sun, Daneshmand and Scutari 2019, arXiv:1905.02637"

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
        x, M_s = gossip.average(x - self.a * s, s)  # (1)
        g_next = oracle.gradient(x)
        s = M_s + g_next - g  # (2)
        return State(x, s, g_next), x
