"""The compiled part of the local engine: what one step is to JAX, and a session that runs it in chunks.

The loop is compiled once per kind of run. A chunk makes some number of records, each after some number of steps;
both numbers are arguments, not constants, so one program serves a whole run. Data, graphs and hyper-parameters
are arguments too: another problem of the same shape runs the same program. Several settings of one method are
one run with a leading axis: the same chunk under `jax.vmap`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..algorithms import Method
from ..networks import DirectedNetwork, Network
from ..problems import oracles
from ..problems.base import Problem
from .gossip import Graphs, LocalGossip, lay_out
from .pair import constants
from .rehearsal import rehearse

Array = Any


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
    method: Method,
    accuracy: oracles.Accuracy | None,
    problem: Problem,
    zeros: Array,
    *,
    spec: oracles.OracleSpec,
) -> Carry:
    oracle = LocalOracle(spec, problem, oracles.start(zeros, accuracy))
    state = method.init(zeros, oracle)
    zero = jnp.zeros((), dtype=jnp.int64)
    return Carry(state, oracle.memory, zeros, zero, zero, zero)


def _advance(
    carry: Carry,
    method: Method,
    problem: Problem,
    graphs: Graphs,
    records: Array,
    steps: Array,
    budget: Array,
    *,
    spec: oracles.OracleSpec,
    slots: int,
    observe: Callable[[Carry], Any],
) -> tuple[Carry, Any]:
    """Make `records` records of `steps` steps each; return the last carry and what was observed.

    No step is begun that would spend more than `budget` rounds in all. For a method whose every step is one round
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
            if one_round:
                return within
            carry = counted[1]
            return within & (carry.clock + method.rounds_of_step(carry.iteration) <= budget)

        _, carry = jax.lax.while_loop(more, lambda c: (c[0] + 1, step(c[1])), (jnp.zeros_like(steps), carry))
        return carry, jax.tree.map(lambda buffer, value: buffer.at[number].set(value), seen, observe(carry))

    empty = jax.tree.map(lambda s: jnp.zeros((slots, *s.shape), s.dtype), jax.eval_shape(observe, carry))
    final: tuple[Carry, Any] = jax.lax.fori_loop(0, records, record, (carry, empty))
    return final


_STATIC = ("spec", "slots", "observe")
_begin_single = jax.jit(_begin, static_argnames="spec")
_advance_single = jax.jit(_advance, static_argnames=_STATIC)


@partial(jax.jit, static_argnames="spec")
def _begin_batch(method: Method, accuracy: Any, *shared: Any, **static: Any) -> Carry:
    return jax.vmap(lambda m, a: _begin(m, a, *shared, **static))(method, accuracy)


@partial(jax.jit, static_argnames=_STATIC)
def _advance_batch(carry: Carry, method: Method, *shared: Any, **static: Any) -> tuple[Carry, Any]:
    return jax.vmap(lambda c, m: _advance(c, m, *shared, **static))(carry, method)


class Session:
    """A problem, a network and one or several settings of a method, on the device and under way.

    To be used inside ``jax.enable_x64(True)``. With several settings every array observed has a leading axis.
    """

    def __init__(
        self,
        problem: Problem,
        network: Network | DirectedNetwork,
        methods: Sequence[Method],
        spec: oracles.OracleSpec,
        *,
        dtype: str = "float64",
        slots: int = 1,
        observe: Callable[[Carry], Any],
    ) -> None:
        _register(type(methods[0]))
        self.batched = len(methods) > 1
        self.problem = _place(problem, dtype)
        self.graphs = _place(lay_out(network, type(methods[0]).directed), dtype)
        self.method = _stack(methods, dtype, self.batched)
        accuracy = None
        if spec.kind == "auto":
            assert isinstance(network, Network)  # dual methods need one
            rehearsed = [rehearse(one, constants(problem, network), network) for one in methods]
            accuracy = _stack(rehearsed, None, self.batched)
        zeros = jnp.zeros((problem.nodes, problem.dim), dtype=dtype)
        begin = _begin_batch if self.batched else _begin_single
        self.carry: Carry = begin(self.method, accuracy, self.problem, zeros, spec=spec)
        self._advance = partial(
            _advance_batch if self.batched else _advance_single, spec=spec, slots=slots, observe=observe
        )
        self.chunk(0, 0, 0)  # compiles, so that no later chunk's time contains it

    def chunk(self, records: int, steps: int, budget: int) -> Any:
        """Make `records` records of `steps` steps each; return what was observed, filled up to all slots."""
        counts = (np.int64(records), np.int64(steps), np.int64(budget))
        self.carry, seen = jax.block_until_ready(
            self._advance(self.carry, self.method, self.problem, self.graphs, *counts)
        )
        return seen


def _place(tree: Any, dtype: str) -> Any:
    """Put a tree of arrays on the device, floats cast to `dtype`."""

    def place(leaf: Any) -> Array:
        array = np.asarray(leaf)
        return jnp.asarray(array.astype(dtype) if array.dtype.kind == "f" else array)

    return jax.tree.map(place, tree)


def _stack(trees: Sequence[Any], dtype: str | None, batched: bool) -> Any:
    return jax.tree.map(lambda *leaves: jnp.asarray(leaves if batched else leaves[0], dtype=dtype), *trees)
