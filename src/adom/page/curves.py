"""Curves made small: put together over seeds, thinned out to what a screen shows, and coded as text.

A curve is coded in two steps. Numbers become whole ones: rounds as they are, heights as thousandths of a decade, costs
as cost a round in 1/4000 of the largest. Their second differences, nearly all of which are close to 0, become letters:
base 64 with a sign bit and a bit for "more follows", as source maps have it. A point of a smooth curve then takes one
letter.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..plot.curves import GROWTH
from ..run.endings import LOST
from ..run.result import Result
from .content import Line

COSTS = ("gradients", "floats_sent", "seconds")
"""The columns beside "round" that a curve may be drawn against."""
MEASURES = ("relative", "error", "gradient_norm", "consensus")
"""What a curve may show, first the one that is shown at first; a run has those that its history has."""
DECADE = 1000
"""Steps of a decade of heights: a quarter of a percent each."""
FLOOR = -40
"""The exponent of ten at which a height is drawn that no logarithm has, such as 0."""
FINE = 4000
"""Steps of a cost a round."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def letters(numbers: Iterable[int]) -> str:
    """Return whole numbers as text, by their second differences.

    Examples
    --------
    >>> letters([0, 1, 2, 3]), letters([100, 100, 90])
    ('ACAA', 'oGpGV')
    """
    found = []
    before = slope = 0
    for number in numbers:
        step = int(number) - before
        change, before, slope = step - slope, int(number), step
        left = change << 1 if change >= 0 else (-change << 1) | 1
        while left > 31:
            found.append(LETTERS[left & 31 | 32])
            left >>= 5
        found.append(LETTERS[left])
    return "".join(found)


def coded(line: Line, points: int) -> dict[str, Any]:
    """Return a line as JSON can hold it.

    Over several seeds the middle is the median at equal rounds, and the band goes from the least to the greatest, as
    far as more than half of the seeds go.
    """
    traces = [_trace(run) for run in line.runs]
    grid = _grid(traces, points)
    found: dict[str, Any] = {"label": line.label, "variant": line.variant, "seeds": len(traces)}
    if not line.shown:
        found["off"] = True
    found |= _ended(line.runs)
    found["rounds"] = letters(grid)
    found["costs"] = {name: _cost(traces, name, grid) for name in COSTS}
    present = [name for name in MEASURES if all(name in one for one in traces)]
    found["heights"] = {name: _heights(traces, name, grid) for name in present}
    return found


def _trace(run: Result) -> dict[str, np.ndarray]:
    """Return the columns of a run from round 0 to where it ends or grew wild; heights as logarithms."""
    history = run.history
    main = history[run.measure].to_numpy(dtype=float)
    start = float(run.provenance.get("start_error") or 0) if run.measure == "error" else 0.0
    first = main[0] if np.isfinite(main[0]) else 0.0
    wild = ~(main <= GROWTH * max(start, first, 1e-300))
    stop = max(1, int(np.argmax(wild))) if wild.any() else len(main)
    unknown = np.nan  # at round 0, where nothing has been recorded
    found = {name: np.concatenate([[0.0], _column(run, name)[:stop]]) for name in ("round", *COSTS)}
    if run.measure == "error":
        found["error"] = _logs(start if start > 0 else unknown, main[:stop])
        if start > 0:
            found["relative"] = _logs(1.0, main[:stop] / start)
    else:
        found["gradient_norm"] = _logs(unknown, main[:stop])
    if "consensus" in history:
        found["consensus"] = _logs(unknown, _column(run, "consensus")[:stop])
    if found["round"][1] == 0:  # what a run records before its first round is its start
        found = {name: column[1:] for name, column in found.items()}
    return found


def _column(run: Result, name: str) -> np.ndarray:
    if name not in run.history:
        return np.zeros(len(run.history))
    return run.history[name].to_numpy(dtype=float)


def _logs(start: float, values: np.ndarray) -> np.ndarray:
    whole = np.concatenate([[start], values])
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log10(whole)
    return np.where(whole <= 0, FLOOR, np.clip(logs, FLOOR, -FLOOR))


def _grid(traces: Sequence[dict[str, np.ndarray]], points: int) -> np.ndarray:
    """Return the rounds at which a curve is known: all that were recorded, or as many as asked for."""
    ends = sorted((one["round"][-1] for one in traces), reverse=True)
    end = ends[len(ends) // 2]  # more than half of them go as far
    recorded = np.unique(np.concatenate([one["round"] for one in traces]))
    recorded = recorded[recorded <= end]
    if len(recorded) <= points:
        return np.asarray(recorded, dtype=np.int64)
    many = points * 3 // 4
    even, uneven = np.linspace(0, end, many), np.geomspace(1, end, points - many)  # the start, for logarithmic axes
    return np.unique(np.rint(np.concatenate([even, uneven])).astype(np.int64))


def _over_seeds(traces: Sequence[dict[str, np.ndarray]], name: str, grid: np.ndarray) -> np.ndarray:
    """Return one row a seed, NaN beyond its end."""
    return np.stack([np.interp(grid, one["round"], one[name], right=np.nan) for one in traces])


def _cost(traces: Sequence[dict[str, np.ndarray]], name: str, grid: np.ndarray) -> list[Any]:
    """Return the cost of a whole step, and the coded steps of the median cost a round."""
    cost = np.nanmedian(_over_seeds(traces, name, grid), axis=0)
    each = cost / np.maximum(grid, 1)
    if grid[0] == 0 and len(grid) > 1:
        each[0] = each[1]
    largest = float(np.max(each))
    if not largest > 0:
        return [0, ""]
    return [float(f"{largest / FINE:.8g}"), letters(np.rint(each / largest * FINE).astype(int))]


def _heights(traces: Sequence[dict[str, np.ndarray]], name: str, grid: np.ndarray) -> list[str]:
    """Return middle, and for several seeds how far the band lies below and above it."""
    rows = np.rint(DECADE * _over_seeds(traces, name, grid))
    known = np.isfinite(rows).any(axis=0)
    rows = np.where(known, rows, (FLOOR - 1) * DECADE)  # nothing is known there: not drawn at all
    middle = np.rint(np.nanmedian(rows, axis=0)).astype(int)
    if len(traces) == 1:
        return [letters(middle)]
    low, high = np.nanmin(rows, axis=0).astype(int), np.nanmax(rows, axis=0).astype(int)
    return [letters(middle), letters(middle - low), letters(high - middle)]


def _ended(runs: Sequence[Result]) -> dict[str, Any]:
    """Return how the runs ended, in words, and whether most of them are lost: diverged or growing."""
    counts = Counter(one.status for one in runs)
    words = ", ".join(f"{count} {status}" for status, count in counts.items()) if len(counts) > 1 else runs[0].status
    lost = sum(counts[status] for status in LOST)
    return {"status": words, **({"diverged": True} if lost > len(runs) / 2 else {})}
