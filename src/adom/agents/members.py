"""Who is present, and when all may stop.

Every agent repeats what it knows about all others, and the newest entry about each wins.

An agent is gone when its heartbeat, which everyone repeats, has not changed for long enough by the listener's own
clock; clocks of different machines are never compared. If a link is down, others may still hear the agent.

What others say about an agent may be false. So an agent's own word counts more: whoever hears it directly ignores what
others say about it, and passes on to it whatever looks newer. The agent then outbids that, and its next entry replaces
the false one everywhere. Where that fails, the false entry stands still and is forgotten after a while.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from ..problems.minimiser import ULP
from .wire import LAST_COUNT, MOST_MEMBERS, Member

LEFT = 3
"""Level of an agent that has said goodbye."""
READY, SURE = 1, 2
"""Levels before the end: the agent sees the tolerance met; it sees that all others see it too."""

LIVES = 3
"""How often an agent overrides newer entries about itself before it suspects another process."""
TIDY = 10
"""An entry that has stood still for this many times `gone` is forgotten; any other one is believed then."""


def _gist(member: Member) -> tuple[float, ...]:
    """Return the facts about a member whose changes all should hear soon."""
    return member.level, member.mu, member.L, member.data


def _age(member: Member) -> tuple[int, int]:
    """Return what grows from one entry about an agent to the next."""
    return member.boot, member.beat


class Members:
    """What one agent knows about all.

    Parameters
    ----------
    own : Member
        This agent's entry, which nobody else changes.
    gone : float
        Seconds without a heartbeat after which an agent is gone.
    """

    def __init__(self, own: Member, gone: float) -> None:
        self.own, self.gone = own, gone
        self.novelties = 0  # counts changes that all should hear soon
        self.impostor = False  # whether another process uses this agent's name
        self._outdone = 0
        self._known: dict[str, Member] = {}
        self._moved: dict[str, float] = {}
        self._direct: dict[str, float] = {}  # when agents last spoke about themselves
        self._rumours: dict[str, Member] = {}  # newer entries about these agents, told by others
        self._beaten = -float("inf")

    def beat(self, now: float) -> None:
        """Increase this agent's heartbeat, at most 20 times in `gone` seconds."""
        if now - self._beaten >= self.gone / 20:
            self._beaten = now
            self.own.beat += 1

    def fits(self, entry: Member) -> bool:
        """Return whether double precision can solve a problem with this agent's constants and those of an entry."""
        return max(entry.L, self.own.L) * ULP <= min(entry.mu, self.own.mu)

    def learn(self, entries: Iterable[Member], now: float, sender: str = "") -> int:
        """Take over entries newer than the known ones, and the sender's own; return how many cannot be believed."""
        refused = 0
        for entry in entries:
            name, known = entry.name, self._known.get(entry.name)
            if name == self.own.name:
                self._hear_of_itself(entry)
                continue
            if not self.fits(entry) or (known is None and not self._room(name == sender)):
                refused += 1
                continue
            if name == sender:
                self._direct[name] = now
                newest = max(self._rumours.pop(name, entry), known or entry, key=_age)
                if _age(newest) > _age(entry):
                    self._rumours[name] = newest
            elif entry.level >= LEFT or (known is not None and _age(entry) <= _age(known)):
                continue  # only an agent itself says goodbye; those far away see it stand still
            elif now - self._direct.get(name, -np.inf) <= self.gone:
                self._rumours[name] = max(entry, self._rumours.get(name, entry), key=_age)
                continue
            if known is None or _age(entry) != _age(known):
                self.novelties += known is None or _gist(entry) != _gist(known)
                self._known[name], self._moved[name] = entry, now
        return refused

    def _room(self, direct: bool) -> bool:
        """Return whether one more entry fits; a neighbour takes the place of the latest hearsay.

        Agents that are gone keep theirs for a while: forgotten too soon, they would be learned anew from others.
        """
        full = len(self._known) >= MOST_MEMBERS - 1
        latest = next((name for name in reversed(self._known) if name not in self._direct), None)
        if full and direct and latest is not None:
            self._forget(latest)
            return True
        return not full

    def _forget(self, name: str) -> None:
        for table in (self._known, self._moved, self._direct, self._rumours):
            table.pop(name, None)

    def _hear_of_itself(self, entry: Member) -> None:
        """Outbid an entry that looks newer: a false one, or one of an earlier process before the clock was set back."""
        own = self.own
        if _age(entry) <= _age(own):
            return
        if entry.boot > own.boot:
            self._outdone += 1
            self.impostor = self._outdone > LIVES  # too often: another process uses this name
        if own.boot < entry.boot < LAST_COUNT - 1:
            own.boot = entry.boot + 1
        elif entry.beat < LAST_COUNT - 1:
            own.boot, own.beat = entry.boot, entry.beat + 1
        elif entry.boot < LAST_COUNT - 1:
            own.boot = entry.boot + 1

    def present(self, now: float) -> list[Member]:
        """Return the members present, including this one, sorted by name."""
        others = (m for m in self._known.values() if self.here(m.name, now))
        return sorted([self.own, *others], key=lambda member: member.name)

    def here(self, name: str, now: float) -> bool:
        """Return whether a member is known and not gone."""
        known = self._known.get(name)
        return known is not None and known.level < LEFT and now - self._moved[name] <= self.gone

    def boot(self, name: str) -> int:
        """Return when the process of a member began, as it says; 0 if it is not known."""
        return self._known[name].boot if name in self._known else 0

    def left(self, name: str) -> bool:
        """Return whether a member has said goodbye."""
        return name in self._known and self._known[name].level == LEFT

    def news(self, now: float, to: str) -> list[Member]:
        """Return the entries to tell a neighbour: this agent's, the neighbour's, and those changed within `gone` s."""
        told = (m for m in self._known.values() if m.name == to or now - self._moved[m.name] <= self.gone)
        return [self.own, *(self._rumours.get(to, m) if m.name == to else m for m in told)]

    def extremes(self, now: float) -> tuple[float, float, int]:
        """Return the least mu, the greatest L and the number of the members present."""
        present = self.present(now)
        most = max(m.L for m in present)
        return max(min(m.mu for m in present), ULP * most), most, len(present)

    def tidy(self, now: float) -> None:
        """Forget members that have been gone for long."""
        for name in [name for name, moved in self._moved.items() if now - moved > TIDY * self.gone]:
            self._forget(name)


def agree(own: Member, present: Sequence[Member], distance: float, tol: float) -> bool:
    """Update this agent's level from a bound on every |x_i - x*|; return whether the agent may stop."""
    if own.level < SURE:
        before, own.level = own.level, READY if len(present) * distance**2 <= tol else 0
        if own.level and all(member.level >= READY for member in present):
            own.level = SURE
        own.beat += own.level != before  # others accept a changed entry only with a newer heartbeat
    return all(member.level >= SURE for member in present)
