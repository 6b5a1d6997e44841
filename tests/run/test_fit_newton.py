"""Fits by Newton to data that lie apart: one run, free intercepts, no penalty needed, errors as of statsmodels."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import statsmodels.api as sm

import adom
from adom.data import node_sums
from adom.data.node_shards import write_shard
from adom.data.node_sums import NodeSums
from adom.data.preparing import agree
from adom.run.ranks import on_ranks
from support import apart, mpi_program
from support.ranks import needs_mpi, run

COUNTS = (40, 25, 60, 30)
NODES = len(COUNTS)


def frame(target, seed=0):
    """Return a table whose features have different scales and are far from 0."""
    rng = np.random.default_rng(seed)
    samples = sum(COUNTS)
    table = pd.DataFrame({"age": rng.normal(50, 10, samples), "dose": rng.exponential(0.3, samples)})
    table["weight"] = rng.normal(70, 15, samples) + 0.3 * table["age"]
    t = 0.03 * (table["age"] - 50) - table["dose"] + 0.01 * (table["weight"] - 85)
    table["target"] = {
        "ridge": lambda: 5 + 10 * t + rng.standard_normal(samples),
        "logistic": lambda: np.where(rng.random(samples) < 1 / (1 + np.exp(-3 * t)), "yes", "no"),
        "poisson": lambda: rng.poisson(np.exp(1 + t)),
        "gamma": lambda: rng.gamma(3.0, np.exp(1 + t) / 3),
        "huber": lambda: t + rng.standard_t(1.5, samples),
        "squared-hinge": lambda: np.where(t + 0.5 * rng.standard_normal(samples) > 0, 1, 0),
        "separable": lambda: np.where(t > 0, 1, 0),
    }[target]()
    return table.sort_values("target") if target in ("logistic", "poisson") else table  # nodes may differ much


def shards(folder, table, **settings):
    parts = np.split(np.arange(len(table)), np.cumsum(COUNTS)[:-1])
    for node, rows in zip("abcd", parts, strict=True):
        table.iloc[rows].to_csv(folder / f"{node}.csv", index=False)
        write_shard(folder / f"{node}.csv", node, folder / "shards", target="target")
    return adom.NodeData(folder / "shards", **settings)


def fitted(data, **more):
    result = adom.solve(data, adom.networks.ring(data.nodes), "newton", **more)
    assert result.status == "converged", result
    assert result.history["stage"].unique().tolist() == [1]
    return result


FAMILIES = {
    "ridge": None,
    "logistic": sm.families.Binomial(),
    "poisson": sm.families.Poisson(),
    "gamma": sm.families.Gamma(sm.families.links.Log()),
}


def expected(table, model, *, scale, intercept=True):
    """Return statsmodels' fit to the pooled table, as the model counts features."""
    X = table.drop(columns="target")
    if scale:
        X = (X - X.mean()) / X.std(ddof=0)
    y = (table["target"] == "yes").astype(float) if model == "logistic" else table["target"]
    X = X.assign(intercept=1.0) if intercept else X
    if model == "ridge":
        return sm.OLS(y, X).fit()
    return sm.GLM(y, X, family=FAMILIES[model]).fit(tol=1e-14, maxiter=100)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("model", FAMILIES)
def test_estimates_and_errors_are_those_of_statsmodels(tmp_path, model, scale):
    table = frame(model)
    result = fitted(shards(tmp_path, table, model=model, l2=0.0, scale=scale), rounds=500)
    loaded = adom.load_model(result.model().save(tmp_path / "model.json"))
    shown, right = loaded.summary(), expected(table, model, scale=scale)
    assert list(shown.index) == list(right.params.index)
    columns = {"estimate": right.params, "std_error": right.bse, "z": right.tvalues, "p_value": right.pvalues}
    limits = right.conf_int()
    for name, column in {**columns, "lower": limits[0], "upper": limits[1]}.items():
        np.testing.assert_allclose(shown[name], column, rtol=1e-5, atol=1e-7, err_msg=name)
    robust = expected(table, model, scale=scale).get_robustcov_results("HC0") if model == "ridge" else None
    if robust is not None:
        np.testing.assert_allclose(loaded.summary(robust=True)["std_error"], robust.bse, rtol=1e-6)
    facts = shown.attrs
    assert (facts["samples"], facts["nodes"]) == (sum(COUNTS), NODES)
    np.testing.assert_allclose(facts["log_likelihood"], right.llf, rtol=1e-8)
    np.testing.assert_allclose(facts["aic"], right.aic, rtol=1e-8)
    np.testing.assert_allclose(facts["deviance"], right.ssr if model == "ridge" else right.deviance, rtol=1e-8)
    np.testing.assert_allclose(facts["dispersion"], right.scale, rtol=1e-6)
    assert result.provenance["error_bound"] <= result.provenance["tol"]
    assert 0 < result.last["round"] < 150


