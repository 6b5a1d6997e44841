"""Checks at the door: every argument of a generator passes through one of these."""

import math
import operator
from typing import Any

from adom.errors import InputError, InputTypeError

MOST_LINKS = 200_000_000
"""The most links of one graph, and of all graphs together where they have to be held (16 bytes each)."""


def whole(name: str, value: Any, least: int, remedy: str) -> int:
    """Return `value` as an int that is at least `least`, or say what is wrong with it."""
    rule = f"{name} must be a whole number, {least} or more, got {value!r}; {remedy}"
    if isinstance(value, bool):
        raise InputTypeError(rule)
    try:
        number = operator.index(value)
    except TypeError:
        raise InputTypeError(rule) from None
    if number < least:
        raise InputError(rule)
    return number


def real(name: str, value: Any, least: float, most: float, remedy: str, *, strict: bool = False) -> float:
    """Return `value` as a float in [least, most] (in (least, most] if `strict`), or say what is wrong."""
    side = "above" if strict else "at least"
    limit = "" if math.isinf(most) else f" and at most {most:g}"
    rule = f"{name} must be a finite number {side} {least:g}{limit}, got {value!r}; {remedy}"
    if isinstance(value, bool | str):
        raise InputTypeError(rule)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputTypeError(rule) from None
    if not math.isfinite(number) or number > most or number < least or (strict and number == least):
        raise InputError(rule)
    return number


def node_count(nodes: Any, least: int = 2) -> int:
    """Return the number of nodes, at least `least`."""
    number = whole("nodes", nodes, least, "e.g. nodes=100")
    if number > MOST_LINKS:
        raise InputError(
            f"nodes must be at most {MOST_LINKS:.0e}, more do not fit in memory, got {number}; e.g. nodes=100"
        )
    return number


def graph_count(graphs: Any) -> int:
    """Return the number of graphs, at least one."""
    return whole("graphs", graphs, 1, "e.g. graphs=1000")


def seed_number(seed: Any) -> int:
    """Return the seed, an int of zero or more."""
    return whole("seed", seed, 0, "e.g. seed=0")


def link_count(expected: float, what: str, remedy: str) -> None:
    """Refuse links that would not fit in memory."""
    if expected > MOST_LINKS:
        raise InputError(
            f"{what} would have about {expected:.2g} links in memory, more than the {MOST_LINKS:.0e} that fit; {remedy}"
        )
