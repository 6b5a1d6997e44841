import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import adom
from adom.errors import InputError
from adom.problems import oracles
from adom.problems.oracles import ACCURACY, conjugate_gradients, newton
from adom.run.request import OracleSpec, parse_oracle
from support.reference import agd_oracle, gd_oracle, logistic_data, logistic_gradient, quadratics

answer = jax.jit(oracles.dual_gradient, static_argnums=0)


pytestmark = pytest.mark.usefixtures("double")


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
    memory = oracles.start(problem, np.zeros((5, 3)), OracleSpec(kind, steps))
    for count, z in enumerate(zs, start=1):
        memory = answer(OracleSpec(kind, steps), problem, memory, z)
        np.testing.assert_allclose(memory.x, by_hand(z), rtol=1e-11, atol=1e-13)
        assert (np.asarray(memory.gradients) == count * steps).all()


def test_exact_oracle_solves_to_rounding_from_anywhere(setting):
    problem, gradient, zs = setting
    for start in (0.0, 1e3, -1e4):
        memory = oracles.start(problem, np.full((5, 3), start), OracleSpec("exact"))
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
    monkeypatch.setattr(oracles, "HELD", 0)
    wide = adom.LogisticRegression.from_nodes(
        [(np.random.default_rng(i).standard_normal((6, 300)), [0, 1] * 3) for i in range(2)], kappa=50.0
    )
    z = 0.01 * np.random.default_rng(9).standard_normal((2, 300))
    x, spent = wide.exact_dual_gradient_rows(z, np.zeros((2, 300)))
    assert (np.asarray(spent) > 20).all()  # every product of conjugate gradients counts
    assert np.abs(np.asarray(wide.gradient_rows(x)) - z).max() < 1e-15


def test_conjugate_gradients_solve_every_row_on_its_own():
    H, b = quadratics(4, 6, 100.0)
    b[2] = 0.0
    v, products = conjugate_gradients(lambda v: jnp.einsum("nde,ne->nd", H, v), b, 1e-12)
    assert (np.asarray(products) > 0).tolist() == [True, True, False, True]
    np.testing.assert_allclose(v, np.linalg.solve(H, b[..., None])[..., 0], rtol=1e-9, atol=1e-12)


def spent_and_left(problem, memory, zs):
    """Answer each z in turn; return, per z and node, the gradients spent and the residual over how far z moved."""
    spent, left, before = [], [], np.zeros(zs.shape[1:])
    for z in zs:
        counted = np.asarray(memory.gradients)
        memory = answer(OracleSpec("auto"), problem, memory, z)
        residual = np.linalg.norm(problem.gradient_rows(memory.x) - z, axis=1)
        spent.append(np.asarray(memory.gradients) - counted)
        left.append(residual / np.maximum(np.linalg.norm(z - before, axis=1), 1e-13))
        before = z
    return np.array(spent), np.array(left)


@pytest.mark.parametrize("largest", [oracles.HELD, 0], ids=["matrices", "pairs"])
@pytest.mark.parametrize("pace", [0.1, 30.0, 1e4])
def test_auto_leaves_a_hundredth_of_how_far_z_moved(setting, monkeypatch, largest, pace):
    """Whether z creeps or leaps, and however far it gets: steps that are predicted to suffice nearly always do."""
    monkeypatch.setattr(oracles, "HELD", largest)
    jax.clear_caches()
    problem, _, _ = setting
    zs = pace * np.cumsum(np.random.default_rng(1).standard_normal((40, 5, 3)), axis=0)
    _, left = spent_and_left(problem, oracles.start(problem, np.zeros((5, 3)), OracleSpec("auto")), zs)
    assert left.max() <= 10 * ACCURACY
    assert np.mean(left > ACCURACY) <= 0.05


def test_auto_takes_one_gradient_a_round_once_it_has_settled(setting):
    problem, _, _ = setting
    step = 0.1 * np.random.default_rng(2).standard_normal((5, 3))
    zs = np.stack([(1 - 0.9**k) * step for k in range(120)])
    spent, left = spent_and_left(problem, oracles.start(problem, np.zeros((5, 3)), OracleSpec("auto")), zs)
    assert (spent[60:] == 1).all()
    assert left.max() <= 2 * ACCURACY
    assert spent[:5].mean() > 1


