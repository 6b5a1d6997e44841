"""Generalised linear models by Newton's gossip, against statsmodels and scikit-learn, and what is refused."""

import warnings

import jax
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import ElasticNet, GammaRegressor, HuberRegressor, LogisticRegression, PoissonRegressor, Ridge
from sklearn.svm import LinearSVC

import adom
from adom.data.splits import split
from adom.errors import InputError
from adom.problems.penalties import sparse_minimum

sm = pytest.importorskip("statsmodels.api")

NODES, SAMPLES, DIM = 6, 240, 4
RNG = np.random.default_rng(5)
X = RNG.standard_normal((SAMPLES, DIM)) * [1.0, 0.1, 10.0, 1.0]
MARGIN = X @ (RNG.standard_normal(DIM) / [1, 0.1, 10, 1] / 2) + 0.3
TARGETS = {
    "gaussian": MARGIN + RNG.standard_normal(SAMPLES),
    "logistic": np.where(RNG.random(SAMPLES) < 1 / (1 + np.exp(-MARGIN)), "ill", "healthy"),
    "poisson": RNG.poisson(np.exp(MARGIN)).astype(float),
    "gamma": RNG.gamma(2.0, np.exp(MARGIN) / 2),
    "huber": MARGIN + RNG.standard_t(2, SAMPLES),
}
TARGETS["squared-hinge"] = TARGETS["logistic"]
NETWORK = adom.networks.geometric(NODES, chi=5, graphs=20, seed=0)


def fitted(problem):
    result = adom.solve(problem, NETWORK, "newton", rounds=300, rtol=1e-22, progress=False)
    assert result.status == "converged"
    assert result.last["round"] < 60
    return result.model()


