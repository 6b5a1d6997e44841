"""PNGD: projected Nesterov gradient descent on the dual, which is ADOM with full averaging in every round."""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle, least_chi


class State(NamedTuple):
    """State of Algorithm 1 between rounds k and k + 1."""

    z: Array
    z_f: Array


@dataclass(frozen=True)
class PNGD(Method):
    r"""Nesterov's accelerated gradient method on the dual, projected onto rows that sum to zero.

    It needs full averaging over all nodes in every round, so it is not a decentralized method; it is the
    bound that ADOM is measured against, and what ADOM becomes on the complete graph. Algorithm 1:

    .. math::
        z_g^k     &= \tau z^k + (1 - \tau) z_f^k \\
        z^{k+1}   &= z^k + \eta \alpha (z_g^k - z^k) - \eta P \nabla F^*(z_g^k) \\
        z_f^{k+1} &= z_g^k - \theta P \nabla F^*(z_g^k)

    where P subtracts the mean over nodes. ``z`` is the slow sequence, ``z_f`` takes the plain gradient
    steps, and the gradient is taken at ``z_g``. The iterate reported is grad F*(z_g^k).

    Parameters
    ----------
    alpha, eta, theta : float
        Positive; the analysis requires theta <= mu.
    tau : float
        In (0, 1).

    References
    ----------
    Kovalev et al., ICML 2021, arXiv:2102.09234, Algorithm 1; after Nesterov, Introductory Lectures, 2003.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> round(PNGD.theory(Constants(mu=1.0, L=4.0)).tau, 6)
    0.071429
    """

    name = "pngd"
    title = "PNGD"
    oracle = "dual"
    vectors_per_round = 1
    needs = "complete"
    complexity = "kappa^(1/2) log(1/eps)  (full averaging every round)"
    reference = "Kovalev et al. 2021, arXiv:2102.09234"

    alpha: Number
    eta: Number
    theta: Number
    tau: Number

    def __post_init__(self) -> None:
        self._require_positive("alpha", "eta", "theta")
        self._require("lie in (0, 1)", lambda v: (v > 0) & (v < 1), "tau")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """Theorem 1 with chi = 1, that of full averaging."""
        return cls._with_chi(constants, 7.0)

    @classmethod
    def unit(cls, constants: Constants) -> Self:
        """Theorem 1 without its 7s, for the least chi that Nesterov's analysis then allows, between 1.4 and 2."""
        return cls._with_chi(constants, least_chi(constants))

    @classmethod
    def _with_chi(cls, c: Constants, chi: float) -> Self:
        return cls(
            alpha=1 / (2 * c.L),
            eta=2 * sqrt(c.mu * c.L) / chi,
            theta=c.mu,
            tau=sqrt(c.mu / c.L) / chi,
        )

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """Lines 1 and 2: z^0 = z_f^0 = 0."""
        return State(z=zeros, z_f=zeros)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """Lines 4 to 6, one round of full averaging."""
        z, z_f = state
        alpha, eta, theta, tau = self.alpha, self.eta, self.theta, self.tau

        z_g = tau * z + (1 - tau) * z_f  # line 4
        g = oracle.dual_gradient(z_g)
        P_g = gossip.project(g)
        z = z + eta * alpha * (z_g - z) - eta * P_g  # line 5
        z_f = z_g - theta * P_g  # line 6
        return State(z, z_f), g
