"""The dual oracle: row i of grad F*(z) is argmin_x f_i(x) - <x, z_i>; compiled, all nodes at once.

Every row solves its own equation grad f_i(x) - z_i = 0. `exact` does so to machine precision, by damped Newton steps;
`auto` to a hundredth of what z moved, by steps with inverse Hessians that nodes learn and keep from round to round;
`gd` and `agd` take a fixed number of gradient steps. The host's counterpart, for one equation, is `minimiser`.

Inner gradients are always counted. A Hessian counts as dim gradients, the price of its columns, and a product with one
as a gradient. Every kind but `exact` warm-starts at the previous round's answer. This memory is passed in and out
explicitly.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .minimiser import ACCURACY, NEAR_ROUNDING, SHORTEST, far_enough

if TYPE_CHECKING:
    from ..run.request import OracleSpec
    from .base import Problem

Array = Any
MAX_ITERATIONS = 500
"""Of `newton`: far away, where the curvature is nearly 0, hundreds of shortened steps may be needed."""
HALVINGS = 30
"""Of a step of `newton`; no strongly convex function should need one shorter than 2^-30."""
DECAY = 0.9
"""Decay per round of the remembered worst contraction and longest step."""
SLOW = 0.5
"""The contraction above which the inverse Hessian counts as out of date."""
SYSTEM = ACCURACY / 4
"""The residual that conjugate gradients leave in a Newton system, relative to its right-hand side."""
FIRST = 4
"""Directions of conjugate gradients that nodes learn from which keep pairs only: the first ones reach farthest."""
HELD = 2**26
"""The most entries of all nodes' Hessians, or of what nodes keep in place of them, in memory at once: half a GiB."""
FEWEST, MOST = 8, 16
"""Pairs that a node keeps at least and at most. With more, applying them costs more time than they save."""
CURVED = 1e-10
"""The least cosine between s and y for which a pair is learned; below it, y is rounding."""
RULES = {
    "accuracy": ACCURACY,
    "decay": DECAY,
    "slow": SLOW,
    "shortest": SHORTEST,
    "near_rounding": NEAR_ROUNDING,
    "system": SYSTEM,
    "first": FIRST,
    "curved": CURVED,
}
"""Settings passed to a compiled kernel of this oracle, which does the same as `newton_steps`, node by node."""


class Inverse(NamedTuple):
    """What the nodes know of their inverse Hessians, learned from steps by the BFGS update, one row per node.

    A pair (s, y) of a step s and the change y = H s of the gradient along it teaches a node what H does to s. No
    Hessian is ever computed. A node keeps a whole matrix, or, where the matrices of all nodes would take too much
    memory, its latest pairs, from which the product with the matrix is computed (L-BFGS). The pairs are scaled to
    s'y = 1, and places not filled yet are zero, which changes nothing.
    """

    kept: Array  # (rows, dim, dim): matrices; or (rows, pairs, 2, dim): pairs, the latest one at (learned - 1) % pairs
    learned: Array  # (rows,): pairs learned so far

    @property
    def whole(self) -> bool:
        """Whether matrices are kept."""
        return bool(self.kept.ndim == 3)


class NewtonMemory(NamedTuple):
    """Memory of `auto` from round to round, one row per node."""

    z: Array  # of the last round
    e: Array  # (rows, dim): grad f(x) - z before the last step, 0 if unknown
    p: Array  # (rows, dim): the last step
    contraction: Array  # (rows,): the largest recent ratio of residuals after and before a step
    longest: Array  # (rows,): the longest recent step whose ratio was measured
    inverse: Inverse


class Memory(NamedTuple):
    """Memory of an oracle from round to round."""

    x: Array  # the last answer
    gradients: Array  # (rows,): gradients spent so far
    newton: NewtonMemory | None = None  # for `auto` only


def start(problem: "Problem", zeros: Array, spec: "OracleSpec", nodes: int | None = None) -> Memory:
    """Return the memory that the first round starts from.

    `nodes` is the number of all the network's nodes, by default that of the problem, which may have only some of them.
    """
    rows = len(zeros)
    memory = Memory(zeros, jnp.zeros(rows, dtype=jnp.int32))
    if spec.kind != "auto" or problem.closed_form:
        return memory

    def nothing(*shape: int) -> Array:
        return jnp.zeros(shape, dtype=zeros.dtype)  # a separate buffer for each, which a compiled loop may overwrite

    inverse = nothing_learned(zeros, problem.L, problem.nodes if nodes is None else nodes)
    vectors = (nothing(*zeros.shape), nothing(*zeros.shape), nothing(*zeros.shape))
    return memory._replace(newton=NewtonMemory(*vectors, nothing(rows), nothing(rows), inverse))


