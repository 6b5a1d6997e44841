"""Who is present: every agent repeats what it knows about all others, and the newest entry about each wins.

An agent is gone when its heartbeat, which everyone repeats, has not changed for long enough by the listener's own
clock; clocks of different machines are never compared. If a link is down, others may still hear the agent.
"""

from collections.abc import Iterable

from .wire import Member

LEFT = 3
"""Level of an agent that has said goodbye."""
READY, SURE = 1, 2
"""Levels before the end: the agent sees the tolerance met; it sees that all others see it too."""

LIVES = 3
"""How often an agent overrides newer entries about itself before it suspects another process."""


def _gist(member: Member) -> tuple[float, ...]:
    """Return the facts about a member whose changes all should hear soon."""
    return member.level, member.mu, member.L, member.data


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
        self._beaten = -float("inf")

    def beat(self, now: float) -> None:
        """Increase this agent's heartbeat, at most 20 times in `gone` seconds."""
        if now - self._beaten >= self.gone / 20:
            self._beaten = now
            self.own.beat += 1

    def learn(self, entries: Iterable[Member], now: float) -> None:
        """Take over entries newer than the known ones."""
        for entry in entries:
            if entry.name == self.own.name:
                self._hear_of_itself(entry)
                continue
            known = self._known.get(entry.name)
            if known is None or (entry.boot, entry.beat) > (known.boot, known.beat):
                self.novelties += known is None or _gist(entry) != _gist(known)
                self._known[entry.name] = entry
                self._moved[entry.name] = now

    def _hear_of_itself(self, entry: Member) -> None:
        """Override an entry from an earlier process that looks newer because the clock was set back since."""
        if entry.boot > self.own.boot:
            self.own.boot = entry.boot + 1
            self._outdone += 1
            self.impostor = self._outdone > LIVES  # too often: another process uses this name

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
        """Return the entries to tell a neighbour: this agent's, its own, and those changed within `gone` seconds."""
        told = (m for m in self._known.values() if m.name == to or now - self._moved[m.name] <= self.gone)
        return [self.own, *told]

    def extremes(self, now: float) -> tuple[float, float, int]:
        """Return the least mu, the greatest L and the number of the members present."""
        present = self.present(now)
        return min(m.mu for m in present), max(m.L for m in present), len(present)

    def tidy(self, now: float) -> None:
        """Forget members that have been gone for long."""
        for name in [name for name, moved in self._moved.items() if now - moved > 100 * self.gone]:
            del self._known[name], self._moved[name]
