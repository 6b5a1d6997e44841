"""What a compiled step needs on a rank: the links of its own nodes, and access to the rows of others.

The step is the local engine's. In every round the compiled program calls back to exchange rows, as is done between
steps (`adom.run.ranks.partition`). A node's links are in the order of its neighbours' numbers on any number of ranks.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

from ... import native
from ...networks import LossyNetwork, Network
from ..links import lossy_links
from ..local.gossip import Graphs, SparseMatrices
from ..local.graph_layout import SLACK, GraphLayout
from .partition import RankRounds, RoundPlan, RowTravel

Array = Any
VIEWS = 64
"""Most arrays of a program to remember; each of its runs may use others."""


@partial(jax.tree_util.register_dataclass, data_fields=["fetch", "average"], meta_fields=["rows", "nodes"])
@dataclass(frozen=True)
class RankWire:
    """Access to other ranks from a compiled step (`adom.run.local.gossip.Wire`)."""

    fetch: Array  # the addresses of two functions of a `Callback`
    average: Array
    rows: int  # the most rows that a round needs, including own ones
    nodes: int

    def neighbours(self, clock: Array, vectors: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        """Return the clock, and every vector with the rows of other ranks that this round needs."""
        if self.rows == vectors[0].shape[0] and native.usable():
            return clock, vectors  # a kernel reads whole arrays, which are rounded alike with and without ranks
        if len({v.shape for v in vectors}) == 1:
            return _exchange(self.fetch, clock, self.rows, vectors)
        ends = np.cumsum([v.shape[1] for v in vectors])[:-1]
        clock, (joined,) = _exchange(self.fetch, clock, self.rows, (jnp.concatenate(vectors, axis=1),))
        return clock, tuple(jnp.split(joined, ends, axis=1))

    def project(self, clock: Array, v: Array) -> tuple[Array, Array]:
        """Return the clock, and v less the mean of all nodes' rows."""
        clock, (v,) = _exchange(self.average, clock, v.shape[0], (v,))
        return clock, v


def _exchange(function: Array, clock: Array, rows: int, vectors: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
    if native.usable():
        return native.exchange(function, clock, rows, vectors)

    # JAX would truncate 64-bit numbers passed to Python, so they are passed as pairs of 32-bit numbers.
    def bits(v: Array) -> Array:
        return jax.lax.bitcast_convert_type(v, np.int32)

    def call(function: Array, clock: Array, *halves: Array) -> list[Array]:
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
