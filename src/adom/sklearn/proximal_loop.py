r"""The loop around `adom.solve` that fits a model: a few runs, each started where the previous one ended.

The f_i of a model with an intercept v are not strongly convex, since nothing penalises v. So the runs minimise the mean
of the f_i plus r / 2 (v - v_k)^2, where r is the regulariser of the other coordinates and v_k the intercept before the
run (the proximal point method). This makes every f_i strongly convex with mu = r, which the other coordinates need
anyway. The curvature h along the intercept is much larger than r, so a run shrinks the distance to the solution to
about q = r / (r + h) of it. The secant of two runs gives q. The next start extends the last step by q / (1 - q) of it,
to the limit of steps that each shrink by q.

A fit without an intercept also takes several runs. Rounding makes the rows of dual variables drift, which limits the
accuracy of a run relative to the size of its numbers. A run that starts near the solution has small numbers.

Only this point is carried over to a run. To start there, the nodes average their rows, and then their gradients at
the average. The gradients minus their average become linear terms that sum to zero (`adom.problems.shifted`), so a run
need not find the differences between the nodes again. The simulation averages exactly, and counts the rounds of plain
averaging that leave a thousandth of the differences.
"""

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import pandas as pd

from ..algorithms import Method, method_class
from ..errors import InputError
from ..problems.base import Array, Problem
from ..problems.minimiser import minimum
from ..problems.shifted import Shifted
from ..run.calls.solve import solve
from ..run.constants import make_method
from ..run.provenance import describe_problem
from ..run.result import Result
from ..run.windows import in_windows
from ..util.compile_cache import double_precision

if TYPE_CHECKING:
    from .base import Decentralized

REDUCTION = 0.01
"""A run ends when this fraction of its initial distance to its own solution is left."""
AVERAGED = 1e-3
"""The fraction of the differences between nodes that averaging leaves."""
STAGES = 100
RECORD_EVERY = 10
FARTHEST = 0.8
"""The largest q used for the next start; above it, the secant of inexact runs is too rough."""
SMALL = 1e-4
"""`tol` is relative to the solution's length, but at least to this fraction of a gradient step from 0."""


@dataclass
class Costs:
    """Rounds of all runs and of the averaging between them, and the tables of the runs."""

    network: Any
    rounds: int = 0
    ends: dict[str, float] = field(default_factory=dict)  # cumulative columns at the end of the last run
    tables: list[pd.DataFrame] = field(default_factory=list)
    averaged: int = 0  # numbers a node sent in averaging since the last run

    def average(self, numbers: int, leave: float) -> None:
        """Count the rounds that average so many numbers until the fraction `leave` of their differences is left."""
        rounds = self.network.window * rounds_to_average(self.network.chi, leave)
        self.rounds += rounds
        self.averaged += rounds * numbers

    def add(self, result: Result, dim: int, vectors: int) -> None:
        """Append a run's table, its counts continued from the previous runs."""
        table = result.history.copy()
        spent = int(table["round"].iloc[-1])
        links = table["floats_sent"].iloc[-1] / (spent * dim * vectors)
        table["round"] += self.rounds
        table["floats_sent"] += round(self.averaged * links)
        for name in ("iteration", "gradients", "floats_sent", "seconds"):
            table[name] += type(table[name].iloc[0])(self.ends.get(name, 0))
            self.ends[name] = table[name].iloc[-1]
        table.insert(0, "stage", len(self.tables) + 1)
        self.tables.append(table)
        self.rounds += spent
        self.averaged = 0


def rounds_to_average(chi: float, leave: float) -> int:
    """Return how many rounds, or windows, of v <- (I - W / lambda_max) v leave at most `leave` of the differences.

    Examples
    --------
    >>> rounds_to_average(1.0, 1e-3), rounds_to_average(5.0, 1e-3)
    (1, 31)
    """
    if chi < 1 + 1e-9:
        return 1
    return math.ceil(math.log(leave) / math.log1p(-1 / chi))


@dataclass(frozen=True)
class Fit:
    """Result of `minimise`."""

    rows: np.ndarray  # (nodes, dim)
    status: str  # of the last run; "stages" after too many; "inexact" if the minimiser is not known to the tolerance
    last: Result

    @property
    def x(self) -> np.ndarray:
        """The mean over the nodes, shape (dim,)."""
        mean: np.ndarray = self.rows.mean(axis=0)
        return mean


