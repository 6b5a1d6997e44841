"""ADOM+: ADOM's successor with a primal oracle, optimal in rounds and in gradients."""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, Self

from .base import Array, Constants, Gossip, Method, MultiConsensus, Number, Oracle, at_most


class State(NamedTuple):
    """State carried from round to round."""

    x: Array
    x_f: Array
    y: Array
    y_f: Array
    z: Array
    z_f: Array
    m: Array


@dataclass(frozen=True)
class ADOMPlus(Method):
    r"""A primal-dual saddle-point method, accelerated in all variables, with ADOM's error feedback for the network.

    It minimises over x and maximises over y and over z in the complement of consensus; W is scaled to lambda_max = 1.

    .. math::
        x_g &= \tau_1 x + (1 - \tau_1) x_f, \quad y_g = \sigma_1 y + (1 - \sigma_1) y_f,
               \quad z_g = \sigma_1 z + (1 - \sigma_1) z_f \qquad (1) \\
        g   &= \nabla F(x_g) - \nu x_g \qquad (2) \\
        x^+ &= x + \eta \alpha (x_g - x^+) - \eta (g - y^+) \qquad (3) \\
        y^+ &= y + \theta \beta (g - y^+) - \theta ((y_g + z_g) / \nu + x^+) \qquad (4) \\
        h   &= (\gamma / \nu) (y_g + z_g) + m \qquad (5) \\
        z^+ &= z + \gamma \delta (z_g - z) - W(k) h, \qquad m^+ = h - W(k) h \qquad (6) \\
        x_f^+ &= x_g + \tau_2 (x^+ - x), \quad y_f^+ = y_g + \sigma_2 (y^+ - y),
               \quad z_f^+ = z_g - \zeta W(k) (y_g + z_g) \qquad (7)

    ``x`` is primal, ``y`` its dual, ``z`` the multiplier of consensus (its rows sum to zero throughout), and ``m`` the
    part that the network has not let through yet. As in ADOM, the subscript f marks the sequences of gradient steps and
    g those of extrapolation. The iterate reported is x_g.

    Parameters
    ----------
    tau_1, tau_2, sigma_1, sigma_2 : float
        In (0, 1].
    eta, theta, alpha, beta, nu, gamma, delta, zeta : float
        Positive.

    References
    ----------
    Kovalev, Gasanov, Gasnikov, Richtarik. Lower Bounds and Optimal Algorithms for Smooth and Strongly Convex
    Decentralized Optimization over Time-Varying Networks. NeurIPS 2021, arXiv:2106.04469, Algorithm 2.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> plus = ADOMPlus.theory(Constants(mu=1.0, L=4.0, lambda_min_plus=0.5))
    >>> plus.tau_2, plus.sigma_2
    (0.5, 0.015625)
    """

    name = "adom+"
    title = "ADOM+"
    oracle = "primal"
    vectors_per_round = 2
    needs = "connected"
    complexity = "chi kappa^(1/2) log(1/eps)  (kappa^(1/2) log(1/eps) gradients with multi-consensus)"
    reference = "Kovalev et al. 2021, arXiv:2106.04469"

    tau_1: Number
    tau_2: Number
    sigma_1: Number
    sigma_2: Number
    eta: Number
    theta: Number
    alpha: Number
    beta: Number
    nu: Number
    gamma: Number
    delta: Number
    zeta: Number

    def __post_init__(self) -> None:
        self._require("lie in (0, 1]", lambda v: (v > 0) & (v <= 1), "tau_1", "tau_2", "sigma_1", "sigma_2")
        self._require_positive("eta", "theta", "alpha", "beta", "nu", "gamma", "delta", "zeta")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """The parameters of the source's theorem."""
        return cls._with_chi(constants, constants.chi)

    @classmethod
    def unit(cls, constants: Constants) -> Self:
        """The theorem's parameters with max(chi, 5) / 16 in place of chi.

        Below about 3 / 16 the method diverges on quadratics over nearly complete graphs, for every kappa. On sparse
        graphs even these parameters can diverge.
        """
        return cls._with_chi(constants, max(constants.chi, 5.0) / 16)

    @classmethod
    def _with_chi(cls, c: Constants, chi: float) -> Self:
        tau_2, nu = sqrt(1 / c.kappa), c.mu / 2
        sigma_2 = tau_2 / (16 * chi)
        return cls(
            tau_1=1 / (1 / tau_2 + 1 / 2),
            tau_2=tau_2,
            sigma_1=1 / (1 / sigma_2 + 1 / 2),
            sigma_2=sigma_2,
            eta=1 / (c.L * tau_2),
            theta=nu / (4 * sigma_2),
            alpha=c.mu / 2,
            beta=1 / (2 * c.L),
            nu=nu,
            gamma=nu / (14 * sigma_2 * chi**2),
            delta=1 / (17 * c.L),
            zeta=0.5,
        )

    def init(self, zeros: Array, oracle: Oracle) -> State:
        """Everything starts at 0."""
        return State(zeros, zeros, zeros, zeros, zeros, zeros, zeros)

    def renewed(self, state: State, k: Number) -> State:
        """Reset m to 0 at intervals long enough for a run to reach its rounding floor, as ADOM does."""
        rate = at_most(self.sigma_2, 2 * self.gamma * self.delta)  # sigma_2 in `theory` and `unit`
        rounds = (0.75 * state.m.dtype.itemsize) ** 2 / rate // 1
        return state._replace(m=state.m * (k % rounds > 0))

    def step(self, state: State, oracle: Oracle, gossip: Gossip) -> tuple[State, Array]:
        """One round of two vectors."""
        x, x_f, y, y_f, z, z_f, m = state
        eta, theta, alpha, beta, nu = self.eta, self.theta, self.alpha, self.beta, self.nu

        x_g = x_f + self.tau_1 * (x - x_f)  # (1), in a form that is exact for x = x_f
        y_g = y_f + self.sigma_1 * (y - y_f)
        z_g = z_f + self.sigma_1 * (z - z_f)
        yz = y_g + z_g
        g = oracle.gradient(x_g) - nu * x_g  # (2)

        # (3) and (4) as a linear system: A x' = b_x + eta y' and B y' = b_y - theta x'.
        A, B = 1 + eta * alpha, 1 + theta * beta
        b_x = x + eta * alpha * x_g - eta * g
        b_y = y + theta * beta * g - theta / nu * yz
        y_next = (A * b_y - theta * b_x) / (A * B + eta * theta)
        x_next = (b_x + eta * y_next) / A

        h = self.gamma / nu * yz + m  # (5)
        M_h, M_yz = gossip.average(h, yz)
        W_h, W_yz = h - M_h, yz - M_yz  # gossip(h, yz) would not scale W to lambda_max = 1
        z = z + (self.gamma * self.delta * (z_g - z) - W_h)  # (6)
        m = M_h
        x_f = x_g + self.tau_2 * (x_next - x)  # (7)
        y_f = y_g + self.sigma_2 * (y_next - y)
        z_f = z_g - self.zeta * W_yz
        return State(x_next, x_f, y_next, y_f, z, z_f, m), x_g


