"""Texts of figures: names broken into lines that fit, legends with as many columns as fit, ticks and their labels."""

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..util.text import format_short
from .style import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

LINES = 4
"""The most lines of a name."""
KEY = 0.55
"""Inches that a legend's line, its marker and the gaps around them take in print."""
WIDE = 5.0
"""Inches above which a legend has room for two columns, however long its names are."""
FEWEST, MOST = 4, 7
"""The fewest and the most ticks of an axis."""
LADDERS = ((1, 2, 5), (1, 1.5, 2, 3, 5, 7))
"""Digits with ticks in each decade; the second list if the first gives too few."""
THOUSANDS = 1e4
"""An axis that reaches this value has thousands written with k."""


def inches_of(text: str, points: float) -> float:
    """Return the width of a line of text in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about characters that no font has, drawn as boxes
        width: float = text_to_path.get_text_width_height_descent(text, FontProperties(size=points), False)[0]
    return width / 72


def fitted(text: str, inches: float, points: float, most: int = LINES) -> list[str]:
    """Return a text broken into lines that fit; if there are too many, the start and the end are kept.

    Examples
    --------
    >>> fitted("gradient tracking with multi-consensus", 1.5, 8)
    ['gradient tracking with', 'multi-consensus']
    >>> fitted("gradient tracking with multi-consensus", 0.9, 8, most=2)
    ['gradient', '…lti-consensus']
    """
    lines = [""]
    for given in text.split():
        joined, word = f"{lines[-1]} {given}".strip(), given
        if inches_of(joined, points) <= inches:
            lines[-1] = joined
            continue
        lines += [""] if lines[-1] else []
        while inches_of(word, points) > inches:
            cut = _most(word, inches, points)
            lines[-1], word = word[:cut], word[cut:]
            lines.append("")
        lines[-1] = word
    if len(lines) <= most:
        return lines
    backwards = text[::-1]
    return [*lines[: most - 1], "…" + backwards[: _most(backwards, inches, points, "…")][::-1].strip()]


def _most(text: str, inches: float, points: float, more: str = "") -> int:
    """Return how many letters of a text fit into a line, at least one."""
    numbers = range(1, len(text) + 1)
    return max(1, bisect_right(numbers, inches, key=lambda number: inches_of(more + text[:number], points)))


def room_below(inches: float, scale: float) -> float:
    """Return the inches for a name in a legend below a figure `inches` wide."""
    return inches / (2 if inches > WIDE * scale else 1) - KEY * scale


def room_inside(axes: "Axes", scale: float) -> float:
    """Return the inches for a name in a legend inside axes."""
    width: float = axes.get_window_extent().width / axes.figure.dpi
    return width - KEY * scale


class Legend(NamedTuple):
    """A legend: names broken into lines, the number of columns, and the height in inches."""

    names: list[str]
    columns: int
    depth: float


def legend_of(names: Sequence[str], inches: float, scale: float, key: float = KEY) -> Legend:
    r"""Return the legend for names below a figure `inches` wide, drawn `scale` times as large as in print.

    It has as many columns as fit; `key` is the inches in print that a line, its marker and the gaps around them take.

    Examples
    --------
    >>> legend_of(["ADOM", "Acc-GT", "DIGing"], 3.5, 1.0)[:2]
    (['ADOM', 'Acc-GT', 'DIGing'], 3)
    >>> legend_of(["gradient tracking, accelerated, with multi-consensus and restarts", "ADOM"], 3.5, 1.0)[:2]
    (['gradient tracking, accelerated, with multi-consensus and\nrestarts', 'ADOM'], 1)
    """
    points = 7 * scale
    lines = [fitted(name, room_below(inches, scale), points) for name in names]
    widths = [key * scale + max(inches_of(line, points) for line in each) for each in lines]
    tried = (math.ceil(len(lines) / rows) for rows in range(1, len(lines) + 1))
    fits = (many for many in tried if sum(map(max, np.array_split(widths, many))) <= inches)
    columns = next(fits, 1)
    heights = [0.06 + 0.11 * len(each) for each in lines]
    depth = scale * max(sum(column) for column in np.array_split(heights, columns))
    return Legend([plain("\n".join(each)) for each in lines], columns, depth)


def keys(looks: Iterable[dict[str, Any]], names: Sequence[str]) -> list[Any]:
    """Return the entries of a legend, as many as there are names of lines."""
    from matplotlib.lines import Line2D

    return [Line2D([], [], label=name, **look) for name, look in zip(names, looks, strict=False)]


def cross(scale: float = 1.0) -> dict[str, Any]:
    """Return the look of the cross at the end of a curve that went the wrong way, as it is in a legend."""
    return {"color": "0.6", "linestyle": "", "marker": "X", "markersize": 6 * scale}


def legend_inside(axes: "Axes", scale: float) -> None:
    """Put a legend into the user's axes, no wider than these."""
    handles, labels = axes.get_legend_handles_labels()
    names = ["\n".join(fitted(label, room_inside(axes, scale), 6 * scale)) for label in labels]
    axes.legend(handles, names, fontsize="small")


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
