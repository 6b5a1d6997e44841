"""`solve` over several ranks: who holds what, what is agreed on before the first step, and the result for all."""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ...algorithms import Constants, Method
from ...errors import InputError
from ...networks import DirectedNetwork, Network
from ...problems.base import Problem
from .. import checkpoints as store
from ..checkpoints import Checkpoints
from ..constants import check_pair, constants
from ..driver import Loop
from ..endings import rounding
from ..own_code import own_code
from ..progress import Interrupt, Progress
from ..provenance import circumstances, method_described
from ..recorder import COLUMNS, Plan
from ..result import Result
from .agreement import Stop, greatest
from .backend import Ended, OwnError, RankRun, Ranks, Task, at_rank_0, own_matter
from .folder_lock import FolderLock
from .partition import BlockGossip, Rounds

if TYPE_CHECKING:
    from ...data.shards import Shards
    from ..solve import Request

UNKNOWN = {"error": "gradient_norm"}
"""The column that a history has instead where nobody knows the solution."""


@dataclass(frozen=True)
class Held:
    """What one rank holds of a problem, and what all know of it."""

    block: Problem
    constants: Constants
    solution: np.ndarray | None
    steepest: float  # the greatest |grad f_i(0)|, where it was agreed on


def solve_on_ranks(
    problem: "Problem | Shards",
    network: Network | DirectedNetwork,
    method: Any,
    parameters: Any,
    request: "Request",
    kept: Checkpoints | None,
    patience: float,
    monitor: bool,
) -> Result:
    """Solve as one of the ranks that mpirun has started; return the same result on each of them."""
    from .world import World

    if not 0 < patience < float("inf"):
        raise InputError(f"patience must be a positive number of seconds, got {patience!r}")
    check_pair(problem, network, directed=True)
    with jax.enable_x64(True), World(problem.nodes, patience) as world:
        return run(world, problem, network, method, parameters, request, kept, monitor)


def run(
    world: Ranks,
    problem: "Problem | Shards",
    network: Network | DirectedNetwork,
    method: Any,
    parameters: Any,
    request: "Request",
    kept: Checkpoints | None,
    monitor: bool,
) -> Result:
    """Solve as one of some ranks."""
    from ..solve import method_type

    if parameters == "tuned":
        raise InputError("parameters='tuned' runs many settings, which engine 'mpi' does not; tune with engine='local'")
    cls = method_type(method)
    check_pair(problem, network, directed=cls.directed, title=cls.title)
    spec = request.oracle_for(cls)
    with _folder(world, kept):
        rounds = Rounds(network, world.blocks, world.rank, cls.directed, request.dtype)
        gossip = BlockGossip(rounds, world.exchange)
        held = _held(world, problem, network, gossip)
        task = _task(world, problem, network, method, parameters, request, kept, monitor, held, gossip)
        rounds.prepare()
        progress = Progress(task.plan.rounds, cls.title, False if world.rank else request.progress)
        one = RankRun(world, task, gossip)
        going_on = _resume(world, one, kept)
        with Interrupt() as interrupt, progress:
            ended = Loop(one, progress, interrupt).go()
    start, settings = _start_error(problem, held), task.settings
    about = {
        "method": settings["method"],
        "problem": {
            "type": type(held.block).__name__,
            **settings["problem"],
            "kappa": held.constants.kappa,
            "samples": problem.weighting(),
        },
        **circumstances(network, cls, spec, "given" if isinstance(method, Method) else parameters, request.engine),
        **asdict(task.plan),
        "tol": request.tol,
        "start_error": None if np.isnan(start) else start,
        "solution_error": problem.solution_error if isinstance(problem, Problem) else None,
        "wire": ended.wire,
        "resumed": going_on,
        "message": ended.run.message,
    }
    if task.stop is not None and task.stop.last is not None:
        about["error_bound"] = task.stop.last.error if np.isfinite(task.stop.last.error) else None
    return _result(world, ended, about, held.solution is not None, task.monitor)


