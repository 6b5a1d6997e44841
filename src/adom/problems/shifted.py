"""A problem seen from another point, with a linear term of its own at every node."""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from ..errors import InputError
from ..util.programs import Program
from .base import Array, HessianProduct, Problem
from .checks import EXTREME, as_numbers
from .minimiser import Minimum


class Shifted(Problem):
    r"""Each node holds g_i(u) = f_i(c + u) - t_i'u, for the f_i of another problem.

    Every method starts at 0, so to start at c is to shift the problem to c. A method's first steps also depend on how
    much the gradients of the nodes differ at the start. Tilts t_i that sum to zero leave the solution where it is, and
    those that make the gradients at c equal remove this transient. A tilt that all nodes share moves the solution to
    where the mean gradient of the f_i is that tilt: it turns a penalty r x_j^2 / 2 of the f_i into the proximal term
    r (x_j - c_j)^2 / 2 for t_j = r c_j. The curvature, mu and L stay the same.

    Parameters
    ----------
    inner : Problem
        The f_i.
    centre, tilt : array of shape (dim,), array of shape (nodes, dim)
        c, the same for all nodes, and the t_i.
    solution, solution_error : array of shape (dim,), float
        The minimiser of the sum of the g_i and how exactly it is known, if it is known already.

    Examples
    --------
    >>> from adom.problems.quadratic import Quadratic
    >>> inner = Quadratic([[[1.0]], [[3.0]]], [[1.0], [1.0]])
    >>> Shifted(inner, [2.0], [[0.25], [-0.25]]).solution().round(9).tolist()
    [-1.5]
    """

    array_fields = ("inner", "centre", "tilt")
    static_fields = ()
    inner: Problem
    centre: np.ndarray  # (nodes, dim): rows alike
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
        self.nodes, self.dim = inner.nodes, inner.dim
        self._set_constants(inner.mu_nodes, inner.L_nodes)
        self.inner, self.tilt = inner, tilt
        self.centre = np.broadcast_to(centre, tilt.shape)
        if solution is not None:
            self._remember(Minimum(np.array(solution, dtype=np.float64), float(solution_error)))

    def user_code(self) -> Program:
        """Return the user's own code in the problem that is shifted."""
        return self.inner.user_code()

    def trouble(self) -> BaseException | None:
        """Return the error that the problem that is shifted has met."""
        return self.inner.trouble()

    def weighting(self) -> dict[str, Any] | None:
        """Return the weights of the samples of the problem that is shifted."""
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
        """Return the kernel of the problem itself, at c + u and for z_i + t_i."""
        kernel = self.inner.newton_kernel(dtype)
        if kernel is None:
            return None

        def shifted(z: Array, z_past: Array, due: Array, memory: Sequence[Array], **rules: float) -> Sequence[Array]:
            x, *rest = kernel(z + self.tilt, z_past + self.tilt, due, (memory[0] + self.centre, *memory[1:]), **rules)
            return (x - self.centre, *rest)

        return shifted

    def hessian_product_rows(self, u: Array, v: Array) -> Array:
        """Return the Hessian of f_i at c + u_i times v_i."""
        return self.inner.hessian_product_rows(self.centre + u, v)

    def hessian_rows(self, u: Array) -> Array:
        """Return the Hessians of the f_i at c + u_i."""
        return self.inner.hessian_rows(self.centre + u)

    def own_hessians(self, u: np.ndarray) -> np.ndarray:
        """Return the same on the host."""
        return self.inner.own_hessians(np.asarray(self.centre) + u)

    def mean_gradient(self, u: np.ndarray) -> np.ndarray:
        """Return the mean of the grad g_i(u)."""
        return np.asarray(self.inner.mean_gradient(self.centre[0] + u) - self.tilt.mean(axis=0))

    def mean_hessian(self, u: np.ndarray) -> np.ndarray:
        """Return the mean of the Hessians of the f_i at c + u."""
        return self.inner.mean_hessian(self.centre[0] + u)

    def mean_hessian_product(self, u: np.ndarray) -> HessianProduct:
        """Return v -> H v for the mean H of the Hessians of the f_i at c + u, and its diagonal where it is cheap."""
        return self.inner.mean_hessian_product(self.centre[0] + u)

    def on_device(self) -> Self:
        """Return it with the arrays of the problem itself where its means are computed."""
        other = copy(self)
        other.inner = self.inner.on_device()
        return other

    def holds_hessian(self) -> bool:
        """Return whether the problem itself holds its mean Hessian."""
        return self.inner.holds_hessian()

    def rounding(self, rng: np.random.Generator) -> np.ndarray | float:
        """Draw rounding as the problem itself does."""
        return self.inner.rounding(rng)

    @property
    def closed_form(self) -> bool:
        """Whether the problem itself has a formula for grad F*."""
        return self.inner.closed_form

    def exact_dual_gradient_rows(self, z: Array, u: Array) -> tuple[Array, Array]:
        """Solve grad g_i(u_i) = z_i as the problem itself solves grad f_i(x_i) = z_i + t_i."""
        x, spent = self.inner.exact_dual_gradient_rows(z + self.tilt, self.centre + u)
        return x - self.centre, spent
