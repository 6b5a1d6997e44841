"""The native kernels against the same sums in plain JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from adom import native
from adom.problems.features import lay_out

pytestmark = pytest.mark.skipif(bool(native.problem("cpu")), reason=f"no native kernels: {native.problem('cpu')}")

SHAPES = [(1, 1, 1), (5, 7, 3), (4, 100, 40), (3, 33, 20), (2, 9, 137), (3, 70, 300), (7, 8, 8), (2, 257, 129)]
TOLERANCE = {"float64": 1e-13, "float32": 1e-5}


def features_of(n, m, d, sparse, seed=0, scale=3.0):
    rng = np.random.default_rng(seed)
    values = scale * rng.standard_normal((n * m, d))
    values[rng.random(values.shape) < 0.6] = 0.0
    signs, counts = np.where(rng.random(n * m) < 0.5, 1.0, -1.0), np.full(n, m)
    return lay_out(sp.csr_array(values) if sparse else values, counts, np.full(n * m, 1.0 / m), signs)


def cast(tree, dtype):
    return jax.tree.map(lambda a: np.asarray(a, dtype=dtype if np.asarray(a).dtype.kind == "f" else None), tree)


def pure(features, x):
    return features.weighted_mean(-jax.nn.sigmoid(-features.margins(x)))


def together(features, x, other):
    """Return plain JAX's gradients, the kernel's, and something else, by one program."""
    plain, ours = jax.vmap(lambda x: pure(features, x)), jax.vmap(features.logistic_gradient)
    return map(np.asarray, jax.jit(lambda x: (plain(x), ours(x), other(x)))(x))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients(shape, sparse, dtype):
    with jax.enable_x64(True):
        features = cast(features_of(*shape, sparse), dtype)
        x = np.random.default_rng(1).standard_normal((6, shape[0], shape[2])).astype(dtype)
        wanted, many, one = together(features, x, lambda x: features.logistic_gradient(x[0]))
    np.testing.assert_allclose(many, wanted, rtol=0, atol=TOLERANCE[dtype] * np.abs(wanted).max())
    np.testing.assert_array_equal(many[0], one)  # few are done one by one


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_for_many_settings(shape, dtype):
    with jax.enable_x64(True):
        features = cast(features_of(*shape, sparse=False), dtype)
        x = np.random.default_rng(1).standard_normal((41, shape[0], shape[2])).astype(dtype)
        wanted, many, some = together(features, x, lambda x: jax.vmap(features.logistic_gradient)(x[30:]))
    np.testing.assert_allclose(many, wanted, rtol=0, atol=TOLERANCE[dtype] * np.abs(wanted).max())
    np.testing.assert_array_equal(many[30:], some)  # what a member gets does not depend on the others


@pytest.mark.parametrize("sparse", [False, True])
def test_large_margins_neither_overflow_nor_lose_their_sign(sparse):
    with jax.enable_x64(True):
        features = cast(features_of(3, 20, 4, sparse, scale=1.0), "float64")
        for size in (1e3, 1e6, 1e300):
            x = jnp.full((3, 4), size)
            np.testing.assert_allclose(features.logistic_gradient(x), pure(features, x), rtol=1e-12, atol=1e-280)


@pytest.mark.parametrize("sparse", [False, True])
def test_not_a_number_stays_one(sparse):
    with jax.enable_x64(True):
        features = cast(features_of(3, 20, 4, sparse), "float64")
        x = jnp.zeros((3, 4)).at[1].set(jnp.nan)
        result = np.asarray(features.logistic_gradient(x))
    assert np.isnan(result[1]).any()
    assert np.isfinite(result[[0, 2]]).all()


@pytest.mark.parametrize("dim", [1, 7, 8, 20, 130])
def test_gossip_is_a_product_with_the_matrix(dim):
    import adom
    from adom.run.local.graph_layout import GraphLayout

    network = adom.networks.erdos_renyi(60, 0.1, graphs=3, seed=2)
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        graphs = jax.device_put(GraphLayout(network, directed=False).window(0)[0])
        v = jnp.asarray(rng.standard_normal((4, 60, dim)))
        times = jax.jit(lambda g, v: jax.vmap(lambda v: graphs.W.times(g, (v,))[0])(v))
        for g in range(3):
            result = times(np.int32(g), v)
            np.testing.assert_allclose(result, network.matrix(g) @ np.asarray(v), rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (100, 40), (4096, 2), (9001, 7)])
def test_distances(shape, dtype):
    rng = np.random.default_rng(0)
    solution = rng.standard_normal((3, shape[1]))
    distances, of_one = jax.jit(jax.vmap(native.distances)), jax.jit(native.distances)
    for size in (1.0, 1e-5, 1e-14):  # also where the rows nearly agree, and nearly are the solution
        rows = (solution[:, None] + size * rng.standard_normal((3, *shape))).astype(dtype)
        exact = rows.astype(np.longdouble)
        error = ((exact - solution[:, None]) ** 2).sum(axis=(1, 2))
        exact -= exact[:, :1]  # so that the mean is not rounded
        apart = ((exact - exact.mean(axis=1, keepdims=True)) ** 2).sum(axis=(1, 2))
        with jax.enable_x64(True):
            many, one = np.asarray(distances(rows, solution)), np.asarray(of_one(rows[1], solution[1]))
        np.testing.assert_allclose(many[:, 0], error.astype(float), rtol=1e-12)
        np.testing.assert_allclose(many[:, 1], apart.astype(float), rtol=1e-12)
        np.testing.assert_array_equal(many[1], one)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_distances_of_rows_that_are_no_numbers_are_none(value):
    with jax.enable_x64(True):
        rows = jnp.zeros((30, 4)).at[20, 1].set(value)
        assert not np.isfinite(native.distances(rows, jnp.zeros(4))).any()


def test_numbers_of_another_type_are_refused():
    with jax.enable_x64(True):
        features = cast(features_of(2, 3, 2, sparse=False), "float64")
        x = jnp.zeros((2, 2), dtype="float32")
        with pytest.raises(Exception, match="numbers of another type"):
            native.logistic_dense(features.for_kernel(), x).block_until_ready()
