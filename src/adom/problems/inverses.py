"""Inverse Hessians that nodes learn from steps, kept from round to round: the BFGS update, one row per node.

A pair (s, y) of a step s and the change y = H s of the gradient along it teaches a node what H does to s. No Hessian
is ever computed. A node keeps a whole matrix, or, where the matrices of all nodes would take too much memory, its
latest pairs, from which the product with the matrix is computed (L-BFGS). The pairs are scaled to s'y = 1, and places
not filled yet are zero, which changes nothing.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Array = Any
HELD = 2**26
"""The most entries of all nodes' Hessians, or of what nodes keep in place of them, in memory at once: half a GiB."""
FEWEST, MOST = 8, 16
"""Pairs that a node keeps at least and at most. With more, applying them costs more time than they save."""
CURVED = 1e-10
"""The least cosine between s and y for which a pair is learned; below it, y is rounding."""


class Inverse(NamedTuple):
    """What the nodes know of their inverse Hessians."""

    kept: Array  # (rows, dim, dim): matrices; or (rows, pairs, 2, dim): pairs, the latest one at (learned - 1) % pairs
    learned: Array  # (rows,): pairs learned so far

    @property
    def whole(self) -> bool:
        """Whether matrices are kept."""
        return bool(self.kept.ndim == 3)


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
    wanted = wanted & (curvature > CURVED * jnp.linalg.norm(s, axis=-1) * jnp.linalg.norm(y, axis=-1))
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
