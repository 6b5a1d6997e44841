"""Figures of comparisons: medians over seeds with a band from the least to the greatest, and performance profiles."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..util.columns import AXES
from .curves import DASHES, line_look, tame_records, tidy_numbers
from .labels import KEY, cross, fitted, keys, legend_inside, legend_of, ticks
from .labels import label as label_axis
from .style import COLOURS, check_axes, magnification, plain, size
from .style import style as in_style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ..run.result import Result
    from .display import Figure

POINTS = 400
"""Points at which runs are combined."""
FLOOR = 1e-30
"""Relative squared errors below this are rounding, and are drawn at this height."""
TICK = 0.4
"""Inches of a number below an axis."""
ACROSS, MOST_ACROSS = 3, 4
"""Panels in a row if there are many, and the most that make a single row."""
LEAST_WIDTH = 1.3
"""Inches of the narrowest panel."""
Place = tuple[str, str]
"""Names of a problem and a network."""


class Band(NamedTuple):
    """Several curves as one: positions, median, least and greatest."""

    at: np.ndarray
    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray


def over_seeds(curves: Sequence[tuple[np.ndarray, np.ndarray]], points: int = POINTS) -> Band:
    """Return curves combined, each given as (positions, positive values); beyond its end a curve keeps its last value.

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
    """Return positions and relative errors of a run from its start; a lost run ends where it outgrows the start."""
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

    A run that has ended keeps its last value. If most runs diverged or were growing, the curve ends at the median of
    the runs' ends.
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
    panels: "Mapping[Place, Mapping[str, Sequence[Result]]]",
    *,
    axis: str = "round",
    ax: "Axes | None" = None,
    style: str | None = None,
) -> "Figure":
    """Draw relative errors of methods over seeds, in a panel for each problem and network.

    Parameters
    ----------
    panels : mapping
        (problem, network) -> label of a method -> its runs, one for each seed. With several problems and several
        networks, each has a row or a column. In style "column" all panels are below each other.
    axis : str
        "round" or another cost in `Result.history`; "all" for a panel of each.
    ax : matplotlib axes, optional
        Axes for a single panel; by default a new figure is made.
    style : str, optional
        "column", "page" or "slide"; by default a column for one panel and a page for several.
    """
    check_axes(ax)
    if axis not in AXES and axis != "all":
        raise InputError(f"unknown axis {axis!r}; use one of {', '.join(AXES)}, or 'all'")
    if ax is not None and axis == "all":
        raise InputError("ax takes one panel, but axis='all' draws several; name one axis, or leave ax out")
    if not any(panels.values()):
        raise InputError("there are no runs to draw; let the comparison finish one at least")
    with in_style(style):
        scale = magnification(style)
        labels = list(dict.fromkeys(label for methods in panels.values() for label in methods))
        looks = {label: line_look(number, scale) for number, label in enumerate(labels)}
        if ax is not None:
            (methods,) = panels.values()
            _draw(ax, methods, axis, looks, scale)
            tidy_numbers(ax, axis, 6 if scale == 1 else 4)
            ax.set_ylabel("relative error")
            legend_inside(ax, scale)
            drawn: Figure = ax.figure  # type: ignore[assignment]  # may be a subfigure
            return drawn
        sheet = _every_axis(list(panels), style) if axis == "all" else _arranged(list(panels), axis, style)
        return _sheet(panels, sheet, looks, style)


class Sheet(NamedTuple):
    """Panels in rows and columns: the position of each (place, axis), titles by position, and names of the rows."""

    places: dict[tuple[Place, str], tuple[int, int]]
    titles: dict[tuple[int, int], str]
    rows: Sequence[str] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        down, across = zip(*self.places.values(), strict=True)
        return 1 + max(down), 1 + max(across)


def _every_axis(keys: Sequence[Place], style: str | None) -> Sheet:
    """Return positions of panels, one for each place and horizontal axis; several places have a row each."""
    across = 1 if style == "column" else 2 if len(keys) == 1 else len(AXES)
    places = [divmod(number, across) for number in range(len(keys) * len(AXES))]
    rows = [" on ".join(key) for key in keys] if across == len(AXES) else []
    below = [" on ".join(key) for key in keys for _ in AXES] if across == 1 and len(keys) > 1 else []
    return Sheet(dict(zip(product(keys, AXES), places, strict=True)), dict(zip(places, below, strict=False)), rows)


