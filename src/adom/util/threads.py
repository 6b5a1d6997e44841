"""BLAS on one thread: on small matrices the threads of OpenBLAS wait for each other far longer than they work."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


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
    """Run BLAS on one thread; several threads may be inside at a time."""
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