def _task(
    world: Ranks,
    problem: "Problem | Shards",
    network: Any,
    method: Any,
    parameters: Any,
    request: "Request",
    kept: Checkpoints | None,
    monitor: bool,
    held: Held,
    gossip: BlockGossip,
) -> Task:
    """Return what to run; what of it is not this rank's own is the same on all of them."""
    from ..solve import method_with

    made = method_with(lambda: held.constants, method, parameters)
    _check_rounds(made, request.rounds, gossip.clock)
    known = held.solution is not None
    if not known and request.tol is not None and made.directed:
        raise InputError(f"{made.title} cannot agree when to stop without the solution; leave tol out and give rounds")
    if isinstance(problem, Problem) and request.tol is not None and world.rank == 0:
        problem.warn_of_tol(request.tol)
    start, watched = _start_error(problem, held), monitor or known
    farthest = held.steepest / held.constants.mu  # x* is no farther from 0
    growth = start if known else 0.0 if watched else problem.nodes * farthest * farthest
    tol = request.tol if known else None
    floor = rounding(request.dtype, held.constants.kappa) ** (2 if known else 1)
    plan = Plan(int(request.rounds), int(request.record_every), tol, request.dtype, growth, floor)
    stop = None
    if not known and request.tol is not None:
        stop = Stop(request.tol, network, held.constants, held.steepest)
    spec = request.oracle_for(type(made))
    codes = (held.block.own_code(), own_code(made, problem.nodes, problem.dim, request.dtype))
    settings = {
        "method": method_described(made),
        "oracle": str(spec),
        "network": json.loads(json.dumps(network.recipe, default=str)),
        "problem": {"nodes": problem.nodes, "dim": problem.dim, "mu": held.constants.mu, "L": held.constants.L},
        "code": [code.hidden or code.digest for code in codes],
        "dtype": request.dtype,
        "record_every": plan.record_every,
        "records": "error" if known else "gradient_norm" if watched else "nothing",
    }
    listed = None if isinstance(problem, Problem) else [file.sha256 for file in problem.manifest.files]
    _same_everywhere(world, {**settings, "rounds": plan.rounds, "shards": listed})
    return Task(held.block, made, spec, plan, held.solution, watched, stop, kept, settings)


def _start_error(problem: "Problem | Shards", held: Held) -> float:
    return float("nan") if held.solution is None else problem.nodes * float((held.solution**2).sum())


def _check_rounds(method: Method, rounds: int, agreeing: int) -> None:
    """Refuse a budget that does not cover agreeing on the constants and the first step."""
    from ..solve import check_budget

    if not agreeing:
        check_budget(method, rounds)
    first = agreeing + int(method.rounds_of_step(0))
    if rounds < first:
        raise InputError(
            f"rounds must be at least {first} here, got {rounds}: agreeing on mu and L takes {agreeing} of them, "
            f"and one step of {method.title} the others; give more"
        )


EXACT = ("network", "shards", "oracle", "dtype", "record_every", "records", "rounds")
"""Settings in which no rank may differ from rank 0; constants may, in rounding, where machines do."""


def _same_everywhere(world: Ranks, settings: dict[str, Any]) -> None:
    """Refuse a rank that was given something else than rank 0."""
    own = {name: settings[name] for name in EXACT} | {"method": settings["method"]["name"]}
    text = np.frombuffer(json.dumps(own).encode(), dtype=np.uint8).copy()
    size = np.array([text.size], dtype=np.int64)
    world.tell(size)
    words = text if world.rank == 0 else np.zeros(int(size[0]), dtype=np.uint8)
    world.tell(words)
    for name, value in json.loads(bytes(words)).items():
        if value != own[name]:
            raise OwnError(
                f"it was given {name} = {own[name]!r:.200}, and rank 0 {value!r:.200}; give all ranks the same"
            )


@contextmanager
def _folder(world: Ranks, kept: Checkpoints | None) -> Iterator[None]:
    """Hold the folder of checkpoints for this job alone."""
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


