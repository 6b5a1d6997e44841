"""A quick start: modules are loaded without collections of garbage in between."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

FRESH = 60_000
"""The most objects in a process that has done little but start."""
_PROCESS = {"fresh": True}


@contextmanager
def loading() -> Iterator[None]:
    """Pause the collector of garbage while modules are loaded: it would only walk over objects that stay.

    In a process that has just started, everything there is now is set aside for good. That spares all later
    collections, and the last ones as the process ends, a walk over several hundred thousand objects of libraries. A
    process with more in it, a notebook say, may hold objects that become garbage later, so there nothing is set aside.
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
    """Return whether the process holds few objects; one that has held many is not counted again, which takes long."""
    _PROCESS["fresh"] = _PROCESS["fresh"] and len(gc.get_objects()) <= FRESH
    return _PROCESS["fresh"]
