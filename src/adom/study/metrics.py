"""Costs of runs: in total, and to reach a common target error."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..run.result import Result
from ..util.columns import METRICS, totals

LEAST = 1e-30
"""The smallest target, whatever the precision."""
FIRST = 0.1
"""The largest target: the first power of ten below the start."""


def start_error(result: Result) -> float:
    """Return the error at the start of a run, where all rows are 0."""
    return float(result.provenance["start_error"])


def relative_errors(result: Result) -> np.ndarray:
    """Return the error of every record divided by that at the start; NaN if the start is the solution."""
    return result.history["error"].to_numpy(dtype=float) / (start_error(result) or np.nan)


def relative(tol: float, result: Result) -> float:
    """Return an error divided by that at the start of a run; NaN if the start is the solution."""
    return tol / (start_error(result) or np.nan)


def least_error(run: Result) -> float:
    """Return the least relative error of a run, but not below its floor of rounding; infinite if none is known.

    Below that floor, rounding alone would decide the order of runs.
    """
    errors = relative_errors(run)
    least = np.min(np.where(np.isnan(errors), np.inf, errors), initial=np.inf)
    return float(max(least, run.provenance.get("floor", 0.0)))


def smallest_target(groups: Iterable[Iterable[Result]]) -> float:
    """Return the smallest power of ten that all runs of at least one group reached; 0.1 if there is none.

    A group has the runs of one method, or one setting, on all seeds. Runs that start from the solution do not count;
    if all do, return NaN.
    """
    moving = [[run for run in group if start_error(run)] for group in groups]
    worst = [max(map(least_error, group)) for group in moving if group]
    if not worst:
        return float("nan")
    least = max(min(worst), LEAST)
    return power_of_ten(least) if least <= FIRST else FIRST


def metrics(result: Result, tol: float | None, target: float) -> dict[str, Any]:
    """Return the status of a run, its total costs, and its costs to reach the target.

    The target is the error `tol` if given, otherwise the relative error `target`. The costs to reach it are those of
    the first record at the target, NaN if there is none, and 0 if the start is at the target or is the solution.
    """
    history, last, errors, start = result.columns, result.last, relative_errors(result), start_error(result)
    reached = history["error"] <= tol if tol is not None else errors <= target
    costs = dict.fromkeys(METRICS, np.nan)
    if start == 0 or (target >= 1 if tol is None else start <= tol):
        costs = dict.fromkeys(METRICS, 0.0)
    elif reached.any():
        first = int(np.argmax(reached))
        costs = {cost: float(history[column.name][first]) for cost, column in METRICS.items()}
    to_target = {
        METRICS[cost].to_target: costs[cost] for cost in reversed(METRICS)
    }  # printing hides the middle columns
    return {
        "status": result.status,
        **totals(last),
        "error": float(last["error"]),
        "target": target,
        **to_target,
        "relative_error": float(errors[-1]),
    }


def aim(target: float, reached: bool) -> str:
    """Describe the relative error up to which costs are counted; NaN means that the start is the solution.

    Examples
    --------
    >>> aim(1e-6, True), aim(0.1, False), aim(float("nan"), True)
    ('a relative error of 1e-06', 'a relative error of 0.1, which no run reached', 'the start, which is the solution')
    """
    if np.isnan(target):
        return "the start, which is the solution"
    return f"a relative error of {target:.3g}{'' if reached else ', which no run reached'}"


def power_of_ten(value: float, slack: float = 0.0) -> float:
    """Return the smallest power of ten that is at least a value, which may exceed it by a relative `slack`.

    Examples
    --------
    >>> [power_of_ten(value) for value in (3e-9, 1e-9, 2.0)]
    [1e-08, 1e-09, 10.0]
    >>> above = 1e-9 * (1 + 1e-12)
    >>> power_of_ten(above), power_of_ten(above, slack=1e-9)
    (1e-08, 1e-09)
    """
    exponent = int(np.ceil(np.log10(max(value, 1e-300))))
    powers = (float(f"1e{candidate}") for candidate in range(exponent - 1, exponent + 2))
    return next(power for power in powers if value <= power * (1 + slack))
