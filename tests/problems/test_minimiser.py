"""x* is the minimiser, to the precision that it claims: against answers in more than double precision."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import adom
from adom.problems import base, minimiser
from adom.problems.shifted import Shifted

Long = np.longdouble
KINDS = pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])


def data(samples: int, dim: int, spread: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return features whose columns fall off to 10^-spread, and noisy labels."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((samples, dim)) * np.logspace(0, -spread, dim)
    return A, np.where(A @ rng.standard_normal(dim) + rng.standard_normal(samples) > 0, 1.0, -1.0)


def nodes(A: np.ndarray, b: np.ndarray, kind: Any = np.asarray) -> list[tuple[Any, np.ndarray]]:
    """Return three nodes of equally many samples."""
    return [(kind(part), labels) for part, labels in zip(np.split(A, 3), np.split(b, 3), strict=True)]


def off_by(problem: Any, gradient: Any) -> float:
    """Return how far x* is off, by Newton steps with a gradient in extended precision."""
    x = problem.solution().astype(Long)
    hessian = problem.mean_hessian(problem.solution())
    for _ in range(3):
        x = x - np.linalg.solve(hessian, gradient(x).astype(np.float64))
    return float(np.linalg.norm(x - problem.solution()))


def assert_exact(problem: Any, gradient: Any, within: float) -> None:
    """Assert that x* is off by no more than it claims, and that it claims to be within this part of its length."""
    off, length = off_by(problem, gradient), np.linalg.norm(problem.solution())
    assert off <= problem.solution_error <= within * length


def logistic_gradient(A: np.ndarray, b: np.ndarray, l2: float) -> Any:
    rows = (A * b[:, None]).astype(Long)
    return lambda x: -(rows.T @ (1 / (1 + np.exp(rows @ x)))) / len(b) + Long(l2) * x


def squares_gradient(A: np.ndarray, y: np.ndarray, l2: float) -> Any:
    A, y = A.astype(Long), y.astype(Long)
    return lambda x: A.T @ (A @ x - y) / len(y) + Long(l2) * x


@pytest.mark.parametrize(("dim", "kappa"), [(250, 2.6e11), (300, 2.6e11), (300, 3e9)])
@KINDS
def test_logistic_regression_at_any_number_of_features(dim: int, kappa: float, kind: Any) -> None:
    A, b = data(600, dim)
    problem = adom.LogisticRegression(kind(A), b, nodes=3, kappa=kappa)
    assert_exact(problem, logistic_gradient(A, b, problem.l2), 1e-12)


def test_a_thousand_features_of_unlike_scales() -> None:
    A, b = data(1020, 1000, spread=3.0)
    problem = adom.LogisticRegression(A, b, nodes=3, kappa=1e12)
    assert_exact(problem, logistic_gradient(A, b, problem.l2), 1e-11)


@KINDS
def test_least_squares(kind: Any) -> None:
    A, b = data(900, 300, spread=3.0)
    problem = adom.LeastSquares(nodes(A, b, kind), l2=1e-12)
    assert_exact(problem, squares_gradient(A, b, 1e-12), 1e-12)
    penalised = np.concatenate([A / 30, 1e-6 * np.eye(300)]), np.concatenate([b / 30, np.zeros(300)])
    direct = np.linalg.lstsq(*penalised, rcond=None)[0]
    np.testing.assert_allclose(problem.solution(), direct, rtol=0, atol=1e-9 * np.linalg.norm(direct))


def test_quadratics_and_losses() -> None:
    A, b = data(900, 300, spread=2.0)
    H = np.stack([part.T @ part / 300 for part, _ in nodes(A, b)]) + 1e-9 * np.eye(300)
    c = np.random.default_rng(1).standard_normal((3, 300))
    exact = (H.astype(Long).mean(axis=0), c.astype(Long).mean(axis=0))
    assert_exact(adom.Quadratic(H, c), lambda x: exact[0] @ x - exact[1], 1e-11)

    def loss(x: Any, node: Any) -> Any:
        return 0.5 * ((node[0] @ x - node[1]) ** 2).mean() + 0.5e-9 * (x * x).sum()

    stacked = np.stack([part for part, _ in nodes(A, b)]), np.stack([labels for _, labels in nodes(A, b)])
    problem = adom.from_loss(loss, stacked, mu=1e-9, L=5.0, dim=300)
    assert_exact(problem, squares_gradient(A, b, 1e-9), 1e-11)


@KINDS
def test_softmax_is_exact_along_the_shift_that_its_loss_does_not_see(kind: Any) -> None:
    A, b = data(300, 20)
    labels, l2 = np.digitize(A[:, 0] * b, [-0.5, 0.5]), 1e-12
    problem = adom.SoftmaxRegression(nodes(A, labels, kind), classes=3, l2=l2)
    rows, ones = A.astype(Long), np.eye(3)[labels]

    def gradient(x: np.ndarray) -> np.ndarray:
        p = np.exp(rows @ x.reshape(3, 20).T)
        loss = (p / p.sum(axis=1, keepdims=True) - ones).T @ rows / 300
        return (loss - loss.mean(axis=0)).ravel() + Long(l2) * x  # whose sum over the classes is 0, but for rounding

    assert_exact(problem, gradient, 1e-12)


def test_what_float64_cannot_give_is_said_once() -> None:
    A, b = data(150, 300)  # fewer samples than features: kappa is the condition of the sum, too
    problem = adom.LeastSquares(nodes(A, b), l2=1e-11)
    with pytest.warns(UserWarning, match=r"x\* of LeastSquares.* is known to about .* only.*errors below") as caught:
        off = off_by(problem, squares_gradient(A, b, 1e-11))
    assert len(caught) == 1
    length = np.linalg.norm(problem.solution())
    assert 1e-8 * length < off <= problem.solution_error
    assert problem.solution_error <= 1000 * off  # on the large side, but not by far


def test_a_tolerance_that_x_star_is_too_rough_for_is_warned_of() -> None:
    rng = np.random.default_rng(0)
    problem = adom.LeastSquares([(rng.standard_normal((1, 4)), [1.0]), (rng.standard_normal((1, 4)), [2.0])], l2=1e-5)
    floor = 2 * problem.solution_error**2
    run = partial(adom.solve, network=adom.networks.path(2), method="adom+", parameters="unit", rounds=2)
    with pytest.warns(UserWarning, match=r"tol=.* cannot be told from 0: .*; take tol="):
        result = run(problem, tol=floor / 2)
    assert result.provenance["solution_error"] == problem.solution_error
    assert run(problem, tol=2 * floor).status == "max_rounds"  # and no warning
    exact = adom.Quadratic([np.eye(2)] * 2, np.ones((2, 2)))
    assert run(exact, tol=1e-300).status == "max_rounds"  # nor where nobody knows better


@pytest.mark.parametrize("spread", [0.0, 3.0])
def test_beyond_what_a_hessian_is_held_for(monkeypatch: pytest.MonkeyPatch, spread: float) -> None:
    A, b = data(300, 60, spread)
    made = [
        adom.LogisticRegression(sp.csr_array(A), b, nodes=3, kappa=1e8),
        adom.LeastSquares(nodes(A, b), l2=1e-8),
        adom.SoftmaxRegression(nodes(A, (b > 0).astype(int)), classes=2, l2=1e-6),
    ]
    expected = [problem.solution() for problem in made]
    errors = [problem.solution_error for problem in made]
    monkeypatch.setattr(base, "DENSE", 10)
    for problem, x, error in zip(made, expected, errors, strict=True):
        again = Shifted(problem, np.zeros(problem.dim), np.zeros((3, problem.dim)))
        assert not again.holds_hessian()
        assert np.linalg.norm(again.solution() - x) <= again.solution_error + error <= 1e-9 * np.linalg.norm(x)


def test_conjugate_gradients_that_get_nowhere_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    A, b = data(300, 60, spread=3.0)
    problem = adom.LogisticRegression(A, b, nodes=3, kappa=1e10)
    exact = problem.solution()
    monkeypatch.setattr(base, "DENSE", 10)
    monkeypatch.setattr(minimiser, "PRODUCTS", 20)
    rough = problem.with_l2(problem.l2)
    with pytest.warns(UserWarning, match="is known to about"):
        off = np.linalg.norm(rough.solution() - exact)
    assert 1e-8 * np.linalg.norm(exact) < off <= rough.solution_error


def test_a_hessian_that_rounding_made_indefinite() -> None:
    # x'Hx is 1e-17 along (1, -1), which rounding of the entries alone can take away.
    data = [([[1.0, 1.0]], [2.0]), ([[1.0, 1.0 + 1e-9]], [2.0])]
    problem = adom.LeastSquares(data, l2=1e-17)
    with pytest.warns(UserWarning, match="is known to about"):
        x = problem.solution()
    assert np.isfinite(x).all()
    assert np.linalg.norm(x - [1.0, 1.0]) <= problem.solution_error


def test_a_solution_of_zero_is_no_reason_to_warn() -> None:
    problem = adom.Quadratic([[[1.0]], [[3.0]]], [[0.1], [-0.1]])
    assert problem.solution() == 0
    A = np.array([[1.0, 0.3], [0.1, 0.7], [-1.0, -0.3], [-0.1, -0.7]])
    problem = adom.LogisticRegression(A, [1, 0, 1, 0], nodes=2, l2=1e-3)
    assert np.linalg.norm(problem.solution()) < 1e-13
    assert problem.solution_error < 1e-12
