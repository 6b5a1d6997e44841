"""A fit over a simulated network: where the samples lie, in which coordinates, and the runs.

A GLM is fitted by one run of Newton's method by gossip. Any other problem is fitted by a few runs of `adom.solve`
(`adom.run.stages`), each until it is near its own solution. A fit without an intercept also takes several runs.
Rounding makes the rows of dual variables drift, which limits the accuracy of a run relative to the size of its numbers.
A run that starts near the solution has small numbers.

The simulation averages exactly between the runs, and counts the rounds of plain averaging that leave a thousandth of
the differences between the nodes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .. import networks
from ..algorithms import Method, method_class
from ..data.splits import shares
from ..errors import InputError, InputTypeError, nearest
from ..networks import DirectedNetwork, Network
from ..problems.base import Problem
from ..problems.glm import GLM
from ..problems.minimiser import Minimum, minimum
from ..problems.samples import largest_curvature
from ..problems.shifted import Shifted
from ..run.calls.solve import solve
from ..run.constants import in_windows, make_method
from ..run.recorder import describe_problem
from ..run.request import method_type
from ..run.result import Result
from ..run.stages import Run, StageCosts, run_stages
from ..util.checks import check_whole

if TYPE_CHECKING:
    from .estimators import Decentralized

NODES = 10
NEWTON = "newton"
GRAPHS = 20
"""Number of graphs of a changing network given by name."""
DEGREE = 8
HELD = 10.0
"""The curvature along the intercept is at least this multiple of r, the curvature of the proximal term."""
RAREST = 1e-4
"""Smallest curvature along the intercept, about the share of the rarest class, that the column is scaled for."""
REDUCTION = 0.01
"""A run ends when this fraction of its initial distance to its own solution is left."""
AVERAGED = 1e-3
"""The fraction of the differences between nodes that averaging leaves."""
RECORD_EVERY = 10
SMALL = 1e-4
"""`tol` is relative to the solution's length, but at least to this fraction of a gradient step from 0."""