def dual_gradient(spec: "OracleSpec", problem: "Problem", memory: Memory, z: Array) -> Memory:
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
    stale: Array  # whether to solve the Newton system at x before the step
    fresh: Array  # whether p solves the Newton system at x
    inverse: Inverse

    def expected(self) -> Array:
        """Return a cautious prediction of the residual after the next step: twice the worst recent contraction."""
        known = self.longest > 0
        longer = jnp.maximum(1.0, _norm(self.p) / jnp.where(known, self.longest, 1.0))
        return 2 * jnp.where(known, jnp.minimum(self.contraction * longer, SLOW), SLOW) * self.size


def _norm(rows: Array) -> Array:
    return jnp.linalg.norm(rows, axis=-1)


def newton_steps(problem: "Problem", memory: Memory, z: Array) -> Memory:
    """Solve grad f(x) = z to a hundredth of the distance that z moved, by steps with a learned inverse Hessian.

    The point x is the exact answer for z + e, where e = grad f(x) - z is the residual. So to the method, z seems to be
    off by a hundredth of one round's movement. A step x - P e, with a P learned from earlier steps, contracts e well if
    the Hessian has changed little, whatever kappa is. Measuring the contraction costs nothing: the gradient that it
    needs is taken anyway, in the next round at the latest. From past contractions a node predicts the residual after a
    step, so it takes no gradient just to check the last step. Once x has settled, a round costs one gradient.

    P learns from every step that leaves more than a four-hundredth of e. If a step leaves more than half of e,
    conjugate gradients solve the Newton system at the next point, preconditioned by P, which learns from them too. Each
    of their products with the Hessian counts as a gradient; the Hessian itself is never computed. If a step fails that
    solves the Newton system of its point, it is halved until e falls. This is the damped Newton method, which converges
    from every point for strongly convex functions.
    """
    past = memory.newton
    assert past is not None
    kernel = problem.newton_kernel(z.dtype)
    if kernel is not None:
        rows = (past.e, past.p, past.contraction, past.longest, memory.gradients, *past.inverse)
        x, e, p, contraction, longest, gradients, kept, learned = kernel(z, past.z, (memory.x, *rows), **RULES)
        return Memory(x, gradients, NewtonMemory(z, e, p, contraction, longest, Inverse(kept, learned)))
    e = problem.gradient_rows(memory.x) - z
    size, moved = _norm(e), z - past.z
    rounding = 4 * float(np.finfo(z.dtype).eps) * (size + _norm(z) + problem.L * _norm(memory.x))
    enough = jnp.maximum(ACCURACY * _norm(moved), rounding)

    left, before = e + moved, _norm(past.e)  # what the last round's last step left; its gradient is known only now
    known = before > 0
    ratio = jnp.where(known, _norm(left) / jnp.where(known, before, 1.0), SLOW / 2)
    measured = jnp.where(_norm(left) <= rounding, 0.0, ratio)
    inverse = learn(past.inverse, -past.p, left - past.e, known & (measured > SYSTEM))
    none = jnp.zeros_like(size, dtype=bool)
    s = _Iterate(
        x=memory.x,
        e=e,
        p=apply(inverse, e, problem.L),
        size=size,
        contraction=jnp.maximum(measured, DECAY * past.contraction),
        longest=jnp.maximum(jnp.where(known, _norm(past.p), 0.0), DECAY * past.longest),
        t=none + 1.0,
        gradients=memory.gradients + 1,
        active=none,
        stale=none,
        fresh=none,
        inverse=inverse,
    )
    active = s.expected() > enough
    s = s._replace(active=active, stale=active & (measured > SLOW))
    s = jax.lax.while_loop(lambda s: s.active.any(), lambda s: _iteration(problem, z, enough, rounding, s), s)

    # One more step costs no gradient; skip it if it would only add rounding errors.
    safe = ((s.contraction <= SLOW) & (s.size > rounding))[:, None]
    e, x = jnp.where(safe, s.e, 0.0), jnp.where(safe, s.x - s.p, s.x)
    return Memory(x, s.gradients, NewtonMemory(z, e, s.p, s.contraction, s.longest, s.inverse))


