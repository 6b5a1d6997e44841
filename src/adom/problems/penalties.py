"""Penalties that are not smooth: the minimiser of a quadratic model plus an l1 norm, row by row, in JAX."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Array = Any
SWEEPS = 2
"""Sweeps of coordinate descent between two solves on the coordinates that are not 0."""
MOST = 10
"""The most such solves, for each coordinate."""
ROUNDING = 64.0
"""How near to optimal, in roundings of its terms, counts as optimal."""


class _Search(NamedTuple):
    """State of the search, row by row."""

    x: Array
    count: Array
    whole: Array  # (rows,): whether the last step to a solution was not cut short
    done: Array  # (rows,)


def sparse_minimum(H: Array, b: Array, l1: Array, start: Array) -> Array:
    """Return the x that minimise x'Hx / 2 - b'x + sum of l1_j |x_j|, one for each row.

    Coordinate descent finds which coordinates are 0, and the signs of the others. The equations of the others are then
    solved at once, however ill conditioned they are; the step to their solution ends where a coordinate changes its
    sign, which becomes 0. Every part of it makes the sum smaller.

    Parameters
    ----------
    H : array of shape (rows, dim, dim)
        Positive definite.
    b, start : array of shape (rows, dim)
    l1 : array of shape (dim,)
        0 where a coordinate is free.

    Examples
    --------
    >>> H, b = jnp.array([[[2.0, 0.0], [0.0, 4.0]]]), jnp.array([[3.0, 0.5]])
    >>> sparse_minimum(H, b, jnp.array([1.0, 1.0]), jnp.zeros((1, 2))).tolist()
    [[1.0, 0.0]]
    """
    H, b, l1 = jnp.asarray(H), jnp.asarray(b), jnp.asarray(l1)
    diagonal = jnp.diagonal(H, axis1=1, axis2=2)
    one = jnp.eye(H.shape[-1], dtype=H.dtype)
    limits: Any = np.finfo(H.dtype)

    def residual(x: Array) -> Array:
        """Return how far x is from optimal, in units of rounding."""
        slope = b - _times(H, x)
        off = jnp.where(x == 0, jnp.maximum(abs(slope) - l1, 0), abs(slope - l1 * jnp.sign(x)))
        size = abs(b) + (abs(H) * abs(x)[:, None, :]).sum(axis=2) + l1
        return (off / (limits.eps * size + limits.tiny)).max(axis=1)

    def coordinate(j: Array, x: Array) -> Array:
        rest = b[:, j] - (H[:, j] * x).sum(axis=1) + diagonal[:, j] * x[:, j]
        return x.at[:, j].set(jnp.sign(rest) * jnp.maximum(abs(rest) - l1[j], 0) / diagonal[:, j])

    def sweep(_: Array, x: Array) -> Array:
        return jax.lax.fori_loop(0, H.shape[-1], coordinate, x)

    def body(search: _Search) -> _Search:
        swept = jax.lax.fori_loop(0, SWEEPS, sweep, search.x)
        x = jnp.where(search.whole[:, None], swept, search.x)  # only at a solution do others come in
        active = x != 0
        both = active[:, :, None] & active[:, None, :]
        right = jnp.where(active, b - l1 * jnp.sign(x), 0)
        exact = jnp.linalg.solve(jnp.where(both, H, one), right[..., None])[..., 0]
        exact = jnp.where(jnp.isfinite(exact).all(axis=1, keepdims=True), exact, x)
        turns = active & (jnp.sign(exact) != jnp.sign(x))
        share = jnp.where(turns, x / jnp.where(turns, x - exact, 1), jnp.inf)
        first = share.min(axis=1, keepdims=True)
        x = jnp.where(first < 1, jnp.where(share == first, 0, x + first * (exact - x)), exact)
        x = jnp.where(search.done[:, None], search.x, x)
        return _Search(x, search.count + 1, first[:, 0] >= 1, search.done | (residual(x) <= ROUNDING * H.shape[-1]))

    def going(search: _Search) -> Array:
        return (search.count < MOST * H.shape[-1]) & ~search.done.all()

    begin = _Search(jnp.asarray(start), jnp.zeros((), jnp.int32), jnp.ones(len(b), bool), jnp.zeros(len(b), bool))
    return jax.lax.while_loop(going, body, begin).x


def _times(H: Array, v: Array) -> Array:
    return (H @ v[..., None])[..., 0]


_compiled = jax.jit(sparse_minimum)


def sparse_minimum_of_one(H: np.ndarray, b: np.ndarray, l1: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the minimiser of one model, on the host in float64."""
    with jax.enable_x64(True):
        return np.asarray(_compiled(H[None], b[None], l1, start[None])[0])
