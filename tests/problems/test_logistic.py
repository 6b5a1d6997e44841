import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import adom
from support import default_xla
from support.reference import logistic_data, logistic_gradient

pytestmark = pytest.mark.usefixtures("double")


def problem(nodes=5, samples=8, dim=3, **regulariser):
    A, b = logistic_data(nodes, samples, dim)
    return (
        adom.LogisticRegression(A.reshape(-1, dim), b.ravel(), nodes=nodes, **(regulariser or {"kappa": 20.0})),
        A,
        b,
    )


def uneven(convert=np.asarray):
    A, b = logistic_data(4, 9, 3)
    data = [(convert(A[i, : 9 - 2 * i]), b[i, : 9 - 2 * i]) for i in range(4)]
    return adom.LogisticRegression.from_nodes(data, l2=0.3), data


def test_value_and_gradient_match_the_formula():
    ours, A, b = problem()
    x = np.random.default_rng(1).standard_normal((5, 3))
    by_hand = [
        np.mean([np.log(1 + np.exp(-b[i, j] * A[i, j] @ x[i])) for j in range(8)]) + ours.l2 / 2 * x[i] @ x[i]
        for i in range(5)
    ]
    np.testing.assert_allclose(ours.value_rows(x), by_hand, rtol=1e-13)
    np.testing.assert_allclose(ours.gradient_rows(x), logistic_gradient(A, b, ours.l2)(x), rtol=1e-12, atol=1e-15)
    assert ours.objective(x) == pytest.approx(sum(by_hand), rel=1e-13)


@pytest.mark.parametrize(("samples", "dim"), [(8, 3), (3, 8)])
def test_constants_are_those_of_each_node(samples, dim):
    ours, A, _ = problem(samples=samples, dim=dim, l2=0.05)
    # at x = 0 every sample has curvature 1/4: the bound is attained
    attained = np.linalg.eigvalsh(ours.hessian_rows(np.zeros((5, dim))))[:, -1]
    np.testing.assert_allclose(ours.L_nodes, attained, rtol=1e-12)
    by_hand = [np.linalg.norm(A[i], 2) ** 2 / (4 * samples) + 0.05 for i in range(5)]
    np.testing.assert_allclose(ours.L_nodes, by_hand, rtol=1e-12)
    assert (ours.mu, ours.L) == (0.05, ours.L_nodes.max())


@given(kappa=st.floats(1.01, 1e6))
@settings(max_examples=20, deadline=None)
def test_kappa_chooses_the_regulariser(kappa):
    ours, _, _ = problem(kappa=kappa)
    assert ours.kappa == pytest.approx(kappa, rel=1e-9)
    assert ours.mu == ours.l2


def test_another_regulariser_shares_the_data():
    A, b = logistic_data(4, 6, 3)
    data = list(zip(A, b, strict=True))
    first = adom.LogisticRegression.from_nodes(data, kappa=10.0)
    before = first.solution().copy()
    for again, fresh in (
        (first.with_kappa(200.0), adom.LogisticRegression.from_nodes(data, kappa=200.0)),
        (first.with_l2(0.3), adom.LogisticRegression.from_nodes(data, l2=0.3)),
    ):
        assert again.features is first.features
        np.testing.assert_allclose([again.l2, again.mu, again.L], [fresh.l2, fresh.mu, fresh.L], rtol=1e-12)
        np.testing.assert_allclose(again.L_nodes, fresh.L_nodes, rtol=1e-12)
        np.testing.assert_allclose(again.solution(), fresh.solution(), rtol=1e-9)
        assert not np.allclose(again.solution(), before)
    np.testing.assert_array_equal(first.solution(), before)
    assert first.kappa == pytest.approx(10.0)
    stiff = first.with_l2(1e20)  # beside which the data's own curvature rounds away
    assert stiff.with_l2(first.l2).L == first.L
    assert stiff.with_kappa(10.0).kappa == pytest.approx(10.0)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_some_nodes_of_a_whole_are_built_by_themselves(convert):
    whole, data = uneven(convert)
    x = np.random.default_rng(3).standard_normal((4, 3))
    one = adom.LogisticRegression.from_nodes(data[2:], l2=0.3, classes=(-1, 1), longest=9)
    some, all_rows = (default_xla.jit(problem.gradient_rows) for problem in (one, whole))
    np.testing.assert_array_equal(some(x[2:]), np.asarray(all_rows(x))[2:])
    if convert is np.asarray:
        assert one.features.signed.shape == (2, 9, 3)
    # The same samples under one class only: the gradient at zero is that of the loss's slope, -b/2.
    A = data[2][0]
    for label, sign in ((7, -1), (8, 1)):
        alone = adom.LogisticRegression.from_nodes([(A, np.full(A.shape[0], label))], l2=0.3, classes=(7, 8))
        mean = np.asarray(A.mean(axis=0)).ravel()
        np.testing.assert_allclose(alone.gradient_rows(np.zeros((1, 3)))[0], -sign * mean / 2, rtol=1e-14)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("counts", [(9, 7, 5, 3), (6, 6, 6, 6)])
