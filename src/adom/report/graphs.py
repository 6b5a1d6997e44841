"""Pictures of a network: some of its rounds, its chi round by round, its degrees."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, InputTypeError
from .style import COLOURS, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKED_AT = 8
"""Graphs of a network that is not held whose degrees are counted."""


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
    shown = _first_rounds(network, 3) if rounds is None else [int(k) for k in rounds]
    if not shown or min(shown) < 0 or len(shown) > 6:
        raise InputError(f"rounds must be one to six round numbers from 0, got {shown}; e.g. rounds=(0, 1)")

    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(max(5.0, 1.8 * len(shown)), 4.1), layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=(1.25, 1))
        top, bottom = parts
        for axes, k in zip(np.atleast_1d(top.subplots(1, len(shown))), shown, strict=True):
            _draw_graph(axes, network, k)
        left, right = bottom.subplots(1, 2, width_ratios=(1.6, 1))
        _draw_chi(left, network)
        _draw_degrees(right, network)
    return figure


def _first_rounds(network: Any, most: int) -> list[int]:
    """Return the first round of each of the first few distinct graphs."""
    _, first = np.unique(network.order, return_index=True)
    return [int(k) for k in np.sort(first)[:most]]


def _chis(network: Any) -> np.ndarray:
    """Return lambda_max / lambda_min_plus of every round of one period, each graph by itself."""
    low, high = network.spectrum[network.order].T
    return np.asarray(high / low)


def _draw_graph(axes: "Axes", network: Any, k: int) -> None:
    from matplotlib.collections import LineCollection

    g = int(network.order[k % network.period])
    edges, place = network.edges(g), network.positions(g)
    place = _layout(network.graph(k), network.nodes) if place is None else place
    crowd = network.nodes > 300
    strength = float(np.clip(15 / math.sqrt(len(edges)), 0.35, 1))
    lines = LineCollection(place[edges], colors="0.25" if crowd else "0.4", linewidths=0.7 * strength, alpha=0.8)
    lines.set_rasterized(len(edges) > 5000)
    axes.add_collection(lines)
    if not crowd:
        size = float(np.clip(600 / network.nodes, 3, 30))
        axes.scatter(place[:, 0], place[:, 1], s=size, color=COLOURS[0], edgecolors="white", linewidths=0.3, zorder=2)
    axes.set_aspect("equal")
    axes.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04))
    axes.set_axis_off()
    chi = _chis(network)[k % network.period]
    axes.set_title(f"round {k}: {len(edges)} links" + (f", $\\chi$ = {chi:.3g}" if np.isfinite(chi) else ""))


def _layout(graph: Any, nodes: int) -> np.ndarray:
    """Place the nodes of a graph that lie nowhere; on a circle where a better layout would take long."""
    import networkx as nx

    place = nx.spring_layout(graph, seed=0) if nodes <= 300 else nx.circular_layout(graph)
    points = np.array([place[i] for i in range(nodes)])
    return np.asarray((points - points.min(axis=0)) / np.maximum(np.ptp(points, axis=0), 1e-12))


def _draw_chi(axes: "Axes", network: Any) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, ScalarFormatter

    chis = _chis(network)
    step = max(1, math.ceil(len(chis) / 1000))
    known = np.flatnonzero(np.isfinite(chis))
    if known.size == len(chis):
        rounds = np.arange(0, len(chis), step)
        worst = np.maximum.reduceat(chis, rounds)  # so that the worst round of every stretch stays visible
        rounds, worst = np.append(rounds, len(chis)), np.append(worst, worst[-1])
        axes.plot(rounds, worst, color=COLOURS[0], linewidth=0.7, drawstyle="steps-post")
    else:  # a network too large to look at all of its graphs
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
    axes.set_ylabel("$\\chi$ of the round's graph")


def _draw_degrees(axes: "Axes", network: Any) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    counts = np.zeros(1, dtype=np.int64)
    used, times = np.unique(network.order, return_counts=True)
    if not network.held:
        chosen = np.linspace(0, len(used) - 1, min(LOOKED_AT, len(used))).astype(int)
        used, times = used[chosen], times[chosen]
    for g, weight in zip(used, times, strict=True):
        degrees = np.bincount(np.bincount(network.edges(int(g)).ravel(), minlength=network.nodes))
        if len(degrees) > len(counts):
            counts = np.pad(counts, (0, len(degrees) - len(counts)))
        counts[: len(degrees)] += weight * degrees
    share = counts / counts.sum()
    low, high = int(np.flatnonzero(counts)[0]), len(counts) - 1
    width = max(1, math.ceil((high - low + 1) / 40))
    edges = np.arange(low, high + width + 1, width)
    heights = [share[a:b].sum() for a, b in pairwise(edges)]
    axes.bar(edges[:-1] + (width - 1) / 2, heights, width=0.9 * width, color=COLOURS[2])
    axes.set_xlim(low - 0.5 - width, high + 0.5 + width)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    axes.set_xlabel("degree, over all rounds")
    axes.set_ylabel("share of nodes")
