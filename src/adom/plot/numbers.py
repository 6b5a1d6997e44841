"""Ticks of logarithmic axes of costs and settings: their values and labels."""

import math
from typing import TYPE_CHECKING

from ..util.text import format_short

if TYPE_CHECKING:
    from matplotlib.axis import Axis

FEWEST, MOST = 4, 7
"""The fewest and the most ticks of an axis."""
LADDERS = ((1, 2, 5), (1, 1.5, 2, 3, 5, 7))
"""Digits with ticks in each decade; the second list if the first gives too few."""
THOUSANDS = 1e4
"""An axis that reaches this value has thousands written with k."""


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers from `low` to `high`: powers of ten, some of each decade, or even steps on a short axis.

    Examples
    --------
    >>> ticks(0.9, 2500), ticks(40, 1500), ticks(1, 2.4)
    ([1.0, 10.0, 100.0, 1000.0], [50.0, 100.0, 200.0, 500.0, 1000.0], [1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 2.4])
    >>> ticks(2, 12), ticks(612, 695), ticks(1e-9, 1e9)[:3]
    ([2.0, 3.0, 5.0, 7.0, 10.0], [620.0, 640.0, 660.0, 680.0], [1e-09, 1e-06, 0.001])
    """
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for ladder in LADDERS:
        found = [float(f"{digit}e{exponent}") for exponent in exponents for digit in ladder]
        found = [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(found) > MOST:
            powers = [value for value in found if math.log10(value).is_integer()]
            return powers[:: 1 + (len(powers) - 1) // MOST]
        if len(found) >= FEWEST or high <= low * (1 + 1e-9):
            return found
    size = math.floor(math.log10(high - low))
    for step in (float(f"{digit}e{exponent}") for exponent in (size, size - 1) for digit in (5, 2, 1)):
        first, last = math.ceil(low / step * (1 - 1e-9)), math.floor(high / step * (1 + 1e-9))
        found = [float(f"{number * step:.12g}") for number in range(first, last + 1)]
        if len(found) >= FEWEST:
            break
    return found


def written(value: float, largest: float) -> str:
    """Return the label of a tick; the axis's largest value decides whether thousands have a k.

    Examples
    --------
    >>> [written(value, 2e4) for value in (600, 1000, 2500, 20_000)], [written(value, 6000) for value in (0.25, 1000)]
    (['600', '1k', '2.5k', '20k'], ['0.25', '1000'])
    """
    if largest >= THOUSANDS and 999.5 <= abs(value) < THOUSANDS:
        return f"{value / 1000:.3g}k"
    return format_short(value)


def label(axis: "Axis", values: list[float], largest: float | None = None) -> None:
    """Put ticks at the values, and nowhere else."""
    top = max(values, default=0.0) if largest is None else largest
    axis.set_ticks(values, labels=[written(value, top) for value in values])
    axis.set_ticks([], minor=True)
