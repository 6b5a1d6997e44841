r"""The loop around `adom.solve` that fits a model: a few runs, each started where the one before ended.

The f_i of a model with an intercept are not strongly convex: nothing penalises the intercept v. So the runs minimise
the mean of the f_i plus r / 2 (v - v_k)^2, where r is the regulariser of the other coordinates and v_k the intercept
before the run (the proximal point method). This makes every f_i strongly convex with mu = r, which the other
coordinates cost anyway. The curvature h along the intercept is by far the larger, so the distance to the solution
shrinks by about q = r / (r + h) a run. Two runs tell q, by the secant; the next start is moved on along the last step
by q / (1 - q) of it, which is where steps that shrink by q each would end.

Without an intercept there is more than one run as well: rounding makes the rows of dual variables drift, which bounds
how near one run can come, relative to the size of what it computes. A run that starts near computes with what is small.

A run starts anew in all but the point. To start warm, nodes first average their rows, and then their gradients there.
The gradients less their average become linear terms that sum to zero (`adom.problems.shifted`), so that nothing
is left of the differences between the nodes that a method would otherwise have to find again. The averages are exact
here, and counted as the rounds of plain averaging that leave a thousandth of the differences.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np
import pandas as pd

from ..algorithms import Method, method_class
from ..errors import InputError, shown
from ..problems.base import Array, Problem
from ..problems.minimiser import minimum
from ..problems.shifted import Shifted
from ..run.constants import make_method
from ..run.provenance import describe_problem
from ..run.result import Result
from ..run.solve import solve
from ..study.metrics import start_error
from ..util.checks import check_whole

REDUCTION = 0.01
"""What a run leaves of the distance to its own solution."""
AVERAGED = 1e-3
"""What averaging leaves of the differences between the nodes."""
STAGES = 100
RECORD_EVERY = 10
FARTHEST = 0.8
"""The largest q that a start is moved on for; beyond, the secant of inexact runs is too rough."""
SMALL = 1e-4
"""A solution shorter than this part of what one gradient step could move is measured against that instead."""


@dataclass(frozen=True)
class Settings:
    """How to run: what an estimator was given, checked where `adom.solve` does not."""

    method: Any
    parameters: Any
    oracle: Any
    tol: float
    max_rounds: int
    verbose: bool

    def __post_init__(self) -> None:
        if not (isinstance(self.tol, int | float | np.floating) and 0 < self.tol < 1):
            raise InputError(f"tol must lie between 0 and 1, got {shown(self.tol)}; it is relative, e.g. tol=1e-8")
        check_whole("max_rounds", self.max_rounds)


@dataclass
class Books:
    """What was spent, over all runs and what was averaged between them."""

    network: Any
    rounds: int = 0
    ends: dict[str, float] = field(default_factory=dict)  # the counted columns, as they stood after the last run
    tables: list[pd.DataFrame] = field(default_factory=list)
    numbers: int = 0  # averaged and not yet put into the table: rounds times numbers a node sent

    def average(self, numbers: int, leave: float) -> None:
        """Count the rounds in which nodes average so many numbers until `leave` is left of their differences."""
        rounds = rounds_to_average(self.network.chi, leave)
        self.rounds += rounds
        self.numbers += rounds * numbers

    def run(self, result: Result, dim: int, vectors: int) -> None:
        """Add a run's table, its counts following on those before."""
        table = result.history.copy()
        spent = int(table["round"].iloc[-1])
        links = table["floats_sent"].iloc[-1] / (spent * dim * vectors)
        table["round"] += self.rounds
        table["floats_sent"] += round(self.numbers * links)
        for name in ("iteration", "gradients", "floats_sent", "seconds"):
            table[name] += type(table[name].iloc[0])(self.ends.get(name, 0))
            self.ends[name] = table[name].iloc[-1]
        table.insert(0, "stage", len(self.tables) + 1)
        self.tables.append(table)
        self.rounds += spent
        self.numbers = 0

    @property
    def history(self) -> pd.DataFrame:
        """All tables as one."""
        return pd.concat(self.tables, ignore_index=True)


