"""Softmax, least squares, quadratics, losses and shifted problems against their formulas."""

import jax.numpy as jnp
import numpy as np
import pytest

import adom
from adom.problems.linear_model import LeastSquares, SoftmaxRegression
from adom.problems.shifted import Shifted
from support import default_xla
from support.reference import logistic_data, quadratics

pytestmark = pytest.mark.usefixtures("double")


def three_classes():
    """Uneven nodes of three classes, the last of which lacks two of them; weights of every size, also 0."""
    rng = np.random.default_rng(0)
    labels = [np.array([0, 1, 2, 1, 0, 2, 2]), np.array([2, 0, 1, 1]), np.array([1, 1])]
    data = [(rng.standard_normal((b.size, 2)), b) for b in labels]
    weights = [rng.uniform(0, 2, b.size) for b in labels]
    weights[0][2] = 0.0
    return data, weights


def softmax_problem():
    data, weights = three_classes()
    return SoftmaxRegression(data, classes=3, l2=0.2, weights=weights), data, weights


def loss(x, A, b, w):
    """f_i by the formula, class by class."""
    X = x.reshape(3, -1)
    total = 0.0
    for a, label, weight in zip(A, b, w, strict=True):
        total += weight * (np.log(sum(np.exp(a @ X[k]) for k in range(3))) - a @ X[label])
    return total + 0.2 / 2 * x @ x


def test_softmax_has_the_value_of_its_formula():
    ours, data, weights = softmax_problem()
    x = np.random.default_rng(1).standard_normal((3, 6))
    np.testing.assert_allclose(ours.value_rows(x), [loss(x[i], *data[i], weights[i]) for i in range(3)], rtol=1e-12)


def test_constants_of_softmax_are_attained():
    ours, data, weights = softmax_problem()
    for i, (A, _) in enumerate(data):
        assert ours.L_nodes[i] == pytest.approx(np.linalg.eigvalsh((A.T * weights[i]) @ A)[-1] / 2 + 0.2, rel=1e-12)
    # Half the largest eigenvalue is attained where two classes share all of the probability.
    alone = SoftmaxRegression([([[2.0]], [0])], classes=3, l2=0.2)
    tied = np.array([[0.0, 0.0, -50.0]])
    assert np.linalg.eigvalsh(alone.hessian_rows(tied))[0, -1] == pytest.approx(alone.L, rel=1e-9)


def test_two_classes_are_logistic_regression():
    data, weights = three_classes()
    two = [(A, (b > 0).astype(int)) for A, b in data]
    softmax = SoftmaxRegression(two, classes=2, l2=0.2, weights=weights)
    # x_1 = -x_0 = x / 2 at the solution, where the penalty is that of half the regulariser on x.
    logistic = adom.LogisticRegression.from_nodes(two, l2=0.2 / 2, weights=weights, classes=(0, 1))
    np.testing.assert_allclose(softmax.solution()[2:] - softmax.solution()[:2], logistic.solution(), atol=1e-13)
    np.testing.assert_allclose(softmax.solution()[2:], -softmax.solution()[:2], atol=1e-13)


def test_huge_margins_of_softmax_are_safe():
    ours, _, _ = softmax_problem()
    x = 1e4 * np.random.default_rng(5).standard_normal((3, 6))
    assert np.isfinite(ours.value_rows(x)).all()
    assert np.isfinite(ours.gradient_rows(x)).all()
    assert np.isfinite(ours.hessian_product_rows(x, x)).all()


def samples():
    rng = np.random.default_rng(0)
    data = [(rng.standard_normal((m, 3)), rng.standard_normal(m)) for m in (5, 2, 4)]
    return data, [rng.uniform(0, 2, m) for m in (5, 2, 4)]


