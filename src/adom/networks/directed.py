"""Directed, possibly changing networks: messages travel along arcs, from sender to receiver.

Each directed graph gives two averaging matrices. A receiver weighs the messages that it gets, so R is row-stochastic:
``R_ij = 1 / (1 + in-degree of i)`` for j = i and every j that sends to i. A sender splits its own value, so C is
column-stochastic: ``C_ij = 1 / (1 + out-degree of j)`` for i = j and every i that j sends to. On a strongly connected
graph both are primitive: 1 is a simple eigenvalue, and all others are smaller in modulus. All diagonal entries are
positive, so the same is true of the products of R(k), and of C(k), over a window of rounds whose arcs together are
strongly connected.

Reference: S. Pu, W. Shi, J. Xu, A. Nedic, "Push-Pull gradient methods for distributed optimization in
networks", IEEE Transactions on Automatic Control, 2020; arXiv:1810.06653.
"""

import math
from collections.abc import Iterable
from functools import cached_property, partial, reduce
from operator import matmul
from typing import Any

import numpy as np
import numpy.typing as npt

from ..util.checks import check_real
from . import spectra
from .classic import circle, random_pairs, random_stream
from .edges import Ints, Links, Longs, component_labels, distinct_pairs, raw_labels, spanning_tree
from .from_data import as_list, distinct_graphs, label_index, node_positions, read_pairs
from .network import QUICK, GraphSequence
from .pool import Batch, Graph, Pool, gather, pool_of
from .recipes import generator, graph_count, link_count, node_count, seed_number
from .windows import distinct_windows, require_joined, smallest_window

SENDER, RECEIVER = 0, 1  # the columns of an array of arcs
WORK = 10**8
"""Cap on the work of `least_weight`, in nodes and arcs visited; at least one period is always run."""
FARTHEST = 3.0
"""A radius of which even half, the shortest range, covers the unit square."""


