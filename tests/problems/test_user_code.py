"""Code that is not the package's reads values beside its arguments: a run never takes old ones for new ones."""

import functools
import types
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import adom
from adom.algorithms.base import Method
from adom.errors import InputError
from adom.problems import loss
from adom.problems.shifted import Shifted
from adom.run.ranks.on_ranks import on_one_rank
from adom.run.request import Request, Stop
from adom.study.expand import SweepSpec, expand
from adom.study.jobs import Keys
from adom.util.programs import program

CENTRES = np.array([[1.0, 2.0], [3.0, 6.0], [5.0, 1.0]])
MEAN = CENTRES.mean(axis=0)
NETWORK = adom.networks.ring(3)

delta = 1.0
settings = types.SimpleNamespace(delta=1.0, inner={"deltas": [1.0]})
table = np.array([1.0])
scope: dict[str, Any] = {"delta": 1.0}
exec("def unseen(x):\n    return delta * x.sum()", scope)  # as in a notebook whose cell is gone: there is no source


@jax.jit
def scaled(x):
    return delta * x


def body(_, x):
    return delta * x


class Model:
    factor = 1.0
    delta = 1.0

    def __call__(self, x):
        return self.factor * self.delta * x.sum()


model = Model()


def set_delta(value):
    globals()["delta"] = value


