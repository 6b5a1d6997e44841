"""The changing network: a finite pool of graphs, and the order in which the rounds go through it."""

from functools import cached_property
from typing import Any

import numpy as np

from .lazy import Pool
from .links import Floats, Ints, frozen
from .sequence import GraphSequence
from .spectra import gossip_matrix


class Network(GraphSequence):
    """A network that changes from round to round; every graph of it is connected.

    Round k uses the gossip matrix ``W(k) = W[order[k % period]]``: a pure function of k. Every W is symmetric
    and positive semi-definite and its kernel is consensus, ``W 1 = 0``. By default it is the graph's
    Laplacian divided by the Laplacian's own largest eigenvalue, so that ``lambda_max = 1``.

    Networks are made by the functions of this package: `geometric`, `ring`, `from_graphs`, `alternate`, ...

    Parameters
    ----------
    pool : Batch, LazyPool or JoinedPool
        The distinct graphs.
    order : (period,) array of int
        The graph of each round of one period.
    recipe : dict
        How the network was made, as JSON-able data.
    chi : float, optional
        The condition number, taken on trust.

    Notes
    -----
    Graphs that take more than 1 GiB together are not held (`held` is False): graph g is drawn from its seed
    whenever `edges`, `weights` or `positions` ask for it, and the most recent ones are kept. To draw a thousand
    graphs of a hundred thousand nodes only for their spectra would take an hour; `chi` and `lambda_min_plus` are
    then those of 8 graphs spread evenly over the period (`examined`), an estimate, and `recipe` says so.

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

    def __init__(self, pool: Pool, order: Any, recipe: dict[str, Any], chi: float | None = None) -> None:
        super().__init__(pool, order, recipe, given=chi is not None)
        self._chi = chi

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

        Nodes carry the attribute ``pos`` where positions are known, and links carry ``weight`` where the
        weights of the graph differ from link to link.
        """
        import networkx as nx

        g = self._round(k)
        graph = nx.Graph()
        graph.add_nodes_from(range(self.nodes))
        pairs, weights = self.edges(g).tolist(), self.weights(g)
        if np.ptp(weights) > 1e-12 * np.abs(weights).max():
            graph.add_weighted_edges_from((u, v, w) for (u, v), w in zip(pairs, weights.tolist(), strict=True))
        else:
            graph.add_edges_from(pairs)
        self._add_positions(graph, g)
        return graph

    @cached_property
    def spectrum(self) -> Floats:
        """The smallest positive and the largest eigenvalue of every graph's W, shape (graphs, 2).

        NaN for the graphs that are not `examined`, if the graphs are not held.
        """
        if self.held:
            return frozen(self._pool.spectra(np.arange(self.graphs)))
        spectrum = np.full((self.graphs, 2), np.nan)
        if self._examined.size:
            spectrum[self._examined] = self._pool.spectra(self._examined)
        return frozen(spectrum)

    @property
    def lambda_min_plus(self) -> float:
        """The smallest positive eigenvalue over all rounds; see `examined` for the graphs that it is computed from."""
        if self._chi is not None:
            return self.lambda_max / self._chi
        return float(self.spectrum[self._examined, 0].min())

    @cached_property
    def lambda_max(self) -> float:
        """The largest eigenvalue over all rounds."""
        return float(self._pool.largest(np.unique(self._order).astype(np.int64)).max())

    @property
    def chi(self) -> float:
        """The condition number of the network: lambda_max / lambda_min_plus over all rounds."""
        return self.lambda_max / self.lambda_min_plus

    @property
    def chi_known(self) -> bool:
        """Whether `chi` is at hand: given, or already computed. For large networks computing it takes long."""
        return self._chi is not None or self._pool.spectra_known(self._examined)

    def describe(self) -> dict[str, int | float]:
        """Return the network's vital figures; means are over the rounds of one period.

        If the graphs are not held, they are those of the few graphs that chi is computed from.

        Examples
        --------
        >>> from adom.networks import star
        >>> {name: round(value, 6) for name, value in star(4).describe().items()}  # doctest: +ELLIPSIS
        {'nodes': 4, 'graphs': 1, 'period': 1, 'edges_min': 3, ..., 'chi_worst': 4.0, 'chi_best': 4.0}
        """
        used, times = self._described()
        degrees = (np.bincount(self.edges(g).ravel(), minlength=self.nodes) for g in used.tolist())
        least, most, ends = np.array([(degree.min(), degree.max(), degree.sum()) for degree in degrees]).T
        sizes = ends // 2
        chis = np.array([self.chi])
        if not self._given:
            chis = self.spectrum[used, 1] / self.spectrum[used, 0]
        mean = float((sizes * times).sum() / times.sum())
        return {
            "nodes": self.nodes,
            "graphs": self.graphs,
            "period": self.period,
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
        return Network(self._pool, self._order, recipe, chi)
