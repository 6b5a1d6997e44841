"""The error at which a run stops: absolute, or relative to its start."""

from typing import Any

from ..errors import InputError
from ..util.checks import check_real


def check_rtol(rtol: Any, tol: Any) -> None:
    """Refuse an `rtol` that is not a number in (0, 1], or is given together with `tol`."""
    if rtol is None:
        return
    check_real("rtol", rtol, 0.0, 1.0, "e.g. rtol=1e-6", strict=True)
    if tol is not None:
        raise InputError(f"rtol={rtol!r} and tol={tol!r} exclude each other; give one")


def tolerance(problem: Any, tol: float | None, rtol: float | None) -> float | None:
    """Return the squared error to stop at: `tol`, or `rtol` times that of starting at 0; None for no limit."""
    if rtol is None:
        return tol
    if not hasattr(problem, "solution"):
        raise InputError(
            f"rtol={rtol!r} needs a problem that knows its solution, got {type(problem).__name__}; give tol"
        )
    return float(rtol) * start_error(problem) or None


def start_error(problem: Any) -> float:
    """Return the squared distance from 0 to the solution, summed over nodes."""
    return float(problem.nodes * (problem.solution() ** 2).sum())