class DirectedNetwork(GraphSequence):
    """A directed network that changes from round to round, strongly connected over every `window` of rounds.

    Round k uses the graph ``order[k % period]``: the matrices R(k) and C(k) are pure functions of k.

    Use `directed_ring`, `directed_erdos_renyi`, `directed_geometric` or `from_digraphs` to make one. See `Network` for
    pool, order, recipe, positions and graphs that are not held. `rho`, if given, is the rho of `chi`.

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

    _links = "arcs"

    def __init__(self, pool: Pool, order: Any, recipe: dict[str, Any], rho: float | None = None) -> None:
        super().__init__(pool, order, recipe, given=rho is not None)
        self._rho = rho
        if pool.held and not pool.connected:
            require_joined(pool, self._order, strong=True)

    def arcs(self, g: int) -> Ints:
        """Return the (sender, receiver) rows of graph g: int32, sorted by (receiver, sender), read-only."""
        return self._pool.graph(self._index(g)).edges

    def row_stochastic(self, k: int) -> Any:
        """Return R(k), whose rows sum to 1: an array up to 2,000 nodes, a `scipy.sparse.csr_array` above."""
        return self._matrix(self._round(k), RECEIVER)

    def column_stochastic(self, k: int) -> Any:
        """Return C(k), whose columns sum to 1: an array up to 2,000 nodes, a `scipy.sparse.csr_array` above."""
        return self._matrix(self._round(k), SENDER)

    def graph(self, k: int) -> Any:
        """Return the graph of round k as a `networkx.DiGraph`; nodes carry ``pos`` if positions are known."""
        import networkx as nx

        g = self._round(k)
        graph = nx.DiGraph()
        graph.add_nodes_from(range(self.nodes))
        graph.add_edges_from(self.arcs(g).tolist())
        self._add_positions(graph, g)
        return graph

    @cached_property
    def window(self) -> int:
        """The smallest B such that the arcs of any B consecutive rounds together are strongly connected.

        1 if every graph is. A step of a method still takes one round, as in the proof of Push-DIGing.
        """
        return 1 if self._pool.connected else smallest_window(self._pool, self._order, strong=True)

    @cached_property
    def chi(self) -> float:
        """How slowly the network mixes per round: ``1 / (1 - rho)``.

        rho is the second largest modulus among the eigenvalues of R(k) or C(k), the worst over all rounds. With windows
        of B rounds, it is the B-th root of the same for the products of R(k), or of C(k), over a window. For a
        symmetric averaging matrix ``I - W / lambda_max`` this is the undirected chi. Use it to compare networks; it is
        no constant of a theorem, because a product of different R(k) may contract more slowly than each alone. It is
        infinite if rho rounds to 1. `examined` has the graphs that it is computed from.
        """
        rho = self._rho
        if rho is None:
            ends = (RECEIVER, SENDER)
            worst = max(spectra.second_modulus(self._product(w, end)) for w in self._windows() for end in ends)
            rho = worst ** (1 / self.window)
        return 1.0 / (1.0 - rho) if rho < 1.0 else math.inf

    @cached_property
    def least_weight(self) -> float:
        """The smallest push-sum weight of any node in any round, if all start at 1.

        Where most arcs lead one way, the weights of nodes upstream vanish exponentially; `chi` does not show this.
        """
        order = self._order if self.held else self._examined
        period, least = len(order), 1.0
        weights, before = np.ones(self.nodes), np.zeros(self.nodes)
        for k in range(max(period, WORK // (self.nodes + max(len(self.arcs(int(g))) for g in order[:1].tolist())))):
            if k % period == 0:
                if np.allclose(weights, before, 1e-6, 0):
                    break
                before = weights
            weights = self._matrix(int(order[k % period]), SENDER) @ weights
            least = min(least, float(weights.min()))
        return least

    @property
    def chi_known(self) -> bool:
        """Whether `chi` was given or already computed; for large networks computing it takes long."""
        return self._rho is not None or "chi" in self.__dict__

    @property
    def chi_quick(self) -> bool:
        """Whether computing `chi` takes a fraction of a second."""
        return super().chi_quick if self.connected else self.nodes**3 * self.period * self.window <= QUICK

    def describe(self) -> dict[str, int | float]:
        """Return the network's key figures; the mean is over the rounds of one period."""
        used, times = self._described()
        sizes = np.array([len(self.arcs(g)) for g in used.tolist()])
        into, out = (np.stack([self._degrees(g, end) for g in used.tolist()]) for end in (RECEIVER, SENDER))
        return {
            "nodes": self.nodes,
            "graphs": self.graphs,
            "period": self.period,
            "window": self.window,
            "arcs_min": int(sizes.min()),
            "arcs_mean": float((sizes * times).sum() / times.sum()),
            "arcs_max": int(sizes.max()),
            "in_degree_min": int(into.min()),
            "in_degree_max": int(into.max()),
            "out_degree_min": int(out.min()),
            "out_degree_max": int(out.max()),
            "chi": self.chi,
        }

    def _bounded(self, recipe: dict[str, Any], chi: float) -> "DirectedNetwork":
        """Return the same network with its chi given."""
        return DirectedNetwork(self._pool, self._order, recipe, rho=1 - 1 / chi)

    def _degrees(self, g: int, end: int) -> Longs:
        """Return every node's in-degree (end=RECEIVER) or out-degree (end=SENDER) in graph g."""
        return np.bincount(self.arcs(g)[:, end], minlength=self.nodes)

    def _windows(self) -> list[list[int]]:
        """Return the graphs of each distinct window; with windows of one round, only the examined graphs."""
        if self.window == 1:
            return [[g] for g in self._examined.tolist()]
        first, _ = distinct_windows(self._order, self.window)
        return [self._order[np.arange(k, k + self.window) % self.period].tolist() for k in first.tolist()]

    def _product(self, graphs: list[int], end: int) -> Any:
        """Return the product of the matrices of some graphs; the first graph is applied first."""
        matrices = [self._matrix(g, end) for g in reversed(graphs)]
        if len(graphs) > 1 and self.nodes > spectra.DENSE:
            from scipy.sparse.linalg import aslinearoperator

            matrices = [aslinearoperator(matrix) for matrix in matrices]
        return reduce(matmul, matrices)

    def _matrix(self, g: int, end: int) -> Any:
        """Return R (end=RECEIVER) or C (end=SENDER) of graph g: the node at that end weighs its arcs equally."""
        from scipy.sparse import coo_array

        itself = np.repeat(np.arange(self.nodes, dtype=np.int32)[:, None], 2, axis=1)
        arcs = np.concatenate([self.arcs(g), itself])
        values = 1.0 / (1.0 + self._degrees(g, end)[arcs[:, end]])
        matrix = coo_array((values, (arcs[:, RECEIVER], arcs[:, SENDER])), shape=(self.nodes, self.nodes))
        return matrix.tocsr() if self.nodes > spectra.DENSE else matrix.toarray()


