"""Connectivity: counting components, and joining them with as few links as possible.

A graph with c components needs c - 1 further links. Four ways to choose them live here, one for each kind of
network: the shortest ones (`spanning_trees`, for points in the plane), random ones (`join_at_random`), failed
ones that come back (`cheapest_tree`), and a fixed chain (`join_in_chain`, for imported graphs).
"""

from typing import Any

import numpy as np

from adom.networks.links import Bools, Floats, Ints, Links, Longs

BLOCK = 2_000_000
"""Nodes that one call of a graph routine sees, over several graphs."""
PRIM = 1000
"""Up to this many nodes a spanning tree is grown over all pairs, above it over the Delaunay triangulation."""
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
    return np.stack([_delaunay_tree(cloud) for cloud in points])


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


def _delaunay_tree(cloud: Floats) -> Ints:
    """Return one tree; the Delaunay triangulation contains it and has only about 3 links a node."""
    from scipy.spatial import Delaunay

    from adom.networks.links import canonical

    mesh = Delaunay(cloud)
    corners = mesh.simplices
    sides = [corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]], mesh.coplanar[:, [0, 2]]]
    pairs = canonical(np.concatenate(sides), len(cloud))
    lengths = ((cloud[pairs[:, 0]] - cloud[pairs[:, 1]]) ** 2).sum(axis=1)
    return pairs[cheapest_tree(len(cloud), pairs, np.argsort(lengths, kind="stable"))]
