"""Agents that find their parameters on the way, over a network that loses messages as told."""

import pytest

from adom.agents.auto import Auto
from adom.dynamics.policy import Policy
from support.agents_made import World, exact, make_agent, near, quadratics, ring

NAMES = [f"n{i}" for i in range(6)]
LINKS = ring(NAMES, [("n0", "n3"), ("n1", "n4")])
FUNCTIONS = dict(zip(NAMES, quadratics(6, 4, kappa=10.0), strict=True))


def made(name, method):
    return make_agent(name, FUNCTIONS[name], near(name, LINKS), method, patience=0.05, gone=1.0)


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


def test_agents_at_rest_assume_what_the_network_needs_again(monkeypatch):
    """After rounds in which canaries grew, too: agents that run for days must not become slower and slower."""
    look = Auto.look

    def look_disturbed(auto, wide, number):
        wide = wide.copy()
        if 150 <= number < 900:
            wide[auto._dim :] *= 1.0 + (number - auto._now.start) ** 8
        look(auto, wide, number)

    monkeypatch.setattr(Auto, "look", look_disturbed)
    functions = dict(zip(NAMES[:3], quadratics(3, 4, kappa=10.0), strict=True))
    agents = [make_agent(n, functions[n], [o for o in functions if o != n], "adom", patience=0.05) for n in functions]
    w = World(agents, ring(list(functions)))
    while min(agent.round for agent in agents) < 2300:
        w.tick()
    assert max(agent.settings.chi for agent in agents) < 6
    assert w.error(exact(list(functions.values()))) < 1e-12


def test_all_forget_what_was_good_when_one_says_that_others_are_there():
    """One that went on going back to its half's answer kept the others from ever leaving it."""
    told, learning = (made(name, "adom") for name in NAMES[:2])
    w = World([told, learning], [("n0", "n1")])
    w.start()
    w.run(200)
    settings = learning.settings
    settings._good, settings._good_step, settings._grew = (1, learning.rows.state, {}), 1e-15, 3
    told.settings._changed = True  # agents have come or gone, which the other one has not noticed
    w.run(30)
    assert told.settings._now == settings._now
    assert settings._grew == 0
    assert settings._good is None or settings._good[0] >= settings._now.number


def test_a_run_that_grows_again_and_again_stops_going_back(monkeypatch):
    """The state that it goes back to may be of another network than the present one."""
    w = World([made(name, "adom") for name in NAMES], LINKS)
    w.start()
    w.run(100)
    for agent in w.agents.values():
        settings = agent.settings
        settings._good, settings._good_step = (1, agent.rows.state, dict(agent.rows.entries)), 0.0
    decide = Policy.decide
    monkeypatch.setattr(Policy, "decide", lambda *given: decide(*given)._replace(back=True, good=False))
    w.run(4000)
    assert all(agent.settings._good is None for agent in w.agents.values())
