"""Programs that JAX makes of functions: how they are compiled, kept between processes, and told apart.

They are kept by JAX's own persistent cache, in the user's cache folder. JAX finds a program by a digest of its code,
its options and the version of the compiler. The folder's name contains a digest of the processor's features, since
different machines may share a home folder. Several processes may use it at once (JAX takes a lock), and the least
recently used programs are removed when it is full. ``ADOM_COMPILE_CACHE=0`` switches it off. If the user has set a
cache folder in JAX, that one is used instead.

A digest of a function is that of its program (a jaxpr). Whatever a function reads besides its arguments (variables
outside it, defaults, attributes, arrays, files, functions that it calls) becomes a constant of that program. So the
digest changes when a function computes something else, and two functions that compute the same have the same digest,
however they are written.
"""

import hashlib
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from .files import cache_dir, processor

# Compiling

QUICK = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}
"""XLA's older loop emitters, and no splitting: half the compile time, with bitwise equal results."""
TRIED = (0, 11)
"""The first version of jaxlib for which these options are untested; an unknown option is an error."""

MOST = 256
"""Most programs that a function keeps. Each needs about 30 memory mappings, and Linux allows a process 65,530."""


def compiled(function: Callable[..., Any], *, quick: bool, **how: Any) -> Any:
    """Return `jax.jit` of a function; `quick` is for small programs, which take longer to compile than to run."""
    return jax.jit(function, compiler_options=QUICK if quick and _known() else None, **how)


def forget_many(*functions: Any) -> None:
    """Clear the programs of functions that keep more than `MOST`: a long-lived process meets many shapes."""
    for function in functions:
        if function._cache_size() > MOST:
            function.clear_cache()


@cache
def _known() -> bool:
    from jaxlib.version import __version__

    return tuple(map(int, __version__.split(".")[:2])) < TRIED and jax.default_backend() == "cpu"


# Programs kept between processes

SIZE = 2**24
"""Most bytes of programs, about a thousand of them; few, as JAX looks at all files whenever it writes one."""
TROUBLE = ("Error reading persistent compilation", "Error writing persistent compilation", "Cache value for key")
"""First words of JAX's warnings about files that it cannot use."""
SETTINGS: dict[str, Any] = {
    "jax_compilation_cache_max_size": SIZE,
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
}


@contextmanager
def double_precision() -> Iterator[None]:
    """Let JAX compute in float64, and cache the programs that it compiles meanwhile."""
    with jax.enable_x64(True), kept_programs():
        yield


@contextmanager
def kept_programs() -> Iterator[None]:
    """Cache the programs that are compiled meanwhile; restore JAX's settings afterwards."""
    folder = _folder()
    if folder is None or _setting("jax_compilation_cache_dir"):  # switched off, set by the user, or nested
        yield
        return
    from jax.experimental.compilation_cache.compilation_cache import reset_cache

    settings = {"jax_compilation_cache_dir": str(folder), **SETTINGS}
    with ExitStack() as restored, _without(folder):
        for name, value in settings.items():
            restored.callback(jax.config.update, name, _setting(name))
            jax.config.update(name, value)
        restored.callback(reset_cache)
        yield


@contextmanager
def _without(folder: Path) -> Iterator[None]:
    """Remove the folder if JAX warns about it, and hide the warning: a full disk or a crash can truncate files."""
    trouble = False
    with warnings.catch_warnings():
        show = warnings.showwarning

        def notice(message: Any, *about: Any, **more: Any) -> None:
            nonlocal trouble
            if str(message).startswith(TROUBLE):
                trouble = True
            else:
                show(message, *about, **more)

        warnings.showwarning = notice
        for beginning in TROUBLE:
            warnings.filterwarnings("always", beginning)
        yield
    if trouble:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _folder() -> Path | None:
    """Return the folder of programs for this processor; None if it is switched off or cannot be used."""
    if os.environ.get("ADOM_COMPILE_CACHE", "1") == "0":
        return None
    try:
        import filelock  # noqa: F401  # needed for JAX's lock

        folder = cache_dir() / f"programs-{processor()}"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (ImportError, OSError, RuntimeError):  # no filelock, a folder that cannot be made, no home folder
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def _setting(name: str) -> Any:
    return getattr(jax.config, name)


# Programs told apart

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
