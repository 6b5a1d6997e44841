"""Figures of results and networks, at the width of a column of a paper; matplotlib is loaded when one is drawn.

Only matplotlib's object interface is used, so no window, backend or global state is involved.
"""

import math
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.result import Result, atomic
from ..errors import InputError, InputTypeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = {
    "round": "communication rounds",
    "gradients": "gradients per node",
    "floats_sent": "numbers sent over all links",
    "seconds": "time (s), without compilation and metrics",
}
"""What a convergence figure may be drawn against, and how the axis is then labelled."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#B8A800")
"""Okabe and Ito's palette, which the colour-blind can tell apart; its pale yellow made darker."""
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)))
"""Line styles of the second and third time that the palette is gone through."""
THIN = (0, (4, 2))
GROWTH = 1e4
"""Growth over the start at which a diverging curve is cut off, so that it does not flatten the others."""
METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": "adom"},
    ".pdf": {"Creator": "adom", "Producer": None, "CreationDate": None},
    ".svg": {"Creator": "adom", "Date": None},
}
"""What a file says about its making, for each suffix that `save` takes."""
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def convergence(results: Sequence[Result], *, axis: str = "round") -> "Figure":
    """Draw error (solid) and consensus (thin, dashed) of one or more runs on a logarithmic scale.

    A run that diverged ends in a cross, at the last record before it outgrew its start by a factor of 10,000
    or ceased to be finite. Values that a logarithm does not take are left out.

    Parameters
    ----------
    results : sequence of Result
    axis : str
        "round", "gradients" (per node), "floats_sent" or "seconds".

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[2.0]], [[4.0]]], [[2.0], [0.0]])
    >>> result = adom.solve(problem, adom.networks.path(2), rounds=20)
    >>> convergence([result], axis="gradients").axes[0].get_xlabel()
    'gradients per node'
    """
    if axis not in AXES:
        raise InputError(f"unknown axis {axis!r}; use one of {', '.join(AXES)}")
    results = [results] if isinstance(results, Result) else list(results)
    for one in results:
        if not isinstance(one, Result):
            raise InputTypeError(f"convergence draws adom results, got {type(one).__name__}; adom.load reads one")
    if not results:
        raise InputError("got no results to draw; give one or more")

    with _style():
        from matplotlib.figure import Figure

        labels = _labels(results)
        handles = _legend(results, labels)
        columns = 1 if max(map(len, labels)) > 26 else 2
        height = 2.2 + 0.155 * math.ceil(len(handles) / columns)
        figure = Figure(figsize=(3.5, height), layout="constrained")
        axes = figure.add_subplot()
        axes.set_yscale("log")
        for number, one in enumerate(results):
            _draw_run(axes, one, axis, number)
        axes.set_xlabel(AXES[axis])
        axes.set_ylabel("squared distance\n(sum over nodes)")
        axes.grid(visible=True, which="major", linewidth=0.3, alpha=0.6)
        axes.margins(x=0.01)
        if not axes.lines:
            axes.set_ylim(0.1, 10)
        _tidy_numbers(axes)
        figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)
    return figure


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

    with _style():
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


def save(figure: "Figure", path: str | os.PathLike[str]) -> Path:
    """Write a figure as PNG, PDF or SVG, by the path's suffix, whole or not at all; return the path.

    The file holds neither the time nor anything of the machine: the same figure gives the same bytes.
    """
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in METADATA:
        raise InputError(f"cannot draw to {target}: the suffix must be one of {', '.join(METADATA)}; rename it")

    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "adom", "pdf.fonttype": 42}), atomic(target) as partial:
        figure.savefig(partial, format=kind[1:], dpi=300, metadata=METADATA[kind])
    return target


