"""Damped Newton's method for many strongly convex equations at once, compiled, to machine precision.

Every row solves its own equation g(x) = 0, where g is the gradient of a strongly convex function. The merit function is
the norm of g: along the Newton direction it falls like 1 - t, and unlike a difference of function values it stays
accurate down to rounding. A row stops when a Newton step is no larger than the rounding of x, or when no step reduces
the norm. A small norm is no criterion: if mu is tiny beside L, a gradient may be pure rounding along one direction and
far from 0 along another.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Array = Any
MAX_ITERATIONS = 500  # far away, where the curvature is nearly 0, hundreds of shortened steps may be needed
HALVINGS = 30  # of a step; no strongly convex function should need one shorter than 2^-30


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
    """Solve gradient(x) = 0 row by row, starting at x; return the solution and the gradients that each row took.

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
        before = jnp.linalg.norm(carry.g, axis=-1)
        length = jnp.linalg.norm(p, axis=-1)
        size = jnp.linalg.norm(carry.x, axis=-1) + scale / stiffness
        # If so short a step, or one from so small a gradient, does not help, the cause is rounding: shorter will not.
        hopeless = (length <= ulp**0.5 * size) | (before <= ulp * stiffness * size)

        def attempt(state: tuple[Array, ...]) -> tuple[Array, ...]:
            t, halvings, x, g, accepted, over, spent = state
            trial = carry.x - t[:, None] * p
            g_trial = gradient(trial)
            enough = ~over & (jnp.linalg.norm(g_trial, axis=-1) <= (1 - t / 4) * before)
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
    target = (tolerance * jnp.linalg.norm(b, axis=-1)) ** 2

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
