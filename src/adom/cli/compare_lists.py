"""Lists that a comparison or a sweep runs over: methods, splits, networks, seeds and settings."""

from typing import Any

from ..algorithms import COMPARED, METHODS
from ..errors import InputError
from .own_code import name_of
from .settings import CompareTable, SweepTable

ALL = "all"
NAMES = ("splits", "networks")
"""Settings of a comparison that are comma-separated names."""


def parts(text: str | None) -> list[str]:
    """Return the names in a comma-separated text."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def once(flag: str, names: list[str]) -> list[str]:
    """Return names; refuse one that is given twice."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{flag} names {twice!r} twice; leave one out")
    return names


def methods(text: str | None) -> list[str]:
    """Return the names of a comparison's methods."""
    if text is None or text.strip().lower() == ALL:
        return [*(COMPARED if text is None else METHODS)]
    names = once("--methods", [name_of(part) for part in parts(text)])
    if not names:
        raise InputError(f"--methods {text!r} names no method; known: {', '.join(METHODS)}")
    return names


def uncovered(table: CompareTable | SweepTable, earlier: CompareTable | SweepTable) -> list[str]:
    """Return the names of the lists in which an earlier table has values that this one lacks.

    Examples
    --------
    >>> few, many = CompareTable(methods="adom", seeds=2), CompareTable(methods="adom,apm", seeds=3)
    >>> uncovered(many, few), uncovered(few, many), uncovered(few, few)
    ([], ['methods', 'seeds'], [])
    >>> half, two = SweepTable(factors={"eta": 0.5}), SweepTable(factors={"eta": [0.5, 1]})
    >>> uncovered(two, half), uncovered(SweepTable(factors={"eta": 0.5, "tau": 1}), half)
    ([], ['factors'])
    """
    axes, old = _axes(table), _axes(earlier)
    return [name for name in axes if not _covers(axes[name], old[name])]


def _axes(table: CompareTable | SweepTable) -> dict[str, Any]:
    """Return the lists of a table; None for those that were not given."""
    if isinstance(table, SweepTable):
        return vars(table)
    given = {name: None if text is None else parts(text) for name, text in vars(table).items() if name in NAMES}
    return {"methods": methods(table.methods), "seeds": list(range(table.seeds or 1)), **given}


def _covers(axes: Any, earlier: Any) -> bool:
    if isinstance(axes, dict) and isinstance(earlier, dict):
        return axes.keys() == earlier.keys() and all(_covers(axes[name], earlier[name]) for name in axes)
    if axes is None or earlier is None:
        return axes is earlier
    return all(value in _list(axes) for value in _list(earlier))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
