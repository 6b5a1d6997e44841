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

Late in a run both sides are rounding errors, and nothing is left to check. `noise` bounds the noise
that rounding can have added to the root of the left side; it is subtracted. A round is checked if the noise is less
than the root of a given side (|v|^2 in Lemma 1, the left side in Lemma 2, else the right one), or if the inequality
fails nevertheless.
"""

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...algorithms.adom import ADOM, State
from ...algorithms.base import plain
from ...errors import InputError
from ...networks import LossyNetwork, Network
from ...problems.base import Problem
from ...util.checks import check_whole
from ...util.programs import double_precision
from ..constants import check_pair, constants, in_windows
from ..driver import chunks
from ..local.jitted import Carry, Session
from ..progress import Progress
from ..recorder import Plan
from ..request import OracleSpec

Array = Any
SLACK = 1e-6  # tolerance for a ratio; quadrature errors are far smaller
CHUNK = 32


@dataclass(frozen=True)
class Row:
    """The worst ratio of left to right side of one inequality, over all checked rounds.

    Attributes
    ----------
    name, statement : str
    worst_ratio : float
        After subtracting the noise from the left side; NaN if no round was checked.
    round_of_worst : int
    rounds_checked, rounds : int
        The number of rounds that were checked, and of all rounds.
    first_unchecked : int, optional
        The first round that was not checked.
    """

    name: str
    statement: str
    worst_ratio: float
    round_of_worst: int
    rounds_checked: int
    rounds: int
    first_unchecked: int | None = None

    @property
    def holds(self) -> bool:
        """True if the ratio never exceeded 1 beyond rounding, or no round was checked."""
        return not self.worst_ratio > 1 + SLACK

    @property
    def why_unchecked(self) -> str:
        """Why some rounds were not checked; empty if all were."""
        if self.first_unchecked is None:
            return ""
        left = self.rounds - self.rounds_checked
        return (
            f"{left:,} of {self.rounds:,} rounds were not checked, the first of them round {self.first_unchecked:,}: "
            "both sides are within rounding of 0"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return asdict(self) | {"holds": self.holds, "why_unchecked": self.why_unchecked}


@dataclass(frozen=True)
class Verification:
    """All inequalities on one problem and network."""

    rows: tuple[Row, ...]

    @property
    def holds(self) -> bool:
        """True if every inequality held in every round that was checked."""
        return all(row.holds for row in self.rows)

    def __str__(self) -> str:
        return "\n".join(
            f"{r.name:10} {r.worst_ratio:9.6g} at round {r.round_of_worst:6}  {r.statement}"
            + (f"; {r.why_unchecked}" if r.why_unchecked else "")
            for r in self.rows
        )


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
    """Run ADOM with the exact oracle and check every inequality in every round, up to rounding errors.

    The parameters are the theorem's unless `method` is given; with others the inequalities may fail. Every row of the
    result says how many rounds were checked, and why the others were not. If a step is a window of rounds
    (`Network.window`), steps are checked, and `rounds` counts steps.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[1.0]], [[5.0]], [[2.0]]], [[1.0], [0.0], [-3.0]])
    >>> adom.verify(problem, adom.networks.path(3), rounds=200).holds
    True
    """
    check_pair(problem, network, ADOM)
    if isinstance(network, LossyNetwork):
        raise InputError(
            f"the theorem assumes perfect links and permanent nodes, got a {network.recipe['generator']} network; "
            "verify on the network it was made from"
        )
    check_whole("rounds", rounds)
    method = method or ADOM.theory(constants(problem, network))
    begin = partial(Session, slots=CHUNK, observe=_observe_state)
    with (
        double_precision(),
        begin(problem, network, [in_windows(method, network)], OracleSpec("exact")) as session,
        Progress(rounds, "verify", progress) as bar,
    ):
        fixed = _fixed_point(session.problem, jnp.asarray(problem.solution()))
        spectrum = jnp.asarray([network.lambda_min_plus, network.lambda_max])
        before = jax.tree.map(jnp.copy, session.carry.state)  # the first chunk overwrites the carry's memory
        inner = plain(session.method)
        past = _Past(START, _first_gap(session.problem, before, fixed))
        start = _psi(inner, before, fixed, past.gap)
        ratios: list[np.ndarray] = []
        for chunk in chunks(session, Plan(rounds * network.window), least=CHUNK):
            count, (states, x) = min(chunk.records, chunk.end - chunk.begin), chunk.observed
            if not count:
                break  # too few rounds are left for another window
            befores = State(*(jnp.concatenate([b[None], s[:-1]]) for b, s in zip(before, states, strict=True)))
            numbers = chunk.begin + np.arange(CHUNK)
            about = (session.problem, inner, spectrum, fixed, start, past)
            sides, pasts = _sides(*about, befores, states, x, numbers)
            ratios.append(_ratios(_Sides(*(np.asarray(part)[:count] for part in sides))))
            past = jax.tree.map(lambda part, last=count - 1: part[last], pasts)
            before = State(*(s[count - 1] for s in states))
            bar.update(chunk.end, f"error {float(((x[count - 1] - fixed.x) ** 2).sum()):.2e}")
    table = np.concatenate(ratios)
    return Verification(tuple(_row(name, column) for name, column in zip(STATEMENTS, table.T, strict=True)))


def _observe_state(carry: Carry) -> tuple[Any, Array]:
    return carry.state, carry.x


def _row(name: str, ratios: np.ndarray) -> Row:
    checked = ~np.isnan(ratios)
    worst = int(np.nanargmax(ratios)) if checked.any() else 0
    first = None if checked.all() else int(np.argmin(checked))
    return Row(name, STATEMENTS[name], float(ratios[worst]), worst, int(checked.sum()), len(ratios), first)


class _Sides(NamedTuple):
    """The sides of the five inequalities, and the noise that rounding can add: each (rounds, 5)."""

    left: Array
    right: Array
    given: Array  # the side, or part of one, that must exceed the noise
    noise: Array  # the most that rounding can add to the root of a left side


def _ratios(sides: _Sides) -> np.ndarray:
    """Return left over right side, less the noise; NaN where nothing is left to check."""
    with np.errstate(all="ignore"):
        excess = np.maximum(np.sqrt(sides.left) - sides.noise, 0) ** 2
        right = np.maximum(sides.right, sides.noise**2)
        ratio: np.ndarray = np.where(excess > 0, excess / right, 0.0)
        seen = (sides.noise**2 < sides.given) | (ratio > 1 + SLACK)
        lost = ~np.isfinite(sides.left + sides.right + sides.noise)  # the method diverged
        return np.where(lost, np.inf, np.where(seen, ratio, np.nan))


ULPS = 8  # units in the last place, for a sum of a few rounded terms


class Drift(NamedTuple):
    """Bounds on the rounding errors accumulated over all rounds so far."""

    sums: Array
    gradients: Array
    means: Array


START = Drift(*3 * (np.float64(0),))


def noise(
    problem: Problem,
    method: ADOM,
    lambda_min_plus: Array,
    drift: Drift,
    before: State,
    after: State,
    g: Array,
    z_g: Array,
) -> tuple[Array, Drift]:
    r"""Return the noise of the five left sides in a round, and the drift after it.

    Late in a run both sides of an inequality are rounding errors, and nothing is left to check. So every round has a
    `noise`: the most that rounding can have added to the root of a left side. u is a few units in the last place.

    ========= ==================================================================================================
    sums      d = u (|m^k| + |m^{k+1}| + eta |g|), the rounding of m^{k+1}
    gradient  e = u (|z_g^k| + |grad F(0)| + L |g|); so g and x* are only known to e / mu
    Lemma 1   d; likewise Lemma 3
    Lemma 2   4 e / sqrt(theta lambda_min_plus)
    Lemma 4   a + b + c of the present round:
              a = 5 (d + u |z^k|), from the sums;
              b = 5 e (eta / mu + q), from gradients, q^2 = max(L, eta (1 - eta alpha) / tau) / mu, since the root of
              F* - F*(z*) has slope (2 mu)^(-1/2);
              c = 2 q times the size of the means of z and z_f: once their rows do not sum to zero, z* has moved. c is
              at most what d, u |z^k| and e of all earlier rounds can explain
    Theorem 1 2 e / mu, and 1 / mu times A + B + c, which keep errors of earlier rounds: A^{k+1} = sqrt(rho) A^k + a, as
              sums may always be rounded the same way, and (B^{k+1})^2 = rho (B^k)^2 + b^2, as gradients are not
    ========= ==================================================================================================
    """
    u, mu, eta, tau = ULPS * float(np.finfo(np.float64).eps), problem.mu, method.eta, method.tau
    d = u * (size(before.m) + size(after.m) + eta * size(g))
    e = u * (size(z_g) + size(problem.gradient_rows(g * 0)) + problem.L * size(g))
    q = jnp.sqrt(jnp.maximum(problem.L, eta * (1 - eta * method.alpha) / tau) / mu)
    new = Drift(5 * (d + u * size(before.z)), 5 * e * (eta / mu + q), d + u * size(before.z) + e)
    means = jnp.stack([size(v.mean(axis=0)) for v in (before.z, before.z_f, after.z, after.z_f)])
    moved = 2 * q * jnp.minimum(jnp.sqrt(problem.nodes) * means.max(), drift.means + new.means)
    theorem = 2 * e / mu + (drift.sums + drift.gradients + moved) / mu
    noises = [d, 4 * e / jnp.sqrt(method.theta * lambda_min_plus), d, new.sums + new.gradients + moved, theorem]
    rho = 1 - tau
    kept = Drift(
        jnp.sqrt(rho) * drift.sums + new.sums,
        jnp.sqrt(rho * drift.gradients**2 + new.gradients**2),
        drift.means + new.means,
    )
    return jnp.stack(noises), kept


def size(v: Array) -> Array:
    """Return the norm of an array of any shape."""
    return jnp.sqrt((v * v).sum())


class _Past(NamedTuple):
    """Values from earlier rounds that a round's inequalities need."""

    drift: Drift
    gap: Array  # F*(z_f) - F*(z*)