def of_scikit_learn(model, X, y):
    from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor
    from sklearn.svm import LinearSVC

    found = {
        "poisson": lambda: PoissonRegressor(alpha=0.3, tol=1e-12, max_iter=10_000, solver="newton-cholesky"),
        "gamma": lambda: GammaRegressor(alpha=0.3, tol=1e-12, max_iter=10_000, solver="newton-cholesky"),
        "logistic": lambda: LogisticRegression(C=0.3, tol=1e-13, max_iter=1000, solver="newton-cholesky"),
        "squared-hinge": lambda: LinearSVC(C=0.3, tol=1e-12, max_iter=100_000, intercept_scaling=1e4),
    }[model]()
    return found.fit(X, y)


@pytest.mark.parametrize("model", ["poisson", "gamma", "logistic", "squared-hinge"])
def test_penalties_are_counted_as_by_scikit_learn(tmp_path, model):
    table = frame(model)
    own = {"C": 0.3} if model in ("logistic", "squared-hinge") else {"alpha": 0.3}
    data = shards(tmp_path, table, model=model, scale=True, **own)
    found = fitted(data).model()
    X = table.drop(columns="target").to_numpy()
    right = of_scikit_learn(model, (X - X.mean(axis=0)) / X.std(axis=0), table["target"])
    near = 1e-3 if model == "squared-hinge" else 1e-6  # LinearSVC penalises its intercept a little
    np.testing.assert_allclose(found.coefficients[0], np.ravel(right.coef_), rtol=0, atol=near)
    np.testing.assert_allclose(found.intercept[0], np.ravel(right.intercept_)[0], rtol=0, atol=near)
    assert found.penalty.items() >= {name: pytest.approx(value) for name, value in own.items()}.items()
    assert "likelihood" in found.summary().attrs["refused"] or "penalty" in found.summary().attrs["refused"]
    some = table.drop(columns="target")[:5]
    if model != "squared-hinge":
        assert found.to_sklearn().predict(some).tolist() == pytest.approx(found.predict(some).tolist())


@pytest.mark.parametrize("settings", [{"l2": 0.1}, {"alpha": 0.0}, {"kappa": 100.0}])
def test_losses_with_kinks_and_any_penalty(tmp_path, settings):
    """The middle of the fit has no slope, which shows that it is the answer."""
    table = frame("huber")
    found = fitted(shards(tmp_path, table, model="huber", scale=True, **settings)).model()
    X = table.drop(columns="target").to_numpy()
    residuals = found.decision_function(X) - table["target"]
    slopes = np.clip(residuals, -1.35, 1.35)
    A = (X - found.means) / found.scales
    np.testing.assert_allclose(A.T @ slopes / len(A) + found.penalty["l2"] * found.coefficients[0], 0, atol=1e-8)
    assert abs(slopes.mean()) < 1e-8


def test_three_classes_without_a_penalty(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(50, 10, sum(COUNTS)), "dose": rng.exponential(0.3, sum(COUNTS))})
    scores = np.stack([0 * table["age"], (table["age"] - 50) / 10, 2 * table["dose"]], axis=1)
    table["target"] = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    model = fitted(shards(tmp_path, table, C=np.inf)).model()
    right = sm.MNLogit(table["target"], sm.add_constant(table[["age", "dose"]])).fit(
        disp=False, method="newton", tol=1e-10
    )
    rows = np.column_stack([model.intercept, model.coefficients])
    np.testing.assert_allclose(rows[1:] - rows[0], right.params.T, rtol=1e-6, atol=1e-7)
    shown = model.summary()
    assert shown.index.names == ["class", "column"]
    assert len(shown) == 9
    assert "errors of a softmax model are not computed" in shown.attrs["refused"]


