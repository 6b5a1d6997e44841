"""Methods that a run makes of others: with more around them, or without their checks."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..algorithms import Method


def bare(cls: type[Method], values: Iterable[tuple[str, Any]]) -> Method:
    """Return a method with unchecked hyper-parameters, which may be arrays or tracers."""
    method = object.__new__(cls)
    for name, value in values:
        object.__setattr__(method, name, value)
    return method


@dataclass(frozen=True)
class Wrapped(Method):
    """A method around another one, whose state is the field `inner` of its own state.

    Parameters
    ----------
    inner : Method
    """

    inner: Any

    @property
    def rounds_per_step(self) -> Any:  # type: ignore[override]  # a constant of other methods
        """The rounds of a step; None if they vary."""
        return self.inner.rounds_per_step

    @property
    def directed(self) -> Any:  # type: ignore[override]  # likewise
        """Whether it runs on directed graphs."""
        return self.inner.directed

    def renewed(self, state: Any, k: Any) -> Any:
        """Renew the inner method's state."""
        return state._replace(inner=self.inner.renewed(state.inner, k))

    def width(self, dim: int) -> int:
        """Return the numbers of a row that the inner method sends."""
        return int(self.inner.width(dim))

    def rounds_of_step(self, k: Any) -> Any:
        """Return the rounds of the inner method's step."""
        return self.inner.rounds_of_step(k)


def wrapped(method: Method) -> list[type[Method]]:
    """Return the classes of a method and of the methods that it wraps, outermost first."""
    return [type(method), *(wrapped(method.inner) if isinstance(method, Wrapped) else [])]


def plain(method: Method) -> Method:
    """Return the innermost method, without the wrappers that a run adds."""
    while isinstance(method, Wrapped):
        method = method.inner
    return method
