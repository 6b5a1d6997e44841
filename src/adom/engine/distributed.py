"""`solve` over several ranks: who holds what, what is agreed on before the first step, and the result for all."""

import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ..algorithms import Constants, Method
from ..errors import InputError
from ..files import atomic
from ..networks import DirectedNetwork, Network
from ..problems.base import Problem
from ..problems.oracles import Accuracy, OracleSpec
from . import checkpoints as store
from .agreement import Stop, greatest
from .blocks import BlockGossip, Rounds
from .checkpoints import Checkpoints
from .endings import rounding
from .own import own_code
from .pair import check_pair, constants
from .pauses import Loop
from .progress import Interrupt, Progress
from .ranks import Ended, RankRun, Ranks, Task, own_matter
from .records import COLUMNS, Plan
from .rehearsal import rehearse
from .result import Result

if TYPE_CHECKING:
    from ..data.shards import Shards
    from .solve import Request

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
    from .mpi import World

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
    from .solve import check_budget, circumstances, method_described, method_type, method_with

    if parameters == "tuned":
        raise InputError("parameters='tuned' runs many settings, which engine 'mpi' does not; tune with engine='local'")
    cls = method_type(method)
    check_pair(problem, network, directed=cls.directed, title=cls.title)
    spec = request.oracle_for(cls)
    rounds = Rounds(network, world.blocks, world.rank, cls.directed, request.dtype)
    gossip = BlockGossip(rounds, world.exchange)
    held = _held(world, problem, network, gossip)
    if held.solution is None and request.tol is not None and cls.directed:
        raise InputError(f"{cls.title} cannot agree when to stop without the solution; leave tol out and give rounds")
    made = method_with(lambda: held.constants, method, parameters)
    check_budget(made, request.rounds - gossip.clock)
    start, uncertain = float("nan"), None
    if isinstance(problem, Problem):
        start, uncertain = problem.nodes * float((problem.solution() ** 2).sum()), problem.solution_error
        if request.tol is not None and world.rank == 0:
            problem.warn_of_tol(request.tol)
    plan = Plan(
        int(request.rounds),
        int(request.record_every),
        request.tol if held.solution is not None else None,
        request.dtype,
        0.0 if np.isnan(start) else start,
        rounding(request.dtype, held.constants.kappa) ** (1 if held.solution is None else 2),
    )
    stop = None
    if held.solution is None and request.tol is not None:
        stop = Stop(request.tol, network, held.constants, held.steepest)
    codes = (held.block.own_code(), own_code(made, problem.nodes, problem.dim, request.dtype))
    settings = {
        "method": method_described(made),
        "oracle": str(spec),
        "network": json.loads(json.dumps(network.recipe, default=str)),
        "problem": {"nodes": problem.nodes, "dim": problem.dim, "mu": held.constants.mu, "L": held.constants.L},
        "code": [code.hidden or code.digest for code in codes],
        "dtype": request.dtype,
        "record_every": plan.record_every,
    }
    accuracy = _accuracy(world, made, spec, held.constants, network)
    watched = monitor or held.solution is not None
    task = Task(held.block, made, spec, plan, accuracy, held.solution, watched, stop, kept, settings)
    rounds.prepare()
    progress = Progress(plan.rounds, cls.title, False if world.rank else request.progress)
    one = RankRun(world, task, gossip)
    going_on = _resume(world, one, kept)
    with Interrupt() as interrupt, progress:
        ended = Loop(one, progress, interrupt).go()
    protocol = "given" if isinstance(method, Method) else parameters
    about = {
        "method": settings["method"],
        "problem": {
            "type": type(held.block).__name__,
            **settings["problem"],
            "kappa": held.constants.kappa,
            "samples": problem.weighting(),
        },
        **circumstances(network, cls, spec, protocol, request),
        **asdict(plan),
        "tol": request.tol,
        "start_error": None if np.isnan(start) else start,
        "solution_error": uncertain,
        "wire": ended.wire,
        "resumed": going_on,
        "message": ended.run.message,
    }
    if stop is not None and stop.last is not None:
        about["error_bound"] = None if np.isinf(stop.last.error) else stop.last.error
    return _result(world, ended, about, held.solution is not None, watched)


def _held(world: Ranks, problem: "Problem | Shards", network: Any, gossip: BlockGossip) -> Held:
    """Return this rank's nodes and the constants: known, or agreed on over the links."""
    first, end = world.blocks.of(world.rank)
    if isinstance(problem, Problem):
        return Held(problem.block(first, end), constants(problem, network), problem.solution(), 0.0)
    with own_matter():
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


def _accuracy(world: Ranks, method: Method, spec: OracleSpec, known: Constants, network: Any) -> Accuracy | None:
    """Return how exact the `auto` oracle has to be: rank 0 rehearses, for all."""
    if spec.kind != "auto":
        return None
    found = np.zeros(3)
    if world.rank == 0:
        found[:] = rehearse(method, known, network)
    world.tell(found)
    return Accuracy(int(found[0]), float(found[1]), int(found[2]))


def _resume(world: Ranks, one: RankRun, kept: Checkpoints | None) -> int:
    """Go on from the latest whole checkpoint, if that is wanted; return its iteration, 0 where there is none."""
    if kept is None:
        return 0
    chosen = np.full(1, -1, dtype=np.int64)
    if world.rank == 0:
        chosen[0] = _chosen(kept)
    world.tell(chosen)
    if chosen[0] < 0:
        return 0
    one.restore(Path(kept.path) / f"iteration-{int(chosen[0]):012d}")
    return int(chosen[0])


def _chosen(kept: Checkpoints) -> int:
    """Return the iteration to go on from, -1 where there is none, and see that the folder can be written to."""
    with own_matter():
        there = store.generations(kept.path)
        if there and not kept.resume:
            raise InputError(
                f"{kept.path} holds checkpoints of an earlier run; go on from them (--resume), or take another folder"
            )
        found = store.latest(kept.path, lambda words: print(f"adom: {words}", file=sys.stderr, flush=True))
        if found is None and any(store.complete(path) for _, path in there):  # damaged, not just never finished
            raise InputError(f"no checkpoint in {kept.path} is whole; remove the folder to start afresh")
        store.forget_after(found, kept.path)
        with atomic(kept.path / ".writable") as _:
            pass
        (kept.path / ".writable").unlink()
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
    problem: Any, network: Any, method: Any, parameters: Any, request: "Request", kept: Checkpoints | None = None
) -> Result:
    """Solve as the only rank, without MPI: the arithmetic of engine "mpi", for tests."""
    from .ranks import Alone

    with jax.enable_x64(True):
        request = replace(request, progress=False)
        return run(Alone(problem.nodes), problem, network, method, parameters, request, kept, True)
