r"""The loop around `adom.solve` that fits a model: a few runs, each started where the one before ended.

The f_i of a model with an intercept v are not strongly convex, since nothing penalises v. So the runs minimise the mean
of the f_i plus r / 2 (v - v_k)^2, where r is the regulariser of the other coordinates and v_k the intercept before the
run (the proximal point method). This makes every f_i strongly convex with mu = r, which the other coordinates need
anyway. The curvature h along the intercept is by far the larger, so the distance to the solution shrinks by about
q = r / (r + h) a run. Two runs give q, by the secant; the next start lies q / (1 - q) of the last step further along
it, where steps that shrink by q each would end.

Without an intercept there is more than one run as well: rounding makes the rows of dual variables drift, which bounds
the accuracy of one run relative to the size of what it computes. A run that starts near computes small numbers.

A run keeps only the point of the one before. For a warm start, nodes average their rows, and then their gradients
there. The gradients less their average become linear terms that sum to zero (`adom.problems.shifted`), so that the
differences between the nodes need not be found again. The averages are exact here, and counted as the rounds of plain
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
from ..run.constants import make_method
from ..run.provenance import describe_problem
from ..run.result import Result
from ..run.solve import solve
from ..run.windows import in_windows
from ..util.compile_cache import double_precision

if TYPE_CHECKING:
    from .base import Decentralized

REDUCTION = 0.01
"""The part of the distance to its own solution that a run leaves."""
AVERAGED = 1e-3
"""The part of the differences between the nodes that averaging leaves."""
STAGES = 100
RECORD_EVERY = 10
FARTHEST = 0.8
"""The largest q used for the next start; beyond, the secant of inexact runs is too rough."""
SMALL = 1e-4
"""The tolerance of a solution shorter than this part of a gradient step is relative to that part instead."""


@dataclass
class Costs:
    """Rounds and tables of all runs, and of the averaging between them."""

    network: Any
    rounds: int = 0
    ends: dict[str, float] = field(default_factory=dict)  # the counted columns after the last run
    tables: list[pd.DataFrame] = field(default_factory=list)
    averaged: int = 0  # numbers a node sent in averaging since the last run

    def average(self, numbers: int, leave: float) -> None:
        """Count the rounds in which nodes average so many numbers until `leave` is left of their differences."""
        rounds = self.network.window * rounds_to_average(self.network.chi, leave)
        self.rounds += rounds
        self.averaged += rounds * numbers

    def add(self, result: Result, dim: int, vectors: int) -> None:
        """Append a run's table, its counts continuing those before."""
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
    """Return how many rounds, or windows, of v <- (I - W / lambda_max) v leave at most this part of the differences.

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
    status: str  # of the last run; "stages" after too many; "inexact" if the minimiser itself is not known well enough
    last: Result

    @property
    def x(self) -> np.ndarray:
        """The mean over the nodes, shape (dim,)."""
        mean: np.ndarray = self.rows.mean(axis=0)
        return mean


def minimise(problem: Problem, start: np.ndarray, free: np.ndarray, estimator: "Decentralized", costs: Costs) -> Fit:
    """Minimise the mean of the f_i, less the penalty r / 2 v^2 of the coordinates where `free` is 1 and not 0.

    The problem penalises all coordinates alike; its mu is r. The start is the same at all nodes. The estimator gives
    method, parameters, oracle, tolerance and budget; costs are added to.
    """
    runner = _Runner(problem, estimator, costs)
    centre, tilt = start, np.zeros((problem.nodes, problem.dim))
    rows = centre + tilt
    before: tuple[np.ndarray, np.ndarray] | None = None
    slowest = 0.0
    for stage in range(STAGES):
        if stage or centre.any():
            averages = 2 if stage else 1  # of the rows, which are equal at the start, and of the gradients
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
        status = "inexact"  # unless the solution cannot be told from 0, to which all tolerances are relative
    return Fit(rows, status, runner.last)


def gradients(problem: Problem, x: np.ndarray) -> np.ndarray:
    """Return the gradients of the f_i at one common x, shape (nodes, dim)."""
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
    """Runs a method again and again within a budget, with parameters that work."""

    def __init__(self, problem: Problem, estimator: "Decentralized", costs: Costs) -> None:
        self.problem, self.estimator, self.costs = problem, estimator, costs
        self.method, self.oracle = estimator.method, estimator.oracle
        self.parameters = estimator.parameters
        size = float(np.linalg.norm(gradients(problem, np.zeros(problem.dim)), axis=-1).mean())
        self.least = max(SMALL * size / problem.L, 1e-150)
        self.last: Any = None

    def run(self, shifted: Shifted, target: float) -> tuple[str, np.ndarray | None]:
        """Run until the rows are within `target` of the solution (root mean square over the nodes).

        Returns the status and the rows, None if they are worse than the start.
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
        """Return whether the budget covers so many rounds and a first step; before the first run it must."""
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
