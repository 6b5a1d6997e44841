"""The board: rows reach everybody over links that lose messages, and whatever is not of a board is refused."""

from contextlib import suppress
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adom.agents.board import HEADER, Board, Words, pack, parse, topic_of
from adom.agents.certificate import Checks, Place
from adom.agents.making import choose
from adom.agents.wire import LAST_COUNT, Member, RefusedError, mark_of

MARK = mark_of("logistic")
WORDS = Words(present=[("a", 1, 2)], group=[("a", 1)], settled=False, topic="0/1", name="a")
MESSAGE = pack(WORDS, np.arange(3.0), MARK)


def boards(names, links, nodes=2):
    near = {name: [b if a == name else a for a, b in links if name in (a, b)] for name in names}
    return {name: Board(Member(name, i + 1, 0, 1.0, 1.0), near[name], "logistic", 1.0) for i, name in enumerate(names)}


def let_them_talk(made, rounds, loss=0.0, now=0.0, deaf=()):
    """Let boards exchange messages for a while; return the time."""
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        now += 0.05
        mail = [(name, *message) for name, board in made.items() for message in board.greet(now)]
        while mail:
            sender, to, data = mail.pop(0)
            if to in made and to not in deaf and rng.random() >= loss:
                mail.extend((to, *answer) for answer in made[to].hear(sender, data, now))
    return now


def test_rows_reach_everybody_though_messages_are_lost():
    names = [f"n{i}" for i in range(6)]
    made = boards(names, list(pairwise(names)))
    for i, (name, board) in enumerate(made.items()):
        board.group = tuple((name, i + 1) for i, name in enumerate(names))
        topic = topic_of(board.group, 0)
        board.post(topic, name, np.full(4, i))
    now = let_them_talk(made, 60, loss=0.3)
    for board in made.values():
        assert [board.rows[topic][name][0] for name in names] == [0, 1, 2, 3, 4, 5]
        assert [member.name for member in board.members.present(now)] == names
        assert board.alike(now, 1.0)


def test_who_prepares_data_together():
    names = ["a", "b", "c"]
    made = boards(names, [("a", "b"), ("b", "c")])
    now = let_them_talk(made, 1)
    assert choose(made["a"], 3, now) == ()  # a has not heard of c yet
    now = let_them_talk(made, 3, now=now)
    first_two, last_two = (("a", 1), ("b", 2)), (("b", 2), ("c", 3))
    assert {choose(board, 2, now) for board in made.values()} == {first_two}
    made["c"].group = last_two  # which c thought of before it heard of a
    now = let_them_talk(made, 1, now=now)
    assert choose(made["b"], 2, now) == first_two
    for name in ("b", "c"):
        made[name].post(topic_of(last_two, 0), name, np.zeros(1))
    for _ in range(3):
        now = let_them_talk(made, 1, now=now)
        for board in made.values():
            board.group = choose(board, 2, now)
    assert {board.group for board in made.values()} == {last_two}  # it has begun
    gone = made.pop("c")
    now = let_them_talk(made, 40, now=now)
    assert choose(made["b"], 2, now) == first_two
    made["c"], gone.settled = gone, True
    now = let_them_talk(made, 3, now=now)
    assert choose(made["b"], 2, now) == last_two  # it is over


def test_what_is_refused():
    words, row = parse(MESSAGE, MARK)
    assert (words, row.tolist()) == (WORDS, [0.0, 1.0, 2.0])
    length = HEADER.unpack_from(MESSAGE)[3]
    for data, kind in (
        (MESSAGE[:10], "truncated"),
        (MESSAGE[:-1], "truncated"),
        (MESSAGE[: HEADER.size + 5], "truncated"),
        (b"?" * 99, "foreign"),
        (MESSAGE[:4] + b"\x09\0" + MESSAGE[6:], "version"),
        (pack(WORDS, None, mark_of("ridge")), "problem"),
        (MESSAGE[: HEADER.size] + b"x" * length, "shape"),
        (pack(WORDS.model_copy(update={"topic": "x" * 99}), None, MARK), "shape"),
        (pack(WORDS, np.array([np.nan]), MARK), "not finite"),
    ):
        with pytest.raises(RefusedError) as caught:
            parse(data, MARK)
        assert caught.value.kind == kind
    board = boards(["a", "b"], [("a", "b")])["b"]
    assert board.hear("a", MESSAGE, 0.0) == []
    assert board.rows == {}  # no group has such a topic
    for _ in range(2):
        assert board.hear("a", b"nonsense", 0.0) == []
        assert board.hear("stranger", MESSAGE, 0.0) == []
    assert board.refused == {"truncated": 2, "stranger": 2}
    assert len(board.refusals) == 2
    assert board.rows == {}


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(MESSAGE) - 1), st.integers(0, 255), st.integers(0, len(MESSAGE)))
def test_damaged_messages_are_read_or_refused(place, value, end):
    data = bytearray(MESSAGE)
    data[place] = value
    for damaged in (bytes(data), bytes(data[:end])):
        with suppress(RefusedError):  # and no other error
            assert np.isfinite(parse(damaged, MARK)[1]).all()


def said(topic="", name=None, row=(1.0, 1.0), **more):
    """Return a message with a row."""
    words = {"present": [("b", 1, 2)], "group": [], "settled": False, "topic": topic, "name": name, **more}
    words["group"] = list(words["group"])
    return pack(Words(**words), np.array(row), MARK)


