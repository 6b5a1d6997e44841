"""Digests of functions, computed from the programs (jaxprs) that JAX makes of them.

Whatever a function reads besides its arguments (variables outside it, defaults, attributes, arrays, files, functions
that it calls) becomes a constant of that program. So the digest changes when a function computes something else, and
two functions that compute the same have the same digest, however they are written.
"""

import hashlib
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import Any, NamedTuple

import jax
import numpy as np

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""The memory address in the text of an object."""
SILENT = ("debug_callback", "debug_print")
"""Operations without influence on results."""
KNOWN = ("custom_", "random_")
"""Prefixes of operations whose functions need no digest: derivative rules that are no longer used, and JAX's own random
number generators."""

_context = jax.make_user_context(None) if hasattr(jax, "make_user_context") else None
_traces = count()


class Program(NamedTuple):
    """The digest of a program, and the operation that hides something from it, "" if there is none."""

    digest: str = ""
    hidden: str = ""
    failed: bool = False  # whether JAX could not trace it; then every digest is different


def cached_for(version: Any) -> AbstractContextManager[Any]:
    """Let JAX use only programs that it has cached for the same `version`.

    JAX caches a jitted function, or the body of a loop, as first traced, although a value that it reads may have
    changed since.
    """
    return nullcontext() if _context is None else _context(version)


def program(function: Callable[..., Any], *arguments: Any) -> Program:
    """Return the program of a function as it is now, for arguments of these shapes and types.

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
    unique = f"trace {next(_traces)}"
    try:
        with jax.enable_x64(True), cached_for(unique):
            jaxpr = jax.make_jaxpr(function)(*shapes)
    except Exception as error:  # a user's function may raise anything
        return Program(unique, f"{type(error).__name__} while JAX reads it", failed=True)
    writer = _Writer()
    return Program(writer.closed(jaxpr), writer.hidden)


def array_digest(leaf: Any) -> str:
    """Return the digest of an array's type, shape and content."""
    array = np.ascontiguousarray(leaf)
    content = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    content.update(array.data if array.size else b"")
    return content.hexdigest()


class _Writer:
    """Writes programs as text and takes digests of it."""

    def __init__(self) -> None:
        self.hidden = ""
        self._known: dict[int, tuple[Any, str]] = {}  # inner programs, which may occur often

    def closed(self, program: Any) -> str:
        constants = [self._value(constant, "") for constant in program.consts]
        return _sha([self.open(program.jaxpr), *constants])

    def open(self, jaxpr: Any) -> str:
        if id(jaxpr) not in self._known:
            self._known[id(jaxpr)] = (jaxpr, self._lines(jaxpr))
        return self._known[id(jaxpr)][1]

    def _lines(self, jaxpr: Any) -> str:
        from jax.extend import core

        names: dict[Any, int] = {}

        def name(atom: Any) -> str:
            if isinstance(atom, core.Literal):
                return f"{atom.aval} {self._value(atom.val, '')}"
            return f"{names.setdefault(atom, len(names))}:{atom.aval}"

        lines = [" ".join(map(name, (*jaxpr.constvars, *jaxpr.invars)))]
        for line in jaxpr.eqns:
            operation = line.primitive.name
            if operation not in SILENT:
                inputs, outputs = (" ".join(map(name, side)) for side in (line.invars, line.outvars))
                lines.append(f"{outputs} = {operation} {self._value(line.params, operation)} {inputs}")
        return _sha([*lines, " ".join(map(name, jaxpr.outvars))])

    def _value(self, value: Any, operation: str) -> str:
        """Return a parameter or constant of an operation as text."""
        from jax.extend import core

        if isinstance(value, core.ClosedJaxpr):
            return self.closed(value)
        if isinstance(value, core.Jaxpr):
            return self.open(value)
        if isinstance(value, dict):
            return f"{{{', '.join(f'{key}: {self._value(value[key], operation)}' for key in sorted(value, key=str))}}}"
        if isinstance(value, tuple | list):
            return f"({', '.join(self._value(item, operation) for item in value)})"
        if isinstance(value, np.ndarray | jax.Array):
            key = not isinstance(value.dtype, np.dtype)  # a key of JAX's random numbers
            return array_digest(jax.random.key_data(value) if key else value)
        text = repr(value)
        if ADDRESS.search(text) and not operation.startswith(KNOWN):
            self.hidden = self.hidden or operation
        return ADDRESS.sub("", text)


def _sha(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
