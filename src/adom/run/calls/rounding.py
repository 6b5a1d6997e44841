r"""Bounds on what rounding adds to the sides of Theorem 1 and its lemmas, from the numbers in a round.

Late in a run both sides of an inequality are rounding errors, and nothing is left to check. So every round has a
`noise`: the most that rounding can have added to the square root of a left side. u is a few units in the last place.

========= ==================================================================================================
sums      d = u (|m^k| + |m^{k+1}| + eta |g|), the rounding of m^{k+1}
gradient  e = u (|z_g^k| + |grad F(0)| + L |g|); so g and x* are only known to e / mu
Lemma 1   d; likewise Lemma 3
Lemma 2   4 e / sqrt(theta lambda_min_plus)
Lemma 4   a + b + c of the present round:
          a = 5 (d + u |z^k|), from the sums;
          b = 5 e (eta / mu + q), from gradients, q^2 = max(L, eta (1 - eta alpha) / tau) / mu, since the root of
          F* - F*(z*) has slope (2 mu)^(-1/2);
          c = 2 q times the size of the means of z and z_f: once their rows no longer sum to zero, z* has moved. c is
          at most what d, u |z^k| and e of all earlier rounds can explain
Theorem 1 2 e / mu, and 1 / mu times A + B + c, which keep errors of earlier rounds: A^{k+1} = sqrt(rho) A^k + a, as
          sums may always be rounded the same way, and (B^{k+1})^2 = rho (B^k)^2 + b^2, as gradients are not
========= ==================================================================================================
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ...algorithms.adom import ADOM, State
from ...problems.base import Problem

Array = Any
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
    """Return the noise of the five left sides in a round, and the drift after it."""
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
