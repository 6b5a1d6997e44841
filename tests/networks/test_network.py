"""The Network object: W(k) as a pure function of k, spectra, provenance, connectivity."""

import json
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import issparse

import adom
from adom.errors import InputError
from adom.networks import (
    complete,
    cyclic,
    directed_geometric,
    erdos_renyi,
    from_graphs,
    geometric,
    redraw,
    ring,
    star,
    static,
)
from adom.networks import spectra as spectra_module


@settings(max_examples=40, deadline=None)
@given(
    nodes=st.integers(2, 25),
    p=st.floats(0, 1),
    graphs=st.integers(1, 4),
    seed=st.integers(0, 2**40),
)
def test_W_is_symmetric_psd_with_kernel_consensus(check_gossip, nodes, p, graphs, seed):
    check_gossip(erdos_renyi(nodes, p, graphs=graphs, seed=seed))


@settings(max_examples=25, deadline=None)
@given(rounds=st.lists(st.integers(0, 10**12), min_size=1, max_size=8))
def test_W_is_a_pure_function_of_k(rounds):
    network = geometric(12, 0.3, graphs=5, seed=2)
    fresh = geometric(12, 0.3, graphs=5, seed=2)
    for k in rounds:
        first = network.matrix(k)
        np.testing.assert_array_equal(first, network.matrix(k % network.period))
        np.testing.assert_array_equal(first, fresh.matrix(k))
        first[:] = 7.0  # what is returned is the caller's own
    for k in rounds:
        np.testing.assert_array_equal(network.matrix(k), fresh.matrix(k))


def test_default_W_is_the_laplacian_over_its_largest_eigenvalue():
    network = geometric(30, 0.25, graphs=3, seed=5)
    for k in range(3):
        laplacian = nx.laplacian_matrix(network.graph(k)).toarray().astype(float)
        np.testing.assert_allclose(network.matrix(k), laplacian / np.linalg.eigvalsh(laplacian)[-1], atol=1e-14)
    assert network.lambda_max == 1.0


def test_chi_is_that_of_the_worst_round_and_ignores_graphs_that_never_occur():
    both = cyclic([ring(40), star(40)])
    assert both.chi == pytest.approx(ring(40).chi)
    assert both.lambda_min_plus == pytest.approx(ring(40).lambda_min_plus)
    once = next(n for n in (redraw(both, rounds=1, seed=s) for s in range(50)) if n.order[0] == 1)
    assert once.graphs == 2
    assert once.chi == pytest.approx(40.0)


def test_smallest_eigenvalue_of_many_nodes_is_left_until_asked_for(monkeypatch):
    calls = []
    original = spectra_module.smallest
    monkeypatch.setattr(spectra_module, "smallest", lambda *a: calls.append(1) or original(*a))
    network = geometric(300, 0.1, graphs=2)
    assert network.matrix(0).shape == (300, 300)
    assert not calls
    assert network.chi == network.chi
    assert network.spectrum.shape == (2, 2)
    assert calls == [1]


@pytest.mark.parametrize("make", [geometric, directed_geometric])
def test_nothing_can_be_changed(make):
    network = make(10, 0.4)
    own = (network.arcs(0),) if make is directed_geometric else (network.edges(0), network.weights(0), network.spectrum)
    for array in (network.order, network.positions(0), *own):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    for name in ("nodes", "chi", "_order", "anything"):
        with pytest.raises(AttributeError, match=f"never changes, so {name} cannot be set"):
            setattr(network, name, 3)
    assert network.order.dtype == np.int32
    network.recipe["seed"] = 99
    assert network.recipe["seed"] == 0


def test_matrix_is_dense_up_to_2000_nodes_and_sparse_above():
    assert isinstance(ring(2000).matrix(0), np.ndarray)
    W = ring(2001).matrix(5)
    assert issparse(W)
    assert W.format == "csr"
    assert W.dtype == np.float64
    assert abs(W - W.T).max() == 0
    np.testing.assert_allclose(W @ np.ones(2001), 0, atol=1e-15)
    np.testing.assert_allclose(W.diagonal(), 0.5, rtol=1e-6)
    assert W.nnz == 3 * 2001


def test_graph_has_all_nodes_and_their_positions():
    network = geometric(15, 0.3, graphs=2, seed=1)
    graph = network.graph(3)
    assert list(graph.nodes) == list(range(15))
    assert sorted(map(sorted, graph.edges)) == network.edges(1).tolist()
    np.testing.assert_array_equal([graph.nodes[i]["pos"] for i in range(15)], network.positions(1))
    assert erdos_renyi(5, 0.5).positions(0) is None


def test_describe_counts_what_networkx_counts():
    network = geometric(25, 0.3, graphs=4, seed=3)
    graphs = [network.graph(k) for k in range(4)]
    degrees = [d for graph in graphs for _, d in graph.degree]
    facts = network.describe()
    assert (facts["nodes"], facts["graphs"], facts["period"]) == (25, 4, 4)
    sizes = [graph.number_of_edges() for graph in graphs]
    assert (facts["edges_min"], facts["edges_max"]) == (min(sizes), max(sizes))
    assert facts["edges_mean"] == pytest.approx(np.mean(sizes))
    assert (facts["degree_min"], facts["degree_max"]) == (min(degrees), max(degrees))
    assert facts["degree_mean"] == pytest.approx(np.mean(degrees))
    chis = [1 / network.spectrum[g, 0] for g in range(4)]
    assert facts["chi"] == facts["chi_worst"] == pytest.approx(max(chis))
    assert facts["chi_best"] == pytest.approx(min(chis))


def test_recipes_are_json():
    for network in (ring(5), geometric(9, chi=3.0), redraw(cyclic([ring(5), complete(5)]), rounds=7)):
        assert json.loads(json.dumps(network.recipe)) == network.recipe


def test_graphs_that_never_connect_all_nodes_are_refused_with_their_components():
    apart, half = nx.Graph([(0, 1), (1, 4), (2, 3)]), nx.Graph([(0, 1), (0, 4)])
    half.add_nodes_from([2, 3])
    remedy = r"no message ever gets from one to another: add edges or use repair=True$"
    parts = r"2 components, \{0, 1, 4\} and \{2, 3\}; "
    with pytest.raises(InputError, match=rf"^all links of rounds 0 to 2 together leave {parts}{remedy}"):
        from_graphs([half, apart, half])
    with pytest.raises(InputError, match=rf"^the graph of round 0 is disconnected: {parts}{remedy}"):
        from_graphs([apart])
    together = from_graphs([apart, nx.path_graph(5)])
    with pytest.raises(InputError, match=rf"^the graph of round 0 is disconnected: {parts}"):
        static(together, 0)
    assert static(together, 1).window == 1


def test_long_lists_of_components_are_cut_short():
    lonely = nx.empty_graph(500)
    lonely.add_edges_from(nx.path_graph(100).edges)
    with pytest.raises(InputError) as caught:
        from_graphs([lonely])
    assert "401 components, {0, 1, 2, 3, 4, 5, ... 94 more}, {100}, {101}" in str(caught.value)
    assert "and 395 more" in str(caught.value)
    assert len(str(caught.value)) < 300


def test_import_loads_numpy_only():
    code = "import sys, adom.networks; print([m for m in ('scipy', 'networkx', 'jax') if m in sys.modules])"
    source = str(Path(adom.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": source}
    )
    assert done.stdout == "[]\n"
