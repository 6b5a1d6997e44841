"""Networks: a finite pool of graphs, and the graph of each round; what directed ones share, and the undirected one."""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..errors import InputError
from ..util.cards import DRAWN_LINKS, DRAWN_NODES, Markup, card, drawing
from ..util.checks import check_whole
from .edges import Floats, Ints, Longs, frozen
from .pool import Pool
from .recipes import buildable, called, rebuild
from .spectra import gossip_matrix
from .windows import require_joined, smallest_window, window_chis

if TYPE_CHECKING:
    from ..plot.display import Figure
    from ..plot.networks import Animation

QUICK = 10_000_000
"""Largest nodes^3 times graphs for which chi is computed just for display: it takes a fraction of a second."""

WINDOWS = 8
"""If graphs are not held, chi is computed from this many windows, spread evenly over a period."""


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
        return int(self._order[check_whole("k", k, 0, "rounds are counted from 0") % self.period])


def _alike(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


class Network(GraphSequence):
    """A network that may change from round to round and is connected over every `window` consecutive rounds.

    Round k uses the gossip matrix ``W(k) = W[order[k % period]]``, a pure function of k. Every W is symmetric and
    positive semi-definite, and ``W 1 = 0``. By default it is the graph's Laplacian divided by the Laplacian's largest
    eigenvalue, so that ``lambda_max = 1``; a graph without links has W = 0. If every graph is connected, the kernel of
    each W is consensus, and `window` is 1.

    Use the functions of this package to make one: `geometric`, `ring`, `from_graphs`, `alternate`, ...

    Parameters
    ----------
    pool : Pool
        The distinct graphs.
    order : (period,) array of int
        The graph of each round of one period.
    recipe : dict
        How the network was made, as JSON-able data.
    chi : float, optional
        The condition number, used without checking.
    window : int, optional
        The number of rounds that one step of a method takes, instead of the smallest that connects all nodes.

    Notes
    -----
    Graphs that take more than 1 GiB together are not held (`held` is False): graph g is drawn from its seed whenever
    `edges`, `weights` or `positions` need it, and the most recent ones are cached. Drawing a thousand graphs of a
    hundred thousand nodes just for their spectra would take an hour. So `chi` and `lambda_min_plus` are then an
    estimate from 8 graphs spread evenly over the period (`examined`), and `recipe` says so. adom does not check whether
    graphs that are not held together connect all nodes; if not each of them is connected, `window` must be given
    (`windowed`).

    Examples
    --------
    >>> from adom.networks import ring
    >>> network = ring(4)
    >>> network
    Network(ring, nodes=4, graphs=1, period=1, edges=4)
    >>> network.matrix(0)
    array([[ 0.5 , -0.25,  0.  , -0.25],
           [-0.25,  0.5 , -0.25,  0.  ],
           [ 0.  , -0.25,  0.5 , -0.25],
           [-0.25,  0.  , -0.25,  0.5 ]])
    >>> round(network.chi, 12)
    2.0
    """

    def __init__(
        self, pool: Pool, order: Any, recipe: dict[str, Any], chi: float | None = None, window: int | None = None
    ) -> None:
        examined = None
        if window is not None and not pool.held:
            rounds = _spread(len(order))[:, None] + np.arange(window)
            examined = np.unique(np.asarray(order)[rounds % len(order)]).astype(np.int64)
        super().__init__(pool, order, recipe, given=chi is not None, examined=examined)
        self._chi, self._window = chi, window
        if pool.held and not pool.connected:
            require_joined(pool, self._order)

    def edges(self, g: int) -> Ints:
        """Return the links of graph g of the pool: int32, shape (E, 2), u < v, sorted, read-only."""
        return self._pool.graph(self._index(g)).edges

    def weights(self, g: int) -> Floats:
        """Return the weight of each link of graph g: W_uv = -weight, W_uu = sum of the weights at u."""
        weights = self._pool.graph(self._index(g)).weights
        assert weights is not None
        return weights

    def matrix(self, k: int) -> Any:
        """Return the gossip matrix W(k) of round k.

        Returns
        -------
        numpy.ndarray or scipy.sparse.csr_array
            Dense up to 2,000 nodes, sparse above; float64.
        """
        g = self._round(k)
        return gossip_matrix(self.nodes, self.edges(g), self.weights(g))

    def graph(self, k: int) -> Any:
        """Return the graph of round k as a `networkx.Graph`.

        Nodes have the attribute ``pos`` if positions are known, and links have ``weight`` if the weights of the
        graph are not all equal.
        """
        import networkx as nx

        g = self._round(k)
        graph = nx.Graph()
        graph.add_nodes_from(range(self.nodes))
        pairs, weights = self.edges(g).tolist(), self.weights(g)
        if weights.size and np.ptp(weights) > 1e-12 * np.abs(weights).max():
            graph.add_weighted_edges_from((u, v, w) for (u, v), w in zip(pairs, weights.tolist(), strict=True))
        else:
            graph.add_edges_from(pairs)
        self._add_positions(graph, g)
        return graph

    @cached_property
    def spectrum(self) -> Floats:
        """The smallest positive and the largest eigenvalue of every graph's W, shape (graphs, 2).

        The former is 0 for a disconnected graph. If graphs are not held, those not `examined` have NaN.
        """
        if self.held:
            return frozen(self._pool.spectra(np.arange(self.graphs)))
        spectrum = np.full((self.graphs, 2), np.nan)
        if self._examined.size:
            spectrum[self._examined] = self._pool.spectra(self._examined)
        return frozen(spectrum)

    @cached_property
    def window(self) -> int:
        """The number of rounds that one step of a method takes.

        This is the smallest B such that any B consecutive rounds together connect all nodes (1 if every graph is
        connected), or the number given to `windowed`. With `parameters="auto"` a step takes one round whatever the
        window, except for methods without chi in their formulas; DNM, MSDA and OPAPC take windows of their own choice.
        """
        if self._window is not None:
            return self._window
        if self._pool.connected:
            return 1
        if not self.held:
            raise InputError(
                f"the window of {self!r} is not known: its graphs are not all connected and not held; give it with "
                "windowed(network, window), use repair=True or fewer graphs, or run with parameters='auto'"
            )
        return smallest_window(self._pool, self._order)

    @property
    def lambda_min_plus(self) -> float:
        """The smallest positive eigenvalue over all rounds; with windows, lambda_max / chi.

        `examined` has the graphs that it is computed from.
        """
        if self._chi is not None or self._in_windows:
            return self.lambda_max / self.chi
        return float(self.spectrum[self._examined, 0].min())

    @cached_property
    def lambda_max(self) -> float:
        """The largest eigenvalue over all rounds."""
        return float(self._pool.largest(np.unique(self._order).astype(np.int64)).max())

    @property
    def chi(self) -> float:
        """The condition number of the network: lambda_max / lambda_min_plus over all rounds.

        With windows it is the chi of the worst one. Averaging over any `window` rounds leaves at most the share
        1 - 1 / chi of the nodes' differences.
        """
        if self._chi is not None:
            return self._chi
        if self._in_windows:
            return float(np.nanmax(self._window_chis))
        return self.lambda_max / self.lambda_min_plus

    @property
    def chis(self) -> Floats:
        """The condition number of the window that starts in each round of a period; of its graph if `window` is 1.

        If graphs are not held, rounds that are not examined have NaN.
        """
        if self._in_windows:
            return self._window_chis
        low, high = self.spectrum[self._order].T
        return frozen(high / low)

    @cached_property
    def _window_chis(self) -> Floats:
        chis = np.full(self.period, np.nan)
        starts = np.arange(self.period) if self.held else _spread(self.period)
        if not self.held:
            for start in starts.tolist():
                require_joined(self._pool, self._order, start, self.window)
        chis[starts] = window_chis(self._pool, self._order, self.window, starts, self.lambda_max)
        return frozen(chis)

    @property
    def _in_windows(self) -> bool:
        """Whether chi is that of windows instead of single graphs."""
        return not self._pool.connected or self._window not in (None, 1)

    @property
    def chi_known(self) -> bool:
        """Whether `chi` was given or already computed; for large networks computing it takes long."""
        if self._chi is not None or self._in_windows:
            return self._chi is not None or "_window_chis" in self.__dict__
        return self._pool.spectra_known(self._examined)

    @property
    def chi_quick(self) -> bool:
        """Whether computing `chi` takes a fraction of a second."""
        return self.held and self.nodes**3 * self.period <= QUICK if self._in_windows else super().chi_quick

    def describe(self) -> dict[str, int | float]:
        """Return the network's key figures; means are over the rounds of one period.

        The worst and the best chi are those of windows if the network needs them, otherwise of graphs. If graphs are
        not held, all figures come from a few of them.

        Examples
        --------
        >>> from adom.networks import star
        >>> {name: round(value, 6) for name, value in star(4).describe().items()}  # doctest: +ELLIPSIS
        {'nodes': 4, 'graphs': 1, 'period': 1, 'window': 1, 'edges_min': 3, ..., 'chi_worst': 4.0, 'chi_best': 4.0}
        """
        used, times = self._described()
        degrees = (np.bincount(self.edges(g).ravel(), minlength=self.nodes) for g in used.tolist())
        least, most, ends = np.array([(degree.min(), degree.max(), degree.sum()) for degree in degrees]).T
        sizes = ends // 2
        chis = np.array([self.chi])
        if not self._given:
            chis = self.chis[np.isfinite(self.chis)]
        mean = float((sizes * times).sum() / times.sum())
        return {
            "nodes": self.nodes,
            "graphs": self.graphs,
            "period": self.period,
            "window": self.window,
            "edges_min": int(sizes.min()),
            "edges_mean": mean,
            "edges_max": int(sizes.max()),
            "degree_min": int(least.min()),
            "degree_mean": 2.0 * mean / self.nodes,
            "degree_max": int(most.max()),
            "chi": self.chi,
            "chi_worst": float(chis.max()),
            "chi_best": float(chis.min()),
        }

    def _bounded(self, recipe: dict[str, Any], chi: float) -> "Network":
        """Return the same network with its chi given."""
        return Network(self._pool, self._order, recipe, chi, self._window)


def _spread(period: int) -> Longs:
    """Return `WINDOWS` rounds of a period, or all if there are fewer, spread evenly."""
    rounds: Longs = np.unique(np.arange(WINDOWS) * period // WINDOWS)
    return rounds
