r"""Theorem 1 and the lemmas of the ADOM paper, checked round by round on a run with the exact oracle.

With g = grad F*(z_g^k), P the projection off consensus, s = sigma lambda_min_plus and rho = 1 - tau, every round
must satisfy, left side over right side at most 1:

========= ==================================================================================================
Lemma 1   |sigma W(k) v - v|^2 <= (1 - s) |v|^2, for the v = P (m^k - eta g) that the round sends
Lemma 2   theta lambda_min_plus / 2 |g|_P^2 <= F*(z_g^k) - F*(z_f^{k+1})
Lemma 3   |m^{k+1}|_P^2 <= (1 - s/2) |m^k|_P^2 + 2 eta^2 / s |g|_P^2  (the paper's inequality times s / 4)
Lemma 4   Psi^{k+1} <= rho Psi^k, Psi^k = |z^k + P m^k - z*|^2 + 2 eta (1 - eta alpha) / tau (F*(z_f^k) - F*(z*))
          + 6 |m^k|_P^2
Theorem 1 |grad F*(z_g^k) - x*|^2 <= C rho^k,
          C = Psi^0 max(2 tau / mu^2, tau (1 - tau) L / (eta (1 - eta alpha) mu^2))
========= ==================================================================================================

Differences of F* would drown in rounding long before the run ends. They are computed from quantities that stay
accurate however small they get: F*(a) - F*(b) = <P x_b, a - b> + D(x_b, x_a) for a, b whose rows sum to zero,
where x_a = grad F*(a), and the Bregman distance D(y, x) = integral over t of (1 - t) <d, H(x + t d) d>, d = y - x,
is summed by Gauss-Legendre quadrature of Hessian products, all of whose terms are positive.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..algorithms.adom import ADOM, State
from ..networks import Network
from ..problems.base import Problem
from ..problems.oracles import OracleSpec
from .compiled import Carry, Session
from .pair import check_pair, constants
from .progress import Progress
from .solve import check_whole

Array = Any
SLACK = 1e-6  # of a ratio: rounding and quadrature stay far below
FLOOR = 1e-22  # of the squared distance at the start: below it the iterates themselves are rounding
CHUNK = 32


@dataclass(frozen=True)
class Row:
    """One inequality: its worst ratio of left to right side over all rounds that were checked."""

    name: str
    statement: str
    worst_ratio: float
    round_of_worst: int
    rounds_checked: int

    @property
    def holds(self) -> bool:
        """Whether the ratio never exceeded 1 beyond rounding."""
        return self.rounds_checked > 0 and self.worst_ratio <= 1 + SLACK


@dataclass(frozen=True)
class Verification:
    """All inequalities on one problem and network."""

    rows: tuple[Row, ...]

    @property
    def holds(self) -> bool:
        """Whether every inequality held in every round."""
        return all(row.holds for row in self.rows)

    def __str__(self) -> str:
        lines = [f"{r.name:10} {r.worst_ratio:9.6f} at round {r.round_of_worst:6}  {r.statement}" for r in self.rows]
        return "\n".join(lines)


STATEMENTS = {
    "Lemma 1": "|sigma W v - v|^2 <= (1 - sigma lambda_min+) |v|^2",
    "Lemma 2": "F*(z_f') <= F*(z_g) - theta lambda_min+ / 2 |grad F*(z_g)|_P^2",
    "Lemma 3": "|m'|_P^2 <= (1 - s/2) |m|_P^2 + 2 eta^2 / s |grad F*(z_g)|_P^2",
    "Lemma 4": "Psi' <= (1 - tau) Psi",
    "Theorem 1": "|grad F*(z_g) - x*|^2 <= C (1 - tau)^k",
}


def verify(
    problem: Problem,
    network: Network,
    rounds: int = 1000,
    *,
    method: ADOM | None = None,
    progress: bool | None = None,
) -> Verification:
    """Run ADOM with the exact oracle and check every inequality in every round.

    The parameters are the theorem's, unless another `method` is given, for which nothing is promised.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[1.0]], [[5.0]], [[2.0]]], [[1.0], [0.0], [-3.0]])
    >>> adom.verify(problem, adom.networks.path(3), rounds=200).holds
    True
    """
    check_pair(problem, network)
    check_whole("rounds", rounds)
    method = method or ADOM.theory(constants(problem, network))
    begin = partial(Session, slots=CHUNK, observe=_observe_state)
    with (
        jax.enable_x64(True),
        begin(problem, network, [method], OracleSpec("exact")) as session,
        Progress(rounds, "verify", progress) as bar,
    ):
        fixed = _fixed_point(session.problem, jnp.asarray(problem.solution()))
        spectrum = jnp.asarray([network.lambda_min_plus, network.lambda_max])
        before = jax.tree.map(jnp.copy, session.carry.state)  # the first chunk takes the carry's own memory
        start = _psi(session.problem, session.method, before, fixed)
        ratios: list[np.ndarray] = []
        done = 0
        while done < rounds:
            count = min(CHUNK, rounds - done, session.reach())
            states, x = session.chunk(count, 1, rounds)
            befores = State(*(jnp.concatenate([b[None], s[:-1]]) for b, s in zip(before, states, strict=True)))
            numbers = done + np.arange(CHUNK)
            both = _ratios(session.problem, session.method, spectrum, fixed, start, befores, states, x, numbers)
            ratios.append(np.asarray(both)[:count])
            before = State(*(s[count - 1] for s in states))
            done += count
            bar.update(done, float(((x[count - 1] - fixed.x) ** 2).sum()))
    table = np.concatenate(ratios)
    return Verification(tuple(_row(name, column) for name, column in zip(STATEMENTS, table.T, strict=True)))


def _observe_state(carry: Carry) -> tuple[Any, Array]:
    return carry.state, carry.x


def _row(name: str, ratios: np.ndarray) -> Row:
    checked = ~np.isnan(ratios)
    if not checked.any():
        return Row(name, STATEMENTS[name], np.nan, 0, 0)
    worst = int(np.nanargmax(ratios))
    return Row(name, STATEMENTS[name], float(ratios[worst]), worst, int(checked.sum()))


class _Fixed(NamedTuple):
    x: Array  # x*, one row a node
    z: Array  # z* = grad F(x*)


def _fixed_point(problem: Problem, solution: Array) -> _Fixed:
    x = jnp.broadcast_to(solution, (problem.nodes, problem.dim))
    z = problem.gradient_rows(x)
    return _Fixed(x, z - z.mean(axis=0))


def _project(v: Array) -> Array:
    return v - v.mean(axis=0)


def _square(v: Array) -> Array:
    return (v * v).sum()


def _bregman(problem: Problem, y: Array, x: Array) -> Array:
    """Return D(y, x) = F(y) - F(x) - <grad F(x), y - x>, accurate to relative rounding."""
    points, weights = np.polynomial.legendre.leggauss(12)
    t, d = jnp.asarray((points + 1) / 2), y - x
    curvature = jax.vmap(lambda t: (d * problem.hessian_product_rows(x + t * d, d)).sum())(t)
    return (jnp.asarray(weights / 2) * (1 - t) * curvature).sum()


@jax.jit
def _psi(problem: Problem, method: ADOM, state: State, fixed: _Fixed) -> Array:
    z, z_f, m = state
    x_f, _ = problem.exact_dual_gradient_rows(z_f, fixed.x)
    gap = _bregman(problem, fixed.x, x_f)  # F*(z_f) - F*(z*): the linear term vanishes, x* being consensus
    weight = 2 * method.eta * (1 - method.eta * method.alpha) / method.tau
    return _square(z + _project(m) - fixed.z) + weight * gap + 6 * _square(_project(m))


@jax.jit
def _ratios(
    problem: Problem,
    method: ADOM,
    spectrum: Array,
    fixed: _Fixed,
    start: Array,
    befores: State,
    afters: State,
    xs: Array,
    numbers: Array,
) -> Array:
    """Return the five ratios for a chunk of rounds, NaN where both sides are rounding."""
    one = partial(_round_ratios, problem, method, spectrum, fixed, start)
    return jax.lax.map(lambda a: one(*a), (befores, afters, xs, numbers))


def _round_ratios(
    problem: Problem,
    method: ADOM,
    spectrum: Array,
    fixed: _Fixed,
    start: Array,
    before: State,
    after: State,
    g: Array,
    k: Array,
) -> Array:
    lambda_min_plus = spectrum[0]
    eta, theta, sigma, tau = method.eta, method.theta, method.sigma, method.tau
    z_g = tau * before.z + (1 - tau) * before.z_f
    s, Pg = sigma * lambda_min_plus, _project(g)

    sent = _project(before.m - eta * g)
    passed = _project(after.m)  # = P (m - eta g) - sigma W (m - eta g)
    # m's own mean grows from round to round and leaves its rounding in P m.
    noise = (64 * float(np.finfo(np.float64).eps)) ** 2 * (_square(after.m) + _square(eta * g))
    lemma_1 = _square(passed) / jnp.maximum((1 - s) * _square(sent), noise)

    x_f, _ = problem.exact_dual_gradient_rows(after.z_f, g)
    descent = (_project(x_f) * (z_g - after.z_f)).sum() + _bregman(problem, x_f, g)
    promised = theta * lambda_min_plus / 2 * _square(Pg)
    lemma_2 = jnp.where(descent > 0, promised / descent, jnp.inf)  # an ascent breaks it altogether

    feedback = (1 - s / 2) * _square(_project(before.m)) + 2 * eta**2 / s * _square(Pg)
    lemma_3 = _square(passed) / jnp.maximum(feedback, noise)

    psi_before = _psi(problem, method, before, fixed)
    lemma_4 = _psi(problem, method, after, fixed) / ((1 - tau) * psi_before)

    bound = jnp.maximum(
        2 * tau / problem.mu**2,
        tau * (1 - tau) * problem.L / (eta * (1 - eta * method.alpha) * problem.mu**2),
    )
    theorem = _square(g - fixed.x) / (bound * start * (1 - tau) ** k)

    rounding = FLOOR * _square(fixed.x) + 1e-300
    alive = (_square(Pg) > rounding) & (psi_before > FLOOR * start)
    per_round = jnp.where(alive, jnp.stack([lemma_1, lemma_2, lemma_3, lemma_4]), jnp.nan)
    return jnp.append(per_round, jnp.where(_square(g - fixed.x) > rounding, theorem, jnp.nan))
