"""Compiling by XLA, and compiled programs kept between processes: JAX's own persistent cache, in the user's folder.

JAX finds a program by a digest of its code, its options and the version of the compiler. The folder's name contains a
digest of the processor's features, since different machines may share a home folder. Several processes may use it at
once (JAX takes a lock), and the least recently used programs are removed when it is full. ``ADOM_COMPILE_CACHE=0``
switches it off. If the user has set a cache folder in JAX, that one is used instead.
"""

import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import jax

from .files import cache_dir, processor

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
