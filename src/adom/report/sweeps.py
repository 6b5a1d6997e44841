"""Pictures of sweeps: a cost against what was varied, as curves or as a map for each method."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.outcomes import COSTS
from ..errors import InputError
from .curves import AXES, DASHES, MARKERS
from .style import COLOURS, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VALUES = {f"{cost}_to_target": AXES[column].split(",")[0] for cost, column in COSTS.items()}
"""What a sweep may be drawn by, and how it is called."""


def sweep_figure(table: "pd.DataFrame", x: str, y: str | None = None, value: str = "rounds_to_target") -> "Figure":
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
    with style():
        return _curves(costs, x, value) if y is None else _maps(pd.DataFrame(costs), x, y, value)


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


def _curves(costs: "pd.DataFrame", x: str, value: str) -> "Figure":
    """Draw one curve a method against a number, or one column of marks against names."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    labels = list(dict.fromkeys(costs["label"]))
    figure = Figure(figsize=(3.5, 2.4), layout="constrained")
    axes = figure.subplots()
    numeric = costs[x].dtype.kind in "if"
    names = sorted(set(costs[x])) if numeric else list(dict.fromkeys(costs[x]))
    for number, label in enumerate(labels):
        part = costs[costs["label"] == label].set_index(x)[value]
        at = [name for name in names if name in part.index]
        across = np.array([float(name) if numeric else names.index(name) for name in at])
        heights = np.array([float(part[name]) for name in at])
        look: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
        joined = DASHES[number % len(DASHES)] if numeric else ""
        axes.plot(across, heights, label=str(label), linestyle=joined, linewidth=1.2, markersize=4, **look)
        missed = across[np.isnan(heights)]
        edge = axes.get_xaxis_transform()
        axes.plot(missed, np.ones_like(missed), "x", color=look["color"], transform=edge, clip_on=False)
    if costs[value].notna().any():
        axes.set_yscale("log")
    if numeric:
        _number_axis(axes, [float(name) for name in names])
    else:
        axes.set_xticks(range(len(names)), [str(name) for name in names], rotation=30 if len(names) > 4 else 0)
    axes.set_xlabel(_words(x))
    axes.set_ylabel(f"{VALUES[value]}\nto the target")
    axes.grid(visible=True, which="major", linewidth=0.3, alpha=0.6)
    handles = axes.get_legend_handles_labels()[0] if len(labels) > 1 and x != "label" else []
    if costs[value].isna().any():
        handles.append(Line2D([], [], color="0.4", linestyle="", marker="x", label="target not reached"))
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _number_axis(axes: "Axes", values: list[float]) -> None:
    """Use a logarithmic axis where the values spread like one."""
    if min(values) > 0 and max(values) >= 4 * min(values):
        axes.set_xscale("log")


def _maps(costs: "pd.DataFrame", x: str, y: str, value: str) -> "Figure":
    """Draw one map a method, all on one logarithmic scale of colours; the best cell is marked."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    labels = list(dict.fromkeys(costs["label"]))
    columns = min(3, len(labels))
    rows = math.ceil(len(labels) / columns)
    figure = Figure(figsize=(3.5 if columns == 1 else 7.0, 0.4 + 2.4 * rows), layout="constrained")
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
            panel.plot(place[1], place[0], marker="*", color="white", markeredgecolor="black", markersize=8)
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
