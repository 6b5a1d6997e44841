"""Costs of runs: in all, and up to a common target error."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..run.result import Result

COSTS = {"rounds": "round", "gradients": "gradients", "floats_sent": "floats_sent", "seconds": "seconds"}
"""Columns of costs in a table, and the column of a history that each is read from."""
LEAST = 1e-30
"""The smallest target: below it a relative squared error is rounding."""


def start_error(result: Result) -> float:
    """Return the error of the rows at 0, from which a run starts."""
    return float(result.provenance["start_error"])


def relative_errors(result: Result) -> np.ndarray:
    """Return the error of every record over that at the start; NaN where the start is the solution."""
    return result.history["error"].to_numpy(dtype=float) / (start_error(result) or np.nan)


def relative(tol: float, result: Result) -> float:
    """Return an error over that at the start of a run; NaN where the start is the solution."""
    return tol / (start_error(result) or np.nan)


def smallest_target(results: Iterable[Result]) -> float:
    """Return the smallest power of ten that the relative error of some run reached; NaN where all stayed above 1."""
    return smallest_of(np.concatenate([[np.nan], *map(relative_errors, results)]))


def smallest_of(errors: Iterable[float]) -> float:
    """Return the smallest power of ten that some of the relative errors reach; NaN where all are above 1."""
    return _power_of_ten(np.nanmin(np.asarray(list(errors), dtype=float), initial=np.inf))


def metrics(result: Result, tol: float | None, target: float) -> dict[str, Any]:
    """Return how a run ended, its costs, and its costs up to the target.

    The target is the error `tol` where one is given, otherwise the relative error `target`. The costs are those of the
    first record at the target, NaN where there is none.
    """
    history, errors = result.history, relative_errors(result)
    last = history.iloc[-1]
    reached = history["error"].to_numpy(dtype=float) <= tol if tol is not None else errors <= target
    first = history.iloc[int(np.argmax(reached))] if reached.any() else None
    return {
        "status": result.status,
        "rounds": int(last["round"]),
        "gradients": float(last["gradients"]),
        "floats_sent": int(last["floats_sent"]),
        "seconds": float(last["seconds"]),
        "error": float(last["error"]),
        "relative_error": float(errors[-1]),
        "target": target,
        **{f"{cost}_to_target": np.nan if first is None else float(first[column]) for cost, column in COSTS.items()},
    }


def _power_of_ten(value: float) -> float:
    """Return the smallest power of ten that is not below `value`; NaN above 1.

    Examples
    --------
    >>> [_power_of_ten(value) for value in (3e-9, 1e-9, 0.2, 0.0, 1.5)]
    [1e-08, 1e-09, 1.0, 1e-30, nan]
    """
    if not value <= 1:
        return float("nan")
    exponent = int(np.ceil(np.log10(max(value, LEAST))))
    powers = (float(f"1e{candidate}") for candidate in range(exponent - 1, exponent + 2))
    return next(power for power in powers if value <= power and power >= LEAST)
