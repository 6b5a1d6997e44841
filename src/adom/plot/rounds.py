"""Graphs of a network's rounds: side by side, or as an animation that plays in a notebook."""

import math
import os
from base64 import b64encode
from collections.abc import Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from ..errors import InputError, InputTypeError
from ..util.cards import Markup, escaped
from ..util.checks import is_number
from ..util.files import atomic
from .graphs import CROWD, draw_links, draw_nodes, layout, set_frame
from .style import magnification, plain, size
from .style import style as in_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from PIL.Image import Image

    from .display import Figure

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
        titles = _titles(network, rounds, side / magnification(style) / LETTER)
        positions = _positions(network, rounds)
        for number in range(len(rounds)):
            _draw_round(grid[number], network, rounds[number], positions, number, colours, side)
            grid[number].set_title(titles[number])
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
        """The pictures, each with its own palette."""
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
    draw_links(axes, points, pairs, zoom=zoom, arrows=hasattr(network, "arcs"), colour="0.6" if colours else None)
    if colours or network.nodes <= CROWD:
        row = {"c": colours["c"][number]} if colours else {}
        draw_nodes(axes, points, zoom=zoom, **colours | row)
    set_frame(axes, *positions)


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
        return layout(graph, network.nodes)
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
"""Player of pictures that works offline; matplotlib's own player fetches its icons."""
