"""The error at which a run stops: absolute, or relative to its start."""

from dataclasses import dataclass
from math import inf
from typing import Any

from ..errors import InputError
from ..util.checks import check_real, is_number


@dataclass(frozen=True)
class Stop:
    """Where a run stops: at the squared error `tol`, or at `rtol` times that of starting at 0; neither for no limit.

    `adom.solve`, `compare`, `sweep`, settings files and agents make one of what they were given, and pass it on whole.
    """

    tol: float | None = None
    rtol: float | None = None

    def __post_init__(self) -> None:
        if self.tol is not None and not (is_number(self.tol) and 0 < self.tol < inf):
            raise InputError(f"tol must be a positive number or None, got {self.tol!r}; it bounds the squared error")
        if self.rtol is None:
            return
        check_real("rtol", self.rtol, 0.0, 1.0, "e.g. rtol=1e-6", strict=True)
        if self.tol is not None:
            raise InputError(f"rtol={self.rtol!r} and tol={self.tol!r} exclude each other; give one")

    def error(self, problem: Any) -> float | None:
        """Return the squared error at which a run on this problem stops, or None."""
        if self.rtol is None:
            return self.tol
        if not hasattr(problem, "solution"):
            raise InputError(
                f"rtol={self.rtol!r} needs a problem that knows its solution, got {type(problem).__name__}; give tol"
            )
        return float(self.rtol) * start_error(problem) or None


def start_error(problem: Any) -> float:
    """Return the squared distance from 0 to the solution, summed over nodes."""
    return float(problem.nodes * (problem.solution() ** 2).sum())
