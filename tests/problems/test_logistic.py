import warnings

import jax
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import adom
from adom.errors import InputError
from support.reference import logistic_data, logistic_gradient


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


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
    assert ours.objective(x[0]) == pytest.approx(float(ours.value_rows(np.tile(x[0], (5, 1))).sum()), rel=1e-13)


def test_hessian_is_the_derivative_of_the_gradient():
    for ours in (problem()[0], uneven()[0], uneven(sp.csr_array)[0]):
        rng = np.random.default_rng(2)
        x, v = rng.standard_normal((2, ours.nodes, ours.dim))
        step = 1e-6
        numeric = (np.asarray(ours.gradient_rows(x + step * v)) - np.asarray(ours.gradient_rows(x - step * v))) / (
            2 * step
        )
        product = np.asarray(ours.hessian_product_rows(x, v))
        np.testing.assert_allclose(product, numeric, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(np.einsum("nde,ne->nd", ours.hessian_rows(x), v), product, rtol=1e-12, atol=1e-14)


def test_constants_are_those_of_each_node():
    ours, A, _ = problem(l2=0.05)
    for i in range(5):
        top = np.linalg.svd(A[i], compute_uv=False)[0] ** 2 / (4 * 8)
        assert ours.L_nodes[i] == pytest.approx(top + 0.05, rel=1e-12)
        # at x = 0 every sample has curvature 1/4: the bound is attained
        assert np.linalg.eigvalsh(ours.hessian_rows(np.zeros((5, 3))))[i, -1] == pytest.approx(ours.L_nodes[i])
    assert (ours.mu, ours.L) == (0.05, ours.L_nodes.max())


@pytest.mark.parametrize("shape", [(20, 3), (3, 20)])  # more samples than features, and fewer
def test_constants_of_uneven_and_sparse_nodes_agree_with_dense_ones(shape):
    rng = np.random.default_rng(0)
    data = [(rng.standard_normal((shape[0] + i, shape[1])), rng.choice([0, 1], shape[0] + i)) for i in range(3)]
    data[0][1][:2] = [0, 1]
    dense = adom.LogisticRegression.from_nodes(data, l2=0.1)
    sparse = adom.LogisticRegression.from_nodes([(sp.csr_matrix(A), b) for A, b in data], l2=0.1)
    by_hand = [np.linalg.norm(A, 2) ** 2 / (4 * len(A)) + 0.1 for A, _ in data]
    np.testing.assert_allclose(dense.L_nodes, by_hand, rtol=1e-12)
    np.testing.assert_allclose(sparse.L_nodes, by_hand, rtol=1e-12)


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
    with pytest.raises(InputError, match="kappa must be finite and greater than 1, got 1"):
        first.with_kappa(1)
    with pytest.raises(InputError, match="l2 must be positive"):
        first.with_l2(0.0)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_some_nodes_of_a_whole_are_built_by_themselves(convert):
    whole, data = uneven(convert)
    x = np.random.default_rng(3).standard_normal((4, 3))
    one = adom.LogisticRegression.from_nodes(data[2:], l2=0.3, classes=(-1, 1), longest=9)
    np.testing.assert_array_equal(one.gradient_rows(x[2:]), np.asarray(whole.gradient_rows(x))[2:])
    if convert is np.asarray:
        assert one.features.signed.shape == (2, 9, 3)
    # The same samples under one class only: the gradient at zero is that of the loss's slope, -b/2.
    A = data[2][0]
    for label, sign in ((7, -1), (8, 1)):
        alone = adom.LogisticRegression.from_nodes([(A, np.full(A.shape[0], label))], l2=0.3, classes=(7, 8))
        mean = np.asarray(A.mean(axis=0)).ravel()
        np.testing.assert_allclose(alone.gradient_rows(np.zeros((1, 3)))[0], -sign * mean / 2, rtol=1e-14)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"classes": (0, 1)}, r"labels must be 0 or 1, got -1.* for sample"),
        ({"classes": (1, -1)}, r"classes must be two numbers, the smaller first, got \(1, -1\)"),
        ({"classes": (-1, 1, 2)}, "classes must be two numbers"),
        ({"classes": ("a", 1)}, "classes must be two numbers"),
        ({"classes": (-1, float("nan"))}, "classes must be two numbers"),
        ({"longest": 8}, "longest must be a whole number of at least 9, got 8; node 0 has 9 samples"),
        ({"longest": 9.0}, "longest must be a whole number"),
        ({"longest": True}, "longest must be a whole number"),
    ],
)
def test_classes_and_lengths_that_do_not_fit(given, message):
    _, data = uneven()
    with pytest.raises(InputError, match=message):
        adom.LogisticRegression.from_nodes(data, l2=0.3, **given)


