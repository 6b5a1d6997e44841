import jax
import jax.numpy as jnp
import numpy as np
import pytest

import adom
from adom.errors import InputError
from support.reference import logistic_data, quadratics


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def test_quadratic_matches_its_formulas():
    H, c = quadratics(4, 3, 50.0)
    ours = adom.Quadratic(H, c)
    x = np.random.default_rng(0).standard_normal((4, 3))
    np.testing.assert_allclose(ours.value_rows(x), [x[i] @ H[i] @ x[i] / 2 - c[i] @ x[i] for i in range(4)], rtol=1e-12)
    np.testing.assert_allclose(ours.gradient_rows(x), [H[i] @ x[i] - c[i] for i in range(4)], rtol=1e-12)
    assert (ours.mu, ours.L) == pytest.approx((1.0, 50.0))
    np.testing.assert_allclose(ours.mu_nodes, np.linalg.eigvalsh(H)[:, 0])
    np.testing.assert_allclose(H.sum(axis=0) @ ours.solution(), c.sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("kappa", [10.0, 1e8])
def test_closed_form_conjugate_inverts_the_gradient(kappa):
    H, c = quadratics(4, 5, kappa)
    ours = adom.Quadratic(H, c)
    z = np.random.default_rng(0).standard_normal((4, 5))
    x, spent = ours.exact_dual_gradient_rows(z, np.zeros_like(z))
    np.testing.assert_allclose(ours.gradient_rows(x), z, atol=1e-13 * kappa**0.5)
    assert (np.asarray(spent) == 1).all()


@pytest.mark.parametrize(
    ("H", "c", "message"),
    [
        (np.eye(2), np.ones((2, 2)), r"H must have shape \(nodes, dim, dim\), got \(2, 2\)"),
        (np.stack([np.eye(2)] * 3), np.ones((2, 2)), r"to match H, got \(2, 2\)"),
        (np.stack([np.eye(2), [[1, 2], [0, 1]]]), np.ones((2, 2)), r"H\[1\] is not symmetric"),
        (np.stack([np.eye(2), np.diag([1, -1])]), np.ones((2, 2)), r"H\[1\] is not positive definite.*-1"),
        (np.stack([np.eye(2), np.diag([1, np.nan])]), np.ones((2, 2)), r"H\[1, 1, 1\] is nan"),
        (np.stack([np.eye(2)] * 2), [[1, np.inf], [0, 0]], r"c\[0, 1\] is inf"),
    ],
)
def test_bad_quadratics_are_refused(H, c, message):
    with pytest.raises(InputError, match=message):
        adom.Quadratic(H, c)


def logistic_loss(x, node):
    A, b = node
    return jnp.logaddexp(0.0, -b * (A @ x)).mean() + 0.05 * (x * x).sum()


def test_from_loss_agrees_with_the_built_in_problem():
    A, b = logistic_data(4, 6, 3)
    built_in = adom.LogisticRegression(A.reshape(-1, 3), b.ravel(), nodes=4, l2=0.1)
    ours = adom.from_loss(logistic_loss, (A, b), mu=0.1, L=built_in.L_nodes)
    assert (ours.nodes, ours.dim) == (4, 3)  # the length of x is read off the data
    x = np.random.default_rng(0).standard_normal((4, 3))
    np.testing.assert_allclose(ours.gradient_rows(x), built_in.gradient_rows(x), rtol=1e-12)
    np.testing.assert_allclose(ours.hessian_rows(x), built_in.hessian_rows(x), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(ours.solution(), built_in.solution(), atol=1e-13)
    network = adom.networks.ring(4)
    a = adom.solve(ours, network, oracle=("gd", 2), rounds=100)
    b = adom.solve(built_in, network, oracle=("gd", 2), rounds=100)
    np.testing.assert_allclose(a.history["error"], b.history["error"], rtol=1e-9)


def square(x, c):
    return ((x - c) ** 2).sum() / 2


CENTRES = np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize(
    ("loss", "data", "options", "message"),
    [
        (3, CENTRES, {}, "loss must be a function"),
        (square, np.float64(1.0), {}, "leading axis of nodes"),
        (square, (CENTRES, np.ones(4)), {}, "leading sizes"),
        (square, np.array([[1.0, np.nan]]), {}, r"data, array 0\[0, 1\] is nan"),
        (square, CENTRES, {"mu": 0.0}, "mu must be a positive number"),
        (square, CENTRES, {"L": [1.0, 2.0]}, "L must be a positive number, or 3 of them"),
        (square, CENTRES, {"mu": 2.0, "L": 1.0}, "mu must be at most L"),
        (square, CENTRES, {"mu": 0.1, "L": 0.5}, r"f_0 has curvature 1 at 0, outside \[mu, L\] = \[0.1, 0.5\]"),
        (lambda x, c: x - c, CENTRES, {}, "cannot be told from the data"),
        (lambda x, c: x - c, CENTRES, {"dim": 2}, "not a scalar"),
        (lambda x, c: (x**2).sum(), np.ones((3, 2, 4)), {}, r"accepts \[2, 4\]\); give dim="),
        (square, CENTRES, {"dim": 5}, "does not work for x of length 5"),
    ],
)
def test_bad_losses_are_refused(loss, data, options, message):
    with pytest.raises(InputError, match=message) as caught:
        adom.from_loss(loss, data, **{"mu": 1.0, "L": 1.0, **options})
    assert "\n" not in str(caught.value)
