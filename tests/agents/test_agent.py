"""The agents' rules in one process, over a network that loses, cuts and delays as told, with a clock of its own."""

import math

import numpy as np
import pytest

from adom.agents.auto import Settings
from adom.agents.members import agree
from adom.agents.wire import Message, pack, parse
from adom.algorithms import METHODS, method_class
from adom.errors import InputError
from support.agents_made import QuadraticFunction, World, exact, make_agent, near, quadratics, ring

NAMES = [f"n{i}" for i in range(6)]
LINKS = ring(NAMES, [("n0", "n3"), ("n1", "n4")])
FUNCTIONS = dict(zip(NAMES, quadratics(6, 4, kappa=3.0), strict=True))


def made(name, method="adom", chi=8.0, boot=1):
    return make_agent(name, FUNCTIONS[name], near(name, LINKS), method, boot, patience=0.05, gone=1.0, chi=chi)


def world(loss=0.0, method="adom", chi=8.0, names=NAMES):
    w = World([made(name, method, chi) for name in names], LINKS, loss)
    if set(names) != set(NAMES):
        w.start()
    return w


def answer(names):
    return exact([FUNCTIONS[name] for name in names])


def conserved(w):
    """Return how far the sums that the method conserves are from zero."""
    rules = [agent.rows for agent in w.agents.values()]
    return float(np.abs(sum(rows.rule.of(rows.state) for rows in rules)).max())


@pytest.mark.parametrize(("method", "chi", "rounds"), [("adom", 8.0, 300), ("diging", 2.5, 250)])
@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_lost_messages_do_not_change_the_answer(method, chi, rounds, loss):
    w = world(loss, method, chi * (1 + 10 * loss if method == "adom" else 1))
    while min(agent.round for agent in w.agents.values()) < rounds * (1 + 5 * loss):
        w.tick()
    assert w.error(answer(NAMES)) < 1e-6
    repaired = sum(agent.counters.repaired for agent in w.agents.values())
    assert (repaired > 10) == bool(loss)
    w.loss = 0.0
    w.run(30)
    assert conserved(w) < 1e-12


def test_without_the_ledger_the_answer_is_wrong():
    w = world(0.2, chi=24.0)
    for agent in w.agents.values():
        answered = agent.rows.answer
        agent.rows.answer = lambda sent, heard, repairs, jumps=(), answered=answered: answered(sent, heard, {})
    w.run(800)
    assert w.error(answer(NAMES)) > 1e-4


def test_agents_that_die_join_and_come_back():
    w = world(chi=16.0, names=NAMES[:5])
    w.run(100)
    del w.agents["n2"], w.agents["n3"]  # without a word
    w.run(600)
    left = ["n0", "n1", "n4"]
    assert w.error(answer(left), left) < 1e-8
    assert all("n2" not in agent.rows.entries for agent in w.agents.values())
    w.add(made("n3", boot=2, chi=16.0))
    w.add(made("n5", chi=16.0))
    w.run(600)
    assert w.error(answer([*left, "n3", "n5"])) < 1e-8
    assert conserved(w) < 1e-10


def test_an_agent_that_hangs_for_less_than_gone_changes_nothing_for_long():
    w = world(chi=12.0)
    w.run(400)
    w.stopped.add("n1")
    w.run(60)
    w.stopped.clear()
    w.run(40)
    assert w.error(answer(NAMES)) < 1e-7
    assert len({agent.round for agent in w.agents.values()}) <= 2  # n1 has caught up


def test_two_halves_agree_on_their_own_answers_and_then_on_one():
    w = world(chi=14.0)
    w.run(100)
    left, right = ["n0", "n1", "n2"], ["n3", "n4", "n5"]
    w.cut = {link for link in w.links if len(link & set(left)) == 1}
    w.run(700)
    assert w.error(answer(left), left) < 1e-8
    assert w.error(answer(right), right) < 1e-8
    w.cut = set()
    w.run(600)
    assert w.error(answer(NAMES)) < 1e-8
    assert conserved(w) < 1e-10


