"""`solve` over several ranks: each holds a block of nodes, all agree on the task, and all get the same result."""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...algorithms import Constants, Method
from ...algorithms.base import plain
from ...dynamics.endings import rounding
from ...errors import InputError
from ...networks import DirectedNetwork, LossyNetwork, Network
from ...problems.base import Problem
from ...util.compile_cache import double_precision
from ..auto.choice import pilot_for
from ..auto.pilot import Pilot
from ..constants import constants, of_network
from ..driver import drive
from ..links import as_run, presence_on
from ..progress import Interrupt, Journal, Progress, following
from ..recorder import CLOCK, COLUMNS, Plan, Recorder, describe, describe_method
from ..request import AUTO, TUNED, Request, check_budget, method_from, method_type
from ..result import Result
from ..user_code import user_code
from . import checkpoints as store
from .agreement import Stop, greatest
from .backend import STATUSES, RankBackend, Task
from .checkpoints import Checkpoints
from .folder_lock import FolderLock
from .partition import RankGossip, RankRounds, RowTravel
from .peers import Alone, RankError, Ranks, at_rank_0, greatest_of_ranks, rank_errors, tell_bytes
from .resume import restore

if TYPE_CHECKING:
    from ...data.shards import Shards
    from .stage import Stage


@dataclass(frozen=True)
class Block:
    """One rank's part of a problem, and the facts about the whole that all ranks know."""

    problem: Problem
    constants: Constants
    solution: np.ndarray | None
    steepest: float  # the greatest |grad f_i(0)|, if agreed on

    @property
    def start_error(self) -> float:
        """Squared distance of rows of zeros to the solution; NaN if it is not known."""
        return float("nan") if self.solution is None else self.constants.nodes * float((self.solution**2).sum())


def solve_on_ranks(
    problem: "Problem | Shards | Stage",
    network: Network | DirectedNetwork,
    method: Any,
    parameters: Any,
    request: Request,
    kept: Checkpoints | None,
) -> Result:
    """Solve as one of the ranks that mpirun has started; return the same result on each of them."""
    from .world import World

    with double_precision(), World(problem.nodes, request.patience) as world:
        return run(world, problem, network, method, parameters, request, kept)


def run(
    world: Ranks,
    problem: "Problem | Shards | Stage",
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
        block = _block(world, problem, network, gossip)
        pilot = None
        if parameters == AUTO and not isinstance(method, Method):
            first, _ = world.partition.of(world.rank)
            pilot = pilot_for(block.problem, network, cls, first, partial(greatest_of_ranks, world))
            method = plain(pilot.assumed) if pilot else method
        task = _task(world, problem, network, method, parameters, request, kept, block, (began, gossip.clock), pilot)
        with RankBackend(world, task, travel, gossip.clock, gossip.floats) as backend:
            recorder = Recorder([backend.history], lambda _: None)
            resumed = _resume(world, backend, recorder, kept)
            shown = False if world.rank else request.progress
            progress = progress or Progress(task.plan.rounds, cls.title, shown, plain=world.ranks > 1)
            asked = interrupt or Interrupt()
            with asked, following(None if world.rank else request.follow, journal) as records:
                drive(backend, task.plan, recorder, progress, asked, records)
            _end_if_spent(backend)
    start = task.presence.start_error if task.presence else block.start_error
    described = {**task.settings["problem"], "kappa": block.constants.kappa, "samples": problem.weighting()}
    described["model"] = problem.model() if isinstance(problem, Problem) else problem.model(block.constants.mu)
    about = describe(
        backend.history,
        {"type": type(block.problem).__name__, **described},
        network,
        oracle,
        "given" if isinstance(method, Method) and pilot is None else parameters,
        request.engine,
        wire=backend.sent(),
        resumed=resumed,
        solution_error=problem.solution_error if isinstance(problem, Problem) else None,
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
    problem: "Problem | Shards | Stage",
    network: Any,
    method: Any,
    parameters: Any,
    request: Request,
    kept: Checkpoints | None,
    block: Block,
    clocks: tuple[int, int],
    pilot: Pilot | None,
) -> Task:
    """Return this rank's task, after checking that all but its block is the same on all ranks.

    `clocks` are the rounds spent before the run and before its first step.
    """
    chosen = method_from(method, parameters, lambda: block.constants)
    running = chosen if pilot else as_run(chosen, network, problem.dim, *world.partition.of(world.rank))
    check_budget(pilot.assumed if pilot else running, request.rounds, clocks[1])
    known = block.solution is not None
    if not known and request.tol is not None and chosen.directed:
        raise InputError(
            f"with {chosen.title} the nodes cannot agree on when to stop without the solution; leave tol out"
        )
    if isinstance(problem, Problem) and request.tol is not None and world.rank == 0:
        problem.warn_of_tol(request.tol)
    monitor = request.monitor or known
    farthest = block.steepest / block.constants.mu  # x* is no farther from 0
    presence = presence_on(network, problem, request.rounds) if isinstance(problem, Problem) else None
    growth = block.start_error if known else 0.0 if monitor else problem.nodes * farthest * farthest
    if presence is not None:
        growth = presence.start_error
    floor = rounding(request.dtype, block.constants.kappa) ** (2 if known else 1)
    tol = request.tol if known else None
    plan = Plan(int(request.rounds), int(request.record_every), tol, request.dtype, growth, floor)
    stop = None
    if not known and request.tol is not None:
        stop = Stop(request.tol, network, block.constants, block.steepest, clocks[0])
    oracle = request.oracle_for(type(chosen))
    codes = (block.problem.user_code(), user_code(chosen, problem.nodes, problem.dim, request.dtype))
    settings = {
        "method": describe_method(chosen),
        "oracle": str(oracle),
        "network": json.loads(json.dumps(network.recipe, default=str)),
        "problem": {"nodes": problem.nodes, "dim": problem.dim, "mu": block.constants.mu, "L": block.constants.L},
        "code": [code.hidden or code.digest for code in codes],
        "dtype": request.dtype,
        "record_every": plan.record_every,
        "records": "error" if known else "gradient_norm" if monitor else "nothing",
    }
    listed = None if isinstance(problem, Problem) else problem.listed()
    _same_everywhere(world, {**settings, "rounds": plan.rounds, "shards": listed})
    return Task(block.problem, running, oracle, plan, block.solution, monitor, stop, kept, settings, pilot, presence)


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


def _block(world: Ranks, problem: "Problem | Shards | Stage", network: Any, gossip: RankGossip) -> Block:
    """Return this rank's nodes and the constants: known, or agreed on over the links."""
    first, end = world.partition.of(world.rank)
    if isinstance(problem, Problem):
        return Block(problem.block(first, end), constants(problem, network), problem.solution(), 0.0)
    source: Any = problem
    with rank_errors(), world.busy(lambda: f"reading {problem.reading}"):
        own = source.open(first, end)
    slope = own.gradient_rows(np.zeros((end - first, own.dim)))
    values = np.stack([source.curvature(own), np.linalg.norm(np.asarray(slope), axis=1)], axis=1)
    most, steepest = (float(value) for value in greatest(gossip, values))
    own = source.settle(own, most)
    return Block(own, Constants(own.mu, own.L, **of_network(network)), None, steepest)


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


def on_one_rank(
    problem: Any,
    network: Any,
    method: Any,
    parameters: Any,
    request: Request,
    kept: Checkpoints | None = None,
) -> Result:
    """Solve as the only rank, without MPI: the arithmetic of engine "mpi", for tests."""
    with double_precision():
        request = replace(request, progress=False)
        return run(Alone(problem.nodes), problem, network, method, parameters, request, kept)
