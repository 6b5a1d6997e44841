"""The conserved parts of every method, and the ledger that restores their sums, node by node in NumPy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adom.algorithms import METHODS, Constants, Method, method_class
from adom.dynamics.healing import _linear, healing
from support.reference import Oracle, quadratics

NODES, DIM = 5, 2
CONSTANTS = Constants(mu=1.0, L=30.0, lambda_min_plus=0.1, lambda_max=1.0, nodes=NODES)
KEPT = {
    "adom": ("z", "z_f"),
    "adom+": ("z", "z_f"),
    "diging": ("s - g",),
    "acc-gt": ("s - g",),
    "acc-dngd": ("s - g",),
    "panda": ("x - s", "y"),
    "dnm": ("y", "z"),
    "mudag": ("x - y_before + step_size g_before",),
    "apm": (),
    "dgd": (),
    "extra": ("x - w + a g",),
    "nids": ("x - x_before + a g",),
    "exact-diffusion": ("x - psi",),
    "aug-dgm": ("s - g",),
    "sonata": ("s - g",),
    "adom+multi": ("z", "z_f"),
    "acc-gt-multi": ("s - g",),
}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e3])
def test_conserved_parts(name, scale):
    """Those that a look at the pseudo-code gives, whatever the units of the problem are."""
    method = method_class(name).unit(Constants(scale, 30 * scale, 0.1, 1.0, NODES))
    state: Any = method.init(np.zeros((1, 1)), _Oracle(np.random.default_rng(0)))
    fields = [field for field in state._fields if np.ndim(getattr(state, field)) == 2]
    expected = np.zeros((len(KEPT[name]), len(fields)))
    for row, words in zip(expected, KEPT[name], strict=True):
        for term in words.replace("- ", "+ -").split("+"):
            *parameter, field = term.replace("-", "").split()
            factor = getattr(method, parameter[0]) if parameter else -1.0 if "-" in term else 1.0
            row[fields.index(field)] = factor
    np.testing.assert_allclose(healing(method).kept[..., 0], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize(("kappa", "chi"), [(1e6, 100.0), (30.0, 1.5**54), (1e6, 1.5**26), (1.1, 1.0)])
def test_as_much_is_conserved_where_constants_are_extreme(name, kappa, chi):
    """Gradients then move some fields by less than the rounding of others."""
    method = method_class(name).unit(Constants(1.0, kappa, 1 / chi, 1.0, NODES))
    rule = healing(method)
    assert rule.parts == len(KEPT[name])
    if "s - g" in KEPT[name]:
        state: Any = method.init(np.zeros((1, 1)), _Oracle(np.random.default_rng(0)))
        fields = [field for field in state._fields if np.ndim(getattr(state, field)) == 2]
        np.testing.assert_array_equal(rule.kept[0, :, 0], [{"s": 1, "g": -1}.get(field, 0) for field in fields])


def test_every_method_is_named():
    """A new method has to say here what it conserves; the others use no links that are healed."""
    assert set(METHODS) == {*KEPT, "pngd", "push-pull", "push-diging", "msda", "opapc", "newton"}


def test_newton_says_itself_what_came_over_its_links():
    method = method_class("newton").theory(CONSTANTS)
    rule = healing(method)
    assert [float(part.item()) for part in rule] == [1.0, 1.0, -1.0, 1.0]
    state: Any = method.init(np.zeros((NODES, 2)), Oracle(*quadratics(NODES, 2, 3.0)))
    moved = rule.change(state, np.ones((NODES, 1, method.width(2))))
    np.testing.assert_array_equal(moved.exchanged, state.exchanged + 1)
    np.testing.assert_array_equal(rule.of(moved)[:, 0], moved.exchanged)
    assert all(a is b for a, b in zip(moved[:3], state[:3], strict=True))


def test_columns_have_parameters_of_their_own():
    one, other = (healing(method_class("adom").unit(c)) for c in (CONSTANTS, Constants(1.0, 5.0, 0.5)))
    pair = [method_class("adom").unit(c).parameters() for c in (CONSTANTS, Constants(1.0, 5.0, 0.5))]
    both = healing(method_class("adom")(**{name: np.array([p[name] for p in pair]) for name in pair[0]}))
    for name, values in both._asdict().items():
        np.testing.assert_array_equal(values, np.concatenate([getattr(one, name), getattr(other, name)], axis=-1))


@pytest.mark.parametrize("name", [name for name in KEPT if KEPT[name]])
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), loss=st.sampled_from([0.1, 0.5, 0.9]))
def test_sums_return_to_zero_after_loss_death_and_changed_parameters(name, seed, loss):
    """Whatever was lost, whatever the gradients were, and whoever has left or joined."""
    random = np.random.default_rng(seed)
    bold = method_class(name).unit(CONSTANTS)
    careful = method_class(name).unit(Constants(1.0, 30.0, 0.01, 1.0, NODES))
    swarm = _Swarm(bold, random)
    for k in range(12):
        if k == 6 and name not in ("mudag", "extra", "nids"):  # whose conserved parts contain their step
            swarm.use(careful)
        if k == 8:
            swarm.remove(2)
        if k == 10:
            swarm.add(2)
        swarm.step(loss)
    swarm.check_entries()
    assert loss < 0.5 or np.abs(swarm.sums()).max() > 1e-3 * swarm.size()  # there was something to repair
    swarm.step(0.0)  # all owners are heard: the entries agree
    swarm.check_entries()
    assert np.abs(swarm.sums()).max() < 1e-12 * swarm.size()
    swarm.remove(4)
    assert np.abs(swarm.sums()).max() < 1e-12 * swarm.size()
    swarm.check_entries()


class _Oracle:
    """Gradients that have nothing to do with the point."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self._random.standard_normal(x.shape)

    dual_gradient = gradient


