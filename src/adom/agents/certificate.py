"""How far an answer is from the exact one: a bound that holds for any method, whatever went wrong before.

In a check, which all agents make from time to time, those present first post their answers, under the topic check/N of
the board. The mean of these is a point y that all
know. Then each posts the gradient of its function at y, and facts about its curvature there. With g the sum of the
gradients, H that of the Hessians, and d = x* - y the way to the exact answer of these agents:

- if the sum of the f_i is strongly convex with constant mu, then |d| <= |g| / mu;
- a Hessian changes along d by at most a factor exp(bend |d|), where bend is the greatest length of a sample (for
  logistic regression; 0 for least squares). So -g'd >= d'Hd (1 - exp(-bend |d|)) / (bend |d|). With u^2 = d'Hd, the
  Newton decrement s^2 = g' H^-1 g, and m the least eigenvalue of H this gives, if bend s < sqrt(m):
  u <= -log(1 - bend s / sqrt(m)) sqrt(m) / bend, and |d| <= u / sqrt(m). This needs no mu, and so no penalty, and it
  does not lose a factor of kappa.

Everything is measured at y: how it came about, and what the agents' states have been through, does not matter. The
gradients' own rounding is added to |g|. Each agent posts what its data are, so a bound is about data that all know of.

With more than `MOST_DIM` coordinates no Hessian is posted. If there are coordinates without a penalty, the intercepts,
their columns of the Hessian are: for the rest, what they leave of a positive semidefinite matrix is known.

Whoever hears of a new check joins it. Checks are frequent after a change of agents or data, and then rarer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from ..problems.minimiser import ULP
from ..problems.nearness import least_eigenvalues, within
from .board import Board, check_of
from .functions import Function

if TYPE_CHECKING:
    from .agent import Agent

Array = np.ndarray
MOST_DIM = 128
"""The most coordinates for which agents post their Hessians."""
HEAD = ("mark", "data", "samples", "mu", "bend", "reach", "unit", "noise")
"""Numbers at the beginning of a row about y."""

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


@dataclass(frozen=True)
class Certificate:
    """A bound on the distance of an answer from the exact one of some agents."""

    answer: Array
    distance: float  # |answer - x*| is at most this
    held: float  # the same for the answer that the centres of the intercepts lead to
    reach: float  # scores of samples are off by at most this times the distance
    unit: float  # in which scores are measured
    samples: dict[str, int]  # of each agent
    data: dict[str, int]  # fingerprints of their data


class Place:
    """What is the same at all agents: the coordinates without a penalty, and directions in which nothing changes."""

    def __init__(self, dim: int, free: Array | None = None, idle: Array | None = None, l2: float = 0.0) -> None:
        self.dim, self.l2 = dim, l2
        """`l2` is the penalty that holds the free coordinates near their centre, for each agent."""
        self.free = np.flatnonzero(np.zeros(dim) if free is None else free)
        self.idle = np.zeros((0, dim)) if idle is None else idle
        self.whole = dim <= MOST_DIM
        self.curvature = dim * (dim + 1) // 2 if self.whole else dim * len(self.free)
        self.size = len(HEAD) + 2 * dim + self.curvature
        """Length of a row about y."""

    def row(self, y: Array, aim: Function, held: Function, tilt: Array) -> Array:
        """Return what an agent posts about y.

        `aim` is its function; `held` includes a penalty on the intercepts, and `tilt` moves the centre of that.
        """
        facts = (aim.data, aim.samples, held.mu, aim.bend, aim.reach, aim.unit, aim.noise(y))
        H = aim.hessian(y)[np.triu_indices(self.dim)] if self.whole else aim.columns(y, self.free).ravel()
        with np.errstate(over="ignore", invalid="ignore"):
            parts = [np.array([mark(y), *facts]), aim.gradient(y), held.gradient(y) - tilt, H]
            row: Array = np.nan_to_num(np.concatenate(parts), nan=HUGE, posinf=HUGE, neginf=-HUGE)
            return row

    def least(self, curvatures: Array, penalty: float, held: float) -> tuple[Array, Array]:
        """Return lower bounds on the eigenvalues of the sum of Hessians, and its eigenvectors if they are known.

        `penalty` is on all but the free coordinates, `held` is added on the free ones.
        """
        if self.whole:
            H = np.zeros((self.dim, self.dim))
            H[np.triu_indices(self.dim)] = curvatures.sum(axis=0)
            H = H + np.triu(H, 1).T
            H[self.free, self.free] += held
            H = H + max(1.0, np.abs(H).max()) * self.idle.T @ self.idle
            return least_eigenvalues(H)
        columns = curvatures.sum(axis=0).reshape(self.dim, len(self.free)).copy()
        columns[self.free, range(len(self.free))] += held
        columns = columns + np.abs(columns).max(initial=1.0) * self.idle.T @ self.idle[:, self.free]
        return np.array([least_of(columns, self.free, penalty)]), np.zeros((0, self.dim))


HUGE = 1e200
"""What is posted in place of numbers that are not finite; no bound follows from it."""


def least_of(columns: Array, free: Array, penalty: float) -> float:
    """Return a lower bound on the eigenvalues of H, which is G + penalty on all but the free coordinates.

    G is positive semidefinite. So it is at least C S^-1 C', where C are its free columns, and S their free rows.

    Examples
    --------
    >>> H = np.array([[2.0, 1.0], [1.0, 3.0]])  # the second coordinate is free; the penalty is 0.5
    >>> round(least_of(H[:, 1:], np.array([1]), 0.5), 3), round(float(np.linalg.eigvalsh(H)[0]), 3)
    (0.442, 1.382)
    """
    if not free.size:
        return penalty
    others = np.delete(columns, free, axis=0)
    S = columns[free]
    c = np.linalg.qr(others, mode="r")
    values, vectors = np.linalg.eigh((S + S.T) / 2)
    if not values[0] > 0:
        return 0.0
    root = vectors / np.sqrt(values)
    tall = np.vstack([c, S]) @ root
    known = tall @ tall.T + np.diag([penalty] * len(c) + [0.0] * len(S))
    found = float(np.linalg.eigvalsh(known)[0]) - 32 * ULP * len(known) * float(np.abs(known).max())
    return max(0.0, min(found, penalty))


def certified(answers: dict[str, Array], rows: dict[str, Array], place: Place) -> Certificate | None:
    """Return the bound that follows from what agents posted; None if they have not all looked at the same point."""
    y, dim = middle(list(answers.values())), place.dim
    table = np.stack([rows[name] for name in answers])
    head = dict(zip(HEAD, table.T, strict=False))
    if (head["mark"] != mark(y)).any() or min(head["mu"].min(), head["bend"].min(), head["noise"].min()) < 0:
        return None
    g, p = table[:, len(HEAD) :][:, : 2 * dim].sum(axis=0).reshape(2, dim)
    noise = float(head["noise"].sum() + ULP * np.abs(table[:, len(HEAD) : len(HEAD) + 2 * dim]).sum())
    mu, bend = float(head["mu"].sum()), float(head["bend"].max())
    curvatures = table[:, len(HEAD) + 2 * dim :]
    values, vectors = place.least(curvatures, mu, len(rows) * place.l2)
    held = (float(np.linalg.norm(p)) + noise) / mu if mu > 0 else np.inf
    distance = held = min(held, within(p, noise, bend, np.maximum(values, mu), vectors))
    if place.free.size:
        distance = within(g, noise, bend, *place.least(curvatures, mu, 0.0))
    names = list(answers)
    samples, data = ([int(value) for value in head[key]] for key in ("samples", "data"))
    return Certificate(
        *(y, distance, held, float(head["reach"].max()), float(head["unit"].max())),
        dict(zip(names, samples, strict=True)),
        dict(zip(names, data, strict=True)),
    )


def middle(answers: Sequence[Array]) -> Array:
    """Return the mean of some answers, to the same bits on every machine."""
    return np.array([fsum(column) / len(answers) for column in np.stack(answers).T.tolist()])


def mark(y: Array) -> float:
    """Return a fingerprint of a point, as a number."""
    return float(int.from_bytes(blake2b(y.tobytes(), digest_size=6).digest(), "little"))


class Checks:
    """The checks of one agent.

    Parameters
    ----------
    agent : Agent
    board : Board
    """

    def __init__(self, agent: "Agent", board: Board) -> None:
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

    def step(self, now: float) -> list[tuple[str, bytes]]:
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
        """The numbers of the checks on the board."""
        return [number for topic in self._board.rows if (number := check_of(topic)) >= 0]