READERS = {
    "a global": (lambda x: delta * x.sum(), set_delta),
    "under jax.jit": (lambda x: scaled(x).sum(), set_delta),
    "in a loop": (lambda x: jax.lax.fori_loop(0, 3, body, x).sum(), set_delta),
    "an attribute": (lambda x: settings.delta * x.sum(), lambda v: setattr(settings, "delta", v)),
    "within": (lambda x: settings.inner["deltas"][0] * x.sum(), lambda v: settings.inner.update(deltas=[v])),
    "an array in place": (lambda x: table[0] * x.sum(), lambda v: table.__setitem__(0, v)),
    "partial": (functools.partial(lambda x, by: (by * x).sum(), by=table), lambda v: table.__setitem__(0, v)),
    "an instance": (model, lambda v: setattr(model, "delta", v)),
    "a bound method": (model.__call__, lambda v: setattr(model, "delta", v)),
    "a class": (model, lambda v: setattr(Model, "factor", v)),
    "no source": (scope["unseen"], lambda v: scope.update(delta=v)),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_program_tells_what_a_function_reads(reader):
    loss, change = READERS[reader]
    before = program(jax.value_and_grad(loss), np.zeros(2))
    assert not before.hidden
    change(2.0)
    try:
        assert program(jax.value_and_grad(loss), np.zeros(2)) != before
    finally:
        change(1.0)
    assert program(jax.value_and_grad(loss), np.zeros(2)) == before


def centred(x, c):
    """Has its minimum at the mean of the centres, times delta: once read under jax.jit and once as it is."""
    return 0.25 * ((x - scaled(c)) ** 2).sum() + 0.25 * ((x - delta * c) ** 2).sum()


def swept(problem, folder):
    """Return what a sweep of one run finds; it must say that it is there, and be right about that."""
    found = adom.sweep(problem, NETWORK, adom.DIGing(a=0.3), rounds=300, tol=1e-18, folder=folder).results[0]
    assert found.status == "converged"
    return found.x.mean(axis=0)


def test_a_value_that_changes_is_refused_and_the_problem_made_again_has_it(tmp_path, monkeypatch):
    one = adom.from_loss(centred, CENTRES, mu=1.0, L=1.0)
    assert swept(one, tmp_path) == pytest.approx(MEAN)
    monkeypatch.setitem(globals(), "delta", 3.0)
    uses = (
        lambda: swept(one, tmp_path),
        lambda: adom.solve(one, NETWORK, rounds=5),
        lambda: Shifted(one, MEAN, CENTRES).solution(),
        lambda: on_one_rank(one, NETWORK, "diging", "unit", Request("auto", 5, Stop(), 1, "mpi", "float64", False)),
        one.solution,
    )
    for use in uses:
        with pytest.raises(InputError, match=r"beside x and data \(delta\) has changed, .* make the problem again"):
            use()
    assert swept(adom.from_loss(centred, CENTRES, mu=1.0, L=1.0), tmp_path) == pytest.approx(3 * MEAN)
    monkeypatch.setitem(globals(), "delta", 1.0)
    assert one.solution() == pytest.approx(MEAN)


def test_a_sweep_finds_only_results_of_the_same_loss(tmp_path):
    def closure(delta):
        loss = lambda x, c: 0.5 * ((x - delta * c) ** 2).sum()  # noqa: E731  # all of one name and one source
        return adom.from_loss(loss, CENTRES, mu=1.0, L=1.0)

    assert swept(closure(1.0), tmp_path) == pytest.approx(MEAN)
    assert swept(closure(2.0), tmp_path) == pytest.approx(2 * MEAN)
    assert swept(closure(2.0), tmp_path) == pytest.approx(2 * MEAN)
    assert len(list(tmp_path.iterdir())) == 2  # found again, though it is another function object

    def key(problem):
        member = expand(problem, NETWORK, SweepSpec(methods=adom.DIGing(a=0.3)), 9, Stop())[0]
        return Keys(9, 1, "float64").key(member)

    tilt = CENTRES - MEAN
    assert key(Shifted(closure(1.0), MEAN, tilt)) == key(Shifted(closure(1.0), MEAN, tilt))
    assert len({key(closure(1.0)), *(key(Shifted(closure(by), MEAN, tilt)) for by in (1.0, 2.0))}) == 3


def test_results_that_no_key_can_hold_are_not_kept(tmp_path):
    def loss(x, c):
        told = jax.pure_callback(lambda c: np.asarray(c) * delta, c, c, vmap_method="sequential")
        return 0.5 * ((x - told) ** 2).sum()

    problem = adom.from_loss(loss, CENTRES, mu=1.0, L=1.0)
    with pytest.raises(InputError, match=r"no digest can hold \(pure_callback\); leave folder out"):
        adom.sweep(problem, NETWORK, "diging", rounds=3, folder=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_problem_keeps_its_own_copy_of_the_data():
    H, c = np.ones((3, 1, 1)), np.array([[1.0], [2.0], [3.0]])
    problems = (adom.Quadratic(H, c), adom.from_loss(lambda x, c: 0.5 * x @ x - c @ x, c, mu=1.0, L=1.0))
    H *= 10
    c *= 10
    assert [problem.objective([1.0]) for problem in problems] == pytest.approx([1.5 - 6.0] * 2)


def test_a_run_reads_a_loss_once(monkeypatch):
    reads, read = [], loss._code
    monkeypatch.setattr(loss, "_code", lambda problem: (reads.append(problem), read(problem))[1])
    problem = adom.from_loss(lambda x, c: 0.5 * ((x - c) ** 2).sum(), CENTRES, mu=1.0, L=1.0)
    for _ in range(2):
        reads.clear()
        np.testing.assert_allclose(adom.solve(problem, NETWORK, rounds=300, tol=1e-20).x[0], MEAN, rtol=1e-8)
        assert len(reads) == 1
    assert problem.solution() is problem.solution()  # which the run has remembered
    assert len(reads) == 3


class State(NamedTuple):
    x: Any


@dataclass(frozen=True)
class Descent(Method):
    """Gradient descent that every node does alone, with a step that stands outside it."""

    name, title, oracle, vectors_per_round = "descent", "Descent", "primal", 1
    a: float = 0.5

    @classmethod
    def unit(cls, constants):
        return cls()

    theory = unit

    def init(self, zeros, oracle):
        return State(zeros)

    def step(self, state, oracle, gossip):
        x = state.x + 0 * gossip(state.x) - self.a * scaled(oracle.gradient(state.x))
        return State(x), x


class Squares(adom.problems.base.Problem):
    """Someone's own problem: |x - delta c_i|^2 / 2."""

    array_fields, static_fields = ("c",), ()

    def __init__(self, c):
        self.nodes, self.dim, self.c = *c.shape, c
        self._set_constants(np.ones(len(c)), np.ones(len(c)))

    def value_rows(self, x):
        return 0.5 * ((x - delta * self.c) ** 2).sum(axis=-1)

    def gradient_rows(self, x):
        return x - delta * self.c

    def hessian_product_rows(self, x, v):
        return v


def test_methods_and_problems_of_ones_own_read_what_is_there_now(tmp_path, monkeypatch):
    quadratic, own = adom.Quadratic(np.tile(np.eye(2), (3, 1, 1)), CENTRES), Squares(CENTRES)

    def first_step():
        return adom.sweep(quadratic, NETWORK, Descent, rounds=1, folder=tmp_path).results[0].x

    assert first_step() == pytest.approx(0.5 * CENTRES)
    assert swept(own, tmp_path) == pytest.approx(MEAN)
    monkeypatch.setitem(globals(), "delta", 2.0)
    assert first_step() == pytest.approx(CENTRES)
    assert swept(own, tmp_path) == pytest.approx(2 * MEAN)
