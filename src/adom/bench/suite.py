"""The suite: twelve problems, twelve networks, and the pairs of them that are run.

All have twenty nodes. Nothing here changes within a version: a new problem, network, pair, budget or target needs a new
version, and results of different versions are never combined.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from .. import networks
from ..errors import InputError
from ..networks import Network
from ..problems.base import Problem

VERSION = "1"
NODES = 20
SEED = 1
SAMPLES = 1000
"""Number of samples of a data set, over all nodes."""


@dataclass(frozen=True)
class SuiteSize:
    """Extent of a benchmark: pairs, the budget of rounds, and the squared error to reach, relative to the start."""

    pairs: tuple[tuple[str, str], ...]
    rounds: int
    target: float


def _quadratic(kappa: float, *, alike: bool = False, dim: int = 20) -> Problem:
    """Return f_i with eigenvalues from 1 to kappa: with different axes, or nearly equal ones if `alike`."""
    from ..problems.quadratic import Quadratic

    rng = np.random.default_rng(SEED)
    axes = np.linalg.qr(rng.standard_normal((1 if alike else NODES, dim, dim)))[0]
    H = np.broadcast_to(axes @ (np.geomspace(1, kappa, dim)[:, None] * axes.transpose(0, 2, 1)), (NODES, dim, dim))
    c = (
        rng.standard_normal(dim) + 0.1 * rng.standard_normal((NODES, dim))
        if alike
        else rng.standard_normal((NODES, dim))
    )
    return Quadratic(np.array(H), c)


def _ridge(l2: float, dim: int = 40) -> Problem:
    from ..data import split
    from ..problems.linear_model import LeastSquares

    features, _ = _samples("synthetic", dim)
    rng = np.random.default_rng(SEED)
    targets = features @ rng.standard_normal(dim) + rng.standard_normal(len(features))
    return LeastSquares(split(features, targets, NODES, seed=SEED), l2=l2)


def _logistic(data: str, kappa: float, how: str = "shuffled", dim: int = 40) -> Problem:
    from ..data import split
    from ..problems.linear_model import LogisticRegression

    return LogisticRegression.from_nodes(split(*_samples(data, dim), NODES, how, seed=SEED), kappa=kappa)


def _softmax(l2: float, dim: int = 10, classes: int = 3) -> Problem:
    from ..data import split
    from ..problems.linear_model import SoftmaxRegression

    rng = np.random.default_rng(SEED)
    features = rng.standard_normal((SAMPLES, dim))
    labels = (features @ rng.standard_normal((dim, classes)) + rng.standard_normal((SAMPLES, classes))).argmax(axis=1)
    return SoftmaxRegression(split(features, labels, NODES, seed=SEED), classes=classes, l2=l2)


def _samples(data: str, dim: int) -> tuple[Any, np.ndarray]:
    """Return synthetic samples, or a random subset of a data set."""
    if data == "synthetic":
        from ..data.synthetic import classification

        return classification(SAMPLES, dim, SEED)
    from ..data import load

    features, labels = load(data)
    chosen = np.random.default_rng(SEED).permutation(len(labels))[:SAMPLES]
    return features[np.sort(chosen)], labels[np.sort(chosen)]


def _gatherings() -> Network:
    """Return a network of contacts: in every round the nodes meet in five new random groups."""
    rng = np.random.default_rng(SEED)
    groups = [rng.permutation(NODES).reshape(5, -1) for _ in range(60)]
    rows = [
        (t, int(u), int(v)) for t, five in enumerate(groups) for group in five for u in group for v in group if u < v
    ]
    return networks.from_contacts(rows, nodes=NODES)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "quadratic-10": partial(_quadratic, 10.0),
    "quadratic-1000": partial(_quadratic, 1000.0),
    "quadratic-alike": partial(_quadratic, 100.0, alike=True),
    "ridge": partial(_ridge, 0.1),
    "logistic-100": partial(_logistic, "synthetic", 100.0),
    "logistic-10000": partial(_logistic, "synthetic", 1e4),
    "logistic-by-label": partial(_logistic, "synthetic", 1000.0, "label"),
    "logistic-uneven": partial(_logistic, "synthetic", 1000.0, "dirichlet"),
    "softmax": partial(_softmax, 0.1),
    "a6a": partial(_logistic, "a6a", 1000.0),
    "w6a": partial(_logistic, "w6a", 1000.0),
    "ijcnn1": partial(_logistic, "ijcnn1", 1000.0),
}
"""Name -> function that makes it."""
DATA = ("a6a", "w6a", "ijcnn1")
"""Problems on data sets that must be downloaded."""
NETWORKS: dict[str, Callable[[], Network]] = {
    "ring": partial(networks.ring, NODES),
    "star": partial(networks.star, NODES),
    "torus": partial(networks.torus, 4, 5),
    "expander": partial(networks.expander, NODES, degree=4, graphs=50, seed=SEED),
    "geometric": partial(networks.geometric, NODES, 0.7, graphs=50, seed=SEED),
    "geometric-100": partial(networks.geometric, NODES, chi=100, graphs=50, seed=SEED),
    "walking": partial(networks.waypoint, NODES, 0.5, graphs=200, seed=SEED, repair=True),
    "ring-star": lambda: networks.alternate([networks.ring(NODES), networks.star(NODES)], every=10),
    "random": partial(networks.erdos_renyi, NODES, 0.3, graphs=50, seed=SEED),
    "failing": lambda: networks.failing(networks.torus(4, 5), 0.2, graphs=50, seed=SEED),
    "contacts": _gatherings,
    "lossy": lambda: networks.lossy(networks.geometric(NODES, 0.7, graphs=50, seed=SEED), one_way=0.2, seed=SEED),
}
"""Name -> function that makes it."""


def _pairs() -> tuple[tuple[str, str], ...]:
    """Return pairs of problem and network: two for every problem, and two for every network."""
    wires = list(NETWORKS)
    return tuple(
        (problem, wires[(place + step) % len(wires)]) for place, problem in enumerate(PROBLEMS) for step in (0, 5)
    )


SCALES = {
    "full": SuiteSize(_pairs(), rounds=3000, target=1e-8),
    "quick": SuiteSize(
        (("quadratic-10", "geometric"), ("logistic-100", "ring-star"), ("softmax", "lossy")), 1000, 1e-6
    ),
}


@cache
def problem(name: str) -> Problem:
    """Return a problem of the suite."""
    return PROBLEMS[name]()


@cache
def network(name: str) -> Network:
    """Return a network of the suite."""
    return NETWORKS[name]()


def missing() -> dict[str, str]:
    """Return the problems whose data are missing, each with a remedy."""
    from ..data import state

    left = {name: state(name) for name in DATA}
    return {
        name: known.message or f"{name} is not at hand; `adom data {name} --download` fetches it"
        for name, known in left.items()
        if known.status != "present"
    }


def check_pair(problem_name: str, network_name: str) -> None:
    """Refuse a pair that is not in the suite."""
    if (problem_name, network_name) not in {*SCALES["full"].pairs, *SCALES["quick"].pairs}:
        raise InputError(
            f"{problem_name} on {network_name} is not in suite {VERSION}; docs/benchmark.md lists the pairs"
        )