@generator
def directed_ring(nodes: int) -> DirectedNetwork:
    """Return the directed ring: node i sends to i + 1, the last one to node 0.

    The eigenvalues of R and C are ``1/2 + exp(2 pi i j / nodes) / 2``, so ``chi = 1 / (1 - cos(pi / nodes))``.

    Examples
    --------
    >>> directed_ring(4).arcs(0).tolist()
    [[3, 0], [0, 1], [1, 2], [2, 3]]
    """
    nodes = node_count(nodes)
    everyone = np.arange(nodes)
    links = Links.of(nodes, [sorted_arcs(np.stack([everyone, (everyone + 1) % nodes], axis=1), nodes)])
    # ARPACK cannot separate the many eigenvalues near 1 of a large ring.
    rho = math.cos(math.pi / nodes) if nodes > spectra.DENSE else None
    pool = Pool(Batch(links, positions=[circle(nodes)]))
    return DirectedNetwork(pool, [0], {"generator": "directed_ring", "nodes": nodes}, rho)


@generator
def directed_erdos_renyi(nodes: int, p: float, *, graphs: int = 1, seed: int = 0) -> DirectedNetwork:
    """Return graphs in which every node sends to every other with probability p, independently.

    A graph that is not strongly connected is repaired by a directed cycle through one random node of each strong
    component, in random order. With p=0 this gives a random directed ring. The mean in- and out-degree is about
    ``p * nodes``. The rounds cycle through the graphs; graph g has its own stream of random numbers.

    Examples
    --------
    >>> network = directed_erdos_renyi(50, 0.1, graphs=3, seed=7)
    >>> network.graphs, network.period
    (3, 3)
    """
    nodes, graphs, seed = node_count(nodes), graph_count(graphs), seed_number(seed)
    p = check_real("p", p, 0, 1, "it is a probability")
    links = max(nodes, p * nodes * (nodes - 1))
    link_count(links, f"a graph of directed_erdos_renyi({nodes}, {p})", "take a smaller p")
    recipe = {"generator": "directed_erdos_renyi", "nodes": nodes, "p": p, "graphs": graphs, "seed": seed}
    draw = partial(gather, nodes, partial(_random_arcs, nodes, p, seed), None, directed=True)
    return DirectedNetwork(pool_of(nodes, graphs, draw, links, weights=False), np.arange(graphs), recipe)


@generator
def directed_geometric(nodes: int, radius: float, *, graphs: int = 1, seed: int = 0) -> DirectedNetwork:
    """Return geometric graphs of nodes whose radios have different ranges.

    Each graph draws new points uniformly in [0, 1]^2 (the points of `geometric` with the same seed) and, for each node
    i, a factor r_i uniformly in [0.5, 1.5]. Node i sends to every node closer than ``radius * r_i``. A graph that is
    not strongly connected is repaired along its Euclidean minimum spanning tree: each link of the tree between
    different strong components becomes arcs in both directions. The rounds cycle through the graphs; graph g has its
    own stream of random numbers.

    Examples
    --------
    >>> network = directed_geometric(50, 0.3, graphs=3, seed=7)
    >>> network.graphs, network.positions(0).shape
    (3, (50, 2))
    """
    nodes, graphs, seed = node_count(nodes), graph_count(graphs), seed_number(seed)
    radius = check_real("radius", radius, 0, math.inf, "e.g. radius=0.3", strict=True)
    share = min(1.0, 13 / 12 * math.pi * min(radius, FARTHEST) ** 2)  # the mean of r_i^2 is 13/12
    links = max(nodes, share * nodes * (nodes - 1))
    link_count(links, f"a graph of directed_geometric({nodes}, {radius:.3g})", "take a smaller radius")
    recipe = {"generator": "directed_geometric", "nodes": nodes, "radius": radius, "graphs": graphs, "seed": seed}
    draw = partial(gather, nodes, partial(_radio_arcs, nodes, radius, seed), None, directed=True)
    pool = pool_of(nodes, graphs, draw, links, weights=False, positions=True)
    return DirectedNetwork(pool, np.arange(graphs), recipe)


