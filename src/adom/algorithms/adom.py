"""ADOM: accelerated decentralized optimization over time-varying networks, with a dual oracle."""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle, at_most, least_chi


class State(NamedTuple):
    """State of Algorithm 2 between rounds k and k + 1."""

    z: Array
    z_f: Array
    m: Array


@dataclass(frozen=True)
class ADOM(Method):
    r"""Nesterov's method on the dual, with a gossip round and error feedback in place of the projection.

    The problem min_x sum_i f_i(x) has the dual min F*(z) over the z whose rows sum to zero, where
    F*(z) = sum_i f_i*(z_i). Nesterov's method would project grad F* onto that space, which takes full
    averaging. ADOM multiplies by the gossip matrix W(k) instead, a contractive but biased compressor on
    that space, and corrects the bias by error feedback (Algorithm 2 of the paper):

    .. math::
        z_g^k     &= \tau z^k + (1 - \tau) z_f^k \\
        \Delta^k  &= \sigma W(k) (m^k - \eta \nabla F^*(z_g^k)) \\
        m^{k+1}   &= m^k - \eta \nabla F^*(z_g^k) - \Delta^k \\
        z^{k+1}   &= z^k + \eta \alpha (z_g^k - z^k) + \Delta^k \\
        z_f^{k+1} &= z_g^k - \theta W(k) \nabla F^*(z_g^k)

    - ``z`` is the slow, averaged sequence; its rows sum to zero throughout;
    - ``z_f`` takes the plain gradient steps, and the gradient is taken at ``z_g``;
    - ``m`` holds the part that the compressor W(k) has not let through yet.

    The iterate reported is grad F*(z_g^k); it approaches x* at every node.

    Parameters
    ----------
    alpha, eta, theta, sigma : float
        Positive. The theorem requires theta <= mu / lambda_max and sigma <= 1 / lambda_max.
    tau : float
        In (0, 1).

    References
    ----------
    Kovalev, Shulgin, Richtarik, Rogozin, Gasnikov. ADOM: Accelerated Decentralized Optimization Method for
    Time-Varying Networks. ICML 2021, arXiv:2102.09234. Algorithm 2 and Theorem 1.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> adom = ADOM.theory(Constants(mu=1.0, L=4.0, lambda_min_plus=0.5, lambda_max=1.0))
    >>> round(adom.eta, 6), round(adom.tau, 6)
    (0.285714, 0.035714)
    """

    name = "adom"
    title = "ADOM"
    oracle = "dual"
    vectors_per_round = 2
    needs = "connected"
    plain = True
    complexity = "chi kappa^(1/2) log(1/eps)"
    reference = "Kovalev et al. 2021, arXiv:2102.09234"

    alpha: Number
    eta: Number
    theta: Number
    sigma: Number
    tau: Number

    def __post_init__(self) -> None:
        self._require_positive("alpha", "eta", "theta", "sigma")
        self._require("lie in (0, 1)", lambda v: (v > 0) & (v < 1), "tau")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """Theorem 1: contraction of the error by 1 - sqrt(mu / L) / (7 chi) every round."""
        return cls._with_chi(constants, 7 * constants.chi)

    @classmethod
    def unit(cls, constants: Constants) -> Self:
        """Theorem 1 without its 7s: eta = 2 sqrt(mu L) / chi and tau = sqrt(mu / L) / chi.

        `least_chi`, at most 2, replaces a smaller chi, that of a nearly complete graph.
        """
        return cls._with_chi(constants, max(constants.chi, least_chi(constants)))

    @classmethod
    def _with_chi(cls, c: Constants, chi: float) -> Self:
        return cls(
            alpha=1 / (2 * c.L),
            eta=2 * sqrt(c.mu * c.L) / chi,
            theta=c.mu / c.lambda_max,
            sigma=1 / c.lambda_max,
            tau=sqrt(c.mu / c.L) / chi,
        )

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """Lines 1 and 2: z^0 = z_f^0 = m^0 = 0."""
        return State(z=zeros, z_f=zeros, m=zeros)

    def renewed(self, state: State, k: Number) -> State:
        """Reset m to 0 at intervals long enough for a run to reach its rounding floor.

        The mean of m over the nodes moves by about -eta x* in every round. Nothing uses this mean, but its
        rounding would eventually exceed the rest of m. Any m is a valid start: a reset makes the theorem's Psi at most
        6/5 times as large, since ||z - z*||^2 <= 6/5 ||z + P m - z*||^2 + 6 ||m||_P^2. The rounds between two resets
        shrink Psi by exp(36), about as far as rounding allows (in float32 by exp(9)). The theorem has eta alpha = tau;
        with other parameters, the smaller of the two sets the rate.
        """
        rate = at_most(self.tau, self.eta * self.alpha)
        rounds = (0.75 * state.m.dtype.itemsize) ** 2 / rate // 1  # 36 / rate in float64, 9 / rate in float32
        return state._replace(m=state.m * (k % rounds > 0))

    @classmethod
    def at_rest(cls, state: State) -> State:
        """Return the state with z = z_f and m = 0, a valid start since the rows of z_f sum to zero."""
        return State(z=state.z_f, z_f=state.z_f, m=0 * state.m)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """Lines 4 to 8, one communication round of two vectors."""
        z, z_f, m = state
        alpha, eta, theta, sigma, tau = self.alpha, self.eta, self.theta, self.sigma, self.tau

        z_g = z_f + tau * (z - z_f)  # line 4, in a form that is exact for z = z_f
        g = oracle.dual_gradient(z_g)
        W_residual, W_g = gossip(m - eta * g, g)
        delta = sigma * W_residual  # line 5
        m = m - eta * g - delta  # line 6
        z = z + (eta * alpha * (z_g - z) + delta)  # line 7
        z_f = z_g - theta * W_g  # line 8
        return State(z, z_f, m), g
