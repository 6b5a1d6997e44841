"""Who holds which sample, who talks to whom, and in which coordinates the nodes compute."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .. import networks
from ..data.splits import shares
from ..errors import InputError, InputTypeError, nearest
from ..networks import DirectedNetwork, Network
from ..problems.features import largest_curvature

NODES = 10
GRAPHS = 20
"""Graphs of a network that is given by its name and changes."""
DEGREE = 8
HELD = 10.0
"""By how much the curvature of an intercept shall exceed the term that holds it, at least."""
RAREST = 1e-4
"""The smallest share of a class that the scale of the intercept is adapted to."""


class Share(NamedTuple):
    """What one fit deals with: rows of samples for each node, and the network of these nodes."""

    rows: list[np.ndarray]
    network: Any

    def parts(self, *columns: Any) -> list[Any]:
        """Return what each node holds: a tuple of its part of every column, or its part of the only one."""
        if len(columns) == 1:
            return [columns[0][rows] for rows in self.rows]
        return [tuple(column[rows] for column in columns) for rows in self.rows]


def deal(labels: np.ndarray, nodes: int | None, split: str, network: Any, seed: int) -> Share:
    """Deal the samples out, to fewer nodes than asked for where there are fewer samples.

    Examples
    --------
    >>> share = deal(np.array([0, 0, 1]), None, "label", "ring", seed=0)
    >>> [rows.tolist() for rows in share.rows], share.network
    ([[0], [1], [2]], Network(ring, nodes=3, graphs=1, period=1, edges=3))
    """
    if nodes is not None and (isinstance(nodes, bool) or not isinstance(nodes, int | np.integer) or nodes < 2):
        raise InputError(f"nodes must be a whole number of at least 2, got {nodes!r}; leave it out for {NODES}")
    if isinstance(network, Network | DirectedNetwork):
        if nodes not in (None, network.nodes):
            raise InputError(
                f"nodes={nodes} does not match the network, which has {network.nodes}; leave nodes out, or build the "
                f"network with nodes={nodes}"
            )
        made: Any = network
    else:
        made = _made(network, min(nodes or NODES, labels.size), seed)
    return Share(shares(labels, made.nodes, split, seed=seed), made)


def _made(network: Any, nodes: int, seed: int) -> Network | DirectedNetwork:
    """Return the network that a name or a function stands for, on so many nodes."""
    if isinstance(network, str):
        if network not in NAMED:
            raise InputError(f"unknown network {network!r}; {nearest(network, NAMED)}, or give one of adom.networks")
        return NAMED[network](nodes, seed)
    if not callable(network):
        raise InputTypeError(
            f"network must be a name, an adom network or a function of the number of nodes, got "
            f"{type(network).__name__}; e.g. network='expander' or network=adom.networks.ring"
        )
    made = network(nodes)
    if not isinstance(made, Network | DirectedNetwork) or made.nodes != nodes:
        raise InputError(f"network({nodes}) must return an adom network of {nodes} nodes, got {made!r}")
    return made


def _expander(nodes: int, seed: int) -> Network:
    degree = min(DEGREE, (nodes - 1) // 2 * 2)
    return networks.expander(nodes, degree, graphs=GRAPHS, seed=seed) if degree else networks.complete(nodes)


def _geometric(nodes: int, seed: int) -> Network:
    # A radius at which random points are mostly connected by themselves, so that few links are added.
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
"""The networks that have a name: for any number of nodes of two or more, and a seed."""


class Frame(NamedTuple):
    """The coordinates of a fit: features less their mean, and a column for the intercept, both or either absent.

    With A the features, m their mean and s the column, decisions are (A - m) w + s v = A w + (s v - m'w).
    """

    mean: np.ndarray | None
    column: float  # 0: no column

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
        """Return the x of these coefficients and intercepts."""
        if not self.column:
            return w
        offset = intercept if self.mean is None else intercept + w @ self.mean
        return np.concatenate([w, np.asarray(offset)[..., None] / self.column], axis=-1)


def frame(X: Any, share: Share, weights: np.ndarray, l2: float, curvature: float) -> Frame:
    """Return the coordinates for a fit with an intercept that is not penalised.

    Where the data is dense, the mean is taken off: the intercept then hardly depends on the coefficients, and L is
    smaller. The column is as large as it may be without making L much larger, and at least so large that the curvature
    along the intercept exceeds the term r / 2 (v - v_k)^2 that holds it (see `adom.sklearn.proximal_loop`) by far.

    Parameters
    ----------
    X : array or scipy.sparse array
    share : Share
    weights : array of shape (samples,)
        Of the samples in the sum of the f_i divided by the number of nodes; they sum to 1.
    l2 : float
        The regulariser r.
    curvature : float
        Of the objective along the intercept, about.
    """
    mean = None if sp.issparse(X) else weights @ X
    A = X if mean is None else X - mean
    order = np.concatenate(share.rows)
    counts = np.array([rows.size for rows in share.rows])
    spread = float(largest_curvature(A[order], counts, len(counts) * weights[order]).max())
    return Frame(mean, math.sqrt(max(spread, HELD * l2 / max(curvature, RAREST))))


def filled(share: Share) -> int:
    """Return up to how many samples the nodes' data are filled, so that folds of about one size share a program.

    Up to 64 samples these are 1, 4, 16 or 64, beyond at most an eighth more than there are.

    Examples
    --------
    >>> [filled(Share([np.arange(n)], None)) for n in (3, 57, 65, 90, 1000)]
    [4, 64, 72, 96, 1024]
    """
    most = max(rows.size for rows in share.rows)
    doubled = math.ceil(math.log2(most))
    step: int = 2 ** (doubled + doubled % 2 if most <= 64 else doubled - 4)
    return -(-most // step) * step


def seed_of(random_state: Any) -> int:
    """Return the seed that a whole number is, that a generator gives, or a fresh one for None."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise InputError(f"random_state must be a whole number of at least 0, or None, got {random_state!r}")
    return int(random_state)
