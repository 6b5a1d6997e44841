"""How the estimators behave: what they report, refuse, warn of, and work together with."""

import pickle
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import adom
from adom.errors import InputError
from adom.sklearn import (
    DecentralizedElasticNet,
    DecentralizedGammaRegressor,
    DecentralizedLogisticRegression,
    DecentralizedPoissonRegressor,
    DecentralizedRidge,
    fitting,
)
from adom.sklearn.estimators import remedies
from adom.sklearn.fitting import Fit

X, Y = make_classification(60, 4, random_state=1)
BY_GRADIENTS = {"method": "acc-gt"}
FREE = np.random.default_rng(3).standard_normal((60, 4))  # no column is a sum of others
TARGETS = X @ [1.0, -2.0, 0.5, 0.0] + Y


def theirs():
    return LogisticRegression(solver="newton-cholesky", tol=1e-13).fit(X, Y)


def test_newton_is_one_run():
    model = DecentralizedLogisticRegression().fit(X, Y)
    history, dim, ways = model.history_, 5, 2 * np.mean([model.network_.edges(k).shape[0] for k in range(20)])
    assert model.result_.provenance["method"]["name"] == "newton"
    assert history["stage"].unique().tolist() == [1]
    assert history["round"].iloc[-1] == model.n_iter_ < 60
    np.testing.assert_allclose(history["floats_sent"].iloc[-1], model.n_iter_ * ways * dim * (dim + 3) / 2, rtol=0.05)


def test_beyond_500_coordinates_gradients_are_exchanged():
    rng = np.random.default_rng(0)
    wide, narrow = rng.standard_normal((20, 501)), rng.standard_normal((20, 500))
    models = [DecentralizedRidge(fit_intercept=False, tol=0.5, network="complete") for _ in range(2)]
    names = [
        m.fit(A, A[:, 0]).result_.provenance["method"]["name"] for m, A in zip(models, (wide, narrow), strict=True)
    ]
    assert names == ["acc-gt", "newton"]


def test_a_fit_without_a_penalty_has_standard_errors():
    frame = pd.DataFrame(FREE, columns=list("abcd"))
    counts = np.random.default_rng(0).poisson(np.exp(0.3 * FREE[:, 0] + 0.5))
    model = DecentralizedPoissonRegressor(alpha=0.0).fit(frame, counts)
    table = model.result_.model().summary()
    assert list(table.index) == [*"abcd", "intercept"]
    np.testing.assert_allclose(table["estimate"], [*model.coef_, model.intercept_], rtol=1e-12)
    A, expected = np.column_stack([FREE, np.ones(60)]), model.predict(frame)
    errors = np.sqrt(np.diag(np.linalg.inv(A.T @ (A * expected[:, None]))))
    np.testing.assert_allclose(table["std_error"], errors, rtol=1e-8)


@pytest.mark.parametrize(
    ("estimator", "targets", "message"),
    [
        (DecentralizedLogisticRegression(C=np.inf, **BY_GRADIENTS), Y, "with C=inf is fitted by method 'newton' alone"),
        (DecentralizedLogisticRegression(l1_ratio=0.5, **BY_GRADIENTS), Y, "with l1_ratio=0.5 is fitted by method"),
        (DecentralizedRidge(alpha=0, **BY_GRADIENTS), Y, "with alpha=0 is fitted by method 'newton' alone"),
        (DecentralizedElasticNet(**BY_GRADIENTS), Y, "with an l1 penalty is fitted by method 'newton' alone"),
        (DecentralizedPoissonRegressor(**BY_GRADIENTS), Y, "with a poisson loss is .* got 'acc-gt'; leave method out"),
        (DecentralizedLogisticRegression(l1_ratio=1.5), Y, "l1_ratio must be a finite number at least 0 and at most 1"),
        (DecentralizedElasticNet(l1_ratio="a"), Y, "l1_ratio must be a finite number"),
        (DecentralizedLogisticRegression(C=np.inf), np.arange(60) % 3, "C=inf is for two classes, got 3"),
        (DecentralizedLogisticRegression(C=np.inf), FREE[:, 0] > 0.1, "the data have no best answer.*direction of x1"),
        (DecentralizedPoissonRegressor(), -Y, "y must be counts of at least 0 for a poisson model, got -1"),
        (DecentralizedPoissonRegressor(), 0 * Y, "all y are 0, so the intercept would go to minus infinity"),
        (DecentralizedGammaRegressor(), Y, "y must be positive numbers for a gamma model, got 0"),
    ],
)
def test_what_a_model_cannot_do_is_refused_in_one_line(estimator, targets, message):
    with pytest.raises(InputError, match=message) as caught:
        estimator.fit(FREE, targets)
    assert "\n" not in str(caught.value)