def _arranged(keys: Sequence[Place], axis: str, style: str | None) -> Sheet:
    """Return positions and titles of panels, one for each place.

    Examples
    --------
    >>> keys = [(problem, network) for problem in ("a", "b") for network in ("ring", "star", "radio")]
    >>> sheet, narrow = _arranged(keys, "round", None), _arranged(keys, "round", "column")
    >>> sheet.shape, sheet.titles, sheet.rows
    ((2, 3), {(0, 0): 'ring', (0, 1): 'star', (0, 2): 'radio'}, ['a', 'b'])
    >>> narrow.titles[4, 0], _arranged(keys[:3], "round", None).titles[0, 1]
    ('b on star', 'star')
    >>> more = [(problem, network) for problem in ("a", "b") for network in "uvwxy"]
    >>> _arranged(more, "round", None).shape, _arranged(more, "round", None).rows
    ((5, 2), ['u', 'v', 'w', 'x', 'y'])
    """
    problems, networks = (list(dict.fromkeys(key[side] for key in keys)) for side in (0, 1))
    if len(problems) > 1 and len(networks) > 1 and style != "column":
        turned = len(networks) > MOST_ACROSS and len(problems) < len(networks)
        rows, columns = (networks, problems) if turned else (problems, networks)
        at = [(key[1], key[0]) if turned else key for key in keys]
        places = [(rows.index(row), columns.index(column)) for row, column in at]
        heads = {(0, number): column for number, column in enumerate(columns)}
        return Sheet({(key, axis): place for key, place in zip(keys, places, strict=True)}, heads, rows)
    across = 1 if style == "column" else len(keys) if len(keys) <= MOST_ACROSS else ACROSS
    several = [len(problems) > 1, len(networks) > 1]
    titles = [" on ".join(name for name, some in zip(key, several, strict=True) if some) for key in keys]
    places = [divmod(number, across) for number in range(len(keys))]
    at_axis = {(key, axis): place for key, place in zip(keys, places, strict=True)}
    return Sheet(at_axis, dict(zip(places, titles, strict=True)))


def _sheet(
    panels: "Mapping[Place, Mapping[str, Sequence[Result]]]",
    sheet: Sheet,
    looks: dict[str, dict[str, Any]],
    style: str | None,
) -> "Figure":
    """Draw all panels, with a legend below them."""
    from .display import Figure

    scale, (width, height), (down, across) = magnification(style), size(style, len(sheet.places)), sheet.shape
    width = max(width, scale * (LEAST_WIDTH * across + 0.5))
    legend = legend_of([*looks, *_crossed(panels)], width, scale)
    body = height * down * (1.0 if down == 1 else 0.85 if down == 2 or not sheet.rows else 0.68)
    figure = Figure(figsize=(width, body + legend.depth), layout="constrained")
    grid = figure.subplots(down, across, sharey=True, squeeze=False)
    room = (width - 0.5 * scale) / across - 0.1 * scale
    rows = [fitted(name, body / down - 0.4 * scale, 8 * scale) for name in sheet.rows] or [[]] * down
    for place, lines in zip(grid[:, 0], rows, strict=True):
        place.set_ylabel("\n".join([*map(plain, lines), "relative error"]))
    room = (width - scale * (0.5 + 0.13 * max(map(len, rows)))) / across - 0.1 * scale
    for (key, axis), at in sheet.places.items():
        place = grid[at]
        _draw(place, panels[key], axis, looks, scale)
        tidy_numbers(place, axis, max(2, int(room / scale / TICK)))
        lowest = not sheet.rows or at[0] == down - 1
        place.set_xlabel("\n".join(fitted(place.get_xlabel(), room, 8 * scale)) if lowest else "")
    for at in {*np.ndindex(down, across)} - {*sheet.places.values()}:
        grid[at].tick_params(which="both", left=False, bottom=False, labelleft=False, labelbottom=False)
        grid[at].spines[:].set_visible(False)
    for at, title in sheet.titles.items():
        grid[at].set_title(plain("\n".join(fitted(title, room, 8 * scale))), fontsize=8 * scale)
    handles = keys([*looks.values(), cross(scale)], legend.names)
    figure.legend(handles=handles, loc="outside lower center", ncols=legend.columns, frameon=False)
    return figure


def _crossed(panels: Any) -> list[str]:
    """Return the legend's names of crosses: one, or none without crosses."""
    runs = [run for methods in panels.values() for many in methods.values() for run in many]
    return [" or ".join(sorted({run.status for run in runs if run.lost}))] if any(run.lost for run in runs) else []


