"""Figures of sweeps: a cost against the settings, as curves or as a map for each method."""

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .curves import AXES, DASHES
from .style import COLOURS, MARKERS, magnification, marks, plain, size
from .style import style as in_style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from .display import Figure

VALUES = {
    "rounds_to_target": AXES["round"],
    "gradients_to_target": AXES["gradients"],
    "floats_sent_to_target": AXES["floats_sent"],
    "seconds_to_target": AXES["seconds"].split(",")[0],
}
"""Costs that a sweep may be drawn by, and their labels."""
STAR: dict[str, Any] = {"marker": "*", "color": "white", "markeredgecolor": "black"}
"""Mark of the best cell of a map."""
NEAR = 0.1
"""Part of a logarithmic axis that a tick label takes."""


def sweep_figure(
    table: "pd.DataFrame",
    x: str,
    y: str | None = None,
    value: str = "rounds_to_target",
    style: str | None = None,
) -> "Figure":
    """Draw a cost to reach the target against a column of a sweep's table, or over two columns as maps.

    A setting is judged by its median over seeds; of all settings at one place the best is shown, on curves with its
    least and greatest cost. One that never reached the target is a cross on the upper edge of curves, and left white on
    a map.

    Parameters
    ----------
    table : pandas.DataFrame
        `adom.Sweep.table`, with a column "setting" that only members which differ in the seed alone share.
    x, y : str
        Columns. With a `y` there is one map for each method.
    value : str
        "rounds_to_target", "gradients_to_target", "floats_sent_to_target" or "seconds_to_target".
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
        return _curves(costs, x, value, style) if y is None else _maps(costs, x, y, value, style)


def _check(table: "pd.DataFrame", x: str, y: str | None, value: str) -> None:
    if value not in VALUES:
        raise InputError(f"value must be one of {', '.join(VALUES)}, got {value!r}")
    for name in (x, y):
        if name is not None and name not in table:
            raise InputError(f"the table has no column {name!r}; it has {', '.join(table.columns)}")
    if x == y:
        raise InputError(f"x and y must be different columns, got {x!r} twice; leave y out for curves")


def _words(column: str) -> str:
    """Return the axis label of a column.

    Examples
    --------
    >>> _words("factor_eta"), _words("assume_chi"), _words("kappa")
    ('eta / its base', 'chi assumed / true', 'kappa')
    """
    if column.startswith("factor_"):
        return f"{column.removeprefix('factor_')} / its base"
    if column.startswith("assume_"):
        return f"{column.removeprefix('assume_')} assumed / true"
    return column


def _curves(costs: "pd.DataFrame", x: str, value: str, style: str | None) -> "Figure":
    """Draw one curve per method against numbers, or one column of marks per name."""
    from matplotlib.lines import Line2D

    from .display import Figure

    labels = list(dict.fromkeys(costs["label"]))
    scale, (width, height) = magnification(style), size(style)
    figure = Figure(figsize=(width, round(height + 0.2 * scale, 3)), layout="constrained")
    axes = figure.subplots()
    numeric = costs[x].dtype.kind in "if"
    names = sorted(set(costs[x])) if numeric else list(dict.fromkeys(costs[x]))
    cross: dict[str, Any] = {"marker": "x", "markersize": 6 * scale, "markeredgewidth": scale, "linestyle": ""}
    for number, label in enumerate(labels):
        part = costs[costs["label"] == label].set_index(x)[value]
        at = [name for name in names if name in part.index]
        across = np.array([float(name) if numeric else names.index(name) for name in at])
        heights = np.array([float(part[name]) for name in at])
        place, sign = marks(number)
        colour = COLOURS[place]
        axes.plot(
            across,
            heights,
            label=plain(label),
            color=colour,
            marker=MARKERS[sign],
            markersize=4 * scale,
            linestyle=DASHES[number % len(DASHES)] if numeric else "",
            linewidth=1.2 * scale,
        )
        spread = costs[costs["label"] == label].set_index(x)[["min", "max"]].loc[at].to_numpy(dtype=float).T
        if (spread[0] < spread[1]).any() and numeric:
            axes.fill_between(across, *spread, color=colour, alpha=0.15, linewidth=0)
        elif (spread[0] < spread[1]).any():
            axes.vlines(across, *spread, color=colour, alpha=0.4, linewidth=2 * scale)
        missed = across[np.isnan(heights)]
        edge = axes.get_xaxis_transform()
        axes.plot(missed, np.ones_like(missed), transform=edge, clip_on=False, color=colour, **cross)
    if costs[value].notna().any():
        axes.set_yscale("log")
    if numeric:
        _number_axis(axes, [float(name) for name in names])
    else:
        axes.set_xticks(range(len(names)), [plain(name) for name in names], rotation=30 if len(names) > 4 else 0)
    axes.set_xlabel(_words(x))
    axes.set_ylabel(f"{VALUES[value]}\nto the target")
    axes.grid(visible=True, which="major")
    handles = axes.get_legend_handles_labels()[0] if len(labels) > 1 and x != "label" else []
    if costs[value].isna().any():
        handles.append(Line2D([], [], label="target not reached", color="0.4", **cross))
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _number_axis(axes: "Axes", values: list[float]) -> None:
    """Make the axis logarithmic where the values are spread widely, and label the values if there is room."""
    low, high = min(values), max(values)
    if low > 0 and high >= 4 * low:
        axes.set_xscale("log")
        if all(after >= before * (high / low) ** NEAR for before, after in pairwise(values)):
            axes.set_xticks(values, [_tick(value) for value in values])
            axes.set_xticks([], minor=True)


def _maps(costs: "pd.DataFrame", x: str, y: str, value: str, style: str | None) -> "Figure":
    """Draw one map per method, all on one logarithmic colour scale, with the best cell marked."""
    from matplotlib.colors import LogNorm

    from .display import Figure

    labels = list(dict.fromkeys(costs["label"]))
    scale, (width, _) = magnification(style), size(style, len(labels))
    columns = min(2 if style == "column" else 3, len(labels))
    rows = math.ceil(len(labels) / columns)
    tall = 2.4 if columns == 1 or scale == 1 < width / 5 else width / columns / scale
    figure = Figure(figsize=(width, (0.4 + tall * rows) * scale), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    finite = costs[value].dropna()
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (1.0, 10.0)
    norm = LogNorm(max(low, 1e-12), max(high, low * 1.01, 1e-12))
    image = None
    for panel, label in zip(grid.flat, labels, strict=False):
        cells = costs[costs["label"] == label].pivot_table(index=y, columns=x, values=value, dropna=False)
        cells = cells.sort_index().sort_index(axis=1)
        image = panel.imshow(cells.to_numpy(dtype=float), origin="lower", aspect="auto", cmap="viridis_r", norm=norm)
        panel.set_xticks(range(cells.shape[1]), [_tick(value) for value in cells.columns], rotation=90)
        panel.set_yticks(range(cells.shape[0]), [_tick(value) for value in cells.index])
        panel.set_title(plain(label) if len(labels) > 1 else "")
        if cells.notna().to_numpy().any():
            row, column = np.unravel_index(int(np.nanargmin(cells.to_numpy(dtype=float))), cells.shape)
            panel.plot(column, row, markersize=8 * scale, **STAR)
    for panel in grid.flat[len(labels) :]:
        panel.set_axis_off()
    for panel in grid[:, 0]:
        panel.set_ylabel(_words(y))
    for panel in grid[-1, :]:
        panel.set_xlabel(_words(x))
    if image is not None:
        figure.colorbar(image, ax=grid, label=f"{VALUES[value]} to the target")
    return figure


def _tick(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float | np.floating) else plain(value)
