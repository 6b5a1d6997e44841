"""The loop on one rank: steps that talk to neighbouring ranks only, and pauses at which rank 0 hears what came out.

From one pause to the next no rank waits for anyone but those its nodes share a link with. At a pause the ranks send
rank 0 the rows of the records since the last one; it computes the metrics, decides how far to go until the next pause,
and whether to write a checkpoint. What is computed does not depend on when the pauses are.
"""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from ..algorithms import Method
from ..errors import InputError
from ..problems import oracles
from ..problems.base import Problem
from . import checkpoints
from .agreement import Stop
from .blocks import BlockGossip, Blocks, Message
from .compiled import place
from .progress import Interrupt, Progress
from .records import Plan, Run

Array = np.ndarray
CHUNK_SECONDS = 0.3
SNAPSHOT_BYTES = 2**25
STATUSES = ("", "converged", "max_rounds", "diverged", "interrupted")


class Ranks(Protocol):
    """What the loop needs of the ranks: `adom.engine.mpi.World`, or a stand-in for a single one."""

    rank: int
    ranks: int
    blocks: Blocks

    def exchange(self, sends: Any, receives: Any) -> None:
        """Send rows to ranks and receive rows from ranks."""

    def collect(self, part: Array) -> list[Array] | None:
        """Send an array to rank 0, which gets all ranks'."""

    def tell(self, words: Array) -> None:
        """Send an array from rank 0 to all."""

    def meet(self) -> None:
        """Wait until all ranks are here."""

    def settled(self) -> None:
        """Take note that the start is over."""


class Alone:
    """A single rank, without MPI: all nodes are its own."""

    rank, ranks = 0, 1

    def __init__(self, nodes: int) -> None:
        self.blocks = Blocks(nodes, 1)

    def exchange(self, sends: list[Message], receives: list[Message]) -> None:
        """There is nobody."""
        assert not sends
        assert not receives

    def collect(self, part: Array) -> list[Array]:
        """Return the part as the only one."""
        return [part]

    def tell(self, words: Array) -> None:
        """There is nobody."""

    def meet(self) -> None:
        """Everybody is here."""

    def settled(self) -> None:
        """Be as patient as before."""


@cache
def _programs(spec: oracles.OracleSpec, tree: Any) -> tuple[Any, Any]:
    """Return grad F and grad F* of problems of one structure, whose arrays come as a list."""
    gradient = jax.jit(lambda leaves, x: tree.unflatten(leaves).gradient_rows(x))
    dual = jax.jit(lambda leaves, *at: oracles.dual_gradient(spec, tree.unflatten(leaves), *at))
    return gradient, dual


class BlockOracle:
    """The problem as a step sees it on one rank; arrays are NumPy's outside."""

    def __init__(self, spec: oracles.OracleSpec, problem: Problem, memory: oracles.Memory) -> None:
        self.memory = memory
        self.plain = 0  # gradients that every node has spent, beside those in the memory
        # Taken apart once: JAX would do it at every call, in Python.
        self._leaves, tree = jax.tree.flatten(problem)
        self._gradient, self._dual_gradient = _programs(spec, tree)

    def gradient(self, x: Array) -> Array:
        """Return grad F(x), one gradient a node."""
        self.plain += 1
        return self.gradient_at(x)

    def gradient_at(self, x: Array) -> Array:
        """Return grad F(x) for a record: not counted."""
        return np.asarray(self._gradient(self._leaves, x))

    def dual_gradient(self, z: Array) -> Array:
        """Return grad F*(z) in the way that was asked for."""
        self.memory = self._dual_gradient(self._leaves, self.memory, z)
        return np.asarray(self.memory.x)

    def compile(self, zeros: Array, dual: bool) -> None:
        """Compile what a step calls, so that no step's time contains it."""
        self.gradient_at(zeros)
        if dual:
            jax.block_until_ready(self._dual_gradient(self._leaves, self.memory, zeros))

    def gradients(self) -> Array:
        """Return the gradients that each node has spent so far."""
        return np.asarray(self.memory.gradients) + self.plain


