"""A run on one rank: the local engine's compiled steps on its block of nodes, with messages to neighbouring ranks only.

Within a chunk a rank waits only for ranks with which its nodes share a link: in every round the compiled program calls
back to exchange rows, as is done between steps (`adom.run.ranks.rank_rounds`). A node's links are in the order of its
neighbours' numbers on any number of ranks. Between chunks all ranks send the rows of their records to rank 0, which
computes the metrics and decides what to do next.
"""

import ctypes
import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from time import perf_counter
from typing import Any, NamedTuple, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

from ... import native
from ...algorithms import Method
from ...dynamics.endings import FINISHED
from ...networks import LossyNetwork, Network
from ...problems.base import Problem
from ...util.programs import array_digest
from ..auto.pilot import Pilot
from ..driver import Chunk, slots
from ..links import Presence, lossy_links
from ..local.gossip import Graphs, SparseMatrices
from ..local.graph_layout import SLACK, GraphLayout
from ..local.jitted import Carry, Session
from ..recorder import COLUMNS, History, Plan, Recorder
from ..request import OracleSpec
from .agreement import AgreedStop
from .checkpoints import Checkpoints, save
from .peers import Ranks, over_ranks, rank_errors
from .rank_rounds import RankGossip, RankRounds, RoundPlan, RowTravel

Array = np.ndarray
VIEWS = 64
"""Most arrays of a program to remember; each of its runs may use others."""
Made = TypeVar("Made")
STATUSES = ("", *FINISHED, "interrupted")


class Records(NamedTuple):
    """One rank's part of some records: their counts, and the rows."""

    iteration: Array
    clock: Array
    gradients: Array  # (records, rows)
    floats: Array
    x: Array  # (records, rows, dim)


def _observe(carry: Carry) -> Records:
    return Records._make((*carry.counts, carry.x))


@jax.jit
def _gradient(problem: Problem, x: Any) -> Any:
    return problem.gradient_rows(x)


@dataclass
class Task:
    """Description of a run on one rank; all but the block is the same on every rank.

    Attributes
    ----------
    block : Problem
        The nodes of this rank, with the constants of all.
    solution : array, optional
        If it is not known, the gradient at the mean is recorded instead of the error.
    monitor : bool
        Whether metrics are computed; without a solution they can be left out.
    settings : dict
        Settings that a checkpoint must share for the run to resume from it.
    pilot : Pilot, optional
        Adapts the parameters during the run.
    presence : Presence, optional
        Which nodes are present when, if nodes come and go.
    """

    block: Problem
    method: Method
    oracle: OracleSpec
    plan: Plan
    solution: Array | None
    monitor: bool
    stop: AgreedStop | None
    checkpoints: Checkpoints | None
    settings: dict[str, Any] = field(default_factory=dict)
    pilot: Pilot | None = None
    presence: Presence | None = None

    @property
    def measure(self) -> str:
        """Name of the column of errors."""
        return "error" if self.solution is not None else "gradient norm" if self.monitor else ""


