"""Links of graphs in flat arrays, their components, and the fewest links that join these.

A thousand graphs on the same nodes are one array of node pairs and one of offsets, not a list of graph objects.

A graph with c components needs c - 1 more links. Each kind of network chooses them in its own way: at random
(`join_at_random`), among failed links (`joining_rows`), as a fixed chain (`join_in_chain`, for imported graphs), or
the shortest ones (`Clouds` and `near_graph`, for points in the plane).
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..native import graphs as compiled

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

NAMED = 6
"""The most components, and nodes of each, that an error message names."""

PAIRWISE = 400
"""Up to this many nodes C++ computes all distances; above, or without a compiler, a KD-tree finds the close pairs."""
FEW = 50
"""Up to this many nodes a spanning tree is chosen from all pairs; above, from a Delaunay triangulation."""
CLOSE = 1.5
"""Pairs closer than this over the square root of the number of nodes are close: about 7 per node."""
CROWD = 50
"""Close pairs per node beyond which points count as clustered; then a Delaunay triangulation is faster."""


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only view of `array`."""
    view = array.view()
    view.flags.writeable = False
    return view


def canonical(pairs: npt.NDArray[Any], nodes: int) -> Ints:
    """Return node pairs with u < v, without duplicates, sorted lexicographically.

    Examples
    --------
    >>> canonical(np.array([[2, 0], [1, 0], [0, 2]]), nodes=3).tolist()
    [[0, 1], [0, 2]]
    """
    if compiled.usable():
        return compiled.canonical(pairs, nodes)
    return distinct_pairs(np.sort(np.asarray(pairs).reshape(-1, 2), axis=1), nodes)


def codes_of(pairs: npt.NDArray[Any], nodes: int) -> Longs:
    """Return u * nodes + v for every pair: a number whose order is the lexicographic one."""
    codes: Longs = pairs[:, 0].astype(np.int64) * nodes + pairs[:, 1]
    return codes


