"""Methods made without their checks; agents use this too, so it does not load JAX."""

from collections.abc import Iterable
from typing import Any

from ..algorithms import Method


def bare(cls: type[Method], values: Iterable[tuple[str, Any]]) -> Method:
    """Return a method with unchecked hyper-parameters, which may be arrays or tracers."""
    method = object.__new__(cls)
    for name, value in values:
        object.__setattr__(method, name, value)
    return method
