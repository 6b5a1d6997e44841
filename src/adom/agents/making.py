"""Build an agent from its settings: data, function, method and the form of its messages.

Agents with shards agree on some things before their first round: columns, classes, means, scales and penalty.
`adom.data.preparing.agree` asks every node for some numbers, step by step, and waits for those of all. Here agents post
them on their board (`adom.agents.board`). They also agree on a group whose numbers count: of the agents present, the
first `nodes` by name. If one goes while they prepare, another takes its place, until all numbers of a group are posted.
Agents that come later, or come back, compute the same result from these numbers: scales, classes and penalty stay as
agreed.
"""

import json
import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ..algorithms import method_class
from ..data.node_data import ModelSettings
from ..data.node_shards import MOST_LABELS, NodeShard, open_shard
from ..data.preparing import Agreed, agree
from ..dynamics.policy import WideOracle
from ..errors import InputError
from ..problems.losses import LOSSES
from ..problems.samples import dense
from .agent import Agent
from .auto import Auto, Settings
from .board import MOST_WORDS, Board, Group, topic_of
from .configuration import AgentConfig
from .functions import HELD, AgentOracle, Function, Intercepts, from_samples
from .rows import AgentRows
from .wire import Form, Member, mark_of, most_bytes

Array = np.ndarray
LARGEST = 2**28
"""The most bytes of any message between agents with shards."""
SHORT = 40
"""Bytes that a label of another shard may have in any case."""
MANY = 8
"""All shards together may have this many times the classes of one."""
VECTORS, WINDOW = 4, 64
"""At least as many as any method sends in a round, and as there are canaries."""
Wait = Callable[[], object]
"""Exchanges messages for a moment."""


def read_function(config: AgentConfig) -> Function:
    """Return the function of an agent whose samples are in a file."""
    from ..data.sample_files import read

    features, labels = read(config.data, features=config.dim)
    features = dense(features) if features.shape[1] <= HELD else features
    return from_samples(config.kind, features, labels, config.l2_of_file, config.count, config.classes)


def make_agent(config: AgentConfig, function: Function, agreed: Agreed | None = None, group: Group = ()) -> Agent:
    """Return the agent of a configuration; `agreed` and `group` are of a shard that was prepared with other agents."""
    cls = method_class(config.method)
    oracle: Any = AgentOracle(function, config.exact)
    settings: Settings = Settings(cls, config.chi, config.mu, config.L)
    if config.chi is None:
        settings = Auto(cls, function, zlib.crc32(config.name.encode()))
        oracle = WideOracle(oracle, np.ones((1, settings.canaries)))
    width = function.dim + settings.canaries
    rows = AgentRows(settings.method(function.mu, function.L, 1), oracle, width)
    problem = config.problem
    if agreed is not None:
        problem += f" agreed by {', '.join(agreed.names)} ({mark_of(repr(group)).hex()})"
    form = Form(problem, config.method, function.dim, width, cls.vectors_per_round, rows.parts)
    own = Member(config.name, time.time_ns(), 0, function.mu, function.L)
    intercepts = Intercepts(agreed) if agreed is not None and agreed.column else None
    given = (config.neighbours, config.patience, config.gone, intercepts)
    return Agent(own, rows, form, settings, function, *given)


def largest_message(kind: str, shard: NodeShard) -> int:
    """Return the most bytes of a message between agents with shards, before they know the classes of all."""
    features, labels = len(shard.facts.features), shard.classes() if LOSSES[kind].classes else []
    words = len(json.dumps([shard.facts.features, shard.facts.target]))
    label = max((len(json.dumps(each)) for each in labels), default=0)
    row = max(2 * words, features, (MOST_LABELS + 1) * max(SHORT, 2 * label))  # a letter of a text is a number, too
    coefficients = (features + 1) * max(1, min(MOST_LABELS, MANY * len(labels)))
    rounds = most_bytes(Form("", "", coefficients, coefficients + WINDOW, VECTORS, VECTORS))
    return min(LARGEST, max(MOST_WORDS + 8 * row, 2 * rounds))


def describe(config: AgentConfig) -> dict[str, Any]:
    """Read the data of an agent and its certificate; return the facts that need no other agent."""
    if config.shard is not None:
        shard = open_shard(config.shard)
        classes = {"classes": shard.classes()} if LOSSES[config.kind].classes else {}
        facts = {"samples": shard.facts.samples, "features": len(shard.facts.features), "target": shard.facts.target}
        about = {"name": config.name, **facts, **classes}
    else:
        made = make_agent(config, read_function(config))
        about = {"name": made.name, "mu": made.members.own.mu, "L": made.members.own.L, "dim": made.form.dim}
    about |= {"neighbours": dict(config.neighbours), "tls": config.keys is not None}
    if config.keys is not None:
        from .keys import KeyCertificate

        about["certificate_until"] = KeyCertificate(config.name, config.keys).end.isoformat()
    return about


# Preparing data together


class _OtherGroup(Exception):  # noqa: N818  # not an error
    """The group whose numbers count has changed."""


class _Posted:
    """Exchange of numbers among all nodes by way of the board: see `adom.data.preparing.Links`."""

    def __init__(self, board: Board, nodes: int, clock: Callable[[], float], wait: Wait) -> None:
        self._board, self._nodes, self._clock, self._wait = board, nodes, clock, wait
        self._group, self._step = board.group, 0

    def everyone(self, values: Array) -> Array:
        """Post this agent's row if it is in the group; wait for all rows of the group and return them."""
        board, group = self._board, self._group
        topic = topic_of(group, self._step)
        self._step += 1
        if (board.name, board.members.own.boot) in group:
            board.post(topic, board.name, values[0])
        names = [name for name, _ in group]
        while any(name not in board.rows.get(topic, {}) for name in names):
            self._wait()
            if choose(board, self._nodes, self._clock()) != group:
                raise _OtherGroup
        rows = [board.rows[topic][name] for name in names]
        if len({row.size for row in rows}) > 1:
            raise InputError("agents prepare their data in different ways; install the same version of adom everywhere")
        return np.stack(rows)


def choose(board: Board, nodes: int, now: float) -> Group:
    """Return the group whose numbers count: a settled one, else one with all first numbers posted, else a new one.

    It is empty while too few agents are present.
    """
    if board.settled:
        return board.group
    settled = [group for group, done in board.told.values() if done and group and _begun(board, group)]
    if settled:
        return min(settled)
    present = {member.name: member.boot for member in board.members.present(now)}
    for group in sorted({board.group, *(group for group, _ in board.told.values())} - {()}):
        if _begun(board, group) and all(present.get(name) == boot for name, boot in group):
            return group
    return tuple(sorted(present.items())[:nodes]) if len(present) >= nodes else ()


def _begun(board: Board, group: Group) -> bool:
    """Return whether the board has the first numbers of all agents of a group."""
    begun = board.rows.get(topic_of(group, 0), {})
    return all(name in begun for name, _ in group)


def prepare(
    wanted: ModelSettings, shard: NodeShard, board: Board, nodes: int, clock: Callable[[], float], wait: Wait
) -> Agreed:
    """Agree with the others; return what they agreed on."""
    while True:
        board.group = choose(board, nodes, clock())
        if not board.group:
            wait()
            continue
        try:
            agreed = agree(wanted, [shard], _Posted(board, nodes, clock, wait))
        except _OtherGroup:
            continue
        except InputError:
            end = clock() + board.members.gone
            while clock() < end and not board.alike(clock(), board.members.gone / 4):
                wait()  # so that all get the rows that led to this refusal
            raise
        board.settled = True
        return agreed
