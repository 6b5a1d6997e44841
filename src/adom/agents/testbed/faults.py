"""Events that happen to a swarm, from a script or at random.

A script has one event a line: seconds since the start, event, names. `#` begins a comment.

    2.0 cut n0 n1
    3.5 restore n0 n1
    4.0 kill n2
    6.0 start n2
    5.0 pause n3
    5.8 continue n3
    7.0 data n0
    9.0 leave n1

`kill` ends an agent without warning, `leave` lets it say goodbye, and `data` gives it other samples.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import numpy as np

from ...errors import InputError, nearest
from ...util import files
from .processes import Link, Swarm

ENDS = {"cut": 2, "restore": 2, "kill": 1, "start": 1, "pause": 1, "continue": 1, "leave": 1, "data": 1}
"""Events, and how many agents they name."""
EVERY = 0.5
"""Seconds from one random event to the next."""


class Event(NamedTuple):
    """One event."""

    seconds: float
    what: str
    names: tuple[str, ...]


def read_script(path: Path, names: list[str]) -> list[Event]:
    """Read a script; return its events in order of time."""
    events = []
    for number, line in enumerate(files.text(path, "expected a script of events", files.SETTINGS).splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            seconds, what, ends = float(words[0]), words[1], tuple(words[2:])
        except (ValueError, IndexError):
            raise InputError(f"{path}, line {number}: expected SECONDS EVENT NAME..., such as 2.5 kill n1") from None
        if what not in ENDS:
            raise InputError(f"{path}, line {number}: unknown event {what!r}; {nearest(what, ENDS)}")
        if len(ends) != ENDS[what] or not set(ends) <= set(names) or not 0 <= seconds < 1e9:
            raise InputError(
                f"{path}, line {number}: {what} takes {ENDS[what]} of {', '.join(names[:9])}, after 0 s or more; got "
                f"{' '.join(ends) or 'none'}"
            )
        events.append(Event(seconds, what, ends))
    return sorted(events, key=lambda event: event.seconds)


def random_events(names: list[str], links: list[Link], seed: int, seconds: float) -> Iterator[Event]:
    """Yield random events up to a time: links cut and restored, agents killed and restarted, paused and continued.

    The agents not killed stay connected; at the end everything is restored.
    """
    rng, now = np.random.default_rng(seed), 0.0
    cut: list[Link] = []
    dead: list[str] = []
    held: list[str] = []
    while now + 2 * EVERY < seconds:
        now += EVERY * float(rng.uniform(0.5, 1.5))
        choice = rng.random()
        if held and choice < 0.5:
            yield Event(now, "continue", (held.pop(),))
        elif cut and choice < 0.35:
            yield Event(now, "restore", cut.pop(int(rng.integers(len(cut)))))
        elif dead and choice < 0.45:
            yield Event(now, "start", (dead.pop(),))
        elif choice < 0.8:
            link = links[int(rng.integers(len(links)))]
            if link not in cut and _connected(names, links, [*cut, link], dead):
                cut.append(link)
                yield Event(now, "cut", link)
        else:
            name = names[int(rng.integers(len(names)))]
            if name in (*dead, *held) or len(dead) + len(held) >= len(names) // 3:
                continue
            if choice < 0.9 and _connected(names, links, cut, [*dead, name]):
                dead.append(name)
                yield Event(now, "kill", (name,))
            elif choice >= 0.9:
                held.append(name)
                yield Event(now, "pause", (name,))
    yield from (Event(seconds, "continue", (name,)) for name in held)
    yield from (Event(seconds, "restore", link) for link in cut)
    yield from (Event(seconds, "start", (name,)) for name in dead)


def _connected(names: list[str], links: list[Link], cut: list[Link], dead: list[str]) -> bool:
    graph = nx.Graph()
    graph.add_nodes_from(name for name in names if name not in dead)
    graph.add_edges_from(link for link in links if link not in cut and not set(link) & set(dead))
    return len(graph) > 0 and bool(nx.is_connected(graph))


def happen(swarm: Swarm, event: Event) -> None:
    """Apply an event to a swarm."""
    if event.what in ("cut", "restore"):
        swarm.set_link((event.names[0], event.names[1]), down=event.what == "cut")
    else:
        deed = {"continue": "go_on", "data": "change_data"}.get(event.what, event.what)
        getattr(swarm, deed)(event.names[0])