def test_sparse_and_uneven_layouts_compute_the_same():
    (dense, data), (sparse, _) = uneven(), uneven(sp.csr_array)
    assert isinstance(sparse.features.value, np.ndarray)
    assert sparse.features.value.size == sum(A.size for A, _ in data)  # only what was there
    x = np.random.default_rng(3).standard_normal((4, 3))
    for name in ("value_rows", "gradient_rows"):
        np.testing.assert_allclose(getattr(sparse, name)(x), getattr(dense, name)(x), rtol=1e-12)
    for i, (A, b) in enumerate(data):
        np.testing.assert_allclose(
            np.asarray(dense.gradient_rows(x))[i],
            logistic_gradient(A[None], b[None], 0.3)(x[i : i + 1])[0],
            rtol=1e-12,
        )
    np.testing.assert_allclose(sparse.solution(), dense.solution(), atol=1e-14)


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


def test_bad_weights_are_refused():
    _, data = uneven()
    with pytest.raises(InputError, match="weights must be one array for each of the 4 nodes, got 1"):
        adom.LogisticRegression.from_nodes(data, l2=0.3, weights=[np.ones(9)])
    with pytest.raises(InputError, match="node 0 has 9 samples and its weights"):
        adom.LogisticRegression.from_nodes(data, l2=0.3, weights=[np.ones(8)] * 4)


def test_samples_are_handed_out_in_order_as_evenly_as_they_go():
    A, b = logistic_data(1, 7, 2)
    ours = adom.LogisticRegression(A[0], b[0], nodes=3, l2=0.1)
    by_hand = adom.LogisticRegression.from_nodes(
        [(A[0, :3], b[0, :3]), (A[0, 3:5], b[0, 3:5]), (A[0, 5:], b[0, 5:])], l2=0.1
    )
    x = np.ones((3, 2))
    np.testing.assert_array_equal(ours.gradient_rows(x), by_hand.gradient_rows(x))


def test_any_two_labels_will_do():
    A, b = logistic_data(3, 5, 2)
    flat = A.reshape(-1, 2)
    signs = adom.LogisticRegression(flat, b.ravel(), nodes=3, l2=1.0).solution()
    for labels in (np.where(b > 0, 1, 0), np.where(b > 0, "yes", "no"), b > 0):
        np.testing.assert_array_equal(adom.LogisticRegression(flat, labels.ravel(), nodes=3, l2=1.0).solution(), signs)


def test_solution_is_the_minimiser():
    for kappa in (5.0, 1e4, 1e8):
        ours, _, _ = problem(kappa=kappa)
        total = np.asarray(ours.gradient_rows(np.tile(ours.solution(), (5, 1)))).sum(axis=0)
        assert np.abs(total).max() < 1e-14
        assert ours.solution() is ours.solution()  # computed once
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


def test_wide_problems_solve_by_conjugate_gradients():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((40, 300)), np.tile([0, 1], 20)
    ours = adom.LogisticRegression(sp.csr_array(A), b, nodes=4, kappa=100.0)
    assert np.abs(np.asarray(ours.gradient_rows(np.tile(ours.solution(), (4, 1)))).sum(axis=0)).max() < 1e-14


