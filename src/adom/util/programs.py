"""What a function computes, told by the program that JAX makes of it.

Whatever a function reads beside its arguments (variables outside it, defaults, attributes, arrays, files, functions
that it calls) stands in that program as a constant. So the program's digest says whether a function still computes what
it did, and whether two functions compute the same, however they are written and wherever they come from.
"""

import hashlib
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend import core

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""What the text of an object has that says nothing of itself but where it lies."""
SILENT = ("debug_callback", "debug_print")
"""Operations that leave results as they are."""
KNOWN = ("custom_", "random_")
"""How operations begin whose functions need not be looked into: rules of derivatives that are not taken any more, and
JAX's own generators of random numbers."""

_context = jax.make_user_context(None) if hasattr(jax, "make_user_context") else None
_looks = count()


class Program(NamedTuple):
    """The digest of a program, and what keeps it from saying all, "" where there is nothing."""

    digest: str = ""
    hidden: str = ""


def reading(version: Any) -> AbstractContextManager[Any]:
    """Keep what JAX remembers of functions apart by `version`.

    JAX remembers what a function under `jax.jit`, or the body of a loop, was when it first met it, although a value
    that it reads may have changed since.
    """
    return nullcontext() if _context is None else _context(version)


def program(function: Callable[..., Any], *arguments: Any) -> Program:
    """Return what a function computes now from arguments of these shapes and types.

    Examples
    --------
    >>> def function(x):
    ...     return scale * x
    >>> scale = 1.0
    >>> before = program(function, np.zeros(3))
    >>> program(function, np.zeros(3)) == before, program(lambda y: y * 2, np.zeros(3)) == before
    (True, False)
    >>> scale = 2.0
    >>> program(function, np.zeros(3)) == before
    False
    """
    shapes = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if hasattr(leaf, "dtype") else leaf, arguments
    )
    now = f"look {next(_looks)}"
    try:
        with jax.enable_x64(True), reading(now):
            made = jax.make_jaxpr(function)(*shapes)
    except Exception as error:  # someone's own function may raise anything
        return Program(now, f"{type(error).__name__} while JAX reads it")
    writer = _Writer()
    return Program(writer.closed(made), writer.hidden)


def array_digest(leaf: Any) -> str:
    """Return the digest of an array's type, shape and content."""
    array = np.ascontiguousarray(leaf)
    content = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    content.update(array.data if array.size else b"")
    return content.hexdigest()


class _Writer:
    """Writes programs down and takes digests of them."""

    def __init__(self) -> None:
        self.hidden = ""
        self._known: dict[int, tuple[Any, str]] = {}  # inner programs, which may occur often

    def closed(self, made: Any) -> str:
        constants = [self._value(constant, "") for constant in made.consts]
        return _sha([self.open(made.jaxpr), *constants])

    def open(self, jaxpr: Any) -> str:
        if id(jaxpr) not in self._known:
            self._known[id(jaxpr)] = (jaxpr, self._lines(jaxpr))
        return self._known[id(jaxpr)][1]

    def _lines(self, jaxpr: Any) -> str:
        names: dict[Any, int] = {}

        def name(atom: Any) -> str:
            if isinstance(atom, core.Literal):
                return f"{atom.aval} {self._value(atom.val, '')}"
            return f"{names.setdefault(atom, len(names))}:{atom.aval}"

        lines = [" ".join(map(name, (*jaxpr.constvars, *jaxpr.invars)))]
        for line in jaxpr.eqns:
            what = line.primitive.name
            if what not in SILENT:
                inputs, outputs = (" ".join(map(name, side)) for side in (line.invars, line.outvars))
                lines.append(f"{outputs} = {what} {self._value(line.params, what)} {inputs}")
        return _sha([*lines, " ".join(map(name, jaxpr.outvars))])

    def _value(self, value: Any, what: str) -> str:
        """Return a parameter or constant of an operation as text."""
        if isinstance(value, core.ClosedJaxpr):
            return self.closed(value)
        if isinstance(value, core.Jaxpr):
            return self.open(value)
        if isinstance(value, dict):
            return f"{{{', '.join(f'{key}: {self._value(value[key], what)}' for key in sorted(value, key=str))}}}"
        if isinstance(value, tuple | list):
            return f"({', '.join(self._value(one, what) for one in value)})"
        if isinstance(value, np.ndarray | jax.Array):
            drawn = not isinstance(value.dtype, np.dtype)  # a key of JAX's random numbers
            return array_digest(jax.random.key_data(value) if drawn else value)
        text = repr(value)
        if ADDRESS.search(text) and not what.startswith(KNOWN):
            self.hidden = self.hidden or what
        return ADDRESS.sub("", text)


def _sha(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
