"""Agents that find their parameters on the way, over a network that loses messages as told."""

import pytest

from support.agents_made import World, exact, make_agent, quadratics, ring

NAMES = [f"n{i}" for i in range(6)]
LINKS = ring(NAMES, [("n0", "n3"), ("n1", "n4")])
FUNCTIONS = dict(zip(NAMES, quadratics(6, 4, kappa=10.0), strict=True))


def made(name, method):
    others = [b if a == name else a for a, b in LINKS if name in (a, b)]
    return make_agent(name, FUNCTIONS[name], others, method, patience=0.05, gone=1.0)


@pytest.mark.parametrize(("method", "loss", "rounds"), [("adom", 0.0, 450), ("adom", 0.1, 600), ("diging", 0.0, 600)])
def test_nobody_needs_to_know_chi(method, loss, rounds):
    w = World([made(name, method) for name in NAMES], LINKS, loss)
    while min(agent.round for agent in w.agents.values()) < rounds:
        w.tick()
    assert w.error(exact(list(FUNCTIONS.values()))) < 1e-6
    chis = {agent.settings.chi for agent in w.agents.values()}
    assert len(chis) == 1 or loss  # decisions come into force in the same round, if no message is lost
    if method == "adom":
        assert 3 < max(chis) < 30  # that of this network is 5.3


def test_a_newcomer_takes_over_the_settings():
    w = World([made(name, "adom") for name in NAMES[:5]], LINKS)
    w.start()
    w.run(250)
    w.add(made("n5", "adom"))
    w.run(250)
    assert len({agent.settings.chi for agent in w.agents.values()}) == 1
    w.run(400)
    assert w.error(exact(list(FUNCTIONS.values()))) < 1e-6