def test_a_link_that_is_heard_one_way_only_does_not_count_and_slows_nobody_down():
    w = world(chi=12.0)
    w.run(50)
    w.one_way.add(("n0", "n1"))  # n1 does not hear n0, and n0 hears n1
    w.run(60)
    before = w.agents["n4"].round
    w.run(100)
    assert w.agents["n4"].round - before > 90
    assert not w.agents["n0"].neighbours["n1"].counted
    w.one_way.clear()
    w.run(30)
    assert w.agents["n0"].neighbours["n1"].counted
    assert conserved(w) < 1e-12


def test_an_agent_whose_clock_went_back_is_believed_again():
    w = world(chi=12.0)
    w.agents["n2"].members.own.boot = 10**6
    w.run(50)
    del w.agents["n2"]
    w.run(150)
    assert not w.agents["n1"].members.here("n2", w.now)
    w.add(made("n2", boot=3, chi=12.0))
    w.run(60)
    assert w.agents["n2"].members.own.boot > 10**6
    assert all(agent.members.here("n2", w.now) for name, agent in w.agents.items() if name != "n2")
    assert w.agents["n1"].neighbours["n2"].counted
    assert not w.agents["n2"].members.impostor


def test_an_agent_that_leaves_says_so():
    w = world(chi=12.0)
    w.run(200)
    leaver = w.agents.pop("n2")
    w.send("n2", leaver.farewell(w.now))
    w.run(10)
    assert all("n2" not in agent.rows.entries for agent in w.agents.values())
    w.run(450)
    rest = [name for name in NAMES if name != "n2"]
    assert w.error(answer(rest), rest) < 1e-8


@pytest.mark.parametrize("method", ["adom", "diging"])
def test_nobody_is_thrown_about_by_a_join_or_a_death(method):
    """Three agents at rest, a fourth joins at their answer, and later dies; beside it, one that begins from nothing."""
    names, chi = [f"n{i}" for i in range(4)], 10.0 if method == "adom" else 2.5
    functions, worst = quadratics(4, 6, 100.0 if method == "adom" else 10.0), {}
    three, four = exact(functions[:3]), exact(functions)
    way = np.linalg.norm(three - four)

    def made(i):
        return make_agent(names[i], functions[i], near(names[i], ring(names)), method, gone=2.0, patience=0.1, chi=chi)

    def farthest(w, x, ticks):
        """Return how far one of the three is ever from x, in units of the way."""
        far = 0.0
        for _ in range(ticks):
            w.tick()
            far = max(far, *(np.linalg.norm(w.agents[name].x - x) for name in names[:3]))
        return far / way

    for kind in ("held", "cold"):
        w = World([made(i) for i in range(3)], ring(names))
        w.start()
        w.run(900)
        assert farthest(w, three, 1) < 1e-3
        w.add(made(3), w.agents["n0"].x if kind == "held" else None)
        worst[kind] = farthest(w, four, 900)
        assert np.linalg.norm(w.agents["n3"].x - four) < 1e-2 * way
        w.stopped.add("n3")
        assert farthest(w, three, 600) <= 1.1
    assert worst["held"] <= 1.1
    assert worst["cold"] > (2 if method == "adom" else 0)


def test_they_stop_together_and_within_the_tolerance():
    w, stopped, tol = world(), {}, 1e-12
    for _ in range(2000):
        if len(stopped) == len(NAMES):
            break
        w.tick()
        for name, agent in w.agents.items():
            if name not in stopped and agree(
                agent.members.own, agent.members.present(w.now), agent.distance(w.now), tol
            ):
                stopped[name] = agent.certificate.answer
    assert set(stopped) == set(NAMES)
    assert sum(np.linalg.norm(x - answer(NAMES)) ** 2 for x in stopped.values()) < tol


def test_data_that_change_are_followed():
    w = world()
    w.run(100)
    other = quadratics(1, 4, kappa=5.0, seed=9)[0]
    w.agents["n3"].replace(other)
    w.run(450)
    assert w.error(exact([other if name == "n3" else FUNCTIONS[name] for name in NAMES])) < 1e-8


