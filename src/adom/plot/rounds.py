"""Rounds of a network as graphs: side by side, or as frames of an animation that plays in a notebook."""

import math
import os
from base64 import b64encode
from collections.abc import Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np

from ..errors import InputError, InputTypeError
from ..util.cards import Markup, escaped
from ..util.files import atomic
from .graphs import CROWD, _layout, draw_links, draw_nodes, set_frame
from .style import magnification, size
from .style import style as in_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from PIL.Image import Image

    from .display import Figure

PANELS = 12
FRAMES = 200
FIRST = 30
"""Rounds that an animation shows unless it is told which."""
UNION = 100
"""Graphs of a network from which nodes that lie nowhere get their places."""
SPREAD, DECADES = 100, 12
"""How much values may spread before their colours are logarithmic, and how far down those reach."""
PANEL = 1.8
"""The side of a panel, in inches, for which lines and dots have their sizes."""
LETTER = 0.062
"""The mean width of a letter of a title, in inches."""
SUFFIXES = (".gif", ".html")


class Shades(NamedTuple):
    """Numbers of nodes, one row a round, and how they become colours."""

    values: np.ndarray
    norm: Any
    cmap: Any


def rounds_figure(
    network: Any,
    k: int | Sequence[int] = 0,
    *,
    values: Any = None,
    label: str = "",
    style: str | None = None,
) -> "Figure":
    """Draw the graphs of one or several rounds; see `Network.plot`."""
    shown = _rounds("k", [k] if np.ndim(k) == 0 else k, PANELS)
    shades = None if values is None else _shades(values, len(shown), network.nodes)
    with in_style(style):
        figure, grid, side = _sheet(len(shown), shades, label, style)
        titles = _titles(network, shown, side / magnification(style) / LETTER)
        places = _places(network, shown)
        for number, (axes, one) in enumerate(zip(grid, shown, strict=False)):
            _draw_round(axes, network, one, places[number], _row(shades, number), side)
            set_frame(axes, *places)
            axes.set_title(titles[number])
        for axes in grid[len(shown) :]:
            axes.set_axis_off()
    return figure


