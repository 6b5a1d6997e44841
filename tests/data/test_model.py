"""The model file: what is saved is what is loaded, it predicts as scikit-learn does, and nonsense is one line."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import adom
from adom.data.model import Model, load_model

NAMES = ("age", "height", "dose")


def fitted(kind):
    """Samples, labels, scikit-learn's pipeline on them, and the same as a model of ours."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 3)) * [1, 10, 0.1] + [0, 5, 1]
    score = X[:, 0] - 0.2 * X[:, 1] + rng.standard_normal(60)
    y = score if kind == "ridge" else np.array(["low", "mid", "top"])[np.digitize(score, [-1.5, 0.0])]
    if kind == "logistic":
        y = np.where(y == "mid", "low", y)
    estimator = make_pipeline(StandardScaler(), Ridge() if kind == "ridge" else LogisticRegression(tol=1e-10)).fit(X, y)
    scaler, last = estimator
    penalty = {"alpha": 1.0} if kind == "ridge" else {"C": 1.0}
    model = Model(
        kind, np.atleast_2d(last.coef_), np.atleast_1d(last.intercept_), NAMES,
        tuple(getattr(last, "classes_", ())), scaler.mean_, scaler.scale_, "level", penalty, {"samples": 60},
    )  # fmt: skip
    return X, y, estimator, model


@pytest.mark.parametrize("kind", ["logistic", "softmax", "ridge"])
def test_a_model_is_scikit_learns_before_and_after_its_file(kind, tmp_path):
    X, y, estimator, model = fitted(kind)
    back = load_model(model.save(tmp_path / "model.json"))
    again = back.to_sklearn()
    mixed = pd.DataFrame(X, columns=list(NAMES)).assign(other="text")[["other", "dose", "age", "height"]]
    for ours, table in ((model, X), (back, X), (back, mixed), (back, sp.csr_array(X))):
        predicted = ours.predict(table)
        if kind == "ridge":
            np.testing.assert_allclose(predicted, estimator.predict(X), 1e-12)
            with pytest.raises(adom.InputError, match="no classes"):
                ours.predict_proba(table)
        else:
            assert (predicted == estimator.predict(X)).all()
            np.testing.assert_allclose(ours.predict_proba(table), estimator.predict_proba(X), 1e-12)
            np.testing.assert_allclose(ours.decision_function(table), estimator.decision_function(X), 1e-10, 1e-12)
        assert ours.score(table, y) == pytest.approx(estimator.score(X, y), abs=1e-12)
    repeated, expected = again.predict(pd.DataFrame(X, columns=list(NAMES))), estimator.predict(X)
    assert np.allclose(repeated, expected, 1e-12) if kind == "ridge" else (repeated == expected).all()
    for name in ("coefficients", "intercept", "means", "scales"):
        assert (getattr(back, name) == getattr(model, name)).all(), name
    assert (back.features, back.classes, back.target, back.penalty) == (NAMES, model.classes, "level", model.penalty)
    parts = [back.sums(X[part], y[part]) for part in (slice(25), slice(25, None))]
    assert adom.data.model.score_of(sum(parts)) == pytest.approx(estimator.score(X, y), abs=1e-12)


def test_columns_that_are_missing_are_named():
    X, _, _, model = fitted("logistic")
    with pytest.raises(adom.InputError, match=r"2 of the 3 columns .* missing: age, dose; add them"):
        model.predict(pd.DataFrame(X, columns=["years", "height", "amount"]))
    with pytest.raises(adom.InputError, match="X has 2 features, and the model 3: age, height, dose"):
        model.predict(X[:, :2])
    with pytest.raises(adom.InputError, match="several columns named 'age'"):
        model.predict(pd.DataFrame(np.hstack([X, X]), columns=[*NAMES, *NAMES]))
    with pytest.raises(adom.InputError, match=r"classes of the model are 'low', 'top'"):
        model.score(X, np.zeros(60))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(format="adom-model-9"), "format"),
        (lambda d: d.pop("classes"), "0 classes"),
        (lambda d: d["coefficients"][0].pop(), "shapes"),
        (lambda d: d["coefficients"].append([1.0]), "different lengths"),
        (lambda d: d["scales"].__setitem__(1, 0.0), "scale is not positive"),
        (lambda d: d["features"].__setitem__(1, "age"), "named twice"),
        (lambda d: d["coefficients"][0].__setitem__(0, "nan"), "coefficients.0.0"),
        (lambda d: d["coefficients"][0].__setitem__(0, float("nan")), "finite"),
        (lambda d: d.update(more=1), "more"),
        (lambda d: d.update(kind="forest"), "kind"),
    ],
)
def test_a_file_that_does_not_fit_together_is_refused_in_one_line(change, words, tmp_path):
    content = json.loads(fitted("logistic")[-1].save(tmp_path / "model.json").read_text())
    del content["sealed"], content["sha256"]  # as a file that somebody else writes
    (tmp_path / "own.json").write_text(json.dumps(content))
    assert load_model(tmp_path / "own.json").kind == "logistic"
    change(content)
    (tmp_path / "wrong.json").write_text(json.dumps(content))
    with pytest.raises(adom.InputError, match=words) as refused:
        load_model(tmp_path / "wrong.json")
    assert "\n" not in str(refused.value)
    assert "fit and save again" in str(refused.value)


def test_a_changed_cut_or_absent_file_is_refused(tmp_path):
    path = fitted("ridge")[-1].save(tmp_path / "model.json")
    text = path.read_text()
    path.write_text(text.replace('"level"', '"lever"'))
    with pytest.raises(adom.InputError, match="it was changed"):
        load_model(path)
    path.write_text(text[: len(text) // 2])
    with pytest.raises(adom.InputError, match="JSON cannot be read"):
        load_model(path)
    with pytest.raises(adom.InputError, match="No such file"):
        load_model(tmp_path / "none.json")
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]  # nothing half written is left


def test_a_result_becomes_a_model(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 2))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(30) > 0, "ill", "well")
    problem = adom.LogisticRegression(X, y, nodes=3, l2=1 / (30 * 0.5))
    result = adom.solve(problem, adom.networks.ring(3), parameters="unit", oracle="exact", rounds=400, tol=1e-20)
    model = adom.load(result.save(tmp_path / "r.npz")).model()
    assert (model.classes, model.features) == (("ill", "well"), ("x1", "x2"))
    assert model.penalty == {"l2": problem.l2, "C": pytest.approx(0.5)}
    pooled = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(result.to_sklearn().coef_, pooled.coef_, atol=1e-6)
    assert (result.to_sklearn().predict(X) == pooled.predict(X)).all()
    other = adom.Quadratic([[[1.0]], [[2.0]]], [[1.0], [0.0]])
    quadratic = adom.solve(other, adom.networks.path(2), parameters="unit", rounds=5)
    with pytest.raises(adom.InputError, match="a result of Quadratic is not a linear model"):
        quadratic.to_sklearn()
