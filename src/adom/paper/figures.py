"""Figures in the paper's arrangement: panels with several methods over several seeds; and a sample network."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms import METHODS, method_class
from ..plot.curves import DASHES
from ..plot.medians import median_curve, mostly
from ..plot.networks import draw_graph
from ..plot.style import COLOURS, MARKERS, marks, style
from ..run.result import Result
from .runs import PaperPanel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 1.8, 1.45
"""Inches of a panel."""
LETTERS = 16
"""Letters of a title per inch."""
SPLIT = "split-label"
Curves = Mapping[tuple[str, str], Sequence[Result]]
"""(method, variant) -> the runs of all seeds."""


def panel_grid(
    panels: Sequence[tuple[PaperPanel, Curves, str]],
    *,
    title: str,
    methods: Sequence[str],
    rounds: Mapping[tuple[int, int], int] | None = None,
) -> "Figure":
    """Draw a grid of panels: relative error against rounds, the median over seeds and a band from least to greatest.

    A run that has ended keeps its last value. A method that diverged in most seeds ends in a cross; one that was still
    growing at the end of its budget does not. A panel without runs shows why.

    Parameters
    ----------
    panels : sequence of (panel, curves, reason)
        `curves` are the runs by method and variant; `reason` says why there are none.
    title : str
    methods : sequence of str
        The entries of the legend, in order.
    rounds : mapping, optional
        (row, column) -> end of the axis.
    """
    with style():
        from matplotlib.figure import Figure

        rows, columns = (sorted({getattr(panel, name) for panel, _, _ in panels}) for name in ("row", "column"))
        down, across = len(rows), len(columns)  # rows and columns that have panels
        width = max(3.6, WIDTH * across + 0.4)
        lines = [part for line in title.split("\n") for part in _broken(line, int(LETTERS * width))]
        head = 0.24 + 0.13 * len(lines)
        size = (width, HEIGHT * down + 0.25 + head)
        figure = Figure(figsize=size)
        grid: Any = figure.subplots(down, across, squeeze=False)
        figure.subplots_adjust(
            left=0.52 / size[0],
            right=1 - 0.16 / size[0],
            top=1 - head / size[1],
            bottom=0.6 / size[1],
            wspace=0.3,
            hspace=0.42,
        )
        empty = set(np.ndindex(down, across))
        for panel, curves, reason in panels:
            place = rows.index(panel.row), columns.index(panel.column)
            axes = grid[place]
            empty.discard(place)
            axes.set_title(panel.title, pad=3, fontsize=7)
            if curves:
                _draw_panel(axes, curves, methods, (rounds or {}).get((panel.row, panel.column)))
            else:
                _say(axes, reason)
        for place in empty:
            grid[place].set_axis_off()
        for axes in grid[:, 0]:
            axes.set_ylabel("relative error", fontsize=7)
        figure.suptitle("\n".join(lines), fontsize=8, y=1 - 0.08 / size[1], va="top")
        figure.text(0.5, 0.32 / size[1], "communication rounds", ha="center", fontsize=7)
        figure.legend(
            handles=_legend(panels, methods),
            loc="lower center",
            ncols=8,
            frameon=False,
            handlelength=2.2,
            columnspacing=1.2,
            borderaxespad=0.1,
        )
    return figure


def sample_network(network: Any, rounds: Sequence[int] = (0, 1, 2)) -> "Figure":
    """Draw rounds of a network side by side with arrows between them, like the paper's first figure.

    Examples
    --------
    >>> import adom
    >>> len(sample_network(adom.networks.geometric(20, 0.3, graphs=3)).axes)
    3
    """
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(1.9 * len(rounds), 1.95))
        grid = figure.subplots(1, len(rounds), squeeze=False)[0]
        figure.subplots_adjust(left=0.01, right=0.99, top=0.88, bottom=0.01, wspace=0.18)
        for axes, k in zip(grid, rounds, strict=True):
            draw_graph(axes, network, k)
        for axes in grid[1:]:
            axes.annotate(
                "$\\Rightarrow$", (-0.09, 0.5), xycoords="axes fraction", ha="center", va="center", fontsize=14
            )
    return figure


def _broken(line: str, most: int) -> list[str]:
    """Return a line broken into the fewest parts that fit, of similar lengths.

    Examples
    --------
    >>> _broken("ADOM and APM over kappa and d", 28)
    ['ADOM and APM', 'over kappa and d']
    """
    fewest = len(wrap(line, most))
    return next(parts for width in range(1, most + 1) if len(parts := wrap(line, width)) <= fewest)


def look(method: str) -> dict[str, Any]:
    """Return colour and marker of a method, the same as in an `adom compare` of all methods."""
    colour, number = marks(list(METHODS).index(method))
    marker = MARKERS[number]
    return {
        "color": COLOURS[colour],
        "marker": marker,
        "markersize": 4.5 if marker in "P*" else 3,
        "markeredgecolor": "white",
        "markeredgewidth": 0.3,
    }


def _draw_panel(axes: "Axes", curves: Curves, methods: Sequence[str], rounds: int | None) -> None:
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes.set_yscale("log")
    ends = [float(run.history["round"].iloc[-1]) for runs in curves.values() for run in runs]
    reach = float(rounds or max(ends))
    for number, ((method, variant), runs) in enumerate(curves.items()):
        dash = DASHES[1] if variant == SPLIT else DASHES[0]
        _draw_method(axes, runs, look(method) | {"linestyle": dash, "linewidth": 1.0}, number / len(curves))
    axes.set_xlim(0, reach)
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, 1e-12), min(max(high, 2.0), 1e5))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    if reach >= 1e4:
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.tick_params(labelsize=6, pad=1.5, length=2)
    axes.minorticks_off()
    axes.grid(visible=True, which="major", linewidth=0.3, alpha=0.6)


def _draw_method(axes: "Axes", runs: Sequence[Result], line: dict[str, Any], phase: float) -> None:
    band = median_curve(runs)
    axes.plot(band.at, band.middle, markevery=(0.05 + 0.2 * phase, 0.3), **line)
    if len(runs) > 1:
        axes.fill_between(band.at, band.low, band.high, color=line["color"], alpha=0.18, linewidth=0)
    if mostly(run.status == "diverged" for run in runs):
        axes.plot(band.at[-1], band.middle[-1], color=line["color"], marker="X", markersize=5, zorder=5)


def _say(axes: "Axes", reason: str) -> None:
    """Write into an empty panel why it is empty."""
    import textwrap

    axes.set(xticks=[], yticks=[])
    text = "\n".join(textwrap.wrap(reason or "not run", 30)[:6])
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=5, color="0.4")


def _legend(panels: Sequence[tuple[PaperPanel, Curves, str]], methods: Sequence[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    entries = [Line2D([], [], label=method_class(name).title, linewidth=1.0, **look(name)) for name in methods]
    runs = [(key, run) for _, curves, _ in panels for key, several in curves.items() for run in several]
    if any(variant == SPLIT for (_, variant), _ in runs):
        entries.append(Line2D([], [], color="0.4", linewidth=1.0, linestyle=DASHES[1], label="split by label"))
    if any(run.status == "diverged" for _, run in runs):
        entries.append(Line2D([], [], color="0.6", linestyle="", marker="X", label="diverged"))
    return entries
