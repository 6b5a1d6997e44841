"""The dual oracle, grad F*(z) row by row, in its ways; inner gradients are always counted.

Row i of grad F*(z) is argmin_x f_i(x) - <x, z_i>. Every way but `exact` warm-starts at the previous round's
answer, so an oracle has a memory; it is passed in and out, never hidden.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .base import Array, Problem
from .newton import conjugate_gradients
from .oracle_spec import OracleSpec


class Memory(NamedTuple):
    """What the oracle keeps from round to round."""

    x: Array  # the last answer
    gradients: Array  # (rows,): gradients spent so far
    kept: "Kept | None" = None  # for `auto` only


class Kept(NamedTuple):
    """What `auto` knows, node by node; nothing here needs another node."""

    z: Array  # the last z asked for
    residual: Array  # (rows,): |grad f(x) - z| before the last step that was taken, 0 where it is not known
    length: Array  # (rows,): of that step
    left: Array  # (rows,): the largest part of its residual that a step has left lately
    reach: Array  # (rows,): the length of the longest of these steps
    round: Array
    due: Array  # the round in which nodes that take more than one gradient take a fresh Hessian
    inverse: Array | None  # (rows, dim, dim): the inverse of a Hessian of f_i, as it was some rounds ago


SHARE = 0.01
"""The residual that `auto` leaves, as a part of the distance that z moved in this round."""
FORGET = 0.9
"""How much of what steps have left is remembered a round later."""
SLOW = 0.5
"""A step that leaves more than this of the residual says that the Hessian is out of date."""
SHORTEST = 2.0**-30
"""The shortest part of a step that is tried: if not even that reduces the residual, rounding is why."""
HOPELESS = 1e3
"""The residual, in units of its rounding, at which a whole step that fails says so already."""
WIDEST = 128
"""The most features for which Hessians are inverted, which takes time like their cube; beyond, systems are solved by
conjugate gradients."""
LARGEST = 2**24
"""The most numbers that the inverses of all nodes may have; beyond, likewise."""


def start(zeros: Array, spec: OracleSpec) -> Memory:
    """Return the memory that the first round starts from."""
    rows, dim = zeros.shape
    memory = Memory(zeros, jnp.zeros(rows, dtype=jnp.int32))
    if spec.kind != "auto":
        return memory

    def nothing(*shape: int, dtype: Any = zeros.dtype) -> Array:
        return jnp.zeros(shape, dtype=dtype)  # each in memory of its own, which an engine may give away

    direct = dim <= WIDEST and rows * dim * dim <= LARGEST
    inverse = nothing(rows, dim, dim) if direct else None
    known = (nothing(rows), nothing(rows), nothing(rows), nothing(rows))
    clock = (nothing(dtype=jnp.int32), nothing(dtype=jnp.int32))
    return memory._replace(kept=Kept(nothing(rows, dim), *known, *clock, inverse))


def dual_gradient(spec: OracleSpec, problem: Problem, memory: Memory, z: Array) -> Memory:
    """Return the memory after one more evaluation; its `x` is the answer."""
    if spec.kind == "exact" or (spec.kind == "auto" and problem.closed_form):
        x, spent = problem.exact_dual_gradient_rows(z, memory.x)
        return memory._replace(x=x, gradients=memory.gradients + spent)
    if spec.kind == "auto":
        return newton_steps(problem, memory, z)
    descend = gradient_steps if spec.kind == "gd" else accelerated_steps
    x = descend(problem, z, memory.x, spec.steps)
    return memory._replace(x=x, gradients=memory.gradients + spec.steps)


class _Steps(NamedTuple):
    """Where the steps of one round are, node by node."""

    x: Array
    e: Array  # grad f(x) - z
    p: Array  # the next step
    size: Array  # of e
    left: Array
    reach: Array
    t: Array  # the part of the step that is tried
    spent: Array
    active: Array
    stale: Array  # whether a Hessian at x is wanted
    fresh: Array  # whether the inverse is that of the Hessian at x
    inverse: Array | None

    def expected(self) -> Array:
        """Return the residual that the next step may leave, twice what steps have left lately."""
        known = self.reach > 0
        longer = jnp.maximum(1.0, _norm(self.p) / jnp.where(known, self.reach, 1.0))
        return 2 * jnp.where(known, jnp.minimum(self.left * longer, SLOW), SLOW) * self.size


def _norm(rows: Array) -> Array:
    return jnp.linalg.norm(rows, axis=-1)


def newton_steps(problem: Problem, memory: Memory, z: Array) -> Memory:
    r"""Solve grad f(x) = z to a hundredth of the distance that z moved, by Newton steps with a Hessian that is kept.

    The residual e = grad f(x) - z says of which z + e the point x is the exact answer, so to the method z seems to be
    off by e: by a hundredth of one round's movement. A step x - H^{-1} e with the Hessian of some rounds ago leaves a
    part of e that is small wherever the Hessian has changed little, whatever kappa is. How small is measured at no
    cost, at the latest when the next round's gradient is taken. So a node knows from the last rounds what a step of
    some length leaves, and takes no gradient only to see that it was enough: a round costs one gradient once x has
    settled.

    A node takes a fresh Hessian where a step leaves more than half of e and, if it still takes more than one gradient a
    round, in rounds 0, 1, 2, 3, 4, 6, 8, 11, ..., a quarter further each time. A Hessian counts as one gradient. A step
    that fails with the Hessian of the very same point is halved until e falls, as in any damped Newton method for
    strongly convex functions, which converges from everywhere.
    """
    kept = memory.kept
    assert kept is not None
    e = problem.gradient_rows(memory.x) - z
    size = _norm(e)
    rounding = 4 * float(np.finfo(z.dtype).eps) * (size + _norm(z) + problem.L * _norm(memory.x))
    enough = jnp.maximum(SHARE * _norm(z - kept.z), rounding)

    before = _norm(e + (z - kept.z))  # what the last round's last step left of its residual
    known = kept.residual > 0
    measured = jnp.where(before <= rounding, 0.0, jnp.where(known, before / kept.residual, SLOW / 2))
    left = jnp.maximum(measured, FORGET * kept.left)
    reach = jnp.maximum(jnp.where(known, kept.length, 0.0), FORGET * kept.reach)

    p, spent = _direction(problem, memory.x, e, kept.inverse, size > rounding)
    direct = kept.inverse is not None
    none = jnp.zeros_like(size, dtype=bool)
    s = _Steps(
        memory.x,
        e,
        p,
        size,
        left,
        reach,
        none + 1.0,
        memory.gradients + 1 + spent,
        none,
        none,
        none | (not direct),
        kept.inverse,
    )
    active = s.expected() > enough
    due = kept.round >= kept.due
    s = s._replace(active=active, stale=active & ((measured > SLOW) | due) & direct)
    s = jax.lax.while_loop(lambda s: s.active.any(), lambda s: _further(problem, z, enough, rounding, s), s)

    sure = (s.left <= SLOW) & (s.size > rounding)  # one more step costs no gradient, but must not only stir rounding
    following = jnp.where(due, kept.round + kept.round // 4 + 1, kept.due)
    kept = Kept(z, jnp.where(sure, s.size, 0.0), _norm(s.p), s.left, s.reach, kept.round + 1, following, s.inverse)
    return Memory(jnp.where(sure[:, None], s.x - s.p, s.x), s.spent, kept)


def _further(problem: Problem, z: Array, enough: Array, rounding: Array, s: _Steps) -> _Steps:
    """Take one more step at every node that needs one, or try a shorter one, or take a Hessian first."""
    fresh, inverse, p = s.fresh | s.stale, s.inverse, s.p
    if inverse is not None:
        inverse = _refreshed(problem, inverse, s.x, s.stale)
        p, _ = _direction(problem, s.x, s.e, inverse, s.active)
    x = s.x - s.t[:, None] * p
    e = problem.gradient_rows(x) - z
    size = _norm(e)
    better = s.active & (size <= (1 - s.t / 4) * s.size)
    measured = size / s.size
    slow = s.active & ~(measured <= SLOW)
    left = jnp.where(better, jnp.maximum(measured, s.left), s.left)
    reach = jnp.where(better, jnp.maximum(_norm(p), s.reach), s.reach)
    x, e = (jnp.where(better[:, None], new, old) for new, old in ((x, s.x), (e, s.e)))
    size = jnp.where(better, size, s.size)
    t = jnp.where(better | ~fresh, 1.0, jnp.where(s.size <= HOPELESS * rounding, 0.0, s.t / 2))

    p, products = _direction(problem, x, e, inverse, better)
    p = jnp.where(better[:, None], p, s.p)
    spent = s.spent + jnp.where(s.active, 1 + s.stale + products, 0)
    s = _Steps(x, e, p, size, left, reach, t, spent, s.active, s.stale, fresh & (~better | (inverse is None)), inverse)
    active = s.active & (t > SHORTEST) & (~better | (s.expected() > enough))
    return s._replace(active=active, stale=active & slow & (better | ~fresh) & (inverse is not None))


def _direction(problem: Problem, x: Array, e: Array, inverse: Array | None, wanted: Array) -> tuple[Array, Array]:
    """Return H^{-1} e for every row, and the Hessian products that each row took; 0 where it is not wanted."""
    if inverse is not None:
        return jnp.einsum("nde,ne->nd", inverse, e), jnp.zeros(len(e), dtype=jnp.int32)
    e = jnp.where(wanted[:, None], e, 0.0)
    return conjugate_gradients(lambda v: problem.hessian_product_rows(x, v), e, SHARE / 4)


def _refreshed(problem: Problem, inverse: Array, x: Array, wanted: Array) -> Array:
    """Return the inverses with those of some nodes taken anew, at x."""
    unit = jnp.eye(problem.dim, dtype=x.dtype)

    def renew(inverse: Array) -> Array:
        factor = jnp.linalg.cholesky(problem.hessian_rows(x))
        found = jax.scipy.linalg.cho_solve((factor, True), jnp.broadcast_to(unit, inverse.shape))
        found = jnp.where(jnp.isfinite(found), found, unit / problem.L)  # a step of gradient descent
        return jnp.where(wanted[:, None, None], found, inverse)

    return jax.lax.cond(wanted.any(), renew, lambda inverse: inverse, inverse)


def gradient_steps(problem: Problem, z: Array, x: Array, steps: int) -> Array:
    """T steps of gradient descent, x <- x - (grad f(x) - z) / L."""
    step = 1 / problem.L  # outside the loop, which then need not divide
    return jax.lax.fori_loop(0, steps, lambda _, x: x - step * (problem.gradient_rows(x) - z), x)


def accelerated_steps(problem: Problem, z: Array, x: Array, steps: int) -> Array:
    """T steps of Nesterov's method, the momentum starting afresh; one step of it is one of gradient descent."""
    beta, step = _momentum(problem), 1 / problem.L

    def body(_: Array, pair: tuple[Array, Array]) -> tuple[Array, Array]:
        x, y = pair
        x_next = y - step * (problem.gradient_rows(y) - z)
        return x_next, x_next + beta * (x_next - x)

    return jax.lax.fori_loop(0, steps, body, (x, x))[0]


def _momentum(problem: Problem) -> Array:
    root = jnp.sqrt(problem.L / problem.mu)
    return (root - 1) / (root + 1)
