"""The pieces of a fit: coordinates, averages, exact minimisers, and the loop of runs."""

import jax
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

import adom
from adom.problems.linear_model import LeastSquares
from adom.problems.minimiser import minimum
from adom.sklearn import DecentralizedRidge
from adom.sklearn.fitting import (
    Coordinates,
    Costs,
    Partition,
    minimise,
    partition,
    rounds_to_average,
    with_intercept,
)
from support.reference import logistic_data


def logistic(nodes=4, samples=6, dim=3, l2=0.01):
    A, b = logistic_data(nodes, samples, dim)
    return adom.LogisticRegression(A.reshape(-1, dim), b.ravel(), nodes=nodes, l2=l2)


@pytest.mark.parametrize("network", [adom.networks.ring(9), adom.networks.star(5), adom.networks.complete(4)])
@pytest.mark.parametrize("leave", [1e-3, 1e-12])
def test_averaging_takes_the_rounds_that_are_counted(network, leave):
    n = network.nodes
    once = np.eye(n) - network.matrix(0) / network.lambda_max - np.ones((n, n)) / n
    rounds = rounds_to_average(network.chi, leave)
    left = np.linalg.norm(np.linalg.matrix_power(once, rounds), 2)
    assert left <= leave * (1 + 1e-6)
    if rounds > 1:
        assert np.linalg.norm(np.linalg.matrix_power(once, rounds - 1), 2) > leave


@pytest.mark.parametrize("mean", [None, np.array([1.0, -2.0])])
@pytest.mark.parametrize("column", [0.0, 3.0])
def test_coordinates_and_coefficients_say_the_same(mean, column):
    coordinates, rng = Coordinates(mean, column), np.random.default_rng(0)
    X, x = rng.standard_normal((6, 2)), rng.standard_normal((4, 3 if column else 2))
    w, intercept = coordinates.coefficients(x)
    np.testing.assert_allclose(X @ w.T + intercept, coordinates.features(X) @ x.T, rtol=1e-12)
    np.testing.assert_allclose(coordinates.point(w, intercept), x, rtol=1e-12)
    if mean is None:
        sparse = coordinates.features(sp.csr_array(X))
        assert sp.issparse(sparse)
        np.testing.assert_array_equal(sparse.toarray(), coordinates.features(X))


def test_coordinates_are_centred_and_the_column_is_as_large_as_the_features():
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((40, 3)) + 50, np.full(40, 1 / 40)
    parts = partition(np.arange(40), 4, "shuffled", "ring", 0)
    chosen = with_intercept(X, parts, weights, 1e-3, 0.25)
    np.testing.assert_allclose(chosen.mean, X.mean(axis=0), rtol=1e-12)
    largest = max(np.linalg.norm(X[rows] - chosen.mean, 2) ** 2 / rows.size for rows in parts.rows)
    assert chosen.column**2 == pytest.approx(largest, rel=1e-9)
    assert with_intercept(X, parts, weights, 100.0, 0.25).column ** 2 == pytest.approx(10 * 100 / 0.25)
    assert with_intercept(sp.csr_array(X), parts, weights, 1e-3, 0.25).mean is None


def test_filling_wastes_little_and_makes_few_sizes():
    sizes = {most: Partition([np.arange(most)], None).padded for most in range(1, 2000)}
    assert all(most <= size <= (64 if most <= 64 else 1.125 * most) for most, size in sizes.items())
    assert len(set(sizes.values())) < 50
    assert {size for most, size in sizes.items() if most <= 64} == {1, 4, 16, 64}


def test_minimisers_are_exact():
    problem, slope = logistic(), np.array([0.02, -0.01, 0.03])
    np.testing.assert_allclose(minimum(problem, np.ones(3)).x, problem.solution(), atol=1e-13)
    found = minimum(problem, np.zeros(3), slope).x
    assert np.abs(problem.gradients_at(found).mean(axis=0) - slope).max() < 1e-16
    far = minimum(problem, np.full(3, 1e3), slope).x  # where a full step of Newton's method leads astray
    np.testing.assert_allclose(far, found, rtol=1e-10)


