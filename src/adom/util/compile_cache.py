"""Compiled programs kept between processes: JAX's own persistent cache, in the user's cache folder.

JAX finds a program by a digest of its code, its options and the version of the compiler. The folder is also named by
the features of the processor, since machines that share a home folder may differ in them. Several processes may use
it at once (JAX takes a lock), and programs used longest ago make room when it is full.
``ADOM_COMPILE_CACHE=0`` switches it off; where JAX is told of a cache of the user's own, that one is used.
"""

import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import jax

from .cache_dir import cache_dir, processor

SIZE = 2**24
"""The most bytes of programs, about a thousand of them: JAX looks at all files whenever it writes one."""
TROUBLE = ("Error reading persistent compilation", "Error writing persistent compilation", "Cache value for key")
"""How JAX's warnings of files that it cannot use begin."""
SETTINGS: dict[str, Any] = {
    "jax_compilation_cache_max_size": SIZE,
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
}


@contextmanager
def double_precision() -> Iterator[None]:
    """Let JAX compute in float64, and keep the programs that it compiles meanwhile."""
    with jax.enable_x64(True), kept_programs():
        yield


@contextmanager
def kept_programs() -> Iterator[None]:
    """Keep the programs that are compiled meanwhile; JAX's settings are as before afterwards."""
    folder = _folder()
    if folder is None or _setting("jax_compilation_cache_dir"):  # off, of the user's own, or inside another of these
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
    """Remove the folder if JAX warns of it, instead of showing that: a full disk or a crash leaves files cut short."""
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
        import filelock  # noqa: F401  # which JAX takes its lock with

        folder = cache_dir() / f"programs-{processor()}"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (ImportError, OSError, RuntimeError):  # nothing to lock with, a folder that cannot be made, no home folder
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def _setting(name: str) -> Any:
    return getattr(jax.config, name)
