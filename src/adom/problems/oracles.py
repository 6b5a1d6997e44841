"""The dual oracle: row i of grad F*(z) is argmin_x f_i(x) - <x, z_i>. Inner gradients are always counted.

Every kind but `exact` warm-starts at the previous round's answer. This memory is passed in and out explicitly.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .base import Array, Problem
from .newton import DIRECT_DIM, conjugate_gradients
from .oracle_spec import OracleSpec

ACCURACY = 0.01
"""The residual that `auto` accepts, relative to the distance that z moved in this round."""
DECAY = 0.9
"""Decay per round of the remembered worst contraction and longest step."""
SLOW = 0.5
"""The contraction above which the Hessian counts as out of date."""
SHORTEST = 2.0**-30
"""The smallest fraction of a step that is tried; if even that does not reduce the residual, the cause is rounding."""
NEAR_ROUNDING = 1e3
"""A residual below this multiple of its rounding error is accepted as soon as one full step fails."""
SYSTEM = ACCURACY / 4
"""The residual that conjugate gradients leave in a Newton system, relative to its right-hand side."""
RULES = {
    "accuracy": ACCURACY,
    "decay": DECAY,
    "slow": SLOW,
    "shortest": SHORTEST,
    "near_rounding": NEAR_ROUNDING,
    "system": SYSTEM,
}
"""Settings passed to a compiled kernel of this oracle, which does the same as `newton_steps`, node by node."""
INVERSE_SIZE = 2**24
"""The most entries of all nodes' inverse Hessians; above, conjugate gradients solve the systems."""


class NewtonMemory(NamedTuple):
    """Memory of `auto` from round to round, one row per node."""

    z: Array  # of the last round
    residual: Array  # (rows,): |grad f(x) - z| before the last step, 0 if unknown
    length: Array  # (rows,): of the last step
    contraction: Array  # (rows,): the largest recent ratio of residuals after and before a step
    longest: Array  # (rows,): the longest recent step whose ratio was measured
    round: Array
    refresh: Array  # the next round in which nodes that need more than one gradient refresh their Hessian
    inverse: Array | None  # (rows, dim, dim): inverse Hessians from some rounds ago


class Memory(NamedTuple):
    """Memory of an oracle from round to round."""

    x: Array  # the last answer
    gradients: Array  # (rows,): gradients spent so far
    newton: NewtonMemory | None = None  # for `auto` only


def start(zeros: Array, spec: OracleSpec) -> Memory:
    """Return the memory that the first round starts from."""
    rows, dim = zeros.shape
    memory = Memory(zeros, jnp.zeros(rows, dtype=jnp.int32))
    if spec.kind != "auto":
        return memory

    def nothing(*shape: int, dtype: Any = zeros.dtype) -> Array:
        return jnp.zeros(shape, dtype=dtype)  # a separate buffer for each, which a compiled loop may overwrite

    direct = dim <= DIRECT_DIM and rows * dim * dim <= INVERSE_SIZE
    inverse = nothing(rows, dim, dim) if direct else None
    history = (nothing(rows), nothing(rows), nothing(rows), nothing(rows))
    clock = (nothing(dtype=jnp.int32), nothing(dtype=jnp.int32))
    return memory._replace(newton=NewtonMemory(nothing(rows, dim), *history, *clock, inverse))


def dual_gradient(spec: OracleSpec, problem: Problem, memory: Memory, z: Array) -> Memory:
    """Evaluate the oracle at z; return the new memory, whose `x` is the answer."""
    if spec.kind == "exact" or (spec.kind == "auto" and problem.closed_form):
        x, spent = problem.exact_dual_gradient_rows(z, memory.x)
        return memory._replace(x=x, gradients=memory.gradients + spent)
    if spec.kind == "auto":
        return newton_steps(problem, memory, z)
    descend = gradient_steps if spec.kind == "gd" else accelerated_steps
    x = descend(problem, z, memory.x, spec.steps)
    return memory._replace(x=x, gradients=memory.gradients + spec.steps)


