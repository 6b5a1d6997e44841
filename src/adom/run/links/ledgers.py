"""Methods on lossy networks: a run's state holds the ledgers of all links, and absent nodes are reset to the start.

`adom.dynamics.healing` explains the rule. Here all nodes' ledgers are one array. The method's own step runs on a
network that only makes the exchanges of messages that arrived.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...algorithms import Gossip, Method, Oracle
from ...algorithms.nids import NIDS
from ...dynamics.healing import Healing, healing
from ...dynamics.wrapping import Wrapped, plain
from ...errors import InputError
from ...networks import DirectedNetwork, LossyNetwork, Network
from ..windows import in_windows
from .lossy_links import LossyLinks, own_pairs

Array = Any
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
    return "NIDS" if network.channel.mean_delay < NIDS.latest else "ADOM with parameters='theory'"


def rule_on(method: Method, network: LossyNetwork) -> Healing:
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
    size = 2 * links * (rule.parts + 2 * channel.feedback * vectors) * method.width(dim) * 8
    if size > LEDGER_BYTES:
        raise InputError(
            f"the ledgers of {links} links would take {size / 2**30:.1f} GiB, more than {LEDGER_BYTES / 2**30:g}; "
            "take fewer nodes or features, or graphs with fewer links"
        )
    copies = np.zeros((2, 2, links, vectors)) if channel.feedback else None
    late = np.zeros((channel.delay + 1, vectors)) if channel.delay else None
    return OnLossyLinks(method, rule, np.zeros((2, links, rule.parts)), copies, late)
