"""Any smooth, strongly convex loss that JAX can trace."""

import inspect
from collections.abc import Callable
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError, InputTypeError, shown
from ..util.checks import check_whole
from ..util.programs import Program, cached_for, kept_programs, program
from .base import Array, Problem
from .contradictions import contradiction
from .limits import EXTREME, LARGEST_DIM, as_array, as_numbers, check_numbers, check_room

Loss = Callable[[Any, Any], Any]


class LossProblem(Problem):
    """f_i(x) = loss(x, data of node i), with gradients and Hessians by automatic differentiation."""

    array_fields = ("data",)
    static_fields = ("loss", "one_by_one")
    data: Any
    loss: Loss
    one_by_one: bool = False
    """Whether nodes are computed one after another, because vectorised loops may round differently for another number
    of nodes."""
    _original: Program  # the program of the loss when the problem was made

    def user_code(self) -> Program:
        """Return the program of the loss; refuse if it has changed since the problem was made."""
        if self._program is not None:
            return self._program
        now = _code(self)
        if now.digest != self._original.digest:
            names = _read_by(self.loss)
            raise InputError(
                "the loss computes something else than when the problem was made: a value that it reads beside x and "
                f"data{f' ({names})' if names else ''} has changed, and mu and L were given for the old one; "
                "make the problem again with adom.from_loss, or hand the value over in data"
            )
        return now

    def block(self, first: int, end: int) -> Self:
        """Return the problem of some nodes, computed one by one so that results do not depend on the block's size."""
        block = super().block(first, end)
        block.one_by_one = True
        return block

    def _facts(self) -> dict[str, Any]:
        shapes = ", ".join(str(leaf.shape[1:]) for leaf in jax.tree.leaves(self.data))
        return {**super()._facts(), "loss": getattr(self.loss, "__name__", "a function"), "data of a node": shapes}

    def value_rows(self, x: Array) -> Array:
        """Return loss(x_i, data_i)."""
        return self._over_nodes(self.loss, x)

    def gradient_rows(self, x: Array) -> Array:
        """Return the gradient of the loss in x."""
        return self._over_nodes(jax.grad(self.loss), x)

    def _over_nodes(self, function: Loss, x: Array) -> Array:
        with cached_for((self._program or self._original).digest):
            if self.one_by_one:
                nodes = (x, self.data)
                if len(x) == 1:  # XLA inlines a loop of one turn, and may round it differently
                    nodes = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf]), nodes)
                return jax.lax.map(lambda node: function(*node), nodes)[: len(x)]
            return jax.vmap(function)(x, self.data)

    def hessian_product_rows(self, x: Array, v: Array) -> Array:
        """Return the derivative of the gradient at x_i along v_i."""
        return jax.jvp(self.gradient_rows, (x,), (v,))[1]


def _code(problem: LossProblem) -> Program:
    """Return the current program of the loss: value, gradient and their derivatives."""

    def at(x: Array, v: Array, node: Any) -> Any:
        return jax.jvp(lambda x: jax.value_and_grad(problem.loss)(x, node), (x,), (v,))

    x = jax.ShapeDtypeStruct((problem.dim,), np.float64)
    return program(at, x, x, _one_node(problem.data))


def _one_node(data: Any) -> Any:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), data)


def _read_by(loss: Loss) -> str:
    """Return the names of the outside variables that a function reads, as far as they can be found."""
    code = getattr(inspect.unwrap(loss), "__code__", None)
    outside = getattr(inspect.unwrap(loss), "__globals__", {})
    if code is None:
        return ""
    plain = [name for name in code.co_names if name in outside and not callable(outside[name])]
    return ", ".join((*code.co_freevars, *(name for name in plain if not inspect.ismodule(outside[name]))))


