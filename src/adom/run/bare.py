"""Methods without their checks, for agents too: no JAX is loaded."""

from collections.abc import Iterable
from typing import Any

from ..algorithms import Method


def bare(cls: type[Method], values: Iterable[tuple[str, Any]]) -> Method:
    """Return a method with some values of its hyper-parameters, unchecked: they may be arrays or tracers."""
    method = object.__new__(cls)
    for name, value in values:
        object.__setattr__(method, name, value)
    return method
