import jax
import numpy as np
import pytest
import scipy.sparse as sp

import adom
from adom.errors import InputError
from adom.problems.softmax import SoftmaxRegression

L2 = 0.2


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def nodes(convert=np.asarray):
    """Uneven nodes of three classes, the last of which lacks two of them; weights of every size, also 0."""
    rng = np.random.default_rng(0)
    labels = [np.array([0, 1, 2, 1, 0, 2, 2]), np.array([2, 0, 1, 1]), np.array([1, 1])]
    data = [(convert(rng.standard_normal((b.size, 2))), b) for b in labels]
    weights = [rng.uniform(0, 2, b.size) for b in labels]
    weights[0][2] = 0.0
    return data, weights


def made(convert=np.asarray, **more):
    data, weights = nodes(convert)
    return SoftmaxRegression(data, classes=3, l2=L2, weights=weights, **more), data, weights


def loss(x, A, b, w):
    """f_i by the formula, class by class."""
    X = x.reshape(3, -1)
    total = 0.0
    for a, label, weight in zip(A, b, w, strict=True):
        total += weight * (np.log(sum(np.exp(a @ X[k]) for k in range(3))) - a @ X[label])
    return total + L2 / 2 * x @ x


def test_value_and_gradient_match_the_formula():
    ours, data, weights = made()
    x = np.random.default_rng(1).standard_normal((3, 6))
    np.testing.assert_allclose(ours.value_rows(x), [loss(x[i], *data[i], weights[i]) for i in range(3)], rtol=1e-12)
    step = 1e-6
    numeric = [
        [(loss(x[i] + step * e, *data[i], weights[i]) - loss(x[i] - step * e, *data[i], weights[i])) / (2 * step)
         for e in np.eye(6)] for i in range(3)
    ]  # fmt: skip
    np.testing.assert_allclose(ours.gradient_rows(x), numeric, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_hessian_is_the_derivative_of_the_gradient(convert):
    ours, _, _ = made(convert)
    x, v = np.random.default_rng(2).standard_normal((2, 3, 6))
    step = 1e-6
    numeric = (np.asarray(ours.gradient_rows(x + step * v)) - np.asarray(ours.gradient_rows(x - step * v))) / (2 * step)
    product = np.asarray(ours.hessian_product_rows(x, v))
    np.testing.assert_allclose(product, numeric, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(np.einsum("nde,ne->nd", ours.hessian_rows(x), v), product, rtol=1e-12, atol=1e-14)
    common = np.asarray(ours.hessian_rows(np.tile(x[0], (3, 1)))).mean(axis=0)
    np.testing.assert_allclose(ours.mean_hessian(x[0]), common, rtol=1e-12, atol=1e-14)


def test_sparse_filled_and_blocked_layouts_compute_the_same():
    dense, _, _ = made()
    x = np.random.default_rng(3).standard_normal((3, 6))
    for other in (made(sp.csr_array)[0], made(longest=16)[0]):
        np.testing.assert_allclose(other.gradient_rows(x), dense.gradient_rows(x), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(other.value_rows(x), dense.value_rows(x), rtol=1e-12)
        np.testing.assert_allclose(other.L_nodes, dense.L_nodes, rtol=1e-12)
        block = other.block(1, 3)
        np.testing.assert_allclose(block.gradient_rows(x[1:]), np.asarray(dense.gradient_rows(x))[1:], rtol=1e-12)
        assert (block.nodes, block.L) == (2, other.L)


def test_constants_bound_the_curvature():
    ours, data, weights = made()
    for i, (A, _) in enumerate(data):
        assert ours.L_nodes[i] == pytest.approx(np.linalg.eigvalsh((A.T * weights[i]) @ A)[-1] / 2 + L2, rel=1e-12)
    rng = np.random.default_rng(4)
    for size in (0.0, 0.3, 3.0, 30.0):
        eigenvalues = np.linalg.eigvalsh(ours.hessian_rows(size * rng.standard_normal((3, 6))))
        assert (eigenvalues[:, 0] >= ours.mu_nodes * (1 - 1e-12)).all()
        assert (eigenvalues[:, -1] <= ours.L_nodes * (1 + 1e-12)).all()
    # Half the largest eigenvalue is attained where two classes share all of the probability.
    alone = SoftmaxRegression([([[2.0]], [0])], classes=3, l2=L2)
    tied = np.array([[0.0, 0.0, -50.0]])
    assert np.linalg.eigvalsh(alone.hessian_rows(tied))[0, -1] == pytest.approx(alone.L, rel=1e-9)


def test_two_classes_are_logistic_regression():
    data, weights = nodes()
    two = [(A, (b > 0).astype(int)) for A, b in data]
    softmax = SoftmaxRegression(two, classes=2, l2=L2, weights=weights)
    # x_1 = -x_0 = x / 2 at the solution, where the penalty is that of half the regulariser on x.
    logistic = adom.LogisticRegression.from_nodes(two, l2=L2 / 2, weights=weights, classes=(0, 1))
    np.testing.assert_allclose(softmax.solution()[2:] - softmax.solution()[:2], logistic.solution(), atol=1e-13)
    np.testing.assert_allclose(softmax.solution()[2:], -softmax.solution()[:2], atol=1e-13)


def test_huge_margins_are_safe():
    ours, _, _ = made()
    x = 1e4 * np.random.default_rng(5).standard_normal((3, 6))
    assert np.isfinite(ours.value_rows(x)).all()
    assert np.isfinite(ours.gradient_rows(x)).all()
    assert np.isfinite(ours.hessian_product_rows(x, x)).all()


def test_a_run_converges():
    ours, _, _ = made()
    result = adom.solve(ours, adom.networks.ring(3), "adom+", "theory", rounds=5000, tol=1e-16)
    assert result.status == "converged"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": 2}, r"labels must be whole numbers from 0 to 1, got .*2"),
        ({"classes": 1}, "classes must be a whole number of at least 2, got 1"),
        ({"classes": True}, "classes must be a whole number"),
        ({"l2": 0.0}, "l2 must be positive"),
        ({"longest": 6}, "longest must be a whole number of at least 7"),
        ({"weights": [np.ones(7)]}, "weights must be one array for each of the 3 nodes, got 1"),
        ({"weights": [np.ones(7), np.ones(3), np.ones(2)]}, "node 1 has 4 samples and its weights"),
        ({"weights": [np.ones(7), -np.ones(4), np.ones(2)]}, "finite numbers of at least 0"),
        ({"data": []}, "no nodes"),
        ({"data": [(np.eye(2), [0.0, 1.0])]}, "labels must be whole numbers from 0 to 2, got .*0.0"),
    ],
)
def test_bad_input_is_refused_in_one_line(change, message):
    data, weights = nodes()
    given = {"data": data, "classes": 3, "l2": L2, "weights": weights if "data" not in change else None} | change
    with pytest.raises(InputError, match=message) as caught:
        SoftmaxRegression(given.pop("data"), **given)
    assert "\n" not in str(caught.value)