def distinct_pairs(pairs: npt.NDArray[Any], nodes: int) -> Ints:
    """Return sorted pairs without duplicates; much faster than `numpy.unique`, which hashes first."""
    codes = codes_of(pairs, nodes)
    codes.sort()
    fresh = np.ones(len(codes), dtype=np.bool_)
    np.not_equal(codes[1:], codes[:-1], out=fresh[1:])
    codes = codes if fresh.all() else codes[fresh]
    return np.stack([codes // nodes, codes % nodes], axis=1, dtype=np.int32, casting="same_kind")


def with_links(pairs: Ints, extra: Ints, nodes: int) -> Ints:
    """Insert a few new links into canonical pairs; none of them may be among the pairs.

    Examples
    --------
    >>> with_links(np.array([[0, 1], [1, 2]], dtype=np.int32), np.array([[2, 0]], dtype=np.int32), nodes=3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    if not len(extra):
        return pairs
    extra = canonical(extra, nodes)
    rows = np.searchsorted(codes_of(pairs, nodes), codes_of(extra, nodes))
    return np.insert(pairs, rows, extra, axis=0)


@dataclass(frozen=True, eq=False)
class Links:
    """The links of several graphs on nodes 0, ..., nodes - 1.

    Attributes
    ----------
    nodes : int
    edges : (total, 2) int32
        One graph after another; within a graph u < v, unique and sorted lexicographically.
    offsets : (graphs + 1,) int64
        Graph g owns the rows offsets[g], ..., offsets[g + 1] - 1.
    """

    nodes: int
    edges: Ints
    offsets: Longs

    @classmethod
    def of(cls, nodes: int, graphs: Iterable[Ints]) -> "Links":
        """Concatenate graphs, each an (E, 2) array in canonical form."""
        parts = list(graphs)
        offsets = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        edges = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return cls(nodes, np.ascontiguousarray(edges, dtype=np.int32), offsets)

    @property
    def graphs(self) -> int:
        """The number of graphs."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Longs:
        """The number of links of every graph."""
        return np.diff(self.offsets)

    def rows(self, graph: int) -> slice:
        """Return the rows of `edges`, and of any array aligned with it, that belong to one graph."""
        return slice(int(self.offsets[graph]), int(self.offsets[graph + 1]))

    def split(self, values: Floats) -> Iterator[tuple[Ints, Floats]]:
        """Yield the links of every graph and the values aligned with them."""
        for graph in range(self.graphs):
            yield self.edges[self.rows(graph)], values[self.rows(graph)]

    def each(self) -> Iterator[Ints]:
        """Yield the links of every graph."""
        for graph in range(self.graphs):
            yield self.edges[self.rows(graph)]

    def some(self, values: Floats, chosen: Bools) -> tuple["Links", Floats]:
        """Return the chosen graphs and the values aligned with their links."""
        if chosen.all():
            return self, values
        rows = np.repeat(chosen, self.sizes)
        offsets = np.concatenate([[0], np.cumsum(self.sizes[chosen])]).astype(np.int64)
        return Links(self.nodes, self.edges[rows], offsets), values[rows]

    def digest(self, values: Floats, order: Ints) -> str:
        """Return the SHA-256 of graphs, unscaled weights and order, which identifies imported data in a recipe."""
        content = hashlib.sha256(str(self.nodes).encode())
        for array in (order, self.offsets, self.edges, values):
            content.update(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
        return content.hexdigest()


def adjacency(nodes: int, pairs: Any, values: Any) -> Any:
    """Return a sparse matrix with one entry per pair."""
    from scipy.sparse import coo_array

    return coo_array((values, (pairs[:, 0], pairs[:, 1])), shape=(nodes, nodes)).tocsr()


def raw_labels(nodes: int, pairs: Any, strong: bool = False) -> tuple[int, Ints]:
    """Return the number of (strong) components and each node's component, numbered in no particular order."""
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(pairs), dtype=np.int8)
    count, labels = connected_components(adjacency(nodes, pairs, ones), directed=strong, connection="strong")
    return int(count), labels


def component_labels(nodes: int, pairs: Any, strong: bool = False) -> tuple[int, Ints]:
    """Return the same as `raw_labels`, with components numbered in the order of their smallest nodes."""
    if compiled.usable() and not strong:
        return compiled.labels(nodes, pairs)
    count, labels = raw_labels(nodes, pairs, strong)
    first = np.unique(labels, return_index=True)[1]
    return count, np.argsort(np.argsort(first)).astype(np.int32)[labels]


def name_components(count: int, labels: Ints) -> str:
    """Return text such as `2 components, {0, 1, 4} and {2, 3}`, abbreviated if it is long."""
    names = []
    for label in range(min(count, NAMED)):
        members = np.flatnonzero(labels == label)
        more = f", ... {len(members) - NAMED} more" if len(members) > NAMED else ""
        names.append("{" + ", ".join(str(node) for node in members[:NAMED]) + more + "}")
    last = f"{count - NAMED} more" if count > NAMED else names.pop()
    return f"{count} components, {', '.join(names)} and {last}"


def join_in_chain(nodes: int, pairs: Ints) -> Ints:
    """Return links that chain the components by their smallest nodes, in ascending order.

    Examples
    --------
    >>> join_in_chain(5, np.array([[1, 3]], dtype=np.int32)).tolist()
    [[0, 1], [1, 2], [2, 4]]
    """
    _, labels = component_labels(nodes, pairs)
    first = np.unique(labels, return_index=True)[1].astype(np.int32)
    return np.stack([first[:-1], first[1:]], axis=1)


def join_at_random(nodes: int, pairs: Ints, rng: np.random.Generator) -> Ints:
    """Return links that join each component, the largest first, at random to those before it.

    Each link goes from a random node of the component to a random node of all earlier components. Components of equal
    size come in random order. If there is a giant component, most links go to it, as if random pairs were added until
    the graph is connected.
    """
    count, labels = component_labels(nodes, pairs)
    if count == 1:
        return np.zeros((0, 2), dtype=np.int32)
    ranking = np.lexsort((rng.random(count), -np.bincount(labels)))
    rank = np.argsort(ranking)[labels]
    arranged = np.argsort(rank, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(rank, minlength=count))
    earlier = arranged[rng.integers(0, ends[:-1])]
    member = arranged[rng.integers(ends[:-1], ends[1:])]
    return np.stack([earlier, member], axis=1)


def cheapest_tree(nodes: int, pairs: Any, order: Any) -> Bools:
    """Mark the pairs that Kruskal's method keeps when it takes them in the given order.

    `order` lists the pairs from the cheapest to the most expensive. Pairs must be distinct.
    """
    from scipy.sparse.csgraph import minimum_spanning_tree

    price = np.empty(len(pairs), dtype=np.float64)
    price[order] = np.arange(1, len(pairs) + 1)
    tree = minimum_spanning_tree(adjacency(nodes, pairs, price))
    kept = np.zeros(len(pairs), dtype=np.bool_)
    kept[np.asarray(order)[tree.data.astype(np.int64) - 1]] = True
    return kept


def joining_rows(labels: Ints, pairs: Any, order: Any) -> Longs:
    """Return the rows of the pairs that Kruskal's method adds to the components.

    `labels` has each node's component, numbered from 0 without gaps. `order` lists rows of `pairs`, not necessarily
    all, from the cheapest to the most expensive. The returned rows are in that order.
    """
    a, b = np.sort(labels[pairs[order]], axis=1).astype(np.int64).T
    across = np.flatnonzero(a != b)
    a, b, rows = a[across], b[across], np.asarray(order)[across]
    count = int(labels.max()) + 1
    # Of all pairs that join the same two components, only the cheapest matters.
    first = np.sort(np.unique(a * count + b, return_index=True)[1])
    kept = cheapest_tree(count, np.stack([a[first], b[first]], axis=1), np.arange(len(first)))
    return np.asarray(rows[first[kept]], dtype=np.int64)


class Clouds:
    """Points of several graphs, and their minimum spanning trees.

    Linking all pairs closer than a radius leaves components. The shortest links that join these are exactly the links
    of the minimum spanning tree that are not shorter than the radius (Kruskal). So for every radius the repaired graph
    is the geometric graph plus the same tree. `points` has shape (graphs, nodes, 2). Without `repair` there are no
    trees.
    """

    def __init__(self, points: Floats, repair: bool = True) -> None:
        self.points, self._repair = points, repair
        self.graphs, self.nodes, _ = points.shape
        self._trees = None
        if self.nodes <= PAIRWISE and compiled.usable():
            nothing = np.zeros((self.graphs, self.nodes - 1, 2), dtype=np.int32)  # no links: node 0 with itself
            self._trees = compiled.trees(points) if repair else nothing

    def redraw(self, g: int, cloud: Floats) -> None:
        """Replace the points of graph g."""
        self.points[g] = cloud
        if self._trees is not None:
            self._trees[g] = compiled.trees(cloud[None])[0]

    def links(self, radius: float, chosen: Longs | None = None) -> Links:
        """Return the links of each chosen graph: the pairs closer than the radius and, with `repair`, its tree."""
        graphs = np.arange(self.graphs) if chosen is None else chosen
        if self._trees is None:
            return Links.of(self.nodes, [near_graph(self.points[g], radius, self._repair) for g in graphs.tolist()])
        edges, sizes = compiled.near(self.points[graphs], radius, self._trees[graphs])
        return Links(self.nodes, edges, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


def near_graph(cloud: Floats, radius: float, repair: bool = True) -> Ints:
    """Return the links of one graph; unlike `Clouds.links`, it needs no complete spanning tree."""
    from scipy.spatial import KDTree

    tree = KDTree(cloud)
    # The query is slightly too wide; the comparison decides, as it does for few nodes.
    pairs = tree.query_pairs(radius * (1 + 1e-9), output_type="ndarray")
    near = canonical(pairs[squares(cloud, pairs) < radius**2], len(cloud))
    if not repair:
        return near
    return with_links(near, shortest_joins(cloud, near, radius, tree), len(cloud))


def shortest_joins(cloud: Floats, near: Ints, radius: float, tree: Any) -> Ints:
    """Return the shortest links that join the components of a geometric graph.

    These are the links of the minimum spanning tree that are not shorter than the radius. The rest of the tree is not
    computed: of two nodes in different components, at least one lies outside the largest component. So it is enough to
    search around the nodes outside it, at growing distances, and to run Kruskal's method on the pairs found.

    `near` holds the pairs closer than the radius, and `tree` is the KD-tree of the points.
    """
    from scipy.spatial import KDTree

    count, labels = component_labels(len(cloud), near)
    start, joins = labels, [np.zeros((0, 2), dtype=np.int32)]
    reach = max(radius, CLOSE / 4 / np.sqrt(len(cloud)))
    while count > 1:
        reach *= 2
        outside = np.flatnonzero(labels != np.argmax(np.bincount(labels)))
        around = KDTree(cloud[outside])
        if len(outside) > len(cloud) / 4 or around.count_neighbors(tree, reach) > CROWD * len(cloud):
            # Most of the tree is needed, or the points are clustered: compute all of it.
            whole = spanning_tree(cloud)
            return np.compress(start[whole[:, 0]] != start[whole[:, 1]], whole, axis=0)
        spots = around.sparse_distance_matrix(tree, reach, output_type="ndarray")
        pairs = np.stack([outside[spots["i"]], spots["j"]], axis=1)
        pairs = canonical(pairs[labels[pairs[:, 0]] != labels[pairs[:, 1]]], len(cloud))
        lengths = squares(cloud, pairs)
        # Pairs at the rim wait for the next search: there its rounding may differ from that of `lengths`.
        order = np.argsort(lengths, kind="stable")
        order = order[: np.searchsorted(lengths[order], (reach * (1 - 1e-9)) ** 2)]
        if len(order):
            joins.append(pairs[joining_rows(labels, pairs, order)])
            count, merged = component_labels(count, labels[joins[-1]])
            labels = merged[labels]
    return np.concatenate(joins)


def squares(cloud: Floats, pairs: Any) -> Floats:
    """Return the squared lengths of pairs."""
    across, along = cloud[:, 0], cloud[:, 1]
    u, v = pairs[:, 0], pairs[:, 1]
    squares: Floats = (across[u] - across[v]) ** 2 + (along[u] - along[v]) ** 2
    return squares


def spanning_tree(cloud: Floats) -> Ints:
    """Return the Euclidean minimum spanning tree, a subset of the Delaunay triangulation (about 3 links per node)."""
    from scipy.spatial import Delaunay

    nodes = len(cloud)
    if nodes <= FEW:
        pairs = np.stack(np.triu_indices(nodes, 1), axis=1).astype(np.int32)
    else:
        mesh = Delaunay(cloud)
        corners = mesh.simplices
        sides = [corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]], mesh.coplanar[:, [0, 2]]]
        pairs = canonical(np.concatenate(sides), nodes)
    return pairs[cheapest_tree(nodes, pairs, np.argsort(squares(cloud, pairs), kind="stable"))]