class Record(NamedTuple):
    """What a rank keeps of one record until the next pause."""

    iteration: int
    clock: int
    floats: int
    x: Array
    gradients: Array


@dataclass
class Task:
    """What to run, on the rows of this rank; all but the block is the same on every rank.

    Attributes
    ----------
    block : Problem
        The nodes of this rank, with the constants of all.
    solution : array, optional
        Where it is not known, the gradient at the mean is recorded instead of the error.
    monitor : bool
        Whether metrics are computed at all; without a solution they can be left out.
    settings : dict
        What a checkpoint must have been made with to go on from it.
    """

    block: Problem
    method: Method
    spec: oracles.OracleSpec
    plan: Plan
    accuracy: oracles.Accuracy | None
    solution: Array | None
    monitor: bool
    stop: Stop | None
    kept: checkpoints.Checkpoints | None
    settings: dict[str, Any] = field(default_factory=dict)


class Ended(NamedTuple):
    """What a run has come to; the same on every rank, but the rows, which are its own."""

    run: Run
    x: Array
    wire: dict[str, Any]  # what was sent, summed over ranks


class RankRun:
    """A run on one rank, under way."""

    def __init__(self, world: Ranks, task: Task, gossip: BlockGossip) -> None:
        self.world, self.task, self.gossip = world, task, gossip
        first, end = world.blocks.of(world.rank)
        dtype = task.plan.dtype
        zeros = np.zeros((end - first, task.block.dim), dtype=dtype)
        accuracy = task.accuracy
        if accuracy is not None:
            accuracy = jax.tree.map(jnp.asarray, accuracy)
        self.method: Method = task.method
        if dtype != "float64":
            values = {name: np.dtype(dtype).type(value) for name, value in task.method.parameters().items()}
            self.method = object.__new__(type(task.method))
            for name, value in values.items():
                object.__setattr__(self.method, name, value)
        self.oracle = BlockOracle(task.spec, place(task.block, dtype), oracles.start(jnp.asarray(zeros), accuracy))
        self.state = self.method.init(zeros, self.oracle)
        self.x: Array = zeros
        self.iteration = 0
        self.seconds = 0.0
        self.agreed = False
        self.run = Run(task.plan, task.method)  # filled at rank 0
        self.oracle.compile(zeros, self.method.oracle == "dual")

    # Steps

    def fits(self) -> bool:
        """Return whether the budget covers one more step."""
        return bool(self.gossip.clock + self.method.rounds_of_step(self.iteration) <= self.task.plan.rounds)

    def advance(self, steps: int, slots: int) -> list[Record]:
        """Make some steps, fewer if the run is over or `slots` records are full; return the records."""
        plan, records = self.task.plan, []
        for _ in range(steps):
            self.state, x = self.method.step(self.state, self.oracle, self.gossip)
            self.x = np.asarray(x)
            self.iteration += 1
            self._look()
            over = self.agreed or not self.fits()
            if over or self.iteration % plan.record_every == 0:
                records.append(self._record())
            if over or len(records) == slots:
                return records
        if not records:
            records.append(self._record())  # rank 0 drops it, unless the run is interrupted here
        return records

    def _record(self) -> Record:
        return Record(self.iteration, self.gossip.clock, self.gossip.floats, self.x, self.oracle.gradients())

    def _look(self) -> None:
        stop = self.task.stop
        if stop is None or not stop.due(self.gossip.clock):
            return
        if self.gossip.clock + stop.lasts(self.gossip) <= self.task.plan.rounds:
            self.agreed = stop.reached(self.gossip, self.x, self.oracle.gradient(self.x))

    # Checkpoints

    def _leaves(self) -> list[Any]:
        leaves: list[Any] = jax.tree.leaves((self.state, self.oracle.memory))
        return leaves

    def save(self) -> None:
        """Write this rank's part of a checkpoint; when all have, older generations are forgotten."""
        kept, world = self.task.kept, self.world
        assert kept is not None
        arrays = {"rows/x": self.x}
        for number, leaf in enumerate(self._leaves()):
            array = np.asarray(leaf)
            arrays[f"rows/{number}" if array.ndim else f"one/{number}"] = array
        if world.rank == 0:
            arrays["one/table"] = self.run.table
        about = {
            "settings": self.task.settings,
            "clock": self.gossip.clock,
            "floats": self.gossip.floats,
            "plain": self.oracle.plain,
            "seconds": self.seconds,
            "look": self.task.stop.next if self.task.stop is not None else None,
        }
        checkpoints.write(kept.path, self.iteration, world.rank, world.blocks, arrays, about)
        world.meet()  # nothing older is given up before all have written
        if world.rank == 0:
            checkpoints.forget(kept.path)

    def restore(self, generation: Path) -> None:
        """Go on from a checkpoint, whatever number of ranks has written it."""
        first, end = self.world.blocks.of(self.world.rank)
        arrays, about = checkpoints.read(generation, first, end)
        _compare(about["settings"], self.task.settings, generation)
        structure: Any = jax.tree.structure((self.state, self.oracle.memory))
        leaves = []
        for number, leaf in enumerate(self._leaves()):
            name = f"rows/{number}" if np.ndim(leaf) else f"one/{number}"
            array = arrays[name]
            leaves.append(jnp.asarray(array) if isinstance(leaf, jax.Array) else _like(leaf, array))
        self.state, self.oracle.memory = structure.unflatten(leaves)
        self.x, self.oracle.plain = arrays["rows/x"], about["plain"]
        self.gossip.clock, self.gossip.floats = about["clock"], about["floats"]
        self.iteration, self.seconds = int(generation.name.rpartition("-")[2]), about["seconds"]
        if self.task.stop is not None and about["look"] is not None:
            self.task.stop.next = about["look"]
        if self.world.rank == 0:
            table = checkpoints.of_rank_0(generation)["one/table"]
            self.run.tables = [table] if len(table) else []


