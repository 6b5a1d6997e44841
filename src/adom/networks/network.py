"""The changing network: a finite pool of graphs, and the order in which the rounds go through it."""

from functools import cached_property
from typing import Any

import numpy as np

from adom.errors import InputError
from adom.networks.connect import component_counts, name_components
from adom.networks.links import Floats, Ints, Links, frozen
from adom.networks.pool import Pool
from adom.networks.sequence import GraphSequence
from adom.networks.spectra import DENSE, dense_matrices, sparse_matrix


def require_connected(links: Links, order: Ints) -> None:
    """Refuse a network that falls apart; name the first round in which it does, and the components."""
    broken = component_counts(links)[order] > 1
    if broken.any():
        k = int(np.argmax(broken))
        names = name_components(links.nodes, links.edges[links.rows(int(order[k]))])
        raise InputError(
            f"the graph of round {k} is disconnected: {names}; "
            "ADOM needs every graph connected: add edges or use repair=True"
        )


class Network(GraphSequence):
    """A network that changes from round to round; every graph of it is connected.

    Round k uses the gossip matrix ``W(k) = W[order[k % period]]``: a pure function of k. Every W is symmetric
    and positive semi-definite and its kernel is consensus, ``W 1 = 0``. By default it is the graph's
    Laplacian divided by the Laplacian's own largest eigenvalue, so that ``lambda_max = 1``.

    Networks are made by the functions of this package: `geometric`, `ring`, `from_graphs`, `alternate`, ...

    Parameters
    ----------
    pool : Pool
        The distinct graphs.
    order : (period,) array of int
        The graph of each round of one period.
    recipe : dict
        How the network was made, as JSON-able data.

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

    def __init__(self, pool: Pool, order: Any, recipe: dict[str, Any]) -> None:
        super().__init__(order, recipe)
        self._pool = pool
        self._links = pool.links
        require_connected(pool.links, self._order)

    def edges(self, g: int) -> Ints:
        """Return the links of graph g of the pool: int32, shape (E, 2), u < v, sorted, read-only."""
        return frozen(self._links.edges[self._links.rows(self._graph(g))])

    def weights(self, g: int) -> Floats:
        """Return the weight of each link of graph g: W_uv = -weight, W_uu = sum of the weights at u."""
        return frozen(self._pool.weights[self._links.rows(self._graph(g))])

    def positions(self, g: int) -> Floats | None:
        """Return where the nodes of graph g lie, shape (nodes, 2), or None if they lie nowhere."""
        return self._pool.positions[self._graph(g)]

    def matrix(self, k: int) -> Any:
        """Return the gossip matrix W(k) of round k.

        Returns
        -------
        numpy.ndarray or scipy.sparse.csr_array
            Dense up to 2,000 nodes, sparse above; float64.
        """
        g = self._round(k)
        if self.nodes > DENSE:
            return sparse_matrix(self._links, self._pool.weights, g)
        return dense_matrices(self._links, self._pool.weights, g, g + 1)[0]

    def graph(self, k: int) -> Any:
        """Return the graph of round k as a `networkx.Graph`.

        Nodes carry the attribute ``pos`` where positions are known, and links carry ``weight`` where the
        weights of the graph differ from link to link.
        """
        import networkx as nx

        g = self._round(k)
        graph = nx.Graph()
        graph.add_nodes_from(range(self.nodes))
        weights = self.weights(g)
        if np.ptp(weights) > 1e-12 * np.abs(weights).max():
            graph.add_weighted_edges_from(
                (u, v, w) for (u, v), w in zip(self.edges(g).tolist(), weights.tolist(), strict=True)
            )
        else:
            graph.add_edges_from(self.edges(g).tolist())
        place = self.positions(g)
        if place is not None:
            nx.set_node_attributes(graph, dict(enumerate(map(tuple, place.tolist()))), "pos")
        return graph

    @cached_property
    def spectrum(self) -> Floats:
        """The smallest positive and the largest eigenvalue of every graph's W, shape (graphs, 2)."""
        return frozen(self._pool.spectrum())

    @cached_property
    def _used(self) -> Floats:
        """The rows of `spectrum` that occur in `order`."""
        return self.spectrum[np.unique(self._order)]

    @property
    def lambda_min_plus(self) -> float:
        """The smallest positive eigenvalue over all rounds."""
        return float(self._used[:, 0].min())

    @property
    def lambda_max(self) -> float:
        """The largest eigenvalue over all rounds."""
        return float(self._used[:, 1].max())

    @property
    def chi(self) -> float:
        """The condition number of the network: lambda_max / lambda_min_plus over all rounds."""
        return self.lambda_max / self.lambda_min_plus

    def describe(self) -> dict[str, int | float]:
        """Return the network's vital figures; means are over the rounds of one period.

        Examples
        --------
        >>> from adom.networks import star
        >>> {name: round(value, 6) for name, value in star(4).describe().items()}  # doctest: +ELLIPSIS
        {'nodes': 4, 'graphs': 1, 'period': 1, 'edges_min': 3, ..., 'chi_worst': 4.0, 'chi_best': 4.0}
        """
        used = np.unique(self._order)
        sizes = self._links.sizes
        degrees = [self._pool.degrees(int(g)) for g in used]
        chis = self._used[:, 1] / self._used[:, 0]
        mean = float(sizes[self._order].mean())
        return {
            "nodes": self.nodes,
            "graphs": self.graphs,
            "period": self.period,
            "edges_min": int(sizes[used].min()),
            "edges_mean": mean,
            "edges_max": int(sizes[used].max()),
            "degree_min": min(int(degree.min()) for degree in degrees),
            "degree_mean": 2.0 * mean / self.nodes,
            "degree_max": max(int(degree.max()) for degree in degrees),
            "chi": self.chi,
            "chi_worst": float(chis.max()),
            "chi_best": float(chis.min()),
        }

    def __repr__(self) -> str:
        return self._shown("edges")
