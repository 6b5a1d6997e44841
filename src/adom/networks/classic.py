"""Classic graphs that never change."""

from typing import Any

import numpy as np

from ..util.checks import check_whole
from .checks import link_count, node_count
from .lazy import Batch
from .links import Floats, Links, canonical
from .network import Network
from .recipes import generator


def _still(name: str, nodes: int, pairs: Any, positions: Floats, **arguments: int) -> Network:
    """Return the network of one graph."""
    pool = Batch.laplacian(Links.of(nodes, [canonical(pairs, nodes)]), positions=[positions])
    return Network(pool, [0], {"generator": name, **(arguments or {"nodes": nodes})})


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
