"""Exact Diffusion: adapt, correct, combine."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle


class State(NamedTuple):
    """State carried from round to round."""

    x: Array
    psi: Array


@dataclass(frozen=True)
class ExactDiffusion(Method):
    r"""Diffusion with a correction term that removes its bias.

    .. math::
        \psi^{k+1} &= x^k - a \nabla F(x^k) \qquad (1) \\
        x^{k+1}    &= \frac{I + M(k)}{2} (\psi^{k+1} + x^k - \psi^k) \qquad (2)

    with M = I - W / lambda_max and psi^0 = x^0. ``psi`` takes the gradient steps (adapt), the difference x - psi
    corrects them, the network combines. The rows of x - psi sum to zero throughout. Eliminating psi gives the recursion
    of NIDS, except that NIDS does not average its first step.

    Parameters
    ----------
    a : float
        Positive step size; below 2 / L.

    References
    ----------
    Yuan, Ying, Zhao, Sayed. Exact Diffusion for Distributed Optimization and Learning, Part I: Algorithm Development.
    IEEE Transactions on Signal Processing 2019, arXiv:1702.05122. The step and the rate are those of NIDS (Li, Shi,
    Yan, arXiv:1704.07807).

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> ExactDiffusion.theory(Constants(mu=1.0, L=4.0)).a
    0.25
    """

    name = "exact-diffusion"
    title = "Exact Diffusion"
    oracle = "primal"
    vectors_per_round = 1
    needs = "fixed"
    latest = 2
    complexity = "max(chi, kappa) log(1/eps)"
    reference = "Yuan, Ying, Zhao and Sayed 2019, arXiv:1702.05122"

    a: Number

    def __post_init__(self) -> None:
        self._require_positive("a")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """a = 1 / L, by the theorem of NIDS: the recursion is the same. The source's own bound is of order mu / L^2."""
        return cls(a=1 / constants.L)

    unit = theory

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """psi^0 = x^0 = 0."""
        return State(x=zeros, psi=zeros)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """One round of one vector."""
        x, psi = state
        psi_next = x - self.a * oracle.gradient(x)  # (1)
        v = psi_next + x - psi
        x = (v + gossip.average(v)) / 2  # (2)
        return State(x, psi_next), x
