"""Base class of all problems: n local functions f_i, vectorised over nodes, and their constants.

A problem is a pytree whose leaves are its arrays, so it can be moved to a device, cast, or passed to a compiled loop
without baking the data into the program. The ``*_rows`` functions are JAX-traceable and act on arrays of shape
(nodes, dim); row i of the result depends on row i alone.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..util.cards import card
from ..util.programs import Program, double_precision, kept_programs, program
from .contradictions import contradiction, contradiction_around
from .limits import EXTREME
from .minimiser import DENSE, Minimum, minimum
from .oracles import HELD, held, newton
from .samples import weighting_text

Array = Any  # a NumPy or JAX array; inside a compiled loop, a tracer
HessianProduct = tuple[Callable[[np.ndarray], np.ndarray], np.ndarray | None]  # v -> H v; the diagonal of H if cheap
INEXACT = 1e-8
"""The relative error of x* above which a warning is given."""
ROUGH = 1e-12
"""The relative error of x* below which it counts as exact to float64."""


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
    on_host: ClassVar[bool] = False
    """Whether the means over nodes are computed by NumPy instead of JAX."""

    nodes: int
    dim: int
    mu: float
    L: float
    mu_nodes: np.ndarray
    L_nodes: np.ndarray
    composite: bool = False
    """Whether there is a penalty that is not smooth, besides the f_i."""
    _program: Program | None = None  # set in copies whose user code is frozen, such as those made by JAX
    _solution: tuple[Minimum, Program] | None = None  # with the `user_code` that it belongs to
    _origin: "Problem | None" = None  # the problem of which `as_it_is` made this copy

    def __init_subclass__(cls) -> None:
        """Register the class as a pytree whose leaves are its arrays."""
        jax.tree_util.register_pytree_node(cls, cls._flatten, cls._unflatten)

    def _flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        arrays = tuple(getattr(self, name) for name in self._common_arrays + self.array_fields)
        static = tuple(getattr(self, name) for name in self._common_static + self.static_fields)
        return arrays, (*static, self.user_code())

    @classmethod
    def _unflatten(cls, static: tuple[Any, ...], arrays: Any) -> Self:
        self = object.__new__(cls)  # the arrays may be tracers: nothing is validated or computed here
        for name, value in zip((*cls._common_static, *cls.static_fields, "_program"), static, strict=True):
            setattr(self, name, value)
        for name, value in zip(cls._common_arrays + cls.array_fields, arrays, strict=True):
            setattr(self, name, value)
        return self

    def user_code(self) -> Program:
        """Return the current program of the user's code in this problem; an empty one if there is none.

        JAX caches programs and sweeps cache results; the program shows whether a value that the code reads has changed.
        """
        if self._program is not None or type(self).__module__.partition(".")[0] == "adom":
            return self._program or Program()
        static = [getattr(self, name) for name in (*self._common_static, *self.static_fields)]

        def rows(arrays: Any, x: Array, v: Array) -> Any:
            copy = self._unflatten((*static, Program()), arrays)
            return copy.value_rows(x), copy.gradient_rows(x), copy.hessian_rows(x), copy.exact_dual_gradient_rows(v, x)

        arrays = tuple(getattr(self, name) for name in self._common_arrays + self.array_fields)
        at = jax.ShapeDtypeStruct((self.nodes, self.dim), np.float64)
        return program(rows, arrays, at, at)

    def _set_constants(self, mu_nodes: np.ndarray, L_nodes: np.ndarray, *, bounded: bool = True) -> None:
        """Set mu and L; unless `bounded`, mu may be 0 and L infinite."""
        for name, values in (("mu", mu_nodes), ("L", L_nodes)):
            odd = ~((values >= 1 / EXTREME) & (values <= EXTREME))
            if odd.any() and bounded:
                node = int(np.argmax(odd))
                raise InputError(
                    f"{name} of node {node} is {values[node]:.3g}; it must lie between {1 / EXTREME:g} and "
                    f"{EXTREME:g}, or products of it overflow: scale the data, or regularise by a number of their size"
                )
        self.mu_nodes, self.L_nodes = mu_nodes, L_nodes
        self.mu, self.L = float(mu_nodes.min()), float(L_nodes.max())

    def block(self, first: int, end: int) -> Self:
        """Return the problem of nodes first, ..., end - 1 alone, with the mu and L of all nodes.

        Every array of a problem must have a leading axis of nodes, or its own method `block`.
        """

        def part(value: Any) -> Any:
            if hasattr(value, "block"):
                return value.block(first, end)
            return jax.tree.map(lambda leaf: leaf[first:end] if np.ndim(leaf) else leaf, value)

        arrays, static = self._flatten()
        block = type(self)._unflatten(static, [part(value) for value in arrays])
        block.nodes = end - first
        return block

    @property
    def constants_claimed(self) -> bool:
        """Whether mu and L are the user's word, to be checked, and not computed by adom."""
        return True

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

    def newton_kernel(self, dtype: Any) -> Callable[..., Sequence[Array]] | None:
        """Return a compiled kernel of the oracle `auto`; None if `newton_steps` has to compute in JAX."""
        return None

    def hessian_rows(self, x: Array) -> Array:
        """Return the Hessian of f_i at x_i for every row, shape (nodes, dim, dim)."""
        some = self._columns_at_once()
        columns = jax.lax.map(
            lambda e: self.hessian_product_rows(x, jnp.broadcast_to(e, x.shape)),
            jnp.eye(self.dim, dtype=x.dtype),
            batch_size=some if some > 1 else None,
        )
        return jnp.moveaxis(columns, 0, -1)

    def gradients_at(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of f_i at x_i for every row, or at one common x, on the host in float64."""
        with double_precision():
            return np.asarray(_gradient_rows(self, np.broadcast_to(x, (self.nodes, self.dim))))

    def model_minimum_rows(self, H: Array, b: Array, start: Array) -> Array:
        """Return the x that minimise x'Hx / 2 - b'x plus the penalty that all nodes share, one for each row."""
        return jax.lax.map(lambda row: jnp.linalg.solve(*row), (H, b))  # a batch of large ones can block all threads

    def hessians_at(self, x: np.ndarray) -> np.ndarray:
        """Return the Hessian of f_i at x_i for every row, on the host in float64."""
        with double_precision():
            return np.asarray(_hessian_rows(self, x))

    def _columns_at_once(self) -> int:
        """Return how many columns of the Hessians to compute at once; each needs as much memory as the data."""
        data = self.nodes * self.dim + sum(np.size(leaf) for leaf in jax.tree.leaves(self))
        return min(self.dim, max(1, HELD // data))

    def mean_gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the mean over nodes of the gradients of the f_i at one common x of shape (dim,), in float64."""
        with jax.enable_x64(True):
            return np.asarray(_mean_gradient(self, x))

    def mean_hessian(self, x: np.ndarray) -> np.ndarray:
        """Return the mean over nodes of the Hessians of the f_i at one common x, shape (dim, dim), in float64."""
        with jax.enable_x64(True):
            return np.asarray(_mean_hessian(self, x))

    def mean_hessian_product(self, x: np.ndarray) -> HessianProduct:
        """Return v -> H v for the mean H of the Hessians at x, and the diagonal of H if it is cheap."""

        def product(v: np.ndarray) -> np.ndarray:
            with jax.enable_x64(True):
                return np.asarray(_mean_hessian_product(self, x, v))

        return product, None

    def holds_hessian(self) -> bool:
        """Return whether the mean Hessian is small enough to hold in memory."""
        return self.dim <= DENSE

    def rounding(self, rng: np.random.Generator) -> np.ndarray | float:
        """Return a random error of the mean gradient due to rounding of stored sums, in ulps."""
        return 0.0

    def exact_dual_gradient_rows(self, z: Array, x: Array) -> tuple[Array, Array]:
        """Solve grad f_i(x_i) = z_i for every row by Newton's method started at x, to the precision of the dtype.

        If the Hessians of all nodes have more than 2^26 entries, conjugate gradients solve the Newton systems. This is
        as accurate only if the f_i are not too ill conditioned.

        Return the solution and the number of gradients that each row took, where a Hessian counts as `dim`.
        """
        return newton(
            lambda y: self.gradient_rows(y) - z,
            self.hessian_product_rows,
            self.hessian_rows if held(self.nodes, self.dim) else None,
            x,
            scale=jnp.linalg.norm(z, axis=-1) + jnp.linalg.norm(self.gradient_rows(x * 0), axis=-1),
            stiffness=self.L,
        )

    @property
    def closed_form(self) -> bool:
        """Whether `exact_dual_gradient_rows` uses a formula that costs no more than a gradient."""
        return False

    def objective(self, x: Array) -> float:
        """Return the sum of the f_i, at one common x of shape (dim,) or with one row per node."""
        with jax.enable_x64(True):
            rows = jnp.broadcast_to(jnp.asarray(x, dtype=float), (self.nodes, self.dim))
            return float(self.value_rows(rows).sum())

    def solution(self) -> np.ndarray:
        """Return x*, the minimiser of the sum of the f_i, as accurately as float64 allows; it is computed once.

        `solution_error` estimates its error. If fewer than about eight digits are certain, a warning is given.
        """
        return self._minimum().x

    @property
    def solution_error(self) -> float:
        """A cautious estimate of the distance from `solution` to the true minimiser.

        It is a few roundings if the sum of the f_i is well conditioned, otherwise up to about 1e-16 kappa times the
        length of x*. The errors in a result's history are measured against `solution`, so they mean nothing below
        ``nodes * solution_error**2``.
        """
        return self._minimum().error

    def warn_of_tol(self, tol: float) -> None:
        """Warn if a tolerance is below the accuracy of x*, unless x* is exact to float64."""
        x, error = self._minimum()
        floor = self.nodes * error**2
        if tol < floor and error > ROUGH * float(np.linalg.norm(x)):
            warnings.warn(
                f"tol={tol:.3g} cannot be told from 0: x* of {self!r} is known to about {error:.1g} only, so "
                f"errors below {floor:.1g} mean nothing; take tol={2 * floor:.1g} or more",
                stacklevel=3,
            )

    def _minimum(self) -> Minimum:
        if self._solution is None or self._solution[1] != self.user_code():
            with kept_programs():
                known = minimum(self)
                if self.constants_claimed and (reason := contradiction(self, known.x, "at the solution")):
                    raise InputError(reason)
                self._warn_of_inexact(known)
                self._remember(known)
        assert self._solution is not None
        return self._solution[0]

    def as_it_is(self) -> Self:
        """Return the problem with its user code frozen, so that the code is not traced again to detect changes."""
        code = self.user_code()
        if code in (Program(), self._program):
            return self
        read = copy(self)
        read._program, read._origin = code, self
        return read

    def _remember(self, known: Minimum) -> Minimum:
        known.x.setflags(write=False)
        self._solution = (known, self.user_code())
        if self._origin is not None:
            self._origin._solution = self._solution
        return known

    def on_device(self) -> Self:
        """Return the problem with its arrays on the device that computes its means (unchanged if `on_host`)."""
        if self.on_host:
            return self
        with jax.enable_x64(True):
            moved: Self = jax.device_put(self)
        return moved

    def _warn_of_inexact(self, known: Minimum) -> None:
        length = float(np.linalg.norm(known.x))
        if known.error <= INEXACT * length:
            return
        zero = np.zeros((self.nodes, self.dim))
        with jax.enable_x64(True):
            move = float(np.linalg.norm(np.asarray(self.gradient_rows(zero)), axis=-1).mean()) / self.L
        if known.error <= INEXACT * max(length, move):
            return  # x* is 0, or negligible beside a single step
        if self.constants_claimed and (reason := contradiction_around(self, known.x, "near the solution")):
            raise InputError(reason)
        warnings.warn(
            f"x* of {self!r} is known to about {known.error:.1g} only, beside a length of {length:.3g}, so errors "
            f"below {self.nodes * known.error**2:.1g} mean nothing: float64 gives no more at this condition number; "
            "scale the features or regularise more",
            stacklevel=4,
        )

    def weighting(self) -> dict[str, Any] | None:
        """Return the nodes' numbers of samples and how these are weighted; None for a problem without samples."""
        return None

    def trouble(self) -> BaseException | None:
        """Return the error met while reading samples from disk, if any; a compiled program cannot raise it."""
        return None

    def model(self) -> dict[str, Any] | None:
        """Return a description of the fitted model, without its coefficients; None if the problem is not a model."""
        return None

    def inference(self, x: np.ndarray) -> dict[str, Any] | None:
        """Return the errors of a model's coefficients at x, and how well it fits; None if they are not computed."""
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(nodes={self.nodes}, dim={self.dim}, kappa={self.kappa:.4g})"

    def _facts(self) -> dict[str, Any]:
        """Return the rows of the notebook card, all cheap to compute."""
        facts = {"nodes": self.nodes, "dim": self.dim, "mu": self.mu, "L": self.L, "kappa": self.kappa}
        return facts | ({"weights": words} if (words := weighting_text(self.weighting())) else {})

    def _repr_html_(self) -> str:
        return card(type(self).__name__, "minimise the sum of f_i over the nodes", self._facts())


def as_they_are(problems: Sequence[Problem]) -> list[Problem]:
    """Apply `as_it_is` to each problem; repeated problems stay one object."""
    known = {id(problem): problem.as_it_is() for problem in {id(problem): problem for problem in problems}.values()}
    return [known[id(problem)] for problem in problems]


def solutions(problems: Sequence[Problem]) -> list[np.ndarray]:
    """Return the solution of each problem; repeated problems are solved once."""
    known = {id(problem): problem.solution() for problem in {id(problem): problem for problem in problems}.values()}
    return [known[id(problem)] for problem in problems]


def _spread(problem: Problem, x: Array) -> Array:
    return jnp.broadcast_to(x, (problem.nodes, problem.dim))


@jax.jit
def _gradient_rows(problem: Problem, x: Array) -> Array:
    return problem.gradient_rows(x)


@jax.jit
def _hessian_rows(problem: Problem, x: Array) -> Array:
    return problem.hessian_rows(x)


@jax.jit
def _mean_gradient(problem: Problem, x: Array) -> Array:
    return problem.gradient_rows(_spread(problem, x)).mean(axis=0)


@jax.jit
def _mean_hessian_product(problem: Problem, x: Array, v: Array) -> Array:
    return problem.hessian_product_rows(_spread(problem, x), _spread(problem, v)).mean(axis=0)


@jax.jit
def _mean_hessian(problem: Problem, x: Array) -> Array:
    """Return the mean Hessian, computed a few columns at a time because all might not fit in memory."""
    columns = jnp.eye(problem.dim, dtype=x.dtype)
    some = problem._columns_at_once()
    return jax.lax.map(lambda e: _mean_hessian_product(problem, x, e), columns, batch_size=some)
