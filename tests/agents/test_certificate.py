"""Bounds: no agent certifies what is not true of the agents and data that it names."""

import os
from types import SimpleNamespace

import numpy as np
import pytest

from adom.agents import certificate as module
from adom.agents.board import Board
from adom.agents.certificate import Checks, Place, certified, middle
from adom.agents.functions import Free, SampleFunction
from adom.agents.wire import Member
from adom.problems.losses import LOGISTIC, RIDGE, SOFTMAX
from support.agents_made import QuadraticFunction, World, make_agent, near, ring

HISTORIES = int(os.environ.get("ADOM_HISTORIES", "1000"))
"""Random histories of checks; set the variable for more."""


def minimiser(functions, x, idle):
    """Return the minimiser of a sum by damped Newton steps from x."""
    for _ in range(200):
        g = sum(f.gradient(x) for f in functions)
        H = sum(f.hessian(x) for f in functions) + idle.T @ idle
        step, t = np.linalg.solve(H, g), 1.0
        size = np.linalg.norm(g)
        while t > 1e-3 and np.linalg.norm(sum(f.gradient(x - t * step) for f in functions)) > size:
            t /= 2
        x = x - t * step
    return x


def samples(kind, free, scale, rng, agents=3, count=40, width=4):
    """Return functions of some agents, the same without a penalty on intercepts, and what is the same for all."""
    classes = 3 if kind is SOFTMAX else 1
    made = []
    for _ in range(agents):
        a = rng.standard_normal((count, width)) * scale
        if free:
            a[:, -1] = 5.0
        score = a[:, : width - 1].sum(axis=1) + rng.standard_normal(count)
        b = {SOFTMAX: rng.integers(0, 3, count), LOGISTIC: np.sign(score), RIDGE: score}[kind]
        made.append(SampleFunction(kind, a, b.astype(float), 1e-3, 1.0, classes))
    dim, mask, idle = made[0].dim, np.zeros(made[0].dim), None
    if not free:
        return made, made, Place(dim)
    mask[width - 1 :: width] = 1.0
    if kind is SOFTMAX:
        idle = mask[None] / np.linalg.norm(mask)
    return made, [Free(f, 1e-3, mask) for f in made], Place(dim, mask, idle, 1e-3)


@pytest.mark.parametrize("most", [128, 1])
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("kind", [LOGISTIC, RIDGE, SOFTMAX])
def test_the_bound_holds_and_is_tight(kind, free, most, monkeypatch):
    monkeypatch.setattr(module, "MOST_DIM", most)  # beyond it no Hessians are posted
    rng, known = np.random.default_rng(5), 0
    for scale in (1.0, 0.05):
        held, aims, place = samples(kind, free, scale, rng)
        x = minimiser(aims, np.zeros(place.dim), place.idle)
        for far in (10.0, 1.0, 1e-2, 1e-4, 1e-8, 0.0):
            away = far * rng.standard_normal((3, place.dim))
            answers = dict(zip("abc", x + away - away @ place.idle.T @ place.idle, strict=True))
            y = middle(list(answers.values()))
            rows = {n: place.row(y, a, h, np.zeros(place.dim)) for n, a, h in zip("abc", aims, held, strict=True)}
            found = certified(answers, rows, place)
            error = np.linalg.norm(y - x)
            assert error <= found.distance * (1 + 1e-9) + 1e-13
            known += found.distance < np.inf
            if most > 1 and 1e-8 <= far <= 1e-4 and scale == 1.0:
                assert found.distance <= 300 * error + 1e-10
    assert known >= 4


def test_a_column_of_the_hessian_bounds_what_a_free_coordinate_can_do():
    rng = np.random.default_rng(0)
    for _ in range(100):
        a = rng.standard_normal((5, 4)) * 10 ** rng.uniform(-2, 2, 4)
        penalty, free = 10 ** rng.uniform(-3, 1), np.array([1, 3])
        H = a.T @ a + penalty * np.diag([1.0, 0.0, 1.0, 0.0])
        assert module.least_of(H[:, free], free, penalty) <= np.linalg.eigvalsh(H)[0] * (1 + 1e-6) + 1e-12


def test_large_data_are_not_certain_beyond_their_rounding():
    """Targets of 1e14: the gradient is known to 1e-2 or so, and the bound must say so."""
    rng = np.random.default_rng(1)
    a = rng.standard_normal((30, 3))
    exact = np.linalg.solve(a.T @ a / 30 + 1e-3 * np.eye(3), a.T @ np.round(a @ [1e14, 2e14, 3e14]) / 30)
    f = SampleFunction(RIDGE, a, np.round(a @ [1e14, 2e14, 3e14]), 1e-3)
    place = Place(3)
    for x in (exact, exact * (1 + 1e-16), np.nextafter(exact, 0)):
        found = certified({"a": x}, {"a": place.row(x, f, f, np.zeros(3))}, place)
        assert 1e-3 < found.distance < 1e3


# Histories: agents that come, go, restart, change their data, and see each other late


def exact_of(quadratics):
    """Return the minimiser of a sum of quadratics of two numbers, in extended precision."""
    H = sum(np.asarray(f.hessian(None), np.longdouble) for f in quadratics)
    c = sum(-np.asarray(f.gradient(np.zeros(2)), np.longdouble) for f in quadratics)
    d = H[0, 0] * H[1, 1] - H[0, 1] * H[1, 0]
    return np.array([H[1, 1] * c[0] - H[0, 1] * c[1], H[0, 0] * c[1] - H[1, 0] * c[0]]) / d


