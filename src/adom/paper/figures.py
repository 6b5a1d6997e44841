"""The figures of a reproduction, in the paper's arrangement: one page per figure and protocol, drawn from its files.

Panels have several methods over several seeds. Figure rates has rounds against kappa and chi on logarithmic axes, with
the exponents that claim `rates` rests on; figure network is a sample network.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..algorithms import METHODS, method_class
from ..networks import geometric
from ..plot.curves import DASHES, line_look, tidy_numbers
from ..plot.labels import cross, keys
from ..plot.medians import draw_medians
from ..plot.networks import draw_rounds
from ..plot.style import save, style
from ..run.result import Result
from ..study.execute import Outcome
from .evidence import table_of_runs
from .growth import Growth, PowerLaw, growths
from .panels import FIGURES
from .runs import PaperPanel, load_plan, read_outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 1.8, 1.45
"""Inches of a panel."""
RATES_SIDE = 3.5
"""Inches of a panel of figure rates, with its legend and the title."""
LETTERS = 16
"""Letters of a title per inch."""
POINTS = 50
"""Points of a fitted curve; a factor log(kappa) bends it."""
SYMBOLS = {"kappa": "\\kappa", "chi": "\\chi"}
KINDS = ("png", "pdf")
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
                _draw_panel(axes, curves, (rounds or {}).get((panel.row, panel.column)))
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
        draw_rounds(grid, network, rounds)
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
    return line_look(list(METHODS).index(method), 0.75) | {"linestyle": DASHES[0], "linewidth": 1.0}


def _draw_panel(axes: "Axes", curves: Curves, rounds: int | None) -> None:
    ends = [float(run.history["round"].iloc[-1]) for runs in curves.values() for run in runs]
    lines = [
        (look(method) | {"linestyle": DASHES[1] if variant == SPLIT else DASHES[0]}, runs)
        for (method, variant), runs in curves.items()
    ]
    draw_medians(axes, lines, ends={"markersize": 5}, crossed=_diverged)
    axes.set_xlim(0, float(rounds or max(ends)))
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, 1e-12), min(max(high, 2.0), 1e5))
    tidy_numbers(axes, "round", 4)
    _small(axes)


def _diverged(run: Result) -> bool:
    return run.status == "diverged"


def _small(axes: "Axes") -> None:
    """Give axes the ticks and lines of a small panel."""
    axes.minorticks_off()
    axes.tick_params(labelsize=6, pad=1.5, length=2)
    axes.grid(visible=True, which="major", linewidth=0.3, alpha=0.6)


def _say(axes: "Axes", reason: str) -> None:
    """Write into an empty panel why it is empty."""
    axes.set(xticks=[], yticks=[])
    text = "\n".join(wrap(reason or "not run", 30)[:6])
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=5, color="0.4")


def _legend(panels: Sequence[tuple[PaperPanel, Curves, str]], methods: Sequence[str]) -> list[Any]:
    entries = keys(map(look, methods), [method_class(name).title for name in methods])
    runs = [(key, run) for _, curves, _ in panels for key, several in curves.items() for run in several]
    if any(variant == SPLIT for (_, variant), _ in runs):
        entries += keys([{"color": "0.4", "linewidth": 1.0, "linestyle": DASHES[1]}], ["split by label"])
    return entries + keys([cross()], ["diverged"] if any(_diverged(run) for _, run in runs) else [])


def pages(figures: Sequence[str], protocols: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pages of some figures as (figure, protocol); figure network has the protocol ""."""
    names = dict.fromkeys(given.partition("/")[0] for given in figures)
    return [
        (name, protocol)
        for name in names
        if name != "theory"  # a table, not curves
        for protocol in ([""] if name == "network" else FIGURES[name].protocols)
        if not protocol or protocol in protocols
    ]


def pictures(folder: Path, figure: str, protocol: str) -> list[Path]:
    """Return the existing files of a page."""
    return [path for path in _files(folder, figure, protocol) if path.exists()]


def _files(folder: Path, figure: str, protocol: str) -> list[Path]:
    name = f"{figure}-{protocol}" if protocol else figure
    return [folder / "figures" / f"{name}.{kind}" for kind in KINDS]


def draw(page: tuple[str, str], folder: Path) -> None:
    """Draw a page, one figure under one protocol, as PNG and PDF; figure network has the protocol "".

    Without runs there is nothing to draw, and an old picture is removed.
    """
    figure, _ = page
    drawn = sample_network(geometric(20, 0.3, graphs=3, seed=0)) if figure == "network" else _page(folder, *page)
    for path in _files(folder, *page):
        if drawn is None:
            path.unlink(missing_ok=True)
        else:
            save(drawn, path)


def _page(folder: Path, figure: str, protocol: str) -> "Figure | None":
    """Return the picture of a figure under a protocol; None without runs."""
    plan = load_plan(folder)
    jobs = [job for job in plan.jobs if (job.panel.figure, job.protocol) == (figure, protocol)]
    outcomes = [read_outcome(job, folder, plan) for job in jobs if job.variant in ("", SPLIT)]
    if not any(outcome.result for outcome in outcomes):
        return None
    title = f"{FIGURES[figure].caption}\nparameters {protocol}{'; quick: a miniature' if plan.quick else ''}"
    laws = rates_figure(table_of_runs(outcomes), protocol, title=title) if figure == "rates" else None
    return laws or _curves(outcomes, title, list(FIGURES[figure].methods))


