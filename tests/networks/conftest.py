"""What every network must satisfy, checked round by round."""

from collections.abc import Callable, Iterator

import networkx as nx
import numpy as np
import pytest
import threadpoolctl

from adom.networks import Network


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread() -> Iterator[None]:
    """Keep the tests' own dense checks from stalling on a busy machine."""
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        yield


def _check(network: Network, rounds: int | None = None) -> None:
    n = network.nodes
    for k in range(network.period if rounds is None else rounds):
        W = network.matrix(k)
        g = int(network.order[k % network.period])
        edges, weights = network.edges(g), network.weights(g)
        assert edges.dtype == np.int32
        assert (edges[:, 0] < edges[:, 1]).all()
        codes = edges[:, 0].astype(np.int64) * n + edges[:, 1]
        assert (np.diff(codes) > 0).all(), "sorted and unique"
        off = np.zeros((n, n))
        off[edges[:, 0], edges[:, 1]] = -weights
        off += off.T
        np.testing.assert_allclose(W, off - np.diag(off.sum(axis=1)), atol=1e-15)
        values = np.linalg.eigvalsh(W)
        np.testing.assert_array_equal(W, W.T)
        np.testing.assert_allclose(W @ np.ones(n), 0, atol=1e-13)
        assert abs(values[0]) < 1e-12
        assert values[1] > 1e-9, "the kernel is consensus alone"
        np.testing.assert_allclose(network.spectrum[g], values[[1, -1]], rtol=1e-7)
        assert nx.is_connected(network.graph(k))


@pytest.fixture(scope="session")
def check_gossip() -> Callable[..., None]:
    """Check that W(k) is symmetric and semi-definite, with kernel consensus, as edges and weights say."""
    return _check
