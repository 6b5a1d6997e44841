"""Figures of sweeps: a cost against the settings, as curves or as a map for each method."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..util.columns import METRICS
from .curves import DASHES
from .labels import fitted, inches_of, legend_of, ticks, written
from .labels import label as label_axis
from .style import COLOURS, MARKERS, magnification, marks, plain, size
from .style import style as in_style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.transforms import Transform

    from .display import Figure

VALUES = {metric.to_target: metric.axis.split(",")[0] for metric in METRICS.values()}
"""Costs that a sweep's figure may show, and their labels."""
NEAR = 0.1
"""Part of a logarithmic axis that a tick label takes."""
EDGE = 0.04
"""Margin beyond the values, as a part of the axis."""
ROW = 0.11
"""Inches of a row of crosses above curves."""
MISSED, NONE = "target not reached", "no setting reached the target"
CROSS: dict[str, Any] = {"marker": "x", "linestyle": "", "color": "0.4"}
STAR: dict[str, Any] = {"marker": "*", "linestyle": "", "color": "white", "markeredgecolor": "black"}
BLANK: dict[str, Any] = {"marker": "s", "linestyle": "", "color": "white", "markeredgecolor": "0.6"}
"""Marks of cells of a map: one that missed the target, the best, and one that was not run."""


def sweep_figure(
    table: "pd.DataFrame",
    x: str,
    y: str | None = None,
    value: str = "rounds_to_target",
    style: str | None = None,
) -> "Figure":
    """Draw a cost to reach the target against a column of a sweep's table, or over two columns as maps.

    A setting is judged by its median over seeds. At each place the best setting is shown, on curves with its least and
    greatest cost. If half of its seeds or more missed the target, it is a cross: above the curves, in a row for each
    method, or in its cell of a map.

    Parameters
    ----------
    table : pandas.DataFrame
        `adom.Sweep.table`, with a column "setting" shared by members that differ only in the seed.
    x, y : str
        Columns. With `y` there is one map for each method.
    value : str
        "rounds_to_target", or another cost to the target in the table.
    style : str, optional
        "column", "page" or "slide"; by default a column, and a page for the maps of several methods.
    """
    _check(table, x, y, value)
    keys = list(dict.fromkeys(name for name in ("label", x, y) if name is not None))
    members = table[table["status"] != "interrupted"].dropna(subset=keys)
    if members.empty:
        raise InputError(f"no member of the sweep has a value of {' and of '.join(keys)}; draw against another column")
    known = members.assign(
        **{value: members[value].fillna(np.inf)}
    )  # where most seeds miss the target, so does the median
    over = known.groupby([*keys, "setting"], sort=False)[value].agg(["median", "min", "max"]).reset_index()
    places = over.groupby(keys, sort=False)["median"]
    costs = over.loc[places.idxmin()].rename(columns={"median": value}).replace(np.inf, np.nan)
    with in_style(style):
        if y is None:
            return _curves(costs, x, value, _words(x, table), style)
        return _maps(costs, x, y, value, [_words(x, table), _words(y, table)], style)


def _check(table: "pd.DataFrame", x: str, y: str | None, value: str) -> None:
    if value not in VALUES:
        raise InputError(f"value must be one of {', '.join(VALUES)}, got {value!r}")
    for name in (x, y):
        if name is not None and name not in table:
            raise InputError(f"the table has no column {name!r}; it has {', '.join(table.columns)}")
    if x == y:
        raise InputError(f"x and y must be different columns, got {x!r} twice; leave y out for curves")


def _words(column: str, table: "pd.DataFrame") -> str:
    """Return the axis label of a column; a factor is a multiple of what the base protocol gives.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"protocol": ["unit", "unit"]})
    >>> _words("factor_eta", table), _words("assume_chi", table), _words("kappa", table)
    ("eta, as a multiple of unit's", 'chi assumed / true', 'kappa')
    """
    if column.startswith("factor_"):
        bases = set(table["protocol"]) if "protocol" in table else set()
        base = bases.pop() if len(bases) == 1 else ""
        whose = f"{base}'s" if base in ("unit", "theory") else "the one given" if base == "given" else "its base's"
        return f"{column.removeprefix('factor_')}, as a multiple of {whose}"
    if column.startswith("assume_"):
        return f"{column.removeprefix('assume_')} assumed / true"
    return "method" if column == "label" else column


