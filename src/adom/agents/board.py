"""A board that every agent has a copy of: rows of numbers by topic and name, passed on until everybody has them.

A posted row never changes. So two neighbours bring their copies in line by sending each other the rows that the other
lacks, and later messages make up for lost ones. A message is a header, words in JSON and at most one row; all of it is
checked before use.

A topic is a step of the preparation of a group of agents, or a check. A board takes from a neighbour only rows of its
own group, of the group that the neighbour counts, and of checks that can be, and not more of them than memory allows.
Rows of groups that nobody counts any more are dropped, as is what a neighbour said last if it has been silent for long.
"""

import re
import struct
from typing import Annotated, Any
from zlib import crc32

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .members import Members
from .wire import (
    FLOAT,
    LAST_COUNT,
    MOST_MEMBERS,
    NAME,
    STRANGER,
    Member,
    RefusedError,
    header,
    mark_of,
    note_refusal,
    numbers,
)

Array = np.ndarray
Message = tuple[str, bytes]
Group = tuple[tuple[str, int], ...]
"""Names of agents and when their processes began."""
MAGIC = b"ADOB"
VERSION = 1
HEADER = struct.Struct("<4sH8sI")
CHECK = re.compile("check/(0|[1-9][0-9]{0,14})(/at)?")
MOST_TOPICS = 64
"""The most topics in one list of what a board has."""
MOST_CHECKS = 4
"""The most checks whose rows are kept from neighbours: the latest."""
MOST_STEPS = 32
"""Steps of a preparation are fewer than this."""
MOST_HELD = 2**28
"""The most bytes of rows that a board takes from one neighbour, counted anew when topics are dropped."""
MOST_WORDS = 2**22
"""The most bytes of words in a message."""
AT_ONCE = 2**22
"""Bytes of rows after which no more go to a neighbour at once."""
EVERY = 0.03
"""Seconds between two greetings to all neighbours."""

Name = Annotated[str, Field(pattern=f"^{NAME.pattern}$")]
Topic = Annotated[str, Field(max_length=40, pattern="^[0-9a-z/]*$")]
Names = Annotated[list[Name], Field(max_length=MOST_MEMBERS)]
Count = Annotated[int, Field(ge=0, lt=LAST_COUNT)]


class Words(BaseModel):
    """What a message says beside its row.

    Attributes
    ----------
    present : list
        Name, start and heartbeat of all agents present, as the sender knows.
    group, settled
        Agents whose rows the sender counts, and whether it has them all.
    have : dict, optional
        The names under each topic of the sender's board.
    topic, name : str
        The place of the row.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    present: Annotated[list[tuple[Name, Count, Count]], Field(max_length=MOST_MEMBERS)]
    group: Annotated[list[tuple[Name, Count]], Field(max_length=MOST_MEMBERS)]
    settled: bool
    have: Annotated[dict[Topic, Names], Field(max_length=MOST_TOPICS)] | None = None
    topic: Topic = ""
    name: Name | None = None


def pack(words: Words, row: Array | None, mark: bytes) -> bytes:
    """Return a message as bytes."""
    text = words.model_dump_json(exclude_defaults=True).encode()
    values = b"" if row is None else np.ascontiguousarray(row, dtype=FLOAT).tobytes()
    return HEADER.pack(MAGIC, VERSION, mark, len(text)) + text + values


def parse(data: bytes, mark: bytes) -> tuple[Words, Array]:
    """Read a message; raise `RefusedError` if it is damaged or comes from an agent with other settings."""
    theirs, length = header(data, HEADER, MAGIC, VERSION)
    if theirs != mark:
        raise RefusedError("problem", "a neighbour with another [problem]: use the same settings")
    at = HEADER.size + length
    if length > MOST_WORDS or at > len(data) or (len(data) - at) % 8:
        raise RefusedError("truncated", f"a message of {len(data)} bytes that ends early")
    try:
        words = Words.model_validate_json(data[HEADER.size : at])
    except ValidationError:
        raise RefusedError("shape", "a message whose JSON is not that of a board") from None
    return words, numbers(data, at)


def topic_of(group: Group, step: int) -> str:
    """Return the topic for a step of a group's preparation."""
    return f"{crc32(repr(group).encode()):08x}/{step}"


def _steps_of(group: Group) -> str:
    """Return what the topics of a group's preparation begin with."""
    return topic_of(group, 0).removesuffix("0")


def check_of(topic: str) -> int:
    """Return the number of the check that a topic belongs to; -1 for any other topic."""
    found = CHECK.fullmatch(topic)
    return -1 if found is None else int(found[1])


