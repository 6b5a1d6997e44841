"""Losses against finite differences, and new ones in the table against SciPy in every room that fits models."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

import adom
from adom.agents.functions import SampleFunction, from_prepared, from_samples
from adom.data.model import Model, load_model
from adom.data.node_data import NodeData
from adom.data.node_shards import write_shard
from adom.data.preparing import agree
from adom.errors import InputError
from adom.problems.linear_model import LinearModel
from adom.problems.losses import FAR, LOGISTIC, LOSSES, MANY, RIDGE, SOFTMAX, Loss, models
from support import apart

COSH = Loss(
    name="log-cosh",
    words="numbers",
    value=lambda t, y: abs(t - y) + _of(t).log1p(_of(t).exp(-2 * abs(t - y))) - np.log(2),
    slope=lambda t, y: _of(t).tanh(t - y),
    curvature=lambda t, y: 1 - _of(t).tanh(t - y) ** 2,
    expected=lambda t: t,
    steepest=1.0,
    twist=2.0,
    penalty="alpha",
    sklearn="Ridge",
    allowed=lambda y: y > -1e6,
    target="above -1e6",
)
HINGE = LOSSES["squared-hinge"]
KINKS = {"squared-hinge": lambda t, y: 1 - y * t, "huber": lambda t, y: np.abs(t - y) - FAR}
"""Where the curvature jumps."""
ALL = pytest.mark.parametrize("loss", [*LOSSES.values(), COSH], ids=lambda loss: loss.name)


def _of(t):
    return jnp if isinstance(t, jax.Array) else np


def margins_and_targets(loss, rng, samples=200):
    t = 4 * rng.standard_normal((samples, 4) if loss.coupled else samples)
    numbers = rng.integers(0, 4 if loss.coupled else 2, samples)
    if loss.classes:
        return t, loss.coded(numbers)
    y = 2 * rng.standard_normal(samples)
    return t, y if loss.allowed is None else np.abs(y)


@ALL
def test_each_is_the_derivative_of_the_one_before_and_bounded(loss):
    rng, step = np.random.default_rng(0), 1e-6
    t, y = margins_and_targets(loss, rng)
    along = rng.standard_normal(t.shape)
    if loss.coupled:
        along /= np.linalg.norm(along, axis=1, keepdims=True)
    up, down = t + step * along, t - step * along
    total = (lambda each: each.sum(axis=-1)) if loss.coupled else (lambda each: each)
    change = (loss.value(up, y) - loss.value(down, y)) / (2 * step)
    np.testing.assert_allclose(total(loss.slope(t, y) * along), change, rtol=1e-6, atol=1e-8)
    bent = loss.bends(t, y)(along)
    smooth = np.abs(KINKS[loss.name](t, y)) > 10 * step if loss.name in KINKS else ...
    change = (loss.slope(up, y) - loss.slope(down, y)) / (2 * step)
    np.testing.assert_allclose(bent[smooth], change[smooth], rtol=1e-6, atol=1e-8 * max(1.0, np.abs(bent).max()))
    if loss.coupled:
        own = [loss.bends(t, y)(unit)[:, k] for k, unit in enumerate(np.eye(4))]
        np.testing.assert_allclose(np.transpose(own), loss.curvature(t, y), rtol=1e-12)
    size = total(along * along)
    if np.isfinite(loss.steepest):
        assert (total(along * bent) <= loss.steepest * size * (1 + 1e-12)).all()
    other = rng.standard_normal(t.shape)
    other /= np.linalg.norm(other, axis=1, keepdims=True) if loss.coupled else np.abs(other)
    if np.isfinite(loss.twist):
        twisted = [total(along * loss.bends(t + sign * 1e-4 * other, y)(along)) for sign in (1, -1)]
        assert (np.abs(twisted[0] - twisted[1]) <= 2e-4 * loss.twist * total(along * bent) * 1.001 + 1e-12).all()


@ALL
@pytest.mark.usefixtures("double")
def test_numpy_and_jax_compute_the_same(loss):
    t, y = margins_and_targets(loss, np.random.default_rng(1))
    functions = [loss.value, loss.slope, loss.curvature, lambda t, y: loss.bends(t, y)(t)]
    functions += [lambda t, y: loss.expected(t)] if loss.expected else []
    for function in functions:
        np.testing.assert_allclose(jax.jit(function)(t, y), function(t, y), rtol=1e-13, atol=1e-14)
    if loss.classes and loss.expected:
        chances = loss.expected(t)
        np.testing.assert_allclose(chances.sum(axis=-1), 1, rtol=1e-14)
        np.testing.assert_array_equal(chances.argmax(axis=-1), loss.predicted(t))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "loss", [loss for loss in [*LOSSES.values(), COSH] if loss.steepest < np.inf], ids=lambda loss: loss.name
)
@pytest.mark.usefixtures("double")
def test_a_problem_of_any_loss_is_that_of_its_faster_class_and_that_of_agents(loss, layout):
    rng = np.random.default_rng(2)
    data = [(rng.standard_normal((m, 3)), margins_and_targets(loss, rng, m)[1]) for m in (9, 4, 6)]
    vectors = loss.vectors(4)
    general = LinearModel(loss, [(layout(A), y) for A, y in data], l2=0.2, vectors=vectors)
    x, v = rng.standard_normal((2, 3, general.dim))
    calls = [
        lambda problem, x, v: problem.value_rows(x),
        lambda problem, x, v: problem.gradient_rows(x),
        lambda problem, x, v: problem.hessian_product_rows(x, v),
        lambda problem, x, v: problem.hessians_at(x),
    ]
    softmax = partial(adom.SoftmaxRegression, classes=4)
    faster = {LOGISTIC: adom.LogisticRegression.from_nodes, RIDGE: adom.LeastSquares, SOFTMAX: softmax}.get(loss)
    if faster:
        faster = faster(data, l2=0.2)
        np.testing.assert_allclose(general.L_nodes, faster.L_nodes, rtol=1e-12)
        for call in calls:
            np.testing.assert_allclose(call(general, x, v), call(faster, x, v), rtol=1e-11, atol=1e-13)
    for call in calls:
        np.testing.assert_allclose(call(general.block(1, 3), x[1:], v[1:]), call(general, x, v)[1:], rtol=1e-12)
    for mean, rows in (
        (general.mean_gradient(x[0]), general.gradient_rows(np.tile(x[0], (3, 1)))),
        (general.mean_hessian(x[0]), general.hessians_at(np.tile(x[0], (3, 1)))),
    ):
        np.testing.assert_allclose(mean, np.mean(rows, axis=0), rtol=1e-12, atol=1e-14)
    agent = SampleFunction(loss, layout(data[0][0]), data[0][1], 0.2, vectors=vectors)
    np.testing.assert_allclose(agent.gradient(x[0]), general.gradient_rows(x)[0], rtol=1e-11)
    np.testing.assert_allclose(agent.hessian(x[0]), general.hessians_at(x)[0], rtol=1e-11)


@pytest.mark.parametrize("loss", [COSH, HINGE], ids=lambda loss: loss.name)
def test_a_new_loss_is_one_line_in_the_table(loss, tmp_path, monkeypatch):
    """Nodes fit it to their shards, in memory and from the disk; agents have the same functions; the model predicts."""
    monkeypatch.setitem(LOSSES, loss.name, loss)
    assert loss.name in models()
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 2)) + 1.0
    score = X @ [1.0, -2.0] + 0.5 + rng.standard_normal(60)
    y = np.array(["low", "top"])[(score > 0).astype(int)] if loss.classes else score
    table = pd.DataFrame(X, columns=["a", "b"]).assign(target=y)
    for node, rows in (("east", slice(0, 20)), ("south", slice(20, 50)), ("west", slice(50, 60))):
        table[rows].to_csv(tmp_path / f"{node}.csv", index=False)
        write_shard(tmp_path / f"{node}.csv", node, tmp_path / "shards", target="target")
    data = NodeData(tmp_path / "shards", model=loss.name, l2=0.05)
    shards = data.open(data.names)
    agreed = agree(data, shards, apart.Alone())
    in_memory, on_disk = agreed.problem(shards), replace(agreed, streamed=True).problem(shards)
    x = rng.standard_normal((3, in_memory.dim))
    with jax.enable_x64(True):
        np.testing.assert_allclose(on_disk.value_rows(x), in_memory.value_rows(x), rtol=1e-12)
        np.testing.assert_allclose(on_disk.gradient_rows(x), in_memory.gradient_rows(x), rtol=1e-10)
        for number, shard in enumerate(shards):
            expected = np.asarray(in_memory.gradient_rows(x))[number]
            np.testing.assert_allclose(from_prepared(agreed, shard).gradient(x[number]), expected, rtol=1e-10)

    result = adom.solve(data, adom.networks.complete(3), "adom+", "unit", rounds=20_000, record_every=50)
    model = load_model(result.model().save(tmp_path / "model.json"))
    targets = loss.coded((y == "top").astype(int)) if loss.classes else y

    def objective(w):
        return loss.value(X @ w[:2] + w[2], targets).mean() + 0.025 * (w[:2] ** 2).sum()

    best = minimize(objective, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-15}).x
    np.testing.assert_allclose([*model.coefficients[0], *model.intercept], best, rtol=0, atol=1e-6)
    assert model.score(X, y) > (0.85 if loss.classes else 0.6)
    if loss.classes:
        with pytest.raises(InputError, match="squared-hinge model has no probabilities"):
            model.predict_proba(X)
    else:
        np.testing.assert_allclose(model.to_sklearn().predict(table[["a", "b"]]), model.predict(X))
        single = from_samples(loss.name, X, score, 0.05, "nodes")
        np.testing.assert_allclose(single.unit, score.std())


def test_targets_that_a_loss_cannot_have_are_refused_at_every_door(tmp_path, monkeypatch):
    monkeypatch.setitem(LOSSES, COSH.name, COSH)
    A, y = np.eye(3), np.array([1.0, -2e6, 0.0])
    rule = "must be above -1e6 for a log-cosh model, got -2e.06; correct or leave out"
    with pytest.raises(InputError, match=f"targets {rule}"):
        LinearModel(COSH, [(A, y)], l2=1.0)
    with pytest.raises(InputError, match=f"targets {rule}"):
        from_samples(COSH.name, A, y, 1.0, "nodes")
    pd.DataFrame(A, columns=list("abc")).assign(dose=y).to_csv(tmp_path / "east.csv", index=False)
    write_shard(tmp_path / "east.csv", "east", tmp_path / "shards", target="dose")
    data = NodeData(tmp_path / "shards", model=COSH.name)
    with pytest.raises(InputError, match=f"dose of east {rule}"):
        agree(data, data.open(data.names), apart.Alone())


def test_a_loss_for_two_classes_refuses_more_unless_another_takes_its_place():
    assert LOGISTIC.of(3).classes == MANY
    with pytest.raises(InputError, match="a squared-hinge model is for two classes, got 3 classes; take another"):
        HINGE.of(3)
    with pytest.raises(InputError, match="its kind is 'lasso', not one of logistic, softmax, ridge"):
        Model("lasso", [[1.0]], [0.0], ("x",))
