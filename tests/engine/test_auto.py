"""The `auto` oracle converges wherever the exact one does, at a cost close to the best fixed number of steps."""

import numpy as np
import pytest

import adom
from adom.algorithms import Constants
from adom.engine import rehearsal
from adom.engine.rehearsal import CANDIDATES, inner_factors, rehearse
from reference import logistic_data, quadratics

NODES = 10


def logistic(kappa):
    A, b = logistic_data(NODES, 12, 4)
    return adom.LogisticRegression(A.reshape(-1, 4), b.ravel(), nodes=NODES, kappa=kappa)


def cost(problem, network, protocol, oracle, rounds):
    tol = 1e-8 * NODES * float((problem.solution() ** 2).sum())
    result = adom.solve(problem, network, parameters=protocol, oracle=oracle, rounds=rounds, tol=tol, record_every=5)
    return result.history["gradients"].iloc[-1] if result.status == "converged" else np.inf


def changing():
    return adom.networks.geometric(NODES, 0.6, graphs=50, seed=1)


SETTINGS = [
    (changing, 10.0, "theory"),
    (changing, 300.0, "unit"),
    (lambda: adom.networks.complete(NODES), 100.0, "theory"),
    (
        lambda: adom.networks.alternate([adom.networks.ring(NODES), adom.networks.star(NODES)], every=10),
        30.0,
        "unit",
    ),
]


@pytest.mark.parametrize(("network", "kappa", "protocol"), SETTINGS)
def test_costs_at_most_half_more_than_the_best_fixed_number_of_steps(network, kappa, protocol):
    problem, network = logistic(kappa), network()
    fixed = [cost(problem, network, protocol, ("agd", T), 6000) for T in (1, 2, 3, 5, 8, 12)]
    fixed.append(cost(problem, network, protocol, ("gd", 2), 6000))
    assert cost(problem, network, protocol, "auto", 6000) <= 1.5 * min(fixed)


@pytest.mark.parametrize(("shape", "protocol"), [("complete", "theory"), ("ring", "unit"), ("complete", "unit")])
def test_converges_where_one_step_diverges_but_the_exact_oracle_does_not(shape, protocol):
    problem, network = adom.Quadratic(*quadratics(NODES, 3, 300.0)), getattr(adom.networks, shape)(NODES)
    tol = 1e-8 * NODES * float((problem.solution() ** 2).sum())
    run = {"parameters": protocol, "rounds": 4000, "tol": tol, "record_every": 10}
    assert adom.solve(problem, network, oracle=("gd", 1), **run).status == "diverged"
    assert adom.solve(problem, network, oracle="exact", **run).status == "converged"
    assert adom.solve(problem, network, oracle="auto", **run).status == "converged"


def test_is_the_default():
    result = adom.solve(logistic(10.0), changing(), rounds=5)
    assert result.provenance["oracle"] == "auto"


@pytest.mark.parametrize("name", ["adom", "pngd"])
def test_rehearsal_asks_for_more_where_the_answer_moves_faster(name):
    network = adom.networks.complete(NODES)
    method = adom.algorithms.method_class(name)
    caps = []
    for kappa in (10.0, 1000.0):
        constants = Constants(1.0, kappa, nodes=NODES)
        caps.append(rehearse(method.theory(constants), constants, network).cap)
    assert caps[0] < caps[1]


@pytest.mark.parametrize(
    ("network", "kappa", "protocol"),
    [
        (lambda: adom.networks.ring(16), 100.0, "unit"),
        (lambda: adom.networks.complete(10), 500.0, "theory"),
        (lambda: adom.networks.geometric(12, 0.5, seed=0), 100.0, "unit"),
    ],
)
def test_eigenvalues_stand_in_for_a_large_network(network, kappa, protocol, monkeypatch):
    """On a network that does not change they ask for the same cap as the network itself."""
    network = network()
    constants = Constants(1.0, kappa, network.lambda_min_plus, network.lambda_max, network.nodes)
    method = getattr(adom.ADOM, protocol)(constants)
    real = rehearse(method, constants, network)
    monkeypatch.setattr(rehearsal, "REAL_NODES", 0)
    stood_in = rehearse(method, constants, network)
    assert real.cap > 1
    assert stood_in.cap == real.cap


def test_inner_factors_are_what_the_steps_leave():
    H = np.diag([1.0, 5.0, 40.0])[None]
    problem = adom.Quadratic(H, np.zeros((1, 3)))
    left, _ = inner_factors(np.array([1.0, 5.0, 40.0]), 1.0, 40.0)
    import jax

    from adom.problems.oracles import accelerated_steps

    with jax.enable_x64(True):
        for T, factor in zip(CANDIDATES[:9], left[:9], strict=True):
            x = accelerated_steps(problem, np.zeros((1, 3)), np.ones((1, 3)), T)
            np.testing.assert_allclose(x, factor, rtol=1e-12, atol=1e-15)
    assert (left[-1] == 0).all()


def test_settings_of_a_batch_are_rehearsed_one_by_one():
    problem, network = adom.Quadratic(*quadratics(NODES, 3, 200.0)), changing()
    constants = adom.constants(problem, network)
    both = [adom.ADOM.theory(constants), adom.ADOM.unit(constants)]
    together = adom.solve_many(problem, network, both, rounds=100)
    for method, batched in zip(both, together, strict=True):
        alone = adom.solve(problem, network, method, rounds=100)
        np.testing.assert_array_equal(alone.history["gradients"], batched.history["gradients"])
        np.testing.assert_allclose(batched.history["error"], alone.history["error"], rtol=1e-9)
    assert together[0].history["gradients"].iloc[-1] != together[1].history["gradients"].iloc[-1]
