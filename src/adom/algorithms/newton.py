"""Newton by gossip: nodes average quadratic models of their functions, and each solves the averaged model by itself."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from .base import Array, Constants, Gossip, Method, Number, at_most

STEEP = 1.6
"""Weight of a round in two rounds of three; in the third it is 1, so that a round that averages fully is used whole."""
DAMPING = 1e-9
"""Share of the diagonal that is added to an averaged Hessian before it is solved with: it may be singular."""
GROWTH, TRIES, SHORTEST = 4.0, 6, 1e-4
"""How much longer the next step of a node may be, how often a round halves it, and how short it gets by that."""
LAG = 0.01
"""How much of a step a model may miss without a new Hessian."""
ROUNDING = 500.0
"""Rounding of a gradient, in units of the last digit of its terms."""


class State(NamedTuple):
    """State carried from round to round; a row of h and the first part of one of `exchanged` is an upper triangle."""

    z: Array  # (rows, dim): where a node took its own model
    g: Array  # (rows, dim): its gradient there
    h: Array  # (rows, dim (dim + 1) / 2): its Hessian there, or a little before
    exchanged: Array  # (rows, dim (dim + 1) / 2 + dim): what came over the links; its rows sum to zero
    t: Array  # (rows, 1): the last step that it accepted
    theta: Array  # (rows, 1): the weight of this round


@dataclass(frozen=True)
class Newton(Method):
    r"""Newton's method on the average of the nodes' quadratic models, in as many rounds as averaging takes.

    Node i holds a quadratic model of its function, taken at its point z_i: the Hessian H_i and the vector
    g_i = H_i z_i - grad f_i(z_i). All average both, with what has come over the links in E:

    .. math::
        E^{k+1} &= E^k - \theta^k \sigma W(k) ((H, g)^k + E^k) \qquad (1) \\
        (\bar H_i, \bar g_i) &= (H_i, g_i) + E_i^{k+1} \qquad (2) \\
        x_i &= \arg\min_x x^\top \bar H_i x / 2 - \bar g_i^\top x \qquad (3) \\
        z_i &\leftarrow z_i + t_i (x_i - z_i) \qquad (4)

    and the next model of node i is taken at its new z_i. Seen from the solution, what a move adds to (H, g) vanishes to
    first order, so steps t = 1 converge at the rate of averaging itself, whatever the condition number. Two rules, both
    local, make them safe from afar:

    - *hold*: node i stays where it is while Hbar_i - hold H_i is not positive definite, since then the average
      of the Hessians has not come about yet;
    - *own test*: t_i is halved until the error of the node's own model, r = grad f_i(z + t s) - grad f_i(z) - t H_i s
      for the step s = x_i - z_i, is at most `miss` times t s, measured by K = (H_i + Hbar_i) / 2.

    - ``z``, ``g`` and ``h`` are a node's own model; h is renewed when the model misses more than a hundredth of a step;
    - ``exchanged``, E above, is the part of the average that came over links; its rows sum to zero throughout;
    - ``t`` is the step, ``theta`` the weight of the round: 1, 1.6, 1.6, 1, ...

    If all nodes share a penalty that is not smooth, such as an l1 norm, (3) minimises the averaged model plus it. The
    oracle is a `CurvedOracle`. The iterate reported is x. No constant of the functions or of the network enters;
    the functions must be convex, and their sum strictly so. A message has dim (dim + 3) / 2 numbers. docs/newton.md
    proves the rate near the solution; that the rules are safe from afar is measured there, not proved.

    Parameters
    ----------
    sigma : float
        Positive; at most 1 / lambda_max.
    hold : float
        Positive, and less than 1 / n on n nodes, or no node would ever move.
    miss : float
        In (0, 1).

    References
    ----------
    Varagnolo, Zanella, Cenedese, Pillonetto, Schenato. Newton-Raphson Consensus for Distributed Convex Optimization.
    IEEE Transactions on Automatic Control 2016, arXiv:1511.01509, with steps near 0 and without the two rules.

    Examples
    --------
    >>> from adom.algorithms import Constants
    >>> Newton.theory(Constants(mu=1.0, L=4.0, nodes=10))
    Newton(sigma=1.0, hold=0.025, miss=0.5)
    """

    name = "newton"
    title = "Newton by gossip"
    oracle = "primal"
    vectors_per_round = 1
    needs = "windows"
    singly = True
    bounded = False
    composite = True
    complexity = "chi log(1/eps) near the solution"
    reference = "Varagnolo et al. 2016, arXiv:1511.01509"

    sigma: Number
    hold: Number
    miss: Number = 0.5

    def __post_init__(self) -> None:
        self._require_positive("sigma")
        self._require("lie in (0, 1)", lambda v: (v > 0) & (v < 1), "hold", "miss")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """hold = 1 / (4 n): in the end Hbar_i is the mean of all Hessians, which is at least H_i / n."""
        return cls(sigma=1 / constants.lambda_max, hold=1 / (4 * constants.nodes))

    unit = theory

    def init(self, zeros: Array, oracle: Any) -> State:
        """Every node's own model at 0."""
        h = packed(oracle.hessian(zeros))
        column = zeros[:, :1]
        return State(zeros, oracle.gradient(zeros), h, 0 * _joined(h, zeros), column + 1 / GROWTH, column + 1)

    def width(self, dim: int) -> int:
        """A row has the upper triangle of a Hessian, and a vector."""
        return dim * (dim + 3) // 2

    def renewed(self, state: State, k: Number) -> State:
        """Set the weight of the round, the same at all nodes."""
        return state._replace(theta=0 * state.theta + 1 + (STEEP - 1) * (k % 3 > 0))

    def step(self, state: State, oracle: Any, gossip: Gossip) -> tuple[State, Array]:
        """One round of one vector: average, solve, and move the point of the own model as far as that model holds."""
        z, g, h, e, t_before, theta = state
        dim = z.shape[1]
        H = unpacked(h, dim)
        own = _times(H, z) - g
        e = e - gossip(theta * self.sigma * (_joined(h, own) + e))  # (1)
        Hbar, gbar = unpacked((h + e[:, :-dim]), dim), own + e[:, -dim:]  # (2)
        S = _damped(Hbar)
        fine = oracle.each(_positive, S - self.hold * H)
        S = _safe(S, fine)
        x = _chosen(fine, oracle.model_minimum(S, gbar - _times(Hbar, z) + _times(S, z), z), z)  # (3)
        s = x - z
        K = _safe((S + H) / 2, fine)
        inverse, length = oracle.each(_inverse, K), self.miss * _root(_times(K, s), s)
        rounding = ROUNDING * _last_digit(z) * abs(own * z).sum(axis=1) ** 0.5
        t, moving, off = at_most(1.0, GROWTH * t_before[:, 0]), fine, 0 * t_before[:, 0]
        z_next, g_next = z, g
        for _ in range(TRIES):
            there = z + (moving * t)[:, None] * s
            slope = oracle.gradient(there, moving)
            r = slope - g - t[:, None] * _times(H, s)
            off_now = _root(_times(inverse, r), r)
            accepted = moving & (off_now <= t * length + rounding)
            z_next, g_next = _chosen(accepted, there, z_next), _chosen(accepted, slope, g_next)  # (4)
            off = _chosen(accepted, off_now, off)
            moving = moving & ~accepted
            t = _chosen(moving, t / 2, t)
        moved = fine & ~moving
        stale = moved & (off > LAG / self.miss * t * length + rounding)
        h_next = _chosen(stale, packed(oracle.hessian(z_next, stale)), h)
        shorter = t_before[:, 0] / 2
        t_next = _chosen(moved, t, shorter + (shorter < SHORTEST) * (SHORTEST - shorter))
        return State(z_next, g_next, h_next, e, t_next[:, None], theta), x


