"""A bound on the error for any method: all post an answer and its gradient, and add up what they hear.

Let x_i be an answer of agent i, g_i the gradient of its f_i there, and y the mean of the x_i. At y the gradient of the
sum of all f_i is the sum of the g_i, up to L_i |x_i - y| for each i, and the sum is strongly convex with constant
sum mu_i. So |y - x*| is at most (|sum g_i| + sum L_i |x_i - y|) / sum mu_i, for any method, even with posts of
different rounds. A dual method has a bound without posts (`adom.agents.agreement`). With any other, agents post on the
board whenever the number of rounds has grown by an eighth, and whoever hears of a new check joins it.
"""

import re
from collections.abc import Sequence

import numpy as np

from .agent import Agent
from .board import Board, Message
from .wire import Member

Array = np.ndarray
FIRST = 64
"""Rounds before the first check, and the fewest between two checks."""
CHECK = re.compile("check/([0-9]{1,15})")
"""The topic of a check."""
SHARE = 8
"""The rounds between two checks are at least the rounds so far divided by this."""


def certified(rows: Sequence[Array], present: Sequence[Member]) -> float:
    """Return a bound on |x_i - x*| for every agent; a row is an answer and its gradient.

    Examples
    --------
    >>> two = [Member(name, 1, 1, mu=1.0, L=1.0) for name in "ab"]  # f_i = (x - i)^2 / 2 of i = 0, 1
    >>> round(certified([np.array([0.4, 0.4]), np.array([0.4, -0.6])], two), 9)  # the minimiser is 0.5
    0.1
    """
    x, g = np.split(np.stack(rows), 2, axis=1)
    away = np.linalg.norm(x - x.mean(axis=0), axis=1)
    slope = float(np.linalg.norm(g.sum(axis=0))) + sum(m.L * each for m, each in zip(present, away, strict=True))
    return float(slope / sum(m.mu for m in present) + away.max())


class Checks:
    """The checks of one agent.

    Parameters
    ----------
    agent : Agent
    board : Board
    """

    def __init__(self, agent: Agent, board: Board) -> None:
        self._agent, self._board = agent, board
        self._number, self._due = 0, FIRST
        self._posted, self._function = agent.x, agent.function
        self.answer = agent.x  # the last answer with a bound

    def step(self, now: float) -> list[Message]:
        """Take part in an open or due check, pass a new bound to the agent, and return the messages to send."""
        agent, board = self._agent, self._board
        newest = max(self._open, default=-1)
        self._close(newest)
        topic = f"check/{self._number}"
        if agent.name not in board.rows.get(topic, {}):
            if newest < self._number and agent.round < self._due:
                return []
            self._posted, self._function = agent.x.copy(), agent.function
            board.post(topic, agent.name, np.append(agent.x, agent.function.gradient(agent.x)))
        present = agent.members.present(now)
        rows = [board.rows[topic].get(member.name) for member in present]
        known = [row for row in rows if row is not None and row.size == 2 * agent.form.dim]
        if len(known) == len(present):
            if self._function is agent.function:
                agent.certify(certified(known, present), [member.name for member in present])
                self.answer = self._posted
            self._due = agent.round + max(FIRST, agent.round // SHARE)
            self._close(self._number + 1)
        return board.greet(now)

    def _close(self, number: int) -> None:
        """Move on to check `number`; drop earlier ones except the last, which others may still ask for."""
        self._number = max(self._number, number)
        for old in self._open:
            if old < self._number - 1:
                self._board.drop(f"check/{old}")

    @property
    def _open(self) -> list[int]:
        """The numbers of the checks on the board; other topics are skipped."""
        return [int(found[1]) for topic in self._board.rows if (found := CHECK.fullmatch(topic))]
