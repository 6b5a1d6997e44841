"""Graphs without geometry: classic ones that never change, and random ones."""

import math
from functools import partial
from typing import Any

import numpy as np

from ..errors import InputError
from ..util.checks import check_real, check_whole
from . import spectra
from .edges import Floats, Ints, Links, canonical, join_at_random, with_links
from .network import Network
from .pool import Batch, Graph, Pool, gather, pool_of
from .recipes import generator, graph_count, link_count, node_count, seed_number, suited


def _still(name: str, nodes: int, pairs: Any, positions: Floats, **arguments: int) -> Network:
    graph = Batch.laplacian(Links.of(nodes, [canonical(pairs, nodes)]), positions=[positions])
    return Network(Pool(graph), [0], {"generator": name, **(arguments or {"nodes": nodes})})


def circle(nodes: int) -> Floats:
    """Return points spread evenly on the circle inscribed in the unit square."""
    angle = 2 * np.pi * np.arange(nodes) / nodes
    return 0.5 + 0.5 * np.stack([np.cos(angle), np.sin(angle)], axis=1)


@generator
def ring(nodes: int) -> Network:
    """Return the ring: node i is linked with i - 1 and i + 1, and the last node with node 0.

    The Laplacian's eigenvalues are ``2 - 2 cos(2 pi j / nodes)``, so chi grows as ``(nodes / pi)^2``.

    Examples
    --------
    >>> ring(5).edges(0).tolist()
    [[0, 1], [0, 4], [1, 2], [2, 3], [3, 4]]
    """
    nodes = node_count(nodes, least=3)
    everyone = np.arange(nodes)
    return _still("ring", nodes, np.stack([everyone, (everyone + 1) % nodes], axis=1), circle(nodes))


@generator
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
    points = np.concatenate([np.array([[0.5, 0.5]]), circle(nodes - 1)])
    return _still("star", nodes, np.stack([np.zeros_like(leaves), leaves], axis=1), points)


@generator
def path(nodes: int) -> Network:
    """Return the path 0 - 1 - ... - (nodes - 1).

    The Laplacian's eigenvalues are ``2 - 2 cos(pi j / nodes)``, so chi grows as ``(2 nodes / pi)^2``.

    Examples
    --------
    >>> path(4).edges(0).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    nodes = node_count(nodes)
    left = np.arange(nodes - 1)
    points = np.stack([np.linspace(0, 1, nodes), np.full(nodes, 0.5)], axis=1)
    return _still("path", nodes, np.stack([left, left + 1], axis=1), points)


@generator
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


@generator
def torus(rows: int, columns: int | None = None) -> Network:
    """Return the grid of rows x columns nodes with opposite borders joined: every node has four links.

    Node ``r * columns + c`` is in row r and column c. The Laplacian's eigenvalues are all sums of an eigenvalue of the
    ring of `rows` nodes and one of the ring of `columns` nodes.

    Parameters
    ----------
    rows : int
        Three or more.
    columns : int, optional
        Three or more; by default equal to `rows`.

    Examples
    --------
    >>> torus(3, 4)
    Network(torus, nodes=12, graphs=1, period=1, edges=24)
    """
    rows = check_whole("rows", rows, 3, "a torus has no double links")
    columns = rows if columns is None else check_whole("columns", columns, 3, "a torus has no double links")
    link_count(2 * rows * columns, f"a torus of {rows} x {columns} nodes", "take fewer rows or columns")
    grid = np.arange(rows * columns).reshape(rows, columns)
    pairs = [np.stack([grid, np.roll(grid, -1, axis)], axis=-1).reshape(-1, 2) for axis in (0, 1)]
    across = (np.arange(columns) + 0.5) / columns
    along = (np.arange(rows) + 0.5) / rows
    points = np.stack([np.tile(across, rows), np.repeat(along, columns)], axis=1)
    return _still("torus", rows * columns, np.concatenate(pairs), points, rows=rows, columns=columns)


def random_stream(seed: int, *key: int) -> np.random.Generator:
    """Return the random stream of one graph or node, given by `key`."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def log_share(nodes: int) -> float:
    """Return log(nodes) / nodes: random graphs are mostly connected where nodes have more than this share of links."""
    return math.log(nodes) / nodes if nodes > 1 else 1.0


