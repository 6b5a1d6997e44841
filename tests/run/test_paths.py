"""The same numbers whichever way a round is computed: the error curve over 500 rounds, to 1e-9 relative."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

import adom
from adom import native
from adom.run.local import graph_layout as supply
from adom.run.local.gossip import DenseMatrices, PaddedMatrices, SparseMatrices

ROUNDS, RTOL = 500, 1e-9


@pytest.fixture(scope="module")
def data():
    features, labels = make_classification(20 * 15, 9, n_informative=6, random_state=3)
    features[np.random.default_rng(0).random(features.shape) < 0.5] = 0.0
    return features, labels


@pytest.fixture(scope="module")
def problem(data):
    return adom.LogisticRegression(*data, nodes=20, kappa=50.0)


@pytest.fixture(scope="module")
def network():
    return adom.networks.geometric(20, 0.4, graphs=37, seed=1)


def curve(problem, network, **options):
    options = {"parameters": "theory", "oracle": ("gd", 3), "rounds": ROUNDS, **options}
    return adom.solve(problem, network, **options).history["error"].to_numpy()


@pytest.fixture
def pure(monkeypatch):
    monkeypatch.setattr(native, "usable", lambda backend="cpu": False)


@pytest.fixture(scope="module")
def reference(problem, network):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "usable", lambda backend="cpu": False)
        return curve(problem, network)


def test_native_kernels(problem, network, reference):
    if native.problem("cpu"):
        pytest.skip(f"no native kernels: {native.problem('cpu')}")
    np.testing.assert_allclose(curve(problem, network), reference, rtol=RTOL)


def test_native_kernels_on_sparse_features(data, network, reference):
    sparse = adom.LogisticRegression(sp.csr_array(data[0]), data[1], nodes=20, kappa=50.0)
    np.testing.assert_allclose(curve(sparse, network), reference, rtol=RTOL)


@pytest.mark.usefixtures("pure")
def test_sparse_features_without_kernels(data, network, reference):
    sparse = adom.LogisticRegression(sp.csr_array(data[0]), data[1], nodes=20, kappa=50.0)
    np.testing.assert_allclose(curve(sparse, network), reference, rtol=RTOL)


@pytest.mark.usefixtures("pure")
@pytest.mark.parametrize("kind", [DenseMatrices, SparseMatrices, PaddedMatrices])
def test_layouts_of_the_graphs(problem, network, reference, kind, monkeypatch):
    monkeypatch.setattr(supply, "_kind", lambda n, arcs: kind)
    np.testing.assert_allclose(curve(problem, network), reference, rtol=RTOL)


def batch_curves(problem, network):
    base = adom.ADOM.theory(adom.constants(problem, network))
    settings = [replace(base, eta=base.eta * factor) for factor in (0.5, 1.0, 2.0)]
    results = adom.solve_many(problem, network, settings, ("gd", 3), ROUNDS)
    return [one.history["error"].to_numpy() for one in results]


def test_a_batch(problem, network, reference):
    np.testing.assert_allclose(batch_curves(problem, network)[1], reference, rtol=RTOL)


@pytest.mark.usefixtures("pure")
@pytest.mark.parametrize("axis", [0, 1])
def test_a_batch_without_kernels_in_either_layout(problem, network, reference, axis, monkeypatch):
    from adom.run.local import jitted as compiled

    monkeypatch.setattr(compiled, "BATCH_AXIS", {"cpu": axis})
    np.testing.assert_allclose(batch_curves(problem, network)[1], reference, rtol=RTOL)


@pytest.mark.parametrize("window", [1, 3000])
def test_windows_of_rounds(problem, network, reference, window, monkeypatch):
    monkeypatch.setattr(supply, "POOL_BYTES", 0)
    monkeypatch.setattr(supply, "WINDOW_BYTES", window)
    np.testing.assert_allclose(curve(problem, network), reference, rtol=RTOL)


@pytest.mark.parametrize(
    ("method", "parameters"), [("mudag", {"protocol": "unit", "K": 7}), ("apm", "unit"), ("push-pull", "unit")]
)
def test_windows_of_rounds_for_methods_of_other_kinds(problem, network, method, parameters, monkeypatch):
    options = {"method": method, "oracle": "auto", "parameters": parameters, "rounds": 200, "record_every": 3}
    whole = curve(problem, network, **options)
    monkeypatch.setattr(supply, "POOL_BYTES", 0)
    monkeypatch.setattr(supply, "WINDOW_BYTES", 5000)
    np.testing.assert_allclose(curve(problem, network, **options), whole, rtol=RTOL)


def test_windows_of_rounds_for_a_batch_whose_members_go_at_different_paces(problem, network, monkeypatch):
    base = adom.Mudag.unit(adom.constants(problem, network))
    settings = [replace(base, K=count) for count in (2, 5, 11)]
    options = {"rounds": 150, "record_every": 3}
    whole = adom.solve_many(problem, network, settings, **options)
    monkeypatch.setattr(supply, "POOL_BYTES", 0)
    monkeypatch.setattr(supply, "WINDOW_BYTES", 5000)
    for one, other in zip(whole, adom.solve_many(problem, network, settings, **options), strict=True):
        assert one.history["round"].tolist() == other.history["round"].tolist()
        np.testing.assert_allclose(one.history["error"], other.history["error"], rtol=RTOL)


def test_windows_of_rounds_for_a_verification(problem, network, monkeypatch):
    rounds = network.period + 3
    whole = adom.verify(problem, network, rounds=rounds)
    monkeypatch.setattr(supply, "POOL_BYTES", 0)
    monkeypatch.setattr(supply, "WINDOW_BYTES", 3000)
    for one, other in zip(whole.rows, adom.verify(problem, network, rounds=rounds).rows, strict=True):
        assert one.worst_ratio == pytest.approx(other.worst_ratio, rel=1e-6)
        assert one.rounds_checked == other.rounds_checked


@pytest.mark.parametrize("steps", [1, 10])
def test_programs_with_fixed_numbers_of_steps(problem, network, reference, steps, monkeypatch):
    """What an accelerator runs, compiled for the processor at hand."""
    from adom.run.local.jitted import Session

    monkeypatch.setattr(Session, "on_cpu", property(lambda self: False, lambda self, value: None), raising=False)
    found = curve(problem, network, record_every=steps)
    np.testing.assert_allclose(found, reference[steps - 1 :: steps], rtol=RTOL)


def test_problems_that_share_their_data(problem, network):
    others = [problem.with_kappa(kappa) for kappa in (20.0, 50.0, 80.0)]
    methods = [adom.ADOM.theory(adom.constants(other, network)) for other in others]
    batch = adom.solve_many(others, network, methods, ("gd", 3), 100)
    for other, method, one in zip(others, methods, batch, strict=True):
        alone = adom.solve(other, network, method, oracle=("gd", 3), rounds=100)
        np.testing.assert_allclose(one.history["error"], alone.history["error"], rtol=RTOL)
        assert one.provenance["problem"] == alone.provenance["problem"]


def test_a_batch_on_a_gpu_is_multiplied_by_its_matrices(monkeypatch):
    """Its kernel is for one setting; a batch, with graphs in common or not, goes to the library's products."""
    monkeypatch.setattr(native, "usable", lambda backend="cpu": backend == "gpu")
    rng = np.random.default_rng(0)
    values, v = rng.standard_normal((2, 6, 6)), rng.standard_normal((2, 5, 6, 3))
    with jax.enable_x64(True):
        matrices = DenseMatrices(jnp.asarray(values), jnp.asarray(values.sum(axis=-1)))
        shared = jax.vmap(lambda *v: matrices.times(jnp.int32(1), v))(*v)
        apart = jax.vmap(lambda graph, *v: matrices.times(graph, v))(jnp.arange(5, dtype=jnp.int32) % 2, *v)
    np.testing.assert_allclose(shared, values[1] @ v, rtol=0, atol=1e-13)
    np.testing.assert_allclose(apart, values[np.arange(5) % 2] @ v, rtol=0, atol=1e-13)
