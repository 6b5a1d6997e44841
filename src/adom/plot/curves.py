"""Curves of one or many runs against rounds, gradients, numbers sent or time."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError, InputTypeError
from ..run.endings import LOST
from ..run.result import Result
from .style import COLOURS, magnification, size
from .style import style as in_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .display import Figure

AXES = {
    "round": "communication rounds",
    "gradients": "gradients per node",
    "floats_sent": "numbers sent over all links",
    "seconds": "time (s), without compilation and metrics",
}
"""What a convergence figure may be drawn against, and how the axis is then labelled."""

DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.2, 1, 1.2)))
LIGHTNESS = (0.0, 0.1, 0.3, 0.2)
"""The more of the paper a line style leaves free, the higher it lies, so that curves that coincide all show."""
MARKERS = ("o", "s", "^", "D", "v", "P", "<", "*", ">", "h", "d")
THIN = (0, (4, 2))
GROWTH = 1e4
"""Growth over the start at which a diverging curve is cut off, so that it does not flatten the others."""
SPREAD = 30
"""How much farther the longest curve may reach than the shortest before the axis becomes logarithmic."""


class Look(NamedTuple):
    """How the curve of one run is drawn."""

    colour: str
    dash: Any
    marker: str | None = None
    scale: float = 1.0


def convergence(
    results: Sequence[Result],
    *,
    axis: str | None = "round",
    consensus: bool = True,
    labels: Sequence[str] | None = None,
    style: str | None = None,
) -> "Figure":
    """Draw error (solid) and consensus (thin, dashed) of one or more runs on a logarithmic scale.

    A run that diverged or was growing ends in a cross, at the last record before it outgrew its start by a factor of
    10,000 or ceased to be finite. Values that a logarithm does not take are left out. Where some runs reach 30 times
    as far along the horizontal axis as others, that axis is logarithmic too.

    Parameters
    ----------
    results : sequence of Result
    axis : str, optional
        "round", "gradients" (per node), "floats_sent" or "seconds"; "all" or None: a panel for each of them.
    consensus : bool
        Without it only the errors are drawn, told apart by colour, line style and marker: for many runs.
    labels : sequence of str, optional
        What the legend calls the runs; by default the methods' titles. Parameters and oracle are added where
        the runs differ in them, and stand above the legend where they do not.
    style : str, optional
        "column", "page" or "slide": how wide, and how large its text; by default a column for one panel and a page
        for several. See `adom.styles`.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[2.0]], [[4.0]]], [[2.0], [0.0]])
    >>> result = adom.solve(problem, adom.networks.path(2), rounds=20)
    >>> convergence([result], axis="gradients").axes[0].get_xlabel()
    'gradients per node'
    >>> len(convergence([result], axis="all").axes)
    4
    """
    results = [results] if isinstance(results, Result) else list(results)
    _check(results, axis, labels)
    with in_style(style):
        from .display import Figure

        shared, names = _names(results, labels)
        scale = magnification(style)
        looks = [_look(number, consensus, scale) for number in range(len(results))]
        handles = _legend(results, names, looks, consensus)
        shown = list(AXES) if axis in (None, "all") else [str(axis)]
        width, height = size(style, len(shown))
        columns = _columns(max(map(len, names)), width / scale, consensus)
        depth = 0.155 * scale * (math.ceil(len(handles) / columns) + bool(shared))
        rows, across = (len(shown), 1) if style == "column" or len(shown) == 1 else (2, 2)
        body = height if rows == 1 else 0.82 * height * rows
        figure = Figure(figsize=(width, body + depth), layout="constrained")
        grid = figure.subplots(rows, across, sharey=True, squeeze=False)
        for one, panel in zip(shown, grid.flat, strict=True):
            _draw_panel(panel, results, one, looks, consensus)
        for panel in grid[:, 0]:
            panel.set_ylabel(_height(results, consensus))
        figure.legend(
            handles=handles,
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            title=shared or None,
            title_fontsize=7 * scale,
            handlelength=2.0 if consensus else 2.6,  # dashes and markers want room, and so do long names
            columnspacing=1.0 if consensus else 1.4,
        )
    return figure


def _height(results: Sequence[Result], consensus: bool) -> str:
    """Return what the vertical axis shows."""
    if any(one.measure != "error" for one in results):
        return "gradient norm at the mean" + (",\nsquared distance to it" if consensus else "")
    return "squared distance" + ("" if consensus else " to $x^*$") + "\n(sum over nodes)"


def _check(results: Sequence[Any], axis: str | None, labels: Sequence[str] | None) -> None:
    if axis not in AXES and axis not in (None, "all"):
        raise InputError(f"unknown axis {axis!r}; use one of {', '.join(AXES)}, all")
    for one in results:
        if not isinstance(one, Result):
            raise InputTypeError(f"convergence draws adom results, got {type(one).__name__}; adom.load reads one")
    if not results:
        raise InputError("got no results to draw; give one or more")
    for one in results:
        if not one.measure:
            raise InputError(f"{one!r} was not monitored, so there is no curve to draw; run it with monitor=True")
    if labels is not None and len(labels) != len(results):
        raise InputError(f"got {len(labels)} labels for {len(results)} results; give one for each")


def _look(number: int, consensus: bool, scale: float) -> Look:
    colour = COLOURS[number % len(COLOURS)]
    if consensus:
        return Look(colour, DASHES[number // len(COLOURS) % len(DASHES)], None, scale)
    return Look(colour, DASHES[number % len(DASHES)], MARKERS[number % len(MARKERS)], scale)


def _columns(longest: int, inches: float, consensus: bool) -> int:
    """Return how many columns of a legend fit, the longest name being that long."""
    width = 26 if consensus else longest
    fits = 1 if longest > 26 else 2 if width > 12 else 3
    return fits * (2 if inches > 5 else 1)


def _names(results: Sequence[Result], labels: Sequence[str] | None) -> tuple[str, list[str]]:
    """Return what runs with labels have in common, and what tells each apart; a number where nothing else does."""
    names = [one.label for one in results] if labels is None else list(labels)
    protocols = [one.protocol for one in results]
    oracles = [str(one.provenance.get("oracle") or "") for one in results]
    common = []
    if labels is not None and protocols[0] and len(set(protocols)) == 1:
        common.append(f"parameters {protocols[0]}")
        protocols = [""] * len(names)
    if labels is not None and len({*oracles} - {""}) == 1:
        common.append(f"dual oracle {max(oracles)}")
        oracles = [""] * len(names)
    for number, (protocol, oracle) in enumerate(zip(protocols, oracles, strict=True)):
        extra = ", ".join(part for part in (protocol, oracle and f"oracle {oracle}") if part)
        names[number] += f" ({extra})" if extra else ""
    often, seen = Counter(names), Counter[str]()
    for number, text in enumerate(names):
        seen[text] += 1
        if often[text] > 1:
            names[number] = f"{text} #{seen[text]}"
    return ", ".join(common), names


def _legend(results: Sequence[Result], names: Sequence[str], looks: Sequence[Look], consensus: bool) -> list[Any]:
    """Return one entry a run, and what the kinds of line mean."""
    from matplotlib.lines import Line2D

    entries = [Line2D([], [], label=text, **_line(look)) for text, look in zip(names, looks, strict=True)]
    scale = looks[0].scale
    if consensus:
        shown = "error: distance to $x^*$" if results[0].measure == "error" else "gradient norm at the mean"
        entries.append(Line2D([], [], color="0.6", linewidth=1.6 * scale, label=shown))
        thin: dict[str, Any] = {"color": "0.2", "linewidth": 0.7 * scale, "linestyle": THIN}
        entries.append(Line2D([], [], label="consensus: distance to mean", **thin))
    crossed = " or ".join(status for status in LOST if any(one.status == status for one in results))
    if crossed:
        entries.append(Line2D([], [], color="0.6", linestyle="", marker="X", markersize=6 * scale, label=crossed))
    return entries


def _line(look: Look) -> dict[str, Any]:
    """Return how the error of a run is drawn."""
    if look.marker is None:
        return {"color": look.colour, "linestyle": look.dash, "linewidth": 1.6 * look.scale}
    return {
        "color": look.colour,
        "linestyle": look.dash,
        "linewidth": 1.2 * look.scale,
        "marker": look.marker,
        "markersize": (6 if look.marker in "P*" else 4) * look.scale,
        "markeredgecolor": "white",
        "markeredgewidth": 0.3 * look.scale,
        "zorder": 2 + LIGHTNESS[DASHES.index(look.dash)],
    }


def _draw_panel(axes: "Axes", results: Sequence[Result], axis: str, looks: Sequence[Look], consensus: bool) -> None:
    axes.set_yscale("log")
    for number, (one, look) in enumerate(zip(results, looks, strict=True)):
        _draw_run(axes, one, axis, look, consensus, number / len(results))
    axes.set_xlabel(AXES[axis] if looks[0].scale == 1 else AXES[axis].split(",")[0])
    axes.grid(visible=True, which="major")
    axes.margins(x=0.01)
    if not axes.lines:
        axes.set_ylim(0.1, 10)
    ends = [float(one.history[axis].iloc[-1]) for one in results if one.status not in LOST]
    if ends and 0 < SPREAD * min(ends) < max(ends):
        axes.set_xscale("log")
    else:
        _tidy_numbers(axes, axis, 6 if looks[0].scale == 1 else 4)


def _draw_run(axes: "Axes", result: Result, axis: str, look: Look, consensus: bool, phase: float) -> None:
    from matplotlib.colors import to_rgb

    history = result.history
    across = history[axis].to_numpy(dtype=float)
    error = history[result.measure].to_numpy(dtype=float)
    start = float(result.provenance.get("start_error") or 0)
    lost = result.status in LOST
    stop = _end(error, start) if lost else len(error)
    line = _line(look)
    if look.marker is not None:
        line["markevery"] = (0.02 + 0.25 * phase, 0.25)  # of the panel's diagonal; each run at its own places
    dark = tuple(0.45 * part for part in to_rgb(look.colour))  # stays visible where the two coincide
    lines = {result.measure: line}
    if consensus:
        lines["consensus"] = {"color": dark, "linestyle": THIN, "linewidth": 0.7 * look.scale}
    for name, drawn_as in lines.items():
        values = history[name].to_numpy(dtype=float)[:stop]
        drawn = np.where(np.isfinite(values) & (values > 0), values, np.nan)
        alone = {"marker": "o", "markersize": 2 * drawn_as["linewidth"], "markevery": None} if stop == 1 else {}
        if np.isfinite(drawn).any():
            axes.plot(across[:stop], drawn, **drawn_as | alone)
    if lost:
        last = stop - 1
        height = error[last] if np.isfinite(error[last]) and error[last] > 0 else max(start, 1.0)
        cross: dict[str, Any] = {"marker": "X", "markersize": 6 * look.scale, "clip_on": False, "zorder": 5}
        axes.plot(across[last], height, color=look.colour, **cross)


def _end(error: np.ndarray, start: float) -> int:
    """Return how many records of a run that grows are drawn; one at least."""
    first = error[0] if np.isfinite(error[0]) else 0.0
    limit = GROWTH * max(start, first, 1e-300)
    wild = ~(error <= limit)
    return max(1, int(np.argmax(wild)) if wild.any() else len(error))


def _tidy_numbers(axes: "Axes", axis: str, most: int) -> None:
    """Start the horizontal axis at 0 and write large numbers as 20k or 3M."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=most, integer=axis == "round"))
    axes.set_xlim(left=0)
    if axes.get_xlim()[1] >= 1e4:
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
