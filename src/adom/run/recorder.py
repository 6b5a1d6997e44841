"""Records of a run: its plan, and the table, status, result and provenance of each of its members."""

import os
import platform
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__, native
from ..algorithms import Method
from ..algorithms.base import plain
from ..dynamics.endings import LOST, judge
from ..networks import DirectedNetwork, Network
from ..util.columns import COLUMNS as DESCRIBED
from ..util.columns import STATES
from .constants import outside, window_of
from .request import OracleSpec
from .result import Result

if TYPE_CHECKING:
    from ..problems.base import Problem

Array = np.ndarray
COLUMNS = tuple(name for name, column in DESCRIBED.items() if not column.instead_of)
"""Columns of a table of records; those of "error" hold whatever is measured."""
ITERATION, CLOCK, SECONDS, ERROR, CONSENSUS = map(
    COLUMNS.index, ("iteration", "round", "seconds", "error", "consensus")
)
APART = 1e6  # growth of the nodes' squared disagreement that is not a transient
DIVERGED = 1e12  # growth of the squared distance that no transient of a converging method reaches
MENDED = 1e200  # growth up to which a run may still go back to its last good state


@dataclass(frozen=True)
class Plan:
    """How long to run, how often to record and when to stop."""

    rounds: int
    record_every: int = 1
    tol: float | None = None
    dtype: str = "float64"
    start_error: float = 0.0  # error of rows of zeros, where primal methods start
    floor: float = 0.0  # part of the start error that rounding may leave

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
class History:
    """One member of a run: what it is, and its table and status so far."""

    plan: Plan
    method: Method
    measure: str = "error"  # name of the column of errors; "" where nothing is measured
    presence: Any = None  # who is present when (`adom.run.links.Presence`), if nodes come and go
    pilot: Any = None  # changes the method's parameters on the way (`adom.run.auto.pilot.Pilot`)
    provenance: dict[str, Any] = field(default_factory=dict)
    tables: list[Array] = field(default_factory=list)
    status: str = ""
    message: str = ""
    first: float | None = None  # error of the first step's iterate
    rows: Array | None = None  # at the last record

    @property
    def table(self) -> Array:
        """All records so far, one row each, in the order of `COLUMNS`."""
        return np.concatenate(self.tables) if self.tables else np.empty((0, len(COLUMNS)))

    @property
    def error(self) -> float:
        """Error of the last record."""
        return float(self.tables[-1][-1, ERROR]) if self.tables else np.inf

    def take(self, table: Array, final: bool) -> int | None:
        """Add a chunk of records up to the one that ends the run; return the index of the last one taken.

        Records at other iterations than multiples of `record_every` are dropped, unless the run ends there or `final`.
        When the rounds are used up, the records so far decide the status (`adom.dynamics.endings.judge`).
        """
        if self.status:
            return None
        iteration, clock, error = table[:, ITERATION], table[:, CLOCK], table[:, ERROR]
        if iteration[0] == 1:
            self.first = float(error[0])
        takes = (self.pilot or self.method).rounds_of_step
        over = (iteration == iteration[-1]) & (clock + takes(iteration) > self.plan.rounds)  # no further step fits
        wanted = over | (iteration % self.plan.record_every == 0)
        wanted[-1] |= final
        before = np.concatenate([[self.tables[-1][-1, ITERATION] if self.tables else 0], iteration[:-1]])
        kept = np.flatnonzero((iteration > before) & wanted)
        if kept.size == 0:
            return None
        low, high = self._bounds(self.tables[0][0, ERROR] if self.tables else error[kept[0]])
        settled = 0 if self.presence is None else int(self.presence.settled)  # before, no tolerance ends a run
        diverged, converged = ~(error[kept] <= high), (error[kept] <= low) & (clock[kept] >= settled)
        stops = np.flatnonzero(diverged | converged | over[kept])
        if stops.size:
            kept = kept[: stops[0] + 1]
        self.tables.append(table[kept])
        if stops.size and diverged[stops[0]]:
            name = self.measure or "rows' squared norm"
            self.status = "diverged"
            self.message = f"the {name} reached {error[kept[-1]]:.3g} by round {int(clock[kept[-1]])}"
        elif stops.size:
            self.end()
        return int(kept[-1])

    @property
    def bounds(self) -> tuple[float, float]:
        """The errors up to which a run has converged, and beyond which it has diverged."""
        return self._bounds(self.tables[0][0, ERROR])

    def _bounds(self, first: float) -> tuple[float, float]:
        low, outgrown = -np.inf if self.plan.tol is None else self.plan.tol, DIVERGED if self.pilot is None else MENDED
        return low, outgrown * max(self.plan.start_error, first if np.isfinite(first) else 0.0, 1e-300)

    def end(self) -> None:
        """Set status and message from the records.

        If the error is unknown, the nodes' disagreement is judged as well: the gradient at the mean row does not show
        nodes that drift apart.
        """
        plan, table = self.plan, self.table
        clock, errors, apart = table[:, CLOCK], table[:, ERROR], table[:, CONSENSUS]
        start = self.start
        floor = plan.floor * plan.start_error / start if start > 0 else plan.floor
        self.status, self.message = judge(clock, errors, start, plan.tol, floor, self.measure)
        if self.status != "converged" and start > 0 and errors[-1] > DIVERGED * max(start, plan.start_error):
            self.status = "diverged"  # a pilot could have mended it, but the rounds are used up
            self.message = f"the {self.measure} was {errors[-1]:.3g} at round {int(clock[-1])}, when the rounds ended"
        if self.measure == "gradient norm" and apart[-1] > APART * apart[0] > 0:
            ending = judge(clock, apart, measure="disagreement of the nodes")
            if ending.status in LOST:
                self.status, self.message = ending

    @property
    def start(self) -> float:
        """The error at which the method starts; 0 if unknown.

        A primal method starts at 0. A dual method starts at the minimisers of the f_i, its first iterate.
        """
        if plain(self.method).oracle == "dual" and self.plan.start_error > 0 and self.first is not None:
            return self.first if np.isfinite(self.first) else self.plan.start_error
        return self.plan.start_error

    def columns(self, table: Array) -> dict[str, Array]:
        """Return the columns of a table of records by their names in a result."""
        own = {"error": self.measure.replace(" ", "_")}
        return {
            own.get(name, name): values.astype(np.int64 if DESCRIBED[name].whole else np.float64)
            for name, values in zip(COLUMNS, table.T, strict=True)
            if self.measure or name not in STATES
        }

    def result(self) -> Result:
        """Return the result of a member that has ended; rows of absent nodes are NaN."""
        columns: Any = self.columns(self.table)
        rows, found = self.rows, {} if self.pilot is None else {"settings": self.pilot.settings}
        assert rows is not None
        if self.presence is not None:
            rows = self.presence.marked(rows, self.table[-1, CLOCK])
        return Result(rows, columns, self.status, {**self.provenance, **found, "message": self.message})