def _style() -> AbstractContextManager[None]:
    import matplotlib

    return matplotlib.rc_context(STYLE)


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _dash(number: int) -> Any:
    return DASHES[number // len(COLOURS) % len(DASHES)]


def protocol_name(protocol: Any) -> str:
    """Return the name of a result's parameters, such as "unit" or "theory with eta=0.1".

    Examples
    --------
    >>> protocol_name("unit"), protocol_name({"eta": 0.1}), protocol_name({"protocol": "unit", "eta": 1})
    ('unit', 'theory with eta=0.1', 'unit with eta=1')
    """
    if not isinstance(protocol, dict):
        return str(protocol or "")
    changed = ", ".join(f"{name}={value:.3g}" for name, value in protocol.items() if name != "protocol")
    return f"{protocol.get('protocol', 'theory')} with {changed}"


def _labels(results: Sequence[Result]) -> list[str]:
    """Return what tells the runs apart: method, parameters, oracle; a number where nothing else does."""
    labels = []
    for one in results:
        protocol = protocol_name(one.provenance.get("protocol"))
        oracle = one.provenance.get("oracle")
        extra = ", ".join(str(part) for part in (protocol, oracle and f"oracle {oracle}") if part)
        labels.append(f"{one.label} ({extra})" if extra else one.label)
    seen: dict[str, int] = {}
    for place, text in enumerate(labels):
        seen[text] = seen.get(text, 0) + 1
        if labels.count(text) > 1:
            labels[place] = f"{text} #{seen[text]}"
    return labels


def _legend(results: Sequence[Result], labels: Sequence[str]) -> list[Any]:
    """Return one entry a run, and what the kinds of line mean."""
    from matplotlib.lines import Line2D

    entries = [
        Line2D([], [], color=_colour(i), linestyle=_dash(i), linewidth=1.6, label=text)
        for i, text in enumerate(labels)
    ]
    entries.append(Line2D([], [], color="0.6", linewidth=1.6, label="error: distance to $x^*$"))
    entries.append(Line2D([], [], color="0.2", linewidth=0.7, linestyle=THIN, label="consensus: distance to mean"))
    if any(one.status == "diverged" for one in results):
        entries.append(Line2D([], [], color="0.6", linestyle="", marker="X", label="diverged"))
    return entries


def _draw_run(axes: "Axes", result: Result, axis: str, number: int) -> None:
    from matplotlib.colors import to_rgb

    history = result.history
    across = history[axis].to_numpy(dtype=float)
    error = history["error"].to_numpy(dtype=float)
    start = float(result.provenance.get("start_error") or 0)
    diverged = result.status == "diverged"
    stop = _end(error, start) if diverged else len(error)
    colour = _colour(number)
    marker = "o" if stop == 1 else None
    dark = tuple(0.45 * part for part in to_rgb(colour))  # stays visible where the two coincide
    for name, width, dash, ink in (("error", 1.6, _dash(number), colour), ("consensus", 0.7, THIN, dark)):
        values = history[name].to_numpy(dtype=float)[:stop]
        drawn = np.where(np.isfinite(values) & (values > 0), values, np.nan)
        if np.isfinite(drawn).any():
            axes.plot(
                across[:stop],
                drawn,
                color=ink,
                linewidth=width,
                linestyle=dash,
                marker=marker,
                markersize=2 * width,
            )
    if diverged:
        last = stop - 1
        height = error[last] if np.isfinite(error[last]) and error[last] > 0 else max(start, 1.0)
        axes.plot(across[last], height, color=colour, marker="X", markersize=6, clip_on=False, zorder=5)


def _end(error: np.ndarray, start: float) -> int:
    """Return how many records of a diverging run are drawn; one at least."""
    first = error[0] if np.isfinite(error[0]) else 0.0
    limit = GROWTH * max(start, first, 1e-300)
    wild = ~(error <= limit)
    return max(1, int(np.argmax(wild)) if wild.any() else len(error))


def _tidy_numbers(axes: "Axes") -> None:
    """Write large numbers on the horizontal axis as 20k or 3M."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
    if axes.get_xlim()[1] >= 1e4:
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))


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
        axes.scatter(
            place[:, 0], place[:, 1], s=size, color=COLOURS[0], edgecolors="white", linewidths=0.3, zorder=2
        )
    axes.set_aspect("equal")
    axes.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04))
    axes.set_axis_off()
    axes.set_title(f"round {k}: {len(edges)} links, $\\chi$ = {_chis(network)[k % network.period]:.3g}")


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
    rounds = np.arange(0, len(chis), step)
    worst = np.maximum.reduceat(chis, rounds)  # so that the worst round of every stretch stays visible
    rounds, worst = np.append(rounds, len(chis)), np.append(worst, worst[-1])
    axes.plot(rounds, worst, color=COLOURS[0], linewidth=0.7, drawstyle="steps-post")
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
