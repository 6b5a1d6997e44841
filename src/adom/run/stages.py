"""The loop of a fit with free intercepts: a few runs, called stages, each started where the last ones point to.

Nothing penalises the intercepts v of a model, but the methods need every f_i strongly convex. So a stage holds v near
its start c by a term r / 2 (v - c)^2, where r is the regulariser of the other coordinates (the proximal point method).
Along v the curvature h is larger than r, so a stage shrinks the distance to the solution to about q = r / (r + h) of
it. The secant of two stages gives q, and the next one starts where steps that each shrink by q would end.

Only this point is carried over. To start there, the nodes average their rows, and then their gradients at the average.
The gradients less their average become linear terms that sum to zero (`adom.problems.shifted`), so a stage need not
find the differences between the nodes again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..util.columns import ADDING

Array = np.ndarray
STAGES = 100
FARTHEST = 0.8
"""The largest q used for the next start; beyond it, the secant of inexact runs is too rough."""
SLOWEST, FASTEST = 0.95, 0.02
"""The q that is believed lies between these."""


class Run(NamedTuple):
    """The end of one stage."""

    status: str
    steps: Array | None  # (nodes, dim) from the centre; None if they are of no use
    near: float  # the distance to the solution that the fit asks for
    final: bool  # whether this stage was run to that distance


class Runs(Protocol):
    """The nodes of a fit, as one process or as one of several ranks."""

    def level(self, centre: Array, tilt: Array) -> Array | None:
        """Return tilts that sum to 0 and make the nodes' gradients at the centre equal; None if nothing is left."""

    def run(self, centre: Array, tilt: Array, held: Array, moved: float) -> Run:
        """Run a method from the centre with linear terms tilt + held; v has moved by `moved` in the last stage."""


def run_stages(runs: Runs, start: Array, tilt: Array, penalty: Array, scale: float = 1.0) -> tuple[str, Array]:
    """Run stages until the intercepts have settled; return the status and the rows of all nodes.

    Parameters
    ----------
    runs : Runs
    start : array of shape (dim,)
    tilt : array of shape (own nodes, dim)
        Where the tilts begin, zeros.
    penalty : array of shape (dim,)
        r for intercepts, 0 for all others.
    scale : float
        Units of `near` in a unit of v.
    """
    free = (penalty > 0).astype(float)
    centre, rows = start, start + tilt
    before: tuple[Array, Array] | None = None
    moved, slowest = np.inf, FASTEST
    for stage in range(STAGES):
        if stage or centre.any():
            levelled = runs.level(centre, tilt)
            if levelled is None:
                return "max_rounds", rows
            tilt = levelled
        run = runs.run(centre, tilt, penalty * centre, moved)
        if run.steps is None:
            return run.status, rows
        rows, step = centre + run.steps, run.steps.mean(axis=0)
        if run.status != "converged":
            return run.status, rows
        moved = scale * float(np.linalg.norm(free * step))
        factor = _shrinking(centre, step, before, free)
        slowest = max(slowest, factor)
        left = 1.0 if before is None else slowest / (1 - slowest)
        if run.final and left * moved <= run.near:
            return run.status, rows
        before, centre = (centre, step), centre + step / (1 - min(factor, FARTHEST))
    return "stages", rows


def _shrinking(centre: Array, step: Array, before: tuple[Array, Array] | None, free: Array) -> float:
    """Return the q by which the steps of the intercepts shrink: step(v + d) = step(v) - (1 - q) d."""
    if before is None:
        return 0.0
    between = free * (centre - before[0])
    length = float(between @ between)
    slope = float((step - before[1]) @ between) / length if length > 0 else -1.0
    return min(max(1 + slope, 0.0), SLOWEST)


@dataclass
class StageCosts:
    """The tables of a fit's runs, counted on from run to run."""

    spent: dict[str, Any] = field(default_factory=dict)
    tables: list[dict[str, Array]] = field(default_factory=list)

    def add(self, columns: dict[str, Array], going_on: Iterable[str] = ()) -> None:
        """Append the table of a run; the columns in `going_on` were not started anew for it."""
        table = {"stage": np.full(len(columns["round"]), len(self.tables) + 1)} | columns
        for name in ADDING:
            if name not in going_on:
                table[name] = table[name] + self.spent.get(name, 0)
            self.spent[name] = table[name][-1].item()
        self.tables.append(table)

    @property
    def history(self) -> Any:
        """One table of all runs, as `Result` takes it."""
        return {name: np.concatenate([table[name] for table in self.tables]) for name in self.tables[0]}