def test_history_counts_everything():
    model = DecentralizedLogisticRegression(**BY_GRADIENTS).fit(X, Y)
    history = model.history_
    assert list(history.columns[:3]) == ["stage", "iteration", "round"]
    assert history["stage"].unique().tolist() == list(range(1, history["stage"].max() + 1))
    for name in ("iteration", "round", "gradients", "floats_sent", "seconds"):
        assert (np.diff(history[name]) >= 0).all(), name
    assert history["round"].iloc[-1] == model.n_iter_
    # ADOM+ takes one gradient a round, so what is more are rounds of averaging: of the features' mean and the classes'
    # weights before all, of rows and of gradients before every run but the first.
    runs = history["stage"].iloc[-1]
    chi = model.network_.chi
    averaging = fitting.rounds_to_average(chi, 1e-12) + 2 * (runs - 1) * fitting.rounds_to_average(chi, 1e-3)
    assert model.n_iter_ - history["gradients"].iloc[-1] == averaging
    assert model.result_.provenance["stages"] == runs


def test_floats_sent_are_those_of_runs_and_of_averaging():
    # 12 ways to send
    model = DecentralizedRidge(network="complete", nodes=4, method="adom+", parameters="theory").fit(X, TARGETS)
    runs = model.history_["stage"].iloc[-1]
    rounds = model.history_["iteration"].iloc[-1]
    numbers = 2 * 4 * rounds + (4 + 2) + 2 * (runs - 1) * 4  # two vectors a round; means; rows and gradients
    assert model.history_["floats_sent"].iloc[-1] == 12 * numbers


def test_every_node_has_the_model():
    model = DecentralizedLogisticRegression(nodes=6, network="ring").fit(X, Y)
    assert model.result_.x.shape == (6, 5)
    everything = np.append(model.coef_, model.intercept_)
    np.testing.assert_allclose(model.result_.x.mean(axis=0), everything, rtol=1e-12)
    np.testing.assert_allclose(model.result_.x, np.tile(everything, (6, 1)), rtol=1e-7)


@pytest.mark.parametrize("method", ["auto", "acc-gt"])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_the_tolerance_is_met_and_not_by_far_exceeded(tol, method):
    model = DecentralizedRidge(method=method, tol=tol, fit_intercept=False).fit(X, TARGETS)
    answer = Ridge(fit_intercept=False).fit(X, TARGETS).coef_
    distance = np.sqrt(((model.result_.x[:, :4] - answer) ** 2).sum(axis=1).mean()) / np.linalg.norm(answer)
    assert tol / 100 < distance <= tol * (1 + 1e-9)