@pytest.mark.parametrize("settings", [{}, {"memory": 1000.0}, {"intercept": False}, {"count": "nodes"}], ids=str)
def test_sparse_streamed_and_other_settings(tmp_path, settings):
    rng = np.random.default_rng(0)
    A = sp.random_array((90, 6), density=0.4, rng=rng, format="csr")
    y = rng.poisson(np.exp(A @ rng.standard_normal(6)))
    from sklearn.datasets import dump_svmlight_file

    parts = np.split(np.arange(90), [20, 50])
    for node, rows in zip("abc", parts, strict=True):
        dump_svmlight_file(A[rows], y[rows], str(tmp_path / f"{node}.svm"), zero_based=False)
        write_shard(tmp_path / f"{node}.svm", node, tmp_path / "shards", dim=6)
    data = adom.NodeData(tmp_path / "shards", model="poisson", l2=0.0, scale=True, **settings)
    model = fitted(data).model()
    X = A.toarray() / A.toarray().std(axis=0)
    if data.intercept:
        X = np.column_stack([X, np.ones(90)])
    weights = np.concatenate([np.full(len(rows), 90 / 3 / len(rows)) for rows in parts]) if data.count == "nodes" else 1
    right = sm.GLM(y, X, sm.families.Poisson(), freq_weights=np.broadcast_to(weights, 90)).fit(tol=1e-14)
    found = model.coefficients[0] if not data.intercept else np.append(model.coefficients[0], model.intercept)
    np.testing.assert_allclose(found, right.params, rtol=1e-6, atol=1e-7)
    if data.count == "nodes":
        assert "samples that count alike" in model.summary().attrs["refused"]
    else:
        np.testing.assert_allclose(model.summary()["std_error"], right.bse, rtol=1e-6)


@needs_mpi
def test_the_same_bits_on_any_number_of_ranks(tmp_path):
    """Also after a run that was cut short, and goes on from its checkpoints."""
    alone = {}
    for name, settings in mpi_program.NEWTON.items():
        (tmp_path / name).mkdir()
        alone[name] = fitted(shards(tmp_path / name, frame(settings["model"]), **settings), record_every=10)
    for ranks in (2, 4):
        code, out = run(ranks, "newton", tmp_path)
        assert code == 0, out
        for name, one in alone.items():
            several = adom.load(tmp_path / f"{name}-{ranks}.npz")
            np.testing.assert_array_equal(several.x, one.x)
            same = ("round", "floats_sent", "gradients", "stage")
            pd.testing.assert_frame_equal(several.history[[*same]], one.history[[*same]])
            assert several.model().inference == one.model().inference


