"""Figures of networks: an overview; rounds side by side, or as an animation that plays in a notebook."""

import math
import os
from base64 import b64encode
from collections.abc import Sequence
from functools import cached_property
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from ..errors import InputError, InputTypeError
from ..util.cards import Markup, escaped
from ..util.checks import is_number
from ..util.files import atomic
from .style import COLOURS, magnification, plain, size
from .style import style as in_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from PIL.Image import Image

    from .display import Figure

CROWD = 300
"""Nodes above which only links are drawn."""
SAMPLED = 8
"""Graphs whose degrees are counted if a network is not held in memory."""
PANELS = 12
FRAMES = 200
FIRST = 30
"""Rounds of an animation by default."""
UNION = 100
"""The most rounds whose links place nodes without positions."""
SPREAD, DECADES = 100, 12
"""Ratio of values from which colours are logarithmic, and the most decades of such colours."""
PANEL = 1.8
"""Side in inches of a panel whose lines and dots have their normal size."""
LETTER = 0.062
"""Mean width of a title's letter in inches."""
SUFFIXES = (".gif", ".html")


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

    with in_style():
        from .display import Figure

        figure = Figure(figsize=(max(5.0, 1.8 * len(shown)), 4.1), layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=(1.25, 1))
        top, bottom = parts
        grid = np.atleast_1d(top.subplots(1, len(shown)))
        left, right = bottom.subplots(1, 2, width_ratios=(1.6, 1))
        _draw_chi(left, network)
        _draw_degrees(right, network)
        draw_rounds(grid, network, shown)  # with every chi known by now
    return figure


def draw_rounds(
    grid: "Sequence[Axes] | np.ndarray",
    network: Any,
    rounds: Sequence[int],
    *,
    side: float = PANEL,
    colours: dict[str, Any] | None = None,
    letters: float = math.inf,
) -> None:
    """Draw a round into each of the axes, `side` inches wide; titles have more than its number if `letters` fit."""
    positions, titles = _positions(network, rounds), _titles(network, rounds, letters)
    for number, (k, title) in enumerate(zip(rounds, titles, strict=True)):
        _draw_round(grid[number], network, k, positions, number, colours or {}, side)
        grid[number].set_title(title)


