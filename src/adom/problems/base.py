"""What every problem shares: n local functions f_i, vectorised over nodes, and their constants.

A problem is a pytree: its arrays are leaves, so an engine can move it to a device, cast it, or hand it to a
compiled loop without baking the data into the program. The ``*_rows`` functions are JAX-traceable, act on
arrays of shape (nodes, dim), and keep rows apart: row i depends on row i alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..html import card
from ..programs import Program, program
from .newton import newton
from .weighting import told, weighting

Array = Any  # a NumPy or JAX array; inside a compiled loop, a tracer


class Problem(ABC):
    """Minimise the sum over nodes of smooth, strongly convex f_i.

    Attributes
    ----------
    nodes, dim : int
        Number of nodes and length of x.
    mu, L : float
        Strong convexity and smoothness that hold for every f_i.
    mu_nodes, L_nodes : array of shape (nodes,)
        The same, node by node.
    """

    array_fields: ClassVar[tuple[str, ...]]
    static_fields: ClassVar[tuple[str, ...]]
    _common_arrays: ClassVar[tuple[str, ...]] = ("mu", "L", "mu_nodes", "L_nodes")
    _common_static: ClassVar[tuple[str, ...]] = ("nodes", "dim")

    nodes: int
    dim: int
    mu: float
    L: float
    mu_nodes: np.ndarray
    L_nodes: np.ndarray
    _program: Program | None = None  # of a copy that JAX was handed: what it computes is settled
    _solved: Program  # what `own_code` was when the solution was found

    def __init_subclass__(cls) -> None:
        """Register the class as a pytree whose leaves are its arrays."""
        jax.tree_util.register_pytree_node(cls, cls._flatten, cls._unflatten)

    def _flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        arrays = tuple(getattr(self, name) for name in self._common_arrays + self.array_fields)
        static = tuple(getattr(self, name) for name in self._common_static + self.static_fields)
        return arrays, (*static, self.own_code())

    @classmethod
    def _unflatten(cls, static: tuple[Any, ...], arrays: Any) -> Self:
        self = object.__new__(cls)  # the arrays may be tracers: nothing is validated or computed here
        for name, value in zip((*cls._common_static, *cls.static_fields, "_program"), static, strict=True):
            setattr(self, name, value)
        for name, value in zip(cls._common_arrays + cls.array_fields, arrays, strict=True):
            setattr(self, name, value)
        return self

    def own_code(self) -> Program:
        """Return what code that is not this package's computes in it now; an empty program where there is none.

        JAX remembers programs, and a sweep keeps results; this tells them apart where a value that the code reads has
        changed.
        """
        if self._program is not None or type(self).__module__.partition(".")[0] == "adom":
            return self._program or Program()
        settled = [getattr(self, name) for name in (*self._common_static, *self.static_fields)]

        def rows(arrays: Any, x: Array, v: Array) -> Any:
            one = self._unflatten((*settled, Program()), arrays)
            return one.value_rows(x), one.gradient_rows(x), one.hessian_rows(x), one.exact_dual_gradient_rows(v, x)

        arrays = tuple(getattr(self, name) for name in self._common_arrays + self.array_fields)
        at = jax.ShapeDtypeStruct((self.nodes, self.dim), np.float64)
        return program(rows, arrays, at, at)

    def _set_constants(self, mu_nodes: np.ndarray, L_nodes: np.ndarray) -> None:
        self.mu_nodes, self.L_nodes = mu_nodes, L_nodes
        self.mu, self.L = float(mu_nodes.min()), float(L_nodes.max())

    def block(self, first: int, end: int) -> Self:
        """Return the problem of the nodes from `first` up to `end` alone, with the mu and L of all of them.

        Every array of a problem has a leading axis of nodes; what has not knows how to take a block of itself.
        """

        def part(value: Any) -> Any:
            if hasattr(value, "block"):
                return value.block(first, end)
            return jax.tree.map(lambda leaf: leaf[first:end] if np.ndim(leaf) else leaf, value)

        arrays, static = self._flatten()
        found = type(self)._unflatten(static, [part(value) for value in arrays])
        found.nodes = end - first
        return found

    @property
    def kappa(self) -> float:
        """The condition number L / mu."""
        return self.L / self.mu

    @abstractmethod
    def value_rows(self, x: Array) -> Array:
        """Return f_i(x_i) for every row, shape (nodes,)."""

    @abstractmethod
    def gradient_rows(self, x: Array) -> Array:
        """Return grad f_i(x_i) for every row."""

    @abstractmethod
    def hessian_product_rows(self, x: Array, v: Array) -> Array:
        """Return the Hessian of f_i at x_i times v_i for every row."""

    def hessian_rows(self, x: Array) -> Array:
        """Return the Hessian of f_i at x_i for every row, shape (nodes, dim, dim)."""
        return jax.vmap(lambda e: self.hessian_product_rows(x, jnp.broadcast_to(e, x.shape)), out_axes=-1)(
            jnp.eye(self.dim, dtype=x.dtype)
        )

    def mean_hessian(self, x: Array) -> Array:
        """Return the mean over nodes of the Hessians of f_i at one common x, shape (dim, dim)."""
        return self.hessian_rows(jnp.broadcast_to(x, (self.nodes, self.dim))).mean(axis=0)

    def exact_dual_gradient_rows(self, z: Array, x: Array) -> tuple[Array, Array]:
        """Solve grad f_i(x_i) = z_i for every row by Newton's method started at x, to machine precision.

        Returns the solution and the number of gradients that each row took (a Newton direction counts as
        one more).
        """
        return newton(
            lambda y: self.gradient_rows(y) - z,
            self.hessian_product_rows,
            self.hessian_rows if self.dim <= 256 else None,
            x,
            scale=jnp.linalg.norm(z, axis=-1) + jnp.linalg.norm(self.gradient_rows(x * 0), axis=-1),
            stiffness=self.L,
        )

    def objective(self, x: Array) -> float:
        """Return the sum of the f_i, at one common x of shape (dim,) or at one row per node."""
        with jax.enable_x64(True):
            rows = jnp.broadcast_to(jnp.asarray(x, dtype=float), (self.nodes, self.dim))
            return float(self.value_rows(rows).sum())

    def solution(self) -> np.ndarray:
        """Return x*, the minimiser of the sum of the f_i, to machine precision; computed once."""
        code = self.own_code()
        if getattr(self, "_solution", None) is None or self._solved != code:
            with jax.enable_x64(True):
                self._solution, self._solved = np.asarray(self._solve()), code
            self._solution.setflags(write=False)
        return self._solution

    def _solve(self) -> Array:
        return _minimise_mean(jax.device_put(self))

    def weighting(self) -> dict[str, Any] | None:
        """Return how many samples the nodes have and what counts alike; None for a problem that is not of samples."""
        features = getattr(self, "features", None)
        return None if features is None else weighting(*features.weighed())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(nodes={self.nodes}, dim={self.dim}, kappa={self.kappa:.4g})"

    def _facts(self) -> dict[str, Any]:
        """Return what there is to know at a glance, for a notebook; nothing is computed for it."""
        known = {"nodes": self.nodes, "dim": self.dim, "mu": self.mu, "L": self.L, "kappa": self.kappa}
        return known | ({"weights": words} if (words := told(self.weighting())) else {})

    def _repr_html_(self) -> str:
        return card(type(self).__name__, "minimise the sum of f_i over the nodes", self._facts())


def solutions(problems: Sequence[Problem]) -> list[np.ndarray]:
    """Return the solution of each; a problem that occurs often is asked once."""
    found = {id(problem): problem.solution() for problem in {id(problem): problem for problem in problems}.values()}
    return [found[id(problem)] for problem in problems]


@jax.jit
def _minimise_mean(problem: Problem) -> Array:
    """Newton's method on the mean of the f_i, as a problem of one row."""

    def spread(x: Array) -> Array:
        return jnp.broadcast_to(x, (problem.nodes, problem.dim))

    def mean(rows: Array) -> Array:
        return rows.mean(axis=0, keepdims=True)

    start = jnp.zeros((1, problem.dim))
    x, _ = newton(
        lambda x: mean(problem.gradient_rows(spread(x))),
        lambda x, v: mean(problem.hessian_product_rows(spread(x), spread(v))),
        (lambda x: problem.mean_hessian(x[0])[None]) if problem.dim <= 256 else None,
        start,
        scale=jnp.linalg.norm(problem.gradient_rows(spread(start)), axis=-1).mean(keepdims=True),
        stiffness=problem.L,
    )
    return x[0]


def check_finite(name: str, values: np.ndarray) -> None:
    """Refuse NaN and infinity, naming the first place."""
    bad = ~np.isfinite(values)
    if bad.any():
        place = ", ".join(str(int(i)) for i in np.argwhere(bad)[0])
        raise InputError(
            f"{name}[{place}] is {values[tuple(np.argwhere(bad)[0])]}; all values must be finite: "
            "drop that sample or fill the value in"
        )
