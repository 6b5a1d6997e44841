"""A quick start: modules are loaded without garbage collection in between."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

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
