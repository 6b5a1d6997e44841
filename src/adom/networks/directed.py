"""Directed, possibly changing networks for Push-Pull: messages travel along arcs, from sender to receiver.

One directed graph gives two averaging matrices, with self-weights always positive. A receiver can weigh what
it hears, so R is row-stochastic: ``R_ij = 1 / (1 + in-degree of i)`` for j = i and every j that sends to i. A
sender can split what it holds, so C is column-stochastic: ``C_ij = 1 / (1 + out-degree of j)`` for i = j and
every i that j sends to. On a strongly connected graph both are primitive: 1 is a simple eigenvalue, and every
other one is smaller in modulus.

Reference: S. Pu, W. Shi, J. Xu, A. Nedic, "Push-Pull gradient methods for distributed optimization in
networks", IEEE Transactions on Automatic Control, 2020; arXiv:1810.06653.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from adom.errors import InputError
from adom.networks import spectra
from adom.networks.checks import graph_count, link_count, node_count, real, seed_number
from adom.networks.connect import adjacency, name_components, spanning_trees
from adom.networks.families import circle, random_pairs
from adom.networks.imports import as_list, label_index, node_positions
from adom.networks.links import Floats, Ints, Links, Longs, frozen
from adom.networks.pool import digest, distinct
from adom.networks.sequence import GraphSequence

SENDER, RECEIVER = 0, 1  # the columns of an array of arcs
Places = Sequence[Floats | None] | None
FARTHEST = 3.0
"""A radius with which even the shortest range, half of it, covers the unit square."""
WANTED, BASIS = 6, 80
"""Eigenvalues that ARPACK looks for, and its vectors: with fewer it may miss the largest of a crowd."""


class DirectedNetwork(GraphSequence):
    """A directed network that changes from round to round; every graph of it is strongly connected.

    Round k uses the graph ``order[k % period]``: the matrices R(k) and C(k) are pure functions of k.

    Networks are made by `directed_ring`, `directed_erdos_renyi`, `directed_geometric` and `from_digraphs`; see
    `Network` for order, recipe and positions. The rows of `links` are arcs (sender, receiver), within a graph
    unique, without self-loops and sorted by (receiver, sender). `rho` is that of `chi`, if a formula gives it.

    Examples
    --------
    >>> network = directed_ring(4)
    >>> network
    DirectedNetwork(directed_ring, nodes=4, graphs=1, period=1, arcs=4)
    >>> network.row_stochastic(0)
    array([[0.5, 0. , 0. , 0.5],
           [0.5, 0.5, 0. , 0. ],
           [0. , 0.5, 0.5, 0. ],
           [0. , 0. , 0.5, 0.5]])
    """

    def __init__(
        self, links: Links, order: Any, recipe: dict[str, Any], positions: Places = None, rho: float | None = None
    ) -> None:
        super().__init__(order, recipe)
        self._links = links
        self._positions = [place if place is None else frozen(place) for place in positions or ()]
        self._rho = rho
        require_strong(links, self._order)

    def arcs(self, g: int) -> Ints:
        """Return the (sender, receiver) rows of graph g: int32, sorted by (receiver, sender), read-only."""
        return frozen(self._links.edges[self._links.rows(self._graph(g))])

    def positions(self, g: int) -> Floats | None:
        """Return where the nodes of graph g lie, shape (nodes, 2), or None if they lie nowhere."""
        return (self._positions or [None] * self.graphs)[self._graph(g)]

    def row_stochastic(self, k: int) -> Any:
        """Return R(k), whose rows sum to 1: an array up to 2,000 nodes, a `scipy.sparse.csr_array` above."""
        return self._matrix(self._round(k), RECEIVER)

    def column_stochastic(self, k: int) -> Any:
        """Return C(k), whose columns sum to 1: an array up to 2,000 nodes, a `scipy.sparse.csr_array` above."""
        return self._matrix(self._round(k), SENDER)

    def graph(self, k: int) -> Any:
        """Return the graph of round k as a `networkx.DiGraph`; nodes carry ``pos`` where positions are known."""
        import networkx as nx

        g = self._round(k)
        graph = nx.DiGraph()
        graph.add_nodes_from(range(self.nodes))
        graph.add_edges_from(self.arcs(g).tolist())
        place = self.positions(g)
        if place is not None:
            nx.set_node_attributes(graph, dict(enumerate(map(tuple, place.tolist()))), "pos")
        return graph

    @cached_property
    def chi(self) -> float:
        """How slowly the network mixes: ``1 / (1 - rho)``.

        rho is the largest second-largest modulus of the eigenvalues of R(k) and C(k) over all rounds. For a
        symmetric averaging matrix ``I - W / lambda_max`` this is the undirected chi. It is a measure to compare
        networks by, not a theorem's constant: a product of different R(k) may contract more slowly than each
        alone. Infinite where rho is 1 to rounding.
        """
        rho = self._rho
        if rho is None:
            used = np.unique(self._order).tolist()
            rho = max(second_modulus(self._matrix(g, end)) for g in used for end in (RECEIVER, SENDER))
        return 1.0 / (1.0 - rho) if rho < 1.0 else math.inf

    def describe(self) -> dict[str, int | float]:
        """Return the network's vital figures; the mean is over the rounds of one period."""
        used = np.unique(self._order).tolist()
        sizes = self._links.sizes
        heard, told = (np.stack([self._degrees(g, end) for g in used]) for end in (RECEIVER, SENDER))
        return {
            "nodes": self.nodes,
            "graphs": self.graphs,
            "period": self.period,
            "arcs_min": int(sizes[used].min()),
            "arcs_mean": float(sizes[self._order].mean()),
            "arcs_max": int(sizes[used].max()),
            "in_degree_min": int(heard.min()),
            "in_degree_max": int(heard.max()),
            "out_degree_min": int(told.min()),
            "out_degree_max": int(told.max()),
            "chi": self.chi,
        }

    def __repr__(self) -> str:
        return self._shown("arcs")

    def _degrees(self, g: int, end: int) -> Longs:
        """Return every node's in-degree (end=RECEIVER) or out-degree (end=SENDER) in graph g."""
        return np.bincount(self._links.edges[self._links.rows(g), end], minlength=self.nodes)

    def _matrix(self, g: int, end: int) -> Any:
        """Return R (end=RECEIVER) or C (end=SENDER) of graph g: who stands at that end divides evenly."""
        from scipy.sparse import coo_array

        itself = np.repeat(np.arange(self.nodes, dtype=np.int32)[:, None], 2, axis=1)
        arcs = np.concatenate([self._links.edges[self._links.rows(g)], itself])
        values = 1.0 / (1.0 + self._degrees(g, end)[arcs[:, end]])
        place = (arcs[:, RECEIVER], arcs[:, SENDER])
        if self.nodes > spectra.DENSE:
            return coo_array((values, place), shape=(self.nodes, self.nodes)).tocsr()
        matrix = np.zeros((self.nodes, self.nodes))
        matrix[place] = values
        return matrix


