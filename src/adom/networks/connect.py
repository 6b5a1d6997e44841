"""Connectivity: counting components, and joining them with as few links as possible.

A graph with c components needs c - 1 further links. Four ways to choose them live here, one for each kind of
network: the shortest ones (`spanning_trees` and `shortest_joins`, for points in the plane), random ones
(`join_at_random`), failed ones that come back (`joining_rows`), and a fixed chain (`join_in_chain`, for imported
graphs).
"""

from typing import Any

import numpy as np

from adom.networks.links import Bools, Floats, Ints, Links, Longs, canonical, with_links

BLOCK = 2_000_000
"""Nodes that one call of a graph routine sees, over several graphs."""
PRIM = 1000
"""Up to this many nodes a spanning tree is grown over all pairs, above it over pairs that are close."""
CLOSE = 1.5
"""Pairs closer than this divided by the root of the number of nodes are close: about 7 a node."""
CROWD = 50
"""Close pairs a node beyond which points count as clustered; a Delaunay triangulation then takes their place."""
NAMED = 6
"""Nodes of a component, and components, that an error message names."""


def adjacency(nodes: int, pairs: Any, values: Any) -> Any:
    """Return a sparse upper-triangular matrix with one entry a pair."""
    from scipy.sparse import coo_array

    return coo_array((values, (pairs[:, 0], pairs[:, 1])), shape=(nodes, nodes)).tocsr()


def component_labels(nodes: int, pairs: Any) -> tuple[int, Ints]:
    """Return the number of components and, for each node, its component, numbered by their smallest node."""
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(pairs), dtype=np.int8)
    count, labels = connected_components(adjacency(nodes, pairs, ones), directed=False)
    first = np.unique(labels, return_index=True)[1]
    rank = np.empty(count, dtype=np.int32)
    rank[np.argsort(first)] = np.arange(count, dtype=np.int32)
    return int(count), rank[labels]


