import jax
import jax.numpy as jnp
import numpy as np
import pytest

import adom
from adom.errors import InputError
from adom.problems import base, oracles
from adom.problems.newton import conjugate_gradients
from adom.problems.oracles import Accuracy, OracleSpec, parse_oracle
from reference import agd_oracle, gd_oracle, logistic_data, logistic_gradient, quadratics

answer = jax.jit(oracles.dual_gradient, static_argnums=0)


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def setting():
    A, b = logistic_data(5, 8, 3)
    problem = adom.LogisticRegression(A.reshape(-1, 3), b.ravel(), nodes=5, kappa=200.0)
    zs = 0.1 * np.cumsum(np.random.default_rng(0).standard_normal((6, 5, 3)), axis=0)
    return problem, logistic_gradient(A, b, problem.l2), zs


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("kind", ["gd", "agd"])
def test_truncated_oracles_follow_their_recursions(setting, kind, steps):
    problem, gradient, zs = setting
    if kind == "gd":
        by_hand = gd_oracle(gradient, problem.L, steps, (5, 3))
    else:
        by_hand = agd_oracle(gradient, problem.mu, problem.L, steps, (5, 3))
    memory = oracles.start(np.zeros((5, 3)))
    for count, z in enumerate(zs, start=1):
        memory = answer(OracleSpec(kind, steps), problem, memory, z)
        np.testing.assert_allclose(memory.x, by_hand(z), rtol=1e-11, atol=1e-13)
        assert (np.asarray(memory.gradients) == count * steps).all()


def test_exact_oracle_solves_to_rounding_from_anywhere(setting):
    problem, gradient, zs = setting
    for start in (0.0, 1e3, -1e4):
        memory = oracles.start(np.full((5, 3), start))
        memory = answer(OracleSpec("exact"), problem, memory, zs[-1])
        residual = np.linalg.norm(gradient(np.asarray(memory.x)) - zs[-1], axis=1)
        assert residual.max() < 1e-14 * (1 + np.linalg.norm(zs[-1]))
        assert (np.asarray(memory.gradients) > 0).all()


def test_exact_oracle_is_exact_for_many_features_of_unlike_scales():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((800, 270)) * np.logspace(0, -4, 270)
    b = np.where(A @ rng.standard_normal(270) + rng.standard_normal(800) > 0, 1, -1)
    problem = adom.LogisticRegression(A, b, nodes=2, kappa=1e12)
    x = 0.2 * rng.standard_normal((2, 270))
    found, _ = jax.jit(problem.exact_dual_gradient_rows)(problem.gradient_rows(x), np.zeros((2, 270)))
    assert (np.linalg.norm(found - x, axis=1) <= 1e-10 * np.linalg.norm(x, axis=1)).all()


def test_exact_oracle_solves_wide_problems_without_hessians(monkeypatch):
    monkeypatch.setattr(base, "AT_ONCE", 0)
    wide = adom.LogisticRegression.from_nodes(
        [(np.random.default_rng(i).standard_normal((6, 300)), [0, 1] * 3) for i in range(2)], kappa=50.0
    )
    z = 0.01 * np.random.default_rng(9).standard_normal((2, 300))
    x, _ = wide.exact_dual_gradient_rows(z, np.zeros((2, 300)))
    assert np.abs(np.asarray(wide.gradient_rows(x)) - z).max() < 1e-15


def test_conjugate_gradients_solve_every_row_on_its_own():
    H, b = quadratics(4, 6, 100.0)
    b[2] = 0.0
    v = conjugate_gradients(lambda v: jnp.einsum("nde,ne->nd", H, v), b, 1e-12)
    np.testing.assert_allclose(v, np.linalg.solve(H, b[..., None])[..., 0], rtol=1e-9, atol=1e-12)


