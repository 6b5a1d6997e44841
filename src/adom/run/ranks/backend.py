"""A run on one rank: steps on its block of nodes that talk to neighbouring ranks only.

Within a chunk no rank waits for any but those its nodes share a link with. Between chunks the ranks send rank 0 the
rows of their records; it computes the metrics and decides what to do next.
"""

from dataclasses import dataclass, field
from functools import cache, partial
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...algorithms import Method
from ...problems import oracles
from ...problems.base import Problem
from ...problems.oracle_spec import OracleSpec
from ..contract import CountingOracle
from ..driver import Chunk, slots
from ..endings import FINISHED
from ..local.jitted import place
from ..recorder import COLUMNS, CONSENSUS, ERROR, History, Plan, Recorder
from ..user_code import bare
from .agreement import Stop
from .checkpoints import Checkpoints
from .partition import RankGossip
from .peers import Ranks
from .resume import save

Array = np.ndarray
STATUSES = ("", *FINISHED, "interrupted")


@cache
def _programs(spec: OracleSpec, tree: Any) -> tuple[Any, Any]:
    """Return grad F and grad F* of problems of one structure, whose arrays come as a list."""
    gradient = jax.jit(lambda leaves, x: tree.unflatten(leaves).gradient_rows(x))

    # The memory's Hessians are given away and come back in place: they are large and hardly change.
    @partial(jax.jit, donate_argnums=1)
    def dual(leaves: Any, kept: Any, x: Array, gradients: Array, z: Array) -> oracles.Memory:
        return oracles.dual_gradient(spec, tree.unflatten(leaves), oracles.Memory(x, gradients, kept), z)

    return gradient, dual


class RankOracle(CountingOracle):
    """The problem as a step sees it on one rank; its arrays are NumPy's outside."""

    def __init__(self, spec: OracleSpec, problem: Problem, memory: oracles.Memory) -> None:
        leaves, tree = jax.tree.flatten(problem)  # once: JAX would do it at every call, in Python
        gradient, dual = _programs(spec, tree)
        super().__init__(
            lambda x: np.asarray(gradient(leaves, x)),
            lambda memory, z: dual(leaves, memory[2], memory[0], memory[1], z),
            memory,
        )

    def gradient_at(self, x: Array) -> Array:
        """Return grad F(x) for a record: not counted."""
        return np.asarray(self._gradient(x))

    def dual_gradient(self, z: Array) -> Array:
        """Return grad F*(z), computed by the chosen oracle."""
        return np.asarray(super().dual_gradient(z))

    def compile(self, zeros: Array, dual: bool, plain: bool) -> None:
        """Compile what a step calls, so that no step's time contains it."""
        if plain:
            self.gradient_at(zeros)
        if dual:
            x, gradients, kept = self.memory
            memory = oracles.Memory(x, gradients, jax.tree.map(jnp.copy, kept))
            jax.block_until_ready(self._dual_gradient(memory, zeros))


class Record(NamedTuple):
    """One rank's part of a record."""

    iteration: int
    clock: int
    floats: int
    x: Array
    gradients: Array


@dataclass
class Task:
    """A run, on the rows of one rank; all but the block is the same on every rank.

    Attributes
    ----------
    block : Problem
        The nodes of this rank, with the constants of all.
    solution : array, optional
        Where it is not known, the gradient at the mean is recorded instead of the error.
    monitor : bool
        Whether metrics are computed; without a solution they can be left out.
    settings : dict
        Settings in which a checkpoint must agree to go on from it.
    """

    block: Problem
    method: Method
    oracle: OracleSpec
    plan: Plan
    solution: Array | None
    monitor: bool
    stop: Stop | None
    checkpoints: Checkpoints | None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def measure(self) -> str:
        """Name of the column of errors."""
        return "error" if self.solution is not None else "gradient norm" if self.monitor else ""