def test_weights_are_as_good_as_copies(convert, counts):
    A, b = logistic_data(4, 9, 3)
    data = [(A[i, :m], b[i, :m]) for i, m in enumerate(counts)]
    copies = [np.random.default_rng(i).integers(0, 4, m) for i, m in enumerate(counts)]
    weights = [c / c.sum() for c in copies]
    weighted = adom.LogisticRegression.from_nodes(
        [(convert(A_i), b_i) for A_i, b_i in data], l2=0.3, weights=weights, classes=(-1, 1)
    )
    copied = adom.LogisticRegression.from_nodes(
        [(A_i.repeat(c, axis=0), b_i.repeat(c)) for (A_i, b_i), c in zip(data, copies, strict=True)], l2=0.3
    )
    x, v = np.random.default_rng(5).standard_normal((2, 4, 3))
    np.testing.assert_allclose(weighted.value_rows(x), copied.value_rows(x), rtol=1e-12)
    np.testing.assert_allclose(weighted.gradient_rows(x), copied.gradient_rows(x), rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(weighted.hessian_product_rows(x, v), copied.hessian_product_rows(x, v), rtol=1e-11)
    np.testing.assert_allclose(weighted.L_nodes, copied.L_nodes, rtol=1e-12)
    np.testing.assert_allclose(weighted.solution(), copied.solution(), atol=1e-13)


def test_any_two_labels_will_do():
    A, b = logistic_data(3, 5, 2)
    flat = A.reshape(-1, 2)
    signs = adom.LogisticRegression(flat, b.ravel(), nodes=3, l2=1.0).solution()
    for labels in (np.where(b > 0, 1, 0), np.where(b > 0, "yes", "no"), b > 0):
        np.testing.assert_array_equal(adom.LogisticRegression(flat, labels.ravel(), nodes=3, l2=1.0).solution(), signs)


def test_solution_is_computed_once_and_cannot_be_changed():
    ours, _, _ = problem()
    assert ours.solution() is ours.solution()
    with pytest.raises(ValueError, match="read-only"):
        ours.solution()[0] = 1.0


def test_solution_agrees_with_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    ours, A, b = problem(l2=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = LogisticRegression(C=1 / (0.1 * 40), fit_intercept=False, tol=1e-12, max_iter=10_000)
        theirs.fit(A.reshape(-1, 3), b.ravel())
    np.testing.assert_allclose(ours.solution(), theirs.coef_[0], rtol=1e-5)


@pytest.mark.parametrize("margin", [1000.0, -1000.0, 1e5])
def test_huge_margins_are_safe(margin):
    ours = adom.LogisticRegression([[1.0], [1.0]], [-1, 1], nodes=2, l2=1e-3)
    x = np.full((2, 1), margin)
    value, gradient = np.asarray(ours.value_rows(x)), np.asarray(ours.gradient_rows(x))
    np.testing.assert_allclose(value - 5e-4 * margin**2, [max(margin, 0), max(-margin, 0)], atol=1e-9)
    np.testing.assert_allclose(gradient - 1e-3 * x, [[float(margin > 0)], [-float(margin < 0)]], atol=1e-12)
    assert np.isfinite(ours.hessian_rows(x)).all()