def component_counts(links: Links) -> Longs:
    """Return the number of components of every graph.

    Examples
    --------
    >>> pair, both = np.array([[0, 1]]), np.array([[0, 1], [1, 2]])
    >>> component_counts(Links.of(3, [pair, both])).tolist()
    [2, 1]
    """
    counts = []
    for start, stop in links.blocks(BLOCK):
        _, labels = component_labels((stop - start) * links.nodes, links.merged(start, stop))
        first = np.unique(labels, return_index=True)[1]
        counts.append(np.bincount(first // links.nodes, minlength=stop - start))
    return np.concatenate(counts)


def name_components(nodes: int, pairs: Any) -> str:
    """Return e.g. `2 components, {0, 1, 4} and {2, 3}`, cut short where it would be long."""
    count, labels = component_labels(nodes, pairs)
    names = []
    for label in range(min(count, NAMED)):
        members = np.flatnonzero(labels == label)
        more = f", ... {len(members) - NAMED} more" if len(members) > NAMED else ""
        names.append("{" + ", ".join(str(node) for node in members[:NAMED]) + more + "}")
    last = f"{count - NAMED} more" if count > NAMED else names.pop()
    return f"{count} components, {', '.join(names)} and {last}"


def join_in_chain(nodes: int, pairs: Ints) -> Ints:
    """Join the components in the order of their smallest nodes: each one's smallest to the next one's.

    Examples
    --------
    >>> join_in_chain(5, np.array([[1, 3]], dtype=np.int32)).tolist()
    [[0, 1], [1, 2], [2, 4]]
    """
    _, labels = component_labels(nodes, pairs)
    first = np.unique(labels, return_index=True)[1].astype(np.int32)
    return np.stack([first[:-1], first[1:]], axis=1)


def join_at_random(nodes: int, pairs: Ints, rng: np.random.Generator) -> Ints:
    """Join the components, the largest first: a random node of each to a random node of those before it.

    Components of the same size come in random order. With a giant component most links go to it, as they
    would if random pairs were added until the graph is connected.
    """
    count, labels = component_labels(nodes, pairs)
    ranking = np.lexsort((rng.random(count), -np.bincount(labels)))
    place = np.argsort(ranking)[labels]
    arranged = np.argsort(place, kind="stable").astype(np.int32)
    sizes = np.bincount(place, minlength=count)
    ends = np.cumsum(sizes)
    earlier = arranged[rng.integers(0, ends[:-1])]
    own = arranged[rng.integers(ends[:-1], ends[1:])]
    return np.stack([earlier, own], axis=1)


def cheapest_tree(nodes: int, pairs: Any, order: Any) -> Bools:
    """Mark the pairs that Kruskal's method keeps when it takes them in the given order.

    `order` lists the pairs from the cheapest to the dearest. Pairs must be distinct.
    """
    from scipy.sparse.csgraph import minimum_spanning_tree

    price = np.empty(len(pairs), dtype=np.float64)
    price[order] = np.arange(1, len(pairs) + 1)
    tree = minimum_spanning_tree(adjacency(nodes, pairs, price))
    kept = np.zeros(len(pairs), dtype=np.bool_)
    kept[np.asarray(order)[tree.data.astype(np.int64) - 1]] = True
    return kept


def joining_rows(labels: Ints, pairs: Any, order: Any) -> Longs:
    """Return the rows of the pairs that Kruskal's method adds to what is already joined.

    `labels` gives each node's component, counted from 0 without gaps; `order` lists rows of `pairs` from the
    cheapest to the dearest. It does not have to be complete. The rows come in that order.
    """
    a, b = np.sort(labels[pairs[order]], axis=1).astype(np.int64).T
    across = np.flatnonzero(a != b)
    a, b, rows = a[across], b[across], np.asarray(order)[across]
    count = int(labels.max()) + 1
    # Of all pairs that join the same two components only the cheapest matters.
    first = np.sort(np.unique(a * count + b, return_index=True)[1])
    kept = cheapest_tree(count, np.stack([a[first], b[first]], axis=1), np.arange(len(first)))
    return np.asarray(rows[first[kept]], dtype=np.int64)


def spanning_trees(points: Floats) -> Ints:
    """Return the Euclidean minimum spanning tree of every cloud of points.

    Joining all pairs closer than a radius leaves components; the shortest links that join them are exactly
    the tree's links that are not shorter than the radius (Kruskal). So the repaired graph of any radius is
    the geometric graph together with this tree, whatever the radius.

    Parameters
    ----------
    points : (graphs, nodes, 2) float64

    Returns
    -------
    (graphs, nodes - 1, 2) int32
        Pairs u < v, in no particular order.
    """
    if points.shape[1] <= PRIM:
        return _prim(points)
    return np.stack([_tree(cloud) for cloud in points])


def _prim(points: Floats) -> Ints:
    """Grow the trees of all clouds at the same time, one node a step."""
    graphs, nodes, _ = points.shape
    rows = np.arange(graphs)
    newest = np.zeros(graphs, dtype=np.int64)
    nearest = np.zeros((graphs, nodes), dtype=np.int32)
    distance = np.full((graphs, nodes), np.inf)
    outside = np.ones((graphs, nodes), dtype=np.bool_)
    across, along = points[:, :, 0], points[:, :, 1]
    trees = np.empty((graphs, nodes - 1, 2), dtype=np.int32)
    for step in range(nodes - 1):
        outside[rows, newest] = False
        fresh = (across - across[rows, newest, None]) ** 2 + (along - along[rows, newest, None]) ** 2
        closer = (fresh < distance) & outside
        np.copyto(distance, fresh, where=closer)
        np.copyto(nearest, newest[:, None].astype(np.int32), where=closer)
        newest = np.argmin(np.where(outside, distance, np.inf), axis=1)
        trees[:, step, 0] = newest
        trees[:, step, 1] = nearest[rows, newest]
    trees.sort(axis=2)
    return trees


def shortest_joins(cloud: Floats, near: Any, radius: float, tree: Any = None) -> Ints:
    """Return the shortest links that join the components which linking all pairs closer than a radius leaves.

    They are the links of the minimum spanning tree that are not shorter than the radius, found without the rest
    of it: of two nodes in different components one lies outside the largest, so it is enough to look around the
    nodes outside, farther and farther, and to let Kruskal's method take what is found.

    Parameters
    ----------
    cloud : (nodes, 2) float64
    near : (E, 2) array
        The pairs closer than the radius.
    radius : float
    tree : scipy.spatial.KDTree, optional
        That of the cloud, if it is at hand.

    Returns
    -------
    (components - 1, 2) int32
        Pairs u < v.
    """
    from scipy.spatial import KDTree

    count, labels = component_labels(len(cloud), near)
    start, found = labels, [np.zeros((0, 2), dtype=np.int32)]
    tree = KDTree(cloud) if tree is None and count > 1 else tree
    reach = max(radius, CLOSE / 4 / np.sqrt(len(cloud)))
    while count > 1:
        reach *= 2
        outside = np.flatnonzero(labels != np.argmax(np.bincount(labels)))
        around = KDTree(cloud[outside])
        if len(outside) > len(cloud) / 4 or around.count_neighbors(tree, reach) > CROWD * len(cloud):
            # Most of the tree is wanted, or the points are clustered.
            whole = _tree(cloud) if radius < CLOSE / np.sqrt(len(cloud)) else _delaunay_tree(cloud)
            return np.compress(start[whole[:, 0]] != start[whole[:, 1]], whole, axis=0)
        spots = around.sparse_distance_matrix(tree, reach, output_type="ndarray")
        pairs = np.stack([outside[spots["i"]], spots["j"]], axis=1)
        pairs = canonical(pairs[labels[pairs[:, 0]] != labels[pairs[:, 1]]], len(cloud))
        lengths = squares(cloud, pairs)
        # What lies at the rim waits for the next look: there the search may round otherwise than `lengths`.
        order = np.argsort(lengths, kind="stable")
        order = order[: np.searchsorted(lengths[order], (reach * (1 - 1e-9)) ** 2)]
        if len(order):
            found.append(pairs[joining_rows(labels, pairs, order)])
            count, merged = component_labels(count, labels[found[-1]])
            labels = merged[labels]
    return np.concatenate(found)


def squares(cloud: Floats, pairs: Any) -> Floats:
    """Return the squared lengths of pairs."""
    across, along = cloud[:, 0], cloud[:, 1]
    u, v = pairs[:, 0], pairs[:, 1]
    squares: Floats = (across[u] - across[v]) ** 2 + (along[u] - along[v]) ** 2
    return squares


def _tree(cloud: Floats) -> Ints:
    """Return one tree; close pairs together with the shortest links between their components contain it."""
    from scipy.spatial import KDTree

    tree = KDTree(cloud)
    radius = CLOSE / np.sqrt(len(cloud))
    if tree.count_neighbors(tree, radius) > CROWD * len(cloud):
        return _delaunay_tree(cloud)
    near = canonical(tree.query_pairs(radius, output_type="ndarray"), len(cloud))
    pairs = with_links(near, shortest_joins(cloud, near, radius, tree), len(cloud))
    return _shortest_tree(cloud, pairs)


def _delaunay_tree(cloud: Floats) -> Ints:
    """Return one tree; the Delaunay triangulation contains it and has only about 3 links a node."""
    from scipy.spatial import Delaunay

    mesh = Delaunay(cloud)
    corners = mesh.simplices
    sides = [corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]], mesh.coplanar[:, [0, 2]]]
    return _shortest_tree(cloud, canonical(np.concatenate(sides), len(cloud)))


def _shortest_tree(cloud: Floats, pairs: Ints) -> Ints:
    """Return the shortest spanning tree among the pairs."""
    return pairs[cheapest_tree(len(cloud), pairs, np.argsort(squares(cloud, pairs), kind="stable"))]
