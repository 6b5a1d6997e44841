"""Figure rates: rounds against kappa and chi on logarithmic axes, with the exponents that claim `rates` rests on."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..algorithms import method_class
from ..plot.style import style
from .claims_theory import growths
from .figures import look
from .power_laws import Growth, PowerLaw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SYMBOLS = {"kappa": "\\kappa", "chi": "\\chi"}
WIDTH, HEIGHT = 3.5, 3.5
"""Inches of a panel with its legend and the title."""
POINTS = 50
"""Points of a fitted curve; a factor log(kappa) bends it."""


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

        figure = Figure(figsize=(WIDTH * len(found), HEIGHT))
        grid = figure.subplots(1, len(found), squeeze=False)[0]
        left = 0.55 / WIDTH / len(found)
        figure.subplots_adjust(left=left, right=1 - left / 4, top=0.85, bottom=0.38, wspace=0.2)
        for axes, (swept, rows) in zip(grid, found.items(), strict=True):
            _draw_panel(axes, swept, rows)
        grid[0].set_ylabel("rounds to the target", fontsize=7, labelpad=2)
        figure.suptitle(title, fontsize=8, y=0.98, va="top")
    return figure


def _draw_panel(axes: "Axes", swept: str, rows: list[tuple[str, float, Growth]]) -> None:
    symbol = SYMBOLS[swept]
    axes.set(xscale="log", yscale="log")
    targets = [grown.target for _, _, grown in rows if len(grown.points)]
    usual = max(targets, key=targets.count, default=rows[0][2].target)
    for method, bound, grown in rows:
        law = grown.fit()
        label = f"{method_class(method).title}: {_label(symbol, bound, law, grown, usual)}"
        _draw_method(axes, grown, law, look(method), label)
    points = pd.concat([grown.points for _, _, grown in rows])
    if len(points):
        least, most = np.log10([points["rounds"].min(), points["rounds"].max()])
        axes.set_ylim(10 ** np.floor(least), 10 ** np.ceil(most))
        axes.set_xlim(points["value"].min() / 1.2, points["value"].max() * 1.2)
        ticks = sorted(set(points["asked"]))
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.tick_params(labelsize=6, pad=1.5, length=2)
    axes.grid(visible=True, which="major", linewidth=0.3, alpha=0.6)
    axes.set_xlabel(f"${symbol}$", fontsize=7, labelpad=1)
    axes.set_title(f"rounds against ${symbol}$, to a relative error of {usual:.0e}", fontsize=7, pad=3)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), frameon=False, fontsize=6, handlelength=2.2)


def _draw_method(axes: "Axes", grown: Growth, law: PowerLaw | str, line: dict[str, Any], label: str) -> None:
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