def _curves(costs: "pd.DataFrame", x: str, value: str, words: str, style: str | None) -> "Figure":
    """Draw one curve per method over numbers, or markers over names."""
    from matplotlib.lines import Line2D

    from .display import Figure

    labels, missed = list(dict.fromkeys(costs["label"])), costs[value].isna()
    scale, (width, height) = magnification(style), size(style)
    named = labels if len(labels) > 1 and x != "label" else []
    legend = legend_of([*named, *([MISSED] if missed.any() else [])], width, scale)
    crosses = {label: number for number, label in enumerate(dict.fromkeys(costs.loc[missed, "label"]))}
    tall = height + legend.depth + ROW * len(crosses) * scale
    figure = Figure(figsize=(width, round(tall, 3)), layout="constrained")
    axes = figure.subplots()
    numeric = costs[x].dtype.kind in "if"
    names = sorted(set(costs[x])) if numeric else list(dict.fromkeys(costs[x]))
    cross = CROSS | {"markersize": 5 * scale, "markeredgewidth": scale}
    handles = []
    for number, label in enumerate(labels):
        part = costs[costs["label"] == label].set_index(x)[[value, "min", "max"]]
        part.index = [float(name) if numeric else names.index(name) for name in part.index]
        handles += _draw(axes, part.sort_index(), number, numeric, scale)
        lost = part.index[part[value].isna()]
        if len(lost):  # in a row for itself, so that no method hides another
            place = _above(axes, (0.7 + crosses[label]) * ROW * scale)
            mine = {"color": COLOURS[marks(number)[0]], "transform": place, "clip_on": False}
            axes.plot(lost, np.ones(len(lost)), **cross | mine)
    _cost_axis(axes, costs[value])
    if numeric:
        _number_axis(axes, [float(name) for name in names])
    else:
        _name_axis(axes, [str(name) for name in names], (width - 0.6 * scale) / len(names), scale)
    axes.set_xlabel("\n".join(fitted(words, width - 0.6 * scale, 8 * scale)))
    axes.set_ylabel(f"{VALUES[value]}\nto the target")
    axes.grid(visible=True, which="major")
    if legend.names:
        keys = [*(handles if named else []), Line2D([], [], **cross)][: len(legend.names)]
        figure.legend(keys, legend.names, loc="outside lower center", ncols=legend.columns, frameon=False)
    return figure


def _draw(axes: "Axes", part: "pd.DataFrame", number: int, numeric: bool, scale: float) -> list[Any]:
    """Draw the costs of one method over its index, with a band from least to greatest."""
    across = part.index.to_numpy(dtype=float)
    heights, low, high = part.to_numpy(dtype=float).T
    place, sign = marks(number)
    drawn = axes.plot(
        across,
        heights,
        color=COLOURS[place],
        marker=MARKERS[sign],
        markersize=4 * scale,
        linestyle=DASHES[number % len(DASHES)] if numeric else "",
        linewidth=1.2 * scale,
    )
    if (low < high).any() and numeric and np.isfinite(heights).sum() > 1:
        axes.fill_between(across, low, high, color=COLOURS[place], alpha=0.15, linewidth=0)
    elif (low < high).any():
        axes.vlines(across, low, high, color=COLOURS[place], alpha=0.4, linewidth=2 * scale)
    return list(drawn)


def _above(axes: "Axes", inches: float) -> "Transform":
    """Return a transform that puts points of height 1 some inches above the axes."""
    from matplotlib.transforms import ScaledTranslation

    return axes.get_xaxis_transform() + ScaledTranslation(0, inches, axes.figure.dpi_scale_trans)


def _cost_axis(axes: "Axes", costs: "pd.Series") -> None:
    """Make the axis of costs logarithmic, or say that there are none."""
    if costs.isna().all():
        axes.set_yticks([])
        axes.text(0.5, 0.5, NONE.replace("reached ", "reached\n"), transform=axes.transAxes, ha="center", va="center")
    elif (costs.dropna() > 0).all():
        axes.set_yscale("log")
        label_axis(axes.yaxis, ticks(*axes.get_ylim()))


def _number_axis(axes: "Axes", values: list[float]) -> None:
    """Make the axis logarithmic where the values are spread widely, and label the values if there is room."""
    low, high = min(values), max(values)
    if low > 0 and high >= 4 * low:
        axes.set_xscale("log")
        room = all(after >= before * (high / low) ** NEAR for before, after in pairwise(values))
        label_axis(axes.xaxis, values if room else ticks(low, high))
        axes.set_xlim(low / (high / low) ** EDGE, high * (high / low) ** EDGE)
    elif high > low:  # also if there are only crosses
        axes.set_xlim(low - EDGE * (high - low), high + EDGE * (high - low))


def _name_axis(axes: "Axes", names: Sequence[str], room: float, scale: float) -> None:
    """Put names below the axis, aslant if a word is wider than its place."""
    aslant = max(inches_of(word, 7 * scale) for name in names for word in name.split() or [""]) > 0.95 * room
    lines = [fitted(name, 1.2 * scale if aslant else 0.95 * room, 7 * scale) for name in names]
    texts = [plain("\n".join(each)) for each in lines]
    axes.set_xticks(range(len(names)), texts, rotation=30 if aslant else 0, ha="right" if aslant else "center")
    for tick in axes.get_xticklabels() if aslant else ():
        tick.set_rotation_mode("anchor")
    axes.set_xlim(-0.5, len(names) - 0.5)


