"""mu and L that are the user's word: what contradicts them at 0, at x* or next to it is refused, and named."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import adom
from adom.errors import InputError
from adom.problems import contradictions
from adom.problems.base import Problem
from adom.problems.shifted import Shifted

CENTRES = np.random.default_rng(0).standard_normal((6, 3))


def loss_of(function, mu, L, data=CENTRES):
    return adom.from_loss(function, data, mu=mu, L=L)


def wells(x, c):
    """Convex only within a distance of 1 from c."""
    return jnp.log1p((x - 0.1 * c) ** 2).sum() + 1.3 * x.sum()


def ridge(x, c):
    return 0.5 * ((x - c) ** 2).sum()


def soft(x, c):
    return jnp.sqrt(1 + (x - c) ** 2).sum()


class Own(Problem):
    """The pseudo-Huber loss of `soft`, as a class."""

    array_fields = ("c",)
    static_fields = ()

    def __init__(self, mu, L):
        self.c, (self.nodes, self.dim) = CENTRES, CENTRES.shape
        self._set_constants(np.full(6, mu), np.full(6, L))

    def value_rows(self, x):
        return jnp.sqrt(1 + (x - self.c) ** 2).sum(-1)

    def gradient_rows(self, x):
        return (x - self.c) / jnp.sqrt(1 + (x - self.c) ** 2)

    def hessian_product_rows(self, x, v):
        return v / (1 + (x - self.c) ** 2) ** 1.5


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: loss_of(wells, 0.5, 2.0), r"f_\d has curvature -0\.\d+ at the solution, .*not strongly convex: reg"),
        (lambda: loss_of(lambda x, c: soft(x, 0.2 * c) + 0.9 * x.sum(), 0.5, 1.0), r"0\.\d+ at the solution.*lower mu"),
        (
            lambda: loss_of(lambda x, c: ridge(x, c) + ((x - c) ** 4).sum(), 1.0, 50.0, 0.1 * CENTRES + 2),
            r"f_\d has curvature \d+\.?\d* at .*; raise L",
        ),
        (lambda: Own(0.5, 1.0), r"f_\d has curvature 0\.\d+ at the solution, outside \[mu, L\] = \[0.5, 1\]; lower mu"),
        (lambda: Own(1e-6, 0.1), r"f_\d has curvature 0\.\d+ at the solution, .*; raise L"),
        (lambda: Shifted(Own(0.5, 1.0), np.zeros(3), np.zeros((6, 3))), "at the solution, .*; lower mu"),
    ],
)
def test_false_constants_are_refused_at_the_latest_at_the_solution(made, said):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match=said) as caught:
            adom.solve(made(), adom.networks.ring(6), "diging", rounds=50)
    assert "\n" not in str(caught.value)


def test_at_0_every_direction_counts():
    """Only one of 40 directions is flat, and only one is steep."""
    curvatures = np.ones(40)
    curvatures[7], curvatures[23] = 0.5, 2.0
    flat = jnp.asarray(curvatures)
    for mu, L, said in ((0.6, 2.0, "0.5 at 0, .*; lower mu"), (0.5, 1.9, "2 at 0, .*; raise L")):
        with pytest.raises(InputError, match=f"f_0 has curvature {said}"):
            loss_of(lambda x, c: 0.5 * (flat * (x - c) ** 2).sum(), mu, L, np.ones((3, 40)))
    assert loss_of(lambda x, c: 0.5 * (flat * (x - c) ** 2).sum(), 0.5, 2.0, np.ones((3, 40))).solution() is not None


@pytest.mark.parametrize("weight", [0.01, 10.0])
def test_a_term_of_absolute_values_is_no_smooth_loss(weight):
    with pytest.raises(
        InputError, match=r"the gradient of f_\d changes .* as much as x at 0, .* not smooth there"
    ) as caught:
        loss_of(lambda x, c: ridge(x, c) + weight * jnp.abs(x).sum(), 1.0, 1.0)
    assert "float64" not in str(caught.value)


def test_a_kink_near_the_solution_is_named_in_place_of_float64(monkeypatch):
    kinked = loss_of(lambda x, c: ridge(x, c) + 10 * jnp.abs(x - 3).sum(), 1.0, 1.0)
    monkeypatch.setattr("adom.problems.base.contradiction", lambda *_: "")  # the point was not quite on the kink
    with pytest.raises(
        InputError, match=r"the mean gradient changes .* near the solution, more than L = 1: it is not smooth"
    ):
        kinked.solution()


def test_power_iterations_see_what_eigenvalues_show(monkeypatch):
    monkeypatch.setattr(contradictions, "WHOLE", 0)
    assert loss_of(ridge, 1.0, 1.0).solution() == pytest.approx(CENTRES.mean(axis=0))
    for mu, L, said in ((0.6, 2.0, "lower mu"), (0.1, 0.6, "raise L")):
        with pytest.raises(InputError, match=said):
            loss_of(lambda x, c: 0.5 * (jnp.linspace(0.1, 1.0, 40) * (x - c) ** 2).sum(), mu, L, np.ones((3, 40)))


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e9])
def test_true_constants_pass_at_any_scale(scale):
    problem = loss_of(
        lambda x, c: scale * ((x - c) ** 2).sum() / 2 + scale * soft(x, c), scale, 2 * scale, scale * CENTRES
    )
    assert problem.solution_error <= 1e-8 * max(1, np.linalg.norm(problem.solution()))
    wide = loss_of(lambda x, c: 0.5 * ((x - c) * jnp.asarray([1.0, 1e3, 1e6]) @ (x - c)), 1.0, 1e6, scale * CENTRES)
    np.testing.assert_allclose(wide.solution(), scale * CENTRES.mean(axis=0), rtol=1e-6)