def _iteration(problem: "Problem", z: Array, enough: Array, rounding: Array, s: _Iterate) -> _Iterate:
    """Try a step in every active row, solving the Newton systems of stale rows first; halve a step that fails there."""
    fresh = s.fresh | s.stale
    tried, inverse, products = jax.lax.cond(
        s.stale.any(),
        lambda: _solve(problem, s, enough),
        lambda: (s.p, Inverse(*s.inverse), jnp.zeros_like(s.gradients)),
    )
    x = s.x - s.t[:, None] * tried
    e = problem.gradient_rows(x) - z
    size = _norm(e)
    better = s.active & far_enough(size, s.t, s.size)
    measured = size / s.size
    slow = s.active & ~(measured <= SLOW)
    worst = jnp.where(fresh, SLOW, jnp.maximum(measured, s.contraction))
    contraction = jnp.where(better, worst, s.contraction)
    longest = jnp.where(better, jnp.maximum(_norm(tried), s.longest), s.longest)
    inverse = learn(inverse, x - s.x, e - s.e, s.active & (measured > SYSTEM) & (better | ~fresh))
    x, e = (jnp.where(better[:, None], new, old) for new, old in ((x, s.x), (e, s.e)))
    size = jnp.where(better, size, s.size)
    t = jnp.where(better | ~fresh, 1.0, jnp.where(s.size <= NEAR_ROUNDING * rounding, 0.0, s.t / 2))

    p = jnp.where(better[:, None], apply(inverse, e, problem.L), tried)
    gradients = s.gradients + jnp.where(s.active, 1 + products, 0)
    s = _Iterate(x, e, p, size, contraction, longest, t, gradients, s.active, s.stale, fresh & ~better, inverse)
    active = s.active & (t > SHORTEST) & (~better | (s.expected() > enough))
    return s._replace(active=active, stale=active & slow & (better | ~fresh))


def _solve(problem: "Problem", s: _Iterate, enough: Array) -> tuple[Array, Inverse, Array]:
    """Return the steps, in stale rows solutions of the Newton systems; what was learned; and each row's products.

    Conjugate gradients with a matrix P learn from every direction at once, and P r is then conjugate to it. Pairs serve
    unchanged until the system is solved: they are too few to keep a direction conjugate to all before.
    """
    target = jnp.maximum(SYSTEM * s.size, enough / 4)
    r = jnp.where(s.stale[:, None], s.e, 0.0)
    none = jnp.zeros_like(s.gradients)

    def going(state: tuple[Any, ...]) -> Array:
        return (state[0] < 10 * problem.dim + 100) & (_norm(state[2]) > target).any()

    def body(state: tuple[Any, ...]) -> tuple[Any, ...]:
        count, v, r, q, inverse, taken = state
        active = _norm(r) > target
        h = problem.hessian_product_rows(s.x, q)
        curvature = jnp.where(active, (q * h).sum(-1), 1.0)
        alpha = jnp.where(active, (r * q).sum(-1) / curvature, 0.0)[:, None]
        v, r = v + alpha * q, r - alpha * h
        inverse = learn(inverse, q, h, active if inverse.whole else active & (taken < FIRST))
        y = apply(inverse if inverse.whole else s.inverse, r, problem.L)
        q = jnp.where(active[:, None], y - ((y * h).sum(-1) / curvature)[:, None] * q, q)
        return count + 1, v, r, q, inverse, taken + active

    state = (jnp.asarray(0), jnp.zeros_like(r), r, apply(s.inverse, r, problem.L), s.inverse, none)
    _, v, _, _, inverse, taken = jax.lax.while_loop(going, body, state)
    return jnp.where(s.stale[:, None], v, s.p), inverse, taken


def gradient_steps(problem: "Problem", z: Array, x: Array, steps: int) -> Array:
    """Take `steps` steps of gradient descent, x <- x - (grad f(x) - z) / L."""
    step = 1 / problem.L  # divide once, outside the loop
    return jax.lax.fori_loop(0, steps, lambda _, x: x - step * (problem.gradient_rows(x) - z), x)


def accelerated_steps(problem: "Problem", z: Array, x: Array, steps: int) -> Array:
    """Take `steps` steps of Nesterov's method without initial momentum; the first is a step of gradient descent."""
    root = jnp.sqrt(problem.L / problem.mu)
    beta, step = (root - 1) / (root + 1), 1 / problem.L

    def body(_: Array, pair: tuple[Array, Array]) -> tuple[Array, Array]:
        x, y = pair
        x_next = y - step * (problem.gradient_rows(y) - z)
        return x_next, x_next + beta * (x_next - x)

    return jax.lax.fori_loop(0, steps, body, (x, x))[0]


