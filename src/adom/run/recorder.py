"""What a run writes down: the plan it follows and the table that each of its members fills."""

from dataclasses import dataclass, field

import numpy as np

from ..algorithms import Method
from .endings import LOST, judge

COLUMNS = ("iteration", "round", "gradients", "floats_sent", "seconds", "error", "consensus")
APART = 1e6  # growth of the nodes' squared disagreement that is no transient
DIVERGED = 1e12  # growth of the squared distance that no transient of a converging method reaches


@dataclass(frozen=True)
class Plan:
    """How long to run, what to record and when to stop."""

    rounds: int
    record_every: int = 1
    tol: float | None = None
    dtype: str = "float64"
    start_error: float = 0.0  # of the rows at 0, against which growth is judged
    floor: float = 0.0  # the part of it below which rounding hides everything

    def next_chunk(self, iteration: int, pace: int, slots: int) -> tuple[int, int]:
        """Return how many records to make and how many steps each, about `pace` steps in all.

        Steps are counted as if each took one round; a method that takes more stops at its budget by itself.

        Examples
        --------
        >>> Plan(rounds=100, record_every=10).next_chunk(iteration=0, pace=35, slots=8)
        (3, 10)
        >>> Plan(rounds=100, record_every=10).next_chunk(iteration=90, pace=4, slots=8)
        (1, 4)
        """
        remaining = self.rounds - iteration
        to_boundary = self.record_every - iteration % self.record_every
        if to_boundary != self.record_every or min(pace, remaining) < self.record_every:
            return 1, min(pace, to_boundary, remaining)
        return min(slots, pace // self.record_every, remaining // self.record_every), self.record_every


@dataclass
class Run:
    """What becomes of one member of a run."""

    plan: Plan
    method: Method
    measure: str = "error"  # what stands in the column of errors; "" where nothing is measured
    tables: list[np.ndarray] = field(default_factory=list)
    status: str = ""
    message: str = ""

    @property
    def table(self) -> np.ndarray:
        """All records so far, one row each, in the order of `COLUMNS`."""
        return np.concatenate(self.tables) if self.tables else np.empty((0, len(COLUMNS)))

    @property
    def error(self) -> float:
        """The error of the last record."""
        return float(self.tables[-1][-1, 5]) if self.tables else np.inf

    def take(self, table: np.ndarray, interrupted: bool) -> int | None:
        """Add a chunk of records up to the one that ends the run; return which was the last one taken.

        Where the rounds are spent, the records so far say how it ended (`endings.judge`).
        Records that fall between two that were asked for are dropped, unless the run ends there.
        """
        if self.status:
            return None
        iteration, clock, error = table[:, 0], table[:, 1], table[:, 5]
        over = clock + self.method.rounds_of_step(iteration) > self.plan.rounds  # no further step fits
        final = over.copy()
        final[-1] |= interrupted
        before = np.concatenate([[self.tables[-1][-1, 0] if self.tables else 0], iteration[:-1]])
        kept = np.flatnonzero((iteration > before) & (final | (iteration % self.plan.record_every == 0)))
        if kept.size == 0:
            return None
        first = self.tables[0][0, 5] if self.tables else error[kept[0]]
        limit = DIVERGED * max(self.plan.start_error, first if np.isfinite(first) else 0.0, 1e-300)
        diverged = ~(error[kept] <= limit)
        converged = error[kept] <= self.plan.tol if self.plan.tol is not None else np.zeros_like(diverged)
        stops = np.flatnonzero(diverged | converged | over[kept])
        if stops.size:
            stop = int(stops[0])
            kept = kept[: stop + 1]
        self.tables.append(table[kept])
        if stops.size and diverged[stop]:
            self.status = "diverged"
            self.message = f"the {self.measure} reached {error[kept[-1]]:.3g} by round {int(clock[kept[-1]])}"
        elif stops.size:
            self.end()
        return int(kept[-1])

    def end(self) -> None:
        """Say how the run ended, by its records.

        Where nobody knows the error, the gradient at the mean row says nothing of nodes that run apart: their
        disagreement is looked at as well.
        """
        plan, table = self.plan, self.table
        self.status, self.message = judge(
            table[:, 1], table[:, 5], plan.start_error, plan.tol, plan.floor, self.measure
        )
        apart = table[:, 6]
        if self.measure == "gradient norm" and apart[-1] > APART * apart[0] > 0:
            ending = judge(table[:, 1], apart, measure="disagreement of the nodes")
            if ending.status in LOST:
                self.status, self.message = ending
