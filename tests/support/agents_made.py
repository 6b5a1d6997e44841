"""Agents in one process, joined by a network that drops, delays and cuts as told, with a clock of its own."""

import socket
import zlib
from collections import deque

import numpy as np

from adom.agents.agent import Agent
from adom.agents.auto import Auto, Settings
from adom.agents.board import MAGIC, Board
from adom.agents.certificate import Checks
from adom.agents.functions import AgentOracle, Function
from adom.agents.rows import AgentRows
from adom.agents.wire import Form, Member
from adom.algorithms import method_class
from adom.dynamics.policy import WideOracle
from adom.problems.minimiser import ULP


class QuadraticFunction(Function):
    """x'Hx/2 - c'x."""

    def __init__(self, H, c):
        self._h, self._c = np.asarray(H, dtype=float), np.asarray(c, dtype=float)
        self.dim = self._c.size
        values = np.linalg.eigvalsh(self._h)
        self.mu, self.L = float(values[0]), float(values[-1])
        self.data = zlib.crc32(self._h.tobytes() + self._c.tobytes())

    def gradient(self, x):
        return np.asarray(self._h @ x - self._c)

    def hessian(self, x):
        return self._h

    def noise(self, x):
        terms = np.abs(self._h) @ np.abs(x) + np.abs(self._c)
        return float(2 * np.sqrt(self.dim + 1) * ULP * np.linalg.norm(terms))


def quadratics(nodes, dim, kappa=10.0, seed=0):
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(nodes):
        q, _ = np.linalg.qr(rng.standard_normal((dim, dim)))
        made.append(QuadraticFunction(q @ np.diag(np.geomspace(1, kappa, dim)) @ q.T, rng.standard_normal(dim)))
    return made


def exact(functions):
    H = sum(f.hessian(np.zeros(f.dim)) for f in functions)
    return np.linalg.solve(H, -sum(f.gradient(np.zeros(f.dim)) for f in functions))


def make_agent(name, function, neighbours, method="adom", boot=1, patience=1.0, gone=20.0, **chosen):
    cls = method_class(method)
    oracle = AgentOracle(function, exact=True)
    if chosen:
        settings = Settings(cls, **chosen)
    else:
        settings = Auto(cls, function, zlib.crc32(name.encode()))
        oracle = WideOracle(oracle, np.ones((1, settings.canaries)))
    width = function.dim + settings.canaries
    rows = AgentRows(settings.method(function.mu, function.L, 1), oracle, width)
    form = Form("test", method, function.dim, width, cls.vectors_per_round, rows.parts)
    own = Member(name, boot, 0, function.mu, function.L)
    return Agent(own, rows, form, settings, function, neighbours, patience, gone)


class World:
    """Agents and the links between them; a message takes one tick, if it is not lost."""

    TICK = 0.01

    def __init__(self, agents, links, loss=0.0, seed=0):
        self.agents = {agent.name: agent for agent in agents}
        self.links = {frozenset(link) for link in links}
        self.cut, self.stopped, self.one_way = set(), set(), set()
        self.loss, self.rng = loss, np.random.default_rng(seed)
        self.now, self.mail, self.running = 0.0, deque(), set()
        self.liars = {}  # by name, what becomes of a message of a round: (to, data) -> data
        self.checks, self.checking = {}, True
        for agent in agents:
            self.equip(agent)

    def equip(self, agent):
        """Give an agent a board and checks."""
        board = Board(Member(agent.name, agent.members.own.boot, 0, 1.0, 1.0), agent.neighbours, "test", agent.gone)
        self.checks[agent.name] = board, Checks(agent, board)

    def send(self, sender, messages):
        for to, data in messages:
            link = frozenset((sender, to))
            lost = link in self.cut or (sender, to) in self.one_way or self.rng.random() < self.loss
            if link in self.links and not lost:
                lies = sender in self.liars and not data.startswith(MAGIC)
                said = self.liars[sender](to, data) if lies else data
                self.mail.append((self.now + self.TICK, sender, to, said))

    def tick(self, gather=True):
        self.now += self.TICK
        while self.mail and self.mail[0][0] <= self.now:
            _, sender, to, data = self.mail.popleft()
            if to not in self.agents or to in self.stopped:
                continue
            if data.startswith(MAGIC):
                self.send(to, self.checks[to][0].hear(sender, data, self.now))
            else:
                self.agents[to].hear(sender, data, self.now)
        for name, agent in self.agents.items():
            if name in self.stopped:
                continue
            if name not in self.running:
                self.send(name, agent.greet(self.now))
                if not gather or agent.met(self.now):
                    agent.count_all(self.now)
                    self.running.add(name)
                    self.send(name, agent.begin(self.now))
            elif agent.ready(self.now):
                agent.finish(self.now)
                if self.checking:
                    self.send(name, self.checks[name][1].step(self.now))
                self.send(name, agent.begin(self.now))
            else:
                self.send(name, agent.still_waiting(self.now))

    def start(self):
        """Begin without waiting for anybody."""
        for agent in self.agents.values():
            self.running.add(agent.name)
            self.send(agent.name, agent.begin(self.now))

    def add(self, agent, x=None):
        """Let an agent come, at the others' answer if that is given."""
        self.agents[agent.name] = agent
        self.equip(agent)
        if x is not None:
            agent.start(x)
        self.running.add(agent.name)
        self.send(agent.name, agent.begin(self.now))

    def run(self, ticks):
        for _ in range(ticks):
            self.tick()

    def error(self, x, names=None):
        chosen = [self.agents[name] for name in names or self.agents]
        return max(float(np.linalg.norm(agent.x - x)) for agent in chosen) / float(np.linalg.norm(x))


def near(name, links):
    """Return the names at the other ends of an agent's links."""
    return sorted(b if a == name else a for a, b in links if name in (a, b))


def ring(names, extra=()):
    return [*zip(names, [*names[1:], names[0]], strict=True), *extra]


def free_ports(count):
    """Return ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
