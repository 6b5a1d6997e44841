"""Pictures of sweeps: a cost against what was varied, as curves or as a map for each method."""

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..study.metrics import COSTS
from .curves import AXES, DASHES, MARKERS
from .style import COLOURS, magnification, size
from .style import style as in_style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from .display import Figure

VALUES = {f"{cost}_to_target": AXES[column].split(",")[0] for cost, column in COSTS.items()}
"""What a sweep may be drawn by, and how it is called."""
STAR: dict[str, Any] = {"marker": "*", "color": "white", "markeredgecolor": "black"}
"""How the best cell of a map is marked."""
NEAR = 0.1
"""The part of a logarithmic axis that a label of its own takes."""


def sweep_figure(
    table: "pd.DataFrame",
    x: str,
    y: str | None = None,
    value: str = "rounds_to_target",
    style: str | None = None,
) -> "Figure":
    """Draw a cost to reach the target against a column of a sweep's table, or over two columns as maps.

    Over all other columns the best is shown, over seeds the median. A setting that never reached the target is a
    cross on the upper edge of curves, and left white on a map.

    Parameters
    ----------
    table : pandas.DataFrame
        `adom.Sweep.table`.
    x, y : str
        Columns. With a `y` there is one map for each method.
    value : str
        "rounds_to_target", "gradients_to_target", "floats_sent_to_target" or "seconds_to_target".
    style : str, optional
        "column", "page" or "slide"; by default a column, and a page for the maps of several methods.
    """
    import pandas as pd

    _check(table, x, y, value)
    ran = table[table["status"] != "interrupted"]
    keys = list(dict.fromkeys(name for name in ("label", x, y) if name is not None))
    drawn = ran.dropna(subset=keys)
    if drawn.empty:
        raise InputError(f"no member of the sweep has a value of {' and of '.join(keys)}; draw against another column")
    seeds = [name for name in ("seed", "network") if name not in keys]
    best = drawn.groupby([*keys, *seeds], dropna=False, sort=False)[value].min().reset_index()
    best[value] = best[value].fillna(np.inf)  # the median of seeds of which most did not reach it did not reach it
    costs = best.groupby(keys, sort=False)[value].median().reset_index()
    costs[value] = costs[value].replace(np.inf, np.nan)
    with in_style(style):
        return _curves(costs, x, value, style) if y is None else _maps(pd.DataFrame(costs), x, y, value, style)


def _check(table: "pd.DataFrame", x: str, y: str | None, value: str) -> None:
    if value not in VALUES:
        raise InputError(f"value must be one of {', '.join(VALUES)}, got {value!r}")
    for name in (x, *([] if y is None else [y])):
        if name not in table:
            raise InputError(f"the table has no column {name!r}; it has {', '.join(table.columns)}")
    if x == y:
        raise InputError(f"x and y must be different columns, got {x!r} twice; leave y out for curves")


def _words(column: str) -> str:
    """Return what a column is called on an axis.

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
    """Draw one curve a method against a number, or one column of marks against names."""
    from matplotlib.lines import Line2D

    from .display import Figure

    labels = list(dict.fromkeys(costs["label"]))
    scale, (width, height) = magnification(style), size(style)
    figure = Figure(figsize=(width, round(height + 0.2 * scale, 3)), layout="constrained")
    axes = figure.subplots()
    numeric = costs[x].dtype.kind in "if"
    names = sorted(set(costs[x])) if numeric else list(dict.fromkeys(costs[x]))
    for number, label in enumerate(labels):
        part = costs[costs["label"] == label].set_index(x)[value]
        at = [name for name in names if name in part.index]
        across = np.array([float(name) if numeric else names.index(name) for name in at])
        heights = np.array([float(part[name]) for name in at])
        look: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
        cross: dict[str, Any] = {
            "color": look["color"],
            "marker": "x",
            "markersize": 6 * scale,
            "markeredgewidth": scale,
            "linestyle": "",
        }
        joined = DASHES[number % len(DASHES)] if numeric else ""
        axes.plot(
            across, heights, label=str(label), linestyle=joined, linewidth=1.2 * scale, markersize=4 * scale, **look
        )
        missed = across[np.isnan(heights)]
        edge = axes.get_xaxis_transform()
        axes.plot(missed, np.ones_like(missed), transform=edge, clip_on=False, **cross)
    if costs[value].notna().any():
        axes.set_yscale("log")
    if numeric:
        _number_axis(axes, [float(name) for name in names])
    else:
        axes.set_xticks(range(len(names)), [str(name) for name in names], rotation=30 if len(names) > 4 else 0)
    axes.set_xlabel(_words(x))
    axes.set_ylabel(f"{VALUES[value]}\nto the target")
    axes.grid(visible=True, which="major")
    handles = axes.get_legend_handles_labels()[0] if len(labels) > 1 and x != "label" else []
    if costs[value].isna().any():
        grey: dict[str, Any] = {
            "color": "0.4",
            "linestyle": "",
            "marker": "x",
            "markersize": 6 * scale,
            "markeredgewidth": scale,
        }
        handles.append(Line2D([], [], label="target not reached", **grey))
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _number_axis(axes: "Axes", values: list[float]) -> None:
    """Use a logarithmic axis where the values spread like one, and label the values themselves if there is room."""
    low, high = min(values), max(values)
    if low > 0 and high >= 4 * low:
        axes.set_xscale("log")
        if all(after >= before * (high / low) ** NEAR for before, after in pairwise(values)):
            axes.set_xticks(values, [_tick(value) for value in values])
            axes.set_xticks([], minor=True)


def _maps(costs: "pd.DataFrame", x: str, y: str, value: str, style: str | None) -> "Figure":
    """Draw one map a method, all on one logarithmic scale of colours; the best cell is marked."""
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
        panel.set_xticks(range(cells.shape[1]), [_tick(one) for one in cells.columns], rotation=90)
        panel.set_yticks(range(cells.shape[0]), [_tick(one) for one in cells.index])
        panel.set_title(str(label) if len(labels) > 1 else "")
        if cells.notna().to_numpy().any():
            place = np.unravel_index(int(np.nanargmin(cells.to_numpy(dtype=float))), cells.shape)
            panel.plot(place[1], place[0], markersize=8 * scale, **STAR)
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
    return f"{value:.3g}" if isinstance(value, float | np.floating) else str(value)
