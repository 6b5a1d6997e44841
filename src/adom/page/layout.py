"""What the page's script reads: figures, runs and motion as one small JSON object."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..algorithms import METHODS
from ..plot.curves import AXES, DASHES, SPREAD
from ..plot.style import COLOURS
from ..study.replay import Motion
from .content import Content, Figure, Line, Panel, Run
from .curves import DECADE, FLOOR, coded, letters

DARK = (
    *("#3F97D6", "#F07B2E", "#1FBF93", "#E39BC4", "#F2B632", "#9AD7F7", "#F2F2F2", "#D9CB2B"),
    *("#D0709F", "#A5A5A5", "#9A8FEA"),
)
"""The colours of `COLOURS` on a dark page: the same hues, lighter."""
COLUMNS = (
    *("source", "figure", "panel", "protocol", "method", "variant", "oracle", "seed", "status"),
    *("rounds", "gradients", "floats sent", "seconds", "relative error", "error", "gradient norm", "consensus"),
)
"""The columns of the table of runs; those in which all rows are empty are left out."""
FEW, MANY = 60, 400
"""Up to so many curves in all have many points each; more than so many have few."""
POINTS = (600, 240, 120)
"""The most points a curve has, for few, some and many curves."""


def data(content: Content) -> dict[str, Any]:
    """Return everything that the script draws."""
    lines = sum(len(panel.lines) for one in content.figures for panels in one.pages.values() for panel in panels)
    points = POINTS[0] if lines <= FEW else POINTS[1] if lines <= MANY else POINTS[2]
    return {
        "axes": AXES,
        "colours": {"light": COLOURS, "dark": DARK},
        "dashes": [[] if dash == "-" else list(dash[1]) for dash in DASHES],
        "spread": SPREAD,
        "decade": DECADE,
        "floor": FLOOR,
        "figures": [_figure(one, points) for one in content.figures],
        "runs": _runs(content.runs),
        "motion": None if content.motion is None else _motion(content.motion),
    }


def _figure(figure: Figure, points: int) -> dict[str, Any]:
    return {
        "name": figure.name,
        "title": figure.title,
        "caption": figure.caption,
        "pages": {name: [_panel(one, points) for one in panels] for name, panels in figure.pages.items()},
    }


def _panel(panel: Panel, points: int) -> dict[str, Any]:
    looks = _looks(panel.lines)
    return {
        "name": panel.name,
        "title": panel.title,
        "about": panel.about,
        "row": panel.row,
        "column": panel.column,
        "reason": panel.reason,
        "lines": [coded(line, points) | {"look": look} for line, look in zip(panel.lines, looks, strict=True)],
    }


def _looks(lines: Sequence[Line]) -> list[list[int]]:
    """Return colour, dash and marker of each line: by method where that tells them apart, otherwise by number.

    Lines of one method that differ in the variant have one colour and marker, and different dashes.
    """
    known, keys = list(METHODS), [(line.method, line.variant) for line in lines]
    if all(line.method in known for line in lines) and len(set(keys)) == len(keys):
        kinds = list(dict.fromkeys(["", *(line.variant for line in lines)]))
        found = []
        for line in lines:
            number = known.index(line.method)
            found.append([number % len(COLOURS), kinds.index(line.variant) % len(DASHES), number % len(COLOURS)])
        return found
    count = len(COLOURS)
    return [[number % count, number % len(DASHES), number % count] for number in range(len(lines))]


def _runs(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the table of runs with every text once."""
    words: dict[str, int] = {}

    def place(text: str) -> int:
        return words.setdefault(text, len(words))

    used = [name for name in COLUMNS if any(_given(one.cells.get(name)) for one in runs)]
    if len({one.cells.get("source") for one in runs}) == 1 and "source" in used:
        used.remove("source")
    numbers = [name for name in used if any(isinstance(one.cells.get(name), int | float) for one in runs)]
    rows = [
        [_number(one.cells.get(name)) if name in numbers else place(str(one.cells.get(name) or "")) for name in used]
        for one in runs
    ]
    details = [[place(part) for pair in one.details.items() for part in pair] for one in runs]
    return {"columns": used, "numbers": numbers, "rows": rows, "details": details, "words": list(words)}


def _given(value: Any) -> bool:
    return value is not None and value != "" and not (isinstance(value, float) and np.isnan(value))


def _number(value: Any) -> int | float | None:
    """Return a number with five digits; None for what is none, such as an error that is not finite."""
    if isinstance(value, int):
        return value
    return float(f"{value:.5g}") if isinstance(value, float) and np.isfinite(value) else None


def _motion(motion: Motion) -> Mapping[str, Any]:
    """Return frames, each graph as bits of all pairs of nodes, and places as thousandths of the picture's side."""
    nodes = motion.distances.shape[1]
    above = np.triu_indices(nodes, 1)
    graphs = []
    for edges in motion.edges:
        linked = np.zeros((nodes, nodes), dtype=bool)
        linked[edges.min(axis=1), edges.max(axis=1)] = True
        graphs.append(base64.b64encode(np.packbits(linked[above], bitorder="little").tobytes()).decode())
    low = np.min([place.min(axis=0) for place in motion.places], axis=0)
    span = np.max([np.ptp(place, axis=0) for place in motion.places] + [np.full(2, 1e-9)])
    places = [letters(np.rint((place - low) / span * 1000).astype(int).T.ravel()) for place in motion.places]
    with np.errstate(divide="ignore"):
        logs = np.clip(np.nan_to_num(np.log10(motion.distances), nan=-FLOOR), FLOOR, -FLOOR)
    return {
        "title": motion.title,
        "nodes": nodes,
        "rounds": [int(k) for k in motion.rounds],
        "graph": [int(g) for g in motion.graph],
        "graphs": graphs,
        "places": places,
        "distances": [letters(np.rint(DECADE * row).astype(int)) for row in logs],
    }