def _draw(
    axes: "Axes", methods: "Mapping[str, Sequence[Result]]", column: str, looks: dict[str, Any], scale: float
) -> None:
    """Draw one panel."""
    lines = [(looks[label] | {"label": plain(label)}, runs) for label, runs in methods.items()]
    draw_medians(axes, lines, column, ends={"markersize": 6 * scale, "clip_on": False})
    axes.set_xlabel(AXES[column].split(",")[0])
    axes.grid(visible=True, which="major")
    axes.margins(x=0.01)


def draw_medians(
    axes: "Axes",
    lines: "Sequence[tuple[dict[str, Any], Sequence[Result]]]",
    column: str = "round",
    *,
    ends: dict[str, Any],
    crossed: "Callable[[Result], bool]" = lambda run: run.lost,
) -> None:
    """Draw lines, each a look and the runs of all seeds: the median on a logarithmic axis, and a band around it.

    A line ends in a cross, with the properties `ends`, if most of its runs are `crossed`.
    """
    axes.set_yscale("log")
    for number, (look, runs) in enumerate(lines):
        band = median_curve(runs, column)
        spaced = {"markevery": (0.02 + 0.25 * number / len(lines), 0.25)}  # so that markers do not hide each other
        axes.plot(band.at, band.middle, **look | spaced)
        if len(runs) > 1:
            axes.fill_between(band.at, band.low, band.high, color=look["color"], alpha=0.15, linewidth=0)
        if mostly(map(crossed, runs)):
            axes.plot(band.at[-1], band.middle[-1], color=look["color"], marker="X", zorder=5, **ends)


FEW = 8
"""The most methods whose names go below the axes."""
BESIDE = 0.4
"""The largest part of a figure's width for names beside the axes."""


def profile_figure(
    profile: "pd.DataFrame", *, cost: str = "rounds", ax: "Axes | None" = None, style: str | None = None
) -> "Figure":
    """Draw a performance profile: the higher a curve, the more instances; the further left, the cheaper.

    Parameters
    ----------
    profile : pandas.DataFrame
        Result of `adom.study.profiles.performance_profile`: indexed by ratio, one column per method.
    cost : str
        Name of the cost, for the axis.
    ax : matplotlib axes, optional
        Axes to draw into; by default a new figure is made.
    style : str, optional
        "column", "page" or "slide"; see `adom.styles`.
    """
    check_axes(ax)
    with in_style(style):
        from .display import Figure

        scale, names = magnification(style), [str(name) for name in profile.columns]
        if ax is not None:
            _draw_profile(ax, profile, names, cost, scale)
            legend_inside(ax, scale)
            drawn: Figure = ax.figure  # type: ignore[assignment]  # may be a subfigure
            return drawn
        width, height = size(style)
        if len(names) <= FEW:
            legend = legend_of(names, width, scale)
            figure = Figure(figsize=(width, height + legend.depth), layout="constrained")
            _draw_profile(figure.subplots(), profile, legend.names, cost, scale)
            figure.legend(loc="outside lower center", ncols=legend.columns, frameon=False)
            return figure
        broken = [fitted(name, BESIDE * width - KEY * scale, 6 * scale) for name in names]
        lines = sum(map(len, broken))  # beside the axes, where they cover nothing
        figure = Figure(figsize=(width, height + (0.2 + 0.1 * max(0, lines - FEW)) * scale), layout="constrained")
        axes = figure.subplots()
        _draw_profile(axes, profile, [plain("\n".join(each)) for each in broken], cost, scale)
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5), labelspacing=0.25)
        return figure


def _draw_profile(axes: "Axes", profile: "pd.DataFrame", names: Sequence[str], cost: str, scale: float) -> None:
    """Draw the curves with these names."""
    ratios = profile.index.to_numpy(dtype=float)
    end = max(float(ratios[-1]) * 1.1, 2.0)  # so that the last step shows
    for number, name in enumerate(names):
        shares = profile.iloc[:, number].to_numpy(dtype=float)
        look = {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number % len(DASHES)]}
        axes.step([*ratios, end], [*shares, shares[-1]], where="post", label=name, linewidth=1.2 * scale, **look)
    axes.set_xscale("log")
    axes.set_xlim(1.0, end)
    label_axis(axes.xaxis, ticks(1.0, end))
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel(f"{cost} over those of the best method")
    axes.set_ylabel("share of instances solved")
    axes.grid(visible=True, which="major")
