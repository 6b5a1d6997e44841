"""Whether a function keeps what mu and L claim of it, at and near one point.

mu and L must hold everywhere, so this can only find mistakes. It looks at the curvature at a point, and at how fast the
gradient changes next to it, where a kink shows that the Hessian does not know of.
"""

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    from .base import Problem

WHOLE = 2**20
"""The most entries of all nodes' Hessians whose eigenvalues are computed; above, power iterations bound them."""
WIDEST = 256
"""The most coordinates, likewise."""
POWERS, ABOVE = 30, 1.1
"""How many, and the shift in units of L with which they look for the smallest curvature."""
ASIDE = 2.0**-20
"""The distance to the second gradient, relative to the scale of x."""
CLOSE, ROUNDED = 1e-9, 1e-12
"""Relative slack of a bound, and that of both bounds in units of L, for rounding."""
HALVINGS = 40


def contradiction(problem: "Problem", x: np.ndarray, where: str) -> str:
    """Return how some f_i contradicts its mu or L at x, which is `where`; "" if none does."""
    problem, rows = problem.as_it_is(), np.broadcast_to(x, (problem.nodes, problem.dim))
    v = np.random.default_rng(0).standard_normal(rows.shape)
    v /= np.linalg.norm(v, axis=-1, keepdims=True)
    whole = problem.nodes * problem.dim**2 <= WHOLE and problem.dim <= WIDEST
    with jax.enable_x64(True):
        g = problem.gradients_at(rows)
        far = ASIDE * (1 + np.linalg.norm(rows, axis=-1) + np.linalg.norm(g, axis=-1) / problem.L_nodes)
        aside = problem.gradients_at(rows + far[:, None] * v)
        bend = problem.hessians_at(rows) if whole else np.asarray(_powers(problem, rows, v))
    change = np.linalg.norm(aside - g, axis=-1) / far
    mu, L = np.asarray(problem.mu_nodes), np.asarray(problem.L_nodes)
    finite = np.isfinite(bend).reshape(problem.nodes, -1).all(axis=1)
    if not finite.all():
        i = int(np.argmin(finite))
        return f"f_{i} has curvature nan {where}; take a loss that has two derivatives everywhere"
    low, high = (np.linalg.eigvalsh(bend)[:, [0, -1]] if whole else bend).T
    slack = ROUNDED * np.maximum(L, np.abs(high))
    below, above = mu * (1 - CLOSE) - slack - low, high - L * (1 + CLOSE) - slack
    i = int(np.argmax(np.maximum(below / mu, above / L)))
    bounds = f"outside [mu, L] = [{mu[i]:.6g}, {L[i]:.6g}]"
    if max(below[i], above[i]) > 0:
        value, remedy = (low[i], "lower mu") if below[i] / mu[i] >= above[i] / L[i] else (high[i], "raise L")
        if value <= 0:
            remedy = "it is not strongly convex: regularise it, or take another loss"
        return f"f_{i} has curvature {value:.6g} {where}, {bounds}; {remedy}"
    if (change > 2 * L).any():
        i = int(np.argmax(change / L))
        return _jump(f"the gradient of f_{i}", change[i], L[i], where)
    return ""


def contradiction_around(problem: "Problem", x: np.ndarray, where: str) -> str:
    """Return how the mean of the f_i contradicts mu or L on the way down from x; "" if it does not."""
    mu, L = float(np.mean(problem.mu_nodes)), float(np.mean(problem.L_nodes))
    g = problem.mean_gradient(x)
    size = float(np.linalg.norm(g))
    noise = ROUNDED * L * (1 + float(np.linalg.norm(x)))
    lengths = [size / mu * 2.0**-k for k in range(HALVINGS)] if size > noise else []
    for length in (length for length in lengths if L * length > 1e3 * noise):
        change = problem.mean_gradient(x - length / size * g) - g
        fast = float(np.linalg.norm(change)) / length
        bend = float(-change @ g) / (size * length)
        if fast > 2 * L:
            return _jump("the mean gradient", fast, L, where)
        if bend < mu / 2:
            return f"the mean of the f_i has curvature {bend:.6g} {where}, below mu = {mu:.6g}; lower mu, or regularise"
    return ""


def _jump(what: str, change: float, L: float, where: str) -> str:
    return (
        f"{what} changes {change:.3g} times as much as x {where}, more than L = {L:.6g}: it is not smooth there, as "
        "with a term |x|, or L is too small; smooth the loss, or raise L"
    )


@jax.jit
def _powers(problem: "Problem", x: Any, v: Any) -> Any:
    """Return bounds of the smallest and the largest curvature of each f_i, by power iterations from v."""
    L = jnp.asarray(problem.L_nodes)[:, None]

    def product(u: Any) -> Any:
        return problem.hessian_product_rows(x, u)

    def quotient(power: Any) -> Any:
        u = jax.lax.fori_loop(0, POWERS, lambda _, u: _unit(power(u)), v)
        return (u * product(u)).sum(axis=-1)

    return jnp.stack([quotient(lambda u: ABOVE * L * u - product(u)), quotient(product)], axis=-1)


def _unit(rows: Any) -> Any:
    return rows / jnp.maximum(jnp.linalg.norm(rows, axis=-1, keepdims=True), 1e-300)