@pytest.mark.parametrize("method", ["auto", "acc-gt"])
def test_a_warm_start_takes_fewer_rounds(method):
    for model, y, change in (
        (DecentralizedLogisticRegression(method=method, warm_start=True), Y, {"C": 1.01}),
        (DecentralizedRidge(method=method, warm_start=True), TARGETS, {"alpha": 1.01}),
    ):
        cold = model.fit(X, y).n_iter_
        again = model.fit(X, y).n_iter_
        if method == "auto":  # Newton's rounds are those of averaging, from wherever it starts
            assert again <= cold
        else:
            assert again < cold / 2
            assert model.history_["gradients"].iloc[-1] <= 20
        before = model.coef_
        changed = model.set_params(**change).fit(X, y).n_iter_
        assert again <= changed <= cold if method == "auto" else again < changed < cold
        np.testing.assert_allclose(model.coef_, clone(model).fit(X, y).coef_, rtol=1e-8)
        assert not np.allclose(model.coef_, before, rtol=1e-5)
        cold_again = model.set_params(warm_start=False, **dict.fromkeys(change, 1.0)).fit(X, y).n_iter_
        assert cold_again == cold


def test_a_warm_start_from_another_kind_of_fit_is_a_cold_one():
    model = DecentralizedLogisticRegression(warm_start=True).fit(X, Y)
    other = np.where(Y, "a", "b")
    assert model.fit(X, other).n_iter_ == DecentralizedLogisticRegression().fit(X, other).n_iter_
    narrow = model.fit(X[:, :3], Y)
    assert narrow.coef_.shape == (1, 3)


def test_reaching_the_budget_is_warned_of():
    model = DecentralizedLogisticRegression(max_rounds=300, **BY_GRADIENTS)
    with pytest.warns(ConvergenceWarning, match="max_rounds=300 was reached .kappa .*, chi .*scale the features"):
        model.fit(X, Y)
    assert model.n_iter_ <= 300
    assert model.result_.status == "max_rounds"
    answer = np.append(theirs().coef_, theirs().intercept_)
    away = np.linalg.norm(np.append(model.coef_, model.intercept_) - answer) / np.linalg.norm(answer)
    assert 1e-10 < away < 0.1  # not there, but on the way


def test_a_budget_that_newton_reaches_is_warned_of():
    with pytest.warns(ConvergenceWarning, match=r"max_rounds=9 was reached .*; allow more rounds$"):
        model = DecentralizedLogisticRegression(max_rounds=9).fit(X, Y)
    assert (model.n_iter_, model.result_.status) == (9, "max_rounds")


def test_where_unit_parameters_diverge_those_found_on_the_way_do_not():
    # On a ring that does not change, ADOM+ with unit's parameters diverges.
    bold = DecentralizedLogisticRegression(network="ring", method="adom+", parameters="unit")
    with pytest.warns(ConvergenceWarning, match="diverged with parameters='unit'.*parameters='theory'"):
        bold.fit(X, Y)
    assert bold.result_.status == "diverged"
    assert not bold.coef_.any()  # nothing came of it
    auto = DecentralizedLogisticRegression(network="ring", method="adom+").fit(X, Y)
    assert auto.result_.status == "converged"
    assert auto.result_.provenance["protocol"] == "auto"
    theory = DecentralizedLogisticRegression(network="ring", method="adom+", parameters="theory").fit(X, Y)
    assert auto.n_iter_ < theory.n_iter_
    np.testing.assert_allclose(auto.coef_, theory.coef_, rtol=1e-7)


def test_acc_gt_serves_networks_that_hardly_change_too():
    features, labels = make_classification(300, 6, random_state=1)
    for network in ("ring", adom.networks.alternate([adom.networks.ring(20), adom.networks.star(20)], every=20)):
        model = DecentralizedLogisticRegression(nodes=20, network=network, C=10.0, **BY_GRADIENTS).fit(features, labels)
        assert model.result_.status == "converged"
        assert model.n_iter_ < 20_000
        central = LogisticRegression(C=10.0, solver="newton-cholesky", tol=1e-12).fit(features, labels)
        np.testing.assert_allclose(model.coef_, central.coef_, rtol=1e-6)