def second_modulus(matrix: Any) -> float:
    """Return the second largest modulus of the eigenvalues of a row- or column-stochastic matrix.

    Dense: all eigenvalues. Sparse: ARPACK on ``M - 11'/n``, whose eigenvalues are those of M with 0 in place
    of one 1, since the all-ones vector is a right or left eigenvector of M.
    """
    if isinstance(matrix, np.ndarray):
        with spectra.one_thread():
            return float(np.sort(np.abs(np.linalg.eigvals(matrix)))[-2])

    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

    n = matrix.shape[0]
    deflated = LinearOperator((n, n), matvec=lambda v: matrix @ v - v.mean(), dtype=np.float64)
    options = {"ncv": BASIS, "maxiter": spectra.MANY_RESTARTS, "tol": spectra.PRECISION}
    options["v0"] = np.random.default_rng(0).standard_normal(n)
    with spectra.one_thread():
        try:
            found = eigs(deflated, WANTED, which="LM", return_eigenvectors=False, **options)
        except ArpackNoConvergence:
            raise InputError(
                f"chi of a directed graph of {n} nodes did not converge: too many eigenvalues lie close to the "
                f"second largest; use a better connected graph, or {spectra.DENSE} nodes or fewer"
            ) from None
    return float(np.abs(found).max())


def strong_labels(nodes: int, arcs: Any) -> tuple[int, Ints]:
    """Return the number of strong components and, for each node, its component."""
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(arcs), dtype=np.int8)
    count, labels = connected_components(adjacency(nodes, arcs, ones), connection="strong")
    return int(count), labels


def require_strong(links: Links, order: Ints) -> None:
    """Refuse a network that is not strongly connected; name the first such round, and the components."""
    used, first = np.unique(order, return_index=True)
    for k, g in sorted(zip(first.tolist(), used.tolist(), strict=True)):
        count, labels = strong_labels(links.nodes, links.edges[links.rows(g)])
        if count > 1:
            smallest = np.unique(labels, return_index=True)[1][labels]
            names = name_components(links.nodes, np.stack([np.arange(links.nodes), smallest], axis=1))
            raise InputError(
                f"the graph of round {k} is not strongly connected: {names}; "
                "Push-Pull needs a directed path from every node to every other: add arcs between them"
            )


