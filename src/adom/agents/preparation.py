"""What agents agree on before their first round, where their data are shards: columns, classes, means, scales, penalty.

`adom.data.preparing.agree` asks every node for some numbers, step by step, and goes on when it has those of all. Here
they are posted on the board of `adom.agents.board`. Who "all" are is agreed on as well: the first agents by name, as
many as `nodes` says, of those who are there. While they prepare, somebody may go, and others take its place; what
counts in the end is a group all of whose numbers are there. Whoever comes later, or comes back, finds the same numbers
on the board and comes to the same result, without a say in it: scales, classes and penalty stay as they were agreed on.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from ..data.node_data import Wanted
from ..data.node_shards import NodeShard
from ..data.preparing import Agreed, agree
from ..errors import InputError
from ..util.checked_json import Damaged
from ..util.checked_npz import read_npz, write_npz
from .board import Array, Board, Group

FORMAT = "adom-agreement-1"
Wait = Callable[[], object]
"""Lets messages come and go for a moment."""


class _OtherGroup(Exception):  # noqa: N818  # no error: others do it
    """The agents whose numbers count are others than before."""


class _Posted:
    """The way from every node to every other, over the board: see `adom.data.preparing.Links`."""

    def __init__(self, board: Board, nodes: int, clock: Callable[[], float], wait: Wait) -> None:
        self._board, self._nodes, self._clock, self._wait = board, nodes, clock, wait
        self._group, self._step = board.group, 0

    def everyone(self, values: Array) -> Array:
        """Return the rows of all in the group, once they are there; post one's own if one is in it."""
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


def topic_of(group: Group, step: int) -> str:
    """Return the topic of a step of a group."""
    return f"{crc32(repr(group).encode()):08x}/{step}"


def choose(board: Board, nodes: int, now: float) -> Group:
    """Return the group whose numbers count: one that has settled, one whose first numbers are all there, or a new one.

    Empty while too few are there.
    """
    if board.settled:
        return board.group
    settled = [group for group, done in board.told.values() if done and group]
    if settled:
        return min(settled)
    present = {member.name: member.boot for member in board.members.present(now)}
    for group in sorted({board.group, *(group for group, _ in board.told.values())} - {()}):
        begun = board.rows.get(topic_of(group, 0), {})
        if all(present.get(name) == boot and name in begun for name, boot in group):
            return group
    return tuple(sorted(present.items())[:nodes]) if len(present) >= nodes else ()


def prepare(
    wanted: Wanted, shard: NodeShard, board: Board, nodes: int, clock: Callable[[], float], wait: Wait
) -> Agreed:
    """Agree with the others; return what all know alike."""
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
                wait()  # so that all hear what this refusal rests on
            raise
        board.settled = True
        return agreed


# The file, so that an agent that starts again need not ask


def save_agreement(board: Board, path: Path) -> None:
    """Write what was agreed on."""
    prefix = topic_of(board.group, 0).removesuffix("0")
    rows = [(t, name, row) for t, named in board.rows.items() if t.startswith(prefix) for name, row in named.items()]
    about: dict[str, Any] = {"format": FORMAT, "settings": board.settings}
    about |= {"group": [list(each) for each in board.group], "rows": [[topic, name] for topic, name, _ in rows]}
    write_npz(path, {f"row{i}": row for i, (_, _, row) in enumerate(rows)}, about)


def restore_agreement(board: Board, path: Path) -> bool:
    """Go on from what was agreed on earlier, if it was; return whether it was."""
    try:
        arrays, about = read_npz(path)
        if about["format"] != FORMAT or about["settings"] != board.settings:
            raise InputError(f"{path} is of another problem; remove it, or choose another folder")
        for i, (topic, name) in enumerate(about["rows"]):
            board.post(topic, name, arrays[f"row{i}"])
        board.group = tuple((str(name), int(boot)) for name, boot in about["group"])
        board.settled = True
    except FileNotFoundError:
        return False
    except InputError:
        raise
    except (Damaged, LookupError, TypeError, ValueError, OSError) as error:
        raise InputError(f"{path} is no agreement of agents ({error}); remove it to agree anew") from None
    return True
