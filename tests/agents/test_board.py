"""The board: rows reach everybody over links that lose messages, and whatever is not of a board is refused."""

from contextlib import suppress
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adom.agents.board import HEADER, Board, Words, mark_of, pack, parse
from adom.agents.certificate import Place
from adom.agents.checks import Checks
from adom.agents.preparation import choose, topic_of
from adom.agents.wire import Member, RefusedError

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
        board.post("0/0", name, np.full(4, i))
    now = let_them_talk(made, 60, loss=0.3)
    for board in made.values():
        assert [board.rows["0/0"][name][0] for name in names] == [0, 1, 2, 3, 4, 5]
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


def test_topics_that_only_look_like_checks_stop_nobody():
    """A neighbour may post what it likes: no topic ends a process, nor keeps it busy for long."""
    board = boards(["a", "b"], [("a", "b")])["a"]
    for topic in ("check/", "check/x", "check/1/2", "check/" + "9" * 30, "check/" + "9" * 15):
        board.post(topic, "b", np.ones(2))
    two = [Member(name, 1, 1, mu=1.0, L=1.0) for name in "ab"]
    agent = SimpleNamespace(name="a", x=np.ones(1), round=0, place=Place(1), about=lambda y: np.ones(Place(1).size))
    agent.members = SimpleNamespace(present=lambda now: two)
    checks = Checks(agent, board)
    checks.step(0.0)
    assert "a" in board.rows["check/" + "9" * 15]  # a takes part in the check that b has opened
    assert board.rows.keys() >= {"check/x"}