class _Fixed(NamedTuple):
    x: Array  # x*, one row per node
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
def _first_gap(problem: Problem, state: State, fixed: _Fixed) -> Array:
    x_f, _ = problem.exact_dual_gradient_rows(state.z_f, fixed.x)
    return _gap(problem, x_f, fixed)


def _gap(problem: Problem, x_f: Array, fixed: _Fixed) -> Array:
    """Return F*(z_f) - F*(z*), given x_f = grad F*(z_f): the linear term vanishes, as all rows of x* agree."""
    return _bregman(problem, fixed.x, x_f)


@jax.jit
def _psi(method: ADOM, state: State, fixed: _Fixed, gap: Array) -> Array:
    z, _, m = state
    weight = 2 * method.eta * (1 - method.eta * method.alpha) / method.tau
    return _square(z + _project(m) - fixed.z) + weight * gap + 6 * _square(_project(m))


@jax.jit
def _sides(
    problem: Problem,
    method: ADOM,
    spectrum: Array,
    fixed: _Fixed,
    start: Array,
    past: _Past,
    befores: State,
    afters: State,
    xs: Array,
    numbers: Array,
) -> tuple[_Sides, _Past]:
    """Return both sides of the five inequalities for a chunk of rounds, and the `_Past` after each."""

    def body(past: _Past, observed: Any) -> tuple[_Past, tuple[_Sides, _Past]]:
        sides, past = _round_sides(problem, method, spectrum, fixed, start, past, *observed)
        return past, (sides, past)

    chunk: tuple[_Sides, _Past] = jax.lax.scan(body, past, (befores, afters, xs, numbers))[1]
    return chunk


