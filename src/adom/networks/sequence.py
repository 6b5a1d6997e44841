"""What undirected and directed networks share: a finite pool of graphs, and the order of the rounds."""

import json
from typing import Any

import numpy as np

from adom.errors import InputError
from adom.networks.checks import whole
from adom.networks.links import Ints, Longs, frozen


class GraphSequence:
    """A finite pool of graphs gone through in some order; round k uses the graph ``order[k % period]``.

    It never changes once it is made, and several threads may use it at a time.
    """

    _pool: Any

    def __init__(self, pool: Any, order: Any, recipe: dict[str, Any], given: bool = False) -> None:
        self._pool = pool
        self._order: Ints = frozen(np.array(order, dtype=np.int32))
        self._given = given
        used: Longs = np.unique(self._order).astype(np.int64)
        self._examined: Longs = frozen(used[:0] if given else pool.examined(used))
        if not (pool.held or given):
            recipe = {**recipe, "spectrum": {"graphs_examined": len(self._examined), "graphs_used": len(used)}}
        self._recipe = json.dumps(recipe)

    @property
    def nodes(self) -> int:
        """The number of nodes; they are called 0, ..., nodes - 1."""
        return int(self._pool.nodes)

    @property
    def graphs(self) -> int:
        """The number of distinct graphs."""
        return int(self._pool.graphs)

    @property
    def held(self) -> bool:
        """Whether all graphs are in memory; if not, each is drawn from its seed when it is asked for."""
        return bool(self._pool.held)

    @property
    def bytes(self) -> int:
        """What links, weights and positions of all graphs take; about what they would take if they are not held."""
        return int(self._pool.bytes)

    @property
    def examined(self) -> Longs:
        """The graphs from which `chi` is computed, read-only int64.

        All that occur in `order` if the graphs are held; 8 of those, spread evenly, if not: their worst chi is an
        estimate of the network's, not a bound. None if chi was given (`bounded`).
        """
        return self._examined

    @property
    def order(self) -> Ints:
        """The graph of each round of one period, read-only int32."""
        return self._order

    @property
    def period(self) -> int:
        """The number of rounds after which the network repeats itself."""
        return len(self._order)

    @property
    def recipe(self) -> dict[str, Any]:
        """How the network was made: generator, arguments and seed, as JSON-able data (a fresh copy)."""
        recipe: dict[str, Any] = json.loads(self._recipe)
        return recipe

    def _shown(self, links: str) -> str:
        """Return the network in one line; `links` is what its links are called."""
        name = self.recipe.get("generator", "network")
        size = f"nodes={self.nodes}, graphs={self.graphs}, period={self.period}, {links}={self._pool.typical}"
        return f"{type(self).__name__}({name}, {size})"

    def _described(self) -> tuple[Longs, Longs]:
        """Return the graphs that `describe` looks at and in how many rounds of a period each is used."""
        used, times = np.unique(self._order, return_counts=True)
        chosen = np.isin(used, self._pool.examined(used.astype(np.int64)))
        return used[chosen].astype(np.int64), times[chosen]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or not name.startswith("_"):
            kind = type(self).__name__
            raise AttributeError(f"a {kind} never changes, so {name} cannot be set; make a new network")
        super().__setattr__(name, value)

    def _graph(self, g: int) -> int:
        """Return g if the pool has such a graph."""
        index = whole("g", g, 0, "it numbers the graphs of the pool")
        if index >= self.graphs:
            raise InputError(
                f"the network has no graph g={index}: g must be below graphs={self.graphs}; "
                "order[k % period] gives the graph of round k"
            )
        return index

    def _round(self, k: int) -> int:
        """Return the graph of round k."""
        return int(self._order[whole("k", k, 0, "rounds are counted from 0") % self.period])
