"""The error at which a run stops, as the callers of before `Stop` ask for it; goes when they do."""

from typing import Any

from .stop import Stop, start_error

__all__ = ["check_rtol", "start_error", "tolerance"]


def check_rtol(rtol: Any, tol: Any) -> None:
    """Refuse an `rtol` that is not a number in (0, 1], or is given together with `tol`."""
    if rtol is not None:
        Stop(tol, rtol)


def tolerance(problem: Any, tol: float | None, rtol: float | None) -> float | None:
    """Return the squared error to stop at: `tol`, or `rtol` times that of starting at 0; None for no limit."""
    return tol if rtol is None else Stop(tol, rtol).error(problem)
