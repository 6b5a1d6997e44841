"""Steps of a user's own method that are not what every step is: refused in words, in every way to run them."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import adom
from adom.algorithms import METHODS, Method, method_class
from adom.errors import InputError
from adom.run.user_code import try_steps

NODES, DIM = 4, 3
PROBLEM = adom.Quadratic(np.tile(np.eye(DIM), (NODES, 1, 1)), np.ones((NODES, DIM)))
NETWORK = adom.networks.ring(NODES)


class State(NamedTuple):
    x: Any


@dataclass(frozen=True)
class Descent(Method):
    """Decentralized gradient descent, as others here spoil it."""

    name, title, oracle, vectors_per_round, needs = "descent", "Descent", "primal", 1, "windows"
    a: float = 0.1

    @classmethod
    def theory(cls, constants):
        return cls(a=1 / (constants.L * constants.chi))

    unit = theory

    def init(self, zeros, oracle):
        return State(zeros)

    def step(self, state, oracle, gossip):
        x = self.mixed(state.x, gossip) - self.a * oracle.gradient(state.x)
        return self.returned(x)

    def mixed(self, x, gossip):
        return gossip.average(x)

    def returned(self, x):
        return State(x), x


class Alone(Descent):
    def mixed(self, x, gossip):
        return x


class Twice(Descent):
    def mixed(self, x, gossip):
        return gossip.average(gossip.average(x))


class Wide(Descent):
    def mixed(self, x, gossip):
        return gossip.average(x, x)[0]


class Uneven(Descent):
    rounds_per_step = 2

    def mixed(self, x, gossip):
        return gossip.average(gossip.average(x, x)[1])

    def rounds_of_step(self, k):
        return 2


class Many(Descent):
    def mixed(self, x, gossip):
        return gossip.mix(x, self.a)


class Narrow(Descent):
    def returned(self, x):
        return State(x[:, :1]), x


class Mean(Descent):
    def returned(self, x):
        return State(x), x.mean(axis=0)


class Short(Descent):
    def returned(self, x):
        return State(x), x.astype("float32")


class Nothing(Descent):
    def returned(self, x):
        return None


class Bare(Descent):
    def returned(self, x):
        return x


class Misspelt(Descent):
    def returned(self, x):
        return Stat(x), x  # noqa: F821  # a typo


ROWS = "float64[4, 3]"
PAIR = f"step must return (State(x={ROWS}), {ROWS}), the next state with the shapes and types of init's and an iterate"
WRONG = {
    Alone: "Alone.step uses the network in no round, and a run counts rounds; call gossip or gossip.average",
    Twice: "Twice.step spends 2 rounds, and its class says rounds_per_step = 1 and rounds_of_step 1; let both say 2",
    Wide: "Wide.step sends 2 vectors in a round, and vectors_per_round says 1; write vectors_per_round = 2",
    Uneven: "Uneven.step sends 1 or 2 vectors in a round, and vectors_per_round says 1; send as many in every round",
    Many: "Many.step spends a number of rounds that varies or depends on a hyper-parameter, and its class",
    Narrow: f"Narrow.{PAIR}, got (State(x=float64[4, 1]), {ROWS}); change it",
    Mean: f"Mean.{PAIR}, got (State(x={ROWS}), float64[3]); change it",
    Short: f"Short.{PAIR}, got (State(x={ROWS}), float32[4, 3]); change it",
    Nothing: f"Nothing.{PAIR}, got None; change it",
    Bare: f"Bare.{PAIR}, got {ROWS}; change it",
}
LOSSY = adom.networks.lossy(NETWORK, one_way=0.1)
WAYS = {
    "auto": lambda cls, _: adom.solve(PROBLEM, NETWORK, cls, rounds=20),
    "instance": lambda cls, _: adom.solve(PROBLEM, NETWORK, cls(a=0.1), rounds=20),
    "lossy": lambda cls, _: adom.solve(PROBLEM, LOSSY, cls, "theory", rounds=20),
    "batch": lambda cls, _: adom.solve_many(PROBLEM, NETWORK, [cls(a=0.1), cls(a=0.2)], rounds=20),
    "compare": lambda cls, _: adom.compare(PROBLEM, NETWORK, [cls], rounds=20),
    "compare, kept": lambda cls, folder: adom.compare(PROBLEM, {"a": NETWORK}, [cls], rounds=20, folder=folder),
    "sweep": lambda cls, _: adom.sweep(PROBLEM, NETWORK, cls, rounds=20),
}
every_way = pytest.mark.parametrize("run", WAYS.values(), ids=WAYS)


@pytest.mark.parametrize("cls", WRONG, ids=lambda cls: cls.__name__)
@every_way
def test_a_step_that_is_none_is_refused_in_words(cls, run, tmp_path):
    with pytest.raises(InputError) as caught:
        run(cls, tmp_path)
    assert str(caught.value).startswith(WRONG[cls])


@every_way
def test_an_error_in_a_step_comes_through(run, tmp_path):
    with pytest.raises(NameError, match="'Stat' is not defined"):
        run(Misspelt, tmp_path)


def test_a_sweep_that_keeps_its_runs_says_what_fails_too(tmp_path):
    with pytest.raises(NameError, match="'Stat' is not defined"):
        adom.sweep(PROBLEM, NETWORK, Misspelt, rounds=20, folder=tmp_path)


def test_a_comparison_finds_a_wrong_step_before_the_first_run(monkeypatch):
    monkeypatch.setattr("adom.study.compare.solve", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(InputError, match="got None"):
        adom.compare(PROBLEM, NETWORK, ["nids", Nothing], rounds=20)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_method_of_the_table_is_none_of_these(name, dtype):
    try_steps(method_class(name), dtype=dtype)