def some_function(rng, scale):
    q, _ = np.linalg.qr(rng.standard_normal((2, 2)))
    H = q @ np.diag([1.0, 10 ** rng.uniform(0, 4)]) @ q.T
    return QuadraticFunction((H + H.T) / 2 * scale, rng.standard_normal(2) * scale * 10 ** rng.uniform(-2, 2))


class Fake:
    """An agent whose answer, data and knowledge of others are whatever happens to it."""

    def __init__(self, name, function, world):
        self.name, self.function, self.world = name, function, world
        self.x, self.place, self.counters = np.zeros(2), Place(2), SimpleNamespace(rounds=0)
        self.round = 0
        self.view = {}
        self.members = SimpleNamespace(present=self.present)
        self.board = Board(Member(name, 1, 0, 1.0, 1.0), [], "", 1.0)
        self.checks = Checks(self, self.board)

    def present(self, now):
        known = {**self.view, self.name: self.function.data}
        return [SimpleNamespace(name=name, data=data) for name, data in sorted(known.items())]

    def about(self, y):
        return self.place.row(y, self.function, self.function, np.zeros(2))

    def certify(self, found):
        functions = [self.world.all[name, data] for name, data in found.data.items()]
        error = float(np.linalg.norm(found.answer - exact_of(functions)))
        self.world.bounds.append((error, found.distance))


class History:
    def __init__(self, seed):
        self.rng, self.all, self.bounds = np.random.default_rng(seed), {}, []
        self.agents = {name: self.make(name) for name in "abcd"[: self.rng.integers(1, 5)]}

    def function(self, name):
        f = some_function(self.rng, float(self.rng.choice([1.0, 1.0, 1.0, 1e9, 1e-6])))
        self.all[name, f.data] = f
        return f

    def make(self, name):
        return Fake(name, self.function(name), self)

    def run(self, ticks=60):
        rng = self.rng
        for tick in range(ticks):
            for agent in list(self.agents.values()):
                self.happen(agent)
                agent.checks.step(0.1 * tick)
            for agent in list(self.agents.values()):
                for other in self.agents.values():
                    if other is not agent and rng.random() < 0.5:
                        for topic, rows in agent.board.rows.items():
                            for name, row in rows.items():
                                other.board.post(topic, name, row)

    def happen(self, agent):
        """Let something happen to an agent: mostly, it makes rounds and hears who is there."""
        rng, what = self.rng, self.rng.random()
        if what < 0.01:
            agent.function = self.function(agent.name)
        elif what < 0.02:
            self.agents[agent.name] = self.make(agent.name)
        elif what < 0.03 and len(self.agents) > 1:
            del self.agents[agent.name]
        elif what < 0.04:
            new = str(rng.choice(list("abcd")))
            self.agents.setdefault(new, self.make(new))
        elif what < 0.3:
            agent.view = {name: a.function.data for name, a in self.agents.items() if rng.random() < 0.95}
        near = exact_of([a.function for a in self.agents.values()]).astype(float)
        agent.x = near + 10 ** rng.uniform(-18, 2) * rng.standard_normal(2)
        agent.counters.rounds += int(rng.integers(1, 20))


def test_no_agent_ever_certified_what_was_not_true_of_the_agents_it_named():
    checked = small = 0
    for seed in range(HISTORIES):
        history = History(seed)
        history.run()
        for error, distance in history.bounds:
            checked += 1
            small += distance < 1e-9
            assert error <= distance, seed
    assert checked > 10 * HISTORIES
    assert small > HISTORIES  # and it is not that nothing was ever certain


@pytest.mark.parametrize("seed", range(4))
def test_real_agents_certify_only_what_is_true(seed):
    """Agents that join, die, leave and have data 1e9 too large for a while: all that they ever certified is checked."""
    rng = np.random.default_rng(seed)
    names, known = [f"n{i}" for i in range(4)], {}

    def function(name, scale=1.0):
        f = some_function(rng, 1.0)
        f = QuadraticFunction(f.hessian(None), scale * -f.gradient(np.zeros(2)))
        known[name, f.data] = f
        return f

    def made(name, boot=1):
        return make_agent(name, function(name), near(name, ring(names)), gone=1.0, patience=0.1, chi=8.0, boot=boot)

    world, seen = World([made(name) for name in names], ring(names), loss=0.02, seed=seed), []
    world.start()
    for step in range(12):
        name = names[int(rng.integers(4))]
        agent, what = world.agents[name], int(rng.integers(4))
        if what == 0:
            agent.replace(function(name, 1e9))
        elif what == 1:
            agent.replace(function(name))
        elif what == 2:
            world.stopped.add(name)
        elif name in world.stopped:
            world.stopped.discard(name)
            world.add(made(name, boot=step + 2))
        for _ in range(120):
            world.tick()
            for each in world.agents.values():
                found = each.certificate
                if found is not None and not any(found is old for old in seen[-20:]):
                    seen.append(found)
                    exact = exact_of([known[pair] for pair in found.data.items()])
                    assert np.linalg.norm(found.answer - exact) <= found.distance, (step, found)
    assert len(seen) > 20