def test_topics_that_only_look_like_checks_stop_nobody():
    """A neighbour may post what it likes: no topic ends a process, nor keeps it busy for long."""
    board = boards(["a", "b"], [("a", "b")])["a"]
    for topic in ("check/", "check/x", "check/1/2", "check/" + "9" * 30, "check/" + "9" * 15, "check/01", "0/0", "x"):
        board.hear("b", said(topic, "b"), 0.0)
    board.hear("b", said("check/3", "a"), 0.0)  # a row in the name of this agent
    assert board.rows == {}
    board.hear("b", said("check/3", "b"), 0.0)
    two = [Member(name, 1, 1, mu=1.0, L=1.0) for name in "ab"]
    agent = SimpleNamespace(name="a", x=np.ones(1), round=0, place=Place(1), about=lambda y: np.ones(Place(1).size))
    agent.counters = SimpleNamespace(rounds=0)
    agent.members = SimpleNamespace(present=lambda now: two)
    checks = Checks(agent, board)
    checks.step(0.0)
    assert "a" in board.rows["check/3"]  # a takes part in the check that b has opened
    board.last_check = 5
    for number in range(4, 9):
        board.hear("b", said(f"check/{number}", "b"), 0.0)
    assert sorted(board.rows) == ["check/3", "check/4", "check/5"]


def test_checks_of_a_neighbour_are_not_kept_without_end():
    board = boards(["a", "b"], [("a", "b")])["a"]
    board.post("check/2", "a", np.ones(2))
    for number in range(100):
        board.hear("b", said(f"check/{number}", "b"), 0.0)
    assert sorted(board.rows) == ["check/2", "check/96", "check/97", "check/98", "check/99"]


def test_rows_of_a_neighbour_are_limited_and_forgotten_with_its_group(monkeypatch):
    monkeypatch.setattr("adom.agents.board.MOST_HELD", 100)
    board = boards(["a", "b"], [("a", "b")])["a"]
    group = (("b", 1), ("x", 1))
    for step in range(40):
        board.hear("b", said(topic_of(group, step), "b", np.ones(6), group=group), 0.0)
    board.hear("b", said(topic_of(group, 0), "y", group=group), 0.0)  # not of the group
    assert {topic: list(rows) for topic, rows in board.rows.items()} == {topic_of(group, n): ["b"] for n in (0, 1)}
    assert board.refused == {"memory": 30}
    board.greet(0.5)
    assert len(board.rows) == 2
    board.greet(9.0)
    assert board.rows == {}
    assert board.told == {}
    board.hear("b", said(topic_of(group, 2), "b", np.ones(6), group=group), 9.0)
    assert len(board.rows) == 1


def test_a_group_that_is_said_to_be_settled_must_have_shown_its_numbers():
    board = boards(["a", "b"], [("a", "b")])["a"]
    invented = (("x", 1), ("y", 1))
    board.hear("b", said(group=invented, settled=True), 0.0)
    assert choose(board, 2, 0.0) == (("a", 1), ("b", 1))
    for name in "xy":
        board.hear("b", said(topic_of(invented, 0), name, group=invented, settled=True), 0.0)
    assert choose(board, 2, 0.0) == invented
    board.hear("b", said(), 0.1)
    assert choose(board, 2, 0.1) == (("a", 1), ("b", 1))


@pytest.mark.parametrize("boot", [0, 2, LAST_COUNT - 1])
@pytest.mark.parametrize("beat", [0, 2**40, LAST_COUNT - 1])
@pytest.mark.parametrize("about", ["a", "b", "c"])
def test_false_heartbeats_do_not_last(about, boot, beat):
    names = ["a", "b", "c"]
    made = boards(names, [("a", "b"), ("b", "c")])
    now = let_them_talk(made, 5)
    made["b"].hear("a", said(present=[(about, boot, beat)]), now)
    now = let_them_talk(made, 5, now=now)
    if (boot, beat) == (LAST_COUNT - 1, LAST_COUNT - 1):
        now = let_them_talk(made, 240, now=now)
    for board in made.values():
        assert [member.name for member in board.members.present(now)] == names


def test_many_invented_names_end_nobody(monkeypatch):
    monkeypatch.setattr("adom.agents.members.MOST_MEMBERS", 300)
    names = ["a", "b", "c"]
    made = boards(names, [("a", "b"), ("b", "c")])
    now = let_them_talk(made, 5)
    for i in range(6):
        many = [(f"x{i}-{k}", LAST_COUNT - 1, 1) for k in range(100)]
        made["b"].hear("a", said(present=many, group=((name, boot) for name, boot, _ in many)), now)
    now = let_them_talk(made, 2, now=now)
    made["d"] = Board(Member("d", 9, 0, 1.0, 1.0), ["b"], "logistic", 1.0)
    made["b"].neighbours.append("d")
    assert len(made["b"].members.present(now)) == 300
    now = let_them_talk(made, 40, now=now)
    assert [member.name for member in made["b"].members.present(now)] == [*names, "d"]
    now = let_them_talk(made, 200, now=now)  # the others have room for d when they forget the invented names
    for board in made.values():
        assert [member.name for member in board.members.present(now)] == [*names, "d"]