def _like(leaf: Any, array: Array) -> Any:
    """Return an array, or the plain number that it stands for."""
    return array.item() if not isinstance(leaf, np.ndarray | np.generic) else array


def _compare(before: dict[str, Any], now: dict[str, Any], generation: Path) -> None:
    plain = json.loads(json.dumps(now))
    for name in sorted({*before, *plain}):
        if before.get(name) != plain.get(name):
            raise InputError(
                f"{generation.parent} was written with {name} = {before.get(name)!r}, now it is {plain.get(name)!r}; "
                "give the same settings to go on, or another folder to start afresh"
            )


class Loop:
    """Chunks of steps and the pauses between them, until the run is over."""

    def __init__(self, one: RankRun, progress: Progress, interrupt: Interrupt) -> None:
        self.one, self.world, self.task = one, one.world, one.task
        self.progress, self.interrupt = progress, interrupt
        size = np.dtype(self.task.plan.dtype).itemsize * self.world.blocks.nodes * (self.task.block.dim + 1)
        self.slots = int(np.clip(SNAPSHOT_BYTES // size, 1, 512))
        self.written = perf_counter()
        self.before = (one.iteration, one.gossip.clock)  # where the present chunk began

    def go(self) -> Ended:
        """Run to the end."""
        one = self.one
        steps = self._reach(4)
        while True:
            self.before, began = (one.iteration, one.gossip.clock), perf_counter()
            records = one.advance(steps, self.slots)
            elapsed = perf_counter() - began
            status, stop, steps, checkpoint = self._pause(records, elapsed)
            self.world.settled()
            if status:
                one.run.status = status
                rows = records[stop].x if stop >= 0 else one.x
                return Ended(one.run, rows, self._wire())
            if checkpoint:
                one.save()
                self.written = perf_counter()

    def _reach(self, steps: int) -> int:
        """Return how many steps to make until the next pause, so that a checkpoint falls where it should."""
        every = None if self.task.kept is None else self.task.kept.every_rounds
        if every is None:
            return steps
        clock, iteration, method = self.one.gossip.clock, self.one.iteration, self.one.method
        end, count = (clock // every + 1) * every, 0
        while clock < end and count < steps:
            clock += int(method.rounds_of_step(iteration + count))
            count += 1
        return max(1, count)

    def _pause(self, records: list[Record], elapsed: float) -> tuple[str, int, int, bool]:
        """Tell rank 0 what came out; return the status, the record at which the run ends, and what to do next."""
        one = self.one
        flags = np.zeros((1, len(one.x), 1))
        flags[0, 0, 0] = self.interrupt.asked
        asked = self.world.collect(flags)
        metrics = self._metrics(records)
        words = np.zeros(4, dtype=np.int64)
        if asked is not None:
            assert metrics is not None
            interrupted = any(part[0, 0, 0] for part in asked)
            gradients, error, consensus = metrics
            counted = np.array([(r.iteration, r.clock, r.floats) for r in records], dtype=float).T
            made = one.iteration - self.before[0]
            seconds = one.seconds + elapsed * (counted[0] - self.before[0]) / made
            table = np.stack([counted[0], counted[1], gradients, counted[2], seconds, error, consensus], axis=-1)
            taken = one.run.take(table, interrupted or one.agreed)
            if not one.run.status and (one.agreed or interrupted):
                one.run.status = "converged" if one.agreed else "interrupted"
            self.progress.update(int(counted[1, -1]), one.run.error if self.task.solution is not None else None)
            pace = int(np.clip(CHUNK_SECONDS / max(elapsed, 1e-9) * made, 1, 8192))
            kept = self.task.kept
            due = kept is not None and not one.run.status
            if due and kept is not None:
                due = perf_counter() - self.written >= kept.seconds or (
                    kept.every_rounds is not None
                    and one.gossip.clock // kept.every_rounds > self.before[1] // kept.every_rounds
                )
            words[:] = STATUSES.index(one.run.status), -1 if taken is None else taken, self._reach(pace), due
        self.world.tell(words)
        one.seconds += elapsed
        return STATUSES[words[0]], int(words[1]), int(words[2]), bool(words[3])

    def _metrics(self, records: list[Record]) -> tuple[Array, Array, Array] | None:
        """Return gradients a node, error (or the gradient at the mean) and consensus of records, at rank 0."""
        task = self.task
        counts = self.world.collect(np.stack([r.gradients for r in records]).astype(np.float64))
        if not task.monitor:
            nothing = np.zeros(len(records))
            return None if counts is None else (np.concatenate(counts, axis=1).mean(axis=1), nothing, nothing)
        parts = self.world.collect(np.stack([r.x for r in records]))
        mean = np.empty((len(records), task.block.dim), dtype=task.plan.dtype)
        rows = None if parts is None else np.concatenate(parts, axis=1).astype(np.float64)
        if rows is not None:
            mean[:] = rows.mean(axis=1)
        error = None
        if task.solution is None:
            error = self._gradient_at(mean)
        if rows is None or counts is None:
            return None
        if task.solution is not None:
            error = ((rows - task.solution) ** 2).sum(axis=(1, 2))
        assert error is not None
        consensus = ((rows - rows.mean(axis=1, keepdims=True)) ** 2).sum(axis=(1, 2))
        return np.concatenate(counts, axis=1).mean(axis=1), error, consensus

    def _gradient_at(self, points: Array) -> Array | None:
        """Return, at rank 0, the norms of the mean of all nodes' gradients at points that rank 0 knows."""
        self.world.tell(points)
        own = len(self.one.x)
        rows = (np.repeat(point[None], own, axis=0) for point in points)
        found = [self.one.oracle.gradient_at(row) for row in rows]
        parts = self.world.collect(np.stack(found))
        return None if parts is None else np.linalg.norm(np.concatenate(parts, axis=1).mean(axis=1), axis=1)

    def _wire(self) -> dict[str, Any]:
        """Return what all ranks have sent, on every rank."""
        gossip = self.one.gossip
        part = np.zeros((1, len(self.one.x), 2))
        part[0, 0] = gossip.messages, gossip.bytes
        parts = self.world.collect(part)
        total = np.zeros(2)
        if parts is not None:
            total[:] = sum(one[0, 0] for one in parts)
        self.world.tell(total)
        return {"ranks": self.world.ranks, "messages": int(total[0]), "bytes": int(total[1])}