@dataclass(frozen=True)
class ADOMPlusMulti(MultiConsensus, ADOMPlus):
    r"""ADOM+ with T rounds of averaging in place of one: fewest gradients, and as many rounds as ADOM+.

    .. math::
        I - W = M(k + T - 1) \cdots M(k + 1) M(k), \qquad M(k) = I - W(k) / \lambda_{\max} \qquad (1)

    takes the place of W(k) in ADOM+. With T = ceil(chi ln 2) these rounds halve all disagreement, so the method sees a
    network with chi = 2. It takes kappa^(1/2) log(1/eps) gradients and chi times as many rounds.

    Parameters
    ----------
    tau_1, tau_2, sigma_1, sigma_2 : float
        In (0, 1].
    eta, theta, alpha, beta, nu, gamma, delta, zeta : float
        Positive.
    T : int
        Rounds per step, at least 1.

    References
    ----------
    Kovalev, Gasanov, Gasnikov, Richtarik. Lower Bounds and Optimal Algorithms for Smooth and Strongly Convex
    Decentralized Optimization over Time-Varying Networks. NeurIPS 2021, arXiv:2106.04469, Algorithm 2 with
    multi-consensus.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> ADOMPlusMulti.theory(Constants(mu=1.0, L=4.0, lambda_min_plus=0.1)).T
    7
    """

    name = "adom+multi"
    title = "ADOM+ multi-consensus"
    single = ADOMPlus
