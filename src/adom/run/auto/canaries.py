"""Canaries: scalar problems that run beside the real one, each with its own assumed chi.

A step is arithmetic on rows, so the rows of a run can carry extra columns. A canary is such a column: the same method,
with the parameters of another chi, on h_i x^2 / 2 at node i, whose solution is 0. On quadratics a method is linear, so
a canary shrinks as fast as the run would converge with that chi, on the graphs met so far. Every node sees its own
entries. Hyper-parameters become arrays of one value per column; the algorithm files need no change.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp

from ...algorithms import Gossip, Method, Oracle
from ...dynamics.rates import Scalars
from ...dynamics.wrapping import Wrapped, bare, plain
from ...util.compiling import compiled
from ..links.ledgers import replanted
from ..local.gossip import Graphs
from ..local.lossy_gossip import network_of

Array = Any


class _WideOracle:
    """The run's oracle for the first columns, and the canaries' for the others."""

    def __init__(self, oracle: Oracle, curvature: Array) -> None:
        self._oracle, self._scalars, self._count = oracle, Scalars(curvature), curvature.shape[-1]

    def gradient(self, x: Array) -> Array:
        run, others = x[:, : -self._count], x[:, -self._count :]
        return jnp.concatenate([self._oracle.gradient(run), self._scalars.gradient(others)], axis=1)

    def dual_gradient(self, z: Array) -> Array:
        run, others = z[:, : -self._count], z[:, -self._count :]
        return jnp.concatenate([self._oracle.dual_gradient(run), self._scalars.dual_gradient(others)], axis=1)


class _Riding:
    """The run's network; every vector sent carries one more column, which is only averaged."""

    def __init__(self, gossip: Any, mixed: Array) -> None:
        self._gossip, self.mixed = gossip, mixed

    def _loaded(self, vectors: tuple[Array, ...]) -> list[Array]:
        return [jnp.concatenate([v, self.mixed[:, i : i + 1]], axis=1) for i, v in enumerate(vectors)]

    def _unload(self, results: Any, averaged: bool) -> Any:
        results = results if isinstance(results, tuple | list) else (results,)
        columns = jnp.concatenate([r[:, -1:] for r in results], axis=1)
        self.mixed = columns if averaged else self.mixed - columns / self._gossip.lambda_max
        vectors = tuple(r[:, :-1] for r in results)
        return vectors[0] if len(vectors) == 1 else vectors

    @property
    def lossy(self) -> Any:
        return self._gossip.lossy

    def __call__(self, *vectors: Array) -> Any:
        return self._unload(self._gossip(*self._loaded(vectors)), averaged=False)

    def average(self, *vectors: Array) -> Any:
        return self._unload(self._gossip.average(*self._loaded(vectors)), averaged=True)

    def push_pull(self, pulled: Array, pushed: Array) -> Any:
        return self._unload(self._gossip.push_pull(*self._loaded((pulled, pushed))), averaged=True)

    def push(self, *vectors: Array) -> Any:
        return self._unload(self._gossip.push(*self._loaded(vectors)), averaged=True)

    def mix(self, v: Array, rounds: Any) -> Array:
        raise NotImplementedError  # a step of several rounds has no canaries

    def project(self, v: Array) -> Array:
        raise NotImplementedError


class CanaryState(NamedTuple):
    """State of a run with canaries."""

    inner: Any  # the method's own, canaries in the last columns
    x: Array  # the run's last answer
    answers: Array  # the canaries'
    mixed: Array  # columns that are only averaged
    greatest: Array  # (rows, canaries): the largest |answer| since the last look
    moved: Array  # (rows,): the answer's longest move in one step since the last look


@dataclass(frozen=True)
class WithCanaries(Wrapped):
    """A method on the run's columns and the canaries', each with hyper-parameters of its own.

    Parameters
    ----------
    inner : Method
        Its hyper-parameters are arrays, one value a column.
    curvature : (rows, canaries) array
    """

    curvature: Any

    def init(self, zeros: Array, oracle: Oracle) -> CanaryState:
        """Start the run; the canaries are planted afterwards."""
        empty = jnp.zeros_like(self.curvature, dtype=zeros.dtype)
        state = self.inner.init(jnp.concatenate([zeros, empty], axis=1), _WideOracle(oracle, self.curvature))
        mixed = jnp.zeros((zeros.shape[0], plain(self.inner).vectors_per_round), zeros.dtype)
        return CanaryState(state, zeros, empty, mixed, empty, zeros[:, 0])

    def step(self, state: CanaryState, oracle: Oracle, gossip: Gossip) -> tuple[CanaryState, Array]:
        """Make one step of all columns, and update the nodes' observations."""
        count, network = self.curvature.shape[-1], _Riding(gossip, state.mixed)
        inner, wide = self.inner.step(state.inner, _WideOracle(oracle, self.curvature), network)
        x, answers = wide[:, :-count], wide[:, -count:]
        greatest = jnp.maximum(state.greatest, jnp.abs(answers))
        moved = jnp.maximum(state.moved, jnp.sqrt(((x - state.x) ** 2).sum(axis=1)))
        return CanaryState(inner, x, answers, network.mixed, greatest, moved), x


@cache
def planting() -> Any:
    """Return `planted`, compiled."""
    return compiled(planted, quick=True)


def planted(method: Any, state: CanaryState, seeds: Array, slow: Array, graphs: Graphs, clock: Array) -> Any:
    """Return the state with new canaries, started from W(k) `seeds` + `slow`; the rows of `slow` sum to zero already.

    The rows of some methods' states must sum to zero. Those of W(k) v do for any v; the run's messages of one round
    compute them. Canaries without a mean miss nothing: how it moves does not depend on the network. Directed networks
    have no W, so their canaries start from seeds + slow. Where messages are lost, the rows sum to zero once the ledgers
    agree, so the ends of links get entries for the new states too.
    """
    whole, oracle = plain(method.inner), Scalars(method.curvature)
    columns = ((name, value[-seeds.shape[1] :]) for name, value in whole.parameters().items())
    canaries: Method = bare(type(whole), columns)
    if graphs.W is None:
        return replanted(method.inner, state.inner, canaries.init(seeds + slow, oracle), None)
    network: Any = network_of(graphs, clock, jnp.zeros((), jnp.int64))
    if graphs.loss is None:
        return replanted(method.inner, state.inner, canaries.init(network(seeds) + slow, oracle), None)
    fresh = canaries.init(network(seeds + slow), oracle)  # here the rows of `slow` need not sum to zero
    ends = network.exchanges[0][:, :, 0].reshape(-1, seeds.shape[1])
    return replanted(method.inner, state.inner, fresh, canaries.init(ends, Scalars(jnp.ones_like(ends))))
