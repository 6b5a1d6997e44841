"""How XLA compiles a program on a CPU: quickly, or to be as fast as it can."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax

QUICK = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}
"""XLA's older way of making loops, in one piece: half the time to compile, for the same bits."""
TRIED = (0, 11)
"""The version of jaxlib from which on these options have not been tried; one that it does not know is an error."""

MOST = 256
"""Programs that a function keeps. Each is mapped into memory in some 30 pieces, and Linux allows a process 65,530."""


def compiled(function: Callable[..., Any], *, quick: bool, **how: Any) -> Any:
    """Return `jax.jit` of a function; `quick` where a small program is worth less time than compiling it takes."""
    return jax.jit(function, compiler_options=QUICK if quick and _known() else None, **how)


def forget_many(*functions: Any) -> None:
    """Make functions forget their programs once these are many: a process that lives long meets many shapes."""
    for function in functions:
        if function._cache_size() > MOST:
            function.clear_cache()


@cache
def _known() -> bool:
    from jaxlib.version import __version__

    return tuple(map(int, __version__.split(".")[:2])) < TRIED and jax.default_backend() == "cpu"
