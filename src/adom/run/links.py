"""Imperfect links in a compiled run: who is present, what arrives over a link, and the ledgers that heal a state.

Messages are arrays (2, links, vectors, columns): those of both ends of every pair that is linked in any round. A method
on a lossy network is wrapped: a run's state also holds the ledgers of all links, which `adom.dynamics.healing`
explains, and absent nodes are reset to the start. The method's own step runs on a network that only makes the
exchanges of messages that arrived (`adom.run.local.gossip.LossyGossip`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..algorithms import Gossip, Method, Oracle, method_class
from ..algorithms.base import Wrapped, plain
from ..errors import InputError
from ..networks import DirectedNetwork, LossyNetwork, Network
from ..networks.edges import codes_of
from ..networks.lossy import Channel, draws
from ..problems.base import Problem
from ..problems.limits import check_memory
from ..problems.minimiser import minimum_of
from .constants import in_windows

if TYPE_CHECKING:
    from ..dynamics.healing import Healing

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


# Which messages arrive

MOST = 2**27
"""Limit on the weights of links held, over all graphs."""


class LossyLinks(NamedTuple):
    """Links with at least one end on this process; the first end, the node with the smaller number, owns the link."""

    rows: Array  # (graphs or 1, 2, links): indices of both ends' rows among those on this process
    weights: Array  # (graphs, links): zero where a graph has no such link
    code: Array  # (2, links): sender * nodes + receiver of the message that each end hears
    ends: Array  # (ends,): the ends at nodes of this process, out of all 2 x links, sorted by node, then neighbour
    node: Array  # (ends,): the rows of these nodes
    key: Array
    threshold: Array
    starts: Array | None  # (epochs,): the first round of every epoch; None where all nodes stay
    present: Array | None  # (epochs, nodes of this process)
    up: Array | None  # (epochs, links): whether both ends are present
    messages: Array | None  # (epochs, graphs): directed links of the whole network whose ends are present
    channel: Channel | None  # what happens to messages that arrive; None where nothing does

    def heard(self, clock: Array) -> Array:
        """Return whether each end of each link hears the other end in a round: (2, links)."""
        return draws(self.key, clock.astype(jnp.uint64), self.code) >= self.threshold

    def epoch(self, clock: Array) -> Array:
        """Return the epoch of a round."""
        assert self.starts is not None
        return (self.starts <= clock).sum() - 1

    def at_nodes(self, values: Array, rows: int) -> Array:
        """Return, for every node of this process, the sum of `values` (2, links, ...) over its ends of links."""
        flat = values.reshape(-1, *values.shape[2:])
        return jax.ops.segment_sum(flat[self.ends], self.node, rows, indices_are_sorted=True)


def local_pairs(network: LossyNetwork, first: int, end: int) -> np.ndarray:
    """Return the pairs linked in any graph with at least one node in first, ..., end - 1: (links, 2)."""
    pairs = network.linked_pairs.astype(np.int64)
    inside: np.ndarray = pairs[((pairs >= first) & (pairs < end)).any(axis=1)]
    return inside


def lossy_links(
    network: LossyNetwork, pool: Sequence[int], first: int, end: int, foreign: Sequence[np.ndarray] | None = None
) -> LossyLinks:
    """Lay out the links of the nodes first, ..., end - 1.

    `foreign` lists, for each graph, the nodes whose rows follow those of these nodes.
    """
    pairs = local_pairs(network, first, end)
    if len(pairs) * len(pool) > MOST:
        raise InputError(
            f"lossy keeps all links of all graphs in memory, at most {MOST:.1e}, got {len(pairs) * len(pool):.1e}; "
            "take fewer graphs or nodes"
        )
    n, loss = network.nodes, network.loss
    codes = codes_of(pairs, n)
    weights = np.zeros((len(pool), len(pairs)))
    for row, g in enumerate(pool):
        wanted = codes_of(network.edges(g), n)
        at = np.minimum(np.searchsorted(codes, wanted), max(0, len(codes) - 1))
        mine = codes[at] == wanted
        weights[row, at[mine]] = network.weights(g)[mine]
    rows = pairs.T[None].astype(np.int32)
    if foreign is not None:
        rows = np.stack([_positions(pairs.T, first, end, nodes) for nodes in foreign])
    ends, others = pairs.T.reshape(-1), pairs.T[::-1].reshape(-1)
    here = np.flatnonzero((ends >= first) & (ends < end))
    here = here[np.lexsort((others[here], ends[here]))]
    starts = present = up = messages = None
    if loss.changing:
        starts, present = loss.starts, loss.present[:, first:end]
        up = loss.present[:, pairs].all(axis=2)
        messages = np.stack([2 * loss.present[:, network.edges(g)].all(axis=2).sum(axis=1) for g in pool], axis=1)
    code = (others * n + ends).reshape(2, -1).astype(np.uint64)
    return LossyLinks(
        rows, weights, code, here.astype(np.int32), (ends[here] - first).astype(np.int32), loss.key, loss.threshold,
        starts, present, up, messages, None if network.channel.perfect else network.channel,
    )  # fmt: skip


def _positions(nodes: np.ndarray, first: int, end: int, foreign: np.ndarray) -> np.ndarray:
    """Return the index of each node's row; 0 for nodes without a row here, whose links then have weight zero."""
    where = np.minimum(np.searchsorted(foreign, nodes), max(0, len(foreign) - 1))
    there = foreign[where] == nodes if len(foreign) else np.zeros(nodes.shape, dtype=bool)
    here = (nodes >= first) & (nodes < end)
    positions = np.where(here, nodes - first, np.where(there, where + end - first, 0))
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
        rows, columns = len(zeros), self.inner.width(zeros.shape[1])
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
        lossy, rule = network.lossy, self.rule
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
            inner = self.rule.change(inner, links.at_nodes(left - ledger, present.shape[0]))
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
    rule = method.rule._make(array[..., -columns:] for array in method.rule)
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
        rule = method.rule
        entries = ledger.reshape(-1, parts, columns)
        fields = rule.fields(entries)
        due = at_rest(type(state.inner)(*(fields[:, i] for i in range(fields.shape[1]))))
        ledger = rule.of(due).reshape(ledger.shape)
    return state._replace(inner=at_rest(state.inner), ledger=ledger)


