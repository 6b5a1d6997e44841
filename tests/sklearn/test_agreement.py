"""The coefficients are scikit-learn's, to 1e-8 and better: data sets, weights, intercepts, dense and sparse."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import ElasticNet, GammaRegressor, LogisticRegression, PoissonRegressor, Ridge
from sklearn.preprocessing import scale

from adom.sklearn import (
    DecentralizedElasticNet,
    DecentralizedGammaRegressor,
    DecentralizedLogisticRegression,
    DecentralizedPoissonRegressor,
    DecentralizedRidge,
)
from sklearn import datasets


@cache
def data(name):
    rng = np.random.default_rng(0)
    if name == "binary":
        X, y = datasets.make_classification(300, 10, random_state=0)
        return scale(X), y
    if name == "full rank":
        X, y = datasets.make_classification(300, 6, n_redundant=0, flip_y=0.3, random_state=0)
        return scale(X), y
    if name == "iris":
        X, y = datasets.load_iris(return_X_y=True)
        return scale(X), datasets.load_iris().target_names[y]
    if name == "digits":
        X, y = datasets.load_digits(n_class=4, return_X_y=True)
        return X[:200] / 16, y[:200]
    if name == "diabetes":
        X, y = datasets.load_diabetes(return_X_y=True)
        return scale(X), y
    if name in ("counts", "positive"):
        X = rng.standard_normal((200, 6)) * [1, 0.1, 10, 1, 1, 1]
        expected = np.exp(X @ [0.5, 5.0, -0.05, 0, 0.2, 0] + 0.3)
        return X, (rng.poisson(expected).astype(float) if name == "counts" else rng.gamma(2.0, expected / 2))
    if name == "wide":
        return datasets.make_regression(40, 60, noise=1.0, bias=5.0, random_state=0)
    X = sp.random_array((200, 30), density=0.15, rng=rng, format="csr")
    latent = X @ rng.standard_normal(30) + 0.3 * rng.standard_normal(200)
    if name == "sparse binary":
        return X, latent > 0.2
    if name == "sparse classes":
        return X, np.digitize(latent, [-0.3, 0.3])
    return X, latent + 7.0  # sparse regression


def difference(ours, theirs):
    """The distance of all coefficients and intercepts, relative to the length of scikit-learn's."""
    a, b = (np.concatenate([np.ravel(model.coef_), np.ravel(model.intercept_)]) for model in (ours, theirs))
    assert a.shape == b.shape
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def weights(samples):
    """Weights of every size, a fifth of them 0."""
    rng = np.random.default_rng(1)
    return rng.uniform(0, 3, samples) * (rng.random(samples) < 0.8)


@pytest.mark.parametrize(
    ("name", "weighted", "shared", "own"),
    [
        ("binary", False, {}, {}),
        ("binary", True, {}, {}),
        ("binary", False, {"fit_intercept": False}, {}),
        ("binary", True, {}, {"method": "acc-gt", "split": "label"}),
        ("iris", True, {}, {"method": "acc-gt"}),
        ("iris", True, {}, {}),
        ("iris", False, {}, {}),
        ("sparse binary", True, {}, {}),
        ("sparse classes", False, {}, {}),
        ("digits", False, {}, {}),  # 4 x 65 coordinates: Newton's systems are solved by conjugate gradients
        *((name, False, {"C": C}, {}) for name in ("binary", "iris") for C in (1e-3, 100.0)),
        *(("binary", True, {"class_weight": weight}, {}) for weight in ("balanced", {0: 3.0, 1: 0.2})),
        *(("binary", False, {}, {"split": split, "nodes": 12}) for split in ("contiguous", "label", "dirichlet")),
    ],
)
def test_logistic_regression(name, weighted, shared, own):
    X, y = data(name)
    s = weights(X.shape[0]) if weighted else None
    ours = DecentralizedLogisticRegression(**shared, **own).fit(X, y, s)
    # Only these two of scikit-learn's solvers go to rounding; newton-cg is the one that takes sparse data.
    solver = "newton-cg" if sp.issparse(X) else "newton-cholesky"
    theirs = LogisticRegression(solver=solver, tol=1e-13, max_iter=1000, **shared).fit(X, y, s)
    assert difference(ours, theirs) < 1e-8
    assert ours.result_.status == "converged"
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-6)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-6)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-6, atol=1e-8)
    assert ours.score(X, y, s) == pytest.approx(theirs.score(X, y, s))


