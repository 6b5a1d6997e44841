"""Methods written by users: checks of their steps, and the programs by which caches and stores notice a change.

JAX traces one step without numbers, with stand-ins for oracle and network. The trace is the step's program, and it
shows whether the step follows the rules of `Method`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..algorithms import Method
from ..algorithms.base import Averaging, Turn, bare, plain
from ..errors import InputError, shown
from ..util.programs import Program, cached_for, program

Array = Any


def user_code(method: Method, nodes: int, dim: int, dtype: str = "float64") -> Program:
    """Return the program of a user's own method; an empty one for a method of this package.

    JAX caches programs, and a sweep keeps results; the program shows whether a value that a step reads has changed.
    Hyper-parameters are arguments of the program.
    """
    cls = type(plain(method))
    return code_of_class(cls, nodes, dim, dtype) if _is_own(cls) else Program()


def _is_own(cls: type[Method]) -> bool:
    """Return whether a method was written by a user."""
    return cls.__module__.partition(".")[0] != "adom"


def code_of_class(cls: type[Method], nodes: int, dim: int, dtype: str = "float64") -> Program:
    """Return the program of a method's class, for any hyper-parameters.

    A step that breaks the rules of `Method` is refused; one that JAX cannot trace fails in the run itself.
    """
    step = _FirstStep(cls, nodes, dim, dtype)
    code = program(step, *step.arguments)
    step.check()
    return code


def try_steps(
    cls: type[Method], nodes: int = 4, dim: int = 3, dtype: str = "float64", *, by_rows: bool = False
) -> None:
    """Trace ``init`` and one step of a method without numbers; errors that the method raises pass through.

    A step that breaks the rules of `Method` is refused; with `by_rows`, also a state that is not a NamedTuple of rows.
    """
    step = _FirstStep(cls, nodes, dim, dtype)
    with jax.enable_x64(True), cached_for(object()):
        jax.eval_shape(step, *step.arguments)
    step.check()
    if by_rows:
        step.check_rows()


def try_own(method: Any, problem: Any, dtype: str, *, by_rows: bool = False) -> None:
    """Try the steps of a user's own method, given as class or instance, with the sizes of a problem."""
    cls = type(method) if isinstance(method, Method) else method
    if isinstance(cls, type) and issubclass(cls, Method) and _is_own(cls):
        try_steps(cls, problem.nodes, problem.dim, dtype, by_rows=by_rows)


@contextmanager
def explained(method: Any, problem: Any, dtype: str) -> Iterator[None]:
    """If a run fails because of a user's own method, raise an error that says why; leave others unchanged."""
    try:
        yield
    except InputError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError):
        if refusal := _refusal(method, problem, dtype):
            raise refusal from None
        raise


def _refusal(method: Any, problem: Any, dtype: str) -> InputError | None:
    """Return the error that refuses a user's own method, or None."""
    try:
        try_own(method, problem, dtype, by_rows=True)
    except InputError as error:
        return error
    except Exception:  # the user's own error, which the run has raised already
        return None
    return None


class _FirstStep:
    """``init`` and one step of a method as a function that JAX traces; it keeps what it saw for the checks."""

    def __init__(self, cls: type[Method], nodes: int, dim: int, dtype: str) -> None:
        values = {field.name: jax.ShapeDtypeStruct((), dtype) for field in fields(cls)}  # type: ignore[arg-type]  # a dataclass
        rows = jax.ShapeDtypeStruct((nodes, dim), dtype)
        self.arguments = rows, jax.ShapeDtypeStruct((), "int64"), values
        self._cls, self._rows = cls, _Kind.of(rows)
        self._seen: tuple[Any, Any, list[_Use], Any] | None = None  # None: JAX could not trace it

    def __call__(self, zeros: Array, k: Array, values: dict[str, Array]) -> Any:
        copy, oracle, network = bare(self._cls, values.items()), _Oracle(), _Gossip()
        state = copy.init(zeros, oracle)
        after, takes = copy.step(state, oracle, network), copy.rounds_of_step(k)
        self._seen = *(jax.tree.map(_Kind.of, tree) for tree in (state, after)), network.uses, takes
        return state, after, takes

    def check(self) -> None:
        """Refuse a step with a wrong return value or a wrong number of rounds."""
        if self._seen is None:
            return
        state, after, uses, takes = self._seen
        self._check_network(uses, takes)
        pair = after if isinstance(after, tuple | list) and len(after) == 2 else (None, None)
        wanted, found = (state, self._rows), tuple(pair)
        structure: Any = jax.tree.structure(wanted)
        pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=False)
        if structure == jax.tree.structure(found) and all(new.fits(old) for new, old in pairs):
            return
        raise InputError(
            f"{self._cls.__name__}.step must return {shown((state, self._rows), 200)}, the next state, with "
            f"shapes and types as init returns them, and an iterate, got {shown(after, 200)}; change it"
        )

    def check_rows(self) -> None:
        """Refuse a state that is not a NamedTuple of rows, and a wrong ``vectors_per_round``.

        Runs with auto parameters or imperfect links add columns to the state, or keep account of its parts.
        """
        if self._seen is None:
            return
        state, _, uses, _ = self._seen
        by_name = hasattr(state, "_make")
        if not by_name or any(not isinstance(part, _Kind) or len(part.shape) != 2 for part in state):
            raise InputError(
                f"{self._cls.__name__}.init returns {shown(state, 200)}, but parameters='auto' and imperfect links "
                "need a NamedTuple of arrays with a row for each node; return one, or take parameters='theory' and "
                "perfect links"
            )

        sent, said = next((use.vectors for use in uses), 0), self._cls.vectors_per_round
        if self._cls.rounds_per_step == 1 and sent != said:
            raise InputError(
                f"{self._cls.__name__}.step sends {sent} vectors per round, but vectors_per_round says {said}; write "
                f"vectors_per_round = {sent}"
            )

    def _check_network(self, uses: "list[_Use]", takes: Any) -> None:
        """Refuse a step without rounds, or with another number of rounds than its class says."""
        name, said = self._cls.__name__, self._cls.rounds_per_step
        if not uses:
            raise InputError(
                f"{name}.step never uses the network, so the run would have no rounds; call gossip or gossip.average"
            )
        rounds = [use.rounds for use in uses]
        spent = sum(each for each in rounds if each is not None) if None not in rounds else None
        told = takes if isinstance(takes, int) else None
        if spent is None and (said, told) != (None, None):
            raise InputError(
                f"{name}.step spends a number of rounds that varies or depends on a hyper-parameter, but its class "
                f"says {said or told}; write rounds_per_step = None, and let rounds_of_step return the number"
            )
        if spent is not None and {said, told} - {None, spent}:
            raise InputError(
                f"{name}.step spends {spent} rounds, but its class says rounds_per_step = {said} and rounds_of_step "
                f"{told or 'that varies'}; set both to {spent}"
            )