def directed_ring(nodes: int) -> DirectedNetwork:
    """Return the directed ring: node i sends to i + 1, the last one to node 0.

    The eigenvalues of R and C are ``1/2 + exp(2 pi i j / nodes) / 2``, so ``chi = 1 / (1 - cos(pi / nodes))``.

    Examples
    --------
    >>> directed_ring(4).arcs(0).tolist()
    [[3, 0], [0, 1], [1, 2], [2, 3]]
    """
    nodes = node_count(nodes)
    one = np.arange(nodes)
    links = Links.of(nodes, [_sorted(np.stack([one, (one + 1) % nodes], axis=1), nodes)])
    # ARPACK does not separate the crowd of eigenvalues near 1 of a large ring.
    rho = math.cos(math.pi / nodes) if nodes > spectra.DENSE else None
    return DirectedNetwork(links, [0], {"generator": "directed_ring", "nodes": nodes}, [circle(nodes)], rho)


def directed_erdos_renyi(nodes: int, p: float, *, graphs: int = 1, seed: int = 0) -> DirectedNetwork:
    """Return graphs in which every node sends to every other with probability p, independently.

    A graph that is not strongly connected is repaired by one random directed cycle through its strong
    components: a random node of each, in random order, sends to the next one's, the last to the first's.
    With p=0 that is a random directed ring. The mean in- and out-degree is about ``p * nodes``. The rounds go
    through the graphs in order, again and again; graph g has its own stream of random numbers.

    Examples
    --------
    >>> network = directed_erdos_renyi(50, 0.1, graphs=3, seed=7)
    >>> network.graphs, network.period
    (3, 3)
    """
    nodes, graphs, seed = node_count(nodes), graph_count(graphs), seed_number(seed)
    p = real("p", p, 0, 1, "it is a probability")
    what = f"directed_erdos_renyi({nodes}, {p}, graphs={graphs})"
    link_count(graphs * max(nodes, p * nodes * (nodes - 1)), what, "take a smaller p or fewer graphs")
    links = Links.of(nodes, (_random_arcs(nodes, p, seed, g) for g in range(graphs)))
    recipe = {"generator": "directed_erdos_renyi", "nodes": nodes, "p": p, "graphs": graphs, "seed": seed}
    return DirectedNetwork(links, np.arange(graphs), recipe)


def directed_geometric(nodes: int, radius: float, *, graphs: int = 1, seed: int = 0) -> DirectedNetwork:
    """Return geometric graphs of nodes whose radios have different ranges.

    Each graph draws its nodes afresh, uniformly in [0, 1]^2 (the points of `geometric` with the same seed), and
    for each node i a factor r_i, uniformly in [0.5, 1.5]; i sends to every node closer than ``radius * r_i``. A
    graph that is not strongly connected is repaired along the Euclidean minimum spanning tree: those of its
    links that join different strong components become arcs both ways. The rounds go through the graphs in
    order, again and again; graph g has its own stream of random numbers.

    Examples
    --------
    >>> network = directed_geometric(50, 0.3, graphs=3, seed=7)
    >>> network.graphs, network.positions(0).shape
    (3, (50, 2))
    """
    nodes, graphs, seed = node_count(nodes), graph_count(graphs), seed_number(seed)
    radius = real("radius", radius, 0, math.inf, "e.g. radius=0.3", strict=True)
    share = min(1.0, 13 / 12 * math.pi * min(radius, FARTHEST) ** 2)  # the mean of r_i^2 is 13/12
    what = f"directed_geometric({nodes}, {radius:.3g}, graphs={graphs})"
    link_count(graphs * max(nodes, share * nodes * (nodes - 1)), what, "take a smaller radius or fewer graphs")
    drawn = [_radio_arcs(nodes, radius, seed, g) for g in range(graphs)]
    recipe = {"generator": "directed_geometric", "nodes": nodes, "radius": radius, "graphs": graphs, "seed": seed}
    links = Links.of(nodes, [arcs for arcs, _ in drawn])
    return DirectedNetwork(links, np.arange(graphs), recipe, [points for _, points in drawn])


