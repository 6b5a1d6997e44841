"""BLAS on one thread: on small matrices the threads of OpenBLAS wait for each other far longer than they work."""

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@cache
def _controller() -> Any:
    """Return what limits the threads of BLAS; None without threadpoolctl, which comes with scikit-learn."""
    importlib.import_module("scipy.linalg")  # it brings a BLAS of its own, which must be there to be found
    try:
        return importlib.import_module("threadpoolctl").ThreadpoolController()
    except ImportError:
        return None


class _Limit:
    """How many are inside `one_thread`, and what ends the limit when the last one leaves."""

    lock = threading.Lock()
    inside = 0
    limiter: Any = None


@contextmanager
def one_thread() -> Iterator[None]:
    """Return a context in which BLAS runs on one thread; graphs may be drawn by several threads at a time."""
    with _Limit.lock:
        if _Limit.inside == 0 and (control := _controller()) is not None:
            _Limit.limiter = control.limit(limits=1, user_api="blas")
        _Limit.inside += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.inside -= 1
            if _Limit.inside == 0 and _Limit.limiter is not None:
                _Limit.limiter.restore_original_limits()
                _Limit.limiter = None
