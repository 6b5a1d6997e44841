"""Graphs that are drawn when they are asked for: a cache of the most recent ones, safe to use from several threads.

A network whose graphs would take more than `HELD_BYTES` together is streamed: graph g is drawn from its own seed
whenever it is needed, and only the last few are kept. The same seed gives the same graphs, held or streamed.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from adom.networks.links import Longs

HELD_BYTES = 2**30
"""Links, weights and positions of all graphs of a network together, beyond which they are streamed."""
KEPT_BYTES = 2**28
"""Drawn graphs that a streamed network keeps, the most recent ones; always two at least."""
EXAMINED = 8
"""Graphs of a streamed network, spread evenly over those in use, whose spectra speak for all of them."""
EDGE, WEIGHT, POINT = 8, 8, 16
"""Bytes of a link's two ends, of its weight, and of a node's position."""


class Sized(Protocol):
    """Something that knows how much memory it takes."""

    @property
    def bytes(self) -> int:
        """The bytes of its arrays."""


Drawn = TypeVar("Drawn", bound=Sized)


def fits(size: float) -> bool:
    """Say whether graphs of so many bytes are held."""
    return size <= HELD_BYTES


def sample(used: Longs) -> Longs:
    """Return `EXAMINED` of the graphs, spread evenly; all of them if there are no more.

    Examples
    --------
    >>> sample(np.arange(100)).tolist()
    [0, 14, 28, 42, 57, 71, 85, 99]
    """
    spots = np.linspace(0, len(used) - 1, min(EXAMINED, len(used))).round()
    return used[spots.astype(np.int64)]


class Stream(Generic[Drawn]):
    """A sequence of graphs of which only the most recent are in memory.

    Parameters
    ----------
    nodes, graphs : int
    draw : callable
        ``draw(g)`` returns graph g: a pure function of g that several threads may call at a time.
    links : float
        About how many links a graph has.
    size : float
        About how many bytes all graphs would take.
    """

    held = False

    def __init__(self, nodes: int, graphs: int, draw: Callable[[int], Drawn], links: float, size: float) -> None:
        self.nodes, self.graphs = nodes, graphs
        self.mean_links, self.typical = links, f"about {links:.3g}"
        self.bytes = int(size)
        self._draw = draw
        self._kept: OrderedDict[int, Drawn] = OrderedDict()
        self._turns: dict[int, threading.Lock] = {}
        self._lock = threading.Lock()

    def __getitem__(self, g: int) -> Drawn:
        """Return graph g. Two threads that ask for the same one wait for each other and draw it once."""
        with self._lock:
            if g in self._kept:
                self._kept.move_to_end(g)
                return self._kept[g]
            turn = self._turns.setdefault(g, threading.Lock())
        with turn:
            with self._lock:
                if g in self._kept:
                    return self._kept[g]
            drawn = self._draw(g)
            with self._lock:
                self._kept[g] = drawn
                self._turns.pop(g, None)
                total = sum(one.bytes for one in self._kept.values())
                while total > KEPT_BYTES and len(self._kept) > 2:
                    total -= self._kept.popitem(last=False)[1].bytes
        return drawn

    def examined(self, used: Longs) -> Longs:
        """Return the graphs whose spectra speak for all that are used."""
        return sample(used)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process: locks and drawn graphs."""
        return {**self.__dict__, "_kept": None, "_turns": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _kept=OrderedDict(), _turns={}, _lock=threading.Lock())
