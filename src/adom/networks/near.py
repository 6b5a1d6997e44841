"""Points in the plane: pairs closer than a radius, and the shortest links that join components."""

from typing import Any

import numpy as np

from ..native import graphs as compiled
from .connect import cheapest_tree, component_labels, joining_rows
from .links import Floats, Ints, Links, Longs, canonical, with_links

PAIRWISE = 400
"""Up to this many nodes all distances are computed; above, a KD-tree finds the close pairs."""
CHUNK = 4_000_000
"""How many distances are computed at a time."""
FEW = 50
"""Up to this many nodes a spanning tree is chosen from all pairs; above, from a Delaunay triangulation."""
CLOSE = 1.5
"""Pairs closer than this over the square root of the number of nodes are close: about 7 per node."""
CROWD = 50
"""Close pairs per node beyond which points count as clustered; then a Delaunay triangulation is faster."""


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
        if self.nodes <= PAIRWISE:
            nothing = np.zeros((self.graphs, self.nodes - 1, 2), dtype=np.int32)  # no links: node 0 with itself
            self._trees = shortest_trees(points) if repair else nothing

    def redraw(self, g: int, cloud: Floats) -> None:
        """Replace the points of graph g."""
        self.points[g] = cloud
        if self._trees is not None:
            self._trees[g] = shortest_trees(cloud[None])[0]

    def links(self, radius: float, chosen: Longs | None = None) -> Links:
        """Return the links of each chosen graph: the pairs closer than the radius and, with `repair`, its tree."""
        graphs = np.arange(self.graphs) if chosen is None else chosen
        if self._trees is None:
            return Links.of(self.nodes, [near_graph(self.points[g], radius, self._repair) for g in graphs.tolist()])
        near = compiled.near if compiled.usable() else near_pairs
        edges, sizes = near(self.points[graphs], radius, self._trees[graphs])
        return Links(self.nodes, edges, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


def shortest_trees(points: Floats) -> Ints:
    """Return the Euclidean minimum spanning trees, shape (graphs, nodes - 1, 2), by Prim's method on all at once."""
    if compiled.usable():
        return compiled.trees(points)
    graphs, nodes, _ = points.shape
    every, last = np.arange(graphs), np.zeros(graphs, dtype=np.int64)
    best, parent = np.full((graphs, nodes), np.inf), np.zeros((graphs, nodes), dtype=np.int64)
    outside = np.ones((graphs, nodes), dtype=np.bool_)
    codes = np.empty((graphs, nodes - 1), dtype=np.int64)
    for step in range(nodes - 1):
        outside[every, last] = False
        squares = ((points - points[every, last, None]) ** 2).sum(axis=2)
        np.copyto(parent, last[:, None], where=squares < best)
        np.minimum(best, squares, out=best)
        last = np.argmin(np.where(outside, best, np.inf), axis=1)
        ends = last, parent[every, last]
        codes[:, step] = np.minimum(*ends) * nodes + np.maximum(*ends)
    codes.sort(axis=1)
    return np.stack([codes // nodes, codes % nodes], axis=2).astype(np.int32)


def near_pairs(points: Floats, radius: float, trees: Ints) -> tuple[Ints, Longs]:
    """Return each graph's pairs closer than the radius plus its tree, concatenated, and their numbers."""
    graphs, nodes, _ = points.shape
    u, v = np.triu_indices(nodes, 1)
    low, high = np.moveaxis(trees.astype(np.int64), 2, 0)
    tree = low * nodes - low * (low + 1) // 2 + high - low - 1  # row of each tree link in the list of all pairs
    sizes, chosen = [], []
    width = max(1, CHUNK // len(u))
    for start in range(0, graphs, width):
        x, y = np.moveaxis(points[start : start + width], 2, 0)
        near = (x[:, u] - x[:, v]) ** 2 + (y[:, u] - y[:, v]) ** 2 < radius**2
        near[np.arange(len(near))[:, None], tree[start : start + width]] |= (low < high)[start : start + width]
        sizes.append(near.sum(axis=1))
        chosen.append(np.nonzero(near)[1])
    pairs = np.concatenate(chosen)
    return np.stack([u[pairs], v[pairs]], axis=1).astype(np.int32), np.concatenate(sizes)


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