class Recorder:
    """Histories of all members of a run.

    Parameters
    ----------
    histories : list of History
    finished : callable
        Called with the index of a member as soon as it has ended.
    """

    def __init__(self, histories: list[History], finished: Callable[[int], None]) -> None:
        self.histories = histories
        self.members = list(range(len(histories)))  # those that the backend still carries
        self.seconds = 0.0
        self._finished = finished
        self._announced: set[int] = set()

    @property
    def going(self) -> list[int]:
        """Positions, among the carried members, of those that have not ended."""
        return [position for position, member in enumerate(self.members) if not self.histories[member].status]

    def take(self, tables: Array, ending: str) -> list[int | None]:
        """Add records of shape (members, records, columns); return the index of the last one taken by each member.

        `ending` is the status of members that must end here, "" if they may go on.
        """
        taken = []
        for member, table in zip(self.members, tables, strict=True):
            history = self.histories[member]
            taken.append(history.take(table, bool(ending)))
            if ending == "converged":  # the nodes agreed on it, even if the rounds are used up too
                history.status, history.message = ending, ""
            history.status = history.status or ending
        return taken

    def keep_rows(self, taken: list[int | None], rows: Callable[[int, int], Array]) -> None:
        """Keep the rows of the last records taken, `rows(record, position)`, and announce members that have ended."""
        for position, (member, record) in enumerate(zip(self.members, taken, strict=True)):
            history = self.histories[member]
            if record is not None:
                history.rows = rows(record, position)
            if history.status and member not in self._announced:
                self._announced.add(member)
                self._finished(member)


def describe(
    history: History,
    problem: dict[str, Any],
    network: Network | DirectedNetwork,
    oracle: OracleSpec,
    protocol: Any,
    engine: str,
    **more: Any,
) -> dict[str, Any]:
    """Return the provenance of a member: method, problem, network, environment and plan."""
    method, window = plain(history.method), window_of(history.method)
    return {
        "method": describe_method(method),
        "problem": problem,
        **describe_run(network, type(method), oracle, protocol, engine),
        "outside": outside(type(method), network, window),
        "window": window,
        **asdict(history.plan),
        **more,
    }


CHI_NODES = 2000
"""Up to this many nodes, chi of connected graphs is cheap and recorded even if no parameter depends on it."""


def recorded_chi(network: Network | DirectedNetwork) -> float | None:
    """Return chi if it is known or cheap to compute, else None."""
    cheap = network.nodes <= CHI_NODES and (network.connected or network.chi_quick)
    return network.chi if network.chi_known or cheap else None


def describe_run(
    network: Network | DirectedNetwork, method: type[Method], spec: OracleSpec, protocol: Any, engine: str
) -> dict[str, Any]:
    """Return network, oracle, protocol, engine and environment of a run."""
    return {
        "network": {**network.recipe, "chi": recorded_chi(network)},
        "oracle": str(spec) if method.oracle == "dual" else None,
        "protocol": protocol,
        "engine": engine,
        **_environment(),
    }


def describe_method(method: Method) -> dict[str, Any]:
    """Return name, title and parameters of a method."""
    parameters = {name: float(value) for name, value in method.parameters().items()}
    return {"name": method.name, "title": method.title, "parameters": parameters}


def describe_problem(problem: "Problem") -> dict[str, Any]:
    """Return type, size, constants, weighting and model of a problem."""
    return {
        "type": type(problem).__name__,
        "nodes": problem.nodes,
        "dim": problem.dim,
        "mu": problem.mu,
        "L": problem.L,
        "kappa": problem.kappa,
        "samples": problem.weighting(),
        "model": problem.model(),
    }


def _environment() -> dict[str, Any]:
    """Return versions, device, commit and time."""
    import jax

    return {
        "versions": _versions(),
        "device": str(jax.devices()[0].device_kind),
        "native": native.usable(),
        "platform": platform.platform(),
        "commit": commit(),
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


@cache
def _versions() -> dict[str, str]:
    import jax
    import jaxlib
    import numpy
    import scipy

    known = {module.__name__: module.__version__ for module in (jax, jaxlib, numpy, scipy)}
    return {"adom": __version__, "python": platform.python_version(), **known}


@cache
def commit() -> str | None:
    """Return the commit of the source tree that this code was loaded from; None without one."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():  # an installed package: a repository around it is not its own
        return None
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