def _curves(outcomes: Sequence[Outcome], title: str, methods: Sequence[str]) -> "Figure":
    """Draw the curves of outcomes, each panel at its row and column."""
    shown: dict[str, tuple[PaperPanel, Any, str]] = {}
    rounds: dict[tuple[int, int], int] = {}
    for outcome in outcomes:
        panel = outcome.job.panel
        curves = shown.setdefault(panel.name, (panel, {}, outcome.reason))[1]
        if outcome.result is not None:
            curves.setdefault((outcome.job.method, outcome.job.variant), []).append(outcome.result)
        rounds[panel.row, panel.column] = max(outcome.job.rounds, rounds.get((panel.row, panel.column), 0))
    reach = _reach(list(shown.values()), rounds)
    return panel_grid(list(shown.values()), title=title, methods=methods, rounds=reach)


def _reach(
    shown: Sequence[tuple[PaperPanel, Curves, str]], rounds: Mapping[tuple[int, int], int]
) -> dict[tuple[int, int], int]:
    """Return the end of each axis: the budget, or the end of the longest run that did not diverge, if earlier."""
    reach = {}
    for panel, curves, _ in shown:
        budget = rounds[panel.row, panel.column]
        runs = [run for several in curves.values() for run in several if run.status != "diverged"]
        longest = max((int(run.history["round"].iloc[-1]) for run in runs), default=0)
        reach[panel.row, panel.column] = min(budget, longest) or budget
    return reach


def rates_figure(runs: pd.DataFrame, protocol: str, *, title: str) -> "Figure | None":
    """Draw rounds to a target over kappa and over chi for every method of Table 1; lines are the fits.

    A point is a run. The legend has the fitted exponents with their 95 % intervals, those of Table 1, and the target if
    most methods have another. Return None if there are no three values of kappa or chi.
    """
    found: dict[str, list[tuple[str, float, Growth]]] = {}
    for method, swept, bound, grown in growths(runs, protocol):
        if not isinstance(grown, str):
            found.setdefault(swept, []).append((method, bound, grown))
    if not any(len(grown.points) for rows in found.values() for _, _, grown in rows):
        return None
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(RATES_SIDE * len(found), RATES_SIDE))
        grid = figure.subplots(1, len(found), squeeze=False)[0]
        left = 0.55 / RATES_SIDE / len(found)
        figure.subplots_adjust(left=left, right=1 - left / 4, top=0.85, bottom=0.38, wspace=0.2)
        for axes, (swept, rows) in zip(grid, found.items(), strict=True):
            _draw_growths(axes, swept, rows)
        grid[0].set_ylabel("rounds to the target", fontsize=7, labelpad=2)
        figure.suptitle(title, fontsize=8, y=0.98, va="top")
    return figure


def _draw_growths(axes: "Axes", swept: str, rows: list[tuple[str, float, Growth]]) -> None:
    symbol = SYMBOLS[swept]
    axes.set(xscale="log", yscale="log")
    targets = [grown.target for _, _, grown in rows if len(grown.points)]
    usual = max(targets, key=targets.count, default=rows[0][2].target)
    for method, bound, grown in rows:
        law = grown.fit()
        label = f"{method_class(method).title}: {_label(symbol, bound, law, grown, usual)}"
        _draw_growth(axes, grown, law, look(method), label)
    points = pd.concat([grown.points for _, _, grown in rows])
    if len(points):
        least, most = np.log10([points["rounds"].min(), points["rounds"].max()])
        axes.set_ylim(10 ** np.floor(least), 10 ** np.ceil(most))
        axes.set_xlim(points["value"].min() / 1.2, points["value"].max() * 1.2)
        ticks = sorted(set(points["asked"]))
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    _small(axes)
    axes.set_xlabel(f"${symbol}$", fontsize=7, labelpad=1)
    axes.set_title(f"rounds against ${symbol}$, to a relative error of {usual:.0e}", fontsize=7, pad=3)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), frameon=False, fontsize=6, handlelength=2.2)


def _draw_growth(axes: "Axes", grown: Growth, law: PowerLaw | str, line: dict[str, Any], label: str) -> None:
    """Draw the runs of a method as points and its fit, if any, as a line."""
    from matplotlib.lines import Line2D

    points = grown.points.sort_values("value")
    where = points["value"].to_numpy()
    fitted: dict[str, Any] = {"linewidth": 0.9, "linestyle": "-" if isinstance(law, PowerLaw) else ""}
    axes.plot(where, points["rounds"], **line | {"linestyle": ""})
    if isinstance(law, PowerLaw):
        grid = np.geomspace(where[0], where[-1], POINTS)
        divisor = np.interp(np.log(grid), np.log(where), points["divisor"].to_numpy())  # linear in log(kappa)
        axes.plot(grid, np.exp(law.level) * grid**law.exponent * divisor, color=line["color"], **fitted)
    axes.add_line(Line2D([], [], label=label, **line | fitted))


def _label(symbol: str, bound: float, law: PowerLaw | str, grown: Growth, usual: float) -> str:
    """Return the legend text of a method: its exponent and Table 1's."""
    if isinstance(law, str):
        return "not fitted" + (f", {grown.dropped} runs miss {grown.target:.0e}" if grown.dropped else "")
    divided = grown.swept == "kappa" and (grown.points["divisor"] != 1).any()  # over chi, log(kappa) is a constant
    log = "\\,\\log\\kappa" if divided else ""
    target = "" if grown.target == usual else f"; target {grown.target:.0e}"
    return f"${symbol}^{{{law.exponent:.2f}}}{log}$ [{law.low:.2f}, {law.high:.2f}], Table 1: {bound:.3g}{target}"