class Board:
    """The board of one agent.

    Parameters
    ----------
    own : Member
        This agent's name and start.
    neighbours : sequence of str
    settings : str
        Settings that all must have alike, as text.
    gone : float
        Seconds after which a silent agent is gone.
    """

    def __init__(self, own: Member, neighbours: Any, settings: str, gone: float) -> None:
        self.members, self.neighbours, self.settings = Members(own, gone), list(neighbours), settings
        self.rows: dict[str, dict[str, Array]] = {}
        self.group: Group = ()
        self.settled = False
        self.told: dict[str, tuple[Group, bool]] = {}  # the group of each neighbour, and whether it is settled
        self.last_check = 2**40  # the greatest number of a check that can be; who makes checks knows better
        self._heard: dict[str, float] = {}  # when neighbours were last heard
        self._held: dict[str, int] = {}  # bytes of rows that came from each neighbour
        self._mark = mark_of(settings)
        self._have: dict[str, tuple[float, dict[str, set[str]]]] = {}  # what each neighbour has, and when it said so
        self._first_check = 0  # earlier ones are over
        self.behind = False  # whether a neighbour has rows of a check that this board lacks
        self._due = -np.inf
        self.refused: dict[str, int] = {}  # number of messages by kind of refusal
        self.refusals: list[str] = []  # lines for the log

    @property
    def name(self) -> str:
        """The name of this agent."""
        return self.members.own.name

    def post(self, topic: str, name: str, row: Array) -> None:
        """Post a row, unless the name has one or the topic was dropped."""
        if not self._over(topic):
            self.rows.setdefault(topic, {}).setdefault(name, np.array(row, dtype=float))

    def _take(self, sender: str, words: Words, row: Array) -> None:
        """Post a neighbour's row, if it can be one."""
        topic, name, held = words.topic, words.name, self._held.get(sender, 0) + row.nbytes
        if name is None or name in self.rows.get(topic, {}) or self._over(topic) or not self._can_be(words):
            return
        if held > MOST_HELD:
            raise RefusedError("memory", f"more than {MOST_HELD / 2**20:.0f} MiB of rows from one neighbour")
        self._held[sender] = held
        self.post(topic, name, row)
        checks = {topic: check_of(topic) for topic in self.rows if check_of(topic) >= 0}
        latest = sorted(set(checks.values()))[-MOST_CHECKS:]
        for old, number in checks.items():
            if number < latest[0] and self.name not in self.rows[old]:
                del self.rows[old]

    def _can_be(self, words: Words) -> bool:
        """Return whether there can be a row of such a topic and name."""
        check = check_of(words.topic)
        if check >= 0:
            return check <= self.last_check and words.name != self.name
        for group in (self.group, tuple(words.group)):
            step = words.topic.removeprefix(_steps_of(group))
            if step != words.topic and step.isdigit() and int(step) < MOST_STEPS:
                return any(name == words.name for name, _ in group)
        return False

    def _tidy(self, now: float) -> None:
        """Forget what neighbours said that have been silent for long, and the rows of groups that nobody counts."""
        self.members.tidy(now)
        for name, heard in list(self._heard.items()):
            if now - heard > self.members.gone:
                for table in (self._heard, self.told, self._have):
                    table.pop(name, None)
        counted = tuple(_steps_of(group) for group in (self.group, *(group for group, _ in self.told.values())))
        old = [t for t in self.rows if not t.startswith(counted) and check_of(t) < 0]
        for topic in old:
            del self.rows[topic]
        if old:
            self._held.clear()

    def _over(self, topic: str) -> bool:
        return 0 <= check_of(topic) < self._first_check

    def drop_checks(self, before: int) -> None:
        """Remove all checks before this one for good."""
        self._first_check = max(self._first_check, before)
        for topic in [topic for topic in self.rows if self._over(topic)]:
            del self.rows[topic]
            self._held.clear()

    def greet(self, now: float) -> list[Message]:
        """Return greetings to all neighbours, if due: who is present, and which rows this board has."""
        if now < self._due:
            return []
        self._due, self.behind = now + EVERY, False
        self.members.beat(now)
        self._tidy(now)
        mine = _steps_of(self.group)
        topics = sorted(self.rows, key=lambda topic: not topic.startswith(mine))[:MOST_TOPICS]
        have = {topic: sorted(self.rows[topic]) for topic in topics}
        return [(to, pack(self._words(now, to, have=have), None, self._mark)) for to in self.neighbours]

    def hear(self, sender: str, data: bytes, now: float) -> list[Message]:
        """Take in a message, or count it as refused; return messages with the rows that its sender lacks."""
        try:
            if sender not in self.neighbours:
                raise RefusedError("stranger", STRANGER)
            words, row = parse(data, self._mark)
            self._heard[sender], self.told[sender] = now, (tuple(words.group), words.settled)
            self._take(sender, words, row)
        except RefusedError as error:
            note_refusal(error, sender, self.refused, self.refusals)
            return []
        self.members.learn([Member(name, boot, beat, 1.0, 1.0) for name, boot, beat in words.present], now, sender)
        if words.have is None:
            return []
        self.behind |= any(self._lacks(topic, names) for topic, names in words.have.items())
        self._have[sender] = now, {topic: set(words.have.get(topic, ())) for topic in self.rows}
        answers, size = [], 0
        for topic, name in self._lacking(self._have[sender][1]):
            if size < AT_ONCE:
                message = pack(self._words(now, sender, topic=topic, name=name), self.rows[topic][name], self._mark)
                answers.append((sender, message))
                size += len(message)
        return answers

    def _words(self, now: float, to: str, **more: Any) -> Words:
        present = [(m.name, m.boot, m.beat) for m in self.members.news(now, to)]
        return Words(present=present, group=list(self.group), settled=self.settled, **more)

    def _lacks(self, topic: str, names: list[str]) -> bool:
        """Return whether some of these are rows of a check that is not over, and not on this board."""
        here = self._first_check <= check_of(topic) <= self.last_check
        return here and not set(names) <= self.rows.get(topic, {}).keys()

    def _lacking(self, have: dict[str, set[str]]) -> list[tuple[str, str]]:
        """Return topic and name of the rows that another board lacks."""
        return [(topic, name) for topic, rows in self.rows.items() for name in rows if name not in have.get(topic, ())]

    def alike(self, now: float, lately: float) -> bool:
        """Return whether every neighbour heard within `lately` seconds has all rows of this board."""
        return not any(self._lacking(have) for heard, have in self._have.values() if now - heard <= lately)