def test_refused_messages_are_counted_and_disturb_nothing():
    w = world()
    w.run(100)
    agent = w.agents["n0"]
    before, state = agent.x.copy(), agent.rows.state
    assert not agent.hear("n1", b"nonsense", w.now)
    assert not agent.hear("n1", b"nonsense", w.now)
    assert not agent.hear("stranger", pack(Message(3), agent.form), w.now)
    assert not agent.hear("n0", pack(Message(3), agent.form), w.now)
    assert agent.counters.refused == {"truncated": 2, "stranger": 1, "name": 1}
    assert len(agent.refusals) == 3
    assert agent.rows.state is state
    np.testing.assert_array_equal(agent.x, before)


def test_weights_are_the_same_at_both_ends_and_lambda_max_is_at_most_one():
    w, sums = world(), []
    for agent in w.agents.values():
        answered = agent.rows.answer

        def watched(sent, heard, repairs, jumps=(), answered=answered):
            sums.append(sum(weight for weight, _ in heard.values()))
            return answered(sent, heard, repairs, jumps)

        agent.rows.answer = watched
    w.run(50)
    assert max(sums) <= 0.5 + 1e-15
    assert conserved(w) < 1e-13


def test_methods_that_need_more_than_a_round_are_refused():
    refused = []
    for name in METHODS:
        try:
            Settings(method_class(name))
        except InputError:
            refused.append(name)
    several = {"apm", "mudag", "aug-dgm", "msda", "opapc", "adom+multi", "acc-gt-multi"}
    assert set(refused) == several | {"push-pull", "push-diging", "pngd"}


def test_the_conserved_part_is_the_sum_of_the_entries_after_large_numbers():
    """What rounding has left in the state beside numbers of 1e12 is gone once they are."""
    rows = made("n0").rows
    rng = np.random.default_rng(0)
    small = {name: rng.standard_normal((rows.parts, rows.width)) for name in ("n1", "n3", "n5")}
    large = 1e12 * rng.standard_normal((rows.parts, rows.width))
    rows.entries = {**small, "n2": large, "n4": -large}
    rows.state = rows.rule.change(rows.state, 1e15 * rng.standard_normal((1, rows.parts, rows.width)))
    rows.settle()
    exactly = [[math.fsum(e[i, j] for e in small.values()) for j in range(rows.width)] for i in range(rows.parts)]
    np.testing.assert_array_max_ulp(rows.rule.of(rows.state)[0], np.array(exactly), 2)


def test_entries_that_only_go_round_in_circles_start_anew_when_their_rounding_would_show():
    w = world(chi=12.0)
    w.run(300)
    circle = ["n0", "n1", "n2", "n3", "n4", "n5"]
    for a, b in zip(circle, [*circle[1:], circle[0]], strict=True):  # as after large numbers that have died out
        w.agents[a].rows.entries[b] += 1e13
        w.agents[b].rows.entries[a] -= 1e13
    w.run(500)
    assert w.error(answer(NAMES)) < 1e-12
    assert sum(agent.counters.renewed for agent in w.agents.values()) >= len(circle)


def test_a_round_that_cannot_be_is_believed_when_it_is_told_steadily():
    w = world()
    w.run(100)
    agent, far = w.agents["n0"], 10**9

    def ahead(to, data):
        message = parse(data, agent.form)
        message.round += far
        return pack(message, agent.form)

    w.liars["n1"] = ahead
    w.run(60)
    assert agent.round < 200
    assert agent.counters.doubted > 10
    w.run(100)
    assert agent.round >= far
    w.liars.clear()
    w.run(700)
    assert {a.round > far for a in w.agents.values()} == {True}  # a round is only a number to meet at
    assert w.error(answer(NAMES)) < 1e-9


def test_data_that_were_far_too_large_for_a_while_leave_nothing_behind():
    w = world(chi=24.0)
    w.run(200)
    agent, right = w.agents["n2"], w.agents["n2"].function
    agent.replace(QuadraticFunction(right.hessian(agent.x), -1e9 * right.gradient(np.zeros(right.dim))))
    w.run(200)
    assert w.error(answer(NAMES)) > 1e3
    agent.replace(right)
    w.run(2500)
    exact_one = answer(NAMES)
    assert w.error(exact_one) < 1e-9
    for each in w.agents.values():
        found = each.certain(w.now)
        assert np.linalg.norm(found.answer - exact_one) <= found.distance < 1e-8