class _Iterate(NamedTuple):
    """State of the Newton iteration within a round, row by row."""

    x: Array
    e: Array  # grad f(x) - z
    p: Array  # the next step
    size: Array  # |e|
    contraction: Array
    longest: Array
    t: Array  # the fraction of the step to try
    gradients: Array
    active: Array
    stale: Array  # whether to refresh the Hessian at x before the step
    fresh: Array  # whether the inverse is of the Hessian at x
    inverse: Array | None

    def expected(self) -> Array:
        """Return a cautious prediction of the residual after the next step: twice the worst recent contraction."""
        known = self.longest > 0
        longer = jnp.maximum(1.0, _norm(self.p) / jnp.where(known, self.longest, 1.0))
        return 2 * jnp.where(known, jnp.minimum(self.contraction * longer, SLOW), SLOW) * self.size


def _norm(rows: Array) -> Array:
    return jnp.linalg.norm(rows, axis=-1)


def newton_steps(problem: Problem, memory: Memory, z: Array) -> Memory:
    """Solve grad f(x) = z to a hundredth of the distance that z moved, by Newton steps with a reused Hessian.

    The point x is the exact answer for z + e, where e = grad f(x) - z is the residual. So to the method, z seems to be
    off by a hundredth of one round's movement. A step x - H^{-1} e with a Hessian from some rounds ago contracts e
    well if the Hessian has changed little, whatever kappa is. Measuring the contraction costs nothing: the gradient
    that it needs is taken anyway, in the next round at the latest. From past contractions a node predicts the residual
    after a step, so it takes no gradient just to check the last step. Once x has settled, a round costs one gradient.

    A node refreshes its Hessian if a step leaves more than half of e. If it needs more than one gradient per round, it
    also does so in rounds 0, 1, 2, 3, 4, 6, 8, 11, ..., each a quarter later than the last. A Hessian counts as one
    gradient. If a step fails with the Hessian of the same point, it is halved until e falls. This is the damped Newton
    method, which converges from every point for strongly convex functions.
    """
    past = memory.newton
    assert past is not None
    due = past.round >= past.refresh
    kernel = problem.newton_kernel(z.dtype)
    if kernel is not None:
        kept = jnp.zeros((len(z), 0), dtype=z.dtype) if past.inverse is None else past.inverse
        rows = (past.residual, past.length, past.contraction, past.longest, memory.gradients, kept)
        x, *rest, kept = kernel(z, past.z, due, (memory.x, *rows), **RULES)
        return _remember(past, due, z, x, (*rest, None if past.inverse is None else kept))
    e = problem.gradient_rows(memory.x) - z
    size = _norm(e)
    rounding = 4 * float(np.finfo(z.dtype).eps) * (size + _norm(z) + problem.L * _norm(memory.x))
    enough = jnp.maximum(ACCURACY * _norm(z - past.z), rounding)

    left = _norm(e + (z - past.z))  # what the previous round's last step left; its gradient is known only now
    known = past.residual > 0
    measured = jnp.where(left <= rounding, 0.0, jnp.where(known, left / past.residual, SLOW / 2))
    contraction = jnp.maximum(measured, DECAY * past.contraction)
    longest = jnp.maximum(jnp.where(known, past.length, 0.0), DECAY * past.longest)

    p, products = _direction(problem, memory.x, e, past.inverse, size > rounding)
    direct = past.inverse is not None
    none = jnp.zeros_like(size, dtype=bool)
    s = _Iterate(
        x=memory.x,
        e=e,
        p=p,
        size=size,
        contraction=contraction,
        longest=longest,
        t=none + 1.0,
        gradients=memory.gradients + 1 + products,
        active=none,
        stale=none,
        fresh=none | (not direct),
        inverse=past.inverse,
    )
    active = s.expected() > enough
    s = s._replace(active=active, stale=active & ((measured > SLOW) | due) & direct)
    s = jax.lax.while_loop(lambda s: s.active.any(), lambda s: _iteration(problem, z, enough, rounding, s), s)

    # One more step costs no gradient; skip it if it would only add rounding errors.
    safe = (s.contraction <= SLOW) & (s.size > rounding)
    x = jnp.where(safe[:, None], s.x - s.p, s.x)
    residual = jnp.where(safe, s.size, 0.0)
    return _remember(past, due, z, x, (residual, _norm(s.p), s.contraction, s.longest, s.gradients, s.inverse))


