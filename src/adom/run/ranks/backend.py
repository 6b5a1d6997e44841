"""A run on one rank: its block of nodes, steps that talk to neighbouring ranks only, and what a checkpoint keeps of it.

From one pause to the next (`adom.run.driver`) no rank waits for anyone but those its nodes share a link with.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from ...algorithms import Method
from ...errors import InputError
from ...problems import oracles
from ...problems.base import Problem
from ...problems.oracle_spec import OracleSpec
from ...util.programs import array_digest
from .. import checkpoints
from ..local.jitted import place
from ..own_code import bare
from ..recorder import COLUMNS, Plan, Run
from .agreement import Stop
from .partition import BlockGossip, Blocks, Message
from .watch import Words

Array = np.ndarray


class Ranks(Protocol):
    """What the loop needs of the ranks: `adom.run.ranks.world.World`, or a stand-in for a single one."""

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

    def busy(self, doing: Words) -> AbstractContextManager[None]:
        """Let the others know that this rank lives while it does something that may take long."""


class OwnError(InputError):
    """Something that one rank alone refuses, such as its nodes' files: the others do not know of it."""


@contextmanager
def own_matter() -> Iterator[None]:
    """Turn what is refused inside into an error of this rank."""
    try:
        yield
    except InputError as error:
        raise OwnError(str(error)) from None
    except OSError as error:
        raise OwnError(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")) from None


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

    def busy(self, doing: Words) -> AbstractContextManager[None]:
        """Nobody asks."""
        return nullcontext()


def at_rank_0(world: Ranks, work: Callable[[], int]) -> int:
    """Let rank 0 do something; return its number on all ranks. What it refuses, all ranks refuse."""
    found, said = np.zeros(2, dtype=np.int64), b""
    if world.rank == 0:
        try:
            with own_matter():
                found[0] = work()
        except InputError as error:
            said = str(error).encode()
            found[1] = len(said)
    world.tell(found)
    if found[1]:
        words = np.frombuffer(said, dtype=np.uint8).copy() if world.rank == 0 else np.zeros(found[1], dtype=np.uint8)
        world.tell(words)
        raise InputError(bytes(words).decode(errors="replace"))
    return int(found[0])


@cache
def _programs(spec: OracleSpec, tree: Any) -> tuple[Any, Any]:
    """Return grad F and grad F* of problems of one structure, whose arrays come as a list."""
    gradient = jax.jit(lambda leaves, x: tree.unflatten(leaves).gradient_rows(x))

    # What is kept is given away and comes back in place: it may be large, and hardly changes.
    @partial(jax.jit, donate_argnums=1)
    def dual(leaves: Any, kept: Any, x: Array, gradients: Array, z: Array) -> oracles.Memory:
        return oracles.dual_gradient(spec, tree.unflatten(leaves), oracles.Memory(x, gradients, kept), z)

    return gradient, dual


class BlockOracle:
    """The problem as a step sees it on one rank; arrays are NumPy's outside."""

    def __init__(self, spec: OracleSpec, problem: Problem, memory: oracles.Memory) -> None:
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
        x, gradients, kept = self.memory
        self.memory = self._dual_gradient(self._leaves, kept, x, gradients, z)
        return np.asarray(self.memory.x)

    def compile(self, zeros: Array, dual: bool, plain: bool) -> None:
        """Compile what a step calls, so that no step's time contains it."""
        if plain:
            self.gradient_at(zeros)
        if dual:
            x, gradients, kept = self.memory
            jax.block_until_ready(self._dual_gradient(self._leaves, jax.tree.map(jnp.copy, kept), x, gradients, zeros))

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
    spec: OracleSpec
    plan: Plan
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
        self.method: Method = task.method
        if dtype != "float64":
            values = {name: np.dtype(dtype).type(value) for name, value in task.method.parameters().items()}
            self.method = bare(type(task.method), values.items())
        self.oracle = BlockOracle(task.spec, place(task.block, dtype), oracles.start(jnp.asarray(zeros), task.spec))
        self.state = self.method.init(zeros, self.oracle)
        self.x: Array = zeros
        self.iteration = 0
        self.seconds = 0.0
        self.agreed = False
        measure = "error" if task.solution is not None else "gradient norm" if task.monitor else ""
        self.run = Run(task.plan, task.method, measure)  # filled at rank 0
        dual = self.method.oracle == "dual"
        self.oracle.compile(zeros, dual, not dual or task.solution is None)

    # Steps

    def fits(self) -> bool:
        """Return whether the budget covers one more step."""
        return bool(self.gossip.clock + self.method.rounds_of_step(self.iteration) <= self.task.plan.rounds)

    def advance(self, steps: int, slots: int) -> list[Record]:
        """Make some steps, fewer if the run is over or `slots` records are full; return the records."""
        plan, records = self.task.plan, []
        for _ in range(steps):
            state = self.method.renewed(self.state, self.iteration)
            self.state, x = self.method.step(state, self.oracle, self.gossip)
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

    @cached_property
    def _data(self) -> Array:
        """The digests of the nodes' data, one row each: the same however nodes are spread over ranks."""
        blocks = (self.task.block.block(node, node + 1) for node in range(len(self.x)))
        found = ["".join(map(array_digest, jax.tree.leaves(one))).encode() for one in blocks]
        return np.stack([np.frombuffer(hashlib.sha256(text).digest(), dtype=np.uint8) for text in found])

    def _leaves(self) -> list[Any]:
        leaves: list[Any] = jax.tree.leaves((self.state, self.oracle.memory))
        return leaves

    def save(self) -> None:
        """Write this rank's part of a checkpoint; when all have, older generations are forgotten."""
        kept, world = self.task.kept, self.world
        assert kept is not None
        arrays = {"rows/x": self.x, "rows/data": self._data}
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
        with own_matter(), world.busy(f"writing a checkpoint to {kept.path}"):
            checkpoints.write(kept.path, self.iteration, world.rank, world.blocks, arrays, about)
        world.meet()  # nothing older is given up before all have written
        if world.rank == 0:
            checkpoints.forget(kept.path)

    def restore(self, generation: Path) -> None:
        """Go on from a checkpoint, whatever number of ranks has written it."""
        first, end = self.world.blocks.of(self.world.rank)
        with own_matter(), self.world.busy(f"reading {generation}"):
            arrays, about = checkpoints.read(generation, first, end)
        unsaid = _compare(about["settings"], self.task.settings, generation)
        unsaid += self._compare_data(arrays.get("rows/data"), generation)
        if unsaid and self.world.rank == 0:
            words = f"adom: {generation} is of an earlier version and does not say {', nor '.join(unsaid)}"
            print(f"{words}: give the same as then, it is not checked", file=sys.stderr, flush=True)
        if about["clock"] > self.task.plan.rounds:
            raise InputError(
                f"{generation} is at round {about['clock']}, beyond the budget of rounds={self.task.plan.rounds}; "
                "give more rounds, or another folder to start afresh"
            )
        structure: Any = jax.tree.structure((self.state, self.oracle.memory))
        leaves = []
        for number, leaf in enumerate(self._leaves()):
            array = _array(arrays, f"rows/{number}" if np.ndim(leaf) else f"one/{number}", np.asarray(leaf), generation)
            leaves.append(jnp.asarray(array) if isinstance(leaf, jax.Array) else _like(leaf, array))
        self.state, self.oracle.memory = structure.unflatten(leaves)
        self.x, self.oracle.plain = _array(arrays, "rows/x", self.x, generation), about["plain"]
        self.gossip.clock, self.gossip.floats = about["clock"], about["floats"]
        self.iteration, self.seconds = int(generation.name.rpartition("-")[2]), about["seconds"]
        if self.task.stop is not None and about["look"] is not None:
            self.task.stop.next = about["look"]
        if self.world.rank == 0:
            table = checkpoints.of_rank_0(generation).get("one/table", np.empty(0))
            if table.ndim != 2 or table.shape[1] != len(COLUMNS) or table.dtype != np.float64:
                raise OwnError(f"{generation} has no table of {len(COLUMNS)} columns; remove it to use the one before")
            self.run.tables = [table] if len(table) else []

    def _compare_data(self, before: Array | None, generation: Path) -> list[str]:
        """Refuse other data of any node, on all ranks; return in words what cannot be compared."""
        if before is None:
            return ["which data it had"]
        same = before.shape == self._data.shape
        other = (before != self._data).any(axis=1) if same else np.ones(len(self._data), dtype=bool)
        found = self.world.collect(other.astype(np.float64)[None])

        def look() -> int:
            assert found is not None
            nodes = np.flatnonzero(np.concatenate(found, axis=1)[0])
            if nodes.size:
                raise InputError(
                    f"{generation.parent} was written with other data of node {nodes[0]}; "
                    "give the same data to go on, or another folder to start afresh"
                )
            return 0

        at_rank_0(self.world, look)
        return []


def _like(leaf: Any, array: Array) -> Any:
    """Return an array, or the plain number that it stands for."""
    return array.item() if not isinstance(leaf, np.ndarray | np.generic) else array


def _array(arrays: dict[str, Array], name: str, like: Array, generation: Path) -> Array:
    """Return an array of a checkpoint, if it has the shape and the kind of the one whose place it takes."""
    found = arrays.get(name)
    fits = found is not None and found.shape == like.shape and found.dtype.kind in "fiub"
    if found is None or not fits or (found.ndim and found.dtype != like.dtype):
        kind = "nothing" if found is None else f"{found.dtype} of shape {found.shape}"
        raise OwnError(f"{generation} has {kind} as {name}, not {like.dtype} of shape {like.shape}; remove it")
    return found


SINCE = {"code": "what code of one's own computed", "records": "what was recorded"}
"""What checkpoints of earlier versions do not say, beside the digests of their data."""


def _compare(before: dict[str, Any], now: dict[str, Any], generation: Path) -> list[str]:
    """Refuse to go on with other settings; return in words what cannot be compared."""
    plain = json.loads(json.dumps(now))
    missing = [name for name in SINCE if name not in before]
    for name in sorted({*before, *plain} - {*missing}):
        if before.get(name) != plain.get(name):
            raise InputError(
                f"{generation.parent} was written with {name} = {before.get(name)!r}, now it is {plain.get(name)!r}; "
                "give the same settings to go on, or another folder to start afresh"
            )
    return [SINCE[name] for name in missing]
