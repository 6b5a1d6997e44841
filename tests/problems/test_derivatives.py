"""Values, gradients, Hessians, means over nodes and blocks of every problem agree with each other."""

from functools import cache, partial

import jax
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


def compiled(function):
    """Return the function as one program, as in a run, that gives arrays of NumPy."""
    program = jax.jit(function)
    return lambda *given: np.asarray(program(*given))


class Rows:
    """A problem, and its functions of rows, all of which one program computes."""

    def __init__(self, problem):
        self.problem = problem
        self._all = jax.jit(
            lambda x, v: (
                problem.value_rows(x), problem.gradient_rows(x), problem.hessian_rows(x),
                problem.hessian_product_rows(x, v),
            )
        )  # fmt: skip
        self.value, self.gradient, self.hessian, self.product = (partial(self._part, number) for number in range(4))

    def _part(self, number, x, v=None):
        return np.asarray(self._all(x, x if v is None else v)[number])


made = cache(lambda name: Rows(PROBLEMS[name]()))


@pytest.mark.parametrize("name", PROBLEMS)
def test_each_is_the_derivative_of_the_one_before(name):
    rows, rng, step = made(name), np.random.default_rng(2), 1e-6
    problem, value, gradient = rows.problem, rows.value, rows.gradient
    x, v = rng.standard_normal((2, problem.nodes, problem.dim))
    slope = (value(x + step * v) - value(x - step * v)) / (2 * step)
    np.testing.assert_allclose((gradient(x) * v).sum(axis=1), slope, rtol=1e-6, atol=1e-8)
    product = rows.product(x, v)
    change = (gradient(x + step * v) - gradient(x - step * v)) / (2 * step)
    np.testing.assert_allclose(product, change, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(np.einsum("nde,ne->nd", rows.hessian(x), v), product, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(problem.hessians_at(x), rows.hessian(x), rtol=1e-12, atol=1e-14)
    answer = compiled(lambda z, start: problem.exact_dual_gradient_rows(z, start)[0])(v, x)
    np.testing.assert_allclose(gradient(answer), v, atol=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
def test_means_and_blocks_are_those_of_the_rows(name):
    of = made(name)
    problem, value, gradient = of.problem, of.value, of.gradient
    x, v = np.random.default_rng(3).standard_normal((2, problem.dim))
    rows = np.tile(x, (problem.nodes, 1))
    hessian = of.hessian(rows).mean(axis=0)
    product, diagonal = problem.mean_hessian_product(x)
    close = {"rtol": 1e-12, "atol": 1e-14}
    np.testing.assert_allclose(problem.mean_gradient(x), gradient(rows).mean(axis=0), **close)
    np.testing.assert_allclose(problem.mean_hessian(x), hessian, **close)
    np.testing.assert_allclose(product(v), hessian @ v, **close)
    if diagonal is not None:
        np.testing.assert_allclose(diagonal, np.diag(hessian), **close)
    assert problem.objective(x) == pytest.approx(float(value(rows).sum()), rel=1e-13)
    block, apart = problem.block(1, 3), np.random.default_rng(4).standard_normal(rows.shape)
    assert (block.nodes, block.mu, block.L) == (2, problem.mu, problem.L)
    values, gradients = jax.jit(lambda x: (block.value_rows(x), block.gradient_rows(x)))(apart[1:])
    np.testing.assert_allclose(gradients, gradient(apart)[1:], **close)
    np.testing.assert_allclose(values, value(apart)[1:], **close)


@pytest.mark.parametrize("make", [logistic, softmax, squares])
def test_sparse_and_filled_layouts_compute_the_same(make):
    one = made(make.__name__)
    dense = one.problem
    x, v = np.random.default_rng(5).standard_normal((2, 3, dense.dim))
    for two in (made(f"{make.__name__} sparse"), Rows(make(longest=16))):
        np.testing.assert_allclose(two.value(x), one.value(x), rtol=1e-12)
        np.testing.assert_allclose(two.gradient(x), one.gradient(x), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(two.product(x, v), one.product(x, v), rtol=1e-11, atol=1e-14)
        other = two.problem
        np.testing.assert_allclose(other.L_nodes, dense.L_nodes, rtol=1e-12)
        np.testing.assert_allclose(other.solution(), dense.solution(), atol=1e-13)
    for L, (A, _), w in zip(dense.L_nodes, *data(), strict=True):
        assert pytest.approx(dense.l2 + dense.loss.steepest * np.linalg.eigvalsh((A.T * w) @ A)[-1], rel=1e-12) == L
    sizes = sum(features.size for features, _ in data()[0])
    assert make(sp.csr_array).features.value.size == sizes  # only what was there


@pytest.mark.parametrize("name", PROBLEMS)
def test_constants_bound_the_curvature(name):
    rows, rng = made(name), np.random.default_rng(6)
    problem = rows.problem
    for size in (0.0, 0.3, 3.0, 30.0):
        x = size * rng.standard_normal((problem.nodes, problem.dim))
        eigenvalues = np.linalg.eigvalsh(rows.hessian(x))
        assert (eigenvalues[:, 0] >= problem.mu_nodes * (1 - 1e-12)).all()
        assert (eigenvalues[:, -1] <= problem.L_nodes * (1 + 1e-12)).all()