def from_digraphs(graphs: Iterable[Any]) -> DirectedNetwork:
    """Return the directed network that goes through the given graphs in order, again and again.

    They have the same nodes and are strongly connected. An edge (a, b) says that a sends to b; an undirected
    `networkx.Graph` stands for arcs both ways; parallel edges count once, and graphs that are alike are held
    once. Weights are not read: R and C divide evenly. Node i of the network is the i-th label of the first
    graph, sorted if they can be sorted, otherwise in the graph's own order.

    Examples
    --------
    >>> import networkx as nx
    >>> network = from_digraphs([nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")]), nx.Graph(["ab", "bc"])])
    >>> network.arcs(0).tolist(), network.arcs(1).tolist()
    ([[2, 0], [0, 1], [1, 2]], [[1, 0], [0, 1], [2, 1], [1, 2]])
    """
    import networkx as nx

    members = [graphs] if isinstance(graphs, nx.Graph) else as_list(graphs, "graphs", "networkx.DiGraph")
    index = label_index([g.to_undirected(as_view=True) if isinstance(g, nx.DiGraph) else g for g in members])
    parts = [_read_arcs(graph, k, index) for k, graph in enumerate(members)]
    places = [node_positions(graph, index) for graph in members]
    both = zip(parts, places, strict=True)
    first, order = distinct(a.tobytes() + (b"" if p is None else p.tobytes()) for a, p in both)
    links = Links.of(len(index), [parts[k] for k in first])
    recipe = {"generator": "from_digraphs", "nodes": len(index), "graphs": len(members)}
    recipe["sha256"] = digest(links, np.ones(len(links.edges)), order)
    return DirectedNetwork(links, order, recipe, [places[k] for k in first])


def _sorted(arcs: npt.NDArray[Any], nodes: int) -> Ints:
    """Return arcs each once, sorted by (receiver, sender)."""
    codes = np.unique(arcs[:, RECEIVER].astype(np.int64) * nodes + arcs[:, SENDER])
    return np.stack([codes % nodes, codes // nodes], axis=1).astype(np.int32)


def _random_arcs(nodes: int, p: float, seed: int, g: int) -> Ints:
    """Draw one graph, the arcs up and the arcs down apart, and make it strongly connected."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(g,)))
    arcs = np.concatenate([random_pairs(nodes, p, rng), random_pairs(nodes, p, rng)[:, ::-1]])
    count, labels = strong_labels(nodes, arcs)
    if count > 1:
        shuffled = rng.permutation(nodes)
        cycle = shuffled[rng.permutation(np.unique(labels[shuffled], return_index=True)[1])]
        arcs = np.concatenate([arcs, np.stack([cycle, np.roll(cycle, -1)], axis=1)])
    return _sorted(arcs, nodes)


def _radio_arcs(nodes: int, radius: float, seed: int, g: int) -> tuple[Ints, Floats]:
    """Draw the points and ranges of one graph; return its arcs, made strongly connected, and the points."""
    from scipy.spatial import KDTree

    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(g,)))
    points = rng.random((nodes, 2))
    reach = min(radius, FARTHEST) * rng.uniform(0.5, 1.5, nodes)
    # The query is slightly too wide; the comparison below decides.
    pairs = KDTree(points).query_pairs(reach.max() * (1 + 1e-9), output_type="ndarray")
    far = np.hypot(*(points[pairs[:, 0]] - points[pairs[:, 1]]).T)
    arcs = np.concatenate([pairs[far < reach[pairs[:, 0]]], pairs[far < reach[pairs[:, 1]]][:, ::-1]])
    count, labels = strong_labels(nodes, arcs)
    if count > 1:
        tree = spanning_trees(points[None])[0]
        bridges = tree[labels[tree[:, 0]] != labels[tree[:, 1]]]
        arcs = np.concatenate([arcs, bridges, bridges[:, ::-1]])
    return _sorted(arcs, nodes), points


def _read_arcs(graph: Any, k: int, index: dict[Any, int]) -> Ints:
    """Return one graph's arcs, sorted; those of an undirected one go both ways."""
    arcs = np.array([(index[a], index[b]) for a, b in graph.edges()], dtype=np.int64).reshape(-1, 2)
    loops = np.flatnonzero(arcs[:, SENDER] == arcs[:, RECEIVER])
    if loops.size:
        name = list(index)[int(arcs[loops[0], SENDER])]
        raise InputError(
            f"graph {k} has a self-loop at node {name!r}, but an arc joins two nodes (R and C give every node a "
            "weight for itself anyway); graph.remove_edges_from(nx.selfloop_edges(graph)) drops them"
        )
    return _sorted(arcs if graph.is_directed() else np.concatenate([arcs, arcs[:, ::-1]]), len(index))