def reference(family, y, **more):
    """The fit by statsmodels, its constant at the end as ours."""
    design = np.column_stack([X, np.ones(len(X))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if family == "gaussian":
            return sm.OLS(y, design).fit(**more)
        if family == "logistic":
            return sm.Logit((y == "ill").astype(float), design).fit(disp=0, tol=1e-12, **more)
        if family == "poisson":
            return sm.Poisson(y, design).fit(disp=0, tol=1e-12, **more)
        return sm.GLM(y, design, family=sm.families.Gamma(sm.families.links.Log())).fit(tol=1e-14, **more)


def uneven(y):
    cuts = [5, 30, 31, 100, 180]
    return list(zip(np.split(X, cuts), np.split(y, cuts), strict=True))


SPLITS = {
    "even": lambda family, y: adom.GLM(X, y, NODES, family=family),
    "uneven": lambda family, y: adom.GLM.from_nodes(uneven(y), family=family),
    "by-label": lambda family, y: adom.GLM.from_nodes(split(X, y, NODES, "label"), family=family),
    "sparse": lambda family, y: adom.GLM(sp.csr_array(X), y, NODES, family=family),
}


@pytest.mark.parametrize(
    ("family", "way"),
    [
        *(("gaussian", "even"), ("logistic", "even"), ("poisson", "even"), ("gamma", "even")),
        *(("logistic", "uneven"), ("gamma", "by-label"), ("poisson", "sparse")),
    ],
)
def test_estimates_and_errors_are_those_of_statsmodels(family, way):
    model, expected = fitted(SPLITS[way](family, TARGETS[family])), reference(family, TARGETS[family])
    table = model.summary()
    assert list(table.index) == ["x1", "x2", "x3", "x4", "intercept"]
    intervals = expected.conf_int()
    for column, values in (
        ("estimate", expected.params),
        ("std_error", expected.bse),
        ("z", expected.tvalues),
        ("p_value", expected.pvalues),
        ("lower", intervals[:, 0]),
        ("upper", intervals[:, 1]),
    ):
        np.testing.assert_allclose(table[column], values, rtol=1e-6, atol=1e-9, err_msg=column)
    np.testing.assert_allclose(table.attrs["log_likelihood"], expected.llf, rtol=1e-9)
    np.testing.assert_allclose(table.attrs["aic"], expected.aic, rtol=1e-9)
    assert (table.attrs["samples"], table.attrs["nodes"]) == (SAMPLES, NODES)


@pytest.mark.parametrize("family", ["gaussian", "logistic", "poisson"])
def test_robust_errors_are_the_sandwich(family):
    model = fitted(adom.GLM(X, TARGETS[family], NODES, family=family))
    expected = reference(family, TARGETS[family], cov_type="HC0")
    np.testing.assert_allclose(model.summary(robust=True)["std_error"], expected.bse, rtol=1e-7)
    inner, outer = model.summary(level=0.5), model.summary(level=0.99)
    assert (outer["lower"] < inner["lower"]).all()
    assert (inner["upper"] < outer["upper"]).all()


def test_offsets_and_weights_are_those_of_statsmodels():
    rng = np.random.default_rng(1)
    offset, weights = 0.4 * rng.standard_normal(SAMPLES), rng.uniform(0.5, 2.0, SAMPLES)
    y = rng.poisson(np.exp(MARGIN + offset)).astype(float)
    design = np.column_stack([X, np.ones(SAMPLES)])
    table = fitted(adom.GLM(X, y, NODES, family="poisson", offset=offset)).summary()
    expected = sm.GLM(y, design, family=sm.families.Poisson(), offset=offset).fit(tol=1e-14)
    np.testing.assert_allclose(table["estimate"], expected.params, rtol=1e-8)
    np.testing.assert_allclose(table["std_error"], expected.bse, rtol=1e-7)
    np.testing.assert_allclose(table.attrs["log_likelihood"], expected.llf, rtol=1e-9)
    np.testing.assert_allclose(table.attrs["deviance"], expected.deviance, rtol=1e-9)
    table = fitted(adom.GLM(X, TARGETS["gaussian"], NODES, weights=weights)).summary()
    expected = sm.WLS(TARGETS["gaussian"], design, weights=weights).fit()
    np.testing.assert_allclose(table["estimate"], expected.params, rtol=1e-8)
    np.testing.assert_allclose(table["p_value"], expected.pvalues, rtol=1e-6)
    np.testing.assert_allclose(table.attrs["log_likelihood"], expected.llf, rtol=1e-9)


ESTIMATORS = {
    "gaussian": Ridge(alpha=0.02 * SAMPLES),
    "logistic": LogisticRegression(C=1 / (0.02 * SAMPLES), tol=1e-12, max_iter=10_000),
    "poisson": PoissonRegressor(alpha=0.02, tol=1e-12, max_iter=10_000),
    "gamma": GammaRegressor(alpha=0.02, tol=1e-12, max_iter=10_000),
    "squared-hinge": LinearSVC(C=1 / (2 * 0.02 * SAMPLES), fit_intercept=False, tol=1e-13, max_iter=1_000_000),
}


@pytest.mark.parametrize("family", ESTIMATORS)
def test_penalised_fits_are_those_of_scikit_learn(family):
    scaled = X / [1.0, 0.1, 10.0, 1.0]
    known = ESTIMATORS[family].fit(scaled, TARGETS[family])
    model = fitted(
        adom.GLM(scaled, TARGETS[family], NODES, family=family, l2=0.02, intercept=family != "squared-hinge")
    )
    # scikit-learn orders classes by name, as here: "healthy", "ill"
    np.testing.assert_allclose(model.coefficients.ravel(), np.ravel(known.coef_), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.intercept, known.intercept_, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(model.to_sklearn().predict(scaled).shape, model.predict(scaled).shape)
    name = "C" if family in ("logistic", "squared-hinge") else "alpha"
    np.testing.assert_allclose(model.penalty[name], getattr(known, name), rtol=1e-12)
    assert list(model.summary().columns) == ["estimate"]
    why = {"squared-hinge": "likelihood"}.get(family, "fit without")
    assert why in model.summary().attrs["refused"]


def test_without_an_intercept_there_is_no_row_of_it():
    table = fitted(adom.GLM(X, TARGETS["gaussian"], NODES, intercept=False)).summary()
    expected = sm.OLS(TARGETS["gaussian"], X).fit()
    assert list(table.index) == ["x1", "x2", "x3", "x4"]
    np.testing.assert_allclose(table["std_error"], expected.bse, rtol=1e-7)


def test_huber_minimises_its_sum_and_has_no_errors():
    model = fitted(adom.GLM(X, TARGETS["huber"], NODES, family="huber"))
    w = np.append(model.coefficients, model.intercept)
    residuals = X @ w[:-1] + w[-1] - TARGETS["huber"]
    slopes = np.clip(residuals, -1.35, 1.35)
    np.testing.assert_allclose(np.column_stack([X, np.ones(SAMPLES)]).T @ slopes / SAMPLES, 0, atol=1e-9)
    assert "likelihood" in model.summary().attrs["refused"]
    assert isinstance(model.to_sklearn(), HuberRegressor)


def test_names_classes_and_inference_go_into_the_model_and_its_file(tmp_path):
    frame = pd.DataFrame(X, columns=["age", "dose", "size", "sex"])
    result = adom.solve(adom.GLM(frame, TARGETS["logistic"], NODES, family="logistic"), NETWORK, "newton", rounds=60)
    adom.load(result.save(tmp_path / "run.npz")).model().save(tmp_path / "model.json")
    model = adom.load_model(tmp_path / "model.json")
    assert model.classes == ("healthy", "ill")
    assert list(model.summary().index) == [*frame.columns, "intercept"]
    np.testing.assert_allclose(model.summary()["std_error"], result.model().summary()["std_error"])
    np.testing.assert_array_equal(model.predict(frame), model.to_sklearn().predict(frame))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"family": "logit"}, "unknown family 'logit'; did you mean 'logistic'"),
        ({"family": "softmax"}, "take SoftmaxRegression with l2"),
        ({"l2": -1.0}, "l2 must be a finite number at least 0, got -1.0"),
        ({"weights": -np.ones(SAMPLES)}, "weights must be at least 0"),
        ({"weights": np.ones(3)}, r"weights must have shape \(240,\)"),
        ({"family": "huber", "offset": np.ones(SAMPLES)}, "an offset is for gaussian, poisson, gamma"),
        ({"family": "poisson", "targets": -np.ones(SAMPLES)}, "targets must be counts of at least 0"),
        ({"family": "gamma", "targets": np.zeros(SAMPLES)}, "targets must be positive numbers"),
        ({"family": "logistic", "targets": np.ones(SAMPLES)}, "must be of two classes, got"),
        ({"nodes": 1000}, "1000 nodes cannot share 240 samples"),
        ({"targets": np.ones(3)}, r"one for every sample, got shape \(3,\)"),
    ],
)
def test_bad_input_is_refused_in_one_line(change, rule):
    given = {"features": X, "targets": TARGETS["gaussian"], "nodes": NODES, **change}
    with pytest.raises(InputError, match=rule) as caught:
        adom.GLM(**given)
    assert "\n" not in str(caught.value)


