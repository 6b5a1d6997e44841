"""The compiled part of the local engine: one step as JAX sees it, and a session that runs it in chunks.

A chunk makes some number of records, each after some number of steps. On a CPU both numbers are arguments of one
program, which serves a whole run. An accelerator would have to ask the host after every step whether to continue, so
there the numbers of large chunks are constants of the program. Data, graphs and hyper-parameters are arguments:
another problem of the same shape runs the same program.

Several settings of one method make one run: `jax.vmap` gives the step one more axis. The settings share data and
graphs, which are read once for all, and the clock too if every step is one round.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial
from math import gcd
from time import perf_counter
from typing import Any, NamedTuple, Self
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np

from ... import native
from ...algorithms import Method
from ...algorithms.base import bare, wrapped
from ...networks import DirectedNetwork, Network
from ...problems import oracles
from ...problems.base import Problem
from ...util.programs import cached_for, compiled, forget_many
from ..driver import Chunk
from ..links import Presence
from ..recorder import Plan
from ..request import OracleSpec
from ..user_code import user_code
from .gossip import Graphs, network_of
from .graph_layout import FOREVER, GraphLayout

Array = Any
UNROLL = 16
"""Steps in one turn of an accelerator's loop."""
BATCH_AXIS = {"cpu": 0}
"""Axis of the settings. A CPU's kernels need a setting's rows side by side, so it comes first; elsewhere products with
the data need a node's settings side by side, so it comes second."""
KEPT_BYTES = 2**27
"""Graphs up to this size stay on the device for a network's next run."""
STATIC_STEPS = 512
"""Steps of the smallest chunk that may get a program of its own on an accelerator, up to ten times as fast."""
SMALL = 2**16
"""Numbers in a run's rows up to which its program is compiled quickly: larger steps gain from optimised loops."""
PATIENCE = 2**16
"""Steps before a run gets a program for a fixed size of chunks: compiling it earlier would cost more than it saves."""


# Problems and settings as arguments of a compiled loop

_registered: set[type[Method]] = set()


def register(cls: type[Method]) -> None:
    """Make a method's hyper-parameters visible to JAX without running its checks on tracers."""
    if cls in _registered:
        return

    def unflatten(names: tuple[str, ...], values: Any) -> Method:
        return bare(cls, zip(names, values, strict=True))

    def flatten(method: Method) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        parameters = method.parameters()
        return tuple(parameters.values()), tuple(parameters)

    jax.tree_util.register_pytree_node(cls, flatten, unflatten)
    _registered.add(cls)


def place(tree: Any, dtype: str) -> Any:
    """Put a tree of arrays on the device, floats cast to `dtype`."""

    def cast(leaf: Any) -> np.ndarray:
        array = np.asarray(leaf)
        return array.astype(dtype, copy=False) if array.dtype.kind == "f" else array

    return jax.device_put(jax.tree.map(cast, tree))  # one call for all: it costs more than a small array


def stack(trees: Sequence[Any], dtype: str, batched: bool) -> Any:
    """Return all settings as one tree of arrays; if not `batched`, the only one, of scalars."""
    return place(jax.tree.map(lambda *leaves: np.asarray(leaves if batched else leaves[0], dtype=dtype), *trees), dtype)


def stack_problems(problems: Sequence[Problem]) -> tuple[Problem, tuple[int | None, ...]]:
    """Return one problem of shared or stacked arrays, and the axis of the stack for each array: None if shared."""
    trees = {id(problem): jax.tree.flatten(problem) for problem in {id(p): p for p in problems}.values()}
    columns = zip(*(trees[id(problem)][0] for problem in problems), strict=True)
    leaves, shared = [], []
    for column in columns:
        alike = all(leaf is column[0] or np.array_equal(leaf, column[0]) for leaf in column)
        leaves.append(column[0] if alike else np.stack(column))
        shared.append(None if alike else 0)
    return jax.tree.unflatten(trees[id(problems[0])][1], leaves), tuple(shared)


# Records made inside the loop, and the rows of the record at which a run ends


