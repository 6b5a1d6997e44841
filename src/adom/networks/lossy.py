"""Networks that lose messages, in each direction independently, and whose nodes leave and join."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import InputError, InputTypeError
from ..util.checks import check_real, check_whole
from .channel import Channel
from .checks import LONGEST, seed_number, truth
from .links import Bools, Ints, Longs
from .network import Network
from .recipes import generator

Rounds = Mapping[int, int | Iterable[int]]
GOLDEN, FIRST, SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
"""The constants of SplitMix64."""
DIGITS = 53
"""Bits of the random numbers that decide whether a message is lost."""


@dataclass(frozen=True)
class Loss:
    """Which messages are lost, and which nodes are present.

    Attributes
    ----------
    one_way : float
        Probability that a message is lost, drawn for each round and each direction of each link.
    healing : bool
        Whether methods repair the effect of losses on their conserved sums.
    seed : int
    starts : (epochs,) array of int
        The first round of each epoch: a range of rounds in which the same nodes are present.
    present : (epochs, nodes) array of bool
    """

    one_way: float
    healing: bool
    seed: int
    starts: Longs
    present: Bools

    @property
    def key(self) -> Any:
        """The seed as a 64-bit number."""
        return np.random.SeedSequence(self.seed).generate_state(1, np.uint64)[0]

    @property
    def threshold(self) -> Any:
        """A message is lost if its draw is below this number."""
        return np.uint64(round(self.one_way * 2**DIGITS))

    @property
    def changing(self) -> bool:
        """Whether any node is absent at any time."""
        return len(self.starts) > 1 or not self.present.all()

    @property
    def nothing(self) -> bool:
        """Whether nothing is lost, no node is ever absent, and healing is off."""
        return not (self.one_way or self.healing or self.changing)


def draws(key: Any, clock: Any, code: Any) -> Any:
    """Return a random number of `DIGITS` bits for each message: a pure function of seed, round and directed link.

    Arguments are uint64 arrays of NumPy or JAX; `code` is sender * nodes + receiver.
    """
    return _scrambled(_scrambled(key + clock * GOLDEN) + code * GOLDEN) >> np.uint64(64 - DIGITS)


def draws_of_numbers(key: Any, clock: Any, code: Any, count: int) -> Any:
    """Return `count` random numbers of `DIGITS` bits for each message, along a new last axis."""
    message = _scrambled(_scrambled(key + clock * GOLDEN) + code * GOLDEN)
    return _scrambled(message[..., None] + np.arange(count, dtype=np.uint64) * GOLDEN) >> np.uint64(64 - DIGITS)


def _scrambled(x: Any) -> Any:
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


class LossyNetwork(Network):
    """A network with imperfect links: messages are lost, late, coarse, partial or noisy, or nodes are absent.

    Use `adom.networks.lossy`, `delayed`, `quantised`, `sparsified` or `noisy` to make one. Its graphs and W(k) are
    those of the network with perfect links and all nodes present. Its chi is larger: by 1 / (1 - one_way), because a
    node hears the share 1 - one_way of W on average, and by the factors of `Channel` for partial and late messages.
    """

    def __init__(self, network: Network, loss: Loss, recipe: dict[str, Any], channel: Channel | None = None) -> None:
        super().__init__(network._pool, network.order, recipe, network._chi, network._window)
        self._loss, self._channel = loss, channel or Channel()
        self._whole: Network = network._whole if isinstance(network, LossyNetwork) else network

    @property
    def loss(self) -> Loss:
        """Which messages are lost, and which nodes are present."""
        return self._loss

    @property
    def channel(self) -> Channel:
        """What happens to messages that arrive."""
        return self._channel

    @property
    def chi(self) -> float:
        """The condition number with perfect links, times the factor for delay, over the share of W that arrives."""
        return self._whole.chi * self._channel.damping / self._channel.share / (1 - self._loss.one_way)

    @property
    def lambda_max(self) -> float:
        """The largest eigenvalue over all rounds, times the factor for delay."""
        return self._whole.lambda_max * self._channel.damping

    @property
    def lambda_min_plus(self) -> float:
        """lambda_max / chi."""
        return self.lambda_max / self.chi

    @cached_property
    def linked_pairs(self) -> Ints:
        """All pairs of nodes that some graph links, shape (pairs, 2), sorted."""
        codes = [self.edges(g).astype(np.int64) @ np.array([self.nodes, 1]) for g in range(self.graphs)]
        distinct = np.unique(np.concatenate(codes))
        return np.stack([distinct // self.nodes, distinct % self.nodes], axis=1).astype(np.int32)

    def present(self, k: int) -> Bools:
        """Return whether each node is present in round k."""
        loss, k = self._loss, check_whole("k", k, 0, "rounds are counted from 0")
        row: Bools = loss.present[np.searchsorted(loss.starts, k, side="right") - 1]
        return row

    def heard(self, k: int) -> Ints:
        """Return the (sender, receiver) pairs whose message arrives in round k, shape (messages, 2).

        Examples
        --------
        >>> from adom.networks import ring
        >>> lossy(ring(4), one_way=0.5, seed=1).heard(0).tolist()
        [[1, 2], [3, 0], [2, 1]]
        """
        edges, loss, here = self.edges(self._round(k)), self._loss, self.present(k)
        pairs: Ints = np.concatenate([edges, edges[:, ::-1]])
        code = pairs.astype(np.uint64) @ np.array([self.nodes, 1], dtype=np.uint64)
        arrives = draws(loss.key, np.full(len(pairs), k, dtype=np.uint64), code) >= loss.threshold
        heard: Ints = pairs[arrives & here[pairs].all(axis=1)]
        return heard


@generator
def lossy(
    network: Network,
    one_way: float = 0.0,
    healing: bool = True,
    seed: int = 0,
    leaving: Rounds | None = None,
    joining: Rounds | None = None,
) -> LossyNetwork:
    """Return a network that loses messages, in each direction independently, and whose nodes leave and join.

    In every round each direction of each link loses its message with probability `one_way`. A node that hears nothing
    from a neighbour ignores that link in this round. The neighbour may have heard the node, and does not know. Methods
    that need a sum over the nodes to stay zero then end at a wrong point. Healing prevents this: both ends of every
    link keep a ledger of what came over it, and reconcile the ledgers when they hear each other again (see the page on
    lost messages in the documentation).

    A node that leaves in round k is absent from that round on, until it joins again, without memory. A node that joins
    without having left was absent from the start. While a node is absent, its rows do not count in the errors of a run,
    and x* is the solution of the present nodes; a tolerance ends no run before the last node has left or joined.
    Parameters are computed with chi / (1 - one_way) of all nodes: if nodes leave, the others must still be connected.
    Apply schedules, `windowed` and `bounded` before `lossy`.

    Parameters
    ----------
    network : Network
    one_way : float
        From 0 up to, but not including, 1.
    healing : bool
        If False, methods run as printed in their papers.
    seed : int
        Seed of the losses, which are the same on every engine.
    leaving, joining : dict
        The round or rounds in which each node leaves or joins: ``leaving={5: 800}, joining={5: 1200, 3: 2000}``.

    Examples
    --------
    >>> from adom.networks import ring
    >>> network = lossy(ring(6), one_way=0.1, leaving={2: 10})
    >>> network.present(9).sum(), network.present(10).sum()
    (np.int64(6), np.int64(5))
    """
    if not isinstance(network, Network) or (isinstance(network, LossyNetwork) and not network.loss.nothing):
        raise InputTypeError(
            f"lossy takes an undirected network without loss, got {type(network).__name__}; e.g. lossy(ring(5), 0.1)"
        )
    if not network.held:
        raise InputError(
            f"lossy needs all graphs in memory, but those of {network!r} are not; take fewer graphs or nodes"
        )
    one_way = check_real("one_way", one_way, 0, 1, "it is the share of messages that are lost")
    if one_way == 1:
        raise InputError("one_way must be less than 1, got 1: no message would ever arrive; e.g. one_way=0.1")
    healing, seed = truth("healing", healing), seed_number(seed)
    away, back = _by_node("leaving", leaving, network.nodes), _by_node("joining", joining, network.nodes)
    starts, present = _epochs(network.nodes, away, back)
    recipe = {"generator": "lossy", "one_way": one_way, "healing": healing, "seed": seed}
    recipe |= {name: rounds for name, rounds in (("leaving", away), ("joining", back)) if rounds}
    loss = Loss(one_way, healing, seed, starts, present)
    channel = network.channel if isinstance(network, LossyNetwork) else Channel()
    check_together(loss, channel)
    return LossyNetwork(network, loss, {**recipe, "network": network.recipe}, channel)


def no_loss(nodes: int) -> Loss:
    """Return a `Loss` in which nothing is lost and all nodes are present."""
    return Loss(0.0, False, 0, np.zeros(1, dtype=np.int64), np.ones((1, nodes), dtype=bool))


def check_together(loss: Loss, channel: Channel) -> None:
    """Refuse combinations of loss and channel that do not work together."""
    if channel.feedback and channel.noise:
        raise InputError("noise would gather in the copies that feedback keeps at both ends; take feedback=False")
    if channel.feedback and not loss.nothing:
        raise InputError(
            "feedback needs all messages: after a lost one, the copies at both ends of a link differ for ever; "
            "take feedback=False, or no loss"
        )
    if loss.healing and (channel.delay or channel.noise):
        raise InputError(
            "ledgers do not heal with entries that come late or with noise; take lossy(..., healing=False)"
        )
    if loss.changing and channel.delay:
        raise InputError(
            "delay does not work with nodes that leave or join: messages of absent nodes would still arrive; "
            "use only one of them"
        )


def _by_node(name: str, rounds: Rounds | None, nodes: int) -> dict[int, list[int]]:
    """Return the rounds of each node as sorted lists."""
    if rounds is not None and not isinstance(rounds, Mapping):
        raise InputTypeError(f"{name} must map nodes to rounds, got {rounds!r}; e.g. {name}={{5: 800}}")
    known: dict[int, list[int]] = {}
    for key, value in (rounds or {}).items():
        # In a recipe read from JSON, nodes are strings.
        node = check_whole(f"a node in {name}", int(key) if str(key).isdigit() else key, 0, "e.g. {5: 800}", nodes - 1)
        several = value if isinstance(value, Iterable) else [value]
        known[node] = sorted(check_whole(f"a round in {name}", k, 0, "e.g. {5: 800}", LONGEST) for k in several)
    return dict(sorted(known.items()))


def _epochs(nodes: int, leaving: dict[int, list[int]], joining: dict[int, list[int]]) -> tuple[Longs, Bools]:
    """Return the rounds in which nodes join or leave, starting with 0, and which nodes are present from then on."""
    changes: dict[int, list[tuple[int, bool]]] = {}
    here = np.ones(nodes, dtype=bool)
    for node in {**leaving, **joining}:
        turns = sorted([(k, False) for k in leaving.get(node, [])] + [(k, True) for k in joining.get(node, [])])
        here[node] = not turns[0][1]
        there = bool(here[node])
        for k, comes in turns:
            if comes == there or (changes.get(k) and changes[k][-1][0] == node):
                raise InputError(
                    f"node {node} cannot {'join' if comes else 'leave'} in round {k}: it is "
                    f"{'there' if there else 'away'} then, or comes and goes at once; let it leave and join in turn"
                )
            there = comes
            changes.setdefault(k, []).append((node, comes))
    starts, present = [0], [here]
    for k in sorted(changes):
        row = present[-1].copy()
        for node, comes in changes[k]:
            row[node] = comes
        if k == 0:
            starts.pop(), present.pop()
        starts.append(k)
        present.append(row)
    if not all(row.any() for row in present):
        raise InputError("all nodes would be absent in some round; keep at least one")
    return np.array(starts, dtype=np.int64), np.stack(present)