def test_auto_takes_one_step_where_one_is_enough_and_its_cap_where_not(setting):
    problem, gradient, zs = setting
    one = oracles.start(np.zeros((5, 3)), Accuracy(cap=1, lag=0.0, patience=1000))
    reference = gd_oracle(gradient, problem.L, 1, (5, 3))
    all_steps = oracles.start(np.zeros((5, 3)), Accuracy(cap=7, lag=0.0, patience=1000))
    capped = agd_oracle(gradient, problem.mu, problem.L, 7, (5, 3))
    lazy = oracles.start(np.zeros((5, 3)), Accuracy(cap=7, lag=1e9, patience=1000))
    for z in zs:
        one = answer(OracleSpec("auto"), problem, one, z)
        np.testing.assert_allclose(one.x, reference(z), rtol=1e-11, atol=1e-13)
        all_steps = answer(OracleSpec("auto"), problem, all_steps, z)
        np.testing.assert_allclose(all_steps.x, capped(z), rtol=1e-11, atol=1e-13)
        lazy = answer(OracleSpec("auto"), problem, lazy, z)
    assert (np.asarray(all_steps.gradients) == 7 * len(zs)).all()
    assert (np.asarray(lazy.gradients) == len(zs)).all()  # any lag is allowed: one step a round


def test_auto_stops_at_the_allowed_lag_node_by_node(setting):
    problem, gradient, zs = setting
    memory = oracles.start(np.zeros((5, 3)), Accuracy(cap=500, lag=0.5, patience=1000))
    before = np.zeros(5)
    for z in zs:
        memory = answer(OracleSpec("auto"), problem, memory, z)
        residual = np.linalg.norm(gradient(np.asarray(memory.x)) - z, axis=1)
        spent = np.asarray(memory.gradients) - before
        allowed = 0.5 * np.asarray(memory.watch.scale)
        # The residual is tested where the last gradient was taken, one step before the answer.
        assert (residual <= 1.5 * allowed).all()
        assert (spent < 500).all()
        before = np.asarray(memory.gradients)
    assert len(set(before)) > 1  # nodes differ


def test_auto_grows_more_exact_where_z_runs_away(setting):
    problem, _, _ = setting
    memory = oracles.start(np.zeros((5, 3)), Accuracy(cap=1, lag=1.0, patience=50))
    direction = np.random.default_rng(0).standard_normal((5, 3))
    for k in range(60):
        memory = answer(OracleSpec("auto"), problem, memory, 1.2**k * direction)
    accuracy = memory.watch.accuracy
    assert (np.asarray(accuracy.cap) >= 4).all()
    assert (np.asarray(accuracy.lag) <= 0.25).all()
    for k in range(60, 300):  # alarms without end
        memory = answer(OracleSpec("auto"), problem, memory, 1.2**k * direction)
    assert np.asarray(memory.watch.accuracy.cap).max() == oracles.LARGEST_CAP
    calm = oracles.start(np.zeros((5, 3)), Accuracy(cap=1, lag=1.0, patience=50))
    for k in range(300):
        calm = answer(OracleSpec("auto"), problem, calm, 0.95**k * direction)
    assert (np.asarray(calm.watch.accuracy.cap) == 1).all()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("exact", OracleSpec("exact")),
        ("auto", OracleSpec("auto")),
        (("gd", 1), OracleSpec("gd", 1)),
        (["agd", 30], OracleSpec("agd", 30)),
        ("agd:3", OracleSpec("agd", 3)),
    ],
)
def test_oracles_are_read(given, expected):
    assert parse_oracle(given) == expected
    assert parse_oracle(str(expected)) == expected


@pytest.mark.parametrize(
    "bad", ["newton", ("gd", 0), ("gd", -1), ("gd", 1.5), ("gd", True), "gd", ("exact", 3), "gd:x", None, 3]
)
def test_unknown_oracles_are_refused(bad):
    with pytest.raises(
        InputError, match=r"unknown oracle .*'exact', 'auto', \('gd', T\).*on the command line .*gd:T"
    ) as caught:
        parse_oracle(bad)
    assert repr(bad) in str(caught.value)