def _maps(costs: "pd.DataFrame", x: str, y: str, value: str, words: Sequence[str], style: str | None) -> "Figure":
    """Draw one map per method, all on one logarithmic colour scale, with the best cell marked."""
    from matplotlib.colors import LogNorm
    from matplotlib.lines import Line2D

    from .display import Figure

    labels = list(dict.fromkeys(costs["label"]))
    scale, (width, _) = magnification(style), size(style, len(labels))
    columns = min(2 if scale > 1 or style == "column" else 3, len(labels))
    rows = math.ceil(len(labels) / columns)
    tall = 2.4 if columns == 1 or scale == 1 < width / 5 else width / columns / scale
    finite = costs[value].dropna()
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (1.0, 10.0)
    norm = LogNorm(max(low, 1e-12), max(high, low * 1.01, 2e-12))
    cells = {label: costs[costs["label"] == label].pivot(index=y, columns=x, values=value) for label in labels}
    run = {label: costs[costs["label"] == label].pivot(index=y, columns=x, values="setting") for label in labels}
    known = {"the least": STAR} if len(finite) else {}
    known |= {MISSED: CROSS} if costs[value].isna().any() else {}
    known |= {"not run": BLANK} if any(each.isna().to_numpy().any() for each in run.values()) else {}
    legend = legend_of(list(known), width, scale)
    beside = max(inches_of(_tick(each, [each]), 7 * scale) for each in set(costs[y]))
    side = (width - (0.3 + 0.7 * bool(len(finite))) * scale) / columns - beside - 0.15 * scale
    titles = {label: fitted(label, side, 8 * scale) if len(labels) > 1 else [] for label in labels}
    below = fitted(words[0], side, 8 * scale)
    lines = rows * max(map(len, titles.values())) + len(below)
    figure = Figure(figsize=(width, (tall * rows + 0.2 + 0.13 * lines) * scale + legend.depth), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for panel, label in zip(grid.flat, labels, strict=False):
        missed = cells[label].isna() & run[label].notna()
        image = _map(panel, cells[label], missed.to_numpy(), norm, side, scale)
        panel.set_title(plain("\n".join(titles[label])))
    for panel in grid.flat[len(labels) :]:
        panel.set_axis_off()
    for panel in grid[:, 0]:
        panel.set_ylabel("\n".join(fitted(words[1], (tall - 0.3) * scale, 8 * scale)))
    for panel in grid.flat[max(0, len(labels) - columns) : len(labels)]:  # the lowest of every column
        panel.set_xlabel("\n".join(below))
    if len(finite):
        name = fitted(f"{VALUES[value]} to the target", (tall * rows - 0.3) * scale, 8 * scale)
        bar = figure.colorbar(image, ax=grid, label="\n".join(name))
        label_axis(bar.ax.yaxis, ticks(max(low, 1e-12), high) if high > low else [low])
    keys = [Line2D([], [], markersize=6 * scale, **look) for look in known.values()]
    figure.legend(keys, legend.names, loc="outside lower center", ncols=legend.columns, frameon=False)
    return figure


def _map(panel: "Axes", cells: "pd.DataFrame", missed: np.ndarray, norm: Any, side: float, scale: float) -> Any:
    """Draw one map: colours, a star in the best cell, crosses in those that missed the target."""
    costs = cells.to_numpy(dtype=float)
    image = panel.imshow(costs, origin="lower", aspect="auto", cmap="viridis_r", norm=norm)
    across, up = ([_tick(value, list(names)) for value in names] for names in (cells.columns, cells.index))
    turned = max(inches_of(name, 7 * scale) for name in across) > 0.9 * side / len(across)
    panel.set_xticks(range(len(across)), across, rotation=90 if turned else 0)
    panel.set_yticks(range(len(up)), up)
    if missed.any():
        panel.plot(*np.nonzero(missed)[::-1], markersize=4 * scale, markeredgewidth=0.8 * scale, **CROSS)
    if np.isfinite(costs).any():
        row, column = np.unravel_index(int(np.nanargmin(costs)), costs.shape)
        panel.plot(column, row, markersize=8 * scale, **STAR)
    else:
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8}
        text = "\n".join(fitted(NONE, side, 8 * scale))
        panel.text(0.5, 0.5, text, transform=panel.transAxes, ha="center", va="center", bbox=box)
    return image


def _tick(value: Any, values: Sequence[Any]) -> str:
    if not isinstance(value, int | float | np.number):
        return plain(value)
    return written(float(value), max(float(each) for each in values))
