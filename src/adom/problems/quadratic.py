"""Quadratics with closed-form conjugates, for testing the theory of methods."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from .base import Array, Problem
from .limits import EXTREME, as_numbers


class Quadratic(Problem):
    r"""Each node holds f_i(x) = x'H_i x / 2 - c_i'x with a symmetric positive definite H_i.

    Then grad f_i(x) = H_i x - c_i and grad f_i*(z) = H_i^{-1} (z + c_i); mu_i and L_i are the extreme
    eigenvalues of H_i.

    Parameters
    ----------
    H : array of shape (nodes, dim, dim)
    c : array of shape (nodes, dim)

    Examples
    --------
    >>> problem = Quadratic([[[1.0]], [[3.0]]], [[1.0], [1.0]])
    >>> problem.mu, problem.L, problem.solution().tolist()
    (1.0, 3.0, [0.5])
    """

    array_fields = ("H", "c", "H_inverse")
    static_fields = ()
    on_host = True

    def __init__(self, H: Any, c: Any) -> None:
        H, c = as_numbers("H", H, EXTREME).copy(), as_numbers("c", c, EXTREME).copy()  # the caller keeps the originals
        if H.ndim != 3 or H.shape[1] != H.shape[2] or H.size == 0:
            raise InputError(f"H must have shape (nodes, dim, dim), got {H.shape}; stack one matrix a node")
        if c.shape != H.shape[:2]:
            raise InputError(f"c must have shape (nodes, dim) = {H.shape[:2]} to match H, got {c.shape}")
        gap = np.abs(H - H.transpose(0, 2, 1)).max(axis=(1, 2))
        size = np.abs(H).max(axis=(1, 2))
        if (gap > 1e-12 * size).any():
            i = int(np.argmax(gap - 1e-12 * size))
            raise InputError(f"H[{i}] is not symmetric: it differs from its transpose by {gap[i]:.3g}")
        eigenvalues, vectors = np.linalg.eigh((H + H.transpose(0, 2, 1)) / 2)
        if (eigenvalues[:, 0] <= 0).any():
            i = int(np.argmin(eigenvalues[:, 0]))
            raise InputError(
                f"H[{i}] is not positive definite: its smallest eigenvalue is {eigenvalues[i, 0]:.3g}; "
                "every f_i must be strongly convex: add a multiple of the identity"
            )
        self.nodes, self.dim = c.shape
        self._set_constants(eigenvalues[:, 0], eigenvalues[:, -1])
        self.H, self.c = H, c
        self.H_inverse = (vectors / eigenvalues[:, None, :]) @ vectors.transpose(0, 2, 1)

    def value_rows(self, x: Array) -> Array:
        """Return f_i(x_i)."""
        return ((_times(self.H, x) / 2 - self.c) * x).sum(axis=-1)

    def gradient_rows(self, x: Array) -> Array:
        """Return H_i x_i - c_i."""
        return _times(self.H, x) - self.c

    def hessian_product_rows(self, x: Array, v: Array) -> Array:
        """Return H_i v_i."""
        return _times(self.H, v)

    def hessian_rows(self, x: Array) -> Array:
        """Return the H_i."""
        return jnp.asarray(self.H)

    def hessians_at(self, x: np.ndarray) -> np.ndarray:
        """Return the H_i on the host."""
        return np.asarray(self.H, dtype=np.float64)

    @property
    def constants_claimed(self) -> bool:
        """False: mu and L are computed."""
        return False

    @property
    def closed_form(self) -> bool:
        """True: grad F* has a formula."""
        return True

    def exact_dual_gradient_rows(self, z: Array, x: Array) -> tuple[Array, Array]:
        """Return H_i^{-1} (z_i + c_i), with one step of iterative refinement; it counts as one gradient."""
        y = _times(self.H_inverse, z + self.c)
        y = y + _times(self.H_inverse, z + self.c - _times(self.H, y))
        return y, jnp.ones(z.shape[0], dtype=jnp.int32)

    def mean_gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the mean of the H_i x - c_i."""
        gradient: np.ndarray = (np.asarray(self.H) @ x - self.c).mean(axis=0)
        return gradient

    def mean_hessian(self, x: np.ndarray) -> np.ndarray:
        """Return the mean of the H_i."""
        hessian: np.ndarray = np.asarray(self.H).mean(axis=0)
        return hessian

    def holds_hessian(self) -> bool:
        """Return True: the H_i are in memory anyway."""
        return True


def _times(matrices: Array, x: Array) -> Array:
    return jnp.einsum("nde,ne->nd", matrices, x)
