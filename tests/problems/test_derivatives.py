"""Values, gradients, Hessians, means over nodes and blocks of every problem agree with each other."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import adom
from adom.problems.shifted import Shifted
from support.reference import logistic_data, quadratics

pytestmark = pytest.mark.usefixtures("double")
COUNTS = (7, 4, 2)


def data(convert=np.asarray, classes=2):
    """Uneven nodes, the last of which lacks classes; weights of every size, also 0."""
    rng = np.random.default_rng(0)
    labels = [rng.permutation(np.arange(m) % classes) for m in COUNTS]
    weights = [rng.uniform(0, 2, m) for m in COUNTS]
    weights[0][2] = 0.0
    return [(convert(rng.standard_normal((b.size, 3))), b) for b in labels], weights


def logistic(convert=np.asarray, **more):
    samples, weights = data(convert)
    return adom.LogisticRegression.from_nodes(samples, l2=0.3, weights=weights, **more)


def softmax(convert=np.asarray, **more):
    samples, weights = data(convert, classes=3)
    return adom.SoftmaxRegression(samples, classes=3, l2=0.2, weights=weights, **more)


def squares(convert=np.asarray, **more):
    samples, weights = data(convert, classes=5)
    return adom.LeastSquares(samples, l2=0.3, weights=weights, **more)


def even():
    A, b = logistic_data(3, 8, 3)
    return adom.LogisticRegression(A.reshape(-1, 3), b.ravel(), nodes=3, kappa=20.0)


def from_loss():
    def loss(x, node):
        features, signs = node
        return jnp.logaddexp(0.0, -signs * (features @ x)).mean() + 0.05 * (x * x).sum()

    return adom.from_loss(loss, logistic_data(3, 6, 3), mu=0.1, L=100.0)


def shifted():
    centre, tilt = np.arange(3.0), np.random.default_rng(1).standard_normal((3, 3))
    return Shifted(logistic(), centre, tilt)


PROBLEMS = {
    "logistic": logistic,
    "logistic even": even,
    "logistic sparse": lambda: logistic(sp.csr_array),
    "softmax": softmax,
    "softmax sparse": lambda: softmax(sp.csr_array),
    "squares": squares,
    "squares sparse": lambda: squares(sp.csr_array),
    "quadratic": lambda: adom.Quadratic(*quadratics(3, 4, 20.0)),
    "loss": from_loss,
    "shifted": shifted,
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_each_is_the_derivative_of_the_one_before(name):
    problem, rng, step = PROBLEMS[name](), np.random.default_rng(2), 1e-6
    x, v = rng.standard_normal((2, problem.nodes, problem.dim))
    value, gradient = (
        (lambda at: np.asarray(problem.value_rows(at))),
        (lambda at: np.asarray(problem.gradient_rows(at))),
    )
    slope = (value(x + step * v) - value(x - step * v)) / (2 * step)
    np.testing.assert_allclose((gradient(x) * v).sum(axis=1), slope, rtol=1e-6, atol=1e-8)
    product = np.asarray(problem.hessian_product_rows(x, v))
    change = (gradient(x + step * v) - gradient(x - step * v)) / (2 * step)
    np.testing.assert_allclose(product, change, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(np.einsum("nde,ne->nd", problem.hessian_rows(x), v), product, rtol=1e-12, atol=1e-14)
    answer, _ = problem.exact_dual_gradient_rows(v, x)
    np.testing.assert_allclose(problem.gradient_rows(answer), v, atol=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
def test_means_and_blocks_are_those_of_the_rows(name):
    problem = PROBLEMS[name]()
    x, v = np.random.default_rng(3).standard_normal((2, problem.dim))
    rows = np.tile(x, (problem.nodes, 1))
    hessian = np.asarray(problem.hessian_rows(rows)).mean(axis=0)
    product, diagonal = problem.mean_hessian_product(x)
    close = {"rtol": 1e-12, "atol": 1e-14}
    np.testing.assert_allclose(problem.mean_gradient(x), np.asarray(problem.gradient_rows(rows)).mean(axis=0), **close)
    np.testing.assert_allclose(problem.mean_hessian(x), hessian, **close)
    np.testing.assert_allclose(product(v), hessian @ v, **close)
    if diagonal is not None:
        np.testing.assert_allclose(diagonal, np.diag(hessian), **close)
    assert problem.objective(x) == pytest.approx(float(np.asarray(problem.value_rows(rows)).sum()), rel=1e-13)
    block, apart = problem.block(1, 3), np.random.default_rng(4).standard_normal(rows.shape)
    assert (block.nodes, block.mu, block.L) == (2, problem.mu, problem.L)
    np.testing.assert_allclose(block.gradient_rows(apart[1:]), np.asarray(problem.gradient_rows(apart))[1:], **close)
    np.testing.assert_allclose(block.value_rows(apart[1:]), np.asarray(problem.value_rows(apart))[1:], **close)


@pytest.mark.parametrize("make", [logistic, softmax, squares])
def test_sparse_and_filled_layouts_compute_the_same(make):
    dense = make()
    x, v = np.random.default_rng(5).standard_normal((2, 3, dense.dim))
    for other in (make(sp.csr_array), make(longest=16)):
        np.testing.assert_allclose(other.value_rows(x), dense.value_rows(x), rtol=1e-12)
        np.testing.assert_allclose(other.gradient_rows(x), dense.gradient_rows(x), rtol=1e-12, atol=1e-15)
        product = dense.hessian_product_rows(x, v)
        np.testing.assert_allclose(other.hessian_product_rows(x, v), product, rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(other.L_nodes, dense.L_nodes, rtol=1e-12)
        np.testing.assert_allclose(other.solution(), dense.solution(), atol=1e-13)
    for L, (A, _), w in zip(dense.L_nodes, *data(), strict=True):
        assert pytest.approx(dense.l2 + dense.steepest * np.linalg.eigvalsh((A.T * w) @ A)[-1], rel=1e-12) == L
    sizes = sum(features.size for features, _ in data()[0])
    assert make(sp.csr_array).features.value.size == sizes  # only what was there


@pytest.mark.parametrize("name", PROBLEMS)
def test_constants_bound_the_curvature(name):
    problem, rng = PROBLEMS[name](), np.random.default_rng(6)
    for size in (0.0, 0.3, 3.0, 30.0):
        x = size * rng.standard_normal((problem.nodes, problem.dim))
        eigenvalues = np.linalg.eigvalsh(problem.hessian_rows(x))
        assert (eigenvalues[:, 0] >= problem.mu_nodes * (1 - 1e-12)).all()
        assert (eigenvalues[:, -1] <= problem.L_nodes * (1 + 1e-12)).all()