def test_auto_is_as_exact_as_rounding_allows_where_z_stands_still(setting):
    problem, gradient, zs = setting
    memory = oracles.start(problem, np.zeros((5, 3)), OracleSpec("auto"))
    for _ in range(3):
        memory = answer(OracleSpec("auto"), problem, memory, zs[-1])
    residual = np.linalg.norm(gradient(np.asarray(memory.x)) - zs[-1], axis=1)
    scale = np.linalg.norm(zs[-1], axis=1) + problem.L * np.linalg.norm(np.asarray(memory.x), axis=1)
    assert (residual <= 1e-15 * scale).all()


def test_auto_shortens_steps_that_overshoot(monkeypatch):
    """Newton's full steps on sqrt(1 + x^2) go from x to -x^3: away from the solution where x > 1, as at all nodes."""
    mu, x = 0.02, np.array([[1.2], [2.0], [5.0]])
    problem = adom.from_loss(
        lambda x, data: (jnp.sqrt(1 + x**2) + mu / 2 * x**2).sum() + 0 * data.sum(), np.zeros((3, 1)), mu=mu, L=1 + mu
    )
    spec, memory = OracleSpec("auto"), oracles.start(problem, np.zeros((3, 1)), OracleSpec("auto"))
    z = x / np.sqrt(1 + x**2) + mu * x

    plain, turns = jax.lax.while_loop, []

    def counted(going, body, state):
        count, state = plain(lambda c: going(c[1]) & (c[0] < 60), lambda c: (c[0] + 1, body(c[1])), (0, state))
        jax.debug.callback(lambda count: turns.append(int(count)), count)
        return state

    monkeypatch.setattr(jax.lax, "while_loop", counted)
    answer = jax.jit(lambda memory, z: oracles.dual_gradient(spec, problem, memory, z))
    for target in (z, z, 0 * z):
        memory = answer(memory, target)
    jax.effects_barrier()
    assert 3 < max(turns) < 60  # it ends, and not at once
    assert (abs(problem.gradient_rows(memory.x)) <= 2 * ACCURACY * z).all()