def test_a_budget_that_ends_while_the_error_grows_is_not_advised_to_be_larger():
    bold = DecentralizedLogisticRegression(network="ring", method="adom+", parameters="unit", max_rounds=450)
    with pytest.warns(ConvergenceWarning, match="growing with parameters='unit'.*parameters='theory'") as said:
        bold.fit(X, Y)
    assert "more rounds" not in str(said[0].message)
    assert bold.result_.status == "growing"
    assert not bold.coef_.any()  # what it came to is farther away than the start


@pytest.mark.parametrize(
    ("status", "protocol", "oracle", "last"),
    [
        ("max_rounds", "unit", "gd:1", "allow more rounds"),
        ("diverged", "theory", None, "regularise more"),
        ("diverged", "theory", "gd:1", "take oracle='exact'"),
        ("growing", "unit", "exact", "take parameters='theory', which is proved to converge"),
        ("stalled", "unit", "exact", "choose a larger tol"),
        ("stages", "unit", "auto", "choose a larger tol"),
    ],
)
def test_remedies_are_none_that_were_tried(status, protocol, oracle, last):
    run = SimpleNamespace(provenance={"protocol": protocol, "oracle": oracle, "method": {"name": "adom"}}, unproved="")
    assert remedies(Fit(np.zeros((1, 1)), status, run))[-1] == last


def test_fewer_samples_than_nodes_make_fewer_nodes():
    model = DecentralizedLogisticRegression(nodes=50).fit(X[:5], [0, 1, 1, 0, 1])
    assert model.network_.nodes == 5
    answer = LogisticRegression(solver="newton-cholesky", tol=1e-13).fit(X[:5], [0, 1, 1, 0, 1])
    np.testing.assert_allclose(model.coef_, answer.coef_, rtol=1e-7)
    two = DecentralizedRidge().fit(X[:2], [1.0, 2.0])
    assert two.network_.nodes == 2
    np.testing.assert_allclose(two.coef_, Ridge().fit(X[:2], [1.0, 2.0]).coef_, rtol=1e-7)


@pytest.mark.parametrize(
    ("network", "nodes", "found"),
    [
        (adom.networks.star(6), None, 6),
        (adom.networks.star(6), 6, 6),
        (adom.networks.star, 5, 5),
        (lambda nodes: adom.networks.geometric(nodes, 0.5, graphs=3, seed=2), None, 10),
        ("geometric", 7, 7),
        ("erdos_renyi", 7, 7),
        ("ring", 2, 2),
        ("path", 3, 3),
        ("expander", 2, 2),
        ("expander", 3, 3),
        ("expander", 13, 13),
    ],
)
def test_networks_of_every_form(network, nodes, found):
    model = DecentralizedRidge(network=network, nodes=nodes, tol=1e-6).fit(X, TARGETS)
    assert model.network_.nodes == found
    np.testing.assert_allclose(model.coef_, Ridge().fit(X, TARGETS).coef_, atol=1e-5)


@pytest.mark.parametrize(
    ("method", "parameters", "network"),
    [
        ("adom", "theory", "expander"),
        ("acc-gt", "unit", "expander"),
        ("mudag", "theory", "expander"),
        ("diging", "tuned", "complete"),
        ("push-pull", "unit", adom.networks.directed_ring(4)),
        ("adom+", {"protocol": "theory", "zeta": 0.4}, "expander"),
    ],
)
def test_every_method_comes_to_the_same(method, parameters, network):
    model = DecentralizedRidge(method=method, parameters=parameters, network=network, tol=1e-5).fit(X, TARGETS)
    np.testing.assert_allclose(model.coef_, Ridge().fit(X, TARGETS).coef_, atol=1e-4)
    assert model.result_.provenance["method"]["name"] == method


