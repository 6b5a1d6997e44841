"""Well-formed messages that say something false, at the extremes of every field, once and for long.

They end no agent. Once they are no longer said, everybody knows everybody again, and all answers are exact.
"""

import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from adom.agents.wire import (
    ALL_FLAGS,
    ASIDE,
    COUNTED,
    HEARS,
    LAST_COUNT,
    LAST_ROUND,
    MOST_MEMBERS,
    WAITING,
    Member,
    pack,
    parse,
)
from support.agents_made import World, exact, make_agent, quadratics, ring

NAMES = [f"n{i}" for i in range(5)]
LIAR, FAR = "n0", "n2"  # n4 hears of n2 from n0, which is not its neighbour, and from n3
FUNCTIONS = dict(zip(NAMES, quadratics(5, 3, kappa=3.0), strict=True))
GONE = 0.5
LONG = 3 * round(GONE / World.TICK)
"""Ticks of a lasting lie."""
AFTER = 1600
"""The most ticks until all is well again."""


@cache
def _converged(method, auto):
    chosen = {} if auto else {"chi": 4.0}
    links = ring(NAMES)
    near = {name: [b if a == name else a for a, b in links if name in (a, b)] for name in NAMES}
    agents = [
        make_agent(n, FUNCTIONS[n], near[n], method, boot=10 + i, patience=0.05, gone=GONE, **chosen)
        for i, n in enumerate(NAMES)
    ]
    world = World(agents, links)
    world.run(900 if auto else 400)
    assert well(world)
    return world


def converged(method="adom", auto=False):
    return copy.deepcopy(_converged(method, auto))


def well(world, names=NAMES):
    """Return whether answers are exact, all are present and linked, and rounds are about the same."""
    agents = [world.agents[name] for name in names]
    present = all([m.name for m in agent.members.present(world.now)] == sorted(names) for agent in agents)
    linked = all(n.counted for agent in agents for n in agent.neighbours.values() if n.name in names)
    rounds = {agent.round for agent in agents}
    near = world.error(exact([FUNCTIONS[name] for name in names]), names) < 1e-9
    return present and linked and max(rounds) - min(rounds) <= 2 and near


def run_until_well(world, names=NAMES, most=AFTER):
    """Run until all is well, and stays so; return the ticks that it took."""
    for ticks in range(0, most, 10):
        if well(world, names):
            later = copy.deepcopy(world)
            later.run(60)
            if well(later, names):
                return ticks
        world.run(10)
    agents = [world.agents[name] for name in names]
    raise AssertionError(
        f"after {most} ticks: error {world.error(exact([FUNCTIONS[name] for name in names]), names):.1e}, rounds "
        f"{[agent.round for agent in agents]}, present {[len(a.members.present(world.now)) for a in agents]}, "
        f"refused {[agent.counters.refused for agent in agents]}"
    )


def tell(world, change):
    """Let the liar change its messages with `change(message, now)`."""
    form = world.agents[LIAR].form

    def lie(to, data):
        message = parse(data, form)
        change(message, world)
        return pack(message, form)

    world.liars[LIAR] = lie


def about(name, **fields):
    """Return a lie about an agent; values may be functions of the true ones."""

    def change(message, world):
        true = world.agents[name].members.own
        values = {field: value(getattr(true, field)) if callable(value) else value for field, value in fields.items()}
        entry = replace(true, **{"beat": true.beat + 1000, **values})
        message.members = [entry, *(m for m in message.members if m.name != name)]
        if not any(m.name == LIAR for m in message.members):
            message.members.append(replace(world.agents[LIAR].members.own))

    return change


def saying(**fields):
    """Return a lie in the fields of a message; values may be functions of the true ones."""

    def change(message, world):
        for field, value in fields.items():
            true = getattr(message, field)
            if field == "edge" and true is None and message.vectors is not None:
                true = world.agents[LIAR].rows.entry("n1")
            if true is not None:
                setattr(message, field, value(true) if callable(value) else value)

    return change