class RankBackend:
    """A run on one rank, under way."""

    def __init__(self, world: Ranks, task: Task, gossip: RankGossip) -> None:
        self.world, self.task, self.gossip = world, task, gossip
        first, end = world.partition.of(world.rank)
        dtype = task.plan.dtype
        zeros = np.zeros((end - first, task.block.dim), dtype=dtype)
        self.method: Method = task.method
        if dtype != "float64":
            values = {name: np.dtype(dtype).type(value) for name, value in task.method.parameters().items()}
            self.method = bare(type(task.method), values.items())
        memory = oracles.start(jnp.asarray(zeros), task.oracle)
        self.oracle = RankOracle(task.oracle, place(task.block, dtype), memory)
        self.state = self.method.init(zeros, self.oracle)
        self.x: Array = zeros
        self.iteration = 0
        self.agreed = False
        self.history = History(task.plan, task.method, task.measure)
        """Filled at rank 0."""
        self.digests: Array | None = None  # of the data, made when a checkpoint needs them
        self.slots = slots(task.plan, np.dtype(dtype).itemsize * world.partition.nodes * (task.block.dim + 1))
        self.saved = perf_counter()
        self._save_now = self._crossed = False  # whether a checkpoint is due, by the clock on the wall or by rounds
        dual = self.method.oracle == "dual"
        self.oracle.compile(zeros, dual, not dual or task.solution is None)

    # Steps

    def fits(self, plan: Plan) -> bool:
        """Return whether the budget covers one more step."""
        return bool(self.gossip.clock + self.method.rounds_of_step(self.iteration) <= plan.rounds)

    def advance(self, plan: Plan, pace: int) -> Chunk:
        """Make about `pace` steps, fewer if the run is over, all slots are full or a checkpoint is due."""
        begin, began = self.iteration, perf_counter()
        records: list[Record] = []
        due = self._next_checkpoint()
        with np.errstate(over="ignore", invalid="ignore"):  # of a run that diverges, as its records say
            while len(records) < self.slots:
                state = self.method.renewed(self.state, self.iteration)
                self.state, x = self.method.step(state, self.oracle, self.gossip)
                self.x = np.asarray(x)
                self.iteration += 1
                self._agree_to_stop()
                over = self.agreed or not self.fits(plan)
                if over or self.iteration % plan.record_every == 0:
                    records.append(self._record())
                if over or self.iteration - begin >= pace or self.gossip.clock >= due:
                    break
        self._crossed = self.gossip.clock >= due
        if not records:
            records.append(self._record())  # dropped, unless the run is interrupted here
        return Chunk(begin, self.iteration, perf_counter() - began, len(records), records)

    def _record(self) -> Record:
        gradients = np.asarray(self.oracle.memory.gradients) + self.oracle.calls
        return Record(self.iteration, self.gossip.clock, self.gossip.floats, self.x, gradients)

    def _agree_to_stop(self) -> None:
        stop = self.task.stop
        if stop is None or not stop.due(self.gossip.clock):
            return
        if self.gossip.clock + stop.lasts(self.gossip) <= self.task.plan.rounds:
            self.agreed = stop.reached(self.gossip, self.x, self.oracle.gradient(self.x))

    def _next_checkpoint(self) -> float:
        """Return the round at which a checkpoint is due next, where rounds decide that."""
        kept = self.task.checkpoints
        if kept is None or kept.every_rounds is None:
            return float("inf")
        return float((self.gossip.clock // kept.every_rounds + 1) * kept.every_rounds)

    # Between chunks

    def anyone(self, asked: bool) -> bool:
        """Return, at rank 0, whether any rank was asked to stop."""
        flags = np.zeros((1, len(self.x), 1))
        flags[0, 0, 0] = asked
        parts = self.world.collect(flags)
        return parts is not None and any(part[0, 0, 0] for part in parts)

    def measure(self, chunk: Chunk, members: list[int]) -> Array | None:
        """Return the table of a chunk's records at rank 0, None elsewhere."""
        records: list[Record] = chunk.observed
        with np.errstate(over="ignore", invalid="ignore"):
            metrics = self._metrics(records)
        if metrics is None:
            return None
        table = np.zeros((1, len(records), len(COLUMNS)))
        table[0, :, :2] = [(record.iteration, record.clock) for record in records]
        table[0, :, 3] = [record.floats for record in records]
        table[0, :, 2], table[0, :, ERROR], table[0, :, CONSENSUS] = metrics
        return table

    def _metrics(self, records: list[Record]) -> tuple[Array, Array, Array] | None:
        """Return gradients per node, error (or the gradient at the mean) and consensus of records, at rank 0.

        Without monitoring the squared norm of the rows, one number per node, stands in for the error: it shows when a
        run diverges.
        """
        task = self.task
        gradients = np.stack([record.gradients for record in records]).astype(np.float64)
        if not task.monitor:
            squares = np.stack([np.square(record.x, dtype=np.float64).sum(axis=1) for record in records])
            parts = self.world.collect(np.stack([gradients, squares], axis=-1))
            if parts is None:
                return None
            numbers = np.concatenate(parts, axis=1)
            return numbers[..., 0].mean(axis=1), numbers[..., 1].sum(axis=1), np.zeros(len(records))
        counts = self.world.collect(gradients)
        parts = self.world.collect(np.stack([record.x for record in records]))
        mean = np.empty((len(records), task.block.dim), dtype=task.plan.dtype)
        rows = None if parts is None else np.concatenate(parts, axis=1).astype(np.float64)
        if rows is not None:
            mean[:] = rows.mean(axis=1)
        error = None
        if task.solution is None:
            error = self._gradient_norms(mean)
        if rows is None or counts is None:
            return None
        if task.solution is not None:
            error = ((rows - task.solution) ** 2).sum(axis=(1, 2))
        assert error is not None
        consensus = ((rows - rows.mean(axis=1, keepdims=True)) ** 2).sum(axis=(1, 2))
        return np.concatenate(counts, axis=1).mean(axis=1), error, consensus

    def _gradient_norms(self, points: Array) -> Array | None:
        """Return, at rank 0, the norms of the mean of all nodes' gradients at points that rank 0 knows."""
        self.world.tell(points)
        own = len(self.x)
        gradients = [self.oracle.gradient_at(np.repeat(point[None], own, axis=0)) for point in points]
        parts = self.world.collect(np.stack(gradients))
        return None if parts is None else np.linalg.norm(np.concatenate(parts, axis=1).mean(axis=1), axis=1)

    def share(self, taken: list[int | None] | None, chunk: Chunk, recorder: Recorder) -> list[int | None]:
        """Tell all ranks the status, the last record taken, the time of the chunk, and whether to save."""
        words = np.zeros(4)
        if taken is not None:
            kept, record = self.task.checkpoints, taken[0]
            save = kept is not None and perf_counter() - self.saved >= kept.seconds
            status = STATUSES.index(self.history.status)
            words[:] = status, -1 if record is None else record, chunk.seconds, save
        self.world.tell(words)
        self.world.settled()
        self.history.status = STATUSES[int(words[0])]
        chunk.seconds, self._save_now = float(words[2]), bool(words[3])
        return [None if words[1] < 0 else int(words[1])]

    def rows(self, chunk: Chunk, record: int, position: int) -> Array:
        """Return this rank's rows of a record."""
        return np.asarray(chunk.observed[record].x)

    def between(self, chunk: Chunk, recorder: Recorder) -> None:
        """Write a checkpoint where one is due."""
        if self._save_now or self._crossed:
            save(self, recorder.seconds)
            self.saved = perf_counter()

    def sent(self) -> dict[str, Any]:
        """Return the messages and bytes sent by all ranks, on every rank."""
        part = np.zeros((1, len(self.x), 2))
        part[0, 0] = self.gossip.messages, self.gossip.bytes
        parts = self.world.collect(part)
        total = np.zeros(2)
        if parts is not None:
            total[:] = sum(part[0, 0] for part in parts)
        self.world.tell(total)
        return {"ranks": self.world.ranks, "messages": int(total[0]), "bytes": int(total[1])}
