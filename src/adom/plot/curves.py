"""Curves of one or many runs against rounds, gradients, numbers sent or time."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, InputTypeError
from ..util.columns import AXES
from ..util.text import numbered
from .labels import cross, fitted, keys, legend_of, room_inside
from .style import COLOURS, MARKERS, check_axes, magnification, marks, plain, size
from .style import style as in_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..run.result import Result
    from .display import Figure

DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.2, 1, 1.2)))
LIGHTNESS = (0.0, 0.1, 0.3, 0.2)
"""Drawing order by line style: the more gaps, the higher, so that coinciding curves all show."""
THIN = (0, (4, 2))
GROWTH = 1e4
"""Growth over the start at which a diverging curve is cut off, so that it does not flatten the others."""
SPREAD = 30
"""Ratio of the longest curve to the shortest beyond which the axis is logarithmic."""


def convergence(
    results: "Result | Sequence[Result]",
    *,
    axis: str | None = "round",
    consensus: bool = True,
    labels: Sequence[str] | None = None,
    ax: "Axes | None" = None,
    style: str | None = None,
) -> "Figure":
    """Draw error (solid) and consensus (thin, dashed) of one or more runs on a logarithmic scale.

    A run that diverged or was growing ends in a cross, at the last record before it outgrew its start by a factor of
    10,000 or ceased to be finite. Values without a logarithm are left out. Where some runs reach 30 times as far along
    the horizontal axis as others, that axis is logarithmic too.

    Parameters
    ----------
    results : sequence of Result
    axis : str, optional
        "round" or another cost in `Result.history`; "all" or None for a panel of each.
    consensus : bool
        False draws only the errors, told apart by colour, line style and marker: for many runs.
    labels : sequence of str, optional
        Names of the runs in the legend; by default the methods' titles with parameters and oracle. With given labels,
        parameters and oracle stand above the legend if all runs share them. Equal names get the problem, network or
        seed of a comparison, or a number.
    ax : matplotlib axes, optional
        Axes for a single panel; by default a new figure is made.
    style : str, optional
        "column", "page" or "slide": width and text size; by default a column for one panel and a page for several.
        See `adom.styles`.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[2.0]], [[4.0]]], [[2.0], [0.0]])
    >>> result = adom.solve(problem, adom.networks.path(2), parameters="unit", rounds=20)
    >>> convergence([result], axis="gradients").axes[0].get_xlabel()
    'gradients per node'
    >>> len(convergence([result], axis="all").axes)
    4
    """
    results = list(results) if isinstance(results, Iterable) else [results]
    _check(results, axis, labels)
    check_axes(ax)
    with in_style(style):
        from .display import Figure

        shared, names = _names(results, labels)
        scale = magnification(style)
        looks = [_look(number, consensus, scale) for number in range(len(results))]
        kinds = _kinds(results, consensus, scale)
        marked = [*looks, *kinds.values()]
        shown = list(AXES) if axis in (None, "all") else [str(axis)]
        if ax is not None:
            if len(shown) > 1:
                raise InputError(f"ax takes one panel, but axis={axis!r} draws several; name one of {', '.join(AXES)}")
            _draw_panel(ax, results, shown[0], looks, consensus, scale)
            ax.set_ylabel(_height(results, consensus))
            broken = [plain("\n".join(fitted(name, room_inside(ax, scale), 7 * scale))) for name in names]
            ax.legend(handles=keys(marked, [*broken, *kinds]), title=plain(shared) or None, fontsize="small")
            drawn: Figure = ax.figure  # type: ignore[assignment]  # may be a subfigure
            return drawn
        width, height = size(style, len(shown))
        legend = legend_of([*names, *kinds], width, scale, 0.38 if consensus else 0.48)
        depth = legend.depth + 0.155 * scale * bool(shared)
        rows, across = (len(shown), 1) if style == "column" or len(shown) == 1 else (math.ceil(len(shown) / 2), 2)
        body = height if rows == 1 else 0.82 * height * rows
        figure = Figure(figsize=(width, body + depth), layout="constrained")
        grid = figure.subplots(rows, across, sharey=True, squeeze=False)
        for column, axes in zip_longest(shown, grid.flat):
            if column is None:  # their number is odd
                axes.remove()
            else:
                _draw_panel(axes, results, column, looks, consensus, scale)
        for axes in grid[:, 0]:
            axes.set_ylabel(_height(results, consensus))
        figure.legend(
            handles=keys(marked, [*legend.names[: len(names)], *kinds]),
            loc="outside lower center",
            ncols=legend.columns,
            frameon=False,
            title=plain(shared) or None,
            title_fontsize=7 * scale,
            handlelength=2.0 if consensus else 2.6,  # dashes and markers need room, and so do long names
            columnspacing=1.0 if consensus else 1.4,
        )
    return figure


def _height(results: "Sequence[Result]", consensus: bool) -> str:
    """Return the label of the vertical axis."""
    if any(result.measure != "error" for result in results):
        return "gradient norm at the mean" + (",\nsquared distance to it" if consensus else "")
    return "squared distance" + ("" if consensus else " to $x^*$") + "\n(sum over nodes)"


def _check(results: Sequence[Any], axis: str | None, labels: Sequence[str] | None) -> None:
    if axis not in AXES and axis not in (None, "all"):
        raise InputError(f"unknown axis {axis!r}; use one of {', '.join(AXES)}, all")
    for result in results:
        if not hasattr(result, "columns") or not hasattr(result, "measure"):
            raise InputTypeError(f"convergence draws adom results, got {type(result).__name__}; adom.load reads one")
        if not result.measure:
            raise InputError(f"{result!r} was not monitored, so there is no curve to draw; run it with monitor=True")
    if not results:
        raise InputError("got no results to draw; give one or more")
    if labels is not None and len(labels) != len(results):
        raise InputError(f"got {len(labels)} labels for {len(results)} results; give one for each")


def _look(number: int, consensus: bool, scale: float) -> dict[str, Any]:
    """Return the line properties of a run's error."""
    if not consensus:
        return line_look(number, scale)
    dash = DASHES[number // len(COLOURS) % len(DASHES)]
    return {"color": COLOURS[marks(number)[0]], "linestyle": dash, "linewidth": 1.6 * scale}


def line_look(number: int, scale: float) -> dict[str, Any]:
    """Return the properties of one of many lines: colour, line style and marker tell it apart."""
    place, sign = marks(number)
    marker = MARKERS[sign]
    return {
        "color": COLOURS[place],
        "linestyle": DASHES[number % len(DASHES)],
        "linewidth": 1.2 * scale,
        "marker": marker,
        "markersize": (6 if marker in "P*" else 4) * scale,
        "markeredgecolor": "white",
        "markeredgewidth": 0.3 * scale,
        "zorder": 2 + LIGHTNESS[number % len(DASHES)],
    }


def _names(results: "Sequence[Result]", labels: Sequence[str] | None) -> tuple[str, list[str]]:
    """Return the settings that labelled runs share, and a distinct name for each."""
    names = [result.label for result in results] if labels is None else list(labels)
    protocols = [result.protocol for result in results]
    oracles = [str(result.provenance.get("oracle") or "") for result in results]
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
    return ", ".join(common), told_apart(names, [instance(result) for result in results])


def instance(result: "Result") -> dict[str, str]:
    """Return a run's problem and network in a comparison, and its seed, in words."""
    at = result.provenance.get("compare")
    return {
        "place": "" if at is None else f"{at['problem']} on {at['network']}",
        "seed": "" if result.seed is None else f"seed {result.seed}",
    }


def told_apart(names: Sequence[str], traits: Sequence[Mapping[str, str]]) -> list[str]:
    """Return distinct names: equal ones have the traits added in which they differ, or else numbers.

    Examples
    --------
    >>> told_apart(["a", "a", "b", "b"], [{"seed": "seed 0"}, {"seed": "seed 1"}, {"seed": ""}, {"seed": ""}])
    ['a, seed 0', 'a, seed 1', 'b #1', 'b #2']
    """
    names = list(names)
    for trait in traits[0] if traits else ():
        values: dict[str, set[str]] = {}
        for name, has in zip(names, traits, strict=True):
            values.setdefault(name, set()).add(has[trait])
        names = [
            f"{name}, {has[trait]}" if len(values[name]) > 1 and has[trait] else name
            for name, has in zip(names, traits, strict=True)
        ]
    return numbered(names)


def _kinds(results: "Sequence[Result]", consensus: bool, scale: float) -> dict[str, dict[str, Any]]:
    """Return the kinds of line and of mark below the names of the runs in the legend, and their looks."""
    kinds: dict[str, dict[str, Any]] = {}
    if consensus:
        error = "error: distance to $x^*$" if results[0].measure == "error" else "gradient norm at the mean"
        kinds[error] = {"color": "0.6", "linewidth": 1.6 * scale}
        kinds["consensus: distance to mean"] = {"color": "0.2", "linewidth": 0.7 * scale, "linestyle": THIN}
    if crossed := " or ".join(sorted({result.status for result in results if result.lost})):
        kinds[crossed] = cross(scale)
    return kinds


def _draw_panel(
    axes: "Axes",
    results: "Sequence[Result]",
    column: str,
    looks: Sequence[dict[str, Any]],
    consensus: bool,
    scale: float,
) -> None:
    axes.set_yscale("log")
    for number, (result, look) in enumerate(zip(results, looks, strict=True)):
        phase = number / len(results)  # shifts the markers of each run along its line
        spaced = {"markevery": (0.02 + 0.25 * phase, 0.25)} if "marker" in look else {}
        _draw_run(axes, result, column, look | spaced, consensus, scale)
    if len(results) == 1 and column == "round":
        _draw_settings(axes, results[0], scale)
    axes.set_xlabel(AXES[column] if scale == 1 else AXES[column].split(",")[0])
    axes.grid(visible=True, which="major")
    axes.margins(x=0.01)
    if not axes.lines:
        axes.set_ylim(0.1, 10)
    ends = [float(result.columns[column][-1]) for result in results if not result.lost]
    if ends and 0 < SPREAD * min(ends) < max(ends):
        axes.set_xscale("log")
    else:
        tidy_numbers(axes, column, 6 if scale == 1 else 4)


def _draw_run(axes: "Axes", result: "Result", column: str, look: dict[str, Any], consensus: bool, scale: float) -> None:
    from matplotlib.colors import to_rgb

    history = result.columns
    across = history[column].astype(float)
    error = history[result.measure].astype(float)
    start = float(result.provenance.get("start_error") or 0)
    stop = tame_records(error, start) if result.lost else len(error)
    lines = {result.measure: look}
    if consensus:
        dark = tuple(0.45 * part for part in to_rgb(look["color"]))  # stays visible where the two coincide
        lines["consensus"] = {"color": dark, "linestyle": THIN, "linewidth": 0.7 * scale}
    for name, line in lines.items():
        values = history[name].astype(float)[:stop]
        positive = np.where(np.isfinite(values) & (values > 0), values, np.nan)
        alone = {"marker": "o", "markersize": 2 * line["linewidth"], "markevery": None} if stop == 1 else {}
        if np.isfinite(positive).any():
            axes.plot(across[:stop], positive, **line | alone)
    if result.lost:
        last = stop - 1
        height = error[last] if np.isfinite(error[last]) and error[last] > 0 else max(start, 1.0)
        axes.plot(across[last], height, **cross(scale) | {"color": look["color"], "clip_on": False, "zorder": 5})


def _draw_settings(axes: "Axes", result: "Result", scale: float) -> None:
    """Draw the chi that a run assumed over its rounds, on another axis; a gap is plain descent."""
    settings, clock = result.provenance.get("settings") or [], result.columns["round"]
    chis = np.array([setting["chi"] for setting in settings], dtype=float)
    if not len(clock) or not np.isfinite(chis).any():
        return
    rounds = np.array([setting["round"] for setting in settings] + [int(clock[-1])], dtype=float)
    right = axes.twinx()
    right.set_yscale("log")
    right.step(rounds, [*chis, chis[-1]], where="post", color="0.45", linestyle=":", linewidth=scale)
    right.set_ylabel("assumed chi (dotted)", color="0.45")
    for set_formatter in (right.yaxis.set_major_formatter, right.yaxis.set_minor_formatter):
        set_formatter("{x:g}")


def tame_records(error: np.ndarray, start: float) -> int:
    """Return how many records a run has before it outgrows its start by `GROWTH`; at least one.

    Examples
    --------
    >>> tame_records(np.array([2.0, 50.0, 1e9, np.inf]), start=1.0)
    2
    """
    first = error[0] if np.isfinite(error[0]) else 0.0
    wild = ~(error <= GROWTH * max(start, first, 1e-300))
    return max(1, int(np.argmax(wild)) if wild.any() else len(error))


def tidy_numbers(axes: "Axes", column: str, most: int) -> None:
    """Start the horizontal axis at 0 and write large numbers as 20k or 3M."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=most, integer=column == "round"))
    axes.set_xlim(left=0)
    if axes.get_xlim()[1] >= 1e4:
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
