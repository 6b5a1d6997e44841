"""Checks: from time to time all agents look at one point, the mean of their answers, and bound its error.

They post on the board: first their answers, under the topic check/N, then what they see at the mean, under check/N/at.
Whoever hears of a new check joins it. Checks are frequent after a change of agents or data, and then rarer.
"""

import numpy as np

from .agent import Agent
from .board import CHECK, Array, Board, Message
from .certificate import certified, middle

FIRST = 16
"""Rounds from the start, and from any change of agents or data, to the first check; and the fewest between two."""
SHARE = 8
"""The rounds between two checks are at least those since the last change divided by this."""
PAUSE = 0.1
"""The fewest seconds between two checks."""
SPARE = 6
"""The time between two checks is at least this many times what the last one took: many agents take longer."""
LONGEST_PAUSE = 10.0
"""But no longer than this, in seconds: it may have been one agent that was slow once."""


class Checks:
    """The checks of one agent.

    Parameters
    ----------
    agent : Agent
    board : Board
    """

    def __init__(self, agent: Agent, board: Board) -> None:
        self._agent, self._board = agent, board
        self._place = agent.place
        self._number, self._since, self._due = 0, 0, FIRST
        self._began, self._not_before = 0.0, -np.inf
        self._known: object = None

    def latest(self) -> Array | None:
        """Return the mean of the answers of the last check on the board; None if there is none."""
        for number in sorted(self._open, reverse=True):
            named = self._board.rows.get(f"check/{number}", {})
            answers = [row for row in named.values() if row.size == self._place.dim]
            if answers:
                return middle(answers)
        return None

    def step(self, now: float) -> list[Message]:
        """Take part in an open or due check, pass a new bound to the agent, and return the messages to send."""
        agent, board = self._agent, self._board
        present = {member.name: member.data for member in agent.members.present(now)}
        made = agent.counters.rounds  # the number of the round may be any that others have named
        if present != self._known:  # whatever was known is about others
            self._known, self._since, self._due = present, made, min(self._due, made + FIRST)
            self._not_before = min(self._not_before, now + PAUSE)
        board.last_check = max(self._number, agent.round // FIRST) + 2  # rounds are followed, so check numbers can be
        newest = max(self._open, default=-1)
        self._close(newest)
        topic = f"check/{self._number}"
        answers = board.rows.get(topic, {})
        if agent.name not in answers:
            if newest < self._number and (made < self._due or now < self._not_before):
                return board.greet(now) if board.behind else []  # who says what it has gets the rest
            self._began = now
            board.post(topic, agent.name, agent.x)
        self._look(topic, list(present), now)
        return board.greet(now)

    def _look(self, topic: str, present: list[str], now: float) -> None:
        """Post a row about the mean of the answers once all have posted theirs; certify once all rows are there."""
        agent, board, place = self._agent, self._board, self._place
        posted = board.rows.get(topic, {})
        if any(name not in posted or posted[name].size != place.dim for name in present):
            return
        answers = {name: posted[name] for name in present}
        rows = board.rows.get(f"{topic}/at", {})
        if agent.name not in rows:
            board.post(f"{topic}/at", agent.name, agent.about(middle(list(answers.values()))))
            rows = board.rows.get(f"{topic}/at", {})
        if any(name not in rows or rows[name].size != place.size for name in present):
            return
        with np.errstate(over="ignore", invalid="ignore"):
            found = certified(answers, {name: rows[name] for name in present}, place)
        if found is not None:
            agent.certify(found)
        made = agent.counters.rounds
        self._due = made + max(FIRST, (made - self._since) // SHARE)
        self._not_before = now + min(max(PAUSE, SPARE * (now - self._began)), LONGEST_PAUSE)
        self._close(self._number + 1)

    def _close(self, number: int) -> None:
        """Move on to check `number`; drop earlier ones except the last, which others may still ask for."""
        self._number = max(self._number, number)
        self._board.drop_checks(self._number - 1)

    @property
    def _open(self) -> list[int]:
        """The numbers of the checks on the board; other topics are skipped."""
        return [int(found[1]) for topic in self._board.rows if (found := CHECK.fullmatch(topic))]
