"""Geometric graphs: nodes are points in the unit square, and those closer than a radius are linked."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from adom.errors import InputError, shown
from adom.networks.checks import graph_count, link_count, node_count, real, seed_number, whole
from adom.networks.connect import PRIM, shortest_joins, spanning_trees, squares
from adom.networks.links import Floats, Ints, Links, canonical, with_links
from adom.networks.motion import Walk
from adom.networks.network import Network
from adom.networks.pool import Pool, StreamedPool
from adom.networks.stream import EDGE, POINT, WEIGHT, fits

PAIRWISE = 400
"""Up to this many nodes all pairs are measured, above it a KD-tree finds the close ones."""
CHUNK = 4_000_000
"""Pairs that are measured at a time."""


def geometric(
    nodes: int, radius: float | None = None, *, chi: float | None = None, graphs: int = 1, seed: int = 0
) -> Network:
    """Return random geometric graphs: the networks of the paper's experiments (section 6).

    Each graph draws its nodes afresh, uniformly in [0, 1]^2, and links every pair closer than `radius`. If
    that leaves c components, the c - 1 shortest links that join them are added. The rounds go through the
    graphs in order, again and again.

    Parameters
    ----------
    nodes : int
    radius : float, optional
        Pairs closer than this are linked. Give either radius or chi.
    chi : float, optional
        The condition number wanted: the radius is searched, with the points held fixed, until the worst
        graph's chi lies within 10 % of it. The radius found stands in `recipe`. If one graph's chi jumps over
        the wanted value and no radius will do, the points of that graph are drawn afresh; `recipe` then says
        which graphs were, and how often, under ``redrawn``.
    graphs : int
        How many graphs are drawn. With a radius they may be more than fit in memory: see `Network`.
    seed : int
        Graph g has its own stream of random numbers, so its points do not depend on `graphs`.

    Examples
    --------
    >>> network = geometric(100, chi=30, graphs=5, seed=1)
    >>> 27 <= network.chi <= 33
    True
    >>> 0.1 < network.recipe["radius"] < 0.5
    True
    """
    nodes, graphs, seed = node_count(nodes), graph_count(graphs), seed_number(seed)
    if (radius is None) == (chi is None):
        given = "neither" if radius is None else f"both radius={shown(radius)} and chi={shown(chi)}"
        raise InputError(f"geometric takes exactly one of radius and chi, got {given}; e.g. radius=0.3")
    recipe: dict[str, Any] = {"generator": "geometric", "nodes": nodes, "graphs": graphs, "seed": seed}
    if radius is not None:
        recipe["radius"] = radius = real("radius", radius, 0, math.inf, "e.g. radius=0.3", strict=True)
        return _linked(nodes, min(radius, 2.0), graphs, partial(uniform_points, nodes, seed), recipe)

    from adom.networks.radius_search import radius_for

    recipe["chi"] = wanted = real("chi", chi, 1, math.inf, "the complete graph has chi=1")
    _room(nodes, 1.5 / math.sqrt(wanted), graphs, graphs)
    points = np.stack([uniform_points(nodes, seed, g) for g in range(graphs)])
    reached = radius_for(wanted, points, lambda g, attempt: uniform_points(nodes, seed, g, attempt))
    recipe["radius"] = reached.radius
    if reached.redrawn:
        recipe["redrawn"] = {str(g): attempts for g, attempts in sorted(reached.redrawn.items())}
    pool = Pool.laplacian(reached.links, known=reached.spectra, positions=reached.points)
    return Network(pool, np.arange(graphs), recipe)


def waypoint(
    nodes: int,
    radius: float,
    *,
    graphs: int = 1000,
    speed: float = 0.02,
    pause: int = 0,
    seed: int = 0,
) -> Network:
    """Return the geometric graphs of nodes in motion, one graph a round (the random waypoint model).

    Every node starts at a uniform point of the unit square and walks straight towards a uniformly drawn
    target, `speed` a round; the last step ends on the target. There it rests for `pause` rounds and draws the
    next. Pairs closer than `radius` are linked, and components are joined by the shortest links as in
    `geometric`. After `graphs` rounds the motion is played again from the start.

    Parameters
    ----------
    nodes : int
    radius : float
    graphs : int
        How many rounds of motion.
    speed : float
        The distance walked in one round.
    pause : int
        Rounds of rest at each target.
    seed : int
        Each node has its own stream of random numbers.

    Examples
    --------
    >>> network = waypoint(20, 0.3, graphs=50, speed=0.05, seed=3)
    >>> steps = np.linalg.norm(network.positions(1) - network.positions(0), axis=1)
    >>> bool((steps <= 0.05 + 1e-12).all())
    True
    """
    nodes, graphs, seed = node_count(nodes), graph_count(graphs), seed_number(seed)
    radius = real("radius", radius, 0, math.inf, "e.g. radius=0.3", strict=True)
    speed = real("speed", speed, 0, math.inf, "the unit square has side 1, e.g. speed=0.02", strict=True)
    pause = whole("pause", pause, 0, "it counts rounds of rest")
    recipe = {"generator": "waypoint", "nodes": nodes, "radius": radius, "graphs": graphs}
    recipe |= {"speed": speed, "pause": pause, "seed": seed}
    reach = min(radius, 2.0)  # the square's diagonal is shorter
    _room(nodes, reach, graphs)
    return _linked(nodes, reach, graphs, Walk(nodes, graphs, speed, pause, seed).points, recipe)


def _linked(nodes: int, radius: float, graphs: int, points: Callable[[int], Floats], recipe: dict[str, Any]) -> Network:
    """Return the network of the graphs whose points are given, held or streamed."""
    expected = _room(nodes, radius, graphs)
    size = graphs * (expected * (EDGE + WEIGHT) + nodes * POINT)
    if not fits(size):
        pool = StreamedPool(nodes, graphs, partial(_draw, radius, points), expected, size)
        return Network(pool, np.arange(graphs), recipe)
    clouds = np.stack([points(g) for g in range(graphs)])
    if nodes <= PRIM:
        links = near_links(clouds, spanning_trees(clouds), radius)
    else:
        links = Links.of(nodes, [near_graph(cloud, radius) for cloud in clouds])
    return Network(Pool.laplacian(links, positions=clouds), np.arange(graphs), recipe)


def _draw(radius: float, points: Callable[[int], Floats], g: int) -> Pool:
    """Draw graph g alone."""
    cloud = points(g)
    return Pool.laplacian(Links.of(len(cloud), [near_graph(cloud, radius)]), positions=[cloud])


def uniform_points(nodes: int, seed: int, g: int, attempt: int = 0) -> Floats:
    """Draw the points of graph g; a later attempt has a stream of its own."""
    key = (g, attempt) if attempt else (g,)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key)).random((nodes, 2))


def near_links(points: Floats, trees: Ints, radius: float) -> Links:
    """Return for each cloud the pairs closer than the radius together with its spanning tree.

    Parameters
    ----------
    points : (graphs, nodes, 2) float64
    trees : (graphs, nodes - 1, 2) int32
        What `spanning_trees` returns: its links longer than the radius are the shortest minimal repair.
    radius : float
    """
    nodes = points.shape[1]
    if nodes > PAIRWISE:
        parts = [_near_pairs(cloud, tree, radius) for cloud, tree in zip(points, trees, strict=True)]
        return Links.of(nodes, parts)
    u, v = np.triu_indices(nodes, 1)
    sizes, chosen = [], []
    width = max(1, CHUNK // len(u))
    for start in range(0, len(points), width):
        cloud, tree = points[start : start + width], trees[start : start + width].astype(np.int64)
        x, y = cloud[:, :, 0], cloud[:, :, 1]
        near = (x[:, u] - x[:, v]) ** 2 + (y[:, u] - y[:, v]) ** 2 < radius**2
        low, high = tree[:, :, 0], tree[:, :, 1]
        np.put_along_axis(near, low * nodes - low * (low + 1) // 2 + high - low - 1, True, axis=1)
        sizes.append(near.sum(axis=1))
        chosen.append(np.nonzero(near)[1])
    pairs = np.concatenate(chosen)
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
    return Links(nodes, np.stack([u[pairs], v[pairs]], axis=1).astype(np.int32), offsets)


def near_graph(cloud: Floats, radius: float) -> Ints:
    """Return the links of one cloud: the pairs closer than the radius and the shortest minimal repair."""
    from scipy.spatial import KDTree

    tree = KDTree(cloud)
    pairs = canonical(_close(cloud, tree, radius), len(cloud))
    return with_links(pairs, shortest_joins(cloud, pairs, radius, tree), len(cloud))


def _near_pairs(cloud: Floats, tree: Ints, radius: float) -> Ints:
    """Return the links of one cloud whose spanning tree is known."""
    from scipy.spatial import KDTree

    return canonical(np.concatenate([_close(cloud, KDTree(cloud), radius), tree]), len(cloud))


def _close(cloud: Floats, tree: Any, radius: float) -> Any:
    """Return the pairs closer than the radius with the help of a KD-tree."""
    # The query is slightly too wide and the comparison is the same as for few nodes.
    pairs = tree.query_pairs(radius * (1 + 1e-9), output_type="ndarray")
    return pairs[squares(cloud, pairs) < radius**2]


def _room(nodes: int, radius: float, graphs: int, together: int = 1) -> float:
    """Return about how many links a graph has; refuse more than fit in memory, for so many graphs together."""
    share = min(1.0, math.pi * radius**2)
    expected = max(nodes, share * nodes * (nodes - 1) / 2)
    what = f"{graphs} geometric graph(s) of {nodes} nodes with radius {radius:.3g}"
    remedy = "take a smaller radius or a larger chi"
    link_count(together * expected, what, f"{remedy}, or fewer graphs" if together > 1 else remedy)
    return expected
