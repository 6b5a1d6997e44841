"""Directed graphs as arrays of arcs: drawing them, holding them, and their strong components and spectra."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from adom.errors import InputError
from adom.networks import spectra
from adom.networks.connect import adjacency, name_components, spanning_trees
from adom.networks.families import random_pairs
from adom.networks.links import Floats, Ints, Links, Longs, distinct_codes, frozen
from adom.networks.pool import places_bytes, span
from adom.util.threads import one_thread

SENDER, RECEIVER = 0, 1  # the columns of an array of arcs
Places = Sequence[Floats | None] | None
FARTHEST = 3.0
"""A radius with which even the shortest range, half of it, covers the unit square."""
WANTED, BASIS = 6, 80
"""Eigenvalues that ARPACK looks for, and its vectors: with fewer it may miss the largest of a crowd."""


class ArcPool:
    """Directed graphs that are all held.

    Parameters
    ----------
    links : Links
        Rows are arcs (sender, receiver), within a graph unique, without self-loops, sorted by (receiver, sender).
    positions : sequence of (nodes, 2) arrays or None, optional
    """

    held = True

    def __init__(self, links: Links, positions: Places = None) -> None:
        self.links = links
        places = list(positions or ()) or [None] * links.graphs
        self.positions = [place if place is None else frozen(place) for place in places]
        self.nodes, self.graphs = links.nodes, links.graphs
        self.bytes = links.edges.nbytes + places_bytes(self.positions)
        self.typical = span(links.sizes)

    def __getitem__(self, g: int) -> "ArcPool":
        """Return graph g alone."""
        return ArcPool(Links.of(self.nodes, [self.links.edges[self.links.rows(g)]]), [self.positions[g]])

    def examined(self, used: Longs) -> Longs:
        """Return the graphs whose spectra speak for all that are used: those themselves."""
        return used


def second_modulus(matrix: Any) -> float:
    """Return the second largest modulus of the eigenvalues of a row- or column-stochastic matrix.

    Dense: all eigenvalues. Sparse: ARPACK on ``M - 11'/n``, whose eigenvalues are those of M with 0 in place
    of one 1, since the all-ones vector is a right or left eigenvector of M.
    """
    if isinstance(matrix, np.ndarray):
        with one_thread():
            return float(np.sort(np.abs(np.linalg.eigvals(matrix)))[-2])

    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

    n = matrix.shape[0]
    deflated = LinearOperator((n, n), matvec=lambda v: matrix @ v - v.mean(), dtype=np.float64)
    options = {"ncv": BASIS, "maxiter": spectra.MANY_RESTARTS, "tol": spectra.PRECISION}
    options["v0"] = np.random.default_rng(0).standard_normal(n)
    with one_thread():
        try:
            found = eigs(deflated, WANTED, which="LM", return_eigenvectors=False, **options)
        except ArpackNoConvergence:
            raise InputError(
                f"chi of a directed graph of {n} nodes did not converge: too many eigenvalues lie close to the "
                f"second largest; use a better connected graph, or {spectra.DENSE} nodes or fewer"
            ) from None
    return float(np.abs(found).max())


def strong_labels(nodes: int, arcs: Any) -> tuple[int, Ints]:
    """Return the number of strong components and, for each node, its component."""
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(arcs), dtype=np.int8)
    count, labels = connected_components(adjacency(nodes, arcs, ones), connection="strong")
    return int(count), labels


def require_strong(links: Links, order: Ints) -> None:
    """Refuse a network that is not strongly connected; name the first such round, and the components."""
    used, first = np.unique(order, return_index=True)
    for k, g in sorted(zip(first.tolist(), used.tolist(), strict=True)):
        count, labels = strong_labels(links.nodes, links.edges[links.rows(g)])
        if count > 1:
            smallest = np.unique(labels, return_index=True)[1][labels]
            names = name_components(links.nodes, np.stack([np.arange(links.nodes), smallest], axis=1))
            raise InputError(
                f"the graph of round {k} is not strongly connected: {names}; "
                "Push-Pull needs a directed path from every node to every other: add arcs between them"
            )


def sorted_arcs(arcs: npt.NDArray[Any], nodes: int) -> Ints:
    """Return arcs each once, sorted by (receiver, sender)."""
    codes = distinct_codes(arcs[:, RECEIVER].astype(np.int64) * nodes + arcs[:, SENDER])
    return np.stack([codes % nodes, codes // nodes], axis=1, dtype=np.int32, casting="same_kind")


def random_arcs(nodes: int, p: float, seed: int, g: int) -> tuple[Ints, None]:
    """Draw one graph, the arcs up and the arcs down apart, and make it strongly connected; it has no positions."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(g,)))
    arcs = np.concatenate([random_pairs(nodes, p, rng), random_pairs(nodes, p, rng)[:, ::-1]])
    count, labels = strong_labels(nodes, arcs)
    if count > 1:
        shuffled = rng.permutation(nodes)
        cycle = shuffled[rng.permutation(np.unique(labels[shuffled], return_index=True)[1])]
        arcs = np.concatenate([arcs, np.stack([cycle, np.roll(cycle, -1)], axis=1)])
    return sorted_arcs(arcs, nodes), None


def radio_arcs(nodes: int, radius: float, seed: int, g: int) -> tuple[Ints, Floats]:
    """Draw the points and ranges of one graph; return its arcs, made strongly connected, and the points."""
    from scipy.spatial import KDTree

    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(g,)))
    points = rng.random((nodes, 2))
    reach = min(radius, FARTHEST) * rng.uniform(0.5, 1.5, nodes)
    # The query is slightly too wide; the comparison below decides.
    pairs = KDTree(points).query_pairs(reach.max() * (1 + 1e-9), output_type="ndarray")
    far = np.hypot(*(points[pairs[:, 0]] - points[pairs[:, 1]]).T)
    arcs = np.concatenate([pairs[far < reach[pairs[:, 0]]], pairs[far < reach[pairs[:, 1]]][:, ::-1]])
    count, labels = strong_labels(nodes, arcs)
    if count > 1:
        tree = spanning_trees(points[None])[0]
        bridges = tree[labels[tree[:, 0]] != labels[tree[:, 1]]]
        arcs = np.concatenate([arcs, bridges, bridges[:, ::-1]])
    return sorted_arcs(arcs, nodes), points