def invented(message, world):
    """Name as many agents as a message can."""
    names = [f"x{world.now:.2f}-{i}".replace(".", "_") for i in range(300)]
    message.members = [replace(world.agents[LIAR].members.own), *(Member(n, 1, 1, 1.0, 3.0) for n in names)]


ABOUT = {
    "boot 0": {"boot": 0},
    "boot + 1": {"boot": lambda true: true + 1},
    "boot, last": {"boot": LAST_COUNT - 1},
    "boot, end": {"boot": 2**64 - 1},
    "beat 0": {"beat": 0},
    "beat + 1": {"beat": lambda true: true + 1},
    "beat 2^53": {"beat": 2**53},
    "beat, last": {"beat": LAST_COUNT - 1},
    "beat, end": {"beat": 2**64 - 1},
    "boot and beat, last": {"boot": LAST_COUNT - 1, "beat": LAST_COUNT - 1},
    "mu, least": {"mu": 1e-150},
    "mu, small": {"mu": 1e-14},
    "mu of L": {"mu": 3.0},
    "L, greatest": {"L": 1e150},
    "L, great": {"L": 1e14},
    "L, some": {"L": 1e4},
    "mu and L, least": {"mu": 1e-150, "L": 1e-150},
    "mu and L, greatest": {"mu": 1e150, "L": 1e150},
    "ready": {"level": 1},
    "sure": {"level": 2},
    "left": {"level": 3},
    "degree": {"degree": 65535},
}
ROUNDS = {"0": 0, "+ 1": 1.0, "+ 63": 63.0, "+ 1000": 1000.0, "2^40": 2**40, "2^52": 2**52, "last": LAST_ROUND}
SIZES = {
    "zero": lambda v: 0 * v,
    "negative": lambda v: -v,
    "1e-300": lambda v: 1e-300 + 0 * v,
    "denormal": lambda v: 5e-324 + 0 * v,
    "+ 1": lambda v: v + 1,
    "+ 1e6": lambda v: v + 1e6,
    "+ 1e12": lambda v: v + 1e12,
    "+ 1e15": lambda v: v + 1e15,
    "1e100": lambda v: v + 1e100,
    "1e300": lambda v: v - 1e300,
    "greatest": lambda v: np.full_like(v, np.finfo(float).max),
}
SAYING = {
    **{f"round {what}": {"round": (lambda k, by=by: k + int(by)) if isinstance(by, float) else by}
       for what, by in ROUNDS.items()},
    "degree 0": {"degree": 0},
    "degree, greatest": {"degree": 65535},
    "digest 0": {"digest": 0},
    "digest, greatest": {"digest": 2**32 - 1},
    "no flags": {"flags": 0},
    "counted": {"flags": COUNTED},
    "waiting": {"flags": COUNTED | WAITING | HEARS},
    "aside": {"flags": COUNTED | ASIDE | HEARS},
    "all flags": {"flags": ALL_FLAGS},
    "no vectors": {"vectors": None, "edge": None},
    "seen": {"seen": np.full(100, 1e300)},
    **{f"vectors {what}": {"vectors": change} for what, change in SIZES.items()},
    **{f"edge {what}": {"edge": change} for what, change in SIZES.items()},
}  # fmt: skip
LIES = {
    **{f"{what}, near": about(LIAR, **fields) for what, fields in ABOUT.items()},
    **{f"{what}, far": about(FAR, **fields) for what, fields in ABOUT.items()},
    **{what: saying(**fields) for what, fields in SAYING.items()},
    "invented names": invented,
}


@pytest.mark.parametrize("ticks", [1, LONG], ids=["once", "long"])
@pytest.mark.parametrize("what", LIES)
def test_after_a_lie_all_is_exact_again(what, ticks):
    world = converged()
    tell(world, LIES[what])
    world.run(1 + (20 if ticks > 1 and what == "invented names" else ticks))
    world.liars.clear()
    run_until_well(world)
