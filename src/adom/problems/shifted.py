"""A problem with a shifted origin and an additional linear term at every node."""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from ..errors import InputError
from ..util.programs import Program
from .base import Array, HessianProduct, Problem
from .limits import EXTREME, as_numbers
from .minimiser import Minimum


class Shifted(Problem):
    r"""Each node holds g_i(u) = f_i(c + u) - t_i'u, for the f_i of another problem.

    Every method starts at 0, so shifting the problem to c makes it start at c. A method's first steps also depend on
    how much the nodes' gradients differ at the start. Tilts t_i that make the gradients at c equal remove this
    transient, and if they sum to zero, the solution does not move. A tilt shared by all nodes moves the solution to the
    point where the mean gradient of the f_i equals the tilt. With t_j = r c_j it turns a penalty r x_j^2 / 2 of the f_i
    into the proximal term r (x_j - c_j)^2 / 2. The curvature, mu and L stay the same.

    Parameters
    ----------
    inner : Problem
        The f_i.
    centre, tilt : array of shape (dim,), array of shape (nodes, dim)
        c, the same for all nodes, and the t_i.
    solution, solution_error : array of shape (dim,), float
        The minimiser of the sum of the g_i and an estimate of its error, if already known.

    Examples
    --------
    >>> from adom.problems.quadratic import Quadratic
    >>> inner = Quadratic([[[1.0]], [[3.0]]], [[1.0], [1.0]])
    >>> Shifted(inner, [2.0], [[0.25], [-0.25]]).solution().round(9).tolist()
    [-1.5]
    """

    array_fields = ("inner", "centre", "tilt")
    static_fields = ("composite",)
    inner: Problem
    centre: np.ndarray  # (nodes, dim), all rows equal
    tilt: np.ndarray

    def __init__(
        self, inner: Problem, centre: Any, tilt: Any, solution: Any = None, solution_error: float = 0.0
    ) -> None:
        centre, tilt = as_numbers("centre", centre, EXTREME).copy(), as_numbers("tilt", tilt, EXTREME).copy()
        if centre.shape != (inner.dim,) or tilt.shape != (inner.nodes, inner.dim):
            raise InputError(
                f"centre and tilt must have shapes ({inner.dim},) and ({inner.nodes}, {inner.dim}) to match the "
                f"problem, got {centre.shape} and {tilt.shape}"
            )
        self.nodes, self.dim, self.composite = inner.nodes, inner.dim, inner.composite
        self.mu, self.L, self.mu_nodes, self.L_nodes = inner.mu, inner.L, inner.mu_nodes, inner.L_nodes
        self.inner, self.tilt = inner, tilt
        self.centre = np.broadcast_to(centre, tilt.shape)
        if solution is not None:
            self._remember(Minimum(np.array(solution, dtype=np.float64), float(solution_error)))

    @property
    def kappa(self) -> float:
        """The inner problem's condition number."""
        return self.inner.kappa

    @property
    def constants_claimed(self) -> bool:
        """Whether the inner problem's mu and L are the user's word."""
        return self.inner.constants_claimed

    def user_code(self) -> Program:
        """Return the user's code in the inner problem."""
        return self.inner.user_code()

    def trouble(self) -> BaseException | None:
        """Return the error that the inner problem met while reading samples, if any."""
        return self.inner.trouble()

    def weighting(self) -> dict[str, Any] | None:
        """Return how the inner problem weights its samples."""
        return self.inner.weighting()

    def _facts(self) -> dict[str, Any]:
        return {**self.inner._facts(), "of": type(self.inner).__name__}

    def value_rows(self, u: Array) -> Array:
        """Return g_i(u_i)."""
        return self.inner.value_rows(self.centre + u) - (self.tilt * u).sum(axis=-1)

    def gradient_rows(self, u: Array) -> Array:
        """Return grad g_i(u_i)."""
        return self.inner.gradient_rows(self.centre + u) - self.tilt

    def newton_kernel(self, dtype: Any) -> Callable[..., Sequence[Array]] | None:
        """Return the inner problem's kernel, evaluated at c + u for z_i + t_i."""
        kernel = self.inner.newton_kernel(dtype)
        if kernel is None:
            return None

        def shifted(z: Array, z_past: Array, memory: Sequence[Array], **rules: float) -> Sequence[Array]:
            x, *rest = kernel(z + self.tilt, z_past + self.tilt, (memory[0] + self.centre, *memory[1:]), **rules)
            return (x - self.centre, *rest)

        return shifted

    def hessian_product_rows(self, u: Array, v: Array) -> Array:
        """Return the Hessian of f_i at c + u_i times v_i."""
        return self.inner.hessian_product_rows(self.centre + u, v)

    def hessian_rows(self, u: Array) -> Array:
        """Return the Hessians of the f_i at c + u_i."""
        return self.inner.hessian_rows(self.centre + u)

    def model_minimum_rows(self, H: Array, b: Array, start: Array) -> Array:
        """Return the minimisers of the models of u plus the inner problem's penalty at c + u."""
        moved = b + (H @ self.centre[..., None])[..., 0]
        return self.inner.model_minimum_rows(H, moved, self.centre + start) - self.centre

    def hessians_at(self, u: np.ndarray) -> np.ndarray:
        """Return the Hessians of the f_i at c + u_i, on the host."""
        return self.inner.hessians_at(np.asarray(self.centre) + u)

    def mean_gradient(self, u: np.ndarray) -> np.ndarray:
        """Return the mean of the grad g_i(u)."""
        return np.asarray(self.inner.mean_gradient(self.centre[0] + u) - self.tilt.mean(axis=0))

    def mean_hessian(self, u: np.ndarray) -> np.ndarray:
        """Return the mean of the Hessians of the f_i at c + u."""
        return self.inner.mean_hessian(self.centre[0] + u)

    def mean_hessian_product(self, u: np.ndarray) -> HessianProduct:
        """Return v -> H v for the mean H of the Hessians of the f_i at c + u, and the diagonal of H if it is cheap."""
        return self.inner.mean_hessian_product(self.centre[0] + u)

    def on_device(self) -> Self:
        """Return a copy whose inner problem has its arrays on the device."""
        other = copy(self)
        other.inner = self.inner.on_device()
        return other

    def holds_hessian(self) -> bool:
        """Return whether the inner problem's mean Hessian is small enough to hold in memory."""
        return self.inner.holds_hessian()

    def rounding(self, rng: np.random.Generator) -> np.ndarray | float:
        """Return a random rounding error as the inner problem does."""
        return self.inner.rounding(rng)

    @property
    def closed_form(self) -> bool:
        """Whether the inner problem has a formula for grad F*."""
        return self.inner.closed_form

    def exact_dual_gradient_rows(self, z: Array, u: Array) -> tuple[Array, Array]:
        """Solve grad g_i(u_i) = z_i as the inner problem solves grad f_i(x_i) = z_i + t_i."""
        x, spent = self.inner.exact_dual_gradient_rows(z + self.tilt, self.centre + u)
        return x - self.centre, spent
