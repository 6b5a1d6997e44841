"""Who is believed about whom: an agent about itself, others only as far as it does not say otherwise."""

import pytest

from adom.agents.members import LEFT, TIDY, Members
from adom.agents.wire import LAST_COUNT, Member


def entry(name, boot=1, beat=1, mu=1.0, L=2.0, level=0):
    return Member(name, boot, beat, mu=mu, L=L, level=level)


def members(name="a"):
    return Members(entry(name), gone=1.0)


def told(made, to, now):
    return {member.name: member for member in made.news(now, to)}


def test_an_agents_own_word_counts_more_than_what_others_say():
    a = members()
    a.learn([entry("b", beat=5)], 0.0, "b")
    a.learn([entry("b", beat=9, L=7.0)], 0.1, "c")
    assert told(a, "c", 0.1)["b"].L == 2.0
    a.learn([entry("b", beat=3, L=2.5)], 0.2, "b")  # its beat may be anything
    assert told(a, "c", 0.2)["b"].L == 2.5
    a.learn([entry("b", beat=9, L=7.0)], 1.3, "c")  # b has been silent for `gone`
    assert told(a, "c", 1.3)["b"].L == 7.0


def test_an_agent_hears_what_others_say_about_it_and_outbids_it():
    a, b = members(), members("b")
    a.learn([b.own], 0.0, "b")
    for false in (entry("b", beat=70, L=7.0), entry("b", boot=40), entry("b", boot=41, beat=LAST_COUNT - 1)):
        a.learn([false], 0.0, "c")
        b.learn([told(a, "b", 0.0)["b"]], 0.0, "a")
        assert (b.own.boot, b.own.beat) > (false.boot, false.beat)
        a.learn([b.own], 0.0, "b")
        assert told(a, "b", 0.0)["b"] is b.own  # nothing is left to outbid
    assert not b.impostor


@pytest.mark.parametrize("boot", [1, LAST_COUNT - 2, LAST_COUNT - 1])
@pytest.mark.parametrize("beat", [1, LAST_COUNT - 2, LAST_COUNT - 1])
def test_nobody_counts_beyond_what_others_accept(boot, beat):
    b = members("b")
    for _ in range(3):
        b.learn([entry("b", boot, beat)], 0.0, "a")
    assert max(b.own.boot, b.own.beat) < LAST_COUNT


def test_only_an_agent_itself_says_goodbye():
    a = members()
    a.learn([entry("b", beat=5)], 0.0, "c")
    a.learn([entry("b", beat=6, level=LEFT)], 0.1, "c")
    assert a.here("b", 0.1)
    assert not a.left("b")
    a.learn([entry("b", beat=6, level=LEFT)], 0.2, "b")
    assert a.left("b")
    assert not a.here("b", 0.2)


def test_an_entry_that_stands_still_is_forgotten_whatever_it_counts():
    a, last = members(), LAST_COUNT - 1
    a.learn([entry("b", last, last)], 0.0, "c")
    assert a.here("b", 0.9)
    assert not a.here("b", 1.1)
    a.tidy(TIDY - 0.1)
    a.learn([entry("b", beat=5)], TIDY - 0.1, "c")
    assert not a.here("b", TIDY - 0.1)
    a.tidy(TIDY + 0.1)
    a.learn([entry("b", beat=6)], TIDY + 0.1, "c")
    assert a.here("b", TIDY + 0.1)


def test_neighbours_always_have_a_place_in_the_list(monkeypatch):
    monkeypatch.setattr("adom.agents.members.MOST_MEMBERS", 10)
    a = members()
    a.learn([entry("b")], 0.0, "b")
    assert a.learn([entry(f"x{i}") for i in range(20)], 0.0, "b") == 12
    assert len(a.news(0.0, "b")) == 10
    assert a.learn([entry("c")], 0.1, "c") == 0
    assert {"a", "b", "c"} < {member.name for member in a.present(0.1)}
    assert len(a.news(0.1, "b")) == 10
    assert a.learn([entry("x30")], 5.0, "b") == 1  # those that are gone keep their places for a while
    a.tidy(TIDY + 1.0)
    assert a.learn([entry("x30")], TIDY + 1.0, "b") == 0


def test_constants_that_double_precision_cannot_bridge_are_not_believed():
    a = members()
    assert a.learn([entry("b", L=1e16), entry("c", mu=1e-16), entry("d", mu=1e150, L=1e150)], 0.0, "x") == 3
    assert a.learn([entry("e", L=1e15), entry("f", mu=1e-15)], 0.0, "x") == 0
    mu, L, nodes = a.extremes(0.0)
    assert (L, nodes) == (1e15, 3)
    assert 0.1 < mu < 1  # not 1e-15: together they would be too far apart
