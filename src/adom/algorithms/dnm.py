"""DNM: the distributed Nesterov method on the dual, made for networks that change slowly."""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, Oracle


class State(NamedTuple):
    """State carried from round to round."""

    y: Array
    z: Array


@dataclass(frozen=True)
class DNM(Method):
    r"""Nesterov's method on the dual with the current W(k) in place of the projection.

    .. math::
        y^{k+1} &= z^k - \theta W(k) \nabla F^*(z^k) \qquad (1) \\
        z^{k+1} &= y^{k+1} + \beta (y^{k+1} - y^k) \qquad (2)

    ``y`` takes the gradient steps, ``z`` extrapolates; the rows of both sum to zero throughout. On a network that
    does not change it is Nesterov's method in the norm of W and takes (chi kappa)^(1/2) log(1/eps) rounds. Its proof
    allows only few changes: after a change of W the momentum belongs to another problem, and the method can diverge.
    The iterate reported is grad F*(z^k).

    Parameters
    ----------
    theta : float
        Positive; at most mu / lambda_max for the descent step.
    beta : float
        Momentum, in [0, 1).

    References
    ----------
    Rogozin, Uribe, Gasnikov, Malkovsky, Nedic. Optimal Distributed Optimization on Slowly Time-Varying Graphs.
    IEEE Transactions on Control of Network Systems 2019, arXiv:1805.06045.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> DNM.theory(Constants(mu=1.0, L=4.0, lambda_min_plus=0.25)).beta
    0.6
    """

    name = "dnm"
    title = "DNM"
    oracle = "dual"
    vectors_per_round = 1
    needs = "fixed"
    windowed = True
    complexity = "chi^(1/2) kappa^(1/2) log(1/eps)  (few changes only)"
    reference = "Rogozin et al. 2019, arXiv:1805.06045"

    theta: Number
    beta: Number

    def __post_init__(self) -> None:
        self._require_positive("theta")
        self._require("lie in [0, 1)", lambda v: (v >= 0) & (v < 1), "beta")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """Nesterov's parameters: the dual is 1 / mu-smooth, and chi kappa is its condition number in W."""
        root = sqrt(constants.chi * constants.kappa)
        return cls(theta=constants.mu / constants.lambda_max, beta=(root - 1) / (root + 1))

    unit = theory

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """y^0 = z^0 = 0."""
        return State(y=zeros, z=zeros)

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """One round of one vector."""
        y, z = state
        g = oracle.dual_gradient(z)
        y_next = z - self.theta * gossip(g)  # (1)
        z = y_next + self.beta * (y_next - y)  # (2)
        return State(y_next, z), g