def test_least_squares_is_the_quadratic_of_its_samples():
    data, weights = samples()
    H = np.stack([(A.T * w) @ A + 0.3 * np.eye(3) for (A, _), w in zip(data, weights, strict=True)])
    c = np.stack([A.T @ (w * b) for (A, b), w in zip(data, weights, strict=True)])
    quadratic, ours = adom.Quadratic(H, c), LeastSquares(data, l2=0.3, weights=weights)
    x = np.random.default_rng(1).standard_normal((3, 3))
    constant = [(w * b**2).sum() / 2 for (_, b), w in zip(data, weights, strict=True)]
    np.testing.assert_allclose(ours.value_rows(x), np.asarray(quadratic.value_rows(x)) + constant, rtol=1e-12)
    np.testing.assert_allclose(ours.gradient_rows(x), quadratic.gradient_rows(x), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(ours.solution(), quadratic.solution(), rtol=1e-10)
    np.testing.assert_allclose(ours.L_nodes, quadratic.L_nodes, rtol=1e-12)
    assert ours.mu == 0.3


def test_least_squares_weighs_samples_evenly_by_default():
    data, _ = samples()
    even = LeastSquares(data, l2=0.3, weights=[np.full(b.size, 1 / b.size) for _, b in data])
    np.testing.assert_allclose(LeastSquares(data, l2=0.3).solution(), even.solution(), rtol=1e-12)


def problems():
    H, c = quadratics(4, 3, 20.0)
    A, b = logistic_data(4, 6, 3)
    logistic = adom.LogisticRegression(A.reshape(-1, 3), b.ravel(), nodes=4, l2=0.1)
    return {"quadratic": adom.Quadratic(H, c), "logistic": logistic}


@pytest.mark.parametrize("name", ["quadratic", "logistic"])
def test_shifted_is_the_problem_in_other_coordinates(name):
    inner, rng = problems()[name], np.random.default_rng(3)
    centre, (tilt, u) = rng.standard_normal(3), rng.standard_normal((2, 4, 3))
    shifted = Shifted(inner, centre, tilt)
    value = np.asarray(inner.value_rows(centre + u)) - (tilt * u).sum(axis=1)
    np.testing.assert_allclose(shifted.value_rows(u), value, rtol=1e-12)
    np.testing.assert_allclose(shifted.gradient_rows(u), np.asarray(inner.gradient_rows(centre + u)) - tilt, atol=1e-14)
    assert (shifted.mu, shifted.L, shifted.closed_form) == (inner.mu, inner.L, inner.closed_form)


@pytest.mark.parametrize("name", ["quadratic", "logistic"])
def test_tilts_that_sum_to_zero_move_the_solution_by_the_centre_only(name):
    inner, rng = problems()[name], np.random.default_rng(4)
    centre, tilt = rng.standard_normal(3), rng.standard_normal((4, 3))
    shifted = Shifted(inner, centre, tilt - tilt.mean(axis=0))
    np.testing.assert_allclose(shifted.solution(), inner.solution() - centre, atol=1e-12)
    result = adom.solve(shifted, adom.networks.ring(4), parameters="unit", oracle="exact", rounds=4000, tol=1e-20)
    np.testing.assert_allclose(result.x + centre, np.tile(inner.solution(), (4, 1)), atol=1e-9)


def test_a_shared_tilt_is_a_proximal_term():
    inner, centre = problems()["logistic"], np.array([0.5, -2.0, 1.0])
    free = np.array([0.0, 0.0, 1.0])
    u = Shifted(inner, centre, np.tile(inner.l2 * free * centre, (4, 1))).solution()
    gradient = np.asarray(inner.gradient_rows(np.tile(centre + u, (4, 1)))).mean(axis=0)
    without_penalty = gradient - inner.l2 * free * (centre + u)
    np.testing.assert_allclose(without_penalty, -inner.l2 * free * u, atol=1e-14)


def test_shifted_passes_on_what_depends_on_the_data():
    data, weights = samples()
    inner = LeastSquares(data, l2=0.3, weights=weights)
    shifted = Shifted(inner, np.ones(3), np.zeros((3, 3)))
    same_draw = (problem.rounding(np.random.default_rng(0)) for problem in (shifted, inner))
    np.testing.assert_array_equal(*same_draw)
    assert np.any(inner.rounding(np.random.default_rng(0)))
    assert shifted.weighting() == inner.weighting() == {"fewest": 2, "most": 5, "alike": "neither"}


def test_a_known_solution_is_taken():
    inner = problems()["quadratic"]
    assert Shifted(inner, np.zeros(3), np.zeros((4, 3)), [1.0, 2.0, 3.0]).solution().tolist() == [1.0, 2.0, 3.0]


def test_quadratic_matches_its_formulas():
    H, c = quadratics(4, 3, 50.0)
    ours = adom.Quadratic(H, c)
    x = np.random.default_rng(0).standard_normal((4, 3))
    np.testing.assert_allclose(ours.value_rows(x), [x[i] @ H[i] @ x[i] / 2 - c[i] @ x[i] for i in range(4)], rtol=1e-12)
    np.testing.assert_allclose(ours.gradient_rows(x), [H[i] @ x[i] - c[i] for i in range(4)], rtol=1e-12)
    assert (ours.mu, ours.L) == pytest.approx((1.0, 50.0))
    np.testing.assert_allclose(ours.mu_nodes, np.linalg.eigvalsh(H)[:, 0])
    np.testing.assert_allclose(H.sum(axis=0) @ ours.solution(), c.sum(axis=0), rtol=1e-12)


def logistic_loss(x, node):
    A, b = node
    return jnp.logaddexp(0.0, -b * (A @ x)).mean() + 0.05 * (x * x).sum()


def test_from_loss_agrees_with_the_built_in_problem():
    A, b = logistic_data(4, 6, 3)
    built_in = adom.LogisticRegression(A.reshape(-1, 3), b.ravel(), nodes=4, l2=0.1)
    ours = adom.from_loss(logistic_loss, (A, b), mu=0.1, L=built_in.L_nodes)
    assert (ours.nodes, ours.dim) == (4, 3)  # the length of x is read off the data
    x = np.random.default_rng(0).standard_normal((4, 3))
    np.testing.assert_allclose(ours.gradient_rows(x), built_in.gradient_rows(x), rtol=1e-12)
    np.testing.assert_allclose(ours.solution(), built_in.solution(), atol=1e-13)
    network = adom.networks.ring(4)
    a = adom.solve(ours, network, parameters="theory", oracle=("gd", 2), rounds=100)
    b = adom.solve(built_in, network, parameters="theory", oracle=("gd", 2), rounds=100)
    np.testing.assert_allclose(a.history["error"], b.history["error"], rtol=1e-9)


def test_blocks_of_a_loss_have_the_same_bits_whatever_their_size():
    A, b = logistic_data(7, 40, 13)
    problem = adom.from_loss(logistic_loss, (A, b), mu=0.1, L=100.0)
    x = np.random.default_rng(0).standard_normal((7, 13))
    whole = np.asarray(default_xla.jit(problem.block(0, 7).gradient_rows)(x))
    for first, end in ((0, 1), (2, 5), (5, 7)):
        block = problem.block(first, end)
        assert block.one_by_one  # other ways may happen to round alike
        np.testing.assert_array_equal(default_xla.jit(block.gradient_rows)(x[first:end]), whole[first:end])
