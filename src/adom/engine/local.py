"""The local engine: all nodes in one process, one compiled loop, on whatever device JAX has.

The loop is compiled once and run in chunks. A chunk makes some number of records, each after some number of
steps; both numbers are arguments, not constants, so one program serves the whole run and the host can pick
chunks that last a fraction of a second. Between chunks it computes the metrics (outside the timed part),
reports progress, looks at the tolerance, dates divergence and obeys Ctrl-C.

Several settings of one method are one run with a leading axis: the same chunk under `jax.vmap`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..algorithms import Constants, Method
from ..networks import Network
from ..problems import oracles
from ..problems.base import Problem
from .gossip import DenseGraphs, LocalGossip, SparseGraphs, lay_out
from .progress import Interrupt, Progress
from .rehearsal import rehearse

Array = Any
CHUNK_SECONDS = 0.2
SNAPSHOT_BYTES = 2**25
COLUMNS = ("iteration", "round", "gradients", "floats_sent", "seconds", "error", "consensus")
DIVERGED = 1e12  # growth of the squared distance that no transient of a converging method reaches


class Carry(NamedTuple):
    """What a run carries from step to step: the method's state and the engine's own books."""

    state: Any
    memory: oracles.Memory
    x: Array  # the iterate that the last step reported
    iteration: Array
    clock: Array  # communication rounds spent
    floats: Array  # numbers sent over links


class LocalOracle:
    """The problem as a step sees it; after the step the engine reads `memory` off again."""

    def __init__(self, spec: oracles.OracleSpec, problem: Problem, memory: oracles.Memory) -> None:
        self.spec, self.problem, self.memory = spec, problem, memory

    def gradient(self, x: Array) -> Array:
        """Return grad F(x), one gradient a node."""
        self.memory = self.memory._replace(gradients=self.memory.gradients + 1)
        return self.problem.gradient_rows(x)

    def dual_gradient(self, z: Array) -> Array:
        """Return grad F*(z) in the way that was asked for."""
        self.memory = oracles.dual_gradient(self.spec, self.problem, self.memory, z)
        return self.memory.x


def _register(cls: type[Method]) -> None:
    """Make a method's hyper-parameters visible to JAX without running its checks on tracers."""
    if cls in _registered:
        return

    def unflatten(names: tuple[str, ...], values: Any) -> Method:
        method = object.__new__(cls)
        for name, value in zip(names, values, strict=True):
            object.__setattr__(method, name, value)
        return method

    def flatten(method: Method) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        parameters = method.parameters()
        return tuple(parameters.values()), tuple(parameters)

    jax.tree_util.register_pytree_node(cls, flatten, unflatten)
    _registered.add(cls)


_registered: set[type[Method]] = set()


def _begin(
    method: Method, accuracy: oracles.Accuracy | None, problem: Problem, zeros: Array, *, spec: oracles.OracleSpec
) -> Carry:
    oracle = LocalOracle(spec, problem, oracles.start(zeros, accuracy))
    state = method.init(zeros, oracle)
    zero = jnp.zeros((), dtype=jnp.int64)
    return Carry(state, oracle.memory, zeros, zero, zero, zero)


def _advance(
    carry: Carry,
    method: Method,
    problem: Problem,
    graphs: DenseGraphs | SparseGraphs,
    records: Array,
    steps: Array,
    budget: Array,
    *,
    spec: oracles.OracleSpec,
    slots: int,
    observe: Callable[[Carry], Any],
) -> tuple[Carry, Any]:
    """Make `records` records of `steps` steps each; return the last carry and what was observed.

    A step begins only while fewer than `budget` rounds are spent. For a method whose every step is one round
    the host sees to that, and the loop's condition stays the same for all members of a batch.
    """
    one_round = method.rounds_per_step == 1

    def step(carry: Carry) -> Carry:
        oracle = LocalOracle(spec, problem, carry.memory)
        gossip = LocalGossip(graphs, carry.clock, carry.floats)
        state, x = method.step(carry.state, oracle, gossip)
        return Carry(state, oracle.memory, x, carry.iteration + 1, gossip.clock, gossip.floats)

    def record(number: Array, pair: tuple[Carry, Any]) -> tuple[Carry, Any]:
        carry, seen = pair

        def more(counted: tuple[Array, Carry]) -> Array:
            within = counted[0] < steps
            return within if one_round else within & (counted[1].clock < budget)

        _, carry = jax.lax.while_loop(more, lambda c: (c[0] + 1, step(c[1])), (jnp.zeros_like(steps), carry))
        return carry, jax.tree.map(lambda buffer, value: buffer.at[number].set(value), seen, observe(carry))

    empty = jax.tree.map(lambda s: jnp.zeros((slots, *s.shape), s.dtype), jax.eval_shape(observe, carry))
    return jax.lax.fori_loop(0, records, record, (carry, empty))


