"""A user's own method whose steps or parameters are not what a method's are: refused in words, however it is run."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
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


@dataclass(frozen=True)
class Named(Descent):
    """The same, with hyper-parameters that have the names of those of a run's own wrappers."""

    inner: float = 2.0
    window: float = 3.0


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
PAIR = (
    f"step must return (State(x={ROWS}), {ROWS}), the next state, with shapes and types as init returns them, and an "
    "iterate"
)
WRONG = {
    Alone: "Alone.step never uses the network, so the run would have no rounds; call gossip or gossip.average",
    Twice: "Twice.step spends 2 rounds, but its class says rounds_per_step = 1 and rounds_of_step 1; set both to 2",
    Many: "Many.step spends a number of rounds that varies or depends on a hyper-parameter, but its class",
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


@pytest.mark.parametrize("parameters", ["theory", "auto"])
def test_a_parameter_may_have_the_name_of_one_of_a_wrapper(parameters):
    named, same = (adom.solve(PROBLEM, NETWORK, cls, parameters, rounds=30) for cls in (Named, Descent))
    assert named.provenance["method"]["name"] == "descent"
    assert (named.provenance["window"], named.provenance["outside"]) == (1, same.provenance["outside"])
    assert np.array_equal(named.x, same.x)


def test_the_number_of_vectors_matters_where_columns_ride_along():
    with pytest.raises(InputError, match=r"Wide.step sends 2 vectors .* says 1; write vectors_per_round = 2$"):
        adom.solve(PROBLEM, NETWORK, Wide, rounds=20)
    assert adom.solve(PROBLEM, NETWORK, Wide, "theory", rounds=20).status == "max_rounds"
    assert adom.solve(PROBLEM, NETWORK, Uneven, rounds=20).status == "max_rounds"


@every_way
def test_an_error_in_a_step_comes_through(run, tmp_path):
    with pytest.raises(NameError, match="'Stat' is not defined"):
        run(Misspelt, tmp_path)


def test_a_sweep_that_keeps_its_runs_says_what_fails_too(tmp_path):
    with pytest.raises(NameError, match="'Stat' is not defined"):
        adom.sweep(PROBLEM, NETWORK, Misspelt, rounds=20, folder=tmp_path)


def test_a_comparison_finds_a_wrong_step_before_the_first_run(monkeypatch):
    monkeypatch.setattr("adom.study.jobs.solve", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(InputError, match="got None"):
        adom.compare(PROBLEM, NETWORK, ["nids", Nothing], rounds=20)


@dataclass(frozen=True)
class Worded(Descent):
    kind: str = "fast"


@dataclass(frozen=True)
class Listed(Descent):
    more: Any = None

    @classmethod
    def theory(cls, constants):
        return cls(more=[1.0, 2.0])

    unit = theory


class Weighted(Listed):
    @classmethod
    def theory(cls, constants):
        return cls(more=np.ones(2))

    unit = theory


class Forgetful(Descent):
    @classmethod
    def theory(cls, constants):
        cls()

    unit = theory


@dataclass(frozen=True)
class Backward(Descent):
    def __post_init__(self):
        self._require_positive("a")

    @classmethod
    def theory(cls, constants):
        return cls(a=-1.0)

    unit = theory


class Counting(Descent):
    def init(self, zeros, oracle):
        return Counted(zeros, 0)

    def step(self, state, oracle, gossip):
        x = gossip.average(state.x) - self.a * oracle.gradient(state.x)
        return Counted(x, state.k + 1), x


class Counted(NamedTuple):
    x: Any
    k: Any


class Unnamed(Descent):
    def init(self, zeros, oracle):
        return zeros, zeros

    def step(self, state, oracle, gossip):
        x = gossip.average(state[0]) - self.a * oracle.gradient(state[0])
        return (x, x), x


@pytest.mark.parametrize(
    ("cls", "state"),
    [(Counting, f"Counted(x={ROWS}, k=int64[])"), (Unnamed, f"({ROWS}, {ROWS})")],
    ids=["count", "tuple"],
)
def test_a_state_that_is_not_of_rows_runs_but_for_auto(cls, state):
    assert adom.solve(PROBLEM, NETWORK, cls, "theory", rounds=20).last["round"] == 20
    with pytest.raises(InputError) as caught:
        adom.solve(PROBLEM, NETWORK, cls, rounds=20)
    assert str(caught.value).startswith(
        f"{cls.__name__}.init returns {state}, but parameters='auto' and imperfect links"
    )


RULE = "must be a number, as all hyper-parameters are, got"
ITSELF = r"computed for mu = 1, L = 1 and chi = .*; fix the formula, or use other parameters"
NO_NUMBERS = {
    Worded: f"Worded.kind {RULE} 'fast'; if it is not one, drop its annotation in the class",
    Listed: rf"Listed.more {RULE} \[1.0, 2.0\]; if it is not",
    Weighted: rf"Weighted.more {RULE} array\(\[1., 1.\]\); if it is not",
    Forgetful: r"Forgetful.(theory|unit)\(constants\) must return the method, cls\(...\), got None; change it",
    Backward: rf"a must be positive and finite, got -1.0, which Backward.(theory|unit) {ITSELF}",
}
FORMULAS = {
    **{name: run for name, run in WAYS.items() if name not in ("instance", "batch")},
    "theory": lambda cls, _: adom.solve(PROBLEM, NETWORK, cls, "theory", rounds=20),
    "unit": lambda cls, _: adom.solve(PROBLEM, NETWORK, cls, "unit", rounds=20),
    "tuned": lambda cls, _: adom.solve(PROBLEM, NETWORK, cls, "tuned", rounds=20),
}


@pytest.mark.parametrize("cls", NO_NUMBERS, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("run", FORMULAS.values(), ids=FORMULAS)
def test_a_formula_that_gives_no_parameters_is_refused_in_words(cls, run, tmp_path):
    with pytest.raises(InputError, match=f"^{NO_NUMBERS[cls]}"):
        run(cls, tmp_path)


def test_instances_have_numbers_and_a_class_too():
    for run in (WAYS["instance"], WAYS["batch"]):
        with pytest.raises(InputError, match=f"Worded.kind {RULE} 'fast'"):
            run(Worded, None)
    for number in (True, np.float32(0.5), np.int64(1), np.array(0.5), jnp.float32(0.5)):
        assert adom.solve(PROBLEM, NETWORK, Descent(a=number), rounds=2).last["round"] == 2

    class Needy(Descent):
        needs = "banana"

    with pytest.raises(InputError, match="needs of the method Needy must be one of fixed, connected"):
        adom.solve(PROBLEM, NETWORK, Needy(), rounds=2)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_method_of_the_table_is_none_of_these(name, dtype):
    try_steps(method_class(name), dtype=dtype)
