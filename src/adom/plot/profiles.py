"""Figures of performance profiles."""

import math
from typing import TYPE_CHECKING

from .curves import DASHES
from .style import COLOURS, magnification, plain, size
from .style import style as in_style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from .display import Figure

FEW = 8
"""Methods whose names fit below the axes."""


def profile_figure(
    profile: "pd.DataFrame", *, cost: str = "rounds", ax: "Axes | None" = None, style: str | None = None
) -> "Figure":
    """Draw a performance profile: the higher a curve, the more instances; the further left, the cheaper.

    Parameters
    ----------
    profile : pandas.DataFrame
        What `adom.study.profiles.performance_profile` returns: indexed by ratio, one column a method.
    cost : str
        Name of the cost, for the axis.
    ax : matplotlib axes, optional
        To draw into; by default a figure of its own.
    style : str, optional
        "column", "page" or "slide"; see `adom.styles`.
    """
    with in_style(style):
        from .display import Figure

        scale, names, own = magnification(style), [plain(name) for name in profile.columns], ax is None
        many = len(names) > FEW
        if ax is None:
            width, height = size(style)
            columns = max(1, int(width / scale / (0.55 + 0.062 * max(map(len, names)))))
            more = 0.2 + 0.1 * (len(names) - FEW) if many else 0.17 * math.ceil(len(names) / columns)
            figure = Figure(figsize=(width, height + more * scale), layout="constrained")
            ax = figure.subplots()
        ratios = profile.index.to_numpy(dtype=float)
        end = max(float(ratios[-1]) * 1.1, 2.0)  # so that the last step shows
        for number, name in enumerate(names):
            shares = profile.iloc[:, number].to_numpy(dtype=float)
            look = {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number % len(DASHES)]}
            ax.step([*ratios, end], [*shares, shares[-1]], where="post", label=name, linewidth=1.2 * scale, **look)
        ax.set_xscale("log")
        ax.set_xlim(1.0, end)
        ticks = _ticks(end)
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.set_xticks([], minor=True)
        ax.set_ylim(-0.03, 1.03)
        ax.set_xlabel(f"{cost} over those of the best method")
        ax.set_ylabel("share of instances solved")
        ax.grid(visible=True, which="major")
        if many:  # beside the axes or below them, where they cover nothing
            ax.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5), labelspacing=0.25)
        elif own:
            figure.legend(loc="outside lower center", ncols=columns, frameon=False)
        else:
            ax.legend(fontsize="small")
        drawn: Figure = ax.figure  # type: ignore[assignment]  # of a subfigure, the figure is not asked for
    return drawn


def _ticks(end: float) -> list[int]:
    """Return round numbers from 1 to `end`, few enough to label.

    Examples
    --------
    >>> _ticks(7.3), _ticks(2500.0)
    ([1, 2, 5], [1, 10, 100, 1000])
    """
    powers = [10**exponent for exponent in range(1 + int(math.log10(end)))]
    fine = [tick for power in powers for tick in (power, 2 * power, 5 * power) if tick <= end]
    return fine if end <= 100 else powers
