"""Compact curves: summarised over seeds, thinned to the resolution of a screen, and coded as text.

A curve is coded in two steps. First, numbers become whole: rounds as they are, heights as thousandths of a decade,
costs as cost per round in 1/4000 of the largest. Then their second differences, mostly close to 0, become letters: base
64 with a sign bit and a bit for "more follows", as in source maps. A point of a smooth curve takes one letter.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..plot.curves import tame_records
from ..plot.medians import mostly
from ..run.result import Result
from ..util.columns import AXES, STATES
from .content import Line

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
    """Return the median, the least and the greatest of the runs' last values; for one run, its own.

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
