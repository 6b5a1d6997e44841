"""Base class of undirected and directed networks: a finite pool of graphs, and the graph of each round."""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..errors import InputError
from ..util.cards import DRAWN_LINKS, DRAWN_NODES, Markup, card, drawing
from ..util.checks import check_whole
from .links import Floats, Ints, Longs, frozen
from .pool import Pool
from .recipes import buildable, called, rebuild

if TYPE_CHECKING:
    from ..plot.display import Figure
    from ..plot.networks import Animation

QUICK = 10_000_000
"""Largest nodes^3 times graphs for which chi is computed just for display: it takes a fraction of a second."""


class GraphSequence:
    """A finite pool of graphs and an order of rounds; round k uses the graph ``order[k % period]``.

    It is immutable and safe to use from several threads.
    """

    _links = "edges"  # what links are called, and the method that returns them

    def __init__(
        self, pool: Pool, order: Any, recipe: dict[str, Any], given: bool = False, examined: Longs | None = None
    ) -> None:
        self._pool = pool
        self._order: Ints = frozen(np.array(order, dtype=np.int32))
        self._given = given
        used: Longs = np.unique(self._order).astype(np.int64)
        chosen = pool.examined(used) if examined is None else examined
        self._examined: Longs = frozen(used[:0] if given else chosen)
        if not (pool.held or given):
            recipe = {**recipe, "spectrum": {"graphs_examined": len(self._examined), "graphs_used": len(used)}}
        self._recipe = json.dumps(recipe)

    @property
    def nodes(self) -> int:
        """The number of nodes, which are numbered 0, ..., nodes - 1."""
        return self._pool.nodes

    @property
    def graphs(self) -> int:
        """The number of distinct graphs."""
        return self._pool.graphs

    @property
    def held(self) -> bool:
        """Whether all graphs are in memory; if not, each is drawn from its seed on demand."""
        return self._pool.held

    @property
    def bytes(self) -> int:
        """The bytes of links, weights and positions of all graphs; an estimate if they are not held."""
        return self._pool.bytes

    @property
    def examined(self) -> Longs:
        """The graphs from which `chi` is computed, read-only int64.

        If the graphs are held, all that occur in `order`. If not, those of 8 rounds or windows, spread evenly; their
        worst chi is an estimate for the network, not a bound. Empty if chi was given (`bounded`).
        """
        return self._examined

    @property
    def order(self) -> Ints:
        """The graph of each round of one period, read-only int32."""
        return self._order

    @property
    def period(self) -> int:
        """The number of rounds after which the network repeats."""
        return len(self._order)

    @property
    def recipe(self) -> dict[str, Any]:
        """How the network was made: generator, arguments and seed, as JSON-able data (a fresh copy)."""
        recipe: dict[str, Any] = json.loads(self._recipe)
        return recipe

    @property
    def chi(self) -> float:
        """The condition number of the network."""
        raise NotImplementedError

    @property
    def chi_known(self) -> bool:
        """Whether `chi` was given or already computed."""
        raise NotImplementedError

    @property
    def chi_quick(self) -> bool:
        """Whether computing `chi` takes a fraction of a second."""
        return self.held and self.nodes**3 * len(self._examined) <= QUICK

    @property
    def connected(self) -> bool:
        """Whether every graph is known to be connected, strongly if it is directed."""
        return self._pool.connected

    @cached_property
    def fixed(self) -> bool:
        """Whether every round has the same links and weights."""
        graphs = (self._pool.graph(g) for g in dict.fromkeys(self._order.tolist()))
        first = next(graphs)
        return all(_alike(first.edges, other.edges) and _alike(first.weights, other.weights) for other in graphs)

    def positions(self, g: int) -> Floats | None:
        """Return the node positions of graph g, shape (nodes, 2), or None if there are none."""
        return self._pool.graph(self._index(g)).positions

    @property
    def drawn(self) -> bool:
        """Whether `reseeded` works: something in the network is random, and no part was given as graphs."""
        return '"seed"' in self._recipe and buildable(self.recipe)

    def reseeded(self, seed: int) -> Self:
        """Return the network that its recipe makes with another seed, which replaces every seed in the recipe.

        Examples
        --------
        >>> from adom.networks import geometric
        >>> network = geometric(20, 0.3, graphs=3, seed=0)
        >>> network.reseeded(5).recipe
        {'generator': 'geometric', 'nodes': 20, 'graphs': 3, 'seed': 5, 'radius': 0.3}
        >>> bool((network.reseeded(0).matrix(2) == network.matrix(2)).all())
        True
        """
        if '"seed"' not in self._recipe:
            raise InputError(
                f"seeds cannot draw {self!r} again: nothing in it is random; "
                "leave seeds out, or give a list of networks"
            )
        network: Self = rebuild(self.recipe, seed)
        return network

    def plot(
        self, k: int | Sequence[int] = 0, *, values: Any = None, label: str = "", style: str | None = None
    ) -> "Figure":
        """Draw the graph of round k, or of several rounds side by side.

        Nodes without positions get one layout for all rounds, computed from all links of a period. Directed links are
        arrows. With more than 300 nodes only links are drawn.

        Parameters
        ----------
        k : int or sequence of int
            Rounds, 12 at most.
        values : array, optional
            Node colours: one number per node, for all rounds or, in shape (rounds, nodes), for each. The scale is
            logarithmic if the numbers are positive and spread by a factor of 100 or more. Values that are not finite
            are grey.
        label : str
            The name of the values.
        style : str, optional
            "column", "page" or "slide"; see `adom.styles`.

        Examples
        --------
        >>> from adom.networks import geometric
        >>> network = geometric(20, 0.4, graphs=9)
        >>> [axes.get_title() for axes in network.plot([0, 5]).axes]  # doctest: +ELLIPSIS
        ['round 0: ... links, ...', 'round 5: ... links, ...']
        """
        from ..plot.networks import rounds_figure

        return rounds_figure(self, k, values=values, label=label, style=style)

    def animate(
        self,
        rounds: Sequence[int] | None = None,
        values: Any = None,
        *,
        interval: float = 200,
        label: str = "",
        style: str | None = None,
    ) -> "Animation":
        """Return an animation of rounds that plays in a notebook and can be saved as a .gif.

        Parameters
        ----------
        rounds : sequence of int, optional
            One per frame, at most 200; by default the first 30, or one period if that is shorter. Networks of up to 300
            nodes can be animated.
        values : array of shape (rounds, nodes), optional
            Node colours, as in `plot`. `adom.replay` computes the nodes' distances to the solution::

                replay = adom.replay(result, problem, network)
                network.animate(replay.rounds, replay.distances, label="distance to the solution")

        interval : float
            Milliseconds from one frame to the next.
        label, style
            As in `plot`.

        Examples
        --------
        >>> from adom.networks import geometric
        >>> geometric(20, 0.4, graphs=9).animate()
        Animation(20 nodes and their links, rounds 0 to 8, 9 frames)
        """
        from ..plot.networks import Animation

        return Animation(self, rounds, values, interval, label, style)

    def __repr__(self) -> str:
        size = f"nodes={self.nodes}, graphs={self.graphs}, period={self.period}, {self._links}={self._pool.typical}"
        return f"{type(self).__name__}({called(self.recipe)}, {size})"

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {
            "nodes": self.nodes,
            f"{self._links} of a graph": self._pool.typical.replace("..", " to "),
            "graphs": f"{self.graphs:,}" + ("" if self.held else ", drawn when they are asked for"),
            "period": "1 round" if self.period == 1 else f"{self.period:,} rounds",
            "chi": self.chi if self.chi_known or self.chi_quick else "not computed yet",
        }
        recipe = self.recipe
        plain = {
            key: each for key, each in recipe.items() if isinstance(each, int | float | str) and key != "generator"
        }
        facts |= {key: value for key, value in plain.items() if key not in facts and len(str(value)) <= 80}
        return card(type(self).__name__, called(recipe), facts, self._picture())

    def _picture(self) -> Markup | str:
        """Return a drawing of the graph of round 0 for a notebook, "" if it is too large or not in memory."""
        if not self.held or self.nodes > DRAWN_NODES:
            return ""
        g = int(self._order[0])
        pairs, _, points, _ = self._pool.graph(g)
        if len(pairs) > DRAWN_LINKS:
            return ""
        return drawing(
            None if points is None else points.tolist(), self.nodes, pairs.tolist(), arrows=self._links == "arcs"
        )

    def _described(self) -> tuple[Longs, Longs]:
        """Return the graphs that `describe` examines, and the number of rounds of a period that use each."""
        used, times = np.unique(self._order, return_counts=True)
        chosen = np.isin(used, self._pool.examined(used.astype(np.int64)))
        return used[chosen].astype(np.int64), times[chosen]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or not name.startswith("_"):
            kind = type(self).__name__
            raise AttributeError(f"a {kind} never changes, so {name} cannot be set; make a new network")
        super().__setattr__(name, value)

    def _index(self, g: int) -> int:
        """Return g as an int; refuse it if the pool has no such graph."""
        index = check_whole("g", g, 0, "it numbers the graphs of the pool")
        if index >= self.graphs:
            raise InputError(
                f"the network has no graph g={index}: g must be below graphs={self.graphs}; "
                "order[k % period] gives the graph of round k"
            )
        return index

    def _add_positions(self, graph: Any, g: int) -> None:
        """Give the nodes of a networkx graph the attribute ``pos`` where graph g has positions."""
        import networkx as nx

        points = self.positions(g)
        if points is not None:
            nx.set_node_attributes(graph, dict(enumerate(map(tuple, points.tolist()))), "pos")

    def _round(self, k: int) -> int:
        """Return the graph of round k."""
        return int(self._order[check_whole("k", k, 0, "rounds are counted from 0") % self.period])


def _alike(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))