def sorted_arcs(arcs: npt.NDArray[Any], nodes: int) -> Ints:
    """Return the arcs without duplicates, sorted by (receiver, sender)."""
    return distinct_pairs(arcs[:, [RECEIVER, SENDER]], nodes)[:, [RECEIVER, SENDER]]


def _random_arcs(nodes: int, p: float, seed: int, g: int) -> Graph:
    """Draw one graph and make it strongly connected; arcs to higher and to lower nodes are drawn separately."""
    rng = random_stream(seed, g)
    arcs = np.concatenate([random_pairs(nodes, p, rng), random_pairs(nodes, p, rng)[:, ::-1]])
    count, labels = raw_labels(nodes, arcs, strong=True)
    if count > 1:
        shuffled = rng.permutation(nodes)
        cycle = shuffled[rng.permutation(np.unique(labels[shuffled], return_index=True)[1])]
        arcs = np.concatenate([arcs, np.stack([cycle, np.roll(cycle, -1)], axis=1)])
    return Graph(sorted_arcs(arcs, nodes))


def _radio_arcs(nodes: int, radius: float, seed: int, g: int) -> Graph:
    """Draw the points and ranges of one graph, and make it strongly connected."""
    from scipy.spatial import KDTree

    rng = random_stream(seed, g)
    points = rng.random((nodes, 2))
    reach = min(radius, FARTHEST) * rng.uniform(0.5, 1.5, nodes)
    # The query is slightly too wide; the comparison below decides.
    pairs = KDTree(points).query_pairs(reach.max() * (1 + 1e-9), output_type="ndarray")
    far = np.hypot(*(points[pairs[:, 0]] - points[pairs[:, 1]]).T)
    arcs = np.concatenate([pairs[far < reach[pairs[:, 0]]], pairs[far < reach[pairs[:, 1]]][:, ::-1]])
    count, labels = raw_labels(nodes, arcs, strong=True)
    if count > 1:
        tree = spanning_tree(points)
        bridges = tree[labels[tree[:, 0]] != labels[tree[:, 1]]]
        arcs = np.concatenate([arcs, bridges, bridges[:, ::-1]])
    return Graph(sorted_arcs(arcs, nodes), positions=points)


def from_digraphs(graphs: Iterable[Any]) -> DirectedNetwork:
    """Return the directed network that cycles through the given graphs.

    The graphs must have the same nodes and together be strongly connected; single ones need not be (see
    `DirectedNetwork.window`). An edge (a, b) means that a sends to b. An undirected `networkx.Graph` stands for arcs in
    both directions. Parallel edges count once, and equal graphs are stored once. Edge weights are ignored. Node i of
    the network is the i-th label of the first graph, sorted if the labels can be sorted, otherwise in the graph's own
    order.

    Examples
    --------
    >>> import networkx as nx
    >>> network = from_digraphs([nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")]), nx.Graph(["ab", "bc"])])
    >>> network.arcs(0).tolist(), network.arcs(1).tolist()
    ([[2, 0], [0, 1], [1, 2]], [[1, 0], [0, 1], [2, 1], [1, 2]])
    >>> there, back = nx.DiGraph([(0, 1), (1, 2)]), nx.DiGraph([(2, 0)])
    >>> back.add_node(1)
    >>> from_digraphs([there, back]).window
    2
    """
    import networkx as nx

    members = [graphs] if isinstance(graphs, nx.Graph) else as_list(graphs, "graphs", "networkx.DiGraph")
    index = label_index([g.to_undirected(as_view=True) if isinstance(g, nx.DiGraph) else g for g in members])
    parts = [
        Graph(sorted_arcs(_arcs(graph, k, index), len(index)), positions=node_positions(graph, index))
        for k, graph in enumerate(members)
    ]
    links, ones, positions, order = distinct_graphs(len(index), parts)
    apart = np.array([component_labels(len(index), arcs, strong=True)[0] > 1 for arcs in links.each()])
    recipe = {"generator": "from_digraphs", "nodes": len(index), "graphs": len(members)}
    recipe["sha256"] = links.digest(ones, order)
    return DirectedNetwork(Pool(Batch(links, positions=positions, apart=apart)), order, recipe)


def _arcs(graph: Any, k: int, index: dict[Any, int]) -> Ints:
    """Return the arcs of graph k, in both directions if it is undirected."""
    pairs, _ = read_pairs(graph, k, index)
    return pairs if graph.is_directed() else np.concatenate([pairs, pairs[:, ::-1]])
