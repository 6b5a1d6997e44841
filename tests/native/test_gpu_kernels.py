"""The kernels of a GPU against the same sums in NumPy; left out where there is none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import adom
from adom import native
from adom.run.local.gossip import DenseMatrices

pytestmark = pytest.mark.skipif(not native.usable("gpu"), reason="no GPU here, or no compiler for it")

SHAPES = [(1, 1, 1), (100, 100, 40), (3, 300, 20), (3, 70, 300), (40, 130, 64), (1000, 10, 20), (700, 9, 5)]
TOLERANCE = {"float64": 1e-13, "float32": 1e-5}


def gradient(signed, weights, x):
    with np.errstate(over="ignore"):
        slopes = -weights / (1 + np.exp(np.einsum("nmd,nd->nm", signed, x)))
    return np.einsum("nm,nmd->nd", slopes, signed)


def samples(n, m, d):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, m, d)), rng.random((n, m)) / m, rng.standard_normal((n, 67, d))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_of_one_setting(shape, dtype):
    signed, weights, x = samples(*shape)
    wanted = gradient(signed, weights, x[:, 0])
    with jax.enable_x64(True):
        found = native.logistic_dense([jnp.asarray(a, dtype) for a in (signed, weights)], jnp.asarray(x[:, 0], dtype))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE[dtype] * np.abs(wanted).max())


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[2] <= native.GPU_FEW_COLUMNS])
def test_gradients_of_many_settings(shape):
    signed, weights, x = samples(*shape)
    wanted = np.stack([gradient(signed, weights, x[:, k]) for k in range(x.shape[1])], axis=1)
    with jax.enable_x64(True):
        many = np.asarray(native.logistic_many(signed, weights, x))
        some = np.asarray(native.logistic_many(signed, weights, x[:, 50:]))
    np.testing.assert_allclose(many, wanted, rtol=0, atol=1e-13 * np.abs(wanted).max())
    np.testing.assert_array_equal(many[:, 50:], some)  # what a setting gets does not depend on the others


@pytest.mark.parametrize("size", [1e3, 1e300, np.nan])
def test_margins_beyond_all_numbers(size):
    signed, weights, _ = samples(3, 20, 4)
    x = np.zeros((3, 4))
    x[1] = size
    with jax.enable_x64(True):
        found = [native.logistic_dense((signed, weights), x), native.logistic_many(signed, weights, x[:, None])[:, 0]]
    for one in found:
        np.testing.assert_allclose(one, gradient(signed, weights, x), rtol=1e-12, atol=1e-280)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("nodes", "dim"), [(2, 3), (60, 1), (60, 7), (100, 40), (250, 130)])
def test_products_of_one_and_of_many_settings(nodes, dim, dtype):
    rng = np.random.default_rng(0)
    network = adom.networks.erdos_renyi(nodes, 0.1, graphs=2, seed=2) if nodes > 2 else adom.networks.complete(2)
    matrices = np.stack([network.matrix(g) for g in range(2)]) + np.eye(network.nodes)
    v = rng.standard_normal((3, 20, network.nodes, dim))
    with jax.enable_x64(True):
        dense = DenseMatrices(*(jnp.asarray(a, dtype) for a in (matrices, np.ones(matrices.shape[:2]))))
        product = jax.jit(lambda *v: dense.times(jnp.int32(1), v))
        one = product(*jnp.asarray(v[:, 0], dtype))
        with jax.default_matmul_precision("highest"):
            many = jax.vmap(product)(*jnp.asarray(v, dtype))
    np.testing.assert_allclose(one, matrices[1] @ v[:, 0], rtol=0, atol=20 * TOLERANCE[dtype])
    np.testing.assert_allclose(many, matrices[1] @ v, rtol=0, atol=20 * TOLERANCE[dtype])
