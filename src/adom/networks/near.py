"""Points in the plane: pairs closer than a radius, and the shortest links that join the components."""

from typing import Any

import numpy as np

from .connect import cheapest_tree, component_counts, component_labels, joining_rows
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
    """Points of several graphs, and their spanning trees as far as they have been needed.

    Joining all pairs closer than a radius leaves components; the shortest links that join them are exactly the
    spanning tree's links that are not shorter than the radius (Kruskal). So the repaired graph of any radius is the
    geometric graph together with this tree, whatever the radius. `points` has the shape (graphs, nodes, 2).
    """

    def __init__(self, points: Floats) -> None:
        self.points = points
        self.graphs, self.nodes, _ = points.shape
        self._trees: dict[int, Ints] = {}
        self._connected = np.full(self.graphs, np.inf)  # smallest radius known to connect a graph without its tree

    def redraw(self, g: int, cloud: Floats) -> None:
        """Replace the points of graph g."""
        self.points[g] = cloud
        self._trees.pop(g, None)
        self._connected[g] = np.inf

    def links(self, radius: float, chosen: Longs | None = None) -> Links:
        """Return for each chosen graph the pairs closer than the radius with the shortest minimal repair."""
        graphs = np.arange(self.graphs) if chosen is None else chosen
        if self.nodes > PAIRWISE:
            return Links.of(self.nodes, [near_graph(self.points[g], radius) for g in graphs.tolist()])
        near = self._near(graphs, radius)
        unsure = [row for row in np.flatnonzero(radius < self._connected[graphs]) if graphs[row] not in self._trees]
        if not unsure:
            return near
        counts = component_counts(near)
        for row in unsure:
            if counts[row] > 1:
                self._trees[int(graphs[row])] = spanning_tree(self.points[graphs[row]])
            else:
                self._connected[graphs[row]] = radius
        return self._near(graphs, radius) if (counts[unsure] > 1).any() else near

    def _near(self, graphs: Longs, radius: float) -> Links:
        """Return the pairs closer than the radius and the trees that are known, many clouds at a time."""
        u, v = np.triu_indices(self.nodes, 1)
        sizes, chosen = [], []
        width = max(1, CHUNK // len(u))
        for start in range(0, len(graphs), width):
            some = graphs[start : start + width]
            x, y = np.moveaxis(self.points[some], 2, 0)
            near = (x[:, u] - x[:, v]) ** 2 + (y[:, u] - y[:, v]) ** 2 < radius**2
            trees = [(row, self._trees[g]) for row, g in enumerate(some.tolist()) if g in self._trees]
            if trees:
                rows = np.repeat([row for row, _ in trees], [len(tree) for _, tree in trees])
                low, high = np.concatenate([tree for _, tree in trees]).astype(np.int64).T
                near[rows, low * self.nodes - low * (low + 1) // 2 + high - low - 1] = True
            sizes.append(near.sum(axis=1))
            chosen.append(np.nonzero(near)[1])
        pairs = np.concatenate(chosen)
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
        return Links(self.nodes, np.stack([u[pairs], v[pairs]], axis=1).astype(np.int32), offsets)


def near_graph(cloud: Floats, radius: float) -> Ints:
    """Return the links of one cloud, without its whole spanning tree."""
    from scipy.spatial import KDTree

    tree = KDTree(cloud)
    # The query is slightly too wide; the comparison decides, the same as for few nodes.
    pairs = tree.query_pairs(radius * (1 + 1e-9), output_type="ndarray")
    near = canonical(pairs[squares(cloud, pairs) < radius**2], len(cloud))
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