def test_seeds():
    first, same, other = (DecentralizedLogisticRegression(random_state=seed).fit(X, Y) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.coef_, same.coef_)
    assert not np.array_equal(first.coef_, other.coef_)
    np.testing.assert_allclose(first.coef_, other.coef_, rtol=1e-8)
    drawn = [DecentralizedRidge(random_state=np.random.RandomState(3)).fit(X, TARGETS).coef_ for _ in range(2)]
    np.testing.assert_array_equal(*drawn)
    assert DecentralizedRidge(random_state=None).fit(X, TARGETS).result_.status == "converged"


def test_pipelines_searches_and_copies():
    pipeline = make_pipeline(StandardScaler(), DecentralizedLogisticRegression(tol=1e-6))
    grid = {"decentralizedlogisticregression__C": [0.01, 10.0]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, Y)
    expected = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [0.01, 10.0]}, cv=3
    ).fit(X, Y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])
    np.testing.assert_allclose(
        cross_val_score(DecentralizedRidge(), X, TARGETS, cv=3), cross_val_score(Ridge(), X, TARGETS, cv=3), rtol=1e-7
    )
    model = DecentralizedLogisticRegression(nodes=4, network=adom.networks.ring(4)).fit(X, Y)
    thawed = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(thawed.predict_proba(X), model.predict_proba(X))
    assert thawed.network_.nodes == 4
    assert clone(model).get_params()["network"].nodes == 4


def test_logarithms_of_probabilities_do_not_underflow():
    model = DecentralizedLogisticRegression().fit(X, Y)
    far = 1e5 * model.coef_  # in the middle of class 1
    assert model.predict_proba(far)[0, 0] == 0.0
    assert np.isfinite(model.predict_log_proba(far)).all()
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-12)


def test_a_result_is_saved_and_read_again(tmp_path):
    model = DecentralizedRidge(tol=1e-4).fit(X, TARGETS)
    again = adom.load(model.result_.save(tmp_path / "fit.npz"))
    np.testing.assert_array_equal(again.history["stage"], model.history_["stage"])
    assert again.provenance["stages"] == model.history_["stage"].max()


def test_ctrl_c_ends_a_fit(monkeypatch):
    real = fitting.solve
    monkeypatch.setattr(fitting, "solve", lambda *a, **k: replace(real(*a, **k), status="interrupted"))
    with pytest.raises(KeyboardInterrupt):
        DecentralizedRidge().fit(X, TARGETS)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nodes": 1}, "nodes must be a whole number of at least 2, got 1"),
        ({"nodes": 2.5}, "nodes must be a whole number"),
        ({"nodes": 5, "network": adom.networks.ring(6)}, "nodes=5 does not match the network, which has 6"),
        ({"network": adom.networks.ring(61)}, "61 nodes cannot share 60 samples"),
        ({"network": "rign"}, r"unknown network 'rign'; did you mean 'ring'\? known: expander, geometric"),
        ({"network": 3}, "network must be a name, an adom network or a function of the number of nodes, got int"),
        ({"network": lambda nodes: adom.networks.ring(nodes + 1)}, r"network\(10\) must return an adom network of 10"),
        ({"network": adom.networks.directed_ring(4)}, "needs links that go both ways"),
        ({"split": "at random"}, "samples cannot be split 'at random'"),
        ({"method": "adam"}, "unknown method 'adam'; did you mean"),
        ({"parameters": "best"}, "parameters must be one of"),
        ({"oracle": "exact"}, "uses gradients, not a dual oracle"),
        ({"tol": 0.0}, "tol must lie between 0 and 1, got 0.0"),
        ({"max_rounds": 0}, "max_rounds must be a whole number of at least 1, got 0"),
        ({"max_rounds": 5, **BY_GRADIENTS}, "max_rounds=5 does not cover the first step: averaging takes .* rounds"),
        ({"random_state": -1}, "random_state must be a whole number of at least 0, got -1; None takes"),
    ],
)
@pytest.mark.parametrize("estimator", [DecentralizedLogisticRegression, DecentralizedRidge])
def test_bad_settings_are_refused_in_one_line(estimator, given, message):
    with pytest.raises(InputError, match=message) as caught:
        estimator(**given).fit(X, Y)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("C", [-1.0, np.nan, 10**400, "1", True, 1j, None, np.ones(1), 1e-300, 1e300])