@pytest.mark.parametrize("start", [np.zeros(3), np.array([3.0, -1.0, 2.0])])
def test_runs_end_at_the_solution(start):
    problem, costs = logistic(), Costs(adom.networks.ring(4))
    fit = minimise(problem, start, np.zeros(3), "acc-gt", DecentralizedRidge(), costs)
    assert fit.status == "converged"
    distance = np.sqrt(((fit.rows - problem.solution()) ** 2).sum(axis=1).mean())
    assert distance <= 1e-10 * np.linalg.norm(problem.solution()) * (1 + 1e-6)
    assert costs.rounds == costs.tables[-1]["round"][-1]


def test_a_minimiser_that_is_not_known_to_the_tolerance_is_no_convergence():
    rng = np.random.default_rng(0)
    problem = LeastSquares([(rng.standard_normal((1, 4)), [1.0]), (rng.standard_normal((1, 4)), [2.0])], l2=0.01)
    known = minimum(problem).error / np.linalg.norm(problem.solution())
    found = [
        minimise(problem, np.zeros(4), np.zeros(4), "acc-gt", DecentralizedRidge(tol=tol), Costs(adom.networks.path(2)))
        for tol in (0.5 * known, 2 * known)
    ]
    assert [fit.status for fit in found] == ["inexact", "converged"]


def test_free_coordinates_are_not_penalised():
    problem, free = logistic(l2=0.05), np.array([0.0, 1.0, 0.0])
    fit = minimise(problem, np.zeros(3), free, "acc-gt", DecentralizedRidge(), Costs(adom.networks.ring(4)))
    assert fit.status == "converged"
    left = problem.gradients_at(fit.x).mean(axis=0) - problem.l2 * free * fit.x
    assert np.abs(left).max() <= problem.L * 1e-10 * np.linalg.norm(fit.x)
    assert abs(problem.l2 * fit.x[1]) > 1e-3  # so the penalty would have made a difference


def test_the_next_start_is_where_shrinking_steps_would_end():
    # One free coordinate of curvature h under the penalty r: each run alone would leave r / (r + h) = 1/2.
    problem = LeastSquares([([[1.0]], [1.0]), ([[1.0]], [3.0])], l2=1.0)
    costs = Costs(adom.networks.path(2))
    fit = minimise(problem, np.zeros(1), np.ones(1), "acc-gt", DecentralizedRidge(tol=1e-8), costs)
    assert fit.x[0] == pytest.approx(2.0, rel=1e-8)
    assert len(costs.tables) < 10  # halving the distance would take 27 runs


def test_runs_go_where_rounding_keeps_one_run_away():
    # On the complete graph rounding of W makes the rows of ADOM+ drift, the more the larger kappa is.
    X, y = load_breast_cancer(return_X_y=True)
    problem = adom.LogisticRegression(scale(X), y, nodes=10, kappa=30_000.0)
    network = adom.networks.complete(10)
    one = adom.solve(problem, network, "adom+", "theory", rounds=60_000, record_every=100)
    length = np.linalg.norm(problem.solution())
    assert np.sqrt(one.history["error"].min() / 10) > 1e-8 * length
    fit = minimise(problem, np.zeros(30), np.zeros(30), "acc-gt", DecentralizedRidge(tol=1e-9), Costs(network))
    assert fit.status == "converged"
    assert np.linalg.norm(fit.x - problem.solution()) < 1e-9 * length


def test_samples_are_dealt_out_whole():
    y = np.arange(23)
    for split in ("shuffled", "contiguous", "label", "dirichlet"):
        parts = partition(y, 5, split, "expander", 0)
        np.testing.assert_array_equal(np.sort(np.concatenate(parts.rows)), y)
        assert all((2 * a == b).all() for a, b in parts.split(y, 2 * y))
        assert parts.network.nodes == len(parts.rows) == 5


def test_gradients_are_in_double_precision():
    assert not jax.config.jax_enable_x64
    assert logistic().gradients_at(np.zeros(3)).dtype == np.float64
