"""Records made inside the compiled loop: the observations, and the rows of the record at which a run ends."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ... import native
from ..links.presence import Presence

Array = Any


class Target(NamedTuple):
    """The solution, and the bounds on the error within which a run continues."""

    solution: Array
    low: Array  # at or below it, the run has converged
    high: Array  # above it, the run has diverged
    presence: Presence | None = None  # where nodes come and go


class Kept(NamedTuple):
    """The rows of the first record beyond the bounds, or of the last record if there is none."""

    rows: Array
    ended: Array

    def after(self, carry: Any, error: Array, target: Target) -> "Kept":
        """Return what is kept after one more record."""
        above = target.low < error
        if target.presence is not None:
            above = above | (carry.clock < Presence(*target.presence).settled)
        going = above & (error <= target.high)  # NaN ends a run
        return Kept(jnp.where(self.ended, self.rows, carry.x), self.ended | ~going)


def watch(observe: Callable[..., Any], carry: Any, target: Target | None, kept: Kept | None) -> tuple[Any, Any]:
    """Return the observation of a step and, if there is a target, the rows kept; numbers then are in one array."""
    if target is None or kept is None:
        return observe(carry), None
    *counts, error, consensus = observe(carry, target)
    seen = [number.astype(jnp.float64) for number in (*counts, error, consensus)]
    return jnp.stack(seen), kept.after(carry, error, target)


def make_records(
    make_steps: Callable[[Any], Any],
    watch: Callable[..., tuple[Any, Any]],
    carry: Any,
    target: Target | None,
    slots: int,
    turns: Array,
    together: int,
) -> tuple[Any, Any, Kept | None]:
    """Make `together` records `turns` times; return the last carry, the records of all slots, and what is kept."""

    def turn(number: Array, before: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        carry, kept, seen = before[0], before[2], []
        for _ in range(together):
            carry = make_steps(carry)
            one, kept = watch(carry, target, kept)
            seen.append(one)
        written = partial(jax.lax.dynamic_update_slice_in_dim, start_index=number * together, axis=0)
        return carry, jax.tree.map(lambda buffer, *values: written(buffer, jnp.stack(values)), before[1], *seen), kept

    kept = None if target is None else Kept(jnp.zeros_like(carry.x), jnp.zeros(target.low.shape, dtype=bool))
    shapes, _ = jax.eval_shape(watch, carry, target, kept)
    empty = jax.tree.map(lambda s: jnp.zeros((slots, *s.shape), s.dtype), shapes)
    final: tuple[Any, Any, Any] = jax.lax.fori_loop(0, turns, turn, (carry, empty, kept))
    return final


def distances(rows: Array, solution: Array) -> tuple[Array, Array]:
    """Return error and consensus of rows of shape (..., nodes, dim), each against a solution of shape (..., dim).

    Sums are in float64. The mean is computed from differences to the first row, so identical rows have consensus 0.
    """
    if native.usable():
        both = native.distances(rows, solution)
        return both[..., 0], both[..., 1]
    rows = rows.astype(jnp.float64)
    error, apart = rows - solution[..., None, :], rows - rows[..., :1, :]
    apart -= apart.mean(axis=-2, keepdims=True)
    return (error**2).sum(axis=(-2, -1)), (apart**2).sum(axis=(-2, -1))