class _Given:
    """A network that answers with given sums, or with zeros, and remembers what it was sent."""

    lambda_max = 1.0

    def __init__(self, sums: np.ndarray | None = None) -> None:
        self._sums = sums
        self.sent: np.ndarray = np.zeros((0, DIM))

    def __call__(self, *vectors: np.ndarray) -> Any:
        self.sent = np.concatenate(vectors)
        sums = np.zeros_like(self.sent) if self._sums is None else self._sums
        return sums[:1] if len(vectors) == 1 else tuple(sums[:, None])

    def average(self, *vectors: np.ndarray) -> Any:
        sums = self(*vectors)
        return vectors[0] - sums if len(vectors) == 1 else tuple(v - w for v, w in zip(vectors, sums, strict=True))

    def mix(self, v: np.ndarray, rounds: Any) -> Any:
        return self.average(v)

    def windows(self, rounds: Any) -> Any:
        return self


class _Swarm:
    """Nodes as agents: each has a state, and an entry for every link that it has used."""

    def __init__(self, method: Method, random: np.random.Generator) -> None:
        self._random, self._largest = random, 0.0
        self.use(method)
        self._seeds = iter(range(10**6))
        self.states: dict[int, Any] = {}
        self.entries: dict[int, dict[int, np.ndarray]] = {}
        for i in range(NODES):
            self.add(i)

    def use(self, method: Method) -> None:
        self.method, self.rule = method, healing(method)

    def add(self, i: int) -> None:
        self.states[i], self.entries[i] = self.method.init(np.zeros((1, DIM)), _Oracle(self._random)), {}

    def remove(self, gone: int) -> None:
        del self.states[gone], self.entries[gone]
        for i, entries in self.entries.items():
            if gone in entries:
                self.states[i] = self.rule.change(self.states[i], -entries.pop(gone)[None])

    def step(self, loss: float) -> None:
        rule, start, sent = self.rule, {i: dict(own) for i, own in self.entries.items()}, {}
        gradients = {i: next(self._seeds) for i in self.states}
        for i, state in self.states.items():
            network = _Given()
            self.method.step(state, _Oracle(np.random.default_rng(gradients[i])), network)
            sent[i] = network.sent
        nothing = np.zeros((rule.parts, DIM))
        for i, state in self.states.items():
            taken = {j: 0.2 * (sent[i] - sent[j]) for j in sent if j != i and self._random.random() >= loss}
            sums = sum(taken.values(), np.zeros_like(sent[i]))
            after, _ = self.method.step(state, _Oracle(np.random.default_rng(gradients[i])), _Given(sums))
            repair = np.zeros((1, *nothing.shape))
            for j in {*self.entries[i], *taken}:
                entry = rule.after(start[i].get(j, nothing), taken.get(j, 0 * sums))
                if j in taken and j < i:
                    owners = rule.after(-start[j].get(i, nothing), taken[j])
                    repair, entry = repair + owners - entry, owners
                self.entries[i][j] = entry
            self.states[i] = rule.change(after, repair)
            self._largest = max(self._largest, np.abs(rule.of(self.states[i])).max())

    def sums(self) -> np.ndarray:
        return np.sum([self.rule.of(state) for state in self.states.values()], axis=0)

    def size(self) -> float:
        """Return the largest number that has been in the conserved parts of any node."""
        return self._largest

    def check_entries(self) -> None:
        """A node's conserved parts are the sum of its entries."""
        for i, state in self.states.items():
            total = sum(self.entries[i].values(), np.zeros((self.rule.parts, DIM)))
            np.testing.assert_allclose(self.rule.of(state)[0], total, atol=1e-12 * self.size())


def test_a_difference_is_applied_to_adom_as_the_exchange_that_came_late():
    method = method_class("adom").unit(Constants(mu=1.0, L=10.0, lambda_min_plus=0.1))
    inputs, ends = _linear(method)
    exchange = np.split(inputs[:, 0], ends, axis=1)[2]  # what one does to z, z_f and m
    rule = healing(method)
    assert np.abs(exchange[2]).max() > 0
    lift, L = rule.lift[..., 0], rule.kept[..., 0]
    assert L @ lift == pytest.approx(np.eye(2))
    assert lift @ (L @ exchange) == pytest.approx(exchange)