def test_what_has_no_answer_is_refused_by_name(tmp_path):
    table = frame("poisson")
    twice = table.assign(both=table["age"] + table["dose"])
    apart_ = frame("separable")
    for number, (given, settings, words) in enumerate(
        (
            (
                twice,
                {"model": "poisson", "alpha": 0.0},
                "columns are aliased, so infinitely many answers fit alike: age, dose, both; leave",
            ),
            (apart_, {"C": np.inf}, "target has no best answer without a penalty: its classes can be told apart"),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(adom.InputError, match=words):
            adom.solve(shards(folder, given, **settings), adom.networks.ring(NODES), "newton", rounds=2000)


def test_methods_that_need_bounds_name_newton(tmp_path):
    data = shards(tmp_path, frame("poisson"), model="poisson")
    for settings, words in (
        ({"model": "poisson"}, "ADOM\\+ needs a loss with a greatest curvature, got model='poisson'; take method='new"),
        ({"C": np.inf}, "ADOM\\+ needs a penalty, got C=inf; take method='newton', or give C=1"),
        ({"model": "ridge", "l2": 0.0}, "needs a penalty, got l2=0; take method='newton', or give l2=1"),
    ):
        with pytest.raises(adom.InputError, match=words):
            adom.solve(adom.NodeData(data.folder, **settings), adom.networks.ring(NODES), "adom+")
    with pytest.raises(adom.InputError, match=r"kappa=9\.0 needs a greatest curvature, which poisson models lack"):
        adom.NodeData(data.folder, model="poisson", kappa=9.0)
    with pytest.raises(adom.InputError, match="target of a must be positive numbers for a gamma model, got 0"):
        adom.solve(adom.NodeData(data.folder, model="gamma"), adom.networks.ring(NODES), "newton")
    short = adom.solve(data, adom.networks.ring(NODES), "newton", rounds=12)
    assert short.status == "max_rounds"
    assert "the fit has not converged (max_rounds)" in short.model().summary().attrs["refused"]


@pytest.mark.parametrize(
    ("model", "l2"),
    [("ridge", 0.0), ("logistic", 0.0), ("poisson", 0.0), ("gamma", 0.1), ("huber", 0.0), ("squared-hinge", 0.1)],
)
def test_the_bound_of_the_distance_is_one_and_not_far_too_large(tmp_path, model, l2):
    data = shards(tmp_path, frame(model), model=model, l2=l2, scale=True)
    opened = data.open(data.names)
    agreed = agree(data, opened, apart.Alone(), loose=True)
    sums, problem, rng = NodeSums(agreed, opened), agreed.problem(opened), np.random.default_rng(0)
    answer = problem.solution()
    assert agreed.free.sum() == (model != "ridge")  # whose centred samples need no intercept
    for size in (1e-8, 1e-6, 1e-3):
        y = answer + size * rng.standard_normal(answer.size)
        away = float(np.linalg.norm(y - answer))
        hessian = np.linalg.eigvalsh(problem.mean_hessian(answer))
        reach = 1.5 * away * hessian[-1] / hessian[0]
        found = sums.nearness(y, reach, apart.Alone())
        assert found.distance >= away * (1 - 1e-6)
        if size < 1e-3:
            assert found.distance <= 1.2 * away * np.sqrt(hessian[-1] / hessian[0])
            assert found.kappa == pytest.approx(hessian[-1] / hessian[0], rel=0.1)
        assert sums.nearness(y, away / 2, apart.Alone()).distance == np.inf
    at = sums.nearness(answer, 1.0, apart.Alone()).distance
    assert at == np.inf or at > 0  # rounding is counted


def test_a_glm_on_ranks_has_the_errors_of_one_process():
    table = frame("poisson")
    problem = adom.GLM(table.drop(columns="target"), table["target"], 4, family="poisson")
    network = adom.networks.ring(4)
    one, other = (adom.solve(problem, network, "newton", rtol=1e-10, engine=engine) for engine in ("local", "mpi"))
    assert one.model().inference == other.model().inference
    assert one.provenance["problem"]["kappa"] == other.provenance["problem"]["kappa"]


@pytest.mark.parametrize("model", ["poisson", "softmax"])
def test_functions_in_memory_and_on_the_disk_are_the_same(tmp_path, model):
    table = frame("poisson")
    if model == "softmax":
        table["target"] = table["target"].clip(upper=2)
    data = shards(tmp_path, table, model="logistic" if model == "softmax" else model, l2=0.0, scale=True)
    opened = data.open(data.names)
    agreed = agree(data, opened, apart.Alone(), loose=True)
    assert agreed.kind == model
    one, other = agreed.problem(opened), replace(agreed, streamed=True).problem(opened)
    rng = np.random.default_rng(0)
    x = 0.3 * rng.standard_normal((NODES, one.dim))
    for compute in ("gradients_at", "hessians_at"):
        np.testing.assert_allclose(getattr(one, compute)(x), getattr(other, compute)(x), rtol=1e-12, atol=1e-12)
    assert one.objective(x) == pytest.approx(other.objective(x), rel=1e-12)
    for compute in ("mean_gradient", "mean_hessian"):
        np.testing.assert_allclose(getattr(one, compute)(x[0]), getattr(other, compute)(x[0]), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(one.mean_hessian_product(x[0])[0](x[1]), one.mean_hessian(x[0]) @ x[1], atol=1e-12)
    hessian, step = one.mean_hessian(x[0]), 1e-5
    slope = [
        (one.mean_gradient(x[0] + step * e) - one.mean_gradient(x[0] - step * e)) / (2 * step) for e in np.eye(one.dim)
    ]
    np.testing.assert_allclose(hessian, slope, atol=1e-6)
    assert np.linalg.eigvalsh(hessian)[0] > 1e-3  # also along a shift of all classes


def test_a_fit_ends_where_rounding_allows_no_more_unless_a_tolerance_was_asked_for(tmp_path, monkeypatch):
    data = shards(tmp_path, frame("poisson"), model="poisson", alpha=0.0)
    monkeypatch.setattr(node_sums, "SAFE", 1e5)  # as if numbers were shorter
    monkeypatch.setattr(on_ranks, "NEAR", 1e-11)
    found = fitted(data, rounds=150).provenance
    assert found["tol"] == found["error_bound"] > 4 * 1e-22
    short = adom.solve(data, adom.networks.ring(NODES), "newton", rounds=150, tol=4 * 1e-22)
    assert short.status != "converged"
    assert "the fit has not converged" in short.model().summary().attrs["refused"]
