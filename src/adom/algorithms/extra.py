"""EXTRA: DGD corrected by its own previous step."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle


class State(NamedTuple):
    """State carried from round to round: x, and w and the gradient of the previous x."""

    x: Array
    w: Array
    g: Array


@dataclass(frozen=True)
class EXTRA(Method):
    r"""The difference of two DGDs, one with M and one with (I + M) / 2, which cancels the bias of DGD.

    .. math::
        w^{k+1} &= (x^k + M(k) x^k) / 2 \qquad (1) \\
        x^{k+1} &= 2 w^{k+1} - w^k - a (\nabla F(x^k) - \nabla F(x^{k-1})) \qquad (2)

    with M = I - W / lambda_max. The next step subtracts the average ``w`` again. The first step is DGD's,
    x^1 = M x^0 - a grad F(x^0), with w^0 = x^0 and a previous gradient of 0. The rows of
    x^{k+1} - w^{k+1} + a grad F(x^k) sum to zero throughout, so the mean of x takes the steps of gradient descent.

    Parameters
    ----------
    a : float
        Positive step size.

    References
    ----------
    Shi, Ling, Wu, Yin. EXTRA: An Exact First-Order Algorithm for Decentralized Consensus Optimization. SIAM Journal on
    Optimization 2015, arXiv:1404.6264. Li, Yan. On Linear Convergence of Two Decentralized Algorithms. Journal of
    Optimization Theory and Applications 2021, arXiv:1906.07225, for the longest step.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> EXTRA.theory(Constants(mu=1.0, L=4.0)).a
    0.25
    """

    name = "extra"
    title = "EXTRA"
    oracle = "primal"
    vectors_per_round = 1
    needs = "fixed"
    latest = 2
    complexity = "linear with a step of order 1 / L"
    reference = "Shi, Ling, Wu and Yin 2015, arXiv:1404.6264"

    a: Number

    def __post_init__(self) -> None:
        self._require_positive("a")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """a = 1 / L.

        Li and Yan prove linear convergence below (5 + 3 lambda_min(M)) / (4 L), which is at least 5 / (4 L) here. The
        source's own theorem requires less than mu / L^2.
        """
        return cls(a=1 / constants.L)

    unit = theory

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """x^0 = w^0 = 0; the previous gradient starts at 0."""
        return State(x=zeros, w=zeros, g=zeros)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """One round of one vector."""
        x, w, g = state
        g_next = oracle.gradient(x)
        w_next = (x + gossip.average(x)) / 2  # (1)
        x = 2 * w_next - w - self.a * (g_next - g)  # (2)
        return State(x, w_next, g_next), x
