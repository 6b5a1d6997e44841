"""Nodes spread over ranks: which rows are exchanged in a round, and the products computed from them.

Node i's new row is a sum over its neighbours in the order of their numbers, whichever process holds them. So the
arithmetic, and with it every bit of a result, does not depend on how the nodes are spread over processes. This file
does not use MPI: a round's rows go through an `Exchange`, a function that moves arrays between ranks.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from ... import native
from ...errors import InputError
from ...networks import DirectedNetwork, Network
from ..local.gossip import CountingGossip
from ..local.graph_layout import by_receiver, weighted_arcs

Array = np.ndarray
Message = tuple[int, Array]
Exchange = Callable[[Sequence[Message], Sequence[Message]], None]
"""Function that sends arrays to ranks, fills others with what ranks send, and returns when all have arrived."""
PLAN_BYTES = 2**28
"""Most memory for plans of rounds; older ones are rebuilt when their graph returns."""


class Partition:
    """Consecutive nodes for each rank, as evenly as possible unless the first node of each is given.

    Examples
    --------
    >>> partition = Partition(nodes=10, ranks=3)
    >>> [partition.of(rank) for rank in range(3)]
    [(0, 3), (3, 6), (6, 10)]
    >>> partition.owner(np.array([0, 3, 9])).tolist()
    [0, 1, 2]
    """

    def __init__(self, nodes: int, ranks: int, starts: Array | None = None) -> None:
        if ranks > nodes:
            raise InputError(
                f"{ranks} ranks cannot share {nodes} nodes: each needs at least one; start {nodes} or fewer"
            )
        self.nodes, self.ranks = nodes, ranks
        self.starts = np.arange(ranks + 1) * nodes // ranks if starts is None else starts

    def of(self, rank: int) -> tuple[int, int]:
        """Return the first node of a rank, and the one after its last."""
        return int(self.starts[rank]), int(self.starts[rank + 1])

    def owner(self, nodes: Array) -> Array:
        """Return the ranks that hold the given nodes."""
        return np.searchsorted(self.starts, nodes, side="right") - 1

    def name(self, rank: int) -> str:
        """Name a rank's nodes.

        Examples
        --------
        >>> Partition(10, 3).name(1), Partition(3, 3).name(2)
        ('nodes 3 to 5', 'node 2')
        """
        first, end = self.of(rank)
        return f"nodes {first} to {end - 1}" if end - first > 1 else f"node {first}"


def deal(seen: list[dict[str, str]], nodes: int) -> list[list[str]] | str:
    """Return the nodes of each rank, given the names and checksums of the shards that it sees, or an error message.

    Ranks that share a folder, and so see the same shards, divide them among themselves.

    Examples
    --------
    >>> shared, other = {"a": "1", "b": "2", "c": "3"}, {"d": "4"}
    >>> deal([shared, shared, other], 4)
    [['a'], ['b', 'c'], ['d']]
    >>> deal([{"a": "1"}, {"a": "2"}], 2)
    'ranks 0 and 1 have different shards of the same name, a; recreate one with another --node'
    """
    for rank, names in enumerate(seen):
        for other in range(rank):
            both = min(names.keys() & seen[other].keys(), default=None)
            if both is not None and names != seen[other]:
                if names[both] != seen[other][both]:
                    return (
                        f"ranks {other} and {rank} have different shards of the same name, {both}; recreate one with "
                        "another --node"
                    )
                return (
                    f"ranks {other} and {rank} both see the shard {both}, but not the same folder; let them see the "
                    "same shards, or none in common"
                )
    found = len({name for names in seen for name in names})
    if found != nodes:
        return (
            f"the ranks see {found} shards, but there should be {nodes} nodes; give --nodes {found}, or start all ranks"
        )
    dealt = []
    for rank, names in enumerate(seen):
        sharing = [other for other, theirs in enumerate(seen) if theirs == names]
        if len(sharing) > len(names):
            some = ", ".join(sorted(names)[:5])
            return f"{len(sharing)} ranks cannot share the shards {some}; start {len(names)} or fewer there"
        dealt.append(sorted(names)[slice(*Partition(len(names), len(sharing)).of(sharing.index(rank)))])
    return dealt


class RoundPlan(NamedTuple):
    """One rank's share of a round on one graph; other ranks' rows follow its own, in the order of nodes."""

    starts: Array  # first link of each own node in `senders`
    senders: Array  # positions of own and foreign rows
    matrices: tuple[tuple[Array, Array], ...]  # W, or R and C: the weights of these links, and the sums of rows
    sends: tuple[tuple[int, Array], ...]  # to which rank, and which own rows
    receives: tuple[tuple[int, int, int], ...]  # from which rank, and where its rows begin and end
    links: int  # of the whole graph, both ways
    rows: int  # own and foreign
    foreign: Array  # the nodes of the foreign rows

    @property
    def bytes(self) -> int:
        """Approximate memory."""
        numbers = sum(weights.nbytes + sums.nbytes for weights, sums in self.matrices)
        return int(numbers + self.senders.nbytes + self.starts.nbytes + 8 * self.rows + 500)

    def times(self, matrix: int, rows: Array) -> Array:
        """Return own rows of the product with one of the matrices, from own and foreign rows."""
        product: Array = native.gossip_rows(self.starts, self.senders, *self.matrices[matrix], rows)
        return product


class RankRounds:
    """Plans of a rank's rounds, made once and kept while there is room; safe for several threads.

    Parameters
    ----------
    network : Network or DirectedNetwork
        The same on every rank: each derives W(k) by itself.
    partition : Partition
    rank : int
    directed : bool
        Whether to use R and C instead of W.
    dtype : str
    """

    def __init__(
        self, network: Network | DirectedNetwork, partition: Partition, rank: int, directed: bool, dtype: str
    ) -> None:
        self.network, self.partition, self.rank, self.directed, self.dtype = network, partition, rank, directed, dtype
        self._plans: OrderedDict[int, RoundPlan] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def at(self, clock: int) -> RoundPlan:
        """Return the plan of a round."""
        return self.of(int(self.network.order[clock % self.network.period]))

    def of(self, g: int) -> RoundPlan:
        """Return the plan of a round on one graph."""
        with self._lock:
            plan = self._plans.get(g)
            if plan is not None:
                self._plans.move_to_end(g)
                return plan
        plan = self._make(g)
        with self._lock:
            if g not in self._plans:
                self._plans[g] = plan
                self._bytes += plan.bytes
            while self._bytes > PLAN_BYTES and len(self._plans) > 1:
                self._bytes -= self._plans.popitem(last=False)[1].bytes
        return plan

    def _make(self, g: int) -> RoundPlan:
        first, end = self.partition.of(self.rank)
        arcs, weighted = weighted_arcs(self.network, g, self.directed)
        sender, receiver = arcs[:, 0], arcs[:, 1]
        inside = (receiver >= first) & (receiver < end)
        own_sender = (sender >= first) & (sender < end)

        foreign = np.unique(sender[inside & ~own_sender])  # sorted by node, and so by rank
        receives, rows = [], end - first
        for rank, count in zip(*np.unique(self.partition.owner(foreign), return_counts=True), strict=True):
            receives.append((int(rank), rows, rows + int(count)))
            rows += int(count)
        leaving = ~inside & own_sender
        pairs = np.unique(np.stack([self.partition.owner(receiver[leaving]), sender[leaving]], axis=1), axis=0)
        sends = [(int(rank), pairs[pairs[:, 0] == rank, 1] - first) for rank in np.unique(pairs[:, 0])]

        order = by_receiver(arcs[inside], self.network.nodes)
        entries = arcs[inside][order]
        where = np.searchsorted(foreign, entries[:, 0]) + (end - first)
        mine = (entries[:, 0] >= first) & (entries[:, 0] < end)
        columns = np.where(mine, entries[:, 0] - first, where).astype(np.int32)
        starts = np.searchsorted(entries[:, 1], np.arange(first, end + 1)).astype(np.int32)
        matrices = tuple(
            (weights[inside][order].astype(self.dtype), sums[first:end].astype(self.dtype))
            for weights, sums in weighted
        )
        return RoundPlan(starts, columns, matrices, tuple(sends), tuple(receives), len(arcs), rows, foreign)


class RowTravel:
    """Exchange of rows between ranks; counts what this rank sends."""

    def __init__(self, rounds: RankRounds, exchange: Exchange) -> None:
        self.rounds, self._exchange = rounds, exchange
        self.messages = self.bytes = 0

    def neighbours(self, clock: int, tables: Sequence[Array]) -> None:
        """Fill in other ranks' rows for a round, behind this rank's own; all tables have the same shape."""
        plan, dtype, many, width = self.rounds.at(clock), tables[0].dtype, len(tables), tables[0].shape[1]
        sends = []
        for rank, chosen in plan.sends:
            leaving = np.empty((many, len(chosen), width), dtype)
            for table, rows in zip(tables, leaving, strict=True):
                table.take(chosen, 0, rows, "clip")  # the fastest way in NumPy
            sends.append((rank, leaving))
        receives = [(rank, np.empty((many, end - first, width), dtype)) for rank, first, end in plan.receives]
        self._swap(clock, sends, receives)
        for (_, first, end), (_, arrived) in zip(plan.receives, receives, strict=True):
            for table, rows in zip(tables, arrived, strict=True):
                table[first:end] = rows

    def project(self, clock: int, tables: Sequence[Array]) -> None:
        """Subtract the mean of all nodes' rows from this rank's rows; every rank sends its rows to all others."""
        partition, rank = self.rounds.partition, self.rounds.rank
        others = [other for other in range(partition.ranks) if other != rank]
        for own in tables:
            everyone = np.empty((partition.nodes, own.shape[1]), dtype=own.dtype)
            everyone[slice(*partition.of(rank))] = own
            receives = [(other, everyone[slice(*partition.of(other))]) for other in others]
            self._swap(clock, [(other, own) for other in others], receives)
            np.subtract(own, everyone.mean(axis=0), out=own)

    def _swap(self, clock: int, sends: Sequence[Message], receives: Sequence[Message]) -> None:
        self.messages += len(sends)
        self.bytes += sum(buffer.nbytes for _, buffer in sends)
        self._exchange(sends, receives)


class RankGossip(CountingGossip):
    """The network between two steps, when ranks agree on something."""

    def __init__(self, travel: RowTravel, clock: int = 0, floats: int = 0) -> None:
        network = travel.rounds.network
        super().__init__(clock, floats, network.lambda_max if isinstance(network, Network) else 1.0)
        self.network, self.travel = network, travel

    def _round(self, v: Array) -> tuple[RoundPlan, Array]:
        """Spend one round exchanging rows; return its plan, and own and foreign rows."""
        plan = self.travel.rounds.at(self.clock)
        rows = np.empty((plan.rows, v.shape[1]), dtype=v.dtype)
        rows[: len(v)] = v
        self.travel.neighbours(self.clock, [rows])
        self.count(plan.links, v.shape[1])
        return plan, rows

    def __call__(self, *vectors: Array) -> Any:
        """Spend one round: return W(k) v for one vector v."""
        plan, rows = self._round(*vectors)
        return plan.times(0, rows)

    def greatest(self, values: Array, rounds: int) -> Array:
        """Spend `rounds` rounds in which every node keeps the greatest of its own and its neighbours' values."""
        for _ in range(rounds):
            plan, rows = self._round(values)
            values = rows[: len(values)].copy()
            np.maximum.at(values, np.repeat(np.arange(len(values)), np.diff(plan.starts)), rows[plan.senders])
        return values
