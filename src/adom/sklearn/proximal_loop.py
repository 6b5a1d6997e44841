"""The fit of a problem by a few runs of `adom.solve` (`adom.run.stages`), each until it is near its own solution.

A fit without an intercept also takes several runs. Rounding makes the rows of dual variables drift, which limits the
accuracy of a run relative to the size of its numbers. A run that starts near the solution has small numbers.

The simulation averages exactly between the runs, and counts the rounds of plain averaging that leave a thousandth of
the differences between the nodes.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ..algorithms import Method, method_class
from ..errors import InputError
from ..problems.base import Array, Problem
from ..problems.minimiser import minimum
from ..problems.shifted import Shifted
from ..run.calls.solve import solve
from ..run.constants import make_method
from ..run.contract import in_windows
from ..run.recorder import describe_problem
from ..run.result import Result
from ..run.stages import Run, StageCosts, run_stages
from ..util.compile_cache import double_precision

if TYPE_CHECKING:
    from .estimators import Decentralized

REDUCTION = 0.01
"""A run ends when this fraction of its initial distance to its own solution is left."""
AVERAGED = 1e-3
"""The fraction of the differences between nodes that averaging leaves."""
RECORD_EVERY = 10
SMALL = 1e-4
"""`tol` is relative to the solution's length, but at least to this fraction of a gradient step from 0."""


class Costs(StageCosts):
    """Rounds of all runs and of the averaging between them, and the tables of the runs."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network
        self._averaged = 0  # numbers a node sent in averaging since the last run

    @property
    def rounds(self) -> int:
        """The rounds so far."""
        return int(self.spent.get("round", 0))

    def average(self, numbers: int, leave: float) -> None:
        """Count the rounds that average so many numbers until the fraction `leave` of their differences is left."""
        rounds = self.network.window * rounds_to_average(self.network.chi, leave)
        self.spent["round"] = self.rounds + rounds
        self._averaged += rounds * numbers

    def add_run(self, result: Result, dim: int, vectors: int) -> None:
        """Append the table of a run, and count what the averaging before it sent over as many links."""
        links = result.last["floats_sent"] / (result.last["round"] * dim * vectors)
        self.spent["floats_sent"] = self.spent.get("floats_sent", 0) + round(self._averaged * links)
        self._averaged = 0
        self.add(result.columns)


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
    status, rows = run_stages(runner, start, np.zeros((problem.nodes, problem.dim)), problem.mu * free)
    if status == "converged" and runner.inexact:
        status = "inexact"
    return Fit(rows, status, runner.last)


def gradients(problem: Problem, x: np.ndarray) -> np.ndarray:
    """Return the gradients of the f_i at a common x, of shape (nodes, dim)."""
    with double_precision():
        return np.asarray(_gradients(problem, np.broadcast_to(x, (problem.nodes, problem.dim))))


@jax.jit
def _gradients(problem: Problem, rows: Array) -> Array:
    return problem.gradient_rows(rows)


class _Runner:
    """Runs a method repeatedly within a budget of rounds, and keeps tuned parameters."""

    def __init__(self, problem: Problem, estimator: "Decentralized", costs: Costs) -> None:
        self.problem, self.estimator, self.costs = problem, estimator, costs
        self.method, self.oracle = estimator.method, estimator.oracle
        self.parameters = estimator.parameters
        size = float(np.linalg.norm(gradients(problem, np.zeros(problem.dim)), axis=-1).mean())
        self.least = max(SMALL * size / problem.L, 1e-150)
        self.last: Any = None
        self.inexact = False

    def level(self, centre: np.ndarray, tilt: np.ndarray) -> np.ndarray | None:
        """Average the rows, which are equal before the first run, and the gradients at the average."""
        averages = 1 if self.last is None else 2
        network = self.costs.network
        windows = averages * rounds_to_average(network.chi, AVERAGED)
        if self.last is not None and not self.affords(network.window * windows):
            return None
        for _ in range(averages):
            self.costs.average(self.problem.dim, AVERAGED)
        difference = gradients(self.problem, centre) - tilt
        levelled: np.ndarray = tilt + difference - difference.mean(axis=0)
        return levelled

    def run(self, centre: np.ndarray, tilt: np.ndarray, held: np.ndarray, moved: float) -> Run:
        """Run until a fraction of the distance to this run's solution is left, or the tolerance is met."""
        solution = minimum(self.problem, centre, held)
        goal, length = solution.x - centre, float(np.linalg.norm(solution.x))
        shifted = Shifted(self.problem, centre, tilt + held, goal, solution.error)
        wanted = self.estimator.tol * max(length, self.least)
        near = max(wanted, solution.error)
        # A solution that may be 0 has no length for a relative tolerance.
        self.inexact = near > wanted and length > solution.error
        target = max(REDUCTION * float(np.linalg.norm(goal)), near)
        return Run(*self._run(shifted, target), near, target == near)

    def _run(self, shifted: Shifted, target: float) -> tuple[str, np.ndarray | None]:
        """Run until the rows are within `target` of the solution (root mean square over the nodes).

        Return the status and the rows, which are None after a run that diverged or ended worse than it started, or
        if the budget covers no step.
        """
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
        self.costs.add_run(result, shifted.dim, method.vectors_per_round)
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
    return replace(fit.last, x=rows, history=costs.history, status=fit.status, provenance=provenance)
