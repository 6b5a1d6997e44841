"""The wire format: what is sent is read back, and all else is refused with one line."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adom.agents.wire import COUNTED, HEADER, LAST_COUNT, Form, Member, Message, RefusedError, check_name, pack, parse
from adom.errors import InputError

FORM = Form("logistic l2=0.1", "adom", dim=3, width=5, vectors=2, parts=2)
MEMBERS = [Member("node-a", 7, 9, 0.5, 2.0, 77, 1, 3), Member("b", 1, 2, 1.0, 1.0, 2**32 - 1, 0, 0)]


def full_message():
    numbers = np.arange(1.0, 21.0)
    return Message(
        12,
        3,
        COUNTED,
        99,
        numbers[:10].reshape(2, 5),
        numbers[10:20].reshape(2, 5),
        numbers[:4],
        MEMBERS,
    )


def refusal(data, form=FORM):
    with pytest.raises(RefusedError) as caught:
        parse(data, form)
    assert "\n" not in str(caught.value)
    return caught.value.kind


def with_field(index, value):
    """Return a full message with another value in a field of its header."""
    data = pack(full_message(), FORM)
    fields = list(HEADER.unpack_from(data))
    fields[index] = value
    return HEADER.pack(*fields) + data[HEADER.size :]


def test_a_message_is_read_back():
    sent = full_message()
    heard = parse(pack(sent, FORM), FORM)
    assert (heard.round, heard.degree, heard.digest, heard.members) == (12, 3, 99, MEMBERS)
    assert heard.flags & COUNTED
    for name in ("vectors", "edge", "seen"):
        np.testing.assert_array_equal(getattr(heard, name), getattr(sent, name))
    short = parse(pack(Message(1), FORM), FORM)
    assert short.vectors is None
    assert short.edge is None


def test_numbers_travel_to_the_bit():
    odd = np.array([[5e-324, -0.0, 1 / 3, 1e308, -1e-300], np.arange(5.0)])
    heard = parse(pack(Message(0, 0, 0, 0, odd), FORM), FORM)
    assert heard.vectors.tobytes() == odd.tobytes()


@pytest.mark.parametrize(
    ("index", "value", "kind"),
    [
        (0, b"HTTP", "foreign"),
        (1, 1, "version"),
        (2, 1, "shape"),
        (3, 255, "shape"),
        (4, b"\0" * 8, "problem"),
        (5, b"\0" * 8, "method"),
        (6, 4, "dimension"),
        (7, 6, "shape"),
        (8, 2**60, "shape"),
        (10, 1, "shape"),
        (10, 3, "shape"),
        (11, 1, "shape"),
        (13, 5000, "shape"),
        (13, 3, "truncated"),
        (14, 5000, "shape"),
        (14, 3, "truncated"),
    ],
)
def test_a_wrong_header_is_refused(index, value, kind):
    assert refusal(with_field(index, value)) in (kind, "members", "trailing")


def test_wrong_lengths_are_refused():
    data = pack(full_message(), FORM)
    assert refusal(data + b"x") == "trailing"
    assert refusal(b"") == "truncated"
    assert refusal(data[: HEADER.size + 3]) == "truncated"
    assert refusal(data + b"\0" * 10**6) == "oversized"
    for length in range(len(data)):
        assert refusal(data[:length]) in ("truncated", "members")


def test_numbers_that_are_not_finite_are_refused():
    for bad in (np.nan, np.inf):
        vectors = np.ones((2, 5))
        vectors[1, 2] = bad
        assert refusal(pack(Message(0, vectors=vectors), FORM)) == "not finite"


@pytest.mark.parametrize(
    "member", [Member("B", 1, 1, 1.0, 2.0), Member("b/c", 1, 1, 1.0, 2.0), Member("b", 1, 1, 2.0, 1.0),
               Member("b", 1, 1, np.nan, 1.0), Member("b", 1, 1, 0.0, 1.0), Member("b", 1, 1, 1.0, 2.0, 0, 9),
               Member("b", LAST_COUNT, 1, 1.0, 2.0), Member("b", 1, LAST_COUNT, 1.0, 2.0)]
)  # fmt: skip
def test_impossible_members_are_refused(member):
    assert refusal(pack(Message(0, members=[member]), FORM)) == "members"


def test_other_settings_are_told_apart():
    data = pack(full_message(), FORM)
    other = {"problem": "logistic l2=0.2", "method": "diging", "dim": 4, "width": 6, "parts": 1}
    kinds = [refusal(data, replace(FORM, **{name: value})) for name, value in other.items()]
    assert kinds == ["problem", "method", "dimension", "shape", "shape"]


@given(st.binary(max_size=400))
@settings(max_examples=200, deadline=None)
def test_noise_is_refused(data):
    refusal(data)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_damaged_message_is_refused_or_read_within_its_limits(data):
    content = bytearray(pack(full_message(), FORM))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        message = parse(bytes(content), FORM)
    except RefusedError:
        return
    assert message.vectors is None or (message.vectors.shape == (2, 5) and np.isfinite(message.vectors).all())
    assert message.edge is None or message.edge.shape == (2, 5)
    assert all(0 < m.mu <= m.L < np.inf and 0 <= m.data < 2**32 for m in message.members)


def test_names_are_plain_words():
    assert check_name("node-a_1") == "node-a_1"
    for bad in ("", "A", "a/b", "a b", "*", "-a", "a" * 49, 3, None, "ä"):
        with pytest.raises(InputError, match="name of an agent"):
            check_name(bad)


def test_the_header_has_a_fixed_size():
    assert struct.calcsize("<4sHBB8s8sIIQHBBIHH") == HEADER.size == 52
