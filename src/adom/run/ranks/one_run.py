"""One run over several ranks: each holds a part of the nodes, all agree on the task, and all get the same result."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...algorithms import Method
from ...algorithms.base import plain
from ...dynamics.endings import rounding
from ...dynamics.stop import start_error
from ...errors import InputError
from ...networks import DirectedNetwork, LossyNetwork, Network
from ...problems.base import Problem
from ..auto.choice import pilot_for
from ..auto.pilot import Pilot
from ..constants import constants
from ..driver import drive
from ..links import as_run, presence_on
from ..progress import Interrupt, Journal, Progress, following
from ..recorder import CLOCK, COLUMNS, Plan, Recorder, describe, describe_method
from ..request import AUTO, TUNED, Request, check_budget, method_from, method_type
from ..result import Result
from ..user_code import user_code
from . import checkpoints as store
from .agreement import AgreedStop, greatest
from .checkpoints import Checkpoints, FolderLock, restore
from .peers import RankError, Ranks, at_rank_0, greatest_of_ranks, rank_errors, tell_bytes
from .rank_backend import STATUSES, RankBackend, Task
from .rank_rounds import RankGossip, RankRounds, RowTravel

if TYPE_CHECKING:
    from ...data.shards import Shards


@dataclass(frozen=True)
class Part:
    """One rank's part of a problem, and what is known of the whole.

    Attributes
    ----------
    own : Problem
        The f_i of this rank's nodes, with mu and L of all nodes once `settle` has been called.
    nodes : int
        Nodes of all ranks.
    samples : dict, optional
        How samples are weighted.
    model : callable
        Returns the facts about the model but its coefficients, given mu.
    whole : Problem, optional
        The problem of all nodes, if every rank has it. If not, the ranks agree on its constants and on when to stop.
    listed : list of str, optional
        Without the whole problem, what all ranks must have been given alike.
    settle : callable, optional
        Without the whole problem, returns `own` with mu and L of all nodes, given their greatest L_i - mu.
    """

    own: Problem
    nodes: int
    samples: dict[str, Any] | None
    model: Callable[[float], dict[str, Any] | None]
    whole: Problem | None = None
    listed: list[str] | None = None
    settle: Callable[[float], Problem] | None = None

    @classmethod
    def of(cls, problem: "Problem | Shards", first: int, end: int) -> Self:
        """Return the part of the nodes first, ..., end - 1; of shards, no others are opened."""
        if isinstance(problem, Problem):
            own = problem.block(first, end)
            return cls(own, problem.nodes, problem.weighting(), lambda mu: problem.model(), whole=problem)
        shards, opened = problem, problem.open(first, end)

        def settle(most: float) -> Problem:
            own = opened.with_l2(shards.regulariser(most))
            own.mu, own.L = own.l2, own.l2 + most
            return own

        return cls(opened, shards.nodes, shards.weighting(), shards.model, listed=shards.listed(), settle=settle)

    @property
    def solution(self) -> np.ndarray | None:
        """The solution, if it can be known here."""
        return None if self.whole is None else self.whole.solution()

    @property
    def start_error(self) -> float:
        """Squared distance of rows of zeros to the solution; NaN if it is not known."""
        return float("nan") if self.whole is None else start_error(self.whole)

    def agreed(self, gossip: RankGossip) -> tuple[Self, float]:
        """Return the part with mu and L of all nodes, and the greatest |grad f_i(0)|; both are agreed on by gossip."""
        if self.settle is None:
            return self, 0.0
        slopes = np.asarray(self.own.gradient_rows(np.zeros((self.own.nodes, self.own.dim))))
        values = np.stack([self.own.L_nodes - self.own.mu_nodes, np.linalg.norm(slopes, axis=1)], axis=1)
        most, steepest = (float(value) for value in greatest(gossip, values))
        return replace(self, own=self.settle(most)), steepest


def run(
    world: Ranks,
    problem: "Problem | Shards | Part",
    network: Network | DirectedNetwork,
    method: Any,
    parameters: Any,
    request: Request,
    kept: Checkpoints | None,
    gossip: RankGossip | None = None,
    journal: Journal | None = None,
    progress: Progress | None = None,
    interrupt: Interrupt | None = None,
) -> Result:
    """Solve as one of several ranks.

    `gossip` continues the counts of rounds that they have already spent. A fit of several runs has its own `journal`,
    `progress` and `interrupt`.
    """
    if parameters == TUNED:
        raise InputError("parameters='tuned' runs many settings, which engine 'mpi' does not; tune with engine='local'")
    if isinstance(network, LossyNetwork) and (kept is not None or not isinstance(problem, Problem)):
        raise InputError("engine 'mpi' runs lossy networks without checkpoints and without shards; leave them out")
    cls = method_type(method)
    oracle = request.oracle_for(cls)
    with _folder(world, kept):
        gossip = gossip or RankGossip(rank_travel(world, network, cls, request))
        travel, began = gossip.travel, gossip.clock
        part, steepest = _part(world, problem).agreed(gossip)
        pilot = None
        if parameters == AUTO and not isinstance(method, Method):
            first, _ = world.partition.of(world.rank)
            pilot = pilot_for(part.own, network, cls, first, partial(greatest_of_ranks, world))
            method = plain(pilot.assumed) if pilot else method
        clocks = began, gossip.clock
        task = _task(world, part, network, method, parameters, request, kept, steepest, clocks, pilot)
        with RankBackend(world, task, travel, gossip.clock, gossip.floats) as backend:
            recorder = Recorder([backend.history], lambda _: None)
            resumed = _resume(world, backend, recorder, kept)
            shown = False if world.rank else request.progress
            progress = progress or Progress(task.plan.rounds, cls.title, shown, plain=world.ranks > 1)
            asked = interrupt or Interrupt()
            with asked, following(None if world.rank else request.follow, journal) as records:
                drive(backend, task.plan, recorder, progress, asked, records)
            _end_if_spent(backend)
    start = task.presence.start_error if task.presence else part.start_error
    mu, L = part.own.mu, part.own.L
    described = {**task.settings["problem"], "kappa": L / mu, "samples": part.samples, "model": part.model(mu)}
    about = describe(
        backend.history,
        {"type": type(part.own).__name__, **described},
        network,
        oracle,
        "given" if isinstance(method, Method) and pilot is None else parameters,
        request.engine,
        wire=backend.sent(),
        resumed=resumed,
        solution_error=None if part.whole is None else part.whole.solution_error,
    )
    if pilot is not None:
        about["settings"] = pilot.settings
    about |= {"tol": request.tol, "start_error": None if np.isnan(start) else start}
    if task.stop is not None and task.stop.last is not None:
        about["error_bound"] = task.stop.last.error if np.isfinite(task.stop.last.error) else None
    return _result(world, backend, about)


def rank_travel(world: Ranks, network: Any, cls: type[Method], request: Request) -> RowTravel:
    """Return the exchange of rows between ranks."""
    rounds = RankRounds(network, world.partition, world.rank, cls.directed, request.dtype)
    return RowTravel(rounds, world.exchange)


def _task(
    world: Ranks,
    part: Part,
    network: Any,
    method: Any,
    parameters: Any,
    request: Request,
    kept: Checkpoints | None,
    steepest: float,
    clocks: tuple[int, int],
    pilot: Pilot | None,
) -> Task:
    """Return this rank's task, after checking that all but its part is the same on all ranks.

    `clocks` are the rounds spent before the run and before its first step.
    """
    own, whole = part.own, part.whole
    of_all = constants(own, network)
    chosen = method_from(method, parameters, lambda: of_all)
    running = chosen if pilot else as_run(chosen, network, own.dim, *world.partition.of(world.rank))
    check_budget(pilot.assumed if pilot else running, request.rounds, clocks[1])
    if whole is None and request.tol is not None and chosen.directed:
        raise InputError(
            f"with {chosen.title} the nodes cannot agree on when to stop without the solution; leave tol out"
        )
    if whole is not None and request.tol is not None and world.rank == 0:
        whole.warn_of_tol(request.tol)
    presence = None if whole is None else presence_on(network, whole, request.rounds)
    stop = None
    if whole is not None:
        records, growth = "error", presence.start_error if presence else part.start_error
    else:
        records, farthest = "gradient_norm" if request.monitor else "nothing", steepest / own.mu
        growth = 0.0 if request.monitor else part.nodes * farthest * farthest  # x* is no farther from 0
        if request.tol is not None:
            stop = AgreedStop(request.tol, network, of_all, steepest, clocks[0])
    floor = rounding(request.dtype, of_all.kappa) ** (1 if whole is None else 2)
    tol = None if whole is None else request.tol
    plan = Plan(int(request.rounds), int(request.record_every), tol, request.dtype, growth, floor)
    oracle = request.oracle_for(type(chosen))
    codes = (own.user_code(), user_code(chosen, part.nodes, own.dim, request.dtype))
    settings = {
        "method": describe_method(chosen),
        "oracle": str(oracle),
        "network": json.loads(json.dumps(network.recipe, default=str)),
        "problem": {"nodes": part.nodes, "dim": own.dim, "mu": own.mu, "L": own.L},
        "code": [code.hidden or code.digest for code in codes],
        "dtype": request.dtype,
        "record_every": plan.record_every,
        "records": records,
    }
    _same_everywhere(world, {**settings, "rounds": plan.rounds, "shards": part.listed})
    return Task(own, running, oracle, plan, part.solution, records != "nothing", stop, kept, settings, pilot, presence)


EXACT = ("network", "shards", "oracle", "dtype", "record_every", "records", "rounds")
"""Settings that must be the same on all ranks; constants may differ in rounding between machines."""


def _same_everywhere(world: Ranks, settings: dict[str, Any]) -> None:
    """Refuse settings of this rank that differ from those of rank 0."""
    own = {name: settings[name] for name in EXACT} | {"method": settings["method"]["name"]}
    for name, value in json.loads(tell_bytes(world, json.dumps(own).encode())).items():
        if value != own[name]:
            raise RankError(
                f"it was given {name} = {own[name]!r:.200}, but rank 0 {value!r:.200}; give all ranks the same"
            )


@contextmanager
def _folder(world: Ranks, kept: Checkpoints | None) -> Iterator[None]:
    """Lock the folder of checkpoints for this job."""
    if kept is None:
        yield
        return
    with ExitStack() as holding:

        def take() -> int:
            holding.enter_context(FolderLock(kept.path))
            if store.generations(kept.path) and not kept.resume:
                raise InputError(
                    f"{kept.path} holds checkpoints of an earlier run; go on from them (--resume), "
                    "or take another folder"
                )
            return 0

        with world.busy(f"looking into {kept.path}"):
            at_rank_0(world, take)
        yield


def _part(world: Ranks, problem: "Problem | Shards | Part") -> Part:
    """Return this rank's part of a problem."""
    if isinstance(problem, Part):
        return problem
    nodes = world.partition.of(world.rank)
    if isinstance(problem, Problem):
        return Part.of(problem, *nodes)
    with rank_errors(), world.busy(lambda: f"reading {problem.reading}"):
        return Part.of(problem, *nodes)


