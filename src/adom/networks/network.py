"""The undirected changing network: a finite pool of graphs, and the order in which rounds use them."""

from functools import cached_property
from typing import Any

import numpy as np

from ..errors import InputError
from .links import Floats, Ints, Longs, frozen
from .pool import Pool
from .sequence import QUICK, GraphSequence
from .spectra import gossip_matrix
from .windows import require_joined, smallest_window, window_chis

WINDOWS = 8
"""If graphs are not held, chi is computed from this many windows, spread evenly over a period."""


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
