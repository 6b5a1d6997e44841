"""What runs came to: their costs, and what each of them cost to reach an error that all are measured by."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..run.result import Result

COSTS = {"rounds": "round", "gradients": "gradients", "floats_sent": "floats_sent", "seconds": "seconds"}
"""What a run costs: the column of the table, and the column of a history that it is read from."""
LEAST = 1e-30
"""The smallest target: beyond it a relative squared error is rounding."""


def start_error(one: Result) -> float:
    """Return the error of the rows at 0, from which the run started."""
    return float(one.provenance["start_error"])


def relative_errors(one: Result) -> np.ndarray:
    """Return the error of every record over that at the start; NaN where the start is the solution."""
    error, start = one.history["error"].to_numpy(dtype=float), start_error(one)
    return error / start if start > 0 else np.full_like(error, np.nan)


def reached_by_one(results: Iterable[Result]) -> float:
    """Return the smallest power of ten that the relative error of some run reached; NaN where all stayed above 1."""
    finite = [error[np.isfinite(error)] for error in map(relative_errors, results)]
    return _power_of_ten(min((float(error.min()) for error in finite if error.size), default=float("nan")))


def relative(tol: float, one: Result) -> float:
    """Return an error over that at the start of a run; NaN where the start is the solution."""
    start = start_error(one)
    return tol / start if start > 0 else float("nan")


def outcome(one: Result, tol: float | None, target: float) -> dict[str, Any]:
    """Return how a run ended, what it cost in all, and what it cost to reach the target.

    The target is the error `tol` where one is given, otherwise the relative error `target`. The costs are those of the
    first record at the target, NaN where there is none.
    """
    last = one.history.iloc[-1]
    reached = one.history["error"].to_numpy(dtype=float) <= tol if tol is not None else relative_errors(one) <= target
    first = one.history.iloc[int(np.argmax(reached))] if reached.any() else None
    return {
        "status": one.status,
        "rounds": int(last["round"]),
        "gradients": float(last["gradients"]),
        "floats_sent": int(last["floats_sent"]),
        "seconds": float(last["seconds"]),
        "error": float(last["error"]),
        "relative_error": float(relative_errors(one)[-1]),
        "target": target,
        **{
            f"{cost}_to_target": float("nan") if first is None else float(first[column])
            for cost, column in COSTS.items()
        },
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