@pytest.mark.parametrize("method", ["auto", "acc-gt"])
def test_features_far_from_the_origin(method):
    X, y = data("binary")
    ours = DecentralizedLogisticRegression(method=method).fit(X + 100, y)
    theirs = LogisticRegression(solver="newton-cholesky", tol=1e-13).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7)
    centred = DecentralizedLogisticRegression(method=method).fit(X, y)
    assert abs(ours.n_iter_ - centred.n_iter_) <= 0.1 * centred.n_iter_


@pytest.mark.parametrize(
    ("name", "weighted", "shared", "own", "size"),
    [
        ("diabetes", False, {}, {}, 1.0),
        ("diabetes", True, {}, {}, 1.0),
        ("diabetes", True, {}, {"method": "acc-gt", "split": "label"}, 1.0),
        ("diabetes", False, {"alpha": 0.0}, {}, 1.0),
        ("diabetes", False, {"fit_intercept": False}, {}, 1.0),
        ("wide", False, {}, {}, 1.0),
        ("sparse regression", True, {}, {}, 1.0),
        *(("diabetes", False, {}, {"split": split}, 1.0) for split in ("contiguous", "label", "dirichlet")),
        *(("diabetes", False, {}, {"method": m}, size) for size in (1e-12, 1e12) for m in ("auto", "acc-gt")),
    ],
)
def test_ridge(name, weighted, shared, own, size):
    X, y = data(name)
    s, targets = weights(X.shape[0]) if weighted else None, size * y
    ours = DecentralizedRidge(**shared, **own).fit(X, targets, s)
    dense = X.toarray() if sp.issparse(X) else X
    theirs = Ridge(**shared).fit(dense, targets, s)
    assert difference(ours, theirs) < 1e-8
    assert ours.coef_.shape == theirs.coef_.shape
    assert isinstance(ours.intercept_, float)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(dense), rtol=1e-6, atol=1e-6 * size)
    assert ours.score(X, targets, s) == pytest.approx(theirs.score(dense, targets, s), rel=1e-9)


SAGA = {"solver": "saga", "tol": 1e-12, "max_iter": 100_000}
CHOLESKY = {"solver": "newton-cholesky", "tol": 1e-12}
DESCENT = {"tol": 1e-14, "max_iter": 100_000}


@pytest.mark.parametrize("split", ["shuffled", "label"])
@pytest.mark.parametrize(
    ("name", "kind", "reference", "shared", "solver"),
    [
        ("full rank", DecentralizedLogisticRegression, LogisticRegression, {"C": np.inf}, CHOLESKY),
        ("binary", DecentralizedLogisticRegression, LogisticRegression, {"C": 0.1, "l1_ratio": 0.5}, SAGA),
        ("binary", DecentralizedLogisticRegression, LogisticRegression, {"C": 0.1, "l1_ratio": 1.0}, SAGA),
        ("diabetes", DecentralizedElasticNet, ElasticNet, {"alpha": 2.0}, DESCENT),
        ("wide", DecentralizedElasticNet, ElasticNet, {"alpha": 3.0, "l1_ratio": 1.0}, DESCENT),
        ("counts", DecentralizedPoissonRegressor, PoissonRegressor, {}, CHOLESKY),
        ("counts", DecentralizedPoissonRegressor, PoissonRegressor, {"alpha": 0.0}, CHOLESKY),
        ("positive", DecentralizedGammaRegressor, GammaRegressor, {"alpha": 0.1}, CHOLESKY),
    ],
)
def test_models_for_newton_alone(name, kind, reference, shared, solver, split):
    X, y = data(name)
    # By label the samples are sparse and weighted, and there is no intercept.
    whole = split == "shuffled"
    s, given = (None, X) if whole else (weights(X.shape[0]), sp.csr_array(X))
    ours = kind(**shared, split=split, fit_intercept=whole).fit(given, y, s)
    theirs = reference(**shared, **solver, fit_intercept=whole).fit(X, y, s)
    assert difference(ours, theirs) < 1e-7
    assert (ours.result_.status, ours.n_iter_ < 60) == ("converged", True)
    np.testing.assert_allclose(ours.predict(given), theirs.predict(X), rtol=1e-6)
    assert ours.score(given, y, s) == pytest.approx(theirs.score(X, y, s), rel=1e-7)
    np.testing.assert_array_equal(ours.coef_ == 0, np.abs(theirs.coef_) < 1e-9)


@pytest.mark.parametrize(("method", "left"), [("auto", 1e-16), ("acc-gt", 0.0)])
def test_targets_that_are_all_alike(method, left):
    X, y = data("diabetes")
    model = DecentralizedRidge(method=method).fit(X, np.full(y.size, 0.1))
    assert np.abs(model.coef_).max() <= left
    assert model.intercept_ == pytest.approx(0.1, rel=1e-14)
    assert model.result_.status == "converged"
