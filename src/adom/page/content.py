"""Content of a page before its layout: figures of panels of curves, runs, claims, and a network in motion.

`data` makes one small JSON object of it for the page's script. Curves are summarised over seeds, thinned to the
resolution of a screen, and coded as text in two steps. First, numbers become whole: rounds as they are, heights as
thousandths of a decade, costs as cost per round in 1/4000 of the largest. Then their second differences, mostly close
to 0, become letters: base 64 with a sign bit and a bit for "more follows", as in source maps. A point of a smooth curve
takes one letter.
"""

import base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..algorithms import METHODS
from ..plot.curves import DASHES, SPREAD, tame_records
from ..plot.labels import ticks
from ..plot.medians import mostly
from ..plot.style import COLOURS, marks
from ..run.result import Result
from ..study.replay import Motion
from ..util.columns import AXES, COLUMNS, METRICS, STATES

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
COSTS = tuple(name for name in AXES if name != "round")
"""Horizontal axes besides "round"."""
RELATIVE = {"relative": ("relative error", "squared error / that at the start")}
MEASURES = RELATIVE | {name: (column.words, column.axis) for name, column in STATES.items()}
"""Vertical axes, the default first; a run has only those that its history gives."""
DECADE = 1000
"""Steps per decade of heights, a quarter of a percent each."""
FLOOR = -40
"""Exponent of ten at which values without a logarithm, such as 0, are drawn."""
FINE = 4000
"""Steps of the largest cost per round."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
LINES = (*DASHES, (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)))
"""Line styles of a page: enough for two variants of all methods that share a colour."""


@dataclass(frozen=True)
class Line:
    """One curve: the runs of all seeds of one method."""

    label: str
    method: str  # its name in `METHODS`, by which `looks` chooses the colour
    runs: Sequence[Result]  # one per seed
    variant: str = ""  # tells it apart from other lines of the same method in the panel, which have the same colour
    shown: bool = True  # whether it is visible at first


@dataclass(frozen=True)
class Panel:
    """Curves in one picture."""

    name: str  # unique in its figure
    title: str
    lines: Sequence[Line]
    about: str = ""  # its settings in words
    row: int = 0  # its position in the figure
    column: int = 0
    reason: str = ""  # why there are no lines, or fewer than there should be


@dataclass(frozen=True)
class Figure:
    """Panels under one or several protocols."""

    name: str
    title: str
    caption: str
    pages: Mapping[str, Sequence[Panel]]  # protocol of the parameters -> panels; the key is "" where there is only one


@dataclass(frozen=True)
class Run:
    """One row of the table of runs."""

    cells: Mapping[str, Any]  # column -> text or number
    details: Mapping[str, str]  # parameters, network, versions, commit and the like


@dataclass(frozen=True)
class Profile:
    """A performance profile, drawn into the element "profile-N" of the ledgers, where N is its number."""

    title: str
    xlabel: str
    ylabel: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    """Label -> (ratios at which its share rises, the first one 1; its share from each of these ratios on)."""
    end: float  # end of the axis of ratios


@dataclass(frozen=True)
class Content:
    """Everything that a page shows."""

    title: str
    inputs: Sequence[str]  # its sources, one line each
    figures: Sequence[Figure]
    runs: Sequence[Run]
    ledgers: Sequence[str] = ()  # the claims of each reproduction, as HTML
    motion: Motion | None = None
    motionless: str = ""  # why there is no motion, and how to get one
    tab: str = "Claims"  # name of the tab with the ledgers
    profiles: Sequence[Profile] = ()
    """One for each element "profile-N" in the ledgers. A page with profiles opens on the tab of the ledgers."""


# For the page's script


def data(content: Content) -> dict[str, Any]:
    """Return the data of a page."""
    lines = sum(len(panel.lines) for figure in content.figures for panels in figure.pages.values() for panel in panels)
    points = next((points for most, points in POINTS.items() if lines <= most), FEWEST)
    return {
        "axes": AXES,
        "across": {name: COLUMNS[name].words for name in AXES},
        "up": MEASURES,
        "colours": {"light": COLOURS, "dark": DARK},
        "dashes": [[] if dash == "-" else list(dash[1]) for dash in LINES],
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
    dashes = [(turn + variants.index(line.variant)) % len(LINES) for turn, line in zip(turns, lines, strict=True)]
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


def letters(numbers: Iterable[int]) -> str:
    """Return whole numbers as text, coded by their second differences.

    Examples
    --------
    >>> letters([0, 1, 2, 3]), letters([100, 100, 90])
    ('ACAA', 'oGpGV')
    """
    text = []
    before = slope = 0
    for number in map(int, numbers):
        step = number - before
        change, before, slope = step - slope, number, step
        rest = change << 1 if change >= 0 else (-change << 1) | 1
        while rest > 31:
            text.append(LETTERS[rest & 31 | 32])
            rest >>= 5
        text.append(LETTERS[rest])
    return "".join(text)


def coded(line: Line, points: int) -> dict[str, Any]:
    """Return a line in a form that JSON can hold.

    Over several seeds the middle is the median at equal rounds, and the band goes from the least to the greatest. A
    run that has ended keeps its last value, so the line goes to the end of the longest run; if most runs were lost, it
    goes to the median of their ends. "ends" has the last values of the runs themselves: median, least and greatest.
    """
    traces = [_trace(run) for run in line.runs]
    lost = mostly(run.lost for run in line.runs)
    ends = sorted(trace["round"][-1] for trace in traces)
    grid = _grid(traces, ends[(len(ends) - 1) // 2] if lost else ends[-1], points)
    counts = Counter(run.status for run in line.runs)
    status = ", ".join(f"{count} {name}" for name, count in counts.items()) if len(counts) > 1 else line.runs[0].status
    return {
        "label": line.label,
        "variant": line.variant,
        "seeds": len(traces),
        **({} if line.shown else {"off": True}),
        "status": status,
        **({"diverged": True} if lost else {}),
        "ends": _ends(traces, [run.lost and not lost for run in line.runs]),
        "rounds": letters(grid),
        "costs": {name: _cost(traces, name, grid) for name in COSTS},
        "heights": {name: _heights(traces, name, grid) for name in MEASURES if all(name in trace for trace in traces)},
    }


def _ends(traces: Sequence[dict[str, np.ndarray]], never: Sequence[bool]) -> dict[str, list[float | None]]:
    """Return the median, the least and the greatest of the runs' last values; for one run, its last.

    Runs with `never`, the lost ones if few, have infinite costs. None stands for numbers that are not finite.
    """
    ends = {}
    for name in ("round", *COSTS, *(name for name in MEASURES if all(name in trace for trace in traces))):
        last = np.array([trace[name][-1] for trace in traces])
        last = np.where(last <= FLOOR, 0.0, 10.0**last) if name in MEASURES else np.where(never, np.inf, last)
        numbers = [np.median(last), last.min(), last.max()] if len(last) > 1 else last
        ends[name] = [float(f"{number:.5g}") if np.isfinite(number) else None for number in numbers]
    return ends


def _trace(run: Result) -> dict[str, np.ndarray]:
    """Return the columns of a run from round 0 to its end, or until it outgrows its start; heights as logarithms."""
    history = run.columns
    main = history[run.measure].astype(float)
    start = float(run.provenance.get("start_error") or 0) if run.measure == "error" else 0.0
    stop = tame_records(main, start)

    def column(name: str) -> np.ndarray:
        return history[name].astype(float)[:stop] if name in history else np.zeros(stop)

    trace = {name: np.concatenate([[0.0], column(name)]) for name in ("round", *COSTS)}
    unknown = np.nan  # at round 0, before the first record
    if run.measure == "error":
        trace["error"] = _logs(start if start > 0 else unknown, main[:stop])
        if start > 0:
            trace["relative"] = _logs(1.0, main[:stop] / start)
    else:
        trace["gradient_norm"] = _logs(unknown, main[:stop])
    if "consensus" in history:
        trace["consensus"] = _logs(unknown, column("consensus"))
    first = int(trace["round"][1] == 0)  # a record before the first round is the start itself
    return {name: values[first:] for name, values in trace.items()}


def _logs(start: float, values: np.ndarray) -> np.ndarray:
    whole = np.concatenate([[start], values])
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log10(whole)
    return np.where(whole <= 0, FLOOR, np.clip(logs, FLOOR, -FLOOR))


def _grid(traces: Sequence[dict[str, np.ndarray]], end: float, points: int) -> np.ndarray:
    """Return the rounds of a curve up to `end`: all that were recorded, or at most `points` of them."""
    recorded = np.unique(np.concatenate([trace["round"] for trace in traces]))
    recorded = recorded[recorded <= end]
    if len(recorded) <= points:
        return np.asarray(recorded, dtype=np.int64)
    many = points * 3 // 4
    even, uneven = np.linspace(0, end, many), np.geomspace(1, end, points - many)  # the start, for logarithmic axes
    return np.unique(np.rint(np.concatenate([even, uneven])).astype(np.int64))


def _over_seeds(
    traces: Sequence[dict[str, np.ndarray]], name: str, grid: np.ndarray, beyond: float | None = None
) -> np.ndarray:
    """Return one row per seed; beyond its end a run has its last value, or `beyond`."""
    return np.stack([np.interp(grid, trace["round"], trace[name], right=beyond) for trace in traces])


def _cost(traces: Sequence[dict[str, np.ndarray]], name: str, grid: np.ndarray) -> list[Any]:
    """Return the unit of the median cost per round, and that cost as letters."""
    per_round = np.nanmedian(_over_seeds(traces, name, grid, np.nan), axis=0) / np.maximum(grid, 1)
    if grid[0] == 0 and len(grid) > 1:
        per_round[0] = per_round[1]
    largest = float(np.max(per_round))
    if not largest > 0:
        return [0, ""]
    return [float(f"{largest / FINE:.8g}"), letters(np.rint(per_round / largest * FINE).astype(int))]


def _heights(traces: Sequence[dict[str, np.ndarray]], name: str, grid: np.ndarray) -> list[str]:
    """Return the middle and, for several seeds, how far the band reaches below and above it."""
    rows = np.rint(DECADE * _over_seeds(traces, name, grid))
    known = np.isfinite(rows).any(axis=0)
    rows = np.where(known, rows, (FLOOR - 1) * DECADE)  # unknown: not drawn at all
    middle = np.rint(np.nanmedian(rows, axis=0)).astype(int)
    if len(traces) == 1:
        return [letters(middle)]
    low, high = np.nanmin(rows, axis=0).astype(int), np.nanmax(rows, axis=0).astype(int)
    return [letters(middle), letters(middle - low), letters(high - middle)]