@dataclass(frozen=True)
class _Kind:
    """Shape and type of an array."""

    shape: tuple[int, ...]
    dtype: Any
    weak: bool  # a Python number, which takes the type of its operand

    @classmethod
    def of(cls, leaf: Any) -> "_Kind":
        """Return the kind of an array or a number."""
        weak = getattr(leaf, "weak_type", isinstance(leaf, int | float | complex))
        dtype = leaf.dtype if hasattr(leaf, "dtype") else jnp.result_type(leaf)
        return cls(jnp.shape(leaf), dtype, bool(weak))

    def fits(self, before: "_Kind") -> bool:
        """Return whether a loop may replace an array of kind `before` by one of this kind."""
        return self.shape == before.shape and (before.weak or self.dtype == before.dtype)

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


class _Use(NamedTuple):
    """One use of the network: vectors per message, and rounds; None if unknown before a run."""

    vectors: int
    rounds: int | None


class _Oracle:
    """Stand-in for a problem, with functions that a program can tell apart."""

    def gradient(self, x: Array, where: Array | None = None) -> Array:
        return jnp.sin(x)

    def hessian(self, x: Array, where: Array | None = None) -> Array:
        return jnp.sinh(x)[..., None] * jnp.eye(x.shape[-1], dtype=x.dtype)

    def each(self, function: Callable[..., Array], *arrays: Array) -> Array:
        return jax.lax.map(lambda row: function(*row), arrays)

    def model_minimum(self, H: Array, b: Array, start: Array) -> Array:
        return jnp.arctan(H).sum(axis=-1) * b + start

    def dual_gradient(self, z: Array) -> Array:
        return jnp.cos(z)


class _Gossip(Averaging):
    """Stand-in for a network, likewise; it also notes how it is used."""

    lambda_max = 3.0

    def __init__(self) -> None:
        self.uses: list[_Use] = []

    def _round(self, function: Callable[[Array], Array], *vectors: Array) -> Any:
        self.uses.append(_Use(len(vectors), 1))
        mixed = tuple(map(function, vectors))
        return mixed[0] if len(vectors) == 1 else mixed

    def __call__(self, *vectors: Array) -> Any:
        return self._round(jnp.tanh, *vectors)

    def push(self, *vectors: Array) -> Any:
        return self._round(jnp.log1p, *vectors)

    def push_pull(self, pulled: Array, pushed: Array) -> Any:
        return self._round(jnp.arcsinh, jnp.cosh(pulled), pushed)

    def project(self, v: Array) -> Any:
        return self._round(jnp.expm1, v)

    def repeat(self, rounds: Any, turn: Turn, carried: Any) -> Any:
        """Make one turn, count it `rounds` times, and let the result depend on that number."""
        inner = _Gossip()
        after = turn(inner, carried)
        self.uses += [_Use(use.vectors, _product(rounds, use.rounds)) for use in inner.uses]
        return jax.tree.map(lambda leaf: leaf * rounds, after)


def _product(rounds: Any, each: int | None) -> int | None:
    """Return the rounds of `rounds` turns; None if JAX does not know them before a run."""
    try:
        return None if each is None else int(rounds) * each
    except TypeError:
        return None