def _held(world: Ranks, problem: "Problem | Shards", network: Any, gossip: BlockGossip) -> Held:
    """Return this rank's nodes and the constants: known, or agreed on over the links."""
    first, end = world.blocks.of(world.rank)
    if isinstance(problem, Problem):
        return Held(problem.block(first, end), constants(problem, network), problem.solution(), 0.0)
    with own_matter(), world.busy(lambda: f"reading {problem.reading}"):
        block = problem.open(first, end)
    curvature = block.L_nodes - block.l2
    slope = block.with_l2(1.0).gradient_rows(np.zeros((end - first, block.dim)))
    values = np.stack([curvature, np.linalg.norm(np.asarray(slope), axis=1)], axis=1)
    most, steepest = (float(value) for value in greatest(gossip, values))
    l2 = problem.regulariser(most)
    block = block.with_l2(l2)
    block.mu, block.L = l2, l2 + most
    known = Constants(block.mu, block.L, *_spectrum(network), problem.nodes)
    return Held(block, known, None, steepest)


def _spectrum(network: Network | DirectedNetwork) -> tuple[float, float]:
    if isinstance(network, DirectedNetwork):
        return 1 / network.chi, 1.0
    return network.lambda_min_plus, network.lambda_max


def _resume(world: Ranks, one: RankRun, kept: Checkpoints | None) -> int:
    """Go on from the latest whole checkpoint, if that is wanted; return its iteration, 0 where there is none."""
    if kept is None:
        return 0
    with world.busy(f"looking for checkpoints in {kept.path}"):
        chosen = at_rank_0(world, lambda: _chosen(kept))
    if chosen < 0:
        return 0
    one.restore(kept.path / f"iteration-{chosen:012d}")
    return chosen


def _chosen(kept: Checkpoints) -> int:
    """Return the iteration to go on from, -1 where there is none."""
    there = store.generations(kept.path)
    found = store.latest(kept.path, lambda words: print(f"adom: {words}", file=sys.stderr, flush=True))
    if found is None and any(store.complete(path) for _, path in there):  # damaged, not just never finished
        raise InputError(f"no checkpoint in {kept.path} is whole; remove the folder to start afresh")
    store.forget_after(found, kept.path)
    if found is None:
        if kept.resume:
            print(f"adom: no checkpoint in {kept.path}: starting from the beginning", file=sys.stderr, flush=True)
        return -1
    iteration = int(found.name.rpartition("-")[2])
    print(f"adom: going on from iteration {iteration} ({found})", file=sys.stderr, flush=True)
    return iteration


def _result(world: Ranks, ended: Ended, about: dict[str, Any], known: bool, watched: bool) -> Result:
    """Return the result, on all ranks: rank 0 has the table, each rank its own rows."""
    import pandas as pd

    parts = world.collect(ended.x[None])
    size = np.array([len(ended.run.table), len(ended.run.message.encode())], dtype=np.int64)
    world.tell(size)
    table = ended.run.table if world.rank == 0 else np.empty((int(size[0]), len(COLUMNS)))
    rows = np.empty((world.blocks.nodes, ended.x.shape[1]), dtype=ended.x.dtype)
    if parts is not None:
        rows[:] = np.concatenate(parts, axis=1)[0]
    message = np.frombuffer(ended.run.message.encode(), dtype=np.uint8).copy() if world.rank == 0 else None
    message = np.zeros(int(size[1]), dtype=np.uint8) if message is None else message
    for array in (table, rows, message):
        world.tell(array)
    history = pd.DataFrame(table, columns=COLUMNS)
    history = history.astype({"iteration": int, "round": int, "floats_sent": int})
    if not known:
        history = history.rename(columns=UNKNOWN)
    if not watched:
        history = history.drop(columns=["gradient_norm", "consensus"])
    return Result(rows, history, ended.run.status, {**about, "message": bytes(message).decode()})


def on_one_rank(
    problem: Any,
    network: Any,
    method: Any,
    parameters: Any,
    request: "Request",
    kept: Checkpoints | None = None,
    monitor: bool = True,
) -> Result:
    """Solve as the only rank, without MPI: the arithmetic of engine "mpi", for tests."""
    from .backend import Alone

    with jax.enable_x64(True):
        request = replace(request, progress=False)
        return run(Alone(problem.nodes), problem, network, method, parameters, request, kept, monitor)