def _resume(world: Ranks, backend: RankBackend, recorder: Recorder, kept: Checkpoints | None) -> int:
    """Resume from the latest whole checkpoint, if there is one; return its iteration, else 0."""
    if kept is None:
        return 0
    with world.busy(f"looking for checkpoints in {kept.path}"):
        iteration = at_rank_0(world, lambda: _latest(kept))
    if iteration < 0:
        return 0
    recorder.seconds = restore(backend, store.generation(kept.path, iteration))
    return iteration


def _latest(kept: Checkpoints) -> int:
    """Return the iteration to resume from; -1 if there is none."""
    all_generations = store.generations(kept.path)
    chosen = store.latest(kept.path, lambda words: print(f"adom: {words}", file=sys.stderr, flush=True))
    if chosen is None and any(store.complete(path) for _, path in all_generations):  # damaged, not just unfinished
        raise InputError(f"no checkpoint in {kept.path} is whole; remove the folder to start afresh")
    store.forget_after(chosen, kept.path)
    if chosen is None:
        if kept.resume:
            print(f"adom: no checkpoint in {kept.path}: starting from the beginning", file=sys.stderr, flush=True)
        return -1
    iteration = int(chosen.name.rpartition("-")[2])
    print(f"adom: going on from iteration {iteration} ({chosen})", file=sys.stderr, flush=True)
    return iteration