def _draw_links(
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


def _draw_nodes(axes: "Axes", points: np.ndarray, *, zoom: float = 1.0, **colours: Any) -> None:
    """Draw nodes as dots, in one colour or with the given arguments of `scatter`."""
    look = colours or {"color": COLOURS[0]}
    size = zoom**2 * _node_size(len(points))
    rim: dict[str, Any] = {"edgecolors": "0.25" if colours else "white", "linewidths": 0.3 * zoom}
    axes.scatter(points[:, 0], points[:, 1], s=size, zorder=2, **rim, **look)


def _node_size(nodes: int) -> float:
    """Return the area of a dot in square points."""
    return float(np.clip(600 / nodes, 3, 30))


def _set_frame(axes: "Axes", *positions: np.ndarray) -> None:
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


def rounds_figure(
    network: Any,
    k: int | Sequence[int] = 0,
    *,
    values: Any = None,
    label: str = "",
    style: str | None = None,
) -> "Figure":
    """Draw the graphs of one or several rounds; see `Network.plot`."""
    rounds = _rounds("k", [k] if np.ndim(k) == 0 else k, PANELS)
    colours = _colours(values, len(rounds), network.nodes)
    with in_style(style):
        figure, grid, side = _sheet(len(rounds), colours, label, style)
        letters = side / magnification(style) / LETTER
        draw_rounds(grid, network, rounds, side=side, colours=colours, letters=letters)
        for axes in grid[len(rounds) :]:
            axes.set_axis_off()
    return figure


class Animation:
    """Rounds of a network one after the other; made by `Network.animate`.

    In a notebook it plays, with a button and a slider, and works offline. `save` writes it to a file.
    """

    def __init__(
        self,
        network: Any,
        rounds: Sequence[int] | None,
        values: Any,
        interval: float,
        label: str,
        style: str | None,
    ) -> None:
        if network.nodes > CROWD:
            raise InputError(
                f"an animation shows {CROWD} nodes at most, got {network.nodes}; plot(k) draws a round of a larger one"
            )
        if rounds is None:
            rounds = range(min(FIRST, network.period) if values is None else len(np.atleast_1d(values)))
        if not is_number(interval) or not 1 <= interval < math.inf:
            raise InputError(f"interval must be a number of milliseconds, 1 or more, got {interval!r}; e.g. 200")
        self.network = network
        self.rounds = _rounds("rounds", rounds, FRAMES)
        self.interval = interval
        self._colours = _colours(values, len(self.rounds), network.nodes, each=True)
        self._label, self._style = label, style
        size(style)  # refuses unknown styles

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the animation as .gif, or as .html page that plays it, whole or not at all; return the path."""
        target = Path(path)
        kind = target.suffix.lower()
        if kind not in SUFFIXES:
            raise InputError(f"cannot write {target}: the suffix must be one of {', '.join(SUFFIXES)}; rename it")
        first, *rest = self._frames
        with atomic(target) as partial:
            if kind == ".gif":
                pace = {"duration": round(self.interval), "loop": 0}
                first.save(partial, format="GIF", save_all=True, append_images=rest, disposal=1, **pace)
            else:
                head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escaped(self._text)}</title>'
                partial.write_text(f"{head}{self._repr_html_()}</html>", encoding="utf-8")
        return target

    @cached_property
    def _frames(self) -> list["Image"]:
        """The pictures, each with a palette."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from PIL import Image

        frames = []
        with in_style(self._style):
            figure, (axes,), side = _sheet(1, self._colours, self._label, self._style)
            canvas: Any = FigureCanvasAgg(figure)
            positions = _positions(self.network, self.rounds)
            for number, k in enumerate(self.rounds):
                axes.clear()
                _draw_round(axes, self.network, k, positions, number, self._colours, side)
                axes.set_title(f"round {k}")
                canvas.draw()
                figure.set_layout_engine("none")  # keep the layout of the first frame, so that nothing jumps
                frames.append(Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB").quantize(256))
        return frames

    @property
    def _text(self) -> str:
        return f"{self.network.nodes} nodes and their links, rounds {self.rounds[0]} to {self.rounds[-1]}"

    def _repr_html_(self) -> str:
        pictures = []
        for frame in self._frames:
            content = BytesIO()
            frame.save(content, format="PNG", optimize=True)
            pictures.append(b64encode(content.getvalue()).decode())
        return Markup(
            PLAYER.substitute(
                name=f"adom-{uuid4().hex}",
                text=escaped(self._text),
                width=self._frames[0].width,
                first=pictures[0],
                last=len(pictures) - 1,
                frames=",".join(f'"{picture}"' for picture in pictures),
                interval=float(self.interval),
            )
        )

    def __len__(self) -> int:
        return len(self.rounds)

    def __repr__(self) -> str:
        return f"Animation({self._text}, {len(self)} frames)"


def _rounds(name: str, given: Any, most: int) -> list[int]:
    """Return checked round numbers."""
    try:
        rounds = np.asarray(given if isinstance(given, np.ndarray) else list(given))
    except TypeError:
        raise InputTypeError(f"{name} must be round numbers, got {given!r}; e.g. range(30)") from None
    if rounds.ndim != 1 or rounds.dtype.kind not in "iu" or not 1 <= len(rounds) <= most or rounds.min() < 0:
        text = f"{len(rounds)} of them" if rounds.ndim == 1 and len(rounds) > most else repr(given)
        raise InputError(f"{name} must be 1 to {most} whole numbers of rounds, counted from 0, got {text}")
    return [int(k) for k in rounds]


def _colours(given: Any, rounds: int, nodes: int, *, each: bool = False) -> dict[str, Any]:
    """Return arguments for `scatter` that colour nodes by values, with one row of "c" per round; {} without values."""
    if given is None:
        return {}
    import matplotlib
    from matplotlib.colors import LogNorm, Normalize

    try:
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"values must be numbers, one a node, got {type(given).__name__}") from None
    allowed = [(rounds, nodes)] if each else [(nodes,), (rounds, nodes)]
    if values.shape not in allowed:
        shapes = " or ".join(map(str, allowed))
        raise InputError(f"values must have the shape {shapes}, one number a node, got {values.shape}")
    values = np.broadcast_to(values, (rounds, nodes))
    finite = values[np.isfinite(values)]
    if not finite.size:
        raise InputError("values must hold some finite number, got none; leave them out for nodes of one colour")
    low, high = float(finite.min()), float(finite.max())
    positive = finite[finite > 0]
    norm = Normalize(low, high)
    if low >= 0 and positive.size and high >= SPREAD * positive.min():
        least = max(float(positive.min()), high * 10.0**-DECADES)
        values, norm = np.maximum(values, least), LogNorm(least, high)
    cmap = matplotlib.colormaps["viridis"].with_extremes(bad="0.85")
    return {"c": np.where(np.isfinite(values), values, np.nan), "norm": norm, "cmap": cmap, "plotnonfinite": True}


def _sheet(panels: int, colours: dict[str, Any], label: str, style: str | None) -> tuple["Figure", list["Axes"], float]:
    """Return an empty figure of square panels, with a colour bar if there are colours, and their side in inches."""
    from matplotlib.cm import ScalarMappable

    from .display import Figure

    scale, (width, height) = magnification(style), size(style, panels)
    rows = math.ceil(panels / (3 if width < 5 * scale else 4))
    columns = math.ceil(panels / rows)
    room = width - (0.65 * scale if colours else 0)
    side = min(room / columns, (1.4 if scale == 1 else 1.1) * height)
    figure = Figure(figsize=(width, rows * (side + 0.27 * scale)), layout="constrained")
    grid: list[Axes] = list(figure.subplots(rows, columns, squeeze=False).flat)
    if colours:
        figure.colorbar(ScalarMappable(colours["norm"], colours["cmap"]), ax=grid, label=plain(label))
    return figure, grid, side


def _draw_round(
    axes: "Axes",
    network: Any,
    k: int,
    positions: list[np.ndarray],
    number: int,
    colours: dict[str, Any],
    side: float,
) -> None:
    """Draw round k, which is panel or frame `number`."""
    points, pairs, zoom = positions[number], _pairs(network, _graph(network, k)), side / PANEL
    _draw_links(axes, points, pairs, zoom=zoom, arrows=hasattr(network, "arcs"), colour="0.6" if colours else None)
    if colours or network.nodes <= CROWD:
        row = {"c": colours["c"][number]} if colours else {}
        _draw_nodes(axes, points, zoom=zoom, **colours | row)
    _set_frame(axes, *positions)


def _titles(network: Any, rounds: Sequence[int], letters: float) -> list[str]:
    """Return a title for each round: its number and, if there is room, its links and known chi."""
    graphs = [_graph(network, k) for k in rounds]
    directed = hasattr(network, "arcs")
    titles = [f"round {k}" for k in rounds]
    counts = [f"{len(_pairs(network, g))} {'arcs' if directed else 'links'}" for g in graphs]
    candidates = [[f"{title}: {count}" for title, count in zip(titles, counts, strict=True)]]
    known = not directed and network.chi_known and network.window == 1
    if known and set(graphs) <= set(network.examined.tolist()):  # compute no chi for a title
        chis = [network.spectrum[g, 1] / network.spectrum[g, 0] for g in graphs]
        candidates.append([f"{title}, $\\chi$ = {chi:.3g}" for title, chi in zip(candidates[0], chis, strict=True)])
    for longer in candidates:
        if max(len(title.replace("$\\chi$", "x")) for title in longer) <= letters:
            titles = longer
    return titles


def _graph(network: Any, k: int) -> int:
    return int(network.order[k % network.period])


def _pairs(network: Any, g: int) -> np.ndarray:
    """Return the links of a graph, or its arcs if it is directed."""
    return np.asarray(network.arcs(g) if hasattr(network, "arcs") else network.edges(g))


def _positions(network: Any, rounds: Sequence[int]) -> list[np.ndarray]:
    """Return the nodes' positions in each round; nodes without positions stay in place over all rounds."""
    graphs = [_graph(network, k) for k in rounds]
    needed = np.unique(network.order).tolist() if network.held else graphs
    known = {g: network.positions(g) for g in needed}
    if all(points is not None and np.isfinite(points).all() for points in known.values()):
        return [np.asarray(known[g]) for g in graphs]
    return [common_layout(network)] * len(rounds)


def common_layout(network: Any) -> np.ndarray:
    """Return positions that are the same for every round.

    Links of up to `UNION` rounds place them, each as strong as it is frequent. Networks that are large or not held in
    memory lie on a circle.
    """
    import networkx as nx

    graph = nx.empty_graph(network.nodes)
    if network.held and network.nodes <= CROWD:
        chosen = network.order[np.linspace(0, network.period - 1, min(UNION, network.period)).astype(int)]
        links = np.sort(np.concatenate([_pairs(network, int(g)) for g in chosen]), axis=1)
        pairs, times = np.unique(links, axis=0, return_counts=True)
        graph.add_weighted_edges_from((u, v, w) for (u, v), w in zip(pairs.tolist(), times / len(chosen), strict=True))
        points = np.array(list(nx.spring_layout(graph, seed=0).values()))
        return np.asarray((points - points.min(axis=0)) / np.maximum(np.ptp(points, axis=0), 1e-12))
    return np.array(list(nx.circular_layout(graph).values())) / 2 + 0.5


PLAYER = Template("""<div id="$name" style="display:inline-block">
<img alt="$text" width="$width" src="data:image/png;base64,$first" style="display:block;max-width:none;margin:0">
<div style="display:flex;gap:.5em;align-items:center;width:${width}px">
<button type="button" title="play or pause" style="width:2.5em">&#9654;</button>
<input type="range" min="0" max="$last" value="0" aria-label="frame" style="flex:1"></div></div>
<script>setTimeout(function () {
  const box = document.getElementById("$name");
  if (!box) return;
  const frames = [$frames];
  const [image, button, slider] = ["img", "button", "input"].map((part) => box.querySelector(part));
  let timer = null;
  function show(frame) { slider.value = frame; image.src = "data:image/png;base64," + frames[frame]; }
  function pause() { clearInterval(timer); timer = null; button.textContent = "\\u25b6"; }
  function play() {
    button.textContent = "\\u275a\\u275a";
    timer = setInterval(() => box.isConnected ? show((Number(slider.value) + 1) % frames.length) : pause(), $interval);
  }
  button.addEventListener("click", () => timer === null ? play() : pause());
  slider.addEventListener("input", () => { pause(); show(Number(slider.value)); });
  if (frames.length > 1) play();
}, 0);</script>""")
"""Player of pictures that works offline; matplotlib's player fetches its icons."""