def _round_sides(
    problem: Problem,
    method: ADOM,
    spectrum: Array,
    fixed: _Fixed,
    start: Array,
    past: _Past,
    before: State,
    after: State,
    g: Array,
    k: Array,
) -> tuple[_Sides, _Past]:
    lambda_min_plus = spectrum[0]
    before = method.renewed(before, k)
    eta, theta, sigma, tau = method.eta, method.theta, method.sigma, method.tau
    z_g = tau * before.z + (1 - tau) * before.z_f
    s, Pg = sigma * lambda_min_plus, _project(g)

    sent = _square(_project(before.m - eta * g))
    passed = _square(_project(after.m))  # = P (m - eta g) - sigma W (m - eta g)
    feedback = (1 - s / 2) * _square(_project(before.m)) + 2 * eta**2 / s * _square(Pg)

    x_f, _ = problem.exact_dual_gradient_rows(after.z_f, g)
    descent = (_project(x_f) * (z_g - after.z_f)).sum() + _bregman(problem, x_f, g)
    promised = theta * lambda_min_plus / 2 * _square(Pg)

    gap = _gap(problem, x_f, fixed)
    psi = _psi(method, after, fixed, gap)
    psi_bound = (1 - tau) * _psi(method, before, fixed, past.gap)

    second = tau * (1 - tau) * problem.L / (eta * (1 - eta * method.alpha))
    bound = jnp.maximum(2 * tau, second) / problem.mu**2 * start * (1 - tau) ** k

    added, drift = noise(problem, method, lambda_min_plus, past.drift, before, after, g, z_g)
    sides = _Sides(
        jnp.stack([passed, promised, passed, psi, _square(g - fixed.x)]),
        jnp.stack([(1 - s) * sent, descent, feedback, psi_bound, bound]),
        jnp.stack([sent, promised, feedback, psi_bound, bound]),
        added,
    )
    return sides, _Past(drift, gap)