_STATIC = ("spec", "slots", "observe")
_single = jax.jit(_advance, static_argnames=_STATIC)


@partial(jax.jit, static_argnames=_STATIC)
def _batch(carry: Carry, method: Method, *shared: Any, **static: Any) -> tuple[Carry, Any]:
    return jax.vmap(lambda c, m: _advance(c, m, *shared, **static))(carry, method)


def observe_iterate(carry: Carry) -> tuple[Array, ...]:
    """Observe the counters and the reported rows: what a result is made of."""
    return carry.iteration, carry.clock, carry.memory.gradients.mean(), carry.floats, carry.x


@jax.jit
def _distances(rows: Array, solution: Array) -> tuple[Array, Array]:
    """Return error and consensus of rows of shape (..., nodes, dim)."""
    mean = rows.mean(axis=-2, keepdims=True)
    return ((rows - solution) ** 2).sum(axis=(-2, -1)), ((rows - mean) ** 2).sum(axis=(-2, -1))


@dataclass(frozen=True)
class Plan:
    """How long to run, what to record and when to stop."""

    rounds: int
    record_every: int = 1
    tol: float | None = None
    dtype: str = "float64"
    start_error: float = 0.0  # of the rows at 0, against which growth is judged


@dataclass
class Run:
    """What becomes of one member of a run."""

    columns: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in COLUMNS})
    x: np.ndarray | None = None
    status: str = ""
    message: str = ""

    @property
    def error(self) -> float:
        """The error of the last record."""
        return self.columns["error"][-1] if self.columns["error"] else np.inf

    def note(self, values: np.ndarray, rows: np.ndarray, plan: Plan, final: bool) -> None:
        """Take one record into the table, unless it falls between two that were asked for, and judge it."""
        iteration, error = int(values[0]), float(values[5])
        seen = self.columns["iteration"][-1] if self.columns["iteration"] else 0
        if self.status or iteration <= seen or not (final or iteration % plan.record_every == 0):
            self.status = self.status or ("max_rounds" if values[1] >= plan.rounds else "")
            return
        for name, value in zip(COLUMNS, values, strict=True):
            self.columns[name].append(float(value))
        self.x = rows
        if not error <= DIVERGED * max(plan.start_error, self.columns["error"][0], 1e-300):
            self.status = "diverged"
            self.message = f"the error reached {error:.3g} by round {int(values[1])}"
        elif plan.tol is not None and error <= plan.tol:
            self.status = "converged"
        elif values[1] >= plan.rounds:
            self.status = "max_rounds"


def run(
    problem: Problem,
    network: Network,
    methods: Sequence[Method],
    spec: oracles.OracleSpec,
    plan: Plan,
    progress: Progress,
) -> list[Run]:
    """Run one or several settings of one method on one problem and network."""
    with jax.enable_x64(True), progress, Interrupt() as interrupt:
        return _run(problem, network, methods, spec, plan, progress, interrupt)


def prepare(problem: Problem, network: Network, dtype: str) -> tuple[Problem, DenseGraphs | SparseGraphs]:
    """Put a problem and a network on the device, floats cast to `dtype`."""

    def place(leaf: Any) -> Array:
        array = np.asarray(leaf)
        return jnp.asarray(array.astype(dtype) if array.dtype.kind == "f" else array)

    return jax.tree.map(place, problem), jax.tree.map(place, lay_out(network))