def minimise(problem: Problem, start: np.ndarray, free: np.ndarray, estimator: "Decentralized", costs: Costs) -> Fit:
    """Minimise the mean of the f_i, without the penalty r / 2 v^2 on coordinates where `free` is 1 and not 0.

    The problem penalises all coordinates alike; its mu is r. All nodes start at `start`. The estimator gives method,
    parameters, oracle, tolerance and budget; the rounds are added to `costs`.
    """
    runner = _Runner(problem, estimator, costs)
    centre, tilt = start, np.zeros((problem.nodes, problem.dim))
    rows = centre + tilt
    before: tuple[np.ndarray, np.ndarray] | None = None
    slowest = 0.0
    for stage in range(STAGES):
        if stage or centre.any():
            averages = 2 if stage else 1  # of rows, equal before the first run, and gradients
            windows = averages * rounds_to_average(costs.network.chi, AVERAGED)
            if stage and not runner.affords(costs.network.window * windows):
                status = "max_rounds"
                break
            for _ in range(averages):
                costs.average(problem.dim, AVERAGED)
            difference = gradients(problem, centre) - tilt
            tilt = tilt + difference - difference.mean(axis=0)
        penalty = problem.mu * free * centre
        solution = minimum(problem, centre, penalty)
        goal = solution.x - centre
        shifted = Shifted(problem, centre, tilt + penalty, goal, solution.error)
        wanted = estimator.tol * max(float(np.linalg.norm(solution.x)), runner.least)
        near = max(wanted, solution.error)
        target = max(REDUCTION * float(np.linalg.norm(goal)), near)
        status, steps = runner.run(shifted, target)
        rows = rows if steps is None else centre + steps
        if steps is None or status != "converged":
            break
        step = steps.mean(axis=0)
        factor = _factor(centre, step, before, free)
        slowest = max(slowest, factor)
        left = slowest / (1 - slowest) if before is not None else 1.0
        if target == near and left * float(np.linalg.norm(free * step)) <= near:
            break
        before = centre, step
        centre = centre + step / (1 - min(factor, FARTHEST))
    else:
        status = "stages"
    if status == "converged" and near > wanted and float(np.linalg.norm(solution.x)) > solution.error:
        status = "inexact"  # but a solution that may be 0 has no length for a relative tolerance
    return Fit(rows, status, runner.last)


def gradients(problem: Problem, x: np.ndarray) -> np.ndarray:
    """Return the gradients of the f_i at a common x, of shape (nodes, dim)."""
    with double_precision():
        return np.asarray(_gradients(problem, np.broadcast_to(x, (problem.nodes, problem.dim))))


@jax.jit
def _gradients(problem: Problem, rows: Array) -> Array:
    return problem.gradient_rows(rows)


def _factor(
    centre: np.ndarray, step: np.ndarray, before: tuple[np.ndarray, np.ndarray] | None, free: np.ndarray
) -> float:
    """Return the q by which the steps of the free coordinates shrink: step(v + d) = step(v) - (1 - q) d."""
    if before is None or not free.any():
        return 0.0
    between = free * (centre - before[0])
    length = float(between @ between)
    slope = float((step - before[1]) @ between) / length if length > 0 else -1.0
    return min(max(1 + slope, 0.0), 0.95)


class _Runner:
    """Runs a method repeatedly within a budget of rounds, and keeps tuned parameters."""

    def __init__(self, problem: Problem, estimator: "Decentralized", costs: Costs) -> None:
        self.problem, self.estimator, self.costs = problem, estimator, costs
        self.method, self.oracle = estimator.method, estimator.oracle
        self.parameters = estimator.parameters
        size = float(np.linalg.norm(gradients(problem, np.zeros(problem.dim)), axis=-1).mean())
        self.least = max(SMALL * size / problem.L, 1e-150)
        self.last: Any = None

    def run(self, shifted: Shifted, target: float) -> tuple[str, np.ndarray | None]:
        """Run until the rows are within `target` of the solution (root mean square over the nodes).

        Return the status and the rows, which are None after a run that diverged or ended worse than it started, or
        if the budget covers no step.
        """
        while True:
            method = self._make_method()
            if not self.affords(0):
                return "max_rounds", None
            result = solve(
                shifted,
                self.costs.network,
                self.method,
                self.parameters,
                self.oracle,
                rounds=int(self.estimator.max_rounds) - self.costs.rounds,
                tol=shifted.nodes * target**2,
                record_every=RECORD_EVERY if method.rounds_per_step == 1 else 1,
                progress=None if self.estimator.verbose else False,
            )
            if result.status == "interrupted":
                raise KeyboardInterrupt
            self.costs.add(result, shifted.dim, method.vectors_per_round)
            self.last = result
            if self.parameters == "tuned":  # keep them: mu, L and the network stay the same
                tuned = result.provenance["method"]
                self.method, self.parameters = method_class(tuned["name"])(**tuned["parameters"]), "given"
                self.oracle = result.provenance["oracle"] or "auto"
            worse = result.status == "growing" and result.history["error"].iloc[-1] > result.provenance["start_error"]
            return result.status, None if worse or result.status == "diverged" else result.x

    def _make_method(self) -> Method:
        parameters = "unit" if self.parameters == "tuned" else self.parameters
        return make_method(self.problem, self.costs.network, self.method, parameters)

    def affords(self, rounds: int) -> bool:
        """Return whether the budget covers `rounds` and a first step; raise an error if not, before the first run."""
        method = self._make_method()
        first = int(in_windows(method, self.costs.network).rounds_of_step(0))
        enough = self.costs.rounds + rounds + first <= self.estimator.max_rounds
        if not enough and self.last is None:
            raise InputError(
                f"max_rounds={self.estimator.max_rounds} does not cover the first step: averaging takes "
                f"{self.costs.rounds} rounds and a step of {method.title} {first}; allow more"
            )
        return bool(enough)


def summary(fit: Fit, problem: Problem, rows: np.ndarray, costs: Costs) -> Result:
    """Return one result for all runs: the nodes' own models, one table, and the provenance of the last run."""
    provenance = {**fit.last.provenance, "problem": describe_problem(problem), "stages": len(costs.tables)}
    history = pd.concat(costs.tables, ignore_index=True)
    return replace(fit.last, x=rows, history=history, status=fit.status, provenance=provenance)