class RankBackend:
    """A run in progress on one rank: a session of the local engine on its rows."""

    def __init__(self, world: Ranks, task: Task, travel: RowTravel, clock: int = 0, floats: int = 0) -> None:
        self.world, self.task, self.travel = world, task, travel
        plan = task.plan
        self.agreed = False
        self._rounds_of_step = (task.pilot or task.method).rounds_of_step
        self.history = History(plan, task.method, task.measure, task.presence, task.pilot)
        """Filled at rank 0."""
        self.saved = perf_counter()
        self._save_now = self._crossed = False  # whether a checkpoint is due, by wall time or by rounds
        self._callback = Callback(travel, plan.dtype)
        self._thread = ThreadPoolExecutor(1, "adom-rounds")
        self.session = Session(
            task.block,
            travel.rounds.network,
            [task.method if task.pilot is None else task.pilot.method],
            task.oracle,
            dtype=plan.dtype,
            slots=slots(plan, np.dtype(plan.dtype).itemsize * world.partition.nodes * (task.block.dim + 1)),
            observe=_observe,
            layout=RankLayout(travel.rounds, self._callback),
        )
        self._count(clock, floats)
        if task.pilot is not None:
            self._aside(partial(task.pilot.board, self.session))
        if task.solution is None:
            self.gradient(self.x)  # compiles, so that no chunk's time contains it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(wait=False)
        self.session.layout.close()
        self._callback.close()

    @property
    def iteration(self) -> int:
        """Steps made so far."""
        return self.session.iteration

    @property
    def clock(self) -> int:
        """Rounds spent so far."""
        return int(self.session.carry.clock)

    @property
    def x(self) -> Array:
        """Rows of this rank, as the last step reported them."""
        return np.asarray(self.session.carry.x)

    @property
    def numbers(self) -> list[Any]:
        """All arrays and numbers by which the run goes on, besides its rows and counts; with those of its pilot."""
        return jax.tree.leaves(self._numbers())

    def _numbers(self) -> tuple[Any, ...]:
        carry, pilot = self.session.carry, self.task.pilot
        return (carry.state, carry.memory), () if pilot is None else pilot.arrays

    def go_on(self, counts: tuple[int, int, int], x: Array, numbers: Sequence[Array]) -> Any:
        """Go on from an iteration, a round, numbers sent, rows and `numbers`; return the arrays of the pilot."""
        leaves, structure = jax.tree.flatten(self._numbers())
        # Keep weak types, which numbers from Python have: the compiled step accepts no others.
        kept = [
            jnp.asarray(new.item() if jax.typeof(leaf).weak_type else new.astype(leaf.dtype))
            for leaf, new in zip(leaves, numbers, strict=True)
        ]
        (state, memory), found = jax.tree.unflatten(structure, kept)
        step = jnp.asarray(counts[0], jnp.int64)
        self.session.carry = self.session.carry._replace(state=state, memory=memory, x=jnp.asarray(x), iteration=step)
        self._count(*counts[1:])
        return found

    @cached_property
    def digests(self) -> Array:
        """Digests of the nodes' data, one row each, which do not depend on the partition into ranks."""
        block = self.task.block
        nodes = (block.block(node, node + 1) for node in range(block.nodes))
        texts = ["".join(map(array_digest, jax.tree.leaves(node))).encode() for node in nodes]
        return np.stack([np.frombuffer(hashlib.sha256(text).digest(), dtype=np.uint8) for text in texts])

    def gradient(self, x: Array) -> Array:
        """Return grad F(x) without counting it."""
        return np.asarray(_gradient(self.session.problem, x))

    def _count(self, clock: int, floats: int) -> None:
        """Set the counters of rounds and of numbers sent."""
        carry = self.session.carry
        self.session.carry = carry._replace(clock=jnp.asarray(clock, jnp.int64), floats=jnp.asarray(floats, jnp.int64))

    # Steps

    def fits(self, plan: Plan) -> bool:
        """Return whether the budget covers one more step."""
        return bool(self.clock + self._rounds_of_step(self.iteration) <= plan.rounds)

    def advance(self, plan: Plan, pace: int) -> Chunk:
        """Make about `pace` steps; fewer at the run's end, with full slots, or before a checkpoint or stop check."""
        due, stop = self._next_checkpoint(), self.task.stop
        pace = min(pace, self._steps_until(min(due, stop.next if stop else due), pace))
        source = self.task.pilot or self.session
        chunk = self._aside(lambda: source.advance(plan, pace))
        observed = [np.asarray(column)[: chunk.records] for column in chunk.observed]
        chunk.records = 1 + int(np.searchsorted(observed[0], observed[0][-1]))  # after the budget, records only repeat
        chunk.observed = Records(*(column[: chunk.records] for column in observed))
        self._agree_to_stop(chunk)
        self._crossed = self.clock >= due
        return chunk

    def _steps_until(self, clock: float, most: int) -> int:
        """Return after how many steps the clock reaches `clock`; `most` + 1 if later than `most` steps."""
        steps = np.arange(self.iteration, self.iteration + most)
        clocks = self.clock + np.cumsum(np.broadcast_to(self._rounds_of_step(steps), steps.shape))
        return 1 + int(np.searchsorted(clocks, clock))

    def _aside(self, work: Callable[[], Made]) -> Made:
        """Call `work` in another thread, so that the main thread can handle signals meanwhile."""

        def with_all_digits() -> Made:
            with jax.enable_x64(True):
                return work()

        try:
            return self._thread.submit(with_all_digits).result()
        except Exception:
            if self._callback.error is not None:
                raise self._callback.error from None
            if self.task.block.trouble() is not None:
                with rank_errors():
                    raise self.task.block.trouble() from None  # type: ignore[misc]  # there is one
            raise

    def _agree_to_stop(self, chunk: Chunk) -> None:
        """Check the stopping rule if it is time; the costs count in the last record."""
        stop, carry = self.task.stop, self.session.carry
        if stop is None or not stop.due(self.clock):
            return
        began, gossip = perf_counter(), RankGossip(self.travel, self.clock, int(carry.floats))
        if self.clock + stop.lasts(gossip) > self.task.plan.rounds:
            return
        with np.errstate(over="ignore", invalid="ignore"):  # a diverging run, as its records show
            self.agreed = stop.reached(gossip, self.x, self.gradient(self.x))
        gradients = carry.memory.gradients + 1
        self.session.carry = carry._replace(memory=carry.memory._replace(gradients=gradients))
        self._count(gossip.clock, gossip.floats)
        observed = Records(*map(np.array, chunk.observed))
        observed.clock[-1], observed.floats[-1], observed.gradients[-1] = gossip.clock, gossip.floats, gradients
        chunk.observed = observed
        chunk.seconds += perf_counter() - began

    def _next_checkpoint(self) -> float:
        """Return the round of the next checkpoint; infinity if rounds do not decide that."""
        kept = self.task.checkpoints
        if kept is None or kept.every_rounds is None:
            return float("inf")
        return float((self.clock // kept.every_rounds + 1) * kept.every_rounds)

    # Between chunks

    def anyone(self, asked: bool) -> bool:
        """Return, at rank 0, whether any rank was asked to stop."""
        flags = np.zeros((1, self.task.block.nodes, 1))
        flags[0, 0, 0] = asked
        parts = self.world.collect(flags)
        return parts is not None and any(part[0, 0, 0] for part in parts)

    def measure(self, chunk: Chunk, members: list[int]) -> Array | None:
        """Return the table of a chunk's records at rank 0, None elsewhere."""
        records: Records = chunk.observed
        with np.errstate(over="ignore", invalid="ignore"):
            metrics = self._metrics(records)
        if metrics is None:
            return None
        gradients, error, consensus = metrics
        counts = records._replace(gradients=gradients)[:-1]
        columns = (*counts, np.zeros(len(error)), error, consensus)  # no times yet
        assert len(columns) == len(COLUMNS)
        return np.stack([np.asarray(column, dtype=float) for column in columns], axis=-1)[None]

    def _metrics(self, records: Records) -> tuple[Array, Array, Array] | None:
        """Return gradients per node, error (or the gradient at the mean) and consensus of records, at rank 0.

        Without monitoring the squared norm of the rows, one number per node, replaces the error, to show when a run
        diverges.
        """
        task, gradients = self.task, records.gradients.astype(np.float64)
        if not task.monitor:
            squares = np.square(records.x, dtype=np.float64).sum(axis=2)
            parts = self.world.collect(np.stack([gradients, squares], axis=-1))
            if parts is None:
                return None
            numbers = np.concatenate(parts, axis=1)
            return numbers[..., 0].mean(axis=1), numbers[..., 1].sum(axis=1), np.zeros(len(squares))
        counts = self.world.collect(gradients)
        parts = self.world.collect(records.x)
        mean = np.empty((len(gradients), task.block.dim), dtype=task.plan.dtype)
        rows = None if parts is None else np.concatenate(parts, axis=1).astype(np.float64)
        if rows is not None:
            mean[:] = rows.mean(axis=1)
        error = None
        if task.solution is None:
            error = self._gradient_norms(mean)
        if rows is None or counts is None:
            return None
        gradients = np.concatenate(counts, axis=1).mean(axis=1)
        if task.presence is not None:
            return gradients, *task.presence.distances(rows, records.clock)
        if task.solution is not None:
            error = ((rows - task.solution) ** 2).sum(axis=(1, 2))
        assert error is not None
        consensus = ((rows - rows.mean(axis=1, keepdims=True)) ** 2).sum(axis=(1, 2))
        return gradients, error, consensus

    def _gradient_norms(self, points: Array) -> Array | None:
        """Return, at rank 0, the norms of the mean of all nodes' gradients at rank 0's points."""
        self.world.tell(points)
        own = self.task.block.nodes
        gradients = [self.gradient(np.repeat(point[None], own, axis=0)) for point in points]
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
        return np.array(chunk.observed.x[record])

    def between(self, chunk: Chunk, recorder: Recorder) -> None:
        """Write a checkpoint where one is due."""
        if self._save_now or self._crossed:
            save(self, recorder.seconds)
            self.saved = perf_counter()

    def sent(self) -> dict[str, Any]:
        """Return the messages and bytes sent by all ranks, on every rank."""
        messages, size = over_ranks(
            np.sum, self.world, np.array([self.travel.messages, self.travel.bytes], dtype=float)
        )
        return {"ranks": self.world.ranks, "messages": int(messages), "bytes": int(size)}


@partial(jax.tree_util.register_dataclass, data_fields=["fetch", "average"], meta_fields=["rows", "nodes"])
@dataclass(frozen=True)
class RankWire:
    """Access to other ranks from a compiled step (`adom.run.local.gossip.Wire`)."""

    fetch: Any  # the addresses of two functions of a `Callback`
    average: Any
    rows: int  # the most rows that a round needs, including own ones
    nodes: int

    def neighbours(self, clock: Any, vectors: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """Return the clock, and every vector with the rows of other ranks that this round needs."""
        if self.rows == vectors[0].shape[0] and native.usable():
            return clock, vectors  # a kernel reads whole arrays, which are rounded alike with and without ranks
        if len({v.shape for v in vectors}) == 1:
            return _exchange(self.fetch, clock, self.rows, vectors)
        ends = np.cumsum([v.shape[1] for v in vectors])[:-1]
        clock, (joined,) = _exchange(self.fetch, clock, self.rows, (jnp.concatenate(vectors, axis=1),))
        return clock, tuple(jnp.split(joined, ends, axis=1))

    def project(self, clock: Any, v: Any) -> tuple[Any, Any]:
        """Return the clock, and v less the mean of all nodes' rows."""
        clock, (v,) = _exchange(self.average, clock, v.shape[0], (v,))
        return clock, v


def _exchange(function: Any, clock: Any, rows: int, vectors: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    if native.usable():
        return native.exchange(function, clock, rows, vectors)

    # JAX would truncate 64-bit numbers passed to Python, so they are passed as pairs of 32-bit numbers.
    def bits(v: Any) -> Any:
        return jax.lax.bitcast_convert_type(v, np.int32)

    def call(function: Any, clock: Any, *halves: Any) -> list[Any]:
        own = [np.asarray(v).reshape(len(v), -1).view(dtype) for v in halves]
        tables = [np.concatenate([v, np.zeros((rows - len(v), v.shape[1]), dtype)]) for v in own]
        _called[int(np.asarray(function).view(np.int64)[0])](int(np.asarray(clock).view(np.int64)[0]), tables)
        return [np.asarray(clock), *(table.view(np.int32).reshape(rows, *half) for table in tables)]

    dtype, sent = vectors[0].dtype, (bits(function), bits(clock), *map(bits, vectors))
    half = sent[2].shape[1:]
    shapes = [jax.ShapeDtypeStruct((rows, *half), np.int32)] * len(vectors)
    after, *filled = io_callback(call, (sent[1], *shapes), *sent)
    back = jax.lax.bitcast_convert_type
    return back(after, np.int64), tuple(back(table, dtype) for table in filled)


_called: dict[int, Callable[[int, Sequence[np.ndarray]], None]] = {}


class Callback:
    """Functions that a compiled program calls by their addresses, and the error that one of them raised."""

    def __init__(self, travel: RowTravel, dtype: str) -> None:
        self.error: BaseException | None = None
        self._dtype = np.dtype(dtype)
        self._views: dict[tuple[int, int, int], np.ndarray] = {}
        works = (travel.neighbours, travel.project)
        self._functions = [native.FETCH(partial(self._call, work)) for work in works]
        self.addresses = [_address(function) for function in self._functions]
        _called.update(zip(self.addresses, works, strict=True))

    def close(self) -> None:
        """Forget the functions."""
        for address in self.addresses:
            _called.pop(address, None)

    def _call(self, work: Callable[..., None], clock: int, count: int, tables: Any, rows: int, width: int) -> int:
        try:
            work(clock, [self._view(tables[i], rows, width) for i in range(count)])
        except BaseException as error:  # an exception cannot pass through compiled code
            self.error = error
            return 1
        return 0

    def _view(self, address: int, rows: int, width: int) -> np.ndarray:
        """Return a NumPy view of an array of the program."""
        view = self._views.get((address, rows, width))
        if view is None:
            if len(self._views) >= VIEWS:
                self._views.clear()
            memory = (ctypes.c_char * (rows * width * self._dtype.itemsize)).from_address(address)
            view = np.frombuffer(memoryview(memory), self._dtype).reshape(rows, width)
            self._views[address, rows, width] = view
        return view


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


class RankLayout(GraphLayout):
    """The links of a rank's own nodes, round by round; windows begin and end in the same rounds on every rank."""

    def __init__(self, rounds: RankRounds, callback: Callback) -> None:
        super().__init__(rounds.network, rounds.directed)
        self._rounds, self._callback = rounds, callback
        self._rows = 0

    def lay_out(self, pool: Sequence[int], order: np.ndarray, first: int, room: int) -> Graphs:
        """Lay out this rank's part of the graphs in `pool`, in arrays with room for `room` graphs."""
        plans, network, nodes = [self._rounds.of(g) for g in pool], self.network, self._rounds.partition.nodes
        rows = max(plan.rows for plan in plans)
        if rows > self._rows:
            self._rows = rows if self.whole else min(nodes, int(SLACK * rows) + 1)
        links = np.zeros(room, dtype=np.int64)
        links[: len(pool)] = [plan.links for plan in plans]
        counters = np.asarray(order, dtype=np.int32), np.int64(first), links
        fetch, average = map(np.int64, self._callback.addresses)
        wire = RankWire(fetch, average, self._rows, nodes)
        width = self.widened(max(len(plan.senders) for plan in plans))
        matrices = [_stacked(plans, number, room, width) for number in range(len(plans[0].matrices))]
        if self.directed:
            R, C = matrices
            return Graphs(None, R, C, *counters, np.float64(1.0), wire)
        assert isinstance(network, Network)
        loss = None
        if isinstance(network, LossyNetwork):
            own = self._rounds.partition.of(self._rounds.rank)
            loss = lossy_links(network, pool, *own, [plan.foreign for plan in plans])
        return Graphs(matrices[0], None, None, *counters, np.float64(network.lambda_max), wire, loss)


def _stacked(plans: Sequence[RoundPlan], number: int, room: int, width: int) -> SparseMatrices:
    """Return matrix `number` of every plan, padded with links of weight zero."""
    own = len(plans[0].starts) - 1
    start, sums = np.zeros((room, own + 1), dtype=np.int32), np.zeros((room, own))
    sender = np.full((room, width), own - 1, dtype=np.int32)
    receiver = np.full((room, 0 if native.usable() else width), own - 1, dtype=np.int32)
    weight = np.zeros((room, width))
    for g, plan in enumerate(plans):
        count = len(plan.senders)
        start[g], sender[g, :count] = plan.starts, plan.senders
        weight[g, :count], sums[g] = plan.matrices[number]
        if receiver.size:
            receiver[g, :count] = np.repeat(np.arange(own), np.diff(plan.starts))
    return SparseMatrices(start, receiver, sender, weight, sums)