def _run(
    problem: Problem,
    network: Network,
    methods: Sequence[Method],
    spec: oracles.OracleSpec,
    plan: Plan,
    progress: Progress,
    interrupt: Interrupt,
) -> list[Run]:
    _register(type(methods[0]))
    solution = jnp.asarray(problem.solution(), dtype=jnp.float64)
    on_device, graphs = prepare(problem, network, plan.dtype)
    zeros = jnp.zeros((problem.nodes, problem.dim), dtype=plan.dtype)
    batched = len(methods) > 1
    stack = (lambda *v: jnp.stack([jnp.asarray(u, plan.dtype) for u in v])) if batched else (
        lambda v: jnp.asarray(v, plan.dtype)
    )
    method = jax.tree.map(stack, *methods)
    accuracy = None
    if spec.kind == "auto":
        constants = Constants(problem.mu, problem.L, network.lambda_min_plus, network.lambda_max, problem.nodes)
        rehearsed = [rehearse(one, constants, network) for one in methods]
        accuracy = jax.tree.map(lambda *v: jnp.asarray(v if batched else v[0]), *rehearsed)
    begin = partial(_begin, spec=spec)
    if batched:
        begin = jax.vmap(begin, in_axes=(0, 0, None, None))
    carry = jax.jit(begin)(method, accuracy, on_device, zeros)

    slots = max(1, min(512, -(-plan.rounds // plan.record_every), SNAPSHOT_BYTES // (zeros.nbytes * len(methods))))
    advance = partial(_batch if batched else _single, spec=spec, slots=slots, observe=observe_iterate)

    def chunk(carry: Carry, records: int, steps: int) -> tuple[Carry, Any]:
        counts = (np.int64(records), np.int64(steps), np.int64(plan.rounds))
        return jax.block_until_ready(advance(carry, method, on_device, graphs, *counts))

    runs = [Run() for _ in methods]
    chunk(carry, 0, 0)  # compiles, so that no record's time contains it
    seconds, iteration, pace = 0.0, 0, 8
    while True:
        records, steps = _next_chunk(plan, iteration, pace, slots)
        began = perf_counter()
        carry, seen = chunk(carry, records, steps)
        elapsed = perf_counter() - began

        seen = (*seen, *_distances(seen[-1], solution))
        counted, clocks, gradients, floats, rows, error, consensus = (
            np.asarray(a)[:, :records] if batched else np.asarray(a)[None, :records] for a in seen
        )
        last = int(counted[:, -1].max())
        times = seconds + elapsed * (counted - iteration) / max(1, last - iteration)
        table = np.stack([counted, clocks, gradients, floats, times, error, consensus], axis=-1)
        asked = interrupt.asked
        for member, one in enumerate(runs):
            for number in range(records):
                final = clocks[member, number] >= plan.rounds or (asked and number == records - 1)
                one.note(table[member, number], rows[member, number], plan, bool(final))
        progress.update(int(clocks[:, -1].max()), max(one.error for one in runs))
        if asked or all(one.status for one in runs):
            break
        seconds, iteration = seconds + elapsed, last
        pace = int(np.clip(CHUNK_SECONDS / max(elapsed, 1e-9) * records * steps, 1, 8 * pace))
    for one in runs:
        one.status = one.status or "interrupted"
    return runs


def _next_chunk(plan: Plan, iteration: int, pace: int, slots: int) -> tuple[int, int]:
    """Return how many records to make and how many steps each, about `pace` steps in all.

    Steps are counted as if each took one round; a method that takes more stops at its budget by itself.
    """
    remaining = plan.rounds - iteration
    to_boundary = plan.record_every - iteration % plan.record_every
    if pace < plan.record_every or to_boundary != plan.record_every or remaining < plan.record_every:
        return 1, min(pace, to_boundary, remaining)
    return min(slots, pace // plan.record_every, remaining // plan.record_every), plan.record_every