def gradients_a_round(dim, rounds=120):
    """Return what each round of a run of ADOM costs, for a problem with many features."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((5 * 60, dim))
    b = np.where(A @ rng.standard_normal(dim) + rng.standard_normal(len(A)) > 0, 1, -1)
    problem = adom.LogisticRegression(A, b, nodes=5, kappa=1000.0)
    jax.clear_caches()  # limits are no part of a program's key
    run = adom.solve(problem, adom.networks.ring(5), "adom", "unit", rounds=rounds, record_every=1, progress=False)
    return np.diff(run.history["gradients"])


def test_auto_costs_a_few_gradients_a_round_with_many_features_as_with_few():
    """Without a cliff: where conjugate gradients took tens of products, what was learned takes their place."""
    rounds = {dim: gradients_a_round(dim) for dim in (120, 150, 300)}
    for dim, each in rounds.items():
        assert each[0] > 10, dim  # nothing is known at the start, and every product counts
        assert each[80:].mean() <= 7, dim
        assert each.mean() <= 12, dim
    assert rounds[150].mean() <= 1.5 * rounds[120].mean()


def test_pairs_save_products_where_matrices_take_too_much_memory(monkeypatch):
    monkeypatch.setattr(oracles, "HELD", 0)
    monkeypatch.setattr(oracles, "FEWEST", 64)
    monkeypatch.setattr(oracles, "MOST", 64)
    learned = gradients_a_round(150, 60).mean()
    monkeypatch.setitem(oracles.RULES, "curved", 2.0)  # no cosine is 2: nothing is learned
    monkeypatch.setattr(oracles, "CURVED", 2.0)
    assert learned < 0.7 * gradients_a_round(150, 60).mean()


def test_what_is_kept_depends_on_the_whole_network_not_on_the_nodes_at_hand(monkeypatch):
    monkeypatch.setattr(oracles, "HELD", 6 * 10**2)
    problem, spec = adom.Quadratic(*quadratics(3, 10, 10.0)), OracleSpec("auto")
    monkeypatch.setattr(type(problem), "closed_form", False)
    for nodes, shape in ((6, (10, 10)), (7, (8, 2, 10)), (3, (10, 10))):
        inverse = oracles.start(problem, np.zeros((3, 10)), spec, nodes).newton.inverse
        assert inverse.kept.shape == (3, *shape)
    assert oracles.start(problem.block(0, 1), np.zeros((1, 10)), spec, 7).newton.inverse.kept.shape == (1, 8, 2, 10)


def test_a_learned_pair_is_mapped_back(monkeypatch):
    rng = np.random.default_rng(5)
    H, s = quadratics(3, 6, 50.0)[0], rng.standard_normal((4, 3, 6))
    for held in (oracles.HELD, 0):
        monkeypatch.setattr(oracles, "HELD", held)
        inverse = oracles.nothing_learned(jnp.zeros((3, 6)), 50.0, 3)
        np.testing.assert_allclose(oracles.apply(inverse, s[0], 50.0), s[0] / 50.0, rtol=1e-12)
        for each in s:
            y = np.einsum("nde,ne->nd", H, each)
            inverse = oracles.learn(inverse, each, y, np.array([True, True, False]))
            found = np.asarray(oracles.apply(inverse, y, 50.0))
            np.testing.assert_allclose(found[:2], each[:2], rtol=1e-9, atol=1e-11)
            assert np.asarray(inverse.learned)[2] == 0
        unlearned = oracles.learn(inverse, -each, y, np.ones(3, bool))  # no curvature: nothing to learn
        assert np.array_equal(unlearned.kept, inverse.kept)


@pytest.mark.parametrize("dim", [4, 9])
def test_a_hessian_counts_as_many_gradients_as_it_has_columns(dim):
    H, b = map(jnp.asarray, quadratics(3, dim, 10.0))

    def gradient(x):
        return jnp.einsum("nde,ne->nd", H, x) - b

    _, spent = newton(gradient, None, lambda x: H, jnp.zeros((3, dim)), scale=jnp.ones(3), stiffness=10.0)
    steps, rest = np.divmod(np.asarray(spent) - 1, dim + 1)  # each a Hessian, and a gradient to check it
    assert (steps >= 1).all()
    assert (rest == 0).all()
    A, b = logistic_data(5, 8, dim)
    problem = adom.LogisticRegression(A.reshape(-1, dim), b.ravel(), nodes=5, kappa=200.0)
    memory = answer(
        OracleSpec("exact"),
        problem,
        oracles.start(problem, np.zeros((5, dim)), OracleSpec("exact")),
        np.full((5, dim), 0.01),
    )
    assert (np.asarray(memory.gradients) > 2 * dim).all()


@pytest.mark.parametrize("kappa", [10.0, 1e6, 1e8])
def test_auto_uses_a_closed_form_where_there_is_one(kappa):
    problem = adom.Quadratic(*quadratics(5, 3, kappa))
    memory = oracles.start(problem, np.zeros((5, 3)), OracleSpec("auto"))
    z = np.random.default_rng(3).standard_normal((5, 3))
    memory = answer(OracleSpec("auto"), problem, memory, z)
    assert (np.asarray(memory.gradients) == 1).all()
    np.testing.assert_allclose(problem.gradient_rows(memory.x), z, atol=1e-13 * kappa**0.5)


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
    "bad",
    [
        "newton",
        ("gd", 0),
        ("gd", -1),
        ("gd", 1.5),
        ("gd", True),
        "gd",
        ("exact", 3),
        "gd:x",
        "gd:0",
        "gd:²",
        f"gd:{10**20}",
        None,
        3,
    ],
)
def test_unknown_oracles_are_refused(bad):
    with pytest.raises(
        InputError, match=r"unknown oracle .*'exact', 'auto', \('gd', T\).*on the command line .*gd:T"
    ) as caught:
        parse_oracle(bad)
    assert repr(bad) in str(caught.value)


def test_names_of_oracles_are_read_without_jax_or_numpy():
    code = "import sys, adom.run.request; print(sorted({'jax', 'numpy', 'scipy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