@pytest.mark.parametrize("margin", [1000.0, -1000.0, 1e5])
def test_huge_margins_are_safe(margin):
    ours = adom.LogisticRegression([[1.0], [1.0]], [-1, 1], nodes=2, l2=1e-3)
    x = np.full((2, 1), margin)
    value, gradient = np.asarray(ours.value_rows(x)), np.asarray(ours.gradient_rows(x))
    np.testing.assert_allclose(value - 5e-4 * margin**2, [max(margin, 0), max(-margin, 0)], atol=1e-9)
    np.testing.assert_allclose(gradient - 1e-3 * x, [[float(margin > 0)], [-float(margin < 0)]], atol=1e-12)
    assert np.isfinite(ours.hessian_rows(x)).all()


GOOD = (np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("features", "labels", "options", "message"),
    [
        (np.eye(4), [0, 1, 2, 1], {"l2": 1.0}, "two classes, got 3: 0, 1, 2"),
        (np.eye(4), [1, 1, 1, 1], {"l2": 1.0}, "two classes, got 1"),
        (np.eye(4), [0, 1, 0], {"l2": 1.0}, r"labels must have shape \(4,\).*got \(3,\)"),
        (np.eye(4), [0.0, 1.0, np.nan, 1.0], {"l2": 1.0}, r"labels\[2\] is nan"),
        (np.diag([1.0, np.nan, 1.0, 1.0]), [0, 1, 0, 1], {"l2": 1.0}, r"features\[1, 1\] is nan"),
        (np.diag([1.0, 1.0, np.inf, 1.0]), [0, 1, 0, 1], {"l2": 1.0}, r"features\[2, 2\] is inf"),
        (sp.csr_array(np.diag([1.0, 1.0, np.nan, 1.0])), [0, 1, 0, 1], {"l2": 1.0}, r"features\[2, 2\] is nan"),
        (np.ones(4), [0, 1, 0, 1], {"l2": 1.0}, r"shape \(samples, features\), got \(4,\)"),
        ([["a"]], [0], {"l2": 1.0}, "features must be real numbers"),
        (*GOOD, {"kappa": 1.0}, "kappa must be finite and greater than 1, got 1.0"),
        (*GOOD, {"kappa": 0.5}, "kappa must be finite and greater than 1, got 0.5"),
        (*GOOD, {"kappa": np.inf}, "kappa must be finite"),
        (*GOOD, {"l2": 0.0}, "l2 must be positive"),
        (*GOOD, {"l2": 1.0, "kappa": 2.0}, "exactly one of l2 and kappa"),
        (*GOOD, {}, "exactly one of l2 and kappa"),
        (np.zeros((4, 2)), [0, 1, 0, 1], {"kappa": 3.0}, "every feature is zero"),
        (*GOOD, {"l2": 1.0, "nodes": 5}, "5 nodes cannot share 4 samples"),
        (*GOOD, {"l2": 1.0, "nodes": 0}, "nodes must be a whole number"),
        (*GOOD, {"l2": 1.0, "nodes": 2.0}, "nodes must be a whole number"),
    ],
)
def test_bad_input_is_refused_in_one_line(features, labels, options, message):
    with pytest.raises(InputError, match=message) as caught:
        adom.LogisticRegression(features, labels, **{"nodes": 2, **options})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "no nodes"),
        ([(np.ones((2, 2)), [0, 1]), (np.ones((0, 2)), [])], "node 1 is empty"),
        ([(np.ones((2, 2)), [0, 1]), (np.ones((2, 3)), [0, 1])], "node 1 has 3 features but node 0 has 2"),
        ([(np.ones((2, 2)), [0, 1]), (np.ones((2, 2)), [0])], "node 1 has 2 samples but labels"),
        ([(np.ones((2, 2)), [0, 1]), (np.full((2, 2), np.nan), [0, 1])], r"node 1's features\[0, 0\] is nan"),
    ],
)
def test_bad_nodes_are_named(data, message):
    with pytest.raises(InputError, match=message):
        adom.LogisticRegression.from_nodes(data, l2=1.0)