def test_offsets_are_one_array_for_each_node():
    with pytest.raises(InputError, match="offset must be one array for each of the 6 nodes, got 2"):
        adom.GLM.from_nodes(uneven(TARGETS["poisson"]), family="poisson", offset=[[0.0], [0.0]])


def test_what_has_no_answer_says_why_and_names_the_columns():
    frame = pd.DataFrame(X, columns=["age", "dose", "size", "sex"])
    twice = frame.assign(both=2 * frame.age + frame.sex)
    with pytest.raises(InputError, match=r"columns are aliased.*: age, sex, both; leave one of them out"):
        adom.GLM(twice, TARGETS["gaussian"], NODES).solution()
    assert np.isfinite(adom.GLM(twice, TARGETS["gaussian"], NODES, l2=0.1).solution()).all()
    apart = np.where(frame.age > 0.1, 1, 0)
    with pytest.raises(InputError, match=r"no best answer: .*direction of age.*separable"):
        adom.GLM(frame, apart, NODES, family="logistic").solution()
    assert np.isfinite(adom.GLM(frame, apart, NODES, family="logistic", l2=0.1).solution()).all()
    never = np.where(frame.age > 0.1, TARGETS["poisson"], 0.0)  # no events on one side, but that is no separation
    assert np.isfinite(adom.GLM(frame, never, NODES, family="poisson").solution()).all()


