"""Classic graphs, and random ones without geometry."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from adom.errors import InputError
from adom.networks import spectra
from adom.networks.checks import graph_count, link_count, node_count, real, seed_number, whole
from adom.networks.connect import join_at_random
from adom.networks.links import Floats, Ints, Links, canonical, with_links
from adom.networks.network import Network
from adom.networks.pool import AnyPool, Pool, StreamedPool
from adom.networks.stream import EDGE, WEIGHT, fits


def _still(name: str, nodes: int, pairs: Any, positions: Floats | None = None, **arguments: int) -> Network:
    """Return the network of one graph that never changes."""
    pool = Pool.laplacian(
        Links.of(nodes, [canonical(pairs, nodes)]), positions=None if positions is None else [positions]
    )
    return Network(pool, [0], {"generator": name, **(arguments or {"nodes": nodes})})


def circle(nodes: int) -> Floats:
    """Return points evenly spread on the circle inscribed in the unit square."""
    angle = 2 * np.pi * np.arange(nodes) / nodes
    return 0.5 + 0.5 * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def ring(nodes: int) -> Network:
    """Return the ring: node i is linked with i - 1 and i + 1, the ends with each other.

    The Laplacian's eigenvalues are ``2 - 2 cos(2 pi j / nodes)``, so chi grows as ``(nodes / pi)^2``.

    Examples
    --------
    >>> ring(5).edges(0).tolist()
    [[0, 1], [0, 4], [1, 2], [2, 3], [3, 4]]
    """
    nodes = node_count(nodes, least=3)
    one = np.arange(nodes)
    return _still("ring", nodes, np.stack([one, (one + 1) % nodes], axis=1), circle(nodes))


def star(nodes: int) -> Network:
    """Return the star: node 0 is linked with every other node.

    The Laplacian's eigenvalues are 0, 1 and `nodes`, so ``chi = nodes`` (3 nodes or more).

    Examples
    --------
    >>> round(star(100).chi, 9)
    100.0
    """
    nodes = node_count(nodes)
    leaves = np.arange(1, nodes)
    centre = np.array([[0.5, 0.5]])
    place = np.concatenate([centre, circle(nodes - 1)])
    return _still("star", nodes, np.stack([np.zeros_like(leaves), leaves], axis=1), place)


def path(nodes: int) -> Network:
    """Return the path 0 - 1 - ... - (nodes - 1).

    The Laplacian's eigenvalues are ``2 - 2 cos(pi j / nodes)``, so chi grows as ``(2 nodes / pi)^2``.

    Examples
    --------
    >>> path(4).edges(0).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    nodes = node_count(nodes)
    one = np.arange(nodes - 1)
    place = np.stack([np.linspace(0, 1, nodes), np.full(nodes, 0.5)], axis=1)
    return _still("path", nodes, np.stack([one, one + 1], axis=1), place)


def complete(nodes: int) -> Network:
    """Return the complete graph: all pairs are linked, W is ``I - 11'/nodes`` and chi is 1.

    Examples
    --------
    >>> round(complete(10).chi, 9)
    1.0
    """
    nodes = node_count(nodes)
    link_count(nodes * (nodes - 1) / 2, f"the complete graph of {nodes} nodes", "take fewer nodes")
    return _still("complete", nodes, np.stack(np.triu_indices(nodes, 1), axis=1), circle(nodes))


def torus(rows: int, columns: int | None = None) -> Network:
    """Return the grid of rows x columns nodes whose borders are glued: every node has four links.

    Node ``r * columns + c`` is the one in row r and column c. The Laplacian's eigenvalues are the sums of one
    eigenvalue of the ring of `rows` nodes and one of the ring of `columns` nodes.

    Parameters
    ----------
    rows : int
        Three or more.
    columns : int, optional
        Three or more; as many as rows by default.

    Examples
    --------
    >>> torus(3, 4)
    Network(torus, nodes=12, graphs=1, period=1, edges=24)
    """
    rows = whole("rows", rows, 3, "a torus has no double links")
    columns = rows if columns is None else whole("columns", columns, 3, "a torus has no double links")
    link_count(2 * rows * columns, f"a torus of {rows} x {columns} nodes", "take fewer rows or columns")
    grid = np.arange(rows * columns).reshape(rows, columns)
    pairs = [np.stack([grid, np.roll(grid, -1, axis)], axis=-1).reshape(-1, 2) for axis in (0, 1)]
    across = (np.arange(columns) + 0.5) / columns
    along = (np.arange(rows) + 0.5) / rows
    place = np.stack([np.tile(across, rows), np.repeat(along, columns)], axis=1)
    return _still("torus", rows * columns, np.concatenate(pairs), place, rows=rows, columns=columns)


def erdos_renyi(nodes: int, p: float, *, graphs: int = 1, seed: int = 0) -> Network:
    """Return graphs in which every pair of nodes is linked with probability p, independently.

    A graph that falls apart is joined with the minimal number of random links: its components, the largest
    first, are each linked from a random node to a random node of those before.

    Parameters
    ----------
    nodes : int
    p : float
        Probability of a link, in [0, 1]; the mean degree is about ``p * nodes``.
    graphs : int
        How many graphs are drawn; the rounds go through them in order, again and again. They may be more than fit
        in memory: see `Network`.
    seed : int
        Graph g has its own stream of random numbers and does not depend on `graphs`.

    Examples
    --------
    >>> network = erdos_renyi(50, 0.1, graphs=3, seed=7)
    >>> network.graphs, network.period
    (3, 3)
    """
    nodes, graphs, seed = node_count(nodes), graph_count(graphs), seed_number(seed)
    p = real("p", p, 0, 1, "it is a probability")
    links = max(nodes, p * nodes * (nodes - 1) / 2)
    link_count(links, f"a graph of erdos_renyi({nodes}, {p})", "take a smaller p")
    recipe = {"generator": "erdos_renyi", "nodes": nodes, "p": p, "graphs": graphs, "seed": seed}
    return _drawn(nodes, graphs, partial(_random_graph, nodes, p, seed), links, recipe)


