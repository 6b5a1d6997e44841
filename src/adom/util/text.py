"""Numbers as text for people, and data ready for JSON. Uses the standard library only."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

SUPERSCRIPTS = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺")


def format_number(value: Any, digits: int = 3, separator: str = ",") -> str:
    """Write a number with separators of thousands or to `digits` digits; other values as their text.

    Examples
    --------
    >>> format_number(1234567), format_number(0.1 + 0.2), format_number(3.21987e-9), format_number(30.7154, digits=4)
    ('1,234,567', '0.3', '3.22e-09', '30.72')
    >>> format_number(3760.0), format_number(float("nan")), format_number("gd:1")
    ('3,760', '–', 'gd:1')
    >>> format_number(1234.6, separator=""), format_number(float("inf"))
    ('1235', 'inf')
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return str(value)
    if isinstance(value, Integral):
        return f"{int(value):,}".replace(",", separator)
    number = float(value)
    if math.isnan(number):
        return "–"
    whole = 999.5 <= abs(number) < 10**7
    return f"{number:,.0f}".replace(",", separator) if whole else f"{number:.{digits}g}"


def format_short(value: float) -> str:
    """Write a number in at most seven characters, for counts, times and errors in tables.

    Examples
    --------
    >>> format_short(987), format_short(12_345), format_short(1_234_567_890), format_short(7.25)
    ('987', '12.3k', '1.23G', '7.25')
    >>> format_short(1e-10), format_short(3.21e-11), format_short(float("nan"))
    ('1e-10', '3.2e-11', '-')
    >>> format_short(1412.5), format_short(999.6), format_short(9999.9), format_short(999_950), format_short(-0.5)
    ('1412', '1000', '10k', '1M', '-0.5')
    """
    if not math.isfinite(value):
        return "-"
    if 0 < abs(value) < 1e-3:
        return f"{value:.1e}".replace(".0e", "e")
    if abs(value) < 9999.5:
        return f"{value:.0f}" if value == int(value) or abs(value) >= 999.5 else f"{value:.3g}"
    value = float(f"{value:.3g}")
    factor, unit = next(pair for pair in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")) if abs(value) >= pair[0])
    return f"{value / factor:.3g}{unit}"


def format_bytes(count: float) -> str:
    """Write a number of bytes.

    Examples
    --------
    >>> format_bytes(512), format_bytes(34_000_000), format_bytes(1.2e16)
    ('512 B', '34.0 MB', '12000.0 TB')
    """
    power = next((power for power in range(4) if count < 1000 ** (power + 1)), 4)
    return f"{count / 1000**power:.1f} {('B', 'kB', 'MB', 'GB', 'TB')[power]}" if power else f"{count:.0f} B"


def format_duration(seconds: float) -> str:
    """Write a duration.

    Examples
    --------
    >>> format_duration(42), format_duration(300), format_duration(7000)
    ('42 s', '5 min', '1 h 57 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def format_power(exponent: int) -> str:
    """Write a power of ten.

    Examples
    --------
    >>> format_power(-12)
    '10⁻¹²'
    """
    return f"10{str(exponent).translate(SUPERSCRIPTS)}"


def format_exact(value: float) -> str:
    """Write the shortest text that reads back as the same number.

    Examples
    --------
    >>> format_exact(1.0), format_exact(0.1), format_exact(-2.5e-300), format_exact(1 / 3)
    ('1', '0.1', '-2.5e-300', '0.3333333333333333')
    """
    return repr(value).removesuffix(".0")


def format_count(count: int, noun: str) -> str:
    """Write a count and its noun.

    Examples
    --------
    >>> format_count(1, "run"), format_count(12345, "run")
    ('1 run', '12,345 runs')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def finite_or_none(value: float) -> float | None:
    """Return a finite number, or None."""
    return value if math.isfinite(value) else None


def json_ready(value: Any, of_float: Callable[[float], Any] = finite_or_none) -> Any:
    """Return data ready for JSON: arrays as lists, numbers that are not finite as None.

    Examples
    --------
    >>> import numpy as np
    >>> json_ready({"a": np.float64(2), "b": (1, float("inf")), "c": np.arange(2)})
    {'a': 2.0, 'b': [1, None], 'c': [0, 1]}
    """
    if isinstance(value, Mapping):
        return {str(name): json_ready(item, of_float) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item, of_float) for item in value]
    if hasattr(value, "tolist"):
        return json_ready(value.tolist(), of_float)
    return of_float(value) if isinstance(value, float) else value


def numbered(names: Sequence[str]) -> list[str]:
    """Return names with a number after those that occur more than once.

    Examples
    --------
    >>> numbered(["a", "b", "a"])
    ['a #1', 'b', 'a #2']
    """
    often, seen = Counter(names), Counter[str]()
    distinct = []
    for name in names:
        seen[name] += 1
        distinct.append(f"{name} #{seen[name]}" if often[name] > 1 else name)
    return distinct
