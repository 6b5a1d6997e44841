"""Parameters at the edges of their formulas: nearly complete graphs, and kappa down to 1."""

from functools import cache

import networkx as nx
import numpy as np
import pytest

import adom
from adom.algorithms import METHODS, Constants, method_class
from support.reference import Gossip, Oracle, quadratics

SAFE = [(name, "theory") for name in METHODS] + [
    (name, "unit") for name in ("adom", "pngd", "adom+", "acc-gt", "acc-dngd")
]


def nearly_complete(nodes, missing):
    graph = nx.complete_graph(nodes)
    graph.remove_edges_from([(2 * i, 2 * i + 1) for i in range(missing)])
    return adom.networks.from_graphs([graph])


NETWORKS = {
    "complete": lambda: adom.networks.complete(5),
    "two nodes": lambda: adom.networks.complete(2),
    "one link missing": lambda: nearly_complete(10, 1),
    "three links missing": lambda: nearly_complete(6, 3),
    "failing links": lambda: adom.networks.failing(adom.networks.complete(6), 0.05, graphs=30, seed=0),
}


@cache
def drawn(name):
    """Return a network and its matrices."""
    network = NETWORKS[name]()
    return network, [network.matrix(k) for k in range(network.period)]


def last_error(cls, protocol, name, kappa, rounds=400):
    """Return the error after some rounds over the larger of the start's and the first, with kappa's quadratics."""
    network, matrices = drawn(name)
    H, c = quadratics(network.nodes, 3, kappa)
    spectrum = network.lambda_min_plus, network.lambda_max
    method = getattr(cls, protocol)(Constants(1.0, kappa, *spectrum, network.nodes))
    oracle, gossip = Oracle(H, c), Gossip(matrices)
    x_star = np.linalg.solve(H.sum(axis=0), c.sum(axis=0))
    state = method.init(np.zeros(c.shape), oracle)
    errors = [network.nodes * (x_star**2).sum()]
    with np.errstate(all="ignore"):
        while gossip.clock < rounds:
            state, x = method.step(state, oracle, gossip)
            errors.append(((x - x_star) ** 2).sum())
    return float(errors[-1] / max(errors[:2]))


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(("name", "protocol"), SAFE)
def test_nothing_diverges_on_nearly_complete_graphs(name, protocol, network):
    for kappa in (1.0, 1.2, 2.0, 5.0, 100.0):
        assert last_error(method_class(name), protocol, network, kappa) <= 1, kappa


@pytest.mark.parametrize("name", ["adom", "pngd", "acc-gt"])
def test_unit_at_kappa_and_chi_1_is_valid(name):
    method_class(name).unit(Constants(mu=1.0, L=1.0))


def test_beyond_the_edges_the_formulas_are_those_of_the_methods_page():
    c = Constants(mu=2.0, L=50.0, lambda_min_plus=1 / 32, nodes=10)
    unit = adom.ADOM.unit(c)
    assert (unit.eta, unit.tau) == pytest.approx((2 * 10 / 32, 0.2 / 32), rel=1e-14)
    assert method_class("adom+").unit(c).sigma_2 == pytest.approx(0.2 / 32, rel=1e-14)
    assert method_class("acc-gt").unit(c).a == pytest.approx(1 / (50 * 32**3), rel=1e-14)
    steps = [method_class("acc-dngd").theory(Constants(1.0, 5.0, 1 / chi)).eta for chi in (1.0, 1.01, 1.6, 2.0)]
    assert steps == pytest.approx([steps[0]] * 3 + [steps[3]])
    assert steps[0] > steps[3]
    assert method_class("acc-dngd").unit(Constants(2.0, 2.0, 0.5)).eta == pytest.approx(1 / (2 * 8), rel=1e-14)