def from_loss(loss: Loss, data: Any, *, mu: Any, L: Any, dim: int | None = None) -> LossProblem:
    """Make a problem from a loss and one piece of data per node.

    Parameters
    ----------
    loss : callable
        ``loss(x, d)`` returns a scalar for x of shape (dim,) and one node's data d; written with jax.numpy. Other
        values that it reads must not change: a run refuses a loss that has changed since the problem was made.
    data : array, or tuple/list/dict of arrays
        Each with a leading axis of nodes.
    mu, L : float or array of shape (nodes,)
        Strong convexity and smoothness of the f_i, checked against the loss at x = 0 and at the solution.
    dim : int, optional
        Length of x. By default, the only size among the data's axes that the loss accepts.

    Examples
    --------
    >>> import numpy as np
    >>> centres = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> problem = from_loss(lambda x, c: 0.5 * ((x - c) ** 2).sum(), centres, mu=1.0, L=1.0)
    >>> problem.solution().round(9).tolist()
    [1.0, 2.0]
    """
    if not callable(loss):
        raise InputTypeError(f"loss must be a function of x and one node's data, got {type(loss).__name__}")
    if getattr(loss, "__hash__", None) is None:
        raise InputTypeError(f"loss must be hashable, and a {type(loss).__name__} is not; wrap it in a function")
    # A copy: later changes of the arrays must not change the problem.
    data = jax.tree.map(lambda leaf: as_array("data", leaf).copy(), data)
    leaves = jax.tree.leaves(data)
    if not leaves or any(leaf.ndim == 0 for leaf in leaves):
        raise InputError("data must be one or more arrays with a leading axis of nodes")
    sizes = {leaf.shape[0] for leaf in leaves}
    if len(sizes) != 1 or 0 in sizes:
        raise InputError(f"data must have one leading axis of nodes, got leading sizes {sorted(sizes)}")
    for number, leaf in enumerate(leaves):
        if leaf.dtype.kind not in "fiubc":
            raise InputTypeError(f"data, array {number}, must be numbers, got an array of {leaf.dtype}; convert it")
        if leaf.dtype.kind == "f":
            check_numbers(f"data, array {number}", leaf)

    problem = object.__new__(LossProblem)
    problem.loss, problem.data, problem.nodes = loss, data, sizes.pop()
    with jax.enable_x64(True):
        problem.dim = _check_dim(problem, dim) if dim is not None else _find_dim(problem)
        problem._original = _code(problem)
        problem._set_constants(_per_node("mu", mu, problem.nodes), _per_node("L", L, problem.nodes))
        _check_curvature(problem)
    return problem


def _misfit(problem: LossProblem, dim: int) -> str:
    """Return why the loss does not map an x of length `dim` to a real number; "" if it does."""
    try:
        out = jax.eval_shape(problem.loss, jax.ShapeDtypeStruct((dim,), np.float64), _one_node(problem.data))
    except Exception as error:  # the user's function may raise anything
        return str(error).strip().split("\n")[0] or type(error).__name__
    shape, dtype = getattr(out, "shape", None), getattr(out, "dtype", None)
    if shape != ():
        return f"it returned shape {shape}, not a scalar"
    return "" if np.issubdtype(dtype, np.floating) else f"it returned {dtype}, not a real number"


def _check_dim(problem: LossProblem, dim: int) -> int:
    dim = check_whole("dim", dim, 1, "it is the length of x", LARGEST_DIM)
    check_room(problem.nodes, dim)
    if reason := _misfit(problem, dim):
        raise InputError(f"loss(x, data) does not work for x of length {dim}: {reason}")
    return dim


def _find_dim(problem: LossProblem) -> int:
    sizes = sorted({size for leaf in jax.tree.leaves(problem.data) for size in leaf.shape[1:]})
    fits = [size for size in sizes if not _misfit(problem, size)]
    if len(fits) > 1 and fits[0] == 1:
        fits = fits[1:]  # a length of 1 fits by broadcasting alone
    if len(fits) != 1:
        accepted = fits or f"none of {sizes}"
        raise InputError(f"the length of x cannot be told from the data (the loss accepts {accepted}); give dim=")
    return int(fits[0])


def _per_node(name: str, value: Any, nodes: int) -> np.ndarray:
    wrong = f"{name} must be a positive number, or {nodes} of them, one a node; got {shown(value)}"
    try:
        array = as_numbers(name, value, EXTREME)
    except InputError as error:
        raise type(error)(wrong) from None
    if array.shape not in ((), (nodes,)) or not (array > 0).all() or np.asarray(value).dtype.kind == "b":
        raise InputError(wrong)
    return np.broadcast_to(array, (nodes,)).copy()


def _check_curvature(problem: LossProblem) -> None:
    """Refuse mu and L that contradict the loss at 0."""
    if (problem.mu_nodes > problem.L_nodes).any():
        i = int(np.argmax(problem.mu_nodes - problem.L_nodes))
        raise InputError(f"mu must be at most L, got {problem.mu_nodes[i]:.6g} and {problem.L_nodes[i]:.6g}")
    with kept_programs():
        reason = contradiction(problem, np.zeros(problem.dim), "at 0")
    if reason:
        raise InputError(reason)
