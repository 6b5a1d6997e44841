"""How this process runs: BLAS on one thread, and a quick start without garbage collection."""

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

FRESH = 60_000
"""Most objects in a process that has just started."""
_PROCESS = {"fresh": True}


@contextmanager
def loading() -> Iterator[None]:
    """Pause garbage collection while modules are loaded: it would only scan objects that stay.

    In a process that has just started, all objects are then frozen, so that later collections, including those at exit,
    skip several hundred thousand objects of libraries. A process with more objects, such as a notebook, may hold some
    that become garbage later, so there nothing is frozen.
    """
    if not gc.isenabled():  # inside another `loading`, or switched off by the user
        yield
        return
    fresh = _still_fresh()
    gc.disable()
    try:
        yield
    finally:
        if fresh:
            gc.freeze()
        gc.enable()


def _still_fresh() -> bool:
    """Return whether the process holds few objects; once it held many, it is not counted again, which is slow."""
    _PROCESS["fresh"] = _PROCESS["fresh"] and len(gc.get_objects()) <= FRESH
    return _PROCESS["fresh"]


@cache
def _controller(scipy: bool) -> Any:
    """Return the BLAS libraries in this process; SciPy brings its own once it is loaded."""
    import threadpoolctl

    return threadpoolctl.ThreadpoolController()


class _Limit:
    """The number of threads inside `one_thread`, and the limit, which the last one to leave lifts."""

    lock = threading.Lock()
    inside = 0
    limiter: Any = None


@contextmanager
def one_thread() -> Iterator[None]:
    """Run BLAS on one thread; several threads may be inside at a time.

    On small matrices the threads of OpenBLAS wait for each other far longer than they work.
    """
    with _Limit.lock:
        if _Limit.inside == 0:
            _Limit.limiter = _controller("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas")
        _Limit.inside += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.inside -= 1
            if _Limit.inside == 0:
                _Limit.limiter.restore_original_limits()