MATRICES = 12
"""How many matrices a node has in memory at once in a step that uses Hessians."""


def as_run(method: Method, network: Network | DirectedNetwork, dim: int, first: int = 0, end: int = -1) -> Method:
    """Return the method for nodes first, ..., end - 1 of a network, with windows and ledgers if needed."""
    rows, width = (network.nodes if end < 0 else end) - first, method.width(dim)
    if width > dim:
        check_memory(
            f"{rows} nodes with matrices of {dim} x {dim} take",
            MATRICES * 8.0 * rows * dim**2,
            f"{plain(method).title} is for few coordinates: take a method that exchanges vectors, e.g. NIDS",
        )
    return with_ledgers(in_windows(method, network), network, dim, first, end)


def serving(network: LossyNetwork) -> str:
    """Name a method that runs on the network's links, and its parameters if it needs special ones."""
    latest = method_class("nids").latest or 1
    return "NIDS" if network.channel.mean_delay < latest else "ADOM with parameters='theory'"


def rule_on(method: Method, network: LossyNetwork) -> "Healing":
    """Return a method's conserved parts; refuse a method that cannot run on these links with any parameters."""
    inner, late = plain(method), network.channel.delay
    if late and network.window > 1 and not inner.singly:
        raise InputError(
            f"a step here is a window of {network.window} rounds, since single rounds do not connect the nodes, and it "
            "would have to wait for late messages; take the network without delay, or use repair=True"
        )
    if inner.directed:
        raise InputError(
            f"{inner.title} pushes shares along directed links and has no repair rule for imperfect ones; "
            f"take e.g. {serving(network)}"
        )
    from ..dynamics.healing import healing

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
    """Return the method with ledgers for the links of its nodes, if the network is lossy."""
    if not isinstance(network, LossyNetwork):
        return method
    rule, channel = rule_on(method, network), network.channel
    if not network.loss.healing:
        nothing = {"kept": rule.kept[:0], "onward": rule.onward[:0, :0]}
        rule = rule._replace(**nothing, taken=rule.taken[:0], lift=rule.lift[:, :0])
    links = len(local_pairs(network, first, network.nodes if end < 0 else end))
    vectors = rule.taken.shape[1]
    size = 2 * links * (rule.parts + 2 * channel.feedback * vectors) * method.width(dim) * 8
    if size > LEDGER_BYTES:
        raise InputError(
            f"the ledgers of {links} links would take {size / 2**30:.1f} GiB, more than {LEDGER_BYTES / 2**30:g}; "
            "take fewer nodes or features, or graphs with fewer links"
        )
    copies = np.zeros((2, 2, links, vectors)) if channel.feedback else None
    late = np.zeros((channel.delay + 1, vectors)) if channel.delay else None
    return OnLossyLinks(method, rule, np.zeros((2, links, rule.parts)), copies, late)
