"""Points in the plane: pairs closer than a radius, and the shortest links that join the components."""

from typing import Any

import numpy as np

from ..native import graphs as compiled
from .connect import cheapest_tree, component_labels, joining_rows
from .links import Floats, Ints, Links, Longs, canonical, with_links

PAIRWISE = 400
"""Up to this many nodes all pairs are measured, above it a KD-tree finds the close ones."""
CHUNK = 4_000_000
"""Pairs that are measured at a time."""
FEW = 50
"""Up to this many nodes a spanning tree is chosen from all pairs, above it from a Delaunay triangulation."""
CLOSE = 1.5
"""Pairs closer than this divided by the root of the number of nodes are close: about 7 a node."""
CROWD = 50
"""Close pairs a node beyond which points count as clustered; a Delaunay triangulation is then quicker."""


class Clouds:
    """Points of several graphs, and their spanning trees.

    Joining all pairs closer than a radius leaves components; the shortest links that join them are exactly the
    spanning tree's links that are not shorter than the radius (Kruskal). So the repaired graph of any radius is the
    geometric graph together with this tree, whatever the radius. `points` has the shape (graphs, nodes, 2); without
    `repair` there are no trees.
    """

    def __init__(self, points: Floats, repair: bool = True) -> None:
        self.points, self._repair = points, repair
        self.graphs, self.nodes, _ = points.shape
        self._trees = None
        if self.nodes <= PAIRWISE:
            nothing = np.zeros((self.graphs, self.nodes - 1, 2), dtype=np.int32)  # links of node 0 with itself
            self._trees = shortest_trees(points) if repair else nothing

    def redraw(self, g: int, cloud: Floats) -> None:
        """Replace the points of graph g."""
        self.points[g] = cloud
        if self._trees is not None:
            self._trees[g] = shortest_trees(cloud[None])[0]

    def links(self, radius: float, chosen: Longs | None = None) -> Links:
        """Return for each chosen graph the pairs closer than the radius with the shortest minimal repair."""
        graphs = np.arange(self.graphs) if chosen is None else chosen
        if self._trees is None:
            return Links.of(self.nodes, [near_graph(self.points[g], radius, self._repair) for g in graphs.tolist()])
        near = compiled.near if compiled.usable() else near_pairs
        edges, sizes = near(self.points[graphs], radius, self._trees[graphs])
        return Links(self.nodes, edges, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


def shortest_trees(points: Floats) -> Ints:
    """Return the Euclidean minimum spanning trees of clouds, (graphs, nodes - 1, 2): Prim's method on all at once."""
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
    """Return the pairs closer than the radius together with the trees, graph after graph, and their numbers."""
    graphs, nodes, _ = points.shape
    u, v = np.triu_indices(nodes, 1)
    low, high = np.moveaxis(trees.astype(np.int64), 2, 0)
    tree = low * nodes - low * (low + 1) // 2 + high - low - 1  # their places among all pairs
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
    """Return the links of one cloud, without its whole spanning tree."""
    from scipy.spatial import KDTree

    tree = KDTree(cloud)
    # The query is slightly too wide; the comparison decides, the same as for few nodes.
    pairs = tree.query_pairs(radius * (1 + 1e-9), output_type="ndarray")
    near = canonical(pairs[squares(cloud, pairs) < radius**2], len(cloud))
    if not repair:
        return near
    return with_links(near, shortest_joins(cloud, near, radius, tree), len(cloud))


def shortest_joins(cloud: Floats, near: Ints, radius: float, tree: Any) -> Ints:
    """Return the shortest links that join the components which linking all pairs closer than a radius leaves.

    They are the links of the minimum spanning tree that are not shorter than the radius, found without the rest
    of it: of two nodes in different components one lies outside the largest, so it is enough to look around the
    nodes outside, farther and farther, and to run Kruskal's method on the pairs within reach.

    `near` are the pairs closer than the radius, `tree` the cloud's KD-tree.
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
            # Most of the spanning tree is needed, or the points are clustered.
            whole = spanning_tree(cloud)
            return np.compress(start[whole[:, 0]] != start[whole[:, 1]], whole, axis=0)
        spots = around.sparse_distance_matrix(tree, reach, output_type="ndarray")
        pairs = np.stack([outside[spots["i"]], spots["j"]], axis=1)
        pairs = canonical(pairs[labels[pairs[:, 0]] != labels[pairs[:, 1]]], len(cloud))
        lengths = squares(cloud, pairs)
        # Pairs at the rim wait for the next look: there the search may round otherwise than `lengths`.
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
    """Return the Euclidean minimum spanning tree; a Delaunay triangulation contains it and has about 3 links a node."""
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
