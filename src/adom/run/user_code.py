"""Programs of methods that users have written, by which caches and stores notice a change of their code."""

from dataclasses import fields
from typing import Any

import jax
import jax.numpy as jnp

from ..algorithms import Method
from ..errors import InputError
from ..util.programs import Program, cached_for, program
from .bare import bare
from .windows import plain

Array = Any


def user_code(method: Method, nodes: int, dim: int, dtype: str = "float64") -> Program:
    """Return the program of a user's own method; an empty one for a method of this package.

    JAX remembers programs, and a sweep keeps results; this tells them apart where a value that a step reads has
    changed. Hyper-parameters are arguments of the program.
    """
    cls = type(plain(method))
    if cls.__module__.partition(".")[0] == "adom":
        return Program()
    return code_of_class(cls, nodes, dim, dtype)


def code_of_class(cls: type[Method], nodes: int, dim: int, dtype: str = "float64") -> Program:
    """Return the program of a method's class, whatever its hyper-parameters are."""
    return program(*_first_step(cls, nodes, dim, dtype))


def try_steps(cls: type[Method], nodes: int = 4, dim: int = 3) -> None:
    """Begin and make a step without numbers; what a user's own method raises comes through.

    A step that returns something else than the next state and an iterate is refused.
    """
    function, *arguments = _first_step(cls, nodes, dim, "float64")
    with jax.enable_x64(True), cached_for(object()):
        state, after, _ = jax.eval_shape(function, *arguments)
    fine = isinstance(after, tuple) and len(after) == 2 and _shapes(after[0]) == _shapes(state)
    if not fine or getattr(after[1], "shape", None) != (nodes, dim):
        raise InputError(
            f"{cls.__name__}.step must return the next state, with the shapes that init's has, and an iterate of "
            "shape (rows, dim), and returns something else; change it"
        )


def _shapes(state: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf.shape, state), jax.tree.structure(state)


def _first_step(cls: type[Method], nodes: int, dim: int, dtype: str) -> tuple[Any, ...]:
    """Return a function that begins and makes a step, and shapes and types of its arguments."""

    def begin_and_step(zeros: Array, k: Array, values: dict[str, Array]) -> Any:
        copy, oracle = bare(cls, values.items()), _Oracle()
        state = copy.init(zeros, oracle)
        return state, copy.step(state, oracle, _Gossip()), copy.rounds_of_step(k)

    values = {field.name: jax.ShapeDtypeStruct((), dtype) for field in fields(cls)}  # type: ignore[arg-type]  # a dataclass
    zeros, k = jax.ShapeDtypeStruct((nodes, dim), dtype), jax.ShapeDtypeStruct((), "int64")
    return begin_and_step, zeros, k, values


class _Oracle:
    """Stands in for a problem: functions that a program can tell apart."""

    def gradient(self, x: Array) -> Array:
        return jnp.sin(x)

    def dual_gradient(self, z: Array) -> Array:
        return jnp.cos(z)


class _Gossip:
    """Stands in for a network in the same way."""

    def __call__(self, *vectors: Array) -> Any:
        mixed = tuple(jnp.tanh(v) for v in vectors)
        return mixed[0] if len(vectors) == 1 else mixed

    def average(self, *vectors: Array) -> Any:
        mixed = tuple(jnp.arctan(v) for v in vectors)
        return mixed[0] if len(vectors) == 1 else mixed

    def mix(self, v: Array, rounds: Any) -> Array:
        return jnp.sinh(v) * rounds

    def accelerated(self, v: Array, rounds: Any, chi: Any) -> Array:
        return jnp.arctanh(v) * rounds + chi

    def windows(self, rounds: Any) -> "_Gossip":
        return _Windows(rounds)

    def push(self, *vectors: Array) -> Any:
        mixed = tuple(jnp.log1p(v) for v in vectors)
        return mixed[0] if len(vectors) == 1 else mixed

    def push_pull(self, pulled: Array, pushed: Array) -> tuple[Array, Array]:
        return jnp.cosh(pulled), jnp.arcsinh(pushed)

    def project(self, v: Array) -> Array:
        return jnp.expm1(v)


class _Windows(_Gossip):
    """Stands in for a network of windows."""

    def __init__(self, rounds: Any) -> None:
        self._rounds = rounds

    def __call__(self, *vectors: Array) -> Any:
        return super().__call__(*(v * self._rounds for v in vectors))

    def average(self, *vectors: Array) -> Any:
        return super().average(*(v * self._rounds for v in vectors))
