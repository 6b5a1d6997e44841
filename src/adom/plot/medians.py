"""Curves of many runs as one: the median over seeds, with a band from the least to the greatest."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError
from .curves import AXES, line_look, tame_records, tidy_numbers
from .style import magnification, plain, size
from .style import style as in_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..run.result import Result
    from .display import Figure

POINTS = 400
"""Points at which runs are combined."""
FLOOR = 1e-30
"""Below this a relative squared error is rounding, and drawn at this height."""
ACROSS = 3
"""The most panels side by side, unless more are asked for."""


class Band(NamedTuple):
    """A curve of several runs: where, the median, the least and the greatest."""

    at: np.ndarray
    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray


def over_seeds(curves: Sequence[tuple[np.ndarray, np.ndarray]], points: int = POINTS) -> Band:
    """Combine curves, each (where, positive values); beyond its end a curve keeps its last value.

    Examples
    --------
    >>> short, long = (np.array([0, 1]), np.array([1.0, 0.1])), (np.array([0, 1, 2]), np.array([1.0, 0.1, 0.01]))
    >>> band = over_seeds([short, long, long])
    >>> band.middle.round(4).tolist(), band.high.round(4).tolist()
    ([1.0, 0.1, 0.01], [1.0, 0.1, 0.1])
    """
    at = np.unique(np.concatenate([where for where, _ in curves]).astype(float))
    if len(at) > points:
        even = np.linspace(at[0], at[-1], points)
        early = np.geomspace(max(at[1], 1e-12), at[-1], points // 4)  # for logarithmic axes
        at = np.unique(np.concatenate([even, early]))
    rows = np.stack([np.interp(at, where, np.log10(np.maximum(values, FLOOR))) for where, values in curves])
    low, middle, high = (10.0**each for each in (rows.min(axis=0), np.median(rows, axis=0), rows.max(axis=0)))
    return Band(at, middle, low, high)


def relative_curve(run: "Result", column: str) -> tuple[np.ndarray, np.ndarray]:
    """Return where and the relative error of a run, from the start to its end or to where it grew wild."""
    history = run.columns
    error, start = history[run.measure].astype(float), float(run.provenance.get("start_error") or np.nan)
    stop = tame_records(error, start) if run.lost else len(error)
    known = np.isfinite(error[:stop])
    where, values = history[column].astype(float)[:stop][known], error[:stop][known] / start
    if len(where) and where[0] == 0:
        return where, values
    return np.append(0.0, where), np.append(1.0, values)


def median_curve(runs: "Sequence[Result]", column: str = "round") -> Band:
    """Return the relative errors of runs as one curve.

    A run that has ended keeps its last value. Where most runs diverged or were growing, the curve ends where the one
    in the middle does.
    """
    curves = [relative_curve(run, column) for run in runs]
    band = over_seeds(curves)
    if not mostly(run.lost for run in runs):
        return band
    end = float(np.median([where[-1] for where, _ in curves]))
    return Band(*(each[band.at <= end] for each in band))


def mostly(given: Iterable[bool]) -> bool:
    """Return whether more than half are true."""
    values = list(given)
    return 2 * sum(values) > len(values)


def median_figure(
    panels: "Mapping[str, Mapping[str, Sequence[Result]]]",
    *,
    axis: str = "round",
    across: int = ACROSS,
    ax: "Axes | None" = None,
    style: str | None = None,
) -> "Figure":
    """Draw relative errors of methods over seeds, in a panel for each problem and network.

    Parameters
    ----------
    panels : mapping
        Title -> label of a method -> its runs, one for each seed.
    axis : str
        "round", "gradients" (per node), "floats_sent" or "seconds".
    across : int
        The most panels side by side; one in a column of text.
    ax : matplotlib axes, optional
        To draw the only panel into; by default a figure of its own.
    style : str, optional
        "column", "page" or "slide"; by default a column for one panel and a page for several.
    """
    if axis not in AXES:
        raise InputError(f"unknown axis {axis!r}; use one of {', '.join(AXES)}")
    if not any(panels.values()):
        raise InputError("there are no runs to draw; let the comparison finish one at least")
    with in_style(style):
        from .display import Figure

        scale = magnification(style)
        labels = list(dict.fromkeys(label for methods in panels.values() for label in methods))
        looks = {label: line_look(number, scale) for number, label in enumerate(labels)}
        if ax is not None:
            (methods,) = panels.values()
            _draw(ax, methods, axis, looks, scale)
            ax.set_ylabel("relative error")
            ax.legend(fontsize="small")
            drawn: Figure = ax.figure  # type: ignore[assignment]  # of a subfigure, the figure is not asked for
            return drawn
        width, height = size(style, len(panels))
        across = min(len(panels), 1 if style == "column" else across)
        down = math.ceil(len(panels) / across)
        columns = max(1, int(width / scale / (0.55 + 0.062 * max(map(len, labels)))))
        depth = 0.17 * scale * math.ceil(len(labels) / columns)
        figure = Figure(figsize=(width, (height if down == 1 else 0.85 * height * down) + depth), layout="constrained")
        grid = figure.subplots(down, across, sharey=True, squeeze=False)
        for place, (title, methods) in zip(grid.flat, panels.items(), strict=False):
            _draw(place, methods, axis, looks, scale)
            place.set_title(plain(title), fontsize=8 * scale)
        for place in grid.flat[len(panels) :]:
            place.set_axis_off()
        for place in grid[:, 0]:
            place.set_ylabel("relative error")
        figure.legend(handles=_legend(panels, looks, scale), loc="outside lower center", ncols=columns, frameon=False)
    return figure


def _legend(panels: Any, looks: dict[str, dict[str, Any]], scale: float) -> list[Any]:
    from matplotlib.lines import Line2D

    entries = [Line2D([], [], label=plain(label), **look) for label, look in looks.items()]
    runs = [run for methods in panels.values() for many in methods.values() for run in many]
    crossed = " or ".join(sorted({run.status for run in runs if run.lost}))
    if crossed:
        entries.append(Line2D([], [], color="0.6", linestyle="", marker="X", markersize=6 * scale, label=crossed))
    return entries


def _draw(
    axes: "Axes", methods: "Mapping[str, Sequence[Result]]", column: str, looks: dict[str, Any], scale: float
) -> None:
    """Draw one panel."""
    axes.set_yscale("log")
    for number, (label, runs) in enumerate(methods.items()):
        band, look = median_curve(runs, column), looks[label]
        spaced = {"markevery": (0.02 + 0.25 * number / len(methods), 0.25)}
        axes.plot(band.at, band.middle, label=plain(label), **look | spaced)
        if len(runs) > 1:
            axes.fill_between(band.at, band.low, band.high, color=look["color"], alpha=0.15, linewidth=0)
        if mostly(run.lost for run in runs):
            cross: dict[str, Any] = {"marker": "X", "markersize": 6 * scale, "clip_on": False, "zorder": 5}
            axes.plot(band.at[-1], band.middle[-1], color=look["color"], **cross)
    axes.set_xlabel(AXES[column].split(",")[0])
    axes.grid(visible=True, which="major")
    axes.margins(x=0.01)
    tidy_numbers(axes, column, 6 if scale == 1 else 4)