def _remember(past: NewtonMemory, due: Array, z: Array, x: Array, rows: Sequence[Any]) -> Memory:
    """Return the memory after a round."""
    residual, length, contraction, longest, gradients, inverse = rows
    refresh = jnp.where(due, past.round + past.round // 4 + 1, past.refresh)
    newton = NewtonMemory(z, residual, length, contraction, longest, past.round + 1, refresh, inverse)
    return Memory(x, gradients, newton)


def _iteration(problem: Problem, z: Array, enough: Array, rounding: Array, s: _Iterate) -> _Iterate:
    """Try a step in every active row, refreshing stale Hessians first; halve a step that fails with a fresh one."""
    fresh, inverse, tried = s.fresh | s.stale, s.inverse, s.p
    if inverse is not None:
        inverse, tried = _refresh(problem, s)
    x = s.x - s.t[:, None] * tried
    e = problem.gradient_rows(x) - z
    size = _norm(e)
    better = s.active & (size <= (1 - s.t / 4) * s.size)
    measured = size / s.size
    slow = s.active & ~(measured <= SLOW)
    contraction = jnp.where(better, jnp.maximum(measured, s.contraction), s.contraction)
    longest = jnp.where(better, jnp.maximum(_norm(tried), s.longest), s.longest)
    x, e = (jnp.where(better[:, None], new, old) for new, old in ((x, s.x), (e, s.e)))
    size = jnp.where(better, size, s.size)
    t = jnp.where(better | ~fresh, 1.0, jnp.where(s.size <= NEAR_ROUNDING * rounding, 0.0, s.t / 2))

    p, products = _direction(problem, x, e, inverse, better)
    p = jnp.where(better[:, None], p, tried)
    gradients = s.gradients + jnp.where(s.active, 1 + s.stale + products, 0)
    fresh_at_x = fresh & (~better | (inverse is None))
    s = _Iterate(x, e, p, size, contraction, longest, t, gradients, s.active, s.stale, fresh_at_x, inverse)
    active = s.active & (t > SHORTEST) & (~better | (s.expected() > enough))
    return s._replace(active=active, stale=active & slow & (better | ~fresh) & (inverse is not None))


def _direction(problem: Problem, x: Array, e: Array, inverse: Array | None, wanted: Array) -> tuple[Array, Array]:
    """Return H^{-1} e for the wanted rows, and the number of Hessian products that each row took."""
    if inverse is not None:
        return jnp.einsum("nde,ne->nd", inverse, e), jnp.zeros(len(e), dtype=jnp.int32)
    e = jnp.where(wanted[:, None], e, 0.0)
    return conjugate_gradients(lambda v: problem.hessian_product_rows(x, v), e, SYSTEM)


def _refresh(problem: Problem, s: _Iterate) -> tuple[Array, Array]:
    """Replace the inverse Hessians of stale rows by those at x; return all inverses and the resulting steps."""
    unit: Array = jnp.eye(problem.dim, dtype=s.x.dtype)

    def invert(s: _Iterate) -> tuple[Array, Array]:
        kept: Array = s.inverse
        factor = jnp.linalg.cholesky(problem.hessian_rows(s.x))
        latest = jax.scipy.linalg.cho_solve((factor, True), jnp.broadcast_to(unit, kept.shape))
        latest = jnp.where(jnp.isfinite(latest), latest, unit / problem.L)  # a step of gradient descent
        inverse = jnp.where(s.stale[:, None, None], latest, kept)
        return inverse, _direction(problem, s.x, s.e, inverse, s.active)[0]

    refreshed: tuple[Array, Array] = jax.lax.cond(s.stale.any(), invert, lambda s: (s.inverse, s.p), s)
    return refreshed


def gradient_steps(problem: Problem, z: Array, x: Array, steps: int) -> Array:
    """Take `steps` steps of gradient descent, x <- x - (grad f(x) - z) / L."""
    step = 1 / problem.L  # divide once, outside the loop
    return jax.lax.fori_loop(0, steps, lambda _, x: x - step * (problem.gradient_rows(x) - z), x)


def accelerated_steps(problem: Problem, z: Array, x: Array, steps: int) -> Array:
    """Take `steps` steps of Nesterov's method without initial momentum; the first is a step of gradient descent."""
    root = jnp.sqrt(problem.L / problem.mu)
    beta, step = (root - 1) / (root + 1), 1 / problem.L

    def body(_: Array, pair: tuple[Array, Array]) -> tuple[Array, Array]:
        x, y = pair
        x_next = y - step * (problem.gradient_rows(y) - z)
        return x_next, x_next + beta * (x_next - x)

    return jax.lax.fori_loop(0, steps, body, (x, x))[0]
