"""The kernels of the oracles `auto` and `exact` do, node by node, what JAX does for all nodes in step."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import adom
from adom import native
from adom.problems import oracles
from adom.problems.base import Problem
from adom.problems.linear_model import LogisticRegression
from adom.run.local.jitted import place
from adom.run.request import OracleSpec

pytestmark = pytest.mark.skipif(not native.usable(), reason="there are no kernels here")


@cache
def step(kernels):
    """Return a round as a program of its own with kernels and without, which problems of a shape share."""
    return jax.jit(partial(oracles.newton_steps))


def rounds(problem, dtype, points, kernels=True, begun=None):
    """Return the memory after each of some rounds, the z of which are given, and the memories they began with."""
    with jax.enable_x64(True):
        placed = place(problem, dtype)
        memory = oracles.start(problem, jnp.zeros((problem.nodes, problem.dim), dtype), OracleSpec("auto"))
        memories, before = [], []
        for number, z in enumerate(points):
            before.append(memory if begun is None else begun[number])
            memory = jax.tree.map(np.asarray, step(kernels)(placed, before[-1], np.asarray(z, dtype)))
            memories.append(memory)
    return memories, before


def both(monkeypatch, problem, dtype, points):
    """Return the memories after each round by JAX, and by kernels from the memory that JAX's round began with.

    Rounding decides which products conjugate gradients take, so that rounds one after the other would drift apart.
    """
    with monkeypatch.context() as without:
        without.setattr(LogisticRegression, "newton_kernel", lambda self, dtype: None)
        theirs, before = rounds(problem, dtype, points, kernels=False)
    return rounds(problem, dtype, points, begun=before)[0], theirs


def logistic(nodes, samples, dim, scale=1.0, seed=0, sparse=False):
    rng = np.random.default_rng(seed)
    features = scale * rng.standard_normal((nodes * samples, dim))
    if sparse:
        features *= rng.random(features.shape) < 0.4
    labels = np.where(features @ rng.standard_normal(dim) + rng.standard_normal(nodes * samples) > 0, 1, -1)
    return adom.LogisticRegression(sp.csr_array(features) if sparse else features, labels, nodes=nodes, kappa=300.0)


def path(shape, steps, decay, size, seed=1):
    """Return points that move less and less, as the dual variables of a run do."""
    rng = np.random.default_rng(seed)
    return np.cumsum([size * decay**k * rng.standard_normal(shape) for k in range(steps)], axis=0)


@pytest.mark.parametrize(
    ("shape", "sparse"),
    [((5, 20, 3), False), ((4, 7, 8), False), ((3, 33, 13), False), ((2, 50, 41), False), ((3, 33, 13), True)],
)
@pytest.mark.parametrize(("steps", "decay", "size"), [(25, 0.9, 0.1), (25, 1.0, 0.01), (12, 0.5, 0.2)])
def test_every_round_is_the_same(monkeypatch, shape, sparse, steps, decay, size):
    problem = logistic(*shape, sparse=sparse)
    if shape[2] > 40:  # else conjugate gradients take so many products that rounding is all that counts
        problem = problem.with_kappa(10.0)
    ours, theirs = both(monkeypatch, problem, "float64", path((shape[0], shape[2]), steps, decay, size))
    # Sparse products add up in another order; where steps halve, conjugate gradients make the most of it.
    near = 100 if sparse and steps == 12 else 1
    for mine, other in zip(ours, theirs, strict=True):
        assert np.array_equal(mine.gradients, other.gradients)
        assert np.allclose(mine.x, other.x, rtol=0, atol=near * 1e-8 * np.abs(other.x).max())
        for field in ("e", "p", "longest", "inverse"):
            for a, b in zip(*(jax.tree.leaves(getattr(memory.newton, field)) for memory in (mine, other)), strict=True):
                assert np.allclose(a, b, rtol=0, atol=near * 1e-5 * np.abs(b).max()), field
        assert np.allclose(mine.newton.contraction, other.newton.contraction, rtol=1e-3, atol=1e-6)
    spent = ours[-1].gradients
    assert spent.max() > len(ours)  # some rounds took more than one gradient


@pytest.mark.parametrize("sparse", [False, True])
def test_nodes_that_keep_pairs_do_the_same(monkeypatch, sparse):
    monkeypatch.setattr(oracles, "HELD", 0)
    problem = logistic(3, 33, 13, sparse=sparse)
    points = path((3, 13), 25, 0.9, 0.01)
    points[7] = points[6]  # nothing to do in this round
    ours, theirs = both(monkeypatch, problem, "float64", points)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.newton.inverse.kept.shape == (3, 8, 2, 13)
        assert (np.abs(mine.gradients - other.gradients) <= 2).all()  # a product more or less by rounding
        assert np.allclose(mine.x, other.x, rtol=0, atol=1e-7 * np.abs(other.x).max())
    assert ours[-1].newton.inverse.learned.min() > 8
    assert ours[-1].gradients.min() > 3 * len(ours)  # products of conjugate gradients are counted


def test_steps_that_overshoot_are_shortened(monkeypatch):
    # Far out on one side of all margins the Hessian is nearly that of the penalty: a whole step goes much too far.
    problem = logistic(4, 10, 2, scale=8.0)
    far = [np.zeros((4, 2)), 40.0 * problem.l2 * np.ones((4, 2)), -40.0 * problem.l2 * np.ones((4, 2))]
    ours, theirs = both(monkeypatch, problem, "float64", far * 3)
    assert ours[-1].gradients.max() > 3 * len(ours)
    for mine, other in zip(ours, theirs, strict=True):
        assert np.array_equal(mine.gradients, other.gradients)
        assert np.allclose(mine.x, other.x, rtol=1e-7, atol=1e-9)


def test_single_precision_and_numbers_that_are_none(monkeypatch):
    problem = logistic(3, 20, 5)
    points = path((3, 5), 12, 0.8, 0.1)
    ours, theirs = both(monkeypatch, problem, "float32", points)
    assert ours[-1].x.dtype == np.float32
    assert np.allclose(ours[-1].x, theirs[-1].x, rtol=1e-3, atol=1e-4)
    points[5:, 1] = np.nan
    monkeypatch.undo()
    ours, theirs = both(monkeypatch, problem, "float64", points)
    assert np.allclose(ours[-1].x, theirs[-1].x, rtol=1e-8, equal_nan=True)
    assert np.isfinite(ours[-1].x[[0, 2]]).all()


def test_a_shifted_problem_has_the_kernel_of_its_own(monkeypatch):
    from adom.problems.shifted import Shifted

    rng = np.random.default_rng(3)
    inner = logistic(4, 15, 6)
    shifted = Shifted(inner, rng.standard_normal(6), 0.1 * rng.standard_normal((4, 6)))
    ours, theirs = both(monkeypatch, shifted, "float64", path((4, 6), 15, 0.8, 0.1))
    for mine, other in zip(ours, theirs, strict=True):
        assert np.array_equal(mine.gradients, other.gradients)
        assert np.allclose(mine.x, other.x, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("shape", "kappa", "scale", "sparse"),
    [
        ((5, 20, 3), 10.0, 1.0, False),
        ((3, 33, 41), 1e4, 1.0, False),
        ((4, 9, 2), 1e5, 8.0, False),
        ((3, 33, 41), 1e4, 1.0, True),
    ],
)
def test_the_exact_answer_is_the_same_and_costs_as_much(shape, kappa, scale, sparse, dtype):
    problem = logistic(*shape, scale=scale, sparse=sparse).with_kappa(kappa)
    rng = np.random.default_rng(3)
    start, answer = (size * rng.standard_normal((shape[0], shape[2])) for size in (30.0, 1.0))  # far from each other
    ulp = np.finfo(dtype).eps
    with jax.enable_x64(True):
        placed = place(problem, dtype)
        z = jnp.asarray(problem.gradient_rows(answer), dtype)
        x = jnp.asarray(start, dtype)
        ours, spent = map(np.asarray, jax.jit(type(placed).exact_dual_gradient_rows)(placed, z, x))
        theirs, spent_there = map(np.asarray, jax.jit(Problem.exact_dual_gradient_rows)(placed, z, x))
    near = 40 * ulp * kappa * np.linalg.norm(theirs)
    assert np.linalg.norm(ours - theirs) <= near
    assert np.linalg.norm(ours - answer) <= near
    assert spent.min() > 4
    if dtype == "float64":  # in single precision rounding decides which steps are shortened
        assert (np.abs(spent - spent_there) <= 0.1 * spent_there + 4).all()  # the last steps are of rounding
