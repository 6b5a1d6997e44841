"""What agents with shards agree on before their first round: columns, classes, means, scales and penalty.

`adom.data.preparing.agree` asks every node for some numbers, step by step, and waits for those of all. Here agents post
them on their board (`adom.agents.board`). They also agree on a group whose numbers count: of the agents present, the
first `nodes` by name. If one goes while they prepare, another takes its place, until all numbers of a group are posted.
Agents that come later, or come back, compute the same result from these numbers: scales, classes and penalty stay as
agreed.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..data.node_data import Wanted
from ..data.node_shards import NodeShard
from ..data.preparing import Agreed, agree
from ..errors import InputError
from ..util.checked_json import Damaged
from ..util.checked_npz import read_npz, write_npz
from .board import Array, Board, Group, topic_of

FORMAT = "adom-agreement-1"
Wait = Callable[[], object]
"""Exchanges messages for a moment."""


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
    wanted: Wanted, shard: NodeShard, board: Board, nodes: int, clock: Callable[[], float], wait: Wait
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


# The file that lets an agent start again without asking the others


def save_agreement(board: Board, path: Path) -> None:
    """Write the agreement to a file."""
    prefix = topic_of(board.group, 0).removesuffix("0")
    rows = [(t, name, row) for t, named in board.rows.items() if t.startswith(prefix) for name, row in named.items()]
    about: dict[str, Any] = {"format": FORMAT, "settings": board.settings}
    about |= {"group": [list(each) for each in board.group], "rows": [[topic, name] for topic, name, _ in rows]}
    write_npz(path, {f"row{i}": row for i, (_, _, row) in enumerate(rows)}, about)


def restore_agreement(board: Board, path: Path) -> bool:
    """Load an earlier agreement, if there is one; return whether there was."""
    try:
        arrays, about = read_npz(path)
        if about["format"] != FORMAT or about["settings"] != board.settings:
            raise InputError(f"{path} belongs to another problem; remove it, or choose another folder")
        for i, (topic, name) in enumerate(about["rows"]):
            board.post(topic, name, arrays[f"row{i}"])
        board.group = tuple((str(name), int(boot)) for name, boot in about["group"])
        board.settled = True
    except FileNotFoundError:
        return False
    except InputError:
        raise
    except (Damaged, LookupError, TypeError, ValueError, OSError) as error:
        raise InputError(f"{path} is not a valid agreement of agents ({error}); remove it to agree anew") from None
    return True