def _end_if_spent(backend: RankBackend) -> None:
    """End a run that resumed from a checkpoint at the end of its budget, and so made no step."""
    history = backend.history
    if history.status:
        return
    status = np.zeros(1, dtype=np.int64)
    if backend.world.rank == 0:
        history.end()
        status[0] = STATUSES.index(history.status)
    backend.world.tell(status)
    history.status, history.rows = STATUSES[status[0]], backend.x


def _result(world: Ranks, backend: RankBackend, about: dict[str, Any]) -> Result:
    """Return the result, on all ranks: rank 0 has the table, each rank its own rows."""
    history = backend.history
    assert history.rows is not None
    parts = world.collect(history.rows[None])
    size = np.array([len(history.table)], dtype=np.int64)
    world.tell(size)
    table = history.table if world.rank == 0 else np.empty((int(size[0]), len(COLUMNS)))
    rows = np.empty((world.partition.nodes, history.rows.shape[1]), dtype=history.rows.dtype)
    if parts is not None:
        rows[:] = np.concatenate(parts, axis=1)[0]
    world.tell(table)
    world.tell(rows)
    if backend.task.presence is not None:
        rows = backend.task.presence.marked(rows, table[-1, CLOCK])
    message = tell_bytes(world, history.message.encode()).decode()
    return replace(history, tables=[table], rows=rows, message=message).result(about)