def packed(H: Array) -> Array:
    """Return the upper triangles of symmetric matrices (rows, dim, dim), row by row: (rows, dim (dim + 1) / 2).

    Examples
    --------
    >>> import numpy as np
    >>> packed(np.array([[[1.0, 2.0], [2.0, 3.0]]]))
    array([[1., 2., 3.]])
    """
    upper = H.__array_namespace__().triu_indices(H.shape[-1])
    return H[:, upper[0], upper[1]]


def unpacked(h: Array, dim: int) -> Array:
    """Return symmetric matrices from their upper triangles.

    Examples
    --------
    >>> import numpy as np
    >>> unpacked(np.array([[1.0, 2.0, 3.0]]), 2)
    array([[[1., 2.],
            [2., 3.]]])
    """
    library = h.__array_namespace__()
    i, j = library.arange(dim)[:, None], library.arange(dim)[None, :]
    first, second = library.minimum(i, j), library.maximum(i, j)
    return h[:, first * (2 * dim - first - 1) // 2 + second]


def _joined(h: Array, g: Array) -> Array:
    return h.__array_namespace__().concatenate([h, g], axis=1)


def _times(H: Array, v: Array) -> Array:
    return (H @ v[..., None])[..., 0]


def _root(u: Array, v: Array) -> Array:
    """Return the root of u'v, which is not negative but for rounding."""
    inner = (u * v).sum(axis=1)
    return (inner * (inner > 0)) ** 0.5


def _chosen(where: Array, new: Array, old: Array) -> Array:
    return where.__array_namespace__().where(where if new.ndim == 1 else where[:, None], new, old)


def _last_digit(v: Array) -> float:
    return float(v.__array_namespace__().finfo(v.dtype).eps)


def _identity(H: Array) -> Array:
    return H.__array_namespace__().eye(H.shape[-1], dtype=H.dtype)


def _damped(H: Array) -> Array:
    """Return H with a little of its diagonal added, relative to each coordinate: features may be badly scaled."""
    one = _identity(H)
    return H + DAMPING * abs(H) * one


def _positive(H: Array) -> Array:
    """Return whether a matrix is positive definite."""
    library = H.__array_namespace__()
    try:
        return library.isfinite(library.linalg.cholesky(H)).all()  # JAX answers with NaN
    except ValueError:  # NumPy with an error
        return library.asarray(False)


def _safe(H: Array, fine: Array) -> Array:
    """Return the identity in place of matrices that are not fine."""
    return H.__array_namespace__().where(fine[:, None, None], H, _identity(H))


def _inverse(H: Array) -> Array:
    return H.__array_namespace__().linalg.inv(H)
