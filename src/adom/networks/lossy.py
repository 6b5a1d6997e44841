"""Networks with imperfect links; those that lose messages, and whose nodes leave and join.

The other kinds of imperfect links, and the table of all, are in `adom.networks.imperfect`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import pi, prod, sin
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, InputTypeError, shown
from ..util.checks import check_real, check_whole
from .edges import Bools, Ints, Longs, codes_of, distinct_pairs
from .network import Network
from .recipes import LONGEST, generator, seed_number, truth

Rounds = Mapping[int | str, int | Iterable[int]]
"""The round or rounds of each node; nodes are strings in a recipe read from JSON."""
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


def uniform(key: Any, clock: Any, code: Any, shape: tuple[int, ...]) -> Any:
    """Return numbers strictly between 0 and 1 for each message, in new last axes of this shape."""
    message = _scrambled(_scrambled(key + clock.astype(np.uint64) * GOLDEN) + code * GOLDEN)
    numbers = _scrambled(message[..., None] + np.arange(prod(shape), dtype=np.uint64) * GOLDEN)
    return (((numbers >> np.uint64(64 - DIGITS)) + 0.5) / 2.0**DIGITS).reshape(*code.shape, *shape)


def _scrambled(x: Any) -> Any:
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


class Channel(NamedTuple):
    """What happens to messages that arrive; the compiled loop takes it as it is, as arrays.

    Attributes
    ----------
    coders : tuple of Quantised and Sparsified
        Applied in this order.
    feedback : bool
        Whether both ends of a link keep copies of the rows sent over it, and messages carry coded differences to them.
    late : Late, optional
    noise : Noise, optional
    """

    coders: tuple[Any, ...] = ()
    feedback: bool = False
    late: Any = None
    noise: Any = None

    @property
    def perfect(self) -> bool:
        """Whether messages arrive unchanged and at once."""
        return not self.coders and self.late is None and self.noise is None

    @property
    def delay(self) -> int:
        """Rounds by which messages are late at most."""
        return 0 if self.late is None else int(self.late.rounds)

    @property
    def mean_delay(self) -> float:
        """The average delay of messages, in rounds."""
        return 0 if self.late is None else float(self.late.mean)

    @property
    def share(self) -> float:
        """The share of W that acts on average; below 1 if both ends leave out the same numbers and keep no copies."""
        return 1.0 if self.feedback else float(prod(coder.share for coder in self.coders))

    @property
    def age(self) -> float:
        """How many rounds old numbers are when used: the delay plus, with feedback, the wait for sparse updates."""
        return self.delay + self.feedback * (1 / float(prod(coder.sent for coder in self.coders)) - 1)

    @property
    def damping(self) -> float:
        """The factor by which lambda_max counts as larger, so that averaging with old values stays stable.

        x(k + 1) = x(k) - a x(k - d) is stable for a < 2 sin(pi / (4 d + 2)), twice the inverse of this factor.
        """
        return 1 / sin(pi / (4 * self.age + 2))

    def coded(self, rows: Any, clock: Any, code: Any) -> Any:
        """Return rows after all coders; `code` identifies the message of each end of each link."""
        for coder in self.coders:
            rows = coder.coded(rows, clock, code)
        return rows

    def spread(self, columns: int) -> Any:
        """Return a bound on the mean squared error that dithering adds to coded rows, relative to their squares."""
        return sum(coder.spread(columns) for coder in self.coders)

    def floats(self, vectors: int, columns: int, width: int) -> Any:
        """Return how many floats of `width` bits a message of coded rows takes, rounded up."""
        size = Size(columns, width)
        for coder in self.coders:
            size = coder.size(size, columns)
        place = (columns - 1).bit_length() * (size.numbers < columns) if size.placed else 0
        return -(-vectors * (size.numbers * (size.each + place) + width * size.scaled) // width)


class Size(NamedTuple):
    """Size of a coded row."""

    numbers: Any
    each: Any  # bits of a number
    placed: bool = False  # whether the numbers' places are sent too
    scaled: bool = False  # whether the largest number is sent in full too, once for all coders


class LossyNetwork(Network):
    """A network with imperfect links: messages are lost, late, coarse, partial or noisy, or nodes are absent.

    Use `adom.networks.lossy`, `delayed`, `quantised`, `sparsified` or `noisy` to make one. Its graphs and W(k) are
    those of the network with perfect links and all nodes present. Its chi is larger: by 1 / (1 - one_way), because a
    node hears the share 1 - one_way of W on average, and by the factors of `Channel` for partial and late messages.
    """

    def __init__(self, network: Network, loss: Loss, recipe: dict[str, Any], channel: Channel | None = None) -> None:
        super().__init__(network._pool, network.order, recipe, network._chi, network._window)
        self._loss, self._channel = loss, channel or Channel()
        _check_together(loss, self._channel)
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

    @property
    def unproved(self) -> list[str]:
        """What the links lack of all that proofs assume."""
        whole = not self._loss.one_way and self._channel.perfect
        lacks = {"links that carry every message, whole and at once": whole, "nodes that stay": not self._loss.changing}
        return [words for words, there in lacks.items() if not there]

    @cached_property
    def linked_pairs(self) -> Ints:
        """All pairs of nodes that some graph links, shape (pairs, 2), sorted."""
        return distinct_pairs(np.concatenate([self.edges(g) for g in range(self.graphs)]), self.nodes)

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
        code = codes_of(pairs, self.nodes).astype(np.uint64)
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
    if isinstance(network, LossyNetwork) and not network.loss.nothing:
        raise InputTypeError(f"lossy takes an undirected network without loss, got {network!r}; make it lossy once")
    channel = channel_of("lossy", network)
    one_way = check_real("one_way", one_way, 0, 1, "it is the share of messages that are lost")
    if one_way == 1:
        raise InputError("one_way must be less than 1, got 1: no message would ever arrive; e.g. one_way=0.1")
    healing, seed = truth("healing", healing), seed_number(seed)
    away, back = _by_node("leaving", leaving, network.nodes), _by_node("joining", joining, network.nodes)
    starts, present = _epochs(network.nodes, away, back)
    recipe = {"generator": "lossy", "one_way": one_way, "healing": healing, "seed": seed}
    recipe |= {name: rounds for name, rounds in (("leaving", away), ("joining", back)) if rounds}
    loss = Loss(one_way, healing, seed, starts, present)
    return LossyNetwork(network, loss, {**recipe, "network": network.recipe}, channel)


def channel_of(name: str, network: Any) -> Channel:
    """Return what happens to messages on a network so far; refuse networks whose links cannot be imperfect."""
    if not isinstance(network, Network):
        raise InputTypeError(f"{name} takes an undirected network, got {type(network).__name__}; e.g. ring(5)")
    if not network.held:
        raise InputError(
            f"{name} needs all graphs in memory, but those of {network!r} are not; take fewer graphs or nodes"
        )
    return network.channel if isinstance(network, LossyNetwork) else Channel()


def with_channel(network: Network, channel: Channel, recipe: dict[str, Any]) -> Network:
    """Return the network with this channel; the same network if the channel is perfect."""
    if channel.perfect:
        return network
    nothing = Loss(0.0, False, 0, np.zeros(1, dtype=np.int64), np.ones((1, network.nodes), dtype=bool))
    loss = network.loss if isinstance(network, LossyNetwork) else nothing
    return LossyNetwork(network, loss, {**recipe, "network": network.recipe}, channel)


def _check_together(loss: Loss, channel: Channel) -> None:
    """Refuse combinations of loss and channel that do not work together."""
    if channel.feedback and channel.noise is not None:
        raise InputError("noise would gather in the copies that feedback keeps at both ends; take feedback=False")
    if channel.feedback and not loss.nothing:
        raise InputError(
            "feedback needs all messages: after a lost one, the copies at both ends of a link differ for ever; "
            "take feedback=False, or no loss"
        )
    if loss.healing and not (channel.late is channel.noise is None):
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
        raise InputTypeError(f"{name} must map nodes to rounds, got {shown(rounds)}; e.g. {name}={{5: 800}}")
    known: dict[int, list[int]] = {}
    for key, value in (rounds or {}).items():
        written = isinstance(key, str) and key.isdecimal() and len(key) < 20
        node = check_whole(f"a node in {name}", int(key) if written else key, 0, "e.g. {5: 800}", nodes - 1)
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
