"""Checks of single arguments."""

import math
import operator
from numbers import Real
from typing import Any

from ..errors import InputError, InputTypeError, shown


def is_number(value: Any) -> bool:
    """Return whether a value is a real number, of Python or NumPy; a boolean is none.

    Examples
    --------
    >>> [is_number(value) for value in (1, 0.5, True, "1", None, 1j)]
    [True, True, False, False, False, False]
    """
    return isinstance(value, Real) and not isinstance(value, bool)


def check_whole(name: str, value: Any, least: int = 1, remedy: str = "", most: int = 2**62) -> int:
    """Return a whole number from `least` to `most` as an int; refuse anything else, including booleans.

    Examples
    --------
    >>> check_whole("rounds", 5)
    5
    >>> check_whole("rounds", 0)
    Traceback (most recent call last):
    adom.errors.InputError: rounds must be a whole number of at least 1, got 0; e.g. rounds=100
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is not None and least <= number <= most:
        return number
    remedy = remedy or f"e.g. {name}={max(least, 100)}"
    if number is not None and number > most:
        raise InputError(f"{name} must be at most {most}, got {shown(value)}; {remedy}")
    kind = InputTypeError if number is None else InputError
    raise kind(f"{name} must be a whole number of at least {least}, got {shown(value)}; {remedy}")


def check_real(name: str, value: Any, least: float, most: float, remedy: str, *, strict: bool = False) -> float:
    """Return a finite number in [least, most], or (least, most] if `strict`, as a float; refuse anything else."""
    side = "above" if strict else "at least"
    limit = "" if math.isinf(most) else f" and at most {most:g}"
    rule = f"{name} must be a finite number {side} {least:g}{limit}, got {shown(value)}; {remedy}"
    kind, shape = getattr(getattr(value, "dtype", None), "kind", "f"), getattr(value, "shape", ())
    if isinstance(value, bool | str | bytes) or kind not in "iufV" or shape != ():
        raise InputTypeError(rule)  # text, booleans, dates and complex numbers, including NumPy's, and arrays
    try:
        number = float(value)
    except OverflowError:
        raise InputError(rule) from None
    except (TypeError, ValueError):
        raise InputTypeError(rule) from None
    if not math.isfinite(number) or number > most or number < least or (strict and number == least):
        raise InputError(rule)
    return number
