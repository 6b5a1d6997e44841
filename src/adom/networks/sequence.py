"""What undirected and directed networks share: a finite pool of graphs, and the order of the rounds."""

import json
from typing import Any

import numpy as np

from adom.errors import InputError
from adom.networks.checks import whole
from adom.networks.links import Ints, Links, frozen


class GraphSequence:
    """A finite pool of graphs gone through in some order; round k uses the graph ``order[k % period]``.

    It never changes once it is made.
    """

    _links: Links

    def __init__(self, order: Any, recipe: dict[str, Any]) -> None:
        self._order: Ints = frozen(np.array(order, dtype=np.int32))
        self._recipe = json.dumps(recipe)

    @property
    def nodes(self) -> int:
        """The number of nodes; they are called 0, ..., nodes - 1."""
        return self._links.nodes

    @property
    def graphs(self) -> int:
        """The number of distinct graphs."""
        return self._links.graphs

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
        sizes = self._links.sizes
        span = str(sizes.min()) if sizes.min() == sizes.max() else f"{sizes.min()}..{sizes.max()}"
        name = self.recipe.get("generator", "network")
        size = f"nodes={self.nodes}, graphs={self.graphs}, period={self.period}, {links}={span}"
        return f"{type(self).__name__}({name}, {size})"

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
