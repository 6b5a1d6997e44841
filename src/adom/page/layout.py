"""Data for the page's script: figures, runs and motion as one small JSON object."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from ..algorithms import METHODS
from ..plot.curves import DASHES, SPREAD
from ..plot.labels import ticks
from ..plot.style import COLOURS, marks
from ..study.replay import Motion
from ..util.columns import AXES, COLUMNS, METRICS, STATES
from .content import Content, Figure, Line, Panel, Profile, Run
from .curves import DECADE, FLOOR, MEASURES, coded, letters

DARK = (
    *("#3F97D6", "#F07B2E", "#1FBF93", "#E39BC4", "#F2B632", "#9AD7F7", "#F2F2F2", "#D9CB2B"),
    *("#D0709F", "#A5A5A5", "#9A8FEA"),
)
"""`COLOURS` for a dark page: the same hues, lighter."""
HEADS = (
    *("source", "figure", "panel", "protocol", "method", "variant", "oracle", "seed", "status"),
    *(metric.words for metric in METRICS.values()),
    *("relative error", *(column.words for column in STATES.values())),
)
"""Columns of the table of runs; empty ones are left out."""
POINTS = {60: 600, 400: 240}
"""Total number of curves -> the most points of each."""
FEWEST = 120
"""The most points of each curve if there are more curves."""


def data(content: Content) -> dict[str, Any]:
    """Return the data of a page."""
    lines = sum(len(panel.lines) for figure in content.figures for panels in figure.pages.values() for panel in panels)
    points = next((points for most, points in POINTS.items() if lines <= most), FEWEST)
    return {
        "axes": AXES,
        "across": {name: COLUMNS[name].words for name in AXES},
        "up": MEASURES,
        "colours": {"light": COLOURS, "dark": DARK},
        "dashes": [[] if dash == "-" else list(dash[1]) for dash in DASHES],
        "spread": SPREAD,
        "decade": DECADE,
        "floor": FLOOR,
        "profiles": [_profile(profile) for profile in content.profiles],
        "figures": [_figure(figure, points) for figure in content.figures],
        "runs": _runs(content.runs),
        "motion": None if content.motion is None else _motion(content.motion),
    }


def _profile(profile: Profile) -> dict[str, Any]:
    """Return the steps of a profile as lines from the ratio 1 to the end of the axis."""
    names = [Line(label, label, []) for label in profile.curves]
    lines = []
    for (label, (ratios, shares)), look in zip(profile.curves.items(), looks(names), strict=True):
        x, y = np.repeat([*ratios, profile.end], 2)[1:-1], np.repeat(shares, 2)
        numbers = {"x": [float(f"{each:.5g}") for each in x], "middle": [float(f"{each:.4g}") for each in y]}
        lines.append({"label": label, "look": look, **numbers})
    about = {name: getattr(profile, name) for name in ("title", "xlabel", "ylabel")}
    return {**about, "ticks": ticks(1.0, profile.end), "lines": lines}


def _figure(figure: Figure, points: int) -> dict[str, Any]:
    return {
        "name": figure.name,
        "title": figure.title,
        "caption": figure.caption,
        "pages": {name: [_panel(panel, points) for panel in panels] for name, panels in figure.pages.items()},
    }


def _panel(panel: Panel, points: int) -> dict[str, Any]:
    lines = [coded(line, points) | {"look": look} for line, look in zip(panel.lines, looks(panel.lines), strict=True)]
    return {**{field.name: getattr(panel, field.name) for field in fields(panel)}, "lines": lines}


def looks(lines: Sequence[Line]) -> list[list[int]]:
    """Return colour, dash and marker of each line: by method if that tells them apart, otherwise by number.

    Variants of one method share its colour and marker, and differ in the dash. Methods that share a colour differ in
    dash and marker.
    """
    known, keys = list(METHODS), [(line.method, line.variant) for line in lines]
    if not all(line.method in known for line in lines) or len(set(keys)) < len(keys):
        numbered = [(number, *marks(number)) for number in range(len(lines))]
        return [[colour, number % len(DASHES), mark] for number, colour, mark in numbered]
    variants = list(dict.fromkeys(["", *(line.variant for line in lines)]))
    numbers = [known.index(line.method) for line in lines]
    turns = [2 * (number // len(COLOURS)) for number in numbers]  # past the dashes of two variants
    dashes = [(turn + variants.index(line.variant)) % len(DASHES) for turn, line in zip(turns, lines, strict=True)]
    return [[marks(number)[0], dash, marks(number)[1]] for number, dash in zip(numbers, dashes, strict=True)]


def _runs(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the table of runs, with every text stored once."""
    words: dict[str, int] = {}

    def index(text: str) -> int:
        return words.setdefault(text, len(words))

    used = [name for name in HEADS if any(_given(run.cells.get(name)) for run in runs)]
    if len({run.cells.get("source") for run in runs}) == 1 and "source" in used:
        used.remove("source")
    numbers = [name for name in used if any(isinstance(run.cells.get(name), int | float) for run in runs)]
    rows = [
        [_number(run.cells.get(name)) if name in numbers else index(str(run.cells.get(name) or "")) for name in used]
        for run in runs
    ]
    details = [[index(part) for pair in run.details.items() for part in pair] for run in runs]
    return {"columns": used, "numbers": numbers, "rows": rows, "details": details, "words": list(words)}


def _given(value: Any) -> bool:
    return value is not None and value != "" and not (isinstance(value, float) and np.isnan(value))


def _number(value: Any) -> int | float | None:
    """Return a number to five digits; None where it is missing or not finite."""
    if isinstance(value, int):
        return value
    return float(f"{value:.5g}") if isinstance(value, float) and np.isfinite(value) else None


def _motion(motion: Motion) -> Mapping[str, Any]:
    """Return frames, with graphs as bits of all pairs of nodes, and positions as thousandths of the picture's side."""
    nodes = motion.distances.shape[1]
    graphs = []
    for edges in motion.edges:
        linked = np.zeros((nodes, nodes), dtype=bool)
        linked[edges.min(axis=1), edges.max(axis=1)] = True
        bits = np.packbits(linked[np.triu_indices(nodes, 1)], bitorder="little")
        graphs.append(base64.b64encode(bits.tobytes()).decode())
    low = np.min([points.min(axis=0) for points in motion.places], axis=0)
    span = np.max([np.ptp(points, axis=0) for points in motion.places] + [np.full(2, 1e-9)])
    with np.errstate(divide="ignore"):
        logs = np.clip(np.nan_to_num(np.log10(motion.distances), nan=-FLOOR), FLOOR, -FLOOR)
    return {
        "title": motion.title,
        "nodes": nodes,
        "rounds": motion.rounds.tolist(),
        "graph": motion.graph.tolist(),
        "graphs": graphs,
        "places": [letters(np.rint((points - low) / span * 1000).astype(int).T.ravel()) for points in motion.places],
        "distances": [letters(np.rint(DECADE * row).astype(int)) for row in logs],
    }
