"""Overview of a network: some of its rounds, its chi by round, its degrees."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, InputTypeError
from .style import COLOURS, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .display import Figure

CROWD = 300
"""Nodes above which only links are drawn."""
SAMPLED = 8
"""Graphs whose degrees are counted if a network is not held in memory."""


def network_picture(network: Any, rounds: Sequence[int] | None = None) -> "Figure":
    """Draw some rounds of a network side by side, its chi round by round, and its degrees.

    Parameters
    ----------
    network : Network
    rounds : sequence of int, optional
        The rounds to draw; by default the first ones of the first three distinct graphs.

    Examples
    --------
    >>> import adom
    >>> network = adom.networks.alternate([adom.networks.ring(8), adom.networks.star(8)], every=5)
    >>> [axes.get_title().split(":")[0] for axes in network_picture(network).axes[:2]]
    ['round 0', 'round 5']
    """
    if not hasattr(network, "positions"):
        raise InputTypeError(f"network_picture draws adom networks, got {type(network).__name__}; e.g. ring(10)")
    first = np.sort(np.unique(network.order, return_index=True)[1])  # round of each distinct graph
    shown = [int(k) for k in (first[:3] if rounds is None else rounds)]
    if not shown or min(shown) < 0 or len(shown) > 6:
        raise InputError(f"rounds must be one to six round numbers from 0, got {shown}; e.g. rounds=(0, 1)")

    with style():
        from .display import Figure

        figure = Figure(figsize=(max(5.0, 1.8 * len(shown)), 4.1), layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=(1.25, 1))
        top, bottom = parts
        for axes, k in zip(np.atleast_1d(top.subplots(1, len(shown))), shown, strict=True):
            draw_graph(axes, network, k)
        left, right = bottom.subplots(1, 2, width_ratios=(1.6, 1))
        _draw_chi(left, network)
        _draw_degrees(right, network)
    return figure


def draw_graph(axes: "Axes", network: Any, k: int) -> None:
    """Draw the graph of round k, with its number of links and its chi as the title."""
    g = int(network.order[k % network.period])
    edges, points = network.edges(g), network.positions(g)
    points = layout(network.graph(k), network.nodes) if points is None else points
    draw_links(axes, points, edges)
    if network.nodes <= CROWD:
        draw_nodes(axes, points)
    set_frame(axes, points)
    low, high = network.spectrum[g]
    chi = high / low if low > 0 else np.nan
    axes.set_title(f"round {k}: {len(edges)} links" + (f", $\\chi$ = {chi:.3g}" if np.isfinite(chi) else ""))


def draw_links(
    axes: "Axes",
    points: np.ndarray,
    pairs: np.ndarray,
    *,
    zoom: float = 1.0,
    arrows: bool = False,
    colour: str | None = None,
) -> None:
    """Draw links between points, optionally as arrows from the first to the second of each pair."""
    from matplotlib.collections import LineCollection

    colour = colour or ("0.25" if len(points) > CROWD else "0.4")
    strength = zoom * float(np.clip(15 / math.sqrt(max(1, len(pairs))), 0.35, 1))
    if arrows:
        start = points[pairs[:, 0]]
        step = points[pairs[:, 1]] - start
        gap = math.sqrt(_node_size(len(points))) / 2 / 72 / 1.7 * _side(points)  # a node's radius in a 1.7-inch panel
        short = np.maximum(1 - gap / np.maximum(np.hypot(*step.T), 1e-12), 0)[:, None] * step
        shape: dict[str, Any] = {"width": 0.009 * strength, "headwidth": 6, "headlength": 7, "headaxislength": 6}
        unscaled: dict[str, Any] = {"units": "inches", "angles": "xy", "scale_units": "xy", "scale": 1}
        axes.quiver(*start.T, *short.T, color=colour, alpha=0.8, **shape, **unscaled)
        return
    lines = LineCollection(points[pairs], colors=colour, linewidths=0.7 * strength, alpha=0.8)
    lines.set_rasterized(len(pairs) > 5000)
    axes.add_collection(lines)


def draw_nodes(axes: "Axes", points: np.ndarray, *, zoom: float = 1.0, **colours: Any) -> None:
    """Draw nodes as dots, in one colour or with the given arguments of `scatter`."""
    look = colours or {"color": COLOURS[0]}
    size = zoom**2 * _node_size(len(points))
    rim: dict[str, Any] = {"edgecolors": "0.25" if colours else "white", "linewidths": 0.3 * zoom}
    axes.scatter(points[:, 0], points[:, 1], s=size, zorder=2, **rim, **look)


def _node_size(nodes: int) -> float:
    """Return the area of a dot in square points."""
    return float(np.clip(600 / nodes, 3, 30))


def set_frame(axes: "Axes", *positions: np.ndarray) -> None:
    """Show the unit square, or the square around points that leave it or fill only a corner of it."""
    points = np.concatenate(positions)
    side = _side(points)
    if side == 1:
        axes.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04))
    else:
        x, y = (points.min(axis=0) + points.max(axis=0)) / 2
        half = 0.54 * side
        axes.set(xlim=(x - half, x + half), ylim=(y - half, y + half))
    axes.set_aspect("equal")
    axes.set_axis_off()


def _side(points: np.ndarray) -> float:
    """Return the side of the square to show: 1 for the unit square."""
    span = max(float(np.ptp(points, axis=0).max()), 1e-12)
    unit = points.min() >= 0 and points.max() <= 1 and span >= 0.5
    return 1.0 if unit else span


def layout(graph: Any, nodes: int) -> np.ndarray:
    """Return positions for nodes that have none, on a circle if a better layout would take long."""
    import networkx as nx

    positions = nx.spring_layout(graph, seed=0) if nodes <= CROWD else nx.circular_layout(graph)
    points = np.array([positions[i] for i in range(nodes)])
    return np.asarray((points - points.min(axis=0)) / np.maximum(np.ptp(points, axis=0), 1e-12))


def _draw_chi(axes: "Axes", network: Any) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, ScalarFormatter

    chis = network.chis
    step = max(1, math.ceil(len(chis) / 1000))
    known = np.flatnonzero(np.isfinite(chis))
    if known.size == len(chis):
        rounds = np.arange(0, len(chis), step)
        worst = np.maximum.reduceat(chis, rounds)  # the worst round of every stretch stays visible
        rounds, worst = np.append(rounds, len(chis)), np.append(worst, worst[-1])
        axes.plot(rounds, worst, color=COLOURS[0], linewidth=0.7, drawstyle="steps-post")
    else:  # too large to examine all graphs
        step, worst = 1, chis[known] if known.size else np.array([network.chi])
        axes.plot(known, chis[known], "o", color=COLOURS[0], markersize=3)
    axes.axhline(network.chi, color=COLOURS[1], linewidth=0.8, linestyle="--")
    axes.annotate(
        f"network: $\\chi$ = {network.chi:.3g}",
        (1, network.chi),
        (0, 2),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        va="bottom",
        color=COLOURS[1],
        fontsize=7,
    )
    axes.set_yscale("log")
    low, high = float(worst.min()), max(float(worst.max()), network.chi)
    room = 2 if high / low < 2 else 1.15
    axes.set_ylim(low / room, high * max(room, 1.3, (high / low) ** 0.15))
    if high / low < 100:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(ScalarFormatter())
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(0, len(chis))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    axes.set_xlabel("round of one period" + (f" (worst of every {step})" if step > 1 else ""))
    axes.set_ylabel("$\\chi$ of the round's graph" if network.window == 1 else "$\\chi$ of the window from there")


def _draw_degrees(axes: "Axes", network: Any) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    counts = np.zeros(network.nodes, dtype=np.int64)
    used, times = np.unique(network.order, return_counts=True)
    if not network.held:
        chosen = np.linspace(0, len(used) - 1, min(SAMPLED, len(used))).astype(int)
        used, times = used[chosen], times[chosen]
    for g, weight in zip(used, times, strict=True):
        degrees = np.bincount(network.edges(int(g)).ravel(), minlength=network.nodes)
        counts += weight * np.bincount(degrees, minlength=network.nodes)
    share = counts / counts.sum()
    low, high = np.flatnonzero(counts)[[0, -1]]
    width = max(1, math.ceil((high - low + 1) / 40))
    edges = np.arange(low, high + width + 1, width)
    heights = [share[a:b].sum() for a, b in pairwise(edges)]
    axes.bar(edges[:-1] + (width - 1) / 2, heights, width=0.9 * width, color=COLOURS[2])
    axes.set_xlim(low - 0.5 - width, high + 0.5 + width)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    axes.set_xlabel("degree, over all rounds")
    axes.set_ylabel("share of nodes")