class Target(NamedTuple):
    """The solution, and the bounds on the error within which a run continues."""

    solution: Array
    low: Array  # at or below it, the run has converged
    high: Array  # above it, the run has diverged
    presence: Presence | None = None  # where nodes come and go


class Kept(NamedTuple):
    """The rows of the first record beyond the bounds, or of the last record if there is none."""

    rows: Array
    ended: Array

    def after(self, carry: Any, error: Array, target: Target) -> "Kept":
        """Return what is kept after one more record."""
        above = target.low < error
        if target.presence is not None:
            above = above | (carry.clock < Presence(*target.presence).settled)
        going = above & (error <= target.high)  # NaN ends a run
        return Kept(jnp.where(self.ended, self.rows, carry.x), self.ended | ~going)


def watch(observe: Callable[..., Any], carry: Any, target: Target | None, kept: Kept | None) -> tuple[Any, Any]:
    """Return the observation of a step and, if there is a target, the rows kept; numbers then are in one array."""
    if target is None or kept is None:
        return observe(carry), None
    *counts, error, consensus = observe(carry, target)
    seen = [number.astype(jnp.float64) for number in (*counts, error, consensus)]
    return jnp.stack(seen), kept.after(carry, error, target)


def make_records(
    make_steps: Callable[[Any], Any],
    watch: Callable[..., tuple[Any, Any]],
    carry: Any,
    target: Target | None,
    slots: int,
    turns: Array,
    together: int,
) -> tuple[Any, Any, Kept | None]:
    """Make `together` records `turns` times; return the last carry, the records of all slots, and what is kept."""

    def turn(number: Array, before: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        carry, kept, seen = before[0], before[2], []
        for _ in range(together):
            carry = make_steps(carry)
            one, kept = watch(carry, target, kept)
            seen.append(one)
        written = partial(jax.lax.dynamic_update_slice_in_dim, start_index=number * together, axis=0)
        return carry, jax.tree.map(lambda buffer, *values: written(buffer, jnp.stack(values)), before[1], *seen), kept

    kept = None if target is None else Kept(jnp.zeros_like(carry.x), jnp.zeros(target.low.shape, dtype=bool))
    shapes, _ = jax.eval_shape(watch, carry, target, kept)
    empty = jax.tree.map(lambda s: jnp.zeros((slots, *s.shape), s.dtype), shapes)
    final: tuple[Any, Any, Any] = jax.lax.fori_loop(0, turns, turn, (carry, empty, kept))
    return final


def distances(rows: Array, solution: Array) -> tuple[Array, Array]:
    """Return error and consensus of rows of shape (..., nodes, dim), each against a solution of shape (..., dim).

    Sums are in float64. The mean is computed from differences to the first row, so identical rows have consensus 0.
    """
    if native.usable():
        both = native.distances(rows, solution)
        return both[..., 0], both[..., 1]
    rows = rows.astype(jnp.float64)
    error, apart = rows - solution[..., None, :], rows - rows[..., :1, :]
    apart -= apart.mean(axis=-2, keepdims=True)
    return (error**2).sum(axis=(-2, -1)), (apart**2).sum(axis=(-2, -1))


# The loop


class CountingOracle:
    """The oracle that a step sees (`adom.algorithms.base.Oracle`), with a count of gradients.

    Parameters
    ----------
    problem : Problem
        The functions of the rows that a step sees.
    dual_gradient : callable
        Takes the oracle's memory and z; returns the memory with grad F*(z) in it.
    memory : Memory
    """

    def __init__(self, problem: Any, dual_gradient: Callable[..., oracles.Memory], memory: oracles.Memory) -> None:
        self._problem, self._dual_gradient, self.memory = problem, dual_gradient, memory
        self.calls: Any = 0  # gradients that the memory does not count: of every node, or of each

    def gradient(self, x: Array, where: Array | None = None) -> Array:
        """Return grad F(x), one gradient per node, of all nodes or of those in `where`."""
        return self._counted(1, self._problem.gradient_rows, x, where)

    def hessian(self, x: Array, where: Array | None = None) -> Array:
        """Return the Hessians, which count as many gradients as they have columns."""
        return self._counted(x.shape[-1], self._problem.hessian_rows, x, where)

    def each(self, function: Callable[..., Array], *arrays: Array) -> Array:
        """Return the function of each row of the arrays; LAPACK on a batch of large matrices can block all threads."""
        return jax.lax.map(lambda row: function(*row), arrays)

    def model_minimum(self, H: Array, b: Array, start: Array) -> Array:
        """Return the x that minimise x'Hx / 2 - b'x plus the problem's penalty, which takes no gradients."""
        return self._problem.model_minimum_rows(H, b, start)

    def _counted(self, price: int, compute: Callable[[Array], Array], x: Array, where: Array | None) -> Array:
        if where is None:
            self.calls = self.calls + price
            return compute(x)
        self.calls = self.calls + price * where.astype(self.memory.gradients.dtype)
        rows = jax.eval_shape(compute, x)
        return jax.lax.cond(where.any(), compute, lambda _: jnp.zeros(rows.shape, rows.dtype), x)

    def dual_gradient(self, z: Array) -> Array:
        """Return grad F*(z), computed by the chosen oracle."""
        self.memory = self._dual_gradient(self.memory, z)
        return self.memory.x

    def spent(self) -> oracles.Memory:
        """Return the memory with all gradients that each node has spent so far."""
        if isinstance(self.calls, int) and not self.calls:
            return self.memory
        return self.memory._replace(gradients=self.memory.gradients + self.calls)


class Carry(NamedTuple):
    """State of a run: the method's own and the counters."""

    state: Any
    memory: oracles.Memory
    x: Array  # the iterate that the last step reported
    iteration: Array
    clock: Array  # communication rounds spent
    floats: Array  # numbers sent over links

    @property
    def counts(self) -> tuple[Array, ...]:
        """What a record has of the counters, in the order of its columns; some for every node."""
        return self.iteration, self.clock, self.memory.gradients, self.floats


_prepared: set[Any] = set()
_laid_out: WeakKeyDictionary[Network | DirectedNetwork, dict[Any, Graphs]] = WeakKeyDictionary()


class Kind(NamedTuple):
    """Key of a compiled program, besides the shapes of its arguments."""

    spec: OracleSpec
    nodes: int  # of the whole network, of which this process may have only some
    slots: int
    observe: Callable[[Carry], Any]
    batched: bool = False
    axis: int = 0  # of a batch, in arrays with one row per node
    shared: tuple[int | None, ...] = ()  # for each array of the problem: None where all settings share it
    code: str = ""  # digest of a user's own method


def _oracle(problem: Problem, spec: OracleSpec, memory: oracles.Memory) -> CountingOracle:
    return CountingOracle(problem, partial(oracles.dual_gradient, spec, problem), memory)


def _begin(method: Method, problem: Problem, zeros: Array, spec: OracleSpec, nodes: int) -> Carry:
    oracle = _oracle(problem, spec, oracles.start(problem, zeros, spec, nodes))
    state = method.init(zeros, oracle)
    zero = jnp.zeros((), dtype=jnp.int64)
    return Carry(state, oracle.spent(), zeros, zero, zero, zero)


def _step(carry: Carry, method: Method, problem: Problem, graphs: Graphs, spec: OracleSpec) -> Carry:
    oracle = _oracle(problem, spec, carry.memory)
    gossip = network_of(graphs, carry.clock, carry.floats)
    with jax.default_matmul_precision("highest"):  # or a GPU would round float32 to 10 bits before it multiplies
        state, x = method.step(method.renewed(carry.state, carry.iteration), oracle, gossip)
    memory = oracle.spent()
    if graphs.loss is not None and graphs.loss.present is not None:  # nodes that are away compute nothing
        present = graphs.loss.present[graphs.loss.epoch(carry.clock)]
        memory = memory._replace(gradients=jnp.where(present, memory.gradients, carry.memory.gradients))
    return Carry(state, memory, x, carry.iteration + 1, gossip.clock, gossip.floats)


def _carry_axes(carry: Carry, method: Method, axis: int) -> Carry:
    """Return the axis of the settings in each array of a carry; None for counters that all settings share."""
    axes: Carry = jax.tree.map(lambda leaf: 0 if leaf.ndim == 1 else axis, carry)
    if method.rounds_per_step == 1:
        axes = axes._replace(iteration=None, clock=None, floats=None)
    return axes


def _along(axes: Any, change: Callable[..., Array], *trees: Any) -> Any:
    """Apply `change` to each array of the trees and its axis, which may be None."""
    structure: Any = jax.tree.structure(trees[0])
    columns = zip(structure.flatten_up_to(axes), *map(jax.tree.leaves, trees), strict=True)
    return structure.unflatten([change(*column) for column in columns])


def _problem_axes(problem: Problem, kind: Kind) -> Any:
    return jax.tree.unflatten(jax.tree.structure(problem), kind.shared)


def _start(method: Method, problem: Problem, zeros: Array, *, kind: Kind) -> Carry:
    begin = partial(_begin, zeros=zeros, spec=kind.spec, nodes=kind.nodes)
    if not kind.batched:
        return begin(method, problem)
    in_axes = (0, _problem_axes(problem, kind))
    carry: Carry = jax.vmap(begin, in_axes=in_axes)(method, problem)  # the axis comes first
    axes = _carry_axes(carry, method, kind.axis)
    placed: Carry = _along(axes, lambda axis, leaf: leaf[0] if axis is None else jnp.moveaxis(leaf, 0, axis), carry)
    return placed


def _advance(
    carry: Carry,
    method: Method,
    problem: Problem,
    graphs: Graphs,
    budget: Array,
    target: Target | None,
    records: Any,
    steps: Any,
    *,
    kind: Kind,
) -> tuple[Carry, Any, Kept | None]:
    """Make `records` records of `steps` steps each; return the last carry, what was observed, and the rows kept.

    No step is begun that would spend more than `budget` rounds in all. For a method whose steps are single
    rounds, the host ensures that.
    """
    step = partial(_step, spec=kind.spec)
    observe, rounds_of_step = partial(watch, kind.observe), type(method).rounds_of_step
    axes: Any = None
    if kind.batched:
        axes = _carry_axes(carry, method, kind.axis)
        step = jax.vmap(step, in_axes=(axes, 0, _problem_axes(problem, kind), None), out_axes=axes)
        kept_axes = None if target is None else Kept(kind.axis, 0)
        observe = jax.vmap(observe, in_axes=(axes, 0, kept_axes), out_axes=(0, kept_axes))
        rounds_of_step = jax.vmap(rounds_of_step)
    static = isinstance(steps, int)

    def one_round_steps(carry: Carry) -> Carry:
        unroll = {"unroll": min(UNROLL, max(1, steps))} if static else {}
        last: Carry = jax.lax.fori_loop(0, steps, lambda _, c: step(c, method, problem, graphs), carry, **unroll)
        return last

    def steps_within_budget(carry: Carry) -> Carry:
        def going(counted: tuple[Array, Carry]) -> Array:
            count, carry = counted
            return (count < steps) & (carry.clock + rounds_of_step(method, carry.iteration) <= budget)

        def body(counted: tuple[Array, Carry]) -> tuple[Array, Carry]:
            count, carry = counted
            further = step(carry, method, problem, graphs)
            if kind.batched:
                further = _choose(going(counted), further, carry, axes)
            return count + 1, further

        return jax.lax.while_loop(lambda c: going(c).any(), body, (jnp.zeros((), jnp.int64), carry))[1]

    make_steps = one_round_steps if method.rounds_per_step == 1 else steps_within_budget

    # An accelerator's loop makes several records a turn, and writes them together.
    together = gcd(records, max(1, UNROLL // max(1, steps))) if static else 1
    return make_records(make_steps, observe, carry, target, kind.slots, records // together, together)


def _choose(going: Array, further: Carry, carry: Carry, axes: Carry) -> Carry:
    """Take the step only for those settings that are still going."""

    def pick(axis: int, new: Array, old: Array) -> Array:
        shape = [1] * new.ndim
        shape[axis] = -1
        return jnp.where(going.reshape(shape), new, old)

    chosen: Carry = _along(axes, pick, further, carry)
    return chosen


@cache
def _programs(quick: bool) -> tuple[Any, Any]:
    """Return the programs that start a run and advance it by chunks of any size."""
    start = compiled(_start, quick=quick, static_argnames="kind")
    return start, compiled(_advance, quick=quick, static_argnames="kind", donate_argnames="carry")


@cache
def _advance_fixed() -> Any:
    """Return the program for chunks of a fixed size; on a GPU, independent kernels run concurrently."""
    options = {"xla_gpu_command_buffer_scheduling_mode": "CONCURRENT"} if jax.default_backend() == "gpu" else None
    sizes = ("kind", "records", "steps")
    return jax.jit(_advance, static_argnames=sizes, donate_argnames="carry", compiler_options=options)


class Session:
    """A run on the device: a problem, a network and one or several settings of a method.

    Use it inside ``jax.enable_x64(True)``. With several settings, all observed arrays have one more axis, the second.
    Each setting may have its own problem, if the problems differ in little more than constants.
    """

    def __init__(
        self,
        problems: Problem | Sequence[Problem],
        network: Network | DirectedNetwork,
        methods: Sequence[Method],
        spec: OracleSpec,
        *,
        dtype: str = "float64",
        slots: int = 1,
        observe: Callable[..., Any],
        target: Target | None = None,
        layout: GraphLayout | None = None,
    ) -> None:
        list(map(register, wrapped(methods[0])))
        each = [problems] * len(methods) if isinstance(problems, Problem) else list(problems)
        self.batched, self.on_cpu = len(methods) > 1, jax.default_backend() == "cpu"
        stacked, shared = stack_problems(each)
        self.problem, self.method = place(stacked, dtype), stack(methods, dtype, self.batched)
        axis = BATCH_AXIS.get(jax.default_backend(), 1)
        code = user_code(methods[0], each[0].nodes, each[0].dim, dtype).digest
        self.kind = Kind(spec, network.nodes, slots, observe, self.batched, axis, shared, code)
        zeros = np.zeros((each[0].nodes, each[0].dim), dtype=dtype)
        quick = not self.batched and network.nodes * each[0].dim <= SMALL  # the same on any number of ranks
        start, self._advance = _programs(quick)
        forget_many(start, self._advance)
        with self._reading():
            self.carry: Carry = start(self.method, self.problem, zeros, kind=self.kind)
        self.dtype, self.target = dtype, target
        self.kept: Kept | None = None
        self.layout = layout or GraphLayout(network, methods[0].directed)
        self.graphs, self.end = self._window(0)
        self.chunk(0, 0, 0)  # compiles now, so that no chunk's time includes it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.layout.close()

    def _reading(self) -> AbstractContextManager[Any]:
        """Keep JAX's caches apart for different versions of a user's code."""
        return cached_for(self.kind.code or None)

    def _window(self, first: int, rounds: int = 0) -> tuple[Graphs, int]:
        layout, known = self.layout, _laid_out.setdefault(self.layout.network, {})
        whole = layout.whole and type(layout) is GraphLayout  # a rank's layout has only some of the rows
        key = (layout.directed, self.dtype, native.usable(), jax.default_backend())
        if whole and key in known:
            return known[key], FOREVER
        graphs, end = layout.window(first, rounds)
        placed: Graphs = place(graphs, self.dtype)
        if whole and sum(leaf.nbytes for leaf in jax.tree.leaves(placed)) <= KEPT_BYTES:
            known[key] = placed
        return placed, end

    def reach(self) -> int:
        """Return how many steps the present graphs cover; if they do not cover one, fetch the next graphs.

        If steps differ in length, the number is smaller than might fit, so that all settings stay close together.
        """
        if self.layout.whole:
            return self.end
        clocks = np.atleast_1d(np.asarray(self.carry.clock))
        takes = int(np.max(jax.vmap(type(self.method).rounds_of_step)(*self._each_step()))) if self._varies else 1
        if clocks.max() + takes > self.end:
            self.graphs, self.end = self._window(int(clocks.min()), int(clocks.max() - clocks.min()) + takes)
        left = self.end - int(clocks.max())
        return max(1, left // (2 * takes)) if self._varies else left

    @property
    def _varies(self) -> bool:
        return bool(self.method.rounds_per_step != 1)

    def _each_step(self) -> tuple[Any, Any]:
        """Return settings and iterations, both with an axis."""
        if self.batched:
            return self.method, self.carry.iteration
        return jax.tree.map(lambda leaf: leaf[None], self.method), self.carry.iteration[None]

    @property
    def iteration(self) -> int:
        """Steps made so far; the most of any setting."""
        return int(np.max(np.asarray(self.carry.iteration)))

    def fits(self, plan: Plan) -> bool:
        """Return whether the budget may cover one more step; each takes one round at least."""
        return self.iteration < plan.rounds

    def advance(self, plan: Plan, pace: int) -> Chunk:
        """Make about `pace` steps and observe them at the plan's records."""
        begin = self.iteration
        records, steps = plan.next_chunk(begin, min(pace, self.reach()), self.kind.slots)
        records, steps = self.fit(records, steps)
        began = perf_counter()
        observed = self.chunk(records, steps, plan.rounds)
        seconds = perf_counter() - began
        return Chunk(begin, self.iteration, seconds, records, observed)

    def fit(self, records: int, steps: int) -> tuple[int, int]:
        """Round a chunk to a size for which an accelerator has a program of its own, or gets one in a long run."""
        if self.on_cpu:
            return records, steps
        rounded = records if records < 8 else 8 ** int(np.log2(records) // 3)
        if self.iteration >= PATIENCE:
            self.prepare(rounded, steps)
        return (rounded, steps) if self._program(rounded, steps) in _prepared else (records, steps)

    def prepare(self, records: int, steps: int) -> None:
        """Compile a program for chunks of this size alone, where that pays; it is used from then on."""
        program = self._program(records, steps)
        if self.on_cpu or self._varies or records * steps < STATIC_STEPS or program in _prepared:
            return
        with self._reading():
            _advance_fixed().lower(*self._arguments(0), records=records, steps=steps, kind=self.kind).compile()
        _prepared.add(program)

    def _program(self, records: int, steps: int) -> Any:
        """Return the key of the program for chunks of this size alone."""
        leaves, structure = jax.tree.flatten(self._arguments(0))
        return structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves), records, steps, self.kind

    def chunk(self, records: int, steps: int, budget: int) -> Any:
        """Make `records` records of `steps` steps, within `reach`; return what was observed, padded to all slots."""
        assert self.layout.whole or self._varies or records * steps <= self.end - int(self.carry.clock)
        arguments = self._arguments(min(budget, self.end))
        with self._reading():
            if not self.on_cpu and self._program(records, steps) in _prepared:
                outcome = _advance_fixed()(*arguments, records=records, steps=steps, kind=self.kind)
            else:
                outcome = self._advance(*arguments, np.int64(records), np.int64(steps), kind=self.kind)
        self.carry, observed, self.kept = outcome
        return jax.block_until_ready(observed)

    def bound(self, low: Array, high: Array) -> None:
        """Set the bounds of the error beyond which the rows are kept."""
        assert self.target is not None
        self.target = self.target._replace(low=np.asarray(low), high=np.asarray(high))

    def _arguments(self, budget: int) -> tuple[Any, ...]:
        return self.carry, self.method, self.problem, self.graphs, np.int64(budget), self.target

    def keep(self, members: Sequence[int]) -> None:
        """Continue with some of the settings only, in the same order."""

        def pick(axis: int | None, leaf: Array) -> Array:
            return leaf if axis is None else jnp.take(leaf, np.asarray(members), axis=axis)

        self.carry = _along(_carry_axes(self.carry, self.method, self.kind.axis), pick, self.carry)
        self.method, self.target = jax.tree.map(partial(pick, 0), (self.method, self.target))
        self.problem = _along(_problem_axes(self.problem, self.kind), pick, self.problem)
