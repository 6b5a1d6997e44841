"""Where the samples lie, and how the nodes see them: the partition over a network, centred features, the intercept."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .. import networks
from ..data.splits import shares
from ..errors import InputError, InputTypeError, nearest
from ..networks import DirectedNetwork, Network
from ..problems.samples import largest_curvature
from ..util.checks import check_whole

NODES = 10
GRAPHS = 20
"""Number of graphs of a changing network given by name."""
DEGREE = 8
HELD = 10.0
"""The curvature along the intercept is at least this multiple of r, the curvature of the proximal term."""
RAREST = 1e-4
"""Smallest curvature along the intercept, about the share of the rarest class, that the column is scaled for."""


class Partition(NamedTuple):
    """The sample indices of each node, and the network of these nodes."""

    rows: list[np.ndarray]
    network: Any

    def split(self, *columns: Any) -> list[Any]:
        """Return each node's rows of a column; for several columns, a tuple per node."""
        if len(columns) == 1:
            return [columns[0][rows] for rows in self.rows]
        return [tuple(column[rows] for column in columns) for rows in self.rows]

    @property
    def padded(self) -> int:
        """The number of samples to which nodes are padded, so that folds of similar sizes share a compiled program.

        It is 1, 4, 16 or 64 for up to 64 samples, and at most an eighth more than needed beyond.

        Examples
        --------
        >>> [Partition([np.arange(n)], None).padded for n in (3, 57, 65, 90, 1000)]
        [4, 64, 72, 96, 1024]
        """
        most = max(rows.size for rows in self.rows)
        doubled = math.ceil(math.log2(most))
        step: int = 2 ** (doubled + doubled % 2 if most <= 64 else doubled - 4)
        return -(-most // step) * step


def partition(labels: np.ndarray, nodes: int | None, split: str, network: Any, random_state: Any) -> Partition:
    """Return the samples split over a network; a network built here has at most one node per sample.

    Examples
    --------
    >>> parts = partition(np.array([0, 0, 1]), None, "label", "ring", 0)
    >>> [rows.tolist() for rows in parts.rows], parts.network
    ([[0], [1], [2]], Network(ring, nodes=3, graphs=1, period=1, edges=3))
    """
    seed = as_seed(random_state)
    if nodes is not None:
        check_whole("nodes", nodes, 2, f"omit it to use {NODES}")
    if not isinstance(network, Network | DirectedNetwork):
        network = _build(network, min(nodes or NODES, labels.size), seed)
    elif nodes not in (None, network.nodes):
        raise InputError(
            f"nodes={nodes} does not match the network, which has {network.nodes}; leave nodes out, or build the "
            f"network with nodes={nodes}"
        )
    return Partition(shares(labels, network.nodes, split, seed=seed), network)


def _build(network: Any, nodes: int, seed: int) -> Network | DirectedNetwork:
    """Return the network built from a name or by a function."""
    if isinstance(network, str):
        if network not in NAMED:
            raise InputError(f"unknown network {network!r}; {nearest(network, NAMED)}, or give one of adom.networks")
        return NAMED[network](nodes, seed)
    if not callable(network):
        raise InputTypeError(
            f"network must be a name, an adom network or a function of the number of nodes, got "
            f"{type(network).__name__}; e.g. network='expander' or network=adom.networks.ring"
        )
    built = network(nodes)
    if not isinstance(built, Network | DirectedNetwork) or built.nodes != nodes:
        raise InputError(f"network({nodes}) must return an adom network of {nodes} nodes, got {built!r}")
    return built


def _expander(nodes: int, seed: int) -> Network:
    degree = min(DEGREE, (nodes - 1) // 2 * 2)
    return networks.expander(nodes, degree, graphs=GRAPHS, seed=seed) if degree else networks.complete(nodes)


def _geometric(nodes: int, seed: int) -> Network:
    # At this radius random points are mostly connected, so that few links must be added.
    return networks.geometric(nodes, 1.5 * math.sqrt(math.log(nodes) / nodes), graphs=GRAPHS, seed=seed)


def _erdos_renyi(nodes: int, seed: int) -> Network:
    return networks.erdos_renyi(nodes, min(1.0, 2 * math.log(nodes) / nodes), graphs=GRAPHS, seed=seed)


NAMED: dict[str, Callable[[int, int], Network]] = {
    "expander": _expander,
    "geometric": _geometric,
    "erdos_renyi": _erdos_renyi,
    "complete": lambda nodes, _: networks.complete(nodes),
    "ring": lambda nodes, _: networks.ring(nodes) if nodes > 2 else networks.complete(nodes),
    "star": lambda nodes, _: networks.star(nodes),
    "path": lambda nodes, _: networks.path(nodes),
}
"""Builders of networks by name, called with the number of nodes (at least 2) and a seed."""


def as_seed(random_state: Any) -> int:
    """Return a whole number as it is, a seed drawn from a generator, or a new seed for None."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return check_whole("random_state", random_state, 0, "None takes a new one each time")


class Coordinates(NamedTuple):
    """Features, optionally centred, and an optional constant column for the intercept.

    With A the features, m their mean and s the column, decisions are (A - m) w + s v = A w + (s v - m'w).
    """

    mean: np.ndarray | None = None
    column: float = 0.0  # 0: no column

    def features(self, X: Any) -> Any:
        """Return the features that the nodes compute with."""
        A = X if self.mean is None else X - self.mean
        if not self.column:
            return A
        constant = np.full((A.shape[0], 1), self.column)
        if sp.issparse(A):
            return sp.csr_array(sp.hstack([A, sp.csr_array(constant)], format="csr"))
        return np.hstack([A, constant])

    def coefficients(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients of shape (..., d) and intercepts of shape (...), for x of shape (..., d or d + 1)."""
        w = x[..., :-1] if self.column else x
        intercept = self.column * x[..., -1] if self.column else np.zeros(x.shape[:-1])
        return w, intercept if self.mean is None else intercept - w @ self.mean

    def point(self, w: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """Return the x that belongs to coefficients and intercepts."""
        if not self.column:
            return w
        offset = intercept if self.mean is None else intercept + w @ self.mean
        return np.concatenate([w, np.asarray(offset)[..., None] / self.column], axis=-1)


def with_intercept(X: Any, parts: Partition, weights: np.ndarray, l2: float, curvature: float) -> Coordinates:
    """Return the coordinates for a fit with an intercept that is not penalised.

    Dense features are centred, which makes the intercept almost independent of the coefficients, and L smaller. The
    column is as large as possible without making L much larger. It is at least so large that the curvature along the
    intercept far exceeds that of the proximal term r / 2 (v - v_k)^2 (see `adom.sklearn.proximal_loop`).

    `weights` are the samples' weights in the mean of the f_i and sum to 1, `l2` is r, and `curvature` is roughly the
    objective's along the intercept.
    """
    mean = None if sp.issparse(X) else weights @ X
    A = X if mean is None else X - mean
    order = np.concatenate(parts.rows)
    counts = np.array([rows.size for rows in parts.rows])
    spread = float(largest_curvature(A[order], counts, len(counts) * weights[order]).max())
    return Coordinates(mean, math.sqrt(max(spread, HELD * l2 / max(curvature, RAREST))))