@generator
@suited(lambda nodes: {"p": round(min(1.0, 2 * log_share(nodes)), 6)})
def erdos_renyi(nodes: int, p: float, *, graphs: int = 1, seed: int = 0) -> Network:
    """Return graphs in which every pair of nodes is linked with probability p, independently.

    A disconnected graph is joined by the minimal number of random links: each component, the largest first, is
    linked from a random node to a random node of the components before it.

    Parameters
    ----------
    nodes : int
    p : float
        Probability of a link, in [0, 1]; the mean degree is about ``p * nodes``.
    graphs : int
        How many graphs to draw; the rounds cycle through them. They may be more than fit in memory: see `Network`.
    seed : int
        Graph g has its own stream of random numbers and does not depend on `graphs`.

    Examples
    --------
    >>> network = erdos_renyi(50, 0.1, graphs=3, seed=7)
    >>> network.graphs, network.period
    (3, 3)
    """
    nodes, graphs, seed = node_count(nodes), graph_count(graphs), seed_number(seed)
    p = check_real("p", p, 0, 1, "it is a probability")
    links = max(nodes, p * nodes * (nodes - 1) / 2)
    link_count(links, f"a graph of erdos_renyi({nodes}, {p})", "take a smaller p")
    recipe = {"generator": "erdos_renyi", "nodes": nodes, "p": p, "graphs": graphs, "seed": seed}
    draw = partial(gather, nodes, partial(_random_graph, nodes, p, seed), None)
    return Network(pool_of(nodes, graphs, draw, links), np.arange(graphs), recipe)


@generator
@suited(lambda nodes: {"degree": max(2, min(8, (nodes - 1) // 2 * 2))})
def expander(nodes: int, degree: int = 8, *, graphs: int = 1, seed: int = 0) -> Network:
    """Return unions of random rings: sparse graphs that mix fast, however many nodes there are.

    Each graph is the union of degree / 2 rings through all nodes, each in a random order; coinciding links are merged.
    It is connected by construction, and nearly every node has exactly `degree` links. With high probability it is
    nearly an optimal expander: except for the smallest, all eigenvalues of the Laplacian lie between
    ``degree - 2 sqrt(degree - 1)`` and ``degree + 2 sqrt(degree - 1)``, or hardly outside (Friedman, "A proof of Alon's
    second eigenvalue conjecture and related problems", 2008; arXiv:cs/0405020). So chi is about 4.9 for degree 8. Above
    50,000 nodes W is the Laplacian divided by 1.002 times that upper end, which exceeds the largest eigenvalue with
    high probability.

    Parameters
    ----------
    nodes : int
        Three or more.
    degree : int
        Even. With 2, each graph is a ring; with 4 or more, an expander.
    graphs : int
        How many graphs to draw; the rounds cycle through them.
    seed : int
        Graph g has its own stream of random numbers and does not depend on `graphs`.

    Examples
    --------
    >>> network = expander(1000, degree=8, graphs=5)
    >>> network.describe()["degree_max"], 4 < network.chi < 6
    (8, True)
    """
    nodes, graphs, seed = node_count(nodes, least=3), graph_count(graphs), seed_number(seed)
    degree = check_whole("degree", degree, 2, "it is twice the number of rings, e.g. degree=8")
    if degree % 2 or degree >= nodes:
        raise InputError(f"degree must be even and below nodes={nodes}, got {degree}; it is twice the number of rings")
    links = nodes * degree / 2
    link_count(links, f"a graph of expander({nodes}, {degree})", "take a smaller degree or fewer nodes")
    recipe = {"generator": "expander", "nodes": nodes, "degree": degree, "graphs": graphs, "seed": seed}
    scale = None
    if nodes > spectra.LARGE:
        scale = (degree + 2 * math.sqrt(degree - 1)) * (1 + 2 * spectra.ROUGH)
    draw = partial(gather, nodes, partial(_rings, nodes, degree, seed), scale)
    return Network(pool_of(nodes, graphs, draw, links), np.arange(graphs), recipe)


def _rings(nodes: int, degree: int, seed: int, g: int) -> Graph:
    """Draw the rings of one graph."""
    rng = random_stream(seed, g)
    pairs = np.empty((degree // 2, nodes, 2), dtype=np.int32)
    for ring_pairs in pairs:
        ring_pairs[:, 0] = rng.permutation(nodes)
        ring_pairs[:, 1] = np.roll(ring_pairs[:, 0], -1)
    return Graph(canonical(pairs, nodes))


def _random_graph(nodes: int, p: float, seed: int, g: int) -> Graph:
    rng = random_stream(seed, g)
    pairs = random_pairs(nodes, p, rng)
    return Graph(with_links(pairs, join_at_random(nodes, pairs, rng), nodes))


def random_pairs(nodes: int, p: float, rng: np.random.Generator) -> Ints:
    """Draw each pair with probability p by skipping ahead to the next drawn pair (geometric gaps)."""
    every = nodes * (nodes - 1) // 2
    if p * every < 1e-12:
        return np.zeros((0, 2), dtype=np.int32)
    batch = int(p * every + 6 * np.sqrt(p * every) + 10)
    kept: list[Any] = []
    last = -1
    while last < every:
        codes = last + np.cumsum(np.minimum(rng.geometric(p, size=batch), every + 1))
        kept.append(codes[codes < every])
        last = int(codes[-1])
    chosen = np.concatenate(kept)
    first = np.arange(nodes, dtype=np.int64)
    starts = first * nodes - first * (first + 1) // 2
    u = np.searchsorted(starts, chosen, side="right") - 1
    # The last node starts no pair: its start equals `every`, above all kept codes.
    return np.stack([u, chosen - starts[u] + u + 1], axis=1).astype(np.int32)
