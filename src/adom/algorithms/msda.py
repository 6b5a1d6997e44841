"""MSDA: Nesterov's method on the dual with accelerated averaging, optimal on a network that does not change."""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle, chebyshev_bound


class State(NamedTuple):
    """State carried from step to step."""

    y: Array
    z: Array


@dataclass(frozen=True)
class MSDA(Method):
    r"""Nesterov's method on the dual with a polynomial of W in place of the projection.

    .. math::
        y^{k+1} &= z^k - \eta P(W) \nabla F^*(z^k) \qquad (1) \\
        z^{k+1} &= y^{k+1} + \beta (y^{k+1} - y^k) \qquad (2)

    P is a Chebyshev polynomial of degree K, computed in K rounds. With K = floor(chi^(1/2)) its eigenvalues off
    consensus lie between 0.4 and 1.6, for every chi. ``y`` takes the gradient steps, ``z`` extrapolates; the rows of
    both sum to zero throughout. If W changes between the rounds, P is no longer a polynomial of one matrix. The iterate
    reported is grad F*(z^k).

    Parameters
    ----------
    eta : float
        Positive step size.
    beta : float
        Momentum, in [0, 1).
    K : int
        Rounds per step, at least 1.
    chi : float
        The network's chi, for which the polynomial is built; at least 1.

    References
    ----------
    Scaman, Bach, Bubeck, Lee, Massoulie. Optimal Algorithms for Smooth and Strongly Convex Distributed Optimization in
    Networks. ICML 2017, arXiv:1702.08704, Algorithm 2 and Theorem 4.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> MSDA.theory(Constants(mu=1.0, L=4.0, lambda_min_plus=0.04)).K
    5
    """

    name = "msda"
    title = "MSDA"
    oracle = "dual"
    vectors_per_round = 1
    rounds_per_step = None
    needs = "fixed"
    windowed = True
    complexity = "chi^(1/2) kappa^(1/2) log(1/eps)"
    reference = "Scaman et al. 2017, arXiv:1702.08704"

    eta: Number
    beta: Number
    K: Number
    chi: Number

    def __post_init__(self) -> None:
        self._require_positive("eta")
        self._require("lie in [0, 1)", lambda v: (v >= 0) & (v < 1), "beta")
        self._require_whole("K")
        self._require("be at least 1 and finite", lambda v: (v >= 1) & (v < float("inf")), "chi")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """K = floor(chi^(1/2)), and Nesterov's parameters for the eigenvalues of P."""
        K = int(sqrt(constants.chi))
        c = chebyshev_bound(constants.chi, K)
        root = sqrt(constants.kappa * (1 + c) / (1 - c))
        return cls(eta=constants.mu / (1 + c), beta=(root - 1) / (root + 1), K=K, chi=constants.chi)

    unit = theory

    def rounds_of_step(self, k: Number) -> Number:
        """Return K for every step."""
        return self.K

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """y^0 = z^0 = 0."""
        return State(y=zeros, z=zeros)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """K rounds of one vector."""
        y, z = state
        g = oracle.dual_gradient(z)
        y_next = z - self.eta * gossip.accelerated(g, self.K, self.chi)  # (1)
        z = y_next + self.beta * (y_next - y)  # (2)
        return State(y_next, z), g
