"""Networks from the caller's graphs and matrices."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from adom.errors import InputError, InputTypeError
from adom.networks import from_graphs, from_matrices, geometric, path


def laplacian(graph, **kwargs):
    return nx.laplacian_matrix(graph, nodelist=range(len(graph)), **kwargs).toarray().astype(float)


def test_graphs_are_used_in_order(check_gossip):
    graphs = [nx.cycle_graph(6), nx.star_graph(5), nx.path_graph(6)]
    network = from_graphs(graphs)
    assert (network.graphs, network.period) == (3, 3)
    for k in range(6):
        L = laplacian(graphs[k % 3], weight=None)
        np.testing.assert_allclose(network.matrix(k), L / np.linalg.eigvalsh(L)[-1], atol=1e-14)
    check_gossip(network)


def test_graphs_that_are_alike_are_held_once():
    network = from_graphs([nx.cycle_graph(6), nx.star_graph(5), nx.cycle_graph(6)])
    assert (network.graphs, network.period) == (2, 3)
    assert network.order.tolist() == [0, 1, 0]


def test_labels_are_numbered_in_sorted_order():
    graph = nx.Graph([("c", "a"), ("b", "c")])
    assert from_graphs([graph]).edges(0).tolist() == [[0, 2], [1, 2]]


def test_labels_that_cannot_be_sorted_keep_their_order():
    graph = nx.Graph([("x", 1), (1, (2, 3))])
    other = nx.Graph([((2, 3), "x"), ("x", 1)])
    network = from_graphs([graph, other])
    assert network.edges(0).tolist() == [[0, 1], [1, 2]]
    assert network.edges(1).tolist() == [[0, 1], [0, 2]]


def test_weights_are_ignored_unless_asked_for():
    graph = nx.Graph()
    graph.add_weighted_edges_from([(0, 1, 5.0), (1, 2, 2.0), (0, 2, 0.5)])
    np.testing.assert_allclose(from_graphs([graph]).matrix(0), np.eye(3) - 1 / 3, atol=1e-14)
    W = from_graphs([graph], weight="weight").matrix(0)
    L = laplacian(graph)
    np.testing.assert_allclose(W, L / np.linalg.eigvalsh(L)[-1], atol=1e-14)


def test_parallel_links_count_once_and_their_weights_add():
    graph = nx.MultiGraph([(0, 1, {"w": 1.0}), (0, 1, {"w": 2.0}), (1, 2, {"w": 3.0})])
    np.testing.assert_array_equal(from_graphs([graph]).matrix(0), path(3).matrix(0))
    np.testing.assert_allclose(from_graphs([graph], weight="w").matrix(0), path(3).matrix(0), atol=1e-14)


def test_graphs_make_the_round_trip_with_positions():
    network = geometric(20, 0.3, graphs=3, seed=1)
    back = from_graphs([network.graph(k) for k in range(3)])
    for g in range(3):
        np.testing.assert_array_equal(back.edges(g), network.edges(g))
        np.testing.assert_array_equal(back.positions(g), network.positions(g))
        np.testing.assert_allclose(back.weights(g), network.weights(g))


def test_repair_chains_the_components_by_their_smallest_nodes():
    graph = nx.Graph([(1, 4), (2, 3)])
    graph.add_node(0)
    network = from_graphs([graph], repair=True)
    assert network.edges(0).tolist() == [[0, 1], [1, 2], [1, 4], [2, 3]]
    weighted = nx.Graph([(0, 1, {"w": 4.0}), (2, 3, {"w": 4.0})])
    assert np.ptp(from_graphs([weighted], repair=True, weight="w").weights(0)[[0, 2]]) == 0
    ratio = np.divide(*from_graphs([weighted], repair=True, weight="w").weights(0)[:2])
    assert ratio == pytest.approx(4.0)


def test_digest_tells_data_apart():
    ring, line = nx.cycle_graph(5), nx.path_graph(5)
    assert from_graphs([ring, line]).recipe == from_graphs([ring, line]).recipe
    assert from_graphs(ring).recipe == from_graphs([ring]).recipe, "a single graph needs no list"
    digests = {
        from_graphs(g).recipe["sha256"] for g in ([ring], [line], [ring, line], [line, ring], [ring, line, ring])
    }
    assert len(digests) == 5


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 12), st.integers(0, 10**6), st.booleans(), st.floats(1e-6, 1e6))
def test_matrices_come_back_as_they_went_in(n, seed, as_sparse, scale):
    rng = np.random.default_rng(seed)
    off = -np.triu(rng.uniform(0.1, 1, (n, n)) * (rng.random((n, n)) < 0.5), 1)
    off[np.arange(n - 1), np.arange(1, n)] = -rng.uniform(0.1, 1, n - 1)
    W = (off + off.T - np.diag((off + off.T).sum(axis=1))) * scale
    network = from_matrices([sparse.csr_array(W) if as_sparse else W])
    np.testing.assert_allclose(network.matrix(0), W, rtol=1e-12, atol=1e-14 * scale)
    values = np.linalg.eigvalsh(W)
    np.testing.assert_allclose(network.spectrum[0], values[[1, -1]], rtol=1e-8)
    assert network.chi == pytest.approx(values[-1] / values[1])


def test_chi_of_matrices_mixes_the_extremes_of_all():
    W = path(5).matrix(0)
    network = from_matrices([W, 3 * W])
    assert network.lambda_max == pytest.approx(3.0)
    assert network.chi == pytest.approx(3 * path(5).chi)


def test_positive_entries_off_the_diagonal_are_allowed_while_W_stays_semi_definite():
    W = np.array([[2.0, -3.0, 1.0], [-3.0, 6.0, -3.0], [1.0, -3.0, 2.0]])
    network = from_matrices(W)
    np.testing.assert_allclose(network.matrix(0), W)
    assert network.weights(0).tolist() == [3.0, -1.0, 3.0]
    assert network.graph(0)[0][2]["weight"] == -1.0


def test_large_sparse_matrices_stay_sparse():
    n = 3000
    ring = sparse.diags_array([-1.0, -1.0, 2.0, -1.0, -1.0], offsets=[-n + 1, -1, 0, 1, n - 1], shape=(n, n))
    network = from_matrices([ring.tocsr()])
    assert abs(network.matrix(0) - ring).max() == 0
    assert network.lambda_max == pytest.approx(4.0)
    assert network.lambda_min_plus == pytest.approx(4 * np.sin(np.pi / n) ** 2, rel=1e-6)


GOOD = path(4).matrix(0)


def altered(row, column, value):
    W = GOOD.copy()
    W[row, column] = value
    return W


@pytest.mark.parametrize(
    ("matrices", "kind", "message"),
    [
        ([], InputError, "matrices is empty"),
        (7, InputTypeError, "matrices must be a list, got int"),
        ([GOOD, np.ones((2, 3))], InputError, r"matrix 1 has shape \(2, 3\)"),
        ([GOOD, path(5).matrix(0)], InputError, "matrix 1 is 5 x 5 and matrix 0 is 4 x 4"),
        ([GOOD, altered(1, 2, np.nan)], InputError, "matrix 1 has an entry nan"),
        (
            [GOOD, altered(0, 1, -0.2)],
            InputError,
            r"matrix 1 is not symmetric: W\[\d, \d\].*differ by 0.0929",
        ),
        ([GOOD, altered(3, 3, 1.0)], InputError, "matrix 1: row 3 sums to 0.707, but every row"),
        ([GOOD, np.eye(4) - GOOD], InputError, "row 0 sums to 1, .*a mixing matrix M"),
        ([GOOD, -GOOD], InputError, "matrix 1 is not positive semi-definite: it has the eigenvalue -1"),
        (
            [GOOD, np.kron(np.eye(2), np.array([[1.0, -1.0], [-1.0, 1.0]]))],
            InputError,
            r"matrix 1 is disconnected: 2 components, \{0, 1\} and \{2, 3\}",
        ),
        (
            [np.array([[1.0, -2.0, 1.0], [-2.0, 4.0, -2.0], [1.0, -2.0, 1.0]])],
            InputError,
            "matrix 0: a second eigenvalue is .*zero to rounding",
        ),
        ([GOOD * (1 + 0j)], InputTypeError, "matrix 0 is not a real matrix"),
        ([sparse.csr_array(GOOD * 1j)], InputTypeError, "matrix 0 is not a real matrix"),
        ([["a", "b"], ["c", "d"]], InputTypeError, "matrix 0 is not a real matrix"),
        ([[[1.0, 2.0], [3.0]]], InputTypeError, "matrix 0 is not a real matrix"),
    ],
)
def test_bad_matrices_are_refused_in_one_line(matrices, kind, message):
    with pytest.raises(kind, match=message) as caught:
        from_matrices(matrices)
    assert "\n" not in str(caught.value)


def test_indefinite_matrix_with_many_nodes_is_found_out():
    n = 2500
    W = sparse.diags_array([-1.0, -1.0, 2.0, -1.0, -1.0], offsets=[-n + 1, -1, 0, 1, n - 1], shape=(n, n)).tolil()
    W[0, 9] = W[9, 0] = 1.0
    W[0, 0] -= 1.0
    W[9, 9] -= 1.0
    with pytest.raises(InputError, match="not positive semi-definite"):
        from_matrices([W])


def test_rounding_is_forgiven():
    noise = np.random.default_rng(0).normal(0, 1e-12, (4, 4))
    network = from_matrices([GOOD + noise - np.diag(noise.sum(axis=1))])
    np.testing.assert_allclose(network.matrix(0), GOOD, atol=1e-11)
    np.testing.assert_array_equal(from_matrices([GOOD + 1e-18]).edges(0), path(4).edges(0))
