"""Sparse eigenvalue computations against dense ones and closed forms, on easy and on hard graphs."""

import math

import numpy as np
import pytest
import threadpoolctl
from scipy.sparse.linalg import eigsh

from adom.networks import erdos_renyi, expander, geometric, ring, spectra, star, torus
from adom.networks.edges import Links
from adom.util.process import one_thread


def links_and_weights(network, seed=None):
    links = Links.of(network.nodes, [network.edges(0)])
    weights = np.ones(len(links.edges))
    if seed is not None:
        weights = np.random.default_rng(seed).uniform(0.1, 3, len(links.edges))
    return links, weights


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize(
    "network",
    [geometric(600, 0.06, seed=1), erdos_renyi(500, 0.02, seed=2), ring(501), torus(20, 25)],
    ids=["geometric", "erdos_renyi", "ring", "torus"],
)
def test_sparse_agrees_with_dense(monkeypatch, network, seed):
    links, weights = links_and_weights(network, seed)
    dense = np.linalg.eigvalsh(spectra.gossip_matrix(links.nodes, links.edges, weights))[[1, -1]]
    monkeypatch.setattr(spectra, "DENSE", 100)
    monkeypatch.setattr(spectra, "AT_ONCE", 100)
    np.testing.assert_allclose(spectra.extremes(links, weights)[0], dense, rtol=1e-7)
    monkeypatch.setattr(spectra, "RESTARTS", 1)  # now by factorisation where ARPACK needs longer
    np.testing.assert_allclose(spectra.smallest(links, weights)[0], dense[0], rtol=1e-6)
    monkeypatch.setattr(spectra, "WIDEST", 0)  # and by a long ARPACK run where that is forbidden
    np.testing.assert_allclose(spectra.smallest(links, weights)[0], dense[0], rtol=1e-7)


def test_factorisation_is_never_tried_on_a_large_expander(monkeypatch):
    links, weights = links_and_weights(erdos_renyi(12_000, 12 / 12_000))

    def fail(_matrix):
        raise AssertionError("an expander fills its factors")

    monkeypatch.setattr(spectra, "_inverse", fail)
    monkeypatch.setattr(spectra, "RESTARTS", 1)
    assert 0.3 < spectra.smallest(links, weights)[0] < 3


def test_unconverged_largest_eigenvalue_is_an_upper_bound(monkeypatch):
    monkeypatch.setattr(spectra, "RESTARTS", 1)
    for network in (ring(1001), geometric(700, 0.06), torus(21, 23)):
        links, weights = links_and_weights(network)
        exact = np.linalg.eigvalsh(spectra.gossip_matrix(links.nodes, links.edges, weights))[-1]
        assert exact - 1e-9 <= spectra.largest(links, weights)[0] <= 2 * exact


@pytest.mark.parametrize(
    "network",
    [
        geometric(900, 0.06, seed=1),
        erdos_renyi(900, 0.01),
        expander(900, 6),
        expander(900, 2),
        star(900),
        torus(29, 31),
    ],
    ids=["geometric", "erdos_renyi", "expander", "ring", "star", "torus"],
)
def test_large_networks_have_bounds_close_beside_the_extremes(monkeypatch, network):
    links, weights = links_and_weights(network, seed=3)
    low, high = np.linalg.eigvalsh(spectra.gossip_matrix(links.nodes, links.edges, weights))[[1, -1]]
    assert spectra.scales(links, weights)[0] == pytest.approx(high, rel=1e-9)
    monkeypatch.setattr(spectra, "LARGE", 100)
    monkeypatch.setattr(spectra, "DENSE", 100)
    assert high <= spectra.scales(links, weights)[0] <= 1.003 * high
    assert 0.997 * low <= spectra.smallest(links, weights)[0] <= low * (1 + 1e-6)
    floor = spectra._floor(spectra.sparse_matrix(links.nodes, links.edges, weights))
    assert floor is None or 0.997 * low <= floor <= low


def test_product_is_that_of_the_matrix():
    links, weights = links_and_weights(erdos_renyi(50, 0.2), seed=3)
    v = np.random.default_rng(1).standard_normal(50)
    product = spectra.laplacian_product(50, links.edges, weights)(v)
    np.testing.assert_allclose(product, spectra.gossip_matrix(links.nodes, links.edges, weights) @ v, atol=1e-13)


def test_one_thread_ends_with_the_last_who_is_inside():
    def threads():
        return [one["num_threads"] for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"]

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = threads()
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(threads()) == {1}
        second.__exit__(None, None, None)
        assert threads() == before


def test_hundred_thousand_nodes_in_a_ring():
    network = ring(100_000)
    assert network.chi == pytest.approx(1 / math.sin(math.pi / 100_000) ** 2, rel=1e-6)


def test_many_points_in_the_plane_agree_with_arpack():
    network = geometric(20_000, math.sqrt(8 / math.pi / 20_000), seed=1)
    W = network.matrix(0)
    low = eigsh(W, k=2, sigma=-1e-6, which="LM", return_eigenvectors=False)
    high = eigsh(W, k=1, which="LA", return_eigenvectors=False)
    assert network.lambda_min_plus == pytest.approx(max(low), rel=1e-6)
    assert network.lambda_max == pytest.approx(high[0], rel=1e-9)


def test_many_graphs_at_once_are_what_each_is_alone():
    graphs = [erdos_renyi(12, 0.2, seed=seed).edges(0) for seed in range(7)]
    links = Links.of(12, graphs)
    together = spectra.extremes(links, np.arange(1.0, 1 + len(links.edges)))
    for g, (edges, weights) in enumerate(links.split(np.arange(1.0, 1 + len(links.edges)))):
        np.testing.assert_array_equal(edges, graphs[g])
        alone = np.linalg.eigvalsh(spectra.gossip_matrix(12, edges, weights))[[1, -1]]
        np.testing.assert_allclose(together[g], alone, rtol=1e-12)
