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
    WAITING,
    Member,
    pack,
    parse,
)
from adom.errors import Damaged
from support.agents_made import World, exact, make_agent, near, quadratics, ring

NAMES = [f"n{i}" for i in range(5)]
LIAR, FAR = "n0", "n2"  # n4 hears of n2 from n0, which is not its neighbour, and from n3
FUNCTIONS = dict(zip(NAMES, quadratics(5, 3, kappa=3.0), strict=True))
GONE = 0.3
LONG = 2 * round(GONE / World.TICK)
"""Ticks of a lasting lie."""
AFTER = 1600
"""The most ticks until all is well again."""


@pytest.fixture(autouse=True)
def short_lists(monkeypatch):
    """Let few names be many."""
    monkeypatch.setattr("adom.agents.members.MOST_MEMBERS", 100)


@cache
def _converged(method, auto):
    chosen = {} if auto else {"chi": 2.0 if method == "diging" else 4.0}
    links = ring(NAMES)
    agents = [
        make_agent(n, FUNCTIONS[n], near(n, links), method, boot=10 + i, patience=0.05, gone=GONE, **chosen)
        for i, n in enumerate(NAMES)
    ]
    world = World(agents, links)
    world.checking = False  # for speed: nothing here depends on bounds
    world.run(700 if auto or method == "diging" else 300)
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
    """Run until all has been well for a while."""
    since = 0
    for _ in range(0, most, 10):
        world.run(10)
        since = since + 1 if well(world, names) else 0
        if since == 3:
            return
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
    """Name new agents in every message, more than anybody keeps."""
    names = [f"x{world.now:.2f}-{i}".replace(".", "_") for i in range(50)]
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
    world.run(ticks + 1)
    world.liars.clear()
    run_until_well(world)


HARMFUL = ["boot and beat, last, far", "beat, last, far", "left, far", "mu, small, far", "round 2^40", "round last",
           "all flags", "vectors + 1e6", "vectors 1e300", "edge + 1e12", "edge negative", "invented names"]  # fmt: skip


@pytest.mark.parametrize("what", HARMFUL)
def test_nobody_is_gone_for_ever_because_of_a_lie_and_the_rest_are_exact_without_the_liar(what):
    world, rest = converged(), [name for name in NAMES if name != LIAR]
    tell(world, LIES[what])
    seen = set()
    for tick in range(6 * LONG):
        world.tick()
        if tick > 30:
            seen |= {(a, b) for a in rest for b in rest if world.agents[a].members.here(b, world.now)}
    assert len(seen) == len(rest) * (len(rest) - 1)
    del world.agents[LIAR]
    run_until_well(world, rest)


@pytest.mark.parametrize("method", ["adom+", "diging"])
@pytest.mark.parametrize("what", ["vectors + 1e15", "edge + 1e12", "L, great, near", "round + 1000", "vectors 1e300"])
def test_other_methods_are_exact_again_too(method, what):
    world = converged(method)
    tell(world, LIES[what])
    world.run(2)
    world.liars.clear()
    run_until_well(world, most=6000)


def test_numbers_that_grow_step_by_step_are_forgotten():
    """Each is believed beside the one before; in the end there is nothing left to lose, and agents start anew."""
    world, size = converged(), 1.0

    def grow(message, world):
        nonlocal size
        size *= 10.0
        if message.vectors is not None:
            message.vectors = message.vectors + min(size, 1e300)

    tell(world, grow)
    world.run(LONG)
    world.liars.clear()
    assert all(np.abs(agent.x).max() < 1e20 for agent in world.agents.values())
    run_until_well(world)


def test_old_messages_said_again_change_nothing():
    world, old = converged(), {}
    world.liars[LIAR] = old.setdefault
    world.run(LONG)
    world.liars.clear()
    run_until_well(world)


def test_after_the_last_round_comes_the_first():
    for auto in (False, True):
        world = converged(auto=auto)
        for agent in world.agents.values():
            agent.round += LAST_ROUND - 50 - agent.round // 100 * 100
        world.run(300)
        assert all(agent.round < 1000 for agent in world.agents.values())
        run_until_well(world)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300, -1e100])