class Animation:
    """Rounds of a network one after the other; made by `Network.animate`.

    In a notebook it plays, with a button and a slider, and needs nothing from the network to do so. `save` writes it.
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
        if isinstance(interval, bool) or not isinstance(interval, int | float) or not 1 <= interval < math.inf:
            raise InputError(f"interval must be a number of milliseconds, 1 or more, got {interval!r}; e.g. 200")
        self.network = network
        self.rounds = _rounds("rounds", rounds, FRAMES)
        self.interval = interval
        self._shades = None if values is None else _shades(values, len(self.rounds), network.nodes, each=True)
        self._label, self._style = label, style
        size(style)  # which refuses styles that there are not

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a .gif, or a .html page that plays it; whole or not at all. Return the path."""
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
                head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escaped(self._said)}</title>'
                partial.write_text(f"{head}{self._repr_html_()}</html>", encoding="utf-8")
        return target

    @cached_property
    def _frames(self) -> list["Image"]:
        """The pictures, with a palette each."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from PIL import Image

        frames = []
        with in_style(self._style):
            figure, (axes,), side = _sheet(1, self._shades, self._label, self._style)
            canvas: Any = FigureCanvasAgg(figure)
            places = _places(self.network, self.rounds)
            for number, k in enumerate(self.rounds):
                axes.clear()
                _draw_round(axes, self.network, k, places[number], _row(self._shades, number), side)
                set_frame(axes, *places)
                axes.set_title(f"round {k}")
                canvas.draw()
                figure.set_layout_engine("none")  # what the first frame has found; nothing may jump
                frames.append(Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB").quantize(256))
        return frames

    @property
    def _said(self) -> str:
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
                said=escaped(self._said),
                width=self._frames[0].width,
                first=pictures[0],
                last=len(pictures) - 1,
                frames=",".join(f'"{one}"' for one in pictures),
                interval=float(self.interval),
            )
        )

    def __len__(self) -> int:
        return len(self.rounds)

    def __repr__(self) -> str:
        return f"Animation({self._said}, {len(self)} frames)"


def _rounds(name: str, given: Any, most: int) -> list[int]:
    """Return round numbers, or say what is wrong with them."""
    try:
        found = np.asarray(given if isinstance(given, np.ndarray) else list(given))
    except TypeError:
        raise InputTypeError(f"{name} must be round numbers, got {given!r}; e.g. range(30)") from None
    if found.ndim != 1 or found.dtype.kind not in "iu" or not 1 <= len(found) <= most or found.min() < 0:
        shown = f"{len(found)} of them" if found.ndim == 1 and len(found) > most else repr(given)
        raise InputError(f"{name} must be 1 to {most} whole numbers of rounds, counted from 0, got {shown}")
    return [int(one) for one in found]


def _shades(values: Any, rounds: int, nodes: int, *, each: bool = False) -> Shades:
    """Return how the nodes are coloured in each round."""
    import matplotlib
    from matplotlib.colors import LogNorm, Normalize

    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"values must be numbers, one a node, got {type(values).__name__}") from None
    allowed = [(rounds, nodes)] if each else [(nodes,), (rounds, nodes)]
    if found.shape not in allowed:
        wanted = " or ".join(map(str, allowed))
        raise InputError(f"values must have the shape {wanted}, one number a node, got {found.shape}")
    found = np.broadcast_to(found, (rounds, nodes))
    known = found[np.isfinite(found)]
    if not known.size:
        raise InputError("values must hold some finite number, got none; leave them out for nodes of one colour")
    low, high = float(known.min()), float(known.max())
    positive = known[known > 0]
    norm = Normalize(low, high)
    if low >= 0 and positive.size and high >= SPREAD * positive.min():
        least = max(float(positive.min()), high * 10.0**-DECADES)
        found, norm = np.maximum(found, least), LogNorm(least, high)
    cmap = matplotlib.colormaps["viridis"].with_extremes(bad="0.85")
    return Shades(np.where(np.isfinite(found), found, np.nan), norm, cmap)


def _row(shades: Shades | None, number: int) -> dict[str, Any]:
    """Return what `scatter` is told of the colours of one round."""
    if shades is None:
        return {}
    return {"c": shades.values[number], "norm": shades.norm, "cmap": shades.cmap, "plotnonfinite": True}


def _sheet(panels: int, shades: Shades | None, label: str, style: str | None) -> tuple["Figure", list["Axes"], float]:
    """Return an empty figure of square panels, with a bar of colours if there are any, and their side in inches."""
    from matplotlib.cm import ScalarMappable

    from .display import Figure

    scale, (width, height) = magnification(style), size(style, panels)
    rows = math.ceil(panels / (3 if width < 5 * scale else 4))
    columns = math.ceil(panels / rows)
    room = width - (0.65 * scale if shades else 0)
    side = min(room / columns, (1.4 if scale == 1 else 1.1) * height)
    figure = Figure(figsize=(width, rows * (side + 0.27 * scale)), layout="constrained")
    grid: list[Axes] = list(figure.subplots(rows, columns, squeeze=False).flat)
    if shades is not None:
        figure.colorbar(ScalarMappable(shades.norm, shades.cmap), ax=grid, label=label)
    return figure, grid, side


def _draw_round(axes: "Axes", network: Any, k: int, place: np.ndarray, colours: dict[str, Any], side: float) -> None:
    pairs = _pairs(network, int(network.order[k % network.period]))
    arrows = hasattr(network, "arcs")
    zoom = side / PANEL
    draw_links(axes, place, pairs, zoom=zoom, arrows=arrows, colour="0.6" if colours else None)
    if colours or network.nodes <= CROWD:
        draw_nodes(axes, place, zoom=zoom, **colours)


def _titles(network: Any, rounds: Sequence[int], letters: float) -> list[str]:
    """Return of each round its number, its links and, where it is known, its chi: as much as there is room for."""
    graphs = [int(network.order[k % network.period]) for k in rounds]
    titles = [f"round {k}" for k in rounds]
    counts = [f"{len(_pairs(network, g))} {'arcs' if hasattr(network, 'arcs') else 'links'}" for g in graphs]
    candidates = [[f"{title}: {count}" for title, count in zip(titles, counts, strict=True)]]
    known = not hasattr(network, "arcs") and network.chi_known  # nothing is computed for a title
    if known and set(graphs) <= set(network.examined.tolist()):
        chis = [network.spectrum[g, 1] / network.spectrum[g, 0] for g in graphs]
        candidates.append([f"{title}, $\\chi$ = {chi:.3g}" for title, chi in zip(candidates[0], chis, strict=True)])
    for longer in candidates:
        if max(len(title.replace("$\\chi$", "x")) for title in longer) <= letters:
            titles = longer
    return titles


def _pairs(network: Any, g: int) -> np.ndarray:
    """Return the links of a graph, from one node to another."""
    return np.asarray(network.arcs(g) if hasattr(network, "arcs") else network.edges(g))


def _places(network: Any, rounds: Sequence[int]) -> list[np.ndarray]:
    """Return where the nodes lie in each round; where they lie nowhere, they keep one place over all rounds."""
    graphs = [int(network.order[k % network.period]) for k in rounds]
    asked = np.unique(network.order).tolist() if network.held else graphs
    known = {g: network.positions(g) for g in asked}
    if all(place is not None and np.isfinite(place).all() for place in known.values()):
        return [np.asarray(known[g]) for g in graphs]
    return [common_layout(network)] * len(rounds)


def common_layout(network: Any) -> np.ndarray:
    """Place nodes by all links of a period together, each as strong as it is frequent; the same for every round."""
    import networkx as nx

    graph = nx.empty_graph(network.nodes)
    if network.held and network.nodes <= CROWD:
        chosen = network.order[np.linspace(0, network.period - 1, min(UNION, network.period)).astype(int)]
        links = np.sort(np.concatenate([_pairs(network, int(g)) for g in chosen]), axis=1)
        pairs, times = np.unique(links, axis=0, return_counts=True)
        graph.add_weighted_edges_from((u, v, w) for (u, v), w in zip(pairs.tolist(), times / len(chosen), strict=True))
        return _layout(graph, network.nodes)
    return np.array(list(nx.circular_layout(graph).values())) / 2 + 0.5


PLAYER = Template("""<div id="$name" style="display:inline-block">
<img alt="$said" width="$width" src="data:image/png;base64,$first" style="display:block;max-width:none;margin:0">
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
"""Pictures that play one after the other and need nothing from outside; matplotlib's own player fetches its icons."""