class Partition(NamedTuple):
    """The sample indices of each node, and the network of these nodes."""

    rows: list[np.ndarray]
    network: Any

    def split(self, *columns: Any) -> list[Any]:
        """Return each node's rows of a column; for several columns, a tuple per node."""
        if len(columns) == 1:
            return [columns[0][rows] for rows in self.rows]
        return [tuple(column[rows] for column in columns) for rows in self.rows]

    @property
    def padded(self) -> int:
        """The number of samples to which nodes are padded, so that folds of similar sizes share a compiled program.

        It is 1, 4, 16 or 64 for up to 64 samples, and at most an eighth more than needed beyond.

        Examples
        --------
        >>> [Partition([np.arange(n)], None).padded for n in (3, 57, 65, 90, 1000)]
        [4, 64, 72, 96, 1024]
        """
        most = max(rows.size for rows in self.rows)
        doubled = math.ceil(math.log2(most))
        step: int = 2 ** (doubled + doubled % 2 if most <= 64 else doubled - 4)
        return -(-most // step) * step


def partition(labels: np.ndarray, nodes: int | None, split: str, network: Any, random_state: Any) -> Partition:
    """Return the samples split over a network; a network built here has at most one node per sample.

    Examples
    --------
    >>> parts = partition(np.array([0, 0, 1]), None, "label", "ring", 0)
    >>> [rows.tolist() for rows in parts.rows], parts.network
    ([[0], [1], [2]], Network(ring, nodes=3, graphs=1, period=1, edges=3))
    """
    seed = as_seed(random_state)
    if nodes is not None:
        check_whole("nodes", nodes, 2, f"omit it to use {NODES}")
    if not isinstance(network, Network | DirectedNetwork):
        network = _build(network, min(nodes or NODES, labels.size), seed)
    elif nodes not in (None, network.nodes):
        raise InputError(
            f"nodes={nodes} does not match the network, which has {network.nodes}; leave nodes out, or build the "
            f"network with nodes={nodes}"
        )
    return Partition(shares(labels, network.nodes, split, seed=seed), network)


def _build(network: Any, nodes: int, seed: int) -> Network | DirectedNetwork:
    """Return the network built from a name or by a function."""
    if isinstance(network, str):
        if network not in NAMED:
            raise InputError(f"unknown network {network!r}; {nearest(network, NAMED)}, or give one of adom.networks")
        return NAMED[network](nodes, seed)
    if not callable(network):
        raise InputTypeError(
            f"network must be a name, an adom network or a function of the number of nodes, got "
            f"{type(network).__name__}; e.g. network='expander' or network=adom.networks.ring"
        )
    built = network(nodes)
    if not isinstance(built, Network | DirectedNetwork) or built.nodes != nodes:
        raise InputError(f"network({nodes}) must return an adom network of {nodes} nodes, got {built!r}")
    return built


def _expander(nodes: int, seed: int) -> Network:
    degree = min(DEGREE, (nodes - 1) // 2 * 2)
    return networks.expander(nodes, degree, graphs=GRAPHS, seed=seed) if degree else networks.complete(nodes)


def _geometric(nodes: int, seed: int) -> Network:
    # At this radius random points are mostly connected, so that few links must be added.
    return networks.geometric(nodes, 1.5 * math.sqrt(math.log(nodes) / nodes), graphs=GRAPHS, seed=seed)


def _erdos_renyi(nodes: int, seed: int) -> Network:
    return networks.erdos_renyi(nodes, min(1.0, 2 * math.log(nodes) / nodes), graphs=GRAPHS, seed=seed)


NAMED: dict[str, Callable[[int, int], Network]] = {
    "expander": _expander,
    "geometric": _geometric,
    "erdos_renyi": _erdos_renyi,
    "complete": lambda nodes, _: networks.complete(nodes),
    "ring": lambda nodes, _: networks.ring(nodes) if nodes > 2 else networks.complete(nodes),
    "star": lambda nodes, _: networks.star(nodes),
    "path": lambda nodes, _: networks.path(nodes),
}
"""Builders of networks by name, called with the number of nodes (at least 2) and a seed."""


def as_seed(random_state: Any) -> int:
    """Return a whole number as it is, a seed drawn from a generator, or a new seed for None."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return check_whole("random_state", random_state, 0, "None takes a new one each time")


class Coordinates(NamedTuple):
    """Features, optionally centred, and an optional constant column for the intercept.

    With A the features, m their mean and s the column, decisions are (A - m) w + s v = A w + (s v - m'w).
    """

    mean: np.ndarray | None = None
    column: float = 0.0  # 0: no column

    def features(self, X: Any) -> Any:
        """Return the features that the nodes compute with."""
        A = X if self.mean is None else X - self.mean
        if not self.column:
            return A
        constant = np.full((A.shape[0], 1), self.column)
        if sp.issparse(A):
            return sp.csr_array(sp.hstack([A, sp.csr_array(constant)], format="csr"))
        return np.hstack([A, constant])

    def coefficients(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients of shape (..., d) and intercepts of shape (...), for x of shape (..., d or d + 1)."""
        w = x[..., :-1] if self.column else x
        intercept = self.column * x[..., -1] if self.column else np.zeros(x.shape[:-1])
        return w, intercept if self.mean is None else intercept - w @ self.mean

    def point(self, w: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """Return the x that belongs to coefficients and intercepts."""
        if not self.column:
            return w
        offset = intercept if self.mean is None else intercept + w @ self.mean
        return np.concatenate([w, np.asarray(offset)[..., None] / self.column], axis=-1)


def with_intercept(X: Any, parts: Partition, weights: np.ndarray, l2: float, curvature: float) -> Coordinates:
    """Return the coordinates for a fit with an intercept that is not penalised.

    Dense features are centred, which makes the intercept almost independent of the coefficients, and L smaller. The
    column is as large as possible without making L much larger. It is at least so large that the curvature along the
    intercept far exceeds that of the proximal term r / 2 (v - v_k)^2 (`adom.run.stages`).

    `weights` are the samples' weights in the mean of the f_i and sum to 1, `l2` is r, and `curvature` is roughly the
    objective's along the intercept.
    """
    mean = None if sp.issparse(X) else weights @ X
    A = X if mean is None else X - mean
    order = np.concatenate(parts.rows)
    counts = np.array([rows.size for rows in parts.rows])
    spread = float(largest_curvature(A[order], counts, len(counts) * weights[order]).max())
    return Coordinates(mean, math.sqrt(max(spread, HELD * l2 / max(curvature, RAREST))))


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

    def add_run(self, result: Result, numbers: int) -> None:
        """Append the table of a run in which a node sent so many numbers a round over a link.

        What the averaging before it sent is counted over as many links.
        """
        if self._averaged:
            links = result.last["floats_sent"] / (result.last["round"] * numbers)
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


def minimise(
    problem: Problem, start: np.ndarray, free: np.ndarray, method: Any, estimator: "Decentralized", costs: Costs
) -> Fit:
    """Minimise the mean of the f_i, without the penalty r / 2 v^2 on coordinates where `free` is 1 and not 0.

    The problem penalises all coordinates alike; its mu is r. A GLM penalises no intercept, so it takes a single run.
    All nodes start at `start`. The estimator gives parameters, oracle, tolerance and budget; the rounds are added to
    `costs`.
    """
    runner, tilt = _Runner(problem, method, estimator, costs), np.zeros((problem.nodes, problem.dim))
    if isinstance(problem, GLM):
        run = runner.run(start, tilt, 0 * start, 0.0)
        status, rows = run.status, start + (tilt if run.steps is None else run.steps)
    else:
        status, rows = run_stages(runner, start, tilt, problem.mu * free)
    if status == "converged" and runner.inexact:
        status = "inexact"
    return Fit(rows, status, runner.last)


class _Runner:
    """Runs a method repeatedly within a budget of rounds, and keeps tuned parameters."""

    def __init__(self, problem: Problem, method: Any, estimator: "Decentralized", costs: Costs) -> None:
        self.problem, self.estimator, self.costs = problem, estimator, costs
        self.method, self.oracle = method, estimator.oracle
        self.parameters = estimator.parameters
        size = float(np.linalg.norm(problem.gradients_at(np.zeros(problem.dim)), axis=-1).mean())
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
        difference = self.problem.gradients_at(centre) - tilt
        levelled: np.ndarray = tilt + difference - difference.mean(axis=0)
        return levelled

    def run(self, centre: np.ndarray, tilt: np.ndarray, held: np.ndarray, moved: float) -> Run:
        """Run until a fraction of the distance to this run's solution is left, or the tolerance is met."""
        one = isinstance(self.problem, GLM)
        if one:
            solution = Minimum(self.problem.solution(), self.problem.solution_error)
        else:
            solution = minimum(self.problem, centre, held)
        goal, length = solution.x - centre, float(np.linalg.norm(solution.x))
        shifted = Shifted(self.problem, centre, tilt + held, goal, solution.error)
        wanted = self.estimator.tol * max(length, self.least)
        near = max(wanted, solution.error)
        # A solution that may be 0 has no length for a relative tolerance.
        self.inexact = near > wanted and length > solution.error
        target = near if one else max(REDUCTION * float(np.linalg.norm(goal)), near)
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
            record_every=RECORD_EVERY if method.rounds_per_step == 1 and method.name != NEWTON else 1,
            progress=None if self.estimator.verbose else False,
        )
        if result.status == "interrupted":
            raise KeyboardInterrupt
        self.costs.add_run(result, method.vectors_per_round * method.width(shifted.dim))
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


def is_newton(method: Any) -> bool:
    """Return whether a method given by name, class or instance is Newton's by gossip."""
    return method_type(method).name == NEWTON


def summary(fit: Fit, problem: Problem, rows: np.ndarray, costs: Costs, known: dict[str, Any]) -> Result:
    """Return one result for all runs: the nodes' own models, one table, and the provenance of the last run.

    Every row holds vectors and their intercepts; `known` is what else describes the model.
    """
    about = describe_problem(problem)
    if about["model"] is not None:
        about["model"] |= {**known, "intercept": True}
        if isinstance(problem, GLM) and problem.intercept:
            about["model"]["inference"] = problem.inference(fit.x)
    provenance = {**fit.last.provenance, "problem": about, "stages": len(costs.tables)}
    return replace(fit.last, x=rows, history=costs.history, status=fit.status, provenance=provenance)
