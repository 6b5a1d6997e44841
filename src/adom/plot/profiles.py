"""Figures of performance profiles."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .curves import DASHES
from .numbers import label, ticks
from .style import COLOURS, magnification, plain, size
from .style import style as in_style
from .words import KEY, fitted, legend_inside, legend_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from .display import Figure

FEW = 8
"""The most methods whose names go below the axes."""


BESIDE = 0.4
"""The largest part of a figure's width for names beside the axes."""


def profile_figure(
    profile: "pd.DataFrame", *, cost: str = "rounds", ax: "Axes | None" = None, style: str | None = None
) -> "Figure":
    """Draw a performance profile: the higher a curve, the more instances; the further left, the cheaper.

    Parameters
    ----------
    profile : pandas.DataFrame
        Result of `adom.study.profiles.performance_profile`: indexed by ratio, one column per method.
    cost : str
        Name of the cost, for the axis.
    ax : matplotlib axes, optional
        Axes to draw into; by default a new figure is made.
    style : str, optional
        "column", "page" or "slide"; see `adom.styles`.
    """
    with in_style(style):
        from .display import Figure

        scale, names = magnification(style), [str(name) for name in profile.columns]
        if ax is not None:
            _draw(ax, profile, names, cost, scale)
            legend_inside(ax, scale)
            drawn: Figure = ax.figure  # type: ignore[assignment]  # may be a subfigure
            return drawn
        width, height = size(style)
        if len(names) <= FEW:
            legend = legend_of(names, width, scale)
            figure = Figure(figsize=(width, height + legend.depth), layout="constrained")
            _draw(figure.subplots(), profile, legend.names, cost, scale)
            figure.legend(loc="outside lower center", ncols=legend.columns, frameon=False)
            return figure
        broken = [fitted(name, BESIDE * width - KEY * scale, 6 * scale) for name in names]
        lines = sum(map(len, broken))  # beside the axes, where they cover nothing
        figure = Figure(figsize=(width, height + (0.2 + 0.1 * max(0, lines - FEW)) * scale), layout="constrained")
        axes = figure.subplots()
        _draw(axes, profile, [plain("\n".join(each)) for each in broken], cost, scale)
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5), labelspacing=0.25)
        return figure


def _draw(axes: "Axes", profile: "pd.DataFrame", names: Sequence[str], cost: str, scale: float) -> None:
    """Draw the curves with these names."""
    ratios = profile.index.to_numpy(dtype=float)
    end = max(float(ratios[-1]) * 1.1, 2.0)  # so that the last step shows
    for number, name in enumerate(names):
        shares = profile.iloc[:, number].to_numpy(dtype=float)
        look = {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number % len(DASHES)]}
        axes.step([*ratios, end], [*shares, shares[-1]], where="post", label=name, linewidth=1.2 * scale, **look)
    axes.set_xscale("log")
    axes.set_xlim(1.0, end)
    label(axes.xaxis, ticks(1.0, end))
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel(f"{cost} over those of the best method")
    axes.set_ylabel("share of instances solved")
    axes.grid(visible=True, which="major")
