"""OPAPC: the optimal proximal alternating predictor-corrector, MSDA's rate with a primal oracle."""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle, chebyshev_bound


class State(NamedTuple):
    """State carried from step to step."""

    x: Array
    x_f: Array
    z: Array


@dataclass(frozen=True)
class OPAPC(Method):
    r"""An accelerated predictor-corrector method for the saddle point of x and the consensus multiplier z.

    .. math::
        x_g     &= \tau x + (1 - \tau) x_f \qquad (1) \\
        \hat x  &= (x - \eta (\nabla F(x_g) - \alpha x_g + z)) / (1 + \eta \alpha) \qquad (2) \\
        z^+     &= z + \theta P(W) \hat x \qquad (3) \\
        x^+     &= (x - \eta (\nabla F(x_g) - \alpha x_g + z^+)) / (1 + \eta \alpha) \qquad (4) \\
        x_f^+   &= x_g + \frac{2 \tau}{2 - \tau} (x^+ - x) \qquad (5)

    P is a Chebyshev polynomial of degree T, computed in T rounds, as in MSDA. ``x`` is predicted (2) and corrected (4)
    with the multiplier ``z``, whose rows sum to zero throughout. The subscript f marks the sequence of gradient steps
    and g that of extrapolation. If W changes between the rounds, P is no longer a polynomial of one matrix.

    Parameters
    ----------
    tau : float
        In (0, 1].
    eta, theta, alpha : float
        Positive.
    T : int
        Rounds per step, at least 1.
    chi : float
        The network's chi, for which the polynomial is built; at least 1.

    References
    ----------
    Kovalev, Salim, Richtarik. Optimal and Practical Algorithms for Smooth and Strongly Convex Decentralized
    Optimization. NeurIPS 2020, arXiv:2006.11773.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> OPAPC.theory(Constants(mu=1.0, L=100.0, lambda_min_plus=0.04)).T
    5
    """

    name = "opapc"
    title = "OPAPC"
    oracle = "primal"
    vectors_per_round = 1
    rounds_per_step = None
    needs = "fixed"
    windowed = True
    complexity = "chi^(1/2) kappa^(1/2) log(1/eps)"
    reference = "Kovalev, Salim and Richtarik 2020, arXiv:2006.11773"

    tau: Number
    eta: Number
    theta: Number
    alpha: Number
    T: Number
    chi: Number

    def __post_init__(self) -> None:
        self._require("lie in (0, 1]", lambda v: (v > 0) & (v <= 1), "tau")
        self._require_positive("eta", "theta", "alpha")
        self._require_whole("T")
        self._require("be at least 1 and finite", lambda v: (v >= 1) & (v < float("inf")), "chi")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """T = floor(chi^(1/2)), and the parameters of the source's theorem for the eigenvalues of P, within 1 +- c.

        With chi' = (1 + c) / (1 - c): tau = min(1, (chi' / kappa)^(1/2) / 2), eta = 1 / (4 tau L),
        theta = 1 / (eta (1 + c)), alpha = mu. Each step divides the error by
        1 + min(1 / (kappa chi')^(1/2), 1 / chi') / 4.
        """
        T = int(sqrt(constants.chi))
        c = chebyshev_bound(constants.chi, T)
        tau = min(1.0, sqrt((1 + c) / (1 - c) / constants.kappa) / 2)
        eta = 1 / (4 * tau * constants.L)
        return cls(tau=tau, eta=eta, theta=1 / (eta * (1 + c)), alpha=constants.mu, T=T, chi=constants.chi)

    unit = theory

    def rounds_of_step(self, k: Number) -> Number:
        """Return T for every step."""
        return self.T

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """Everything starts at 0."""
        return State(x=zeros, x_f=zeros, z=zeros)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """T rounds of one vector."""
        x, x_f, z = state
        eta, alpha = self.eta, self.alpha
        x_g = x_f + self.tau * (x - x_f)  # (1), in a form that is exact for x = x_f
        g = oracle.gradient(x_g) - alpha * x_g
        x_hat = (x - eta * (g + z)) / (1 + eta * alpha)  # (2)
        z = z + self.theta * gossip.accelerated(x_hat, self.T, self.chi)  # (3)
        x_next = (x - eta * (g + z)) / (1 + eta * alpha)  # (4)
        x_f = x_g + 2 * self.tau / (2 - self.tau) * (x_next - x)  # (5)
        return State(x_next, x_f, z), x_next
