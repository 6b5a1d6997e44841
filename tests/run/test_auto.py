"""The `auto` oracle converges wherever the exact one does, at a cost close to the best fixed number of steps."""

import numpy as np
import pytest

import adom
from support.reference import logistic_data, quadratics

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


def test_settings_side_by_side_get_what_each_gets_alone():
    problem, network = logistic(200.0), changing()
    constants = adom.constants(problem, network)
    both = [adom.ADOM.theory(constants), adom.ADOM.unit(constants)]
    together = adom.solve_many(problem, network, both, rounds=100)
    for method, batched in zip(both, together, strict=True):
        alone = adom.solve(problem, network, method, rounds=100)
        np.testing.assert_array_equal(alone.history["gradients"], batched.history["gradients"])
        np.testing.assert_array_equal(batched.history["error"], alone.history["error"])
    assert together[0].history["gradients"].iloc[-1] != together[1].history["gradients"].iloc[-1]
