"""Imperfect links in a compiled run: who is present, what arrives over a link, and the ledgers that heal a state.

Messages are arrays (2, links, vectors, columns): those of both ends of every pair that is linked in any round. A method
on a lossy network is wrapped: a run's state also holds the ledgers of all links, which `adom.dynamics.healing`
explains, and absent nodes are reset to the start. The method's own step runs on a network that only makes the
exchanges of messages that arrived (`adom.run.local.gossip.LossyGossip`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri

from ..algorithms import Gossip, Method, Oracle, method_class
from ..algorithms.base import Wrapped, plain
from ..dynamics.healing import Healing, healing
from ..errors import InputError
from ..networks import DirectedNetwork, LossyNetwork, Network
from ..networks.channel import Channel, Quantised, Sparsified
from ..networks.lossy import DIGITS, draws, draws_of_numbers
from ..problems.base import Problem
from ..problems.some_nodes import minimum_of
from .contract import in_windows

Array = Any

# Who is present


class Presence(NamedTuple):
    """The nodes present in each epoch, and the solution of their problem."""

    starts: Array  # (epochs,): the first round of each
    present: Array  # (epochs, nodes)
    solutions: Array  # (epochs, dim)

    def distances(self, rows: Array, clock: Array) -> tuple[Array, Array]:
        """Return error and consensus of rows (..., nodes, dim) after `clock` (...) rounds."""
        epoch = self._epoch(clock)
        here, solution = self.present[epoch][..., None], self.solutions[epoch][..., None, :]
        rows = rows.astype(np.float64)
        mean = (rows * here).sum(axis=-2, keepdims=True) / here.sum(axis=-2, keepdims=True)
        error, apart = (rows - solution) * here, (rows - mean) * here
        return (error**2).sum(axis=(-2, -1)), (apart**2).sum(axis=(-2, -1))

    def _epoch(self, clock: Array) -> Array:
        """Return the epoch of the last of `clock` rounds."""
        epoch = (self.starts < clock[..., None]).sum(axis=-1) - 1
        return epoch * (epoch > 0)

    def marked(self, rows: np.ndarray, clock: float) -> np.ndarray:
        """Return the rows after `clock` rounds, with NaN for absent nodes."""
        return np.where(self.present[self._epoch(np.asarray(clock))][:, None], rows, np.nan).astype(rows.dtype)

    @property
    def settled(self) -> Array:
        """Rounds after which the final set of nodes has had one round."""
        return self.starts[-1] + 1

    @property
    def start_error(self) -> float:
        """Squared distance from zero to the solution, summed over the nodes present at first."""
        return float(self.present[0].sum() * (self.solutions[0] ** 2).sum())


def presence_on(network: Network | DirectedNetwork, problem: Problem, rounds: int) -> Presence | None:
    """Return the presence of nodes in a run of `rounds` rounds; None if all nodes are always present."""
    if not isinstance(network, LossyNetwork) or not network.loss.changing:
        return None
    epochs = network.loss.starts < rounds
    starts, present = network.loss.starts[epochs], network.loss.present[epochs]
    known = {row.tobytes(): minimum_of(problem, row).x for row in np.unique(present, axis=0)}
    return Presence(starts, present, np.stack([known[row.tobytes()] for row in present]))


# How messages are coded, disturbed and delayed

NEARLY = 1e-4
"""A number of columns this little above a whole number is not rounded up."""

SORTED = 128
"""Columns above which sorting takes less time than comparing every number of a row with every other."""


class Sizes(NamedTuple):
    """Size of a coded row."""

    numbers: Array
    each: Array  # bits of a number
    placed: bool = False  # whether the numbers' places are sent too


class Quantiser(NamedTuple):
    """Rounds numbers to an even grid: `levels` steps on either side of zero, up to the largest number of a row."""

    levels: Array
    bits: Array
    key: Array | None  # None to round to nearest

    def coded(self, rows: Array, clock: Array, code: Array) -> Array:
        """Return the rows that arrive; `code` identifies the message of each end of each link."""
        scale = jnp.abs(rows).max(axis=-1, keepdims=True)
        steps = rows * (self.levels / jnp.where(scale > 0, scale, 1))
        if self.key is None:
            whole = jnp.round(steps)
        else:
            whole = jnp.floor(steps + _uniform(self.key, clock, code, rows.shape[-2:]).astype(rows.dtype))
        return jnp.clip(whole, -self.levels, self.levels) * (scale / self.levels)

    def spread(self, columns: int) -> Array:
        """Return the bound for dithering: min(d / levels^2, sqrt(d) / levels)."""
        return 0 if self.key is None else jnp.minimum(columns / self.levels**2, columns**0.5 / self.levels)

    def sizes(self, sizes: Sizes, columns: int) -> Sizes:
        """Return the sizes of coded rows: numbers of a few bits."""
        return sizes._replace(each=self.bits)


class Sparsifier(NamedTuple):
    """Keeps a share of the numbers of a row and replaces the others by zeros."""

    keep: Array
    key: Array | None  # None for the largest; else both ends of a link draw the same places

    def coded(self, rows: Array, clock: Array, code: Array) -> Array:
        """Return the rows that arrive."""
        score = -jnp.abs(rows) if self.key is None else _uniform(self.key, clock, code[0], rows.shape[-2:])
        return jnp.where(_rank(score) < self._count(rows.shape[-1]), rows, 0)

    def spread(self, columns: int) -> Array:
        """Return 0: the error is smaller than the row."""
        return 0

    def sizes(self, sizes: Sizes, columns: int) -> Sizes:
        """Return the sizes of coded rows: fewer numbers, and their places unless both ends draw these."""
        numbers = jnp.minimum(sizes.numbers, self._count(columns))
        return sizes._replace(numbers=numbers, placed=sizes.placed or self.key is None)

    def _count(self, columns: int) -> Array:
        return jnp.maximum(1, jnp.ceil(self.keep * columns - NEARLY)).astype(jnp.int64)


class LinkChannel(NamedTuple):
    """A network's `Channel` as arrays."""

    coders: tuple[Quantiser | Sparsifier, ...]
    noise: Array | None
    noise_key: Array
    delay: Array | None
    delay_key: Array | None  # None if all messages are equally late

    def coded(self, rows: Array, clock: Array, code: Array) -> Array:
        """Return the rows after all coders."""
        for coder in self.coders:
            rows = coder.coded(rows, clock, code)
        return rows

    def spread(self, columns: int) -> Array:
        """Return a bound on the mean squared error that dithering adds to coded rows, relative to their squares."""
        return sum(coder.spread(columns) for coder in self.coders)

    def floats(self, vectors: int, columns: int, width: int) -> Array:
        """Return how many floats of `width` bits a message of coded rows takes, rounded up.

        A quantised row also carries its largest number in full, once for all quantisers.
        """
        scale = width if any(isinstance(coder, Quantiser) for coder in self.coders) else 0
        sizes = Sizes(columns, width)
        for coder in self.coders:
            sizes = coder.sizes(sizes, columns)
        place = jnp.where(sizes.numbers < columns, (columns - 1).bit_length(), 0) if sizes.placed else 0
        return -(-vectors * (sizes.numbers * (sizes.each + place) + scale) // width)

    def heard_noise(self, clock: Array, code: Array, shape: tuple[int, int]) -> Array:
        """Return the noise on the messages that both ends hear: (2, links, vectors, columns)."""
        assert self.noise is not None
        return self.noise * ndtri(_uniform(self.noise_key, clock, code, shape))

    def late_by(self, clock: Array, code: Array, most: int) -> Array:
        """Return how many rounds late the messages at both ends are, if that varies: (2, links)."""
        return draws(self.delay_key, clock.astype(jnp.uint64), code) % np.uint64(most + 1)


def link_channel(channel: Channel) -> LinkChannel | None:
    """Return the arrays of a channel; None where it changes nothing."""
    if channel.perfect:
        return None
    delay_key = _key(channel.delay_seed, 3) if channel.varying else None
    delay = np.int64(channel.delay) if channel.delay else None
    noise = np.float64(channel.noise) if channel.noise else None
    coders = tuple(_coder(coder, place) for place, coder in enumerate(channel.coders))
    return LinkChannel(coders, noise, _key(channel.noise_seed, 2), delay, delay_key)


def _coder(coder: Quantised | Sparsified, place: int) -> Quantiser | Sparsifier:
    """Return a coder as arrays; coders of the same seed draw differently at different places."""
    key = _key(coder.seed, 4 + place)
    if isinstance(coder, Sparsified):
        return Sparsifier(np.float64(coder.keep), None if coder.largest else key)
    levels = np.float64(2 ** (coder.bits - 1) - 1)
    return Quantiser(levels, np.int64(coder.bits), key if coder.dither else None)


def _rank(score: Array) -> Array:
    """Return the rank of every number in its row; equal numbers keep their order."""
    columns = score.shape[-1]
    if columns > SORTED:
        return jnp.argsort(jnp.argsort(score, axis=-1), axis=-1)
    one, other = score[..., :, None], score[..., None, :]
    earlier = np.tri(columns, k=-1, dtype=bool)
    return ((other < one) | ((other == one) & earlier)).sum(axis=-1)


def _key(seed: int, purpose: int) -> Any:
    """Return a 64-bit key for a seed and a purpose: losses, noise, delays and coders draw independently."""
    return np.random.SeedSequence((seed, purpose)).generate_state(1, np.uint64)[0]


def _uniform(key: Array, clock: Array, code: Array, shape: tuple[int, int]) -> Array:
    """Return numbers strictly between 0 and 1 for messages: (*code.shape, vectors, columns)."""
    vectors, columns = shape
    whole = draws_of_numbers(key, clock.astype(jnp.uint64), code, vectors * columns)
    return ((whole + 0.5) / 2.0**DIGITS).reshape(*code.shape, vectors, columns)


# Which messages arrive

MOST = 2**27
"""Limit on the weights of links held, over all graphs."""


class LossyLinks(NamedTuple):
    """Links with at least one end on this process; the first end, the node with the smaller number, owns the link."""

    rows: Array  # (graphs or 1, 2, links): indices of both ends' rows among those on this process
    weights: Array  # (graphs, links): zero where a graph has no such link
    code: Array  # (2, links): sender * nodes + receiver of the message that each end hears
    own: Array  # (ends,): the ends at own nodes, out of all 2 x links, sorted by node, then neighbour
    node: Array  # (ends,): the rows of these nodes
    key: Array
    threshold: Array
    starts: Array | None  # (epochs,): the first round of every epoch; None where all nodes stay
    present: Array | None  # (epochs, own nodes)
    up: Array | None  # (epochs, links): whether both ends are present
    messages: Array | None  # (epochs, graphs): directed links of the whole network whose ends are present
    channel: LinkChannel | None  # what happens to messages that arrive; None where nothing does

    def heard(self, clock: Array) -> Array:
        """Return whether each end of each link hears the other end in a round: (2, links)."""
        return draws(self.key, clock.astype(jnp.uint64), self.code) >= self.threshold

    def epoch(self, clock: Array) -> Array:
        """Return the epoch of a round."""
        assert self.starts is not None
        return (self.starts <= clock).sum() - 1

    def at_nodes(self, values: Array, rows: int) -> Array:
        """Return, for every own node, the sum of `values` (2, links, ...) over its ends of links."""
        flat = values.reshape(-1, *values.shape[2:])
        return jax.ops.segment_sum(flat[self.own], self.node, rows, indices_are_sorted=True)


def own_pairs(network: LossyNetwork, first: int, end: int) -> np.ndarray:
    """Return the pairs linked in any graph with at least one node in first, ..., end - 1: (links, 2)."""
    pairs = network.linked_pairs.astype(np.int64)
    inside: np.ndarray = pairs[((pairs >= first) & (pairs < end)).any(axis=1)]
    return inside


def lossy_links(
    network: LossyNetwork, pool: Sequence[int], first: int, end: int, foreign: Sequence[np.ndarray] | None = None
) -> LossyLinks:
    """Lay out the links of own nodes first, ..., end - 1.

    `foreign` lists, for each graph, the nodes whose rows follow the own rows.
    """
    pairs = own_pairs(network, first, end)
    if len(pairs) * len(pool) > MOST:
        raise InputError(
            f"lossy keeps all links of all graphs in memory, at most {MOST:.1e}, got {len(pairs) * len(pool):.1e}; "
            "take fewer graphs or nodes"
        )
    n, loss = network.nodes, network.loss
    codes = pairs @ np.array([n, 1])
    weights = np.zeros((len(pool), len(pairs)))
    for row, g in enumerate(pool):
        at = np.minimum(np.searchsorted(codes, _codes(network, g)), max(0, len(codes) - 1))
        mine = codes[at] == _codes(network, g)
        weights[row, at[mine]] = network.weights(g)[mine]
    rows = pairs.T[None].astype(np.int32)
    if foreign is not None:
        rows = np.stack([_positions(pairs.T, first, end, nodes) for nodes in foreign])
    ends, others = pairs.T.reshape(-1), pairs.T[::-1].reshape(-1)
    own = np.flatnonzero((ends >= first) & (ends < end))
    own = own[np.lexsort((others[own], ends[own]))]
    starts = present = up = messages = None
    if loss.changing:
        starts, present = loss.starts, loss.present[:, first:end]
        up = loss.present[:, pairs].all(axis=2)
        messages = np.stack([2 * loss.present[:, network.edges(g)].all(axis=2).sum(axis=1) for g in pool], axis=1)
    code = (others * n + ends).reshape(2, -1).astype(np.uint64)
    return LossyLinks(
        rows, weights, code, own.astype(np.int32), (ends[own] - first).astype(np.int32), loss.key, loss.threshold,
        starts, present, up, messages, link_channel(network.channel),
    )  # fmt: skip


def _codes(network: Network, g: int) -> np.ndarray:
    """Return u * nodes + v for every link of a graph."""
    codes: np.ndarray = network.edges(g).astype(np.int64) @ np.array([network.nodes, 1])
    return codes


def _positions(nodes: np.ndarray, first: int, end: int, foreign: np.ndarray) -> np.ndarray:
    """Return the index of each node's row; 0 for nodes without a row here, whose links then have weight zero."""
    where = np.minimum(np.searchsorted(foreign, nodes), max(0, len(foreign) - 1))
    there = foreign[where] == nodes if len(foreign) else np.zeros(nodes.shape, dtype=bool)
    own = (nodes >= first) & (nodes < end)
    positions = np.where(own, nodes - first, np.where(there, where + end - first, 0))
    return positions.astype(np.int32)


# Ledgers

LEDGER_BYTES = 2**31
"""Most memory for ledgers."""


class LossyState(NamedTuple):
    """State of a run on a lossy network."""

    inner: Any  # the method's state
    start: Any  # its initial value, from which joining nodes start
    ledger: Array  # (2, links, parts, columns): the conserved parts received over each link, at both its ends
    copies: Array | None = None  # (2, 2, links, vectors, columns): the rows that links expect, and how they change
    late: Array | None = None  # (delay + 1, rows, vectors, columns): exchanges that have not arrived


@dataclass(frozen=True)
class OnLossyLinks(Wrapped):
    """A method on a network that loses messages and nodes.

    Parameters
    ----------
    inner : Method
    rule : Healing
        The method's conserved parts; without any, nothing is healed.
    empty : (2, links, parts) array
        Zeros; it gives the shape of the ledgers.
    copies : (2, 2, links, vectors) array, optional
        Zeros, if messages are differences from what both ends of a link expect.
    late : (delay + 1, vectors) array, optional
        Zeros, if messages may be late.
    """

    rule: Any
    empty: Any
    copies: Any = None
    late: Any = None

    def init(self, zeros: Array, oracle: Oracle) -> LossyState:
        """Start the method with empty ledgers."""
        state = self.inner.init(zeros, oracle)
        rows, columns = zeros.shape
        ledger = jnp.zeros((*self.empty.shape, columns), zeros.dtype)
        copies = late = None
        if self.copies is not None:
            copies = jnp.zeros((*self.copies.shape, columns), zeros.dtype)
        if self.late is not None:
            slots, vectors = self.late.shape
            late = jnp.zeros((slots, rows, vectors, columns), zeros.dtype)
        return LossyState(state, state, ledger, copies, late)

    def renewed(self, state: LossyState, k: Any) -> LossyState:
        """Renew the method's state, unless other nodes hold copies, which would become stale."""
        if state.copies is not None:
            return state
        return super().renewed(state, k)  # type: ignore[no-any-return]

    def step(self, state: LossyState, oracle: Oracle, gossip: Gossip) -> tuple[LossyState, Array]:
        """Make one step of the method, then repair the conserved parts by the ledgers."""
        network: Any = gossip
        lossy, rule = network.lossy, Healing(*self.rule)
        inner, ledger = self._without_the_gone(state, lossy)
        parts, columns = ledger.shape[2:]
        lossy.carried, lossy.copies, lossy.late = parts * columns, state.copies, state.late
        inner, x = self.inner.step(inner, oracle, gossip)
        if parts:
            rows = x.shape[0]
            exchange = jnp.concatenate(lossy.exchanges, axis=2)[..., :columns]  # some vectors may have added columns
            first, second = rule.after(ledger, exchange)
            settled = jnp.where(lossy.told[:, None, None], rule.after(-ledger[0], exchange[1]), second)
            repair = jnp.stack([jnp.zeros_like(second), settled - second])
            inner, ledger = rule.change(inner, lossy.links.at_nodes(repair, rows)), jnp.stack([first, settled])
        return LossyState(inner, state.start, ledger, lossy.copies, lossy.late), x

    def _without_the_gone(self, state: LossyState, lossy: Any) -> tuple[Any, Array]:
        """Remove absent nodes' ledger entries from the other nodes' states; reset absent nodes to the start."""
        links: LossyLinks = lossy.links
        inner, ledger = state.inner, state.ledger
        if links.present is None:
            return inner, ledger
        present = links.present[links.epoch(lossy.clock)]
        if ledger.shape[2]:
            left = jnp.where(lossy.up[:, None, None], ledger, 0)
            inner = Healing(*self.rule).change(inner, links.at_nodes(left - ledger, present.shape[0]))
            ledger = left

        def back(now: Array, then: Array) -> Array:
            return jnp.where(present[:, None], now, then) if np.ndim(now) == 2 else now

        return jax.tree.map(back, inner, state.start), ledger


def replanted(method: Method, state: Any, fresh: Any, at_ends: Any) -> Any:
    """Return a state with `fresh` as its last columns; on a lossy network `at_ends` gives their ledger entries."""
    old, columns = state.inner if isinstance(state, LossyState) else state, jax.tree.leaves(fresh)[0].shape[1]

    def joined(old: Array, new: Array) -> Array:
        if old.shape[1] < columns:  # a node's weight, the same for all columns
            return old
        return jnp.concatenate([old[:, :-columns], new], axis=1)

    inner = jax.tree.map(joined, old, fresh)
    if not isinstance(state, LossyState) or not isinstance(method, OnLossyLinks):
        return inner
    rule = Healing(*(array[..., -columns:] for array in method.rule))
    entries = rule.of(at_ends).reshape(*state.ledger.shape[:3], columns)
    return state._replace(inner=inner, ledger=state.ledger.at[..., -columns:].set(entries))


def rested(method: Method, state: Any) -> Any:
    """Return a method's state without momentum; on a lossy network, with ledger entries to match."""
    at_rest = type(plain(method)).at_rest
    if not isinstance(state, LossyState) or not isinstance(method, OnLossyLinks):
        return at_rest(state)
    parts, columns = state.ledger.shape[2:]
    ledger = state.ledger
    if parts:
        rule = Healing(*method.rule)
        entries = ledger.reshape(-1, parts, columns)
        fields = rule.fields(entries)
        due = at_rest(type(state.inner)(*(fields[:, i] for i in range(fields.shape[1]))))
        ledger = rule.of(due).reshape(ledger.shape)
    return state._replace(inner=at_rest(state.inner), ledger=ledger)


def as_run(method: Method, network: Network | DirectedNetwork, dim: int, first: int = 0, end: int = -1) -> Method:
    """Return the method for nodes first, ..., end - 1 of a network, with windows and ledgers if needed."""
    return with_ledgers(in_windows(method, network), network, dim, first, end)


def serving(network: LossyNetwork) -> str:
    """Name a method that runs on the network's links, and its parameters if it needs special ones."""
    latest = method_class("nids").latest or 1
    return "NIDS" if network.channel.mean_delay < latest else "ADOM with parameters='theory'"


def rule_on(method: Method, network: LossyNetwork) -> Healing:
    """Return a method's conserved parts; refuse a method that cannot run on these links with any parameters."""
    inner, late = plain(method), network.channel.delay
    if late and network.window > 1:
        raise InputError(
            f"a step here is a window of {network.window} rounds, since single rounds do not connect the nodes, and it "
            "would have to wait for late messages; take the network without delay, or use repair=True"
        )
    if inner.directed:
        raise InputError(
            f"{inner.title} pushes shares along directed links and has no repair rule for imperfect ones; "
            f"take e.g. {serving(network)}"
        )
    rule = healing(inner, network.lambda_max, serving(network))
    if late and inner.rounds_per_step != 1:
        raise InputError(
            f"{inner.title} averages several times a step, each time the result of the last, and would have to wait "
            f"for late messages; take a method whose steps are single rounds, e.g. {serving(network)}"
        )
    mean = network.channel.mean_delay
    if inner.latest is not None and mean >= inner.latest:
        raise InputError(
            f"{inner.title} is unstable with any step size where messages are {inner.latest} or more rounds late on "
            f"average, got {mean:g}; take e.g. {serving(network)}"
        )
    return rule


def with_ledgers(method: Method, network: Network | DirectedNetwork, dim: int, first: int = 0, end: int = -1) -> Method:
    """Return the method with ledgers for the links of own nodes, if the network is lossy."""
    if not isinstance(network, LossyNetwork):
        return method
    rule, channel = rule_on(method, network), network.channel
    if not network.loss.healing:
        rule = Healing(rule.kept[:0], rule.onward[:0, :0], rule.taken[:0], rule.lift[:, :0])
    links = len(own_pairs(network, first, network.nodes if end < 0 else end))
    vectors = rule.taken.shape[1]
    size = 2 * links * (rule.parts + 2 * channel.feedback * vectors) * dim * 8
    if size > LEDGER_BYTES:
        raise InputError(
            f"the ledgers of {links} links would take {size / 2**30:.1f} GiB, more than {LEDGER_BYTES / 2**30:g}; "
            "take fewer nodes or features, or graphs with fewer links"
        )
    copies = np.zeros((2, 2, links, vectors)) if channel.feedback else None
    late = np.zeros((channel.delay + 1, vectors)) if channel.delay else None
    return OnLossyLinks(method, rule, np.zeros((2, links, rule.parts)), copies, late)
