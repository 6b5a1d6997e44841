import jax
import numpy as np
import pytest
import scipy.sparse as sp

import adom
from adom.errors import InputError
from adom.problems.shifted import Shifted
from adom.problems.squares import LeastSquares
from support.reference import logistic_data, quadratics

L2 = 0.3


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def samples(convert=np.asarray):
    rng = np.random.default_rng(0)
    data = [(convert(rng.standard_normal((m, 3))), rng.standard_normal(m)) for m in (5, 2, 4)]
    return data, [rng.uniform(0, 2, m) for m in (5, 2, 4)]


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("longest", [None, 8])
def test_least_squares_is_the_quadratic_of_its_samples(convert, longest):
    data, weights = samples()
    H = np.stack([(A.T * w) @ A + L2 * np.eye(3) for (A, _), w in zip(data, weights, strict=True)])
    c = np.stack([A.T @ (w * b) for (A, b), w in zip(data, weights, strict=True)])
    quadratic = adom.Quadratic(H, c)
    ours = LeastSquares(samples(convert)[0], l2=L2, weights=weights, longest=longest)
    x, v = np.random.default_rng(1).standard_normal((2, 3, 3))
    np.testing.assert_allclose(ours.gradient_rows(x), quadratic.gradient_rows(x), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(ours.hessian_product_rows(x, v), quadratic.hessian_product_rows(x, v), rtol=1e-12)
    np.testing.assert_allclose(ours.hessian_rows(x), H, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(ours.solution(), quadratic.solution(), rtol=1e-10)
    np.testing.assert_allclose(ours.L_nodes, quadratic.L_nodes, rtol=1e-12)
    assert ours.mu == L2
    by_hand = [(w * (A @ y - b) ** 2).sum() / 2 + L2 / 2 * y @ y for (A, b), w, y in zip(data, weights, x, strict=True)]
    np.testing.assert_allclose(ours.value_rows(x), by_hand, rtol=1e-12)
    np.testing.assert_allclose(ours.block(1, 3).gradient_rows(x[1:]), np.asarray(ours.gradient_rows(x))[1:], rtol=1e-12)


def test_least_squares_weighs_samples_evenly_by_default():
    data, _ = samples()
    even = LeastSquares(data, l2=L2, weights=[np.full(b.size, 1 / b.size) for _, b in data])
    np.testing.assert_allclose(LeastSquares(data, l2=L2).solution(), even.solution(), rtol=1e-12)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (["a", "b"], "targets must be real numbers"),
        ([1.0, np.nan], r"node 0's labels\[1\] is nan"),
        ([1.0], "one label for every"),
    ],
)
def test_bad_targets_are_refused(targets, message):
    with pytest.raises(InputError, match=message):
        LeastSquares([(np.eye(2), targets)], l2=L2)


def problems():
    H, c = quadratics(4, 3, 20.0)
    A, b = logistic_data(4, 6, 3)
    logistic = adom.LogisticRegression(A.reshape(-1, 3), b.ravel(), nodes=4, l2=0.1)
    return {"quadratic": adom.Quadratic(H, c), "logistic": logistic}


@pytest.mark.parametrize("name", ["quadratic", "logistic"])
def test_moved_is_the_problem_in_other_coordinates(name):
    inner, rng = problems()[name], np.random.default_rng(3)
    centre, (tilt, u, v) = rng.standard_normal(3), rng.standard_normal((3, 4, 3))
    moved = Shifted(inner, centre, tilt)
    np.testing.assert_allclose(
        moved.value_rows(u), np.asarray(inner.value_rows(centre + u)) - (tilt * u).sum(axis=1), rtol=1e-12
    )
    np.testing.assert_allclose(moved.gradient_rows(u), np.asarray(inner.gradient_rows(centre + u)) - tilt, atol=1e-14)
    np.testing.assert_allclose(
        moved.hessian_product_rows(u, v), inner.hessian_product_rows(centre + u, v), rtol=1e-12, atol=1e-15
    )
    np.testing.assert_allclose(moved.hessian_rows(u), inner.hessian_rows(centre + u), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(moved.mean_hessian(u[0]), inner.mean_hessian(centre + u[0]), rtol=1e-12, atol=1e-15)
    answer, _ = moved.exact_dual_gradient_rows(v, u)
    np.testing.assert_allclose(moved.gradient_rows(answer), v, atol=1e-12)
    assert (moved.mu, moved.L) == (inner.mu, inner.L)
    np.testing.assert_allclose(
        moved.block(1, 3).gradient_rows(u[1:3]), np.asarray(moved.gradient_rows(u))[1:3], atol=1e-14
    )


@pytest.mark.parametrize("name", ["quadratic", "logistic"])
def test_tilts_that_sum_to_zero_move_the_solution_by_the_centre_only(name):
    inner, rng = problems()[name], np.random.default_rng(4)
    centre, tilt = rng.standard_normal(3), rng.standard_normal((4, 3))
    moved = Shifted(inner, centre, tilt - tilt.mean(axis=0))
    np.testing.assert_allclose(moved.solution(), inner.solution() - centre, atol=1e-12)
    result = adom.solve(moved, adom.networks.ring(4), parameters="unit", oracle="exact", rounds=4000, tol=1e-20)
    np.testing.assert_allclose(result.x + centre, np.tile(inner.solution(), (4, 1)), atol=1e-9)


def test_a_shared_tilt_is_a_proximal_term():
    inner, centre = problems()["logistic"], np.array([0.5, -2.0, 1.0])
    free = np.array([0.0, 0.0, 1.0])
    u = Shifted(inner, centre, np.tile(inner.l2 * free * centre, (4, 1))).solution()
    gradient = np.asarray(inner.gradient_rows(np.tile(centre + u, (4, 1)))).mean(axis=0)
    without_penalty = gradient - inner.l2 * free * (centre + u)
    np.testing.assert_allclose(without_penalty, -inner.l2 * free * u, atol=1e-14)


def test_a_known_solution_is_taken():
    inner = problems()["quadratic"]
    assert Shifted(inner, np.zeros(3), np.zeros((4, 3)), [1.0, 2.0, 3.0]).solution().tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("centre", "tilt", "message"),
    [
        (np.zeros(2), np.zeros((4, 3)), r"shapes \(3,\) and \(4, 3\) to match the problem, got \(2,\) and \(4, 3\)"),
        (np.zeros(3), np.zeros((3, 3)), r"got \(3,\) and \(3, 3\)"),
        (np.array([0.0, np.nan, 0.0]), np.zeros((4, 3)), r"centre\[1\] is nan"),
    ],
)
def test_what_does_not_fit_is_refused(centre, tilt, message):
    with pytest.raises(InputError, match=message):
        Shifted(problems()["quadratic"], centre, tilt)