def test_a_checkpoint_with_impossible_numbers_is_refused(value):
    agent = converged().agents["n1"]
    agent.check(agent.round, agent.x, np.zeros(3))
    with pytest.raises(Damaged, match="larger than any"):
        agent.check(agent.round, agent.x, np.array([0.0, value, 0.0]))


def test_a_checkpoint_with_an_impossible_round_is_refused():
    agent = converged().agents["n1"]
    for number in (-1, LAST_ROUND + 1, 2**64):
        with pytest.raises(Damaged, match="round"):
            agent.check(number, agent.x)


@pytest.mark.parametrize("number", [0, 2**40, LAST_ROUND - 5, LAST_ROUND])
def test_a_checkpoint_with_a_false_round_or_false_numbers_heals(number):
    world = converged()
    agent = world.agents["n1"]
    agent.check(number, agent.x + 1e9)
    agent.round = number
    agent.start(agent.x + 1e9)
    run_until_well(world)


def test_a_limit_on_rounds_is_not_reached_by_hearsay():
    world = converged()
    tell(world, LIES["round 2^40"])
    world.run(2 * LONG)
    for agent in world.agents.values():
        agent.round = 2**40
        assert agent.has_made(agent.counters.rounds)
        assert not agent.has_made(agent.counters.rounds + 100)


# The settings of `auto`

HEADS = {
    "block 2^62": {0: 2.0**62},
    "block 2^53": {0: 2.0**53},
    "block 1e300": {0: 1e300},
    "block + 60": {0: lambda v: v + 60},
    "block 0.5": {0: lambda v: v + 0.5},
    "block -1": {0: -1.0},
    "power 0": {0: lambda v: v + 1, 1: 0.0},
    "power, greatest": {0: lambda v: v + 1, 1: 54.0},
    "power 1e9": {0: lambda v: v + 1, 1: 1e9},
    "centre, greatest": {0: lambda v: v + 1, 2: 54.0},
    "rounds 0": {0: lambda v: v + 1, 3: 0.0},
    "rounds 1": {0: lambda v: v + 1, 3: 1.0},
    "rounds 1e7": {0: lambda v: v + 1, 3: 1e7},
    "start, soon": {0: lambda v: v + 1, 4: lambda v: v + 40},
    "start 2^53": {0: lambda v: v + 1, 4: 2.0**53},
    "start 1e300": {0: lambda v: v + 1, 4: 1e300},
    "good": {0: lambda v: v + 1, 5: 1.0},
    "anew": {0: lambda v: v + 1, 5: 2.0},
    "keep 9": {0: lambda v: v + 1, 5: 9.0},
    "back": {0: lambda v: v + 1, 6: lambda v: v + 1},
    "rest": {0: lambda v: v + 1, 7: 1.0},
    "numbers 1e300": {"numbers": 1e300},
    "numbers -1e300": {"numbers": -1e300},
    "numbers 0": {"numbers": 0.0},
    "all 0": {"all": 0.0},
    "all -1e300": {"all": -1e300},
}


@pytest.mark.parametrize("ticks", [1, 40], ids=["once", "long"])
@pytest.mark.parametrize("what", HEADS)
def test_false_settings_hold_nobody_up_for_long(what, ticks):
    world = converged(auto=True)

    def change(message, world):
        for place, value in HEADS[what].items():
            if message.seen.size:
                where = {"numbers": slice(8, None), "all": slice(None)}.get(place, place)
                message.seen = message.seen.copy()
                message.seen[where] = value(message.seen[where]) if callable(value) else value

    tell(world, change)
    world.run(ticks + 1)
    world.liars.clear()
    run_until_well(world, most=3000)
    first, *others = (agent.settings for agent in world.agents.values())
    assert all(settings._now == first._now for settings in others)
    assert first._now.number < 10**6  # so that there is always a next one


def test_canaries_that_are_false_do_not_touch_the_run():
    world = converged(auto=True)

    def change(message, world):
        if message.vectors is not None:
            message.vectors[:, 3:] = 1e300

    tell(world, change)
    world.run(40)
    world.liars.clear()
    run_until_well(world, most=3000)
    assert all(agent.counters.restarts == 0 for agent in world.agents.values())
