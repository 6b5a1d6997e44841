"""Checks of single arguments, for every room."""

import operator
from typing import Any

from ..errors import InputError, InputTypeError, shown


def check_whole(name: str, value: Any, least: int = 1, remedy: str = "", most: int | None = None) -> int:
    """Return a whole number from `least` to `most` as an int; refuse anything else, True and False too.

    Examples
    --------
    >>> check_whole("rounds", 5)
    5
    >>> check_whole("rounds", 0)
    Traceback (most recent call last):
    adom.errors.InputError: rounds must be a whole number of at least 1, got 0; e.g. rounds=100
    """
    remedy = remedy or f"e.g. {name}={max(least, 100)}"
    rule = f"{name} must be a whole number of at least {least}, got {shown(value)}; {remedy}"
    if isinstance(value, bool):
        raise InputTypeError(rule)
    try:
        number = operator.index(value)
    except TypeError:
        raise InputTypeError(rule) from None
    if number < least:
        raise InputError(rule)
    if most is not None and number > most:
        raise InputError(f"{name} must be at most {most}, got {shown(value)}; {remedy}")
    return number