def rounds_to_average(chi: float, leave: float) -> int:
    """Return after how many rounds of v <- (I - W / lambda_max) v this part of the differences is left, at most.

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
    """What became of it."""

    x: np.ndarray  # (dim,): the mean over the nodes
    rows: np.ndarray  # (nodes, dim)
    status: (
        str  # of the last run, "stages" where there were too many, "inexact" where the minimiser is not known better
    )
    last: Result


def minimise(problem: Problem, start: np.ndarray, free: np.ndarray, settings: Settings, books: Books) -> Fit:
    """Minimise the mean of the f_i, less the penalty r / 2 v^2 of the coordinates that are free.

    Parameters
    ----------
    problem : Problem
    start : array of shape (dim,)
        The same at all nodes.
    free : array of shape (dim,)
        1 for the coordinates whose penalty is no part of the objective, 0 for the others. The problem penalises all
        coordinates alike; its mu is then that penalty.
    settings : Settings
    books : Books
        What was spent before; it is added to.
    """
    run = _Runs(problem, settings, books)
    centre, tilt = start, np.zeros((problem.nodes, problem.dim))
    rows = centre + tilt
    before: tuple[np.ndarray, np.ndarray] | None = None
    slowest = 0.0
    for stage in range(STAGES):
        if stage or centre.any():
            times = 2 if stage else 1  # the rows, which are alike at the start, and the gradients
            if stage and not run.affords(times * rounds_to_average(books.network.chi, AVERAGED)):
                status = "max_rounds"
                break
            for _ in range(times):
                books.average(problem.dim, AVERAGED)
            apart = gradients(problem, centre) - tilt
            tilt = tilt + apart - apart.mean(axis=0)
        held = problem.mu * free * centre
        known = minimum(problem, centre, held)
        goal = known.x - centre
        shifted = Shifted(problem, centre, tilt + held, goal, known.error)
        asked = settings.tol * max(float(np.linalg.norm(known.x)), run.least)
        near = max(asked, known.error)
        target = max(REDUCTION * float(np.linalg.norm(goal)), near)
        status, found = run(shifted, target)
        rows = rows if found is None else centre + found
        if found is None or status != "converged":
            break
        step = found.mean(axis=0)
        factor = _factor(centre, step, before, free)
        slowest = max(slowest, factor)
        left = slowest / (1 - slowest) if before is not None else 1.0
        if target == near and left * float(np.linalg.norm(free * step)) <= near:
            break
        before = centre, step
        centre = centre + step / (1 - min(factor, FARTHEST))
    else:
        status = "stages"
    if status == "converged" and near > asked and float(np.linalg.norm(known.x)) > known.error:
        status = "inexact"  # unless it cannot be told from 0, which all tolerances are relative to
    return Fit(rows.mean(axis=0), rows, status, run.last)


def gradients(problem: Problem, x: np.ndarray) -> np.ndarray:
    """Return the gradients of the f_i at one common x, shape (nodes, dim)."""
    with jax.enable_x64(True):
        return np.asarray(_gradients(problem, np.broadcast_to(x, (problem.nodes, problem.dim))))


@jax.jit
def _gradients(problem: Problem, rows: Array) -> Array:
    return problem.gradient_rows(rows)


def _factor(
    centre: np.ndarray, step: np.ndarray, before: tuple[np.ndarray, np.ndarray] | None, free: np.ndarray
) -> float:
    """Return q, by which the steps of the free coordinates shrink: step(v + d) = step(v) - (1 - q) d."""
    if before is None or not free.any():
        return 0.0
    between = free * (centre - before[0])
    length = float(between @ between)
    slope = float((step - before[1]) @ between) / length if length > 0 else -1.0
    return min(max(1 + slope, 0.0), 0.95)


class _Runs:
    """One run after another: within the budget, with the parameters that work, and in the books."""

    def __init__(self, problem: Problem, settings: Settings, books: Books) -> None:
        self.problem, self.settings, self.books = problem, settings, books
        self.method, self.oracle = settings.method, settings.oracle
        self.parameters = "unit" if settings.parameters == "auto" else settings.parameters
        zero = np.zeros(problem.dim)
        size = float(np.linalg.norm(gradients(problem, zero), axis=-1).mean())
        self.least = max(SMALL * size / problem.L, 1e-150)
        self.last: Any = None

    def __call__(self, shifted: Shifted, target: float) -> tuple[str, np.ndarray | None]:
        """Run until the rows are within `target` of the solution (root mean square over the nodes).

        Returns the status and the rows, None where nothing came of it.
        """
        network, tol = self.books.network, shifted.nodes * target**2
        while True:
            method = self._made()
            if not self.affords(0):
                return "max_rounds", None
            result = solve(
                shifted,
                network,
                self.method,
                self.parameters,
                self.oracle,
                rounds=int(self.settings.max_rounds) - self.books.rounds,
                tol=tol,
                record_every=RECORD_EVERY if method.rounds_per_step == 1 else 1,
                progress=None if self.settings.verbose else False,
            )
            if result.status == "interrupted":
                raise KeyboardInterrupt
            self.books.run(result, shifted.dim, method.vectors_per_round)
            self.last = result
            if result.status == "diverged" and self.settings.parameters == "auto" and self.parameters == "unit":
                self.parameters = "theory"
                continue
            if self.parameters == "tuned":
                self._keep_tuned(result)
            worse = result.status == "growing" and float(result.history["error"].iloc[-1]) > start_error(result)
            return result.status, None if worse or result.status == "diverged" else result.x

    def _made(self) -> Method:
        given = "unit" if self.parameters == "tuned" else self.parameters
        return make_method(self.problem, self.books.network, self.method, given)

    def affords(self, rounds: int) -> bool:
        """Return whether the budget covers so many rounds and a first step; it must before the first run."""
        method = self._made()
        first = int(method.rounds_of_step(0))
        enough = self.books.rounds + rounds + first <= self.settings.max_rounds
        if not enough and self.last is None:
            raise InputError(
                f"max_rounds={self.settings.max_rounds} does not cover the first step: averaging takes "
                f"{self.books.rounds} rounds and a step of {method.title} {first}; allow more"
            )
        return enough

    def _keep_tuned(self, result: Result) -> None:
        """Go on with the parameters that the first run found: mu, L and the network stay the same."""
        found = result.provenance["method"]
        cls: type[Method] = method_class(found["name"])
        self.method, self.parameters = cls(**found["parameters"]), "given"
        self.oracle = result.provenance["oracle"] or "auto"


def summary(fit: Fit, problem: Problem, rows: np.ndarray, books: Books) -> Result:
    """Return one result for all runs: the nodes' own models, one table, and the provenance of the last run."""
    provenance = {**fit.last.provenance, "problem": describe_problem(problem), "stages": len(books.tables)}
    return replace(fit.last, x=rows, history=books.history, status=fit.status, provenance=provenance)