def test_regularisation_is_a_positive_number_that_can_be_computed_with(C):
    rule = r"must be a finite number at least 1e-75 and at most 1e\+75, got"
    with pytest.raises(InputError, match=f"C {rule}"):
        DecentralizedLogisticRegression(C=C).fit(X, Y)
    with pytest.raises(InputError, match=f"alpha {rule}"):
        DecentralizedRidge(alpha=C).fit(X, Y)


def test_no_penalty_is_an_infinite_C_and_an_alpha_of_0():
    with pytest.raises(InputError, match=r"C must be .* got 0\.0; or inf for no penalty"):
        DecentralizedLogisticRegression(C=0.0).fit(X, Y)
    with pytest.raises(InputError, match=r"alpha must be .* got inf; or 0 for no penalty"):
        DecentralizedRidge(alpha=np.inf).fit(X, Y)


@pytest.mark.parametrize("estimator", [DecentralizedLogisticRegression, DecentralizedRidge])
@pytest.mark.parametrize(
    ("features", "weights", "message"),
    [
        (X * 1e200, None, r"X\[0, 0\] is .*e\+\d*; numbers must be at most 1e\+75"),
        (sp.csr_array(X * 1e200), None, r"X\[0, 0\] is .*e\+\d*; numbers must be at most 1e\+75"),
        (np.ma.masked_less(X, 0), None, "X must have no gaps, got masked values"),
        (X, np.full(60, 1e300), r"sample_weight\[0\] is 1e\+300"),
        (X, np.full(60, np.inf), r"sample_weight\[0\] is inf"),
        (X, np.full(60, 1e-300), "sample_weight must be 0 or more, and positive for some"),
        (X, np.ones(60) * 1j, "sample_weight must be real numbers"),
    ],
)
def test_data_that_cannot_be_computed_with_are_refused(estimator, features, weights, message):
    with pytest.raises(InputError, match=message):
        estimator().fit(features, Y, weights)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf, "a", 1j, None, 1e300])
def test_class_weights_are_numbers_of_at_least_0(weight):
    with pytest.raises(InputError, match=r"class_weight\[0\] must"):
        DecentralizedLogisticRegression(class_weight={0: weight, 1: 1.0}).fit(X, Y)


def test_features_without_information_give_coefficients_of_zero():
    labels = np.tile([0, 1], 15)
    model = DecentralizedLogisticRegression(nodes=3, network="complete", tol=1e-6).fit(np.zeros((30, 2)), labels)
    assert model.result_.status == "converged"
    assert np.abs([*model.coef_[0], *model.intercept_]).max() < 1e-15


@pytest.mark.parametrize(
    ("labels", "weights", "message"),
    [
        (np.zeros(60, dtype=int), None, "y has one class only, 0"),
        (Y, Y.astype(float), "no sample of class 0 has a positive weight"),
        (Y, -np.ones(60), "sample_weight must be 0 or more, and positive for some sample, got a smallest of -1"),
    ],
)
def test_data_without_an_answer_are_refused(labels, weights, message):
    with pytest.raises(InputError, match=message):
        DecentralizedLogisticRegression().fit(X, labels, weights)


def test_a_class_without_weight_has_an_answer_without_an_intercept():
    model = DecentralizedLogisticRegression(fit_intercept=False).fit(X, Y, Y)
    answer = LogisticRegression(fit_intercept=False, solver="newton-cholesky", tol=1e-13).fit(X, Y, Y)
    np.testing.assert_allclose(model.coef_, answer.coef_, rtol=1e-7)


def test_neither_package_loads_the_other():
    code = "import sys, adom; assert not {'sklearn', 'jax', 'adom.sklearn'} & set(sys.modules), sorted(sys.modules)"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
