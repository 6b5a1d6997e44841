"""Compilation by XLA on a CPU: quick to compile, or fast to run."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax

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