class _Carry(NamedTuple):
    iteration: Array
    x: Array
    g: Array
    done: Array
    gradients: Array


def newton(
    gradient: Callable[[Array], Array],
    hessian_product: Callable[[Array, Array], Array],
    hessian: Callable[[Array], Array] | None,
    x: Array,
    *,
    scale: Array,
    stiffness: Array,
) -> tuple[Array, Array]:
    """Solve gradient(x) = 0 row by row to machine precision; return the solution and the gradients each row took.

    The merit function is the norm of the gradient: along the Newton direction it falls like 1 - t, and unlike a
    difference of function values it stays accurate down to rounding. A row stops when a Newton step is no larger than
    the rounding of x, or when no step reduces the norm. A small norm is no criterion: if mu is tiny beside L, a
    gradient may be pure rounding along one direction and far from 0 along another.

    A Hessian counts as dim gradients, as many as its columns cost. Without `hessian`, conjugate gradients solve the
    Newton systems, and each of their products counts as one. The rounding of x is one ulp of
    `norm(x) + scale / stiffness`, where `scale` is the size of the terms that cancel in the gradient at 0.
    """
    ulp = float(np.finfo(x.dtype).eps)

    def direction(x: Array, g: Array) -> tuple[Array, Array]:
        if hessian is not None:
            factor = jax.scipy.linalg.cho_factor(hessian(x), lower=True)
            return jax.scipy.linalg.cho_solve(factor, g[..., None])[..., 0], jnp.asarray(x.shape[-1], jnp.int32)
        return conjugate_gradients(lambda v: hessian_product(x, v), g)

    def body(carry: _Carry) -> _Carry:
        p, price = direction(carry.x, carry.g)
        before = _norm(carry.g)
        length = _norm(p)
        size = _norm(carry.x) + scale / stiffness
        # If so short a step, or one from so small a gradient, does not help, the cause is rounding: shorter will not.
        hopeless = (length <= ulp**0.5 * size) | (before <= ulp * stiffness * size)

        def attempt(state: tuple[Array, ...]) -> tuple[Array, ...]:
            t, halvings, x, g, accepted, over, spent = state
            trial = carry.x - t[:, None] * p
            g_trial = gradient(trial)
            enough = ~over & far_enough(_norm(g_trial), t, before)
            x, g = (jnp.where(enough[:, None], new, old) for new, old in ((trial, x), (g_trial, g)))
            return t / 2, halvings + 1, x, g, accepted | enough, over | enough | hopeless, spent + ~over

        def unsatisfied(state: tuple[Array, ...]) -> Array:
            return (state[1] < HALVINGS) & ~jnp.all(state[5])

        none = jnp.zeros_like(carry.done)
        start = (jnp.ones_like(before), 0, carry.x, carry.g, none, carry.done, jnp.zeros_like(carry.gradients))
        _, _, x, g, accepted, _, spent = jax.lax.while_loop(unsatisfied, attempt, start)
        # A row without a better point keeps its x.
        gradients = carry.gradients + spent + jnp.where(carry.done, 0, price)
        done = carry.done | ~accepted | (length <= ulp * size)
        return _Carry(carry.iteration + 1, x, g, done, gradients)

    g = gradient(x)
    ones = jnp.ones(x.shape[0], dtype=jnp.int32)
    carry = _Carry(jnp.asarray(0), x, g, (g == 0).all(axis=-1), ones)
    carry = jax.lax.while_loop(lambda c: (c.iteration < MAX_ITERATIONS) & ~jnp.all(c.done), body, carry)
    return carry.x, carry.gradients


def conjugate_gradients(product: Callable[[Array], Array], b: Array, tolerance: float = 1e-6) -> tuple[Array, Array]:
    """Solve product(v) = b row by row to `tolerance`; return v and the number of products that each row took."""
    target = (tolerance * _norm(b)) ** 2

    def body(state: tuple[Array, ...]) -> tuple[Array, ...]:
        count, v, r, p, rr, taken = state
        Ap = product(p)
        active = rr > target
        alpha = jnp.where(active, rr / jnp.where(active, (p * Ap).sum(-1), 1), 0)
        v = v + alpha[:, None] * p
        r = r - alpha[:, None] * Ap
        rr_next = jnp.where(active, (r * r).sum(-1), rr)
        p = jnp.where(active[:, None], r + (rr_next / jnp.where(active, rr, 1))[:, None] * p, p)
        return count + 1, v, r, p, rr_next, taken + active

    limit = 10 * b.shape[-1] + 100
    none = jnp.zeros(b.shape[0], dtype=jnp.int32)
    state = (jnp.asarray(0), jnp.zeros_like(b), b, b, (b * b).sum(-1), none)
    state = jax.lax.while_loop(lambda s: (s[0] < limit) & jnp.any(s[4] > target), body, state)
    return state[1], state[5]