def test_methods_that_need_constants_point_to_newton():
    problem = adom.GLM(X, TARGETS["poisson"], NODES, family="poisson")
    for method in ("adom", "nids"):
        with pytest.raises(InputError, match=r"needs f_i with 0 < mu <= L < inf, got mu=0 and L=inf.*method='newton'"):
            adom.solve(problem, NETWORK, method, rounds=10)
    with pytest.raises(InputError, match="method='newton'"):
        adom.constants(problem, NETWORK)


def test_a_penalised_model_without_intercept_runs_by_every_method():
    problem = adom.GLM(X / 10, TARGETS["gaussian"], NODES, intercept=False, l2=0.1)
    assert 1 < problem.kappa < np.inf
    nids = adom.solve(problem, adom.networks.ring(NODES), "nids", rounds=3000, rtol=1e-12)
    assert nids.status == "converged"


@pytest.mark.parametrize("ratio", [0.5, 1.0])
@pytest.mark.parametrize("family", ["gaussian", "logistic"])
def test_l1_and_elastic_nets_are_those_of_scikit_learn_with_the_same_zeros(family, ratio):
    scaled, strength = X / [1.0, 0.1, 10.0, 1.0], {"gaussian": 0.3, "logistic": 0.06}[family]
    l1, l2 = ratio * strength, (1 - ratio) * strength
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if family == "gaussian":
            known = ElasticNet(alpha=strength, l1_ratio=ratio, tol=1e-14, max_iter=10**6)
        else:
            options = {"l1_ratio": ratio, "penalty": "elasticnet", "solver": "saga", "tol": 1e-11, "max_iter": 10**6}
            known = LogisticRegression(C=1 / (SAMPLES * strength), **options)
        known.fit(scaled, TARGETS[family])
    problem = adom.GLM(scaled, TARGETS[family], NODES, family=family, l1=l1, l2=l2)
    model = fitted(problem)
    np.testing.assert_allclose(model.coefficients.ravel(), np.ravel(known.coef_), atol=1e-7)
    np.testing.assert_array_equal(model.coefficients.ravel() == 0, np.ravel(known.coef_) == 0)
    assert (model.coefficients == 0).any()
    assert "fit without" in model.summary().attrs["refused"]
    with pytest.raises(InputError, match="NIDS takes no penalty that is not smooth"):
        adom.solve(problem, NETWORK, "nids", rounds=10)


def test_an_l1_model_meets_its_own_conditions_however_ill_conditioned():
    rng = np.random.default_rng(3)
    H = np.stack([a @ a.T for a in rng.standard_normal((5, 12, 12)) * np.logspace(0, -4, 12)])
    b, l1 = rng.standard_normal((5, 12)), np.where(np.arange(12) % 3, 0.3, 0.0)
    with jax.enable_x64(True):
        x = np.asarray(sparse_minimum(H, b, l1, np.zeros((5, 12))))
    slope = b - np.einsum("nij,nj->ni", H, x)
    size = np.abs(b) + np.einsum("nij,nj->ni", np.abs(H), np.abs(x)) + l1
    zero = x == 0
    assert zero.any()
    assert not zero[:, ::3].any()  # where nothing is penalised
    assert (np.abs(slope) <= l1 + 1e-11 * size)[zero].all()
    assert (np.abs(slope - l1 * np.sign(x)) <= 1e-11 * size)[~zero].all()
