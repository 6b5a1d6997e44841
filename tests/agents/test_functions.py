"""The function of an agent against the problems of the simulation."""

import numpy as np
import pytest
import scipy.sparse as sp

from adom import LeastSquares, LogisticRegression, SoftmaxRegression
from adom.agents import functions
from adom.agents.functions import AgentOracle, SampleFunction, from_samples
from adom.errors import InputError
from adom.problems.losses import SOFTMAX
from support.agents_made import QuadraticFunction


def samples(m=30, dim=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, dim)), np.sign(rng.standard_normal(m))


@pytest.mark.parametrize("kind", ["logistic", "ridge"])
@pytest.mark.parametrize("sparse", [False, True])
def test_gradient_hessian_and_constants_are_those_of_the_problem(kind, sparse):
    A, b = samples()
    given = sp.csr_array(A) if sparse else A
    f = from_samples(kind, given, b, 0.1, "nodes")
    whole = LogisticRegression.from_nodes([(A, b)], l2=0.1) if kind == "logistic" else LeastSquares([(A, b)], l2=0.1)
    x = np.linspace(-2, 2, 4)
    np.testing.assert_allclose(f.gradient(x), whole.mean_gradient(x), rtol=1e-12)
    np.testing.assert_allclose(f.hessian(x), whole.mean_hessian(x), rtol=1e-12)
    assert (f.mu, f.L) == pytest.approx((whole.mu, whole.L), rel=1e-12)


def test_weights_by_samples_are_those_of_the_sum():
    A, b = samples()
    each, mean = from_samples("logistic", A, b, 0.1, "samples"), from_samples("logistic", A, b, 0.1, "nodes")
    x = np.ones(4)
    np.testing.assert_allclose(each.gradient(x), 30 * mean.gradient(x), rtol=1e-13)
    assert each.mu == pytest.approx(3.0)


@pytest.mark.parametrize("exact", [True, False])
def test_the_conjugate_gradient_solves_its_equation(exact):
    A, b = samples()
    f = from_samples("logistic", 5 * A, b, 1e-3, "nodes")
    oracle, rng, z = AgentOracle(f, exact), np.random.default_rng(1), np.zeros(4)
    for k in range(30):
        moved = 0.05 * 0.8**k * rng.standard_normal(4)
        z = z + moved
        oracle.new_round()
        x = oracle.dual_gradient(z[None])[0]
        left = np.linalg.norm(f.gradient(x) - z)
        assert left <= (1e-13 if exact else 0.01 * np.linalg.norm(moved) + 1e-13)
    assert oracle.gradients < 30 * (12 if exact else 4)


def test_a_hessian_counts_as_many_gradients_as_it_has_columns():
    oracle = AgentOracle(QuadraticFunction(np.diag([1.0, 4.0, 9.0]), np.ones(3)))
    oracle.new_round()
    oracle.dual_gradient(np.ones((1, 3)))
    assert oracle.gradients == 1 + 3 + 1  # at the start, the Hessian, and after the step


def test_a_question_is_answered_once_a_round():
    oracle = AgentOracle(QuadraticFunction(np.eye(2), np.ones(2)))
    oracle.new_round()
    first = oracle.gradient(np.zeros((1, 2)))
    oracle.again()
    assert oracle.gradient(np.zeros((1, 2))) is first
    assert oracle.gradients == 1


def test_labels_of_other_classes_are_refused():
    A, b = samples()
    with pytest.raises(InputError, match="labels must be 0 or 1, got"):
        from_samples("logistic", A, b, 0.1, "nodes", (0, 1))
    with pytest.raises(InputError, match="unknown problem"):
        from_samples("lasso", A, b, 0.1, "nodes")
    with pytest.raises(InputError, match="l2 must be positive"):
        from_samples("ridge", A, b, 0.0, "nodes")


@pytest.mark.parametrize("sparse", [False, True])
def test_many_classes_are_those_of_the_problem(sparse):
    A, _ = samples()
    b = np.arange(30) % 3
    f = SampleFunction(SOFTMAX, sp.csr_array(A) if sparse else A, b, 0.1, 2.0, 3)
    whole = SoftmaxRegression([(A, b)], classes=3, l2=0.1)
    x = np.linspace(-2, 2, 12)
    np.testing.assert_allclose(f.gradient(x), 2 * whole.mean_gradient(x), rtol=1e-12)
    np.testing.assert_allclose(f.hessian(x), 2 * whole.mean_hessian(x), rtol=1e-12)
    assert (f.mu, f.L) == pytest.approx((2 * whole.mu, 2 * whole.L), rel=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("kind", "held"), [("logistic", 2048), ("ridge", 2048), ("logistic", 5), ("softmax", 5)])
def test_a_hessian_is_inverted_without_being_written_down(kind, held, sparse, monkeypatch):
    """More features than samples; and neither few enough of the one nor of the other."""
    monkeypatch.setattr(functions, "HELD", held)
    monkeypatch.setattr(functions, "CG_ACCURACY", 1e-13)
    A, b = samples(20, 30)
    given = sp.csr_array(A) if sparse else A
    f = (
        SampleFunction(SOFTMAX, given, np.arange(20) % 3, 0.1, 3.0, 3)
        if kind == "softmax"
        else from_samples(kind, given, b, 0.1, "samples")
    )
    x, e = np.linspace(-1, 1, f.dim), np.cos(np.arange(f.dim))
    np.testing.assert_allclose(f.inverse(x, lambda _: None)(e), np.linalg.solve(f.hessian(x), e), rtol=1e-8, atol=1e-9)