def held(nodes: int, dim: int) -> bool:
    """Return whether a matrix for each of all the network's nodes may be held in memory."""
    return nodes * dim**2 <= HELD


def nothing_learned(zeros: Array, L: Array, nodes: int) -> Inverse:
    """Return the inverses I / L of a network's nodes, of which this process has those of the rows of `zeros`."""
    rows, dim = zeros.shape
    learned = jnp.zeros(rows, dtype=jnp.int32)
    if held(nodes, dim):
        unit = jnp.eye(dim, dtype=zeros.dtype) / jnp.asarray(L, zeros.dtype)
        return Inverse(jnp.broadcast_to(unit, (rows, dim, dim)), learned)
    pairs = min(MOST, max(FEWEST, HELD // (2 * nodes * dim)))
    return Inverse(jnp.zeros((rows, pairs, 2, dim), dtype=zeros.dtype), learned)


def apply(inverse: Inverse, v: Array, L: Array) -> Array:
    """Return the product of every node's inverse with its row of v."""
    kept, learned = inverse
    if inverse.whole:
        return jnp.einsum("nde,ne->nd", kept, v)
    rows, pairs = len(v), kept.shape[1]
    each = jnp.arange(rows)

    def pair(age: Array) -> tuple[Array, Array]:
        at = kept[each, (learned - 1 - age) % pairs]
        return at[:, 0], at[:, 1]

    def later(age: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        v, shares = state
        s, y = pair(age)
        share = (s * v).sum(-1)
        return v - share[:, None] * y, shares.at[age].set(share)

    def earlier(back: Array, v: Array) -> Array:
        age = pairs - 1 - back
        s, y = pair(age)
        return v + (shares[age] - (y * v).sum(-1))[:, None] * s

    v, shares = jax.lax.fori_loop(0, pairs, later, (v, jnp.zeros((pairs, rows), dtype=v.dtype)))
    latest = (pair(0)[1] ** 2).sum(-1)
    scale = jnp.where(learned > 0, 1 / jnp.where(learned > 0, latest, 1), 1 / L).astype(v.dtype)
    product: Array = jax.lax.fori_loop(0, pairs, earlier, scale[:, None] * v)
    return product


def learn(inverse: Inverse, s: Array, y: Array, wanted: Array) -> Inverse:
    """Return the inverses after the wanted rows have learned from their pair (s, y); rows without curvature do not."""
    curvature = (s * y).sum(-1)
    wanted = wanted & (curvature > CURVED * _norm(s) * _norm(y))
    update = _whole if inverse.whole else _pairs
    updated: Inverse = jax.lax.cond(
        wanted.any(), lambda: update(inverse, s, y, curvature, wanted), lambda: Inverse(*inverse)
    )
    return updated


def _whole(inverse: Inverse, s: Array, y: Array, curvature: Array, wanted: Array) -> Inverse:
    """Update matrices: P + u s' + s u' with u = ((1 + y'Py / s'y) s / 2 - P y) / s'y, which maps y to s."""
    s, y = (jnp.where(wanted[:, None], part, 0.0) for part in (s, y))
    per = (1 / jnp.where(wanted, curvature, 1.0))[:, None]
    Py = jnp.einsum("nde,ne->nd", inverse.kept, y)
    u = per * ((1 + per * (y * Py).sum(-1)[:, None]) / 2 * s - Py)
    kept = inverse.kept + (u[:, :, None] * s[:, None, :] + s[:, :, None] * u[:, None, :])
    return Inverse(kept, inverse.learned + wanted)


def _pairs(inverse: Inverse, s: Array, y: Array, curvature: Array, wanted: Array) -> Inverse:
    """Replace the oldest pairs."""
    each, place = jnp.arange(len(s)), inverse.learned % inverse.kept.shape[1]
    pair = jnp.stack([s, y], axis=1) / jnp.sqrt(jnp.where(wanted, curvature, 1.0))[:, None, None]
    pair = jnp.where(wanted[:, None, None], pair, inverse.kept[each, place])
    return Inverse(inverse.kept.at[each, place].set(pair), inverse.learned + wanted)