def expander(nodes: int, degree: int = 8, *, graphs: int = 1, seed: int = 0) -> Network:
    """Return unions of random rings: sparse graphs that mix fast, however many nodes there are.

    Each graph lays degree / 2 rings through all nodes, each in a random order; links that coincide are merged. It
    is connected by construction, nearly every node has exactly `degree` links, and with high probability it is as
    good an expander as can be: the Laplacian's eigenvalues but the smallest lie between ``degree - 2 sqrt(degree -
    1)`` and ``degree + 2 sqrt(degree - 1)`` or hardly outside (Friedman, "A proof of Alon's second eigenvalue
    conjecture and related problems", 2008; arXiv:cs/0405020), so that chi is about 4.9 with degree 8. Above 50,000
    nodes W is the Laplacian divided by 1.002 times that upper end instead of its own largest eigenvalue, which it
    exceeds with high probability.

    Parameters
    ----------
    nodes : int
        Three or more.
    degree : int
        Even; with 2, each graph is a ring. At least 4 makes an expander.
    graphs : int
        How many graphs are drawn; the rounds go through them in order, again and again.
    seed : int
        Graph g has its own stream of random numbers and does not depend on `graphs`.

    Examples
    --------
    >>> network = expander(1000, degree=8, graphs=5)
    >>> network.describe()["degree_max"], 4 < network.chi < 6
    (8, True)
    """
    nodes, graphs, seed = node_count(nodes, least=3), graph_count(graphs), seed_number(seed)
    degree = whole("degree", degree, 2, "it is twice the number of rings, e.g. degree=8")
    if degree % 2 or degree >= nodes:
        raise InputError(f"degree must be even and below nodes={nodes}, got {degree}; it is twice the number of rings")
    links = nodes * degree / 2
    link_count(links, f"a graph of expander({nodes}, {degree})", "take a smaller degree or fewer nodes")
    recipe = {"generator": "expander", "nodes": nodes, "degree": degree, "graphs": graphs, "seed": seed}
    scale = None
    if nodes > spectra.LARGE:
        scale = (degree + 2 * math.sqrt(degree - 1)) * (1 + 2 * spectra.ROUGH)
    return _drawn(nodes, graphs, partial(_rings, nodes, degree, seed), links, recipe, scale)


def _drawn(
    nodes: int,
    graphs: int,
    draw: Callable[[int], Ints],
    links: float,
    recipe: dict[str, Any],
    scale: float | None = None,
) -> Network:
    """Return the network of graphs that are drawn one by one, held or streamed; `links` is about how many each has."""
    size = graphs * links * (EDGE + WEIGHT)
    if fits(size):
        pool: AnyPool = _with_weights(nodes, draw, scale, *range(graphs))
    else:
        pool = StreamedPool(nodes, graphs, partial(_with_weights, nodes, draw, scale), links, size)
    return Network(pool, np.arange(graphs), recipe)


def _with_weights(nodes: int, draw: Callable[[int], Ints], scale: float | None, *chosen: int) -> Pool:
    """Draw the chosen graphs."""
    scales = None if scale is None else np.full(len(chosen), scale)
    return Pool.laplacian(Links.of(nodes, (draw(g) for g in chosen)), scale=scales)


def _rings(nodes: int, degree: int, seed: int, g: int) -> Ints:
    """Draw the rings of one graph."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(g,)))
    pairs = np.empty((degree // 2, nodes, 2), dtype=np.int32)
    for ring_pairs in pairs:
        ring_pairs[:, 0] = rng.permutation(nodes)
        ring_pairs[:, 1] = np.roll(ring_pairs[:, 0], -1)
    return canonical(pairs, nodes)


def _random_graph(nodes: int, p: float, seed: int, g: int) -> Ints:
    """Draw one graph and join its components."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(g,)))
    pairs = random_pairs(nodes, p, rng)
    return with_links(pairs, join_at_random(nodes, pairs, rng), nodes)


def random_pairs(nodes: int, p: float, rng: np.random.Generator) -> Ints:
    """Keep each pair with probability p by leaping over the pairs that are not kept (geometric gaps)."""
    every = nodes * (nodes - 1) // 2
    if p * every < 1e-12:
        return np.zeros((0, 2), dtype=np.int32)
    batch = int(p * every + 6 * np.sqrt(p * every) + 10)
    kept: list[Any] = []
    last = -1
    while last < every:
        spots = last + np.cumsum(np.minimum(rng.geometric(p, size=batch), every + 1))
        kept.append(spots[spots < every])
        last = int(spots[-1])
    chosen = np.concatenate(kept)
    one = np.arange(nodes, dtype=np.int64)
    starts = one * nodes - one * (one + 1) // 2
    u = np.searchsorted(starts, chosen, side="right") - 1
    # The last node starts no pair, and its start equals `every`, which no kept pair reaches.
    return np.stack([u, chosen - starts[u] + u + 1], axis=1).astype(np.int32)
