"""Messages between agents: one per neighbour and round, of a fixed form, checked before use.

A message is a header, little-endian float64 numbers, and a list of members; the header says how many of each. Nothing
is unpickled or evaluated, and no memory is allocated for what a header merely claims. Messages of boards
(`adom.agents.board`) have another header and words in place of members; `header` and `numbers` read those of both.
"""

import re
import struct
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from ..errors import InputError

Array = np.ndarray
MAGIC = b"ADOM"
VERSION = 2
HEADER = struct.Struct("<4sHBB8s8sIIQHBBIHH")
ENTRY = struct.Struct("<QQddIBH")
FLOAT = np.dtype("<f8")
COUNTED, REPAIR, WAITING, ASIDE, HEARS = 1, 2, 4, 8, 16
"""Flags: the sender counts the receiver as a link; its entry of the link is included; it is
waiting in this round too; the message belongs to no round; it has heard the receiver lately."""
ALL_FLAGS = 31
MOST_MEMBERS = 4096
MOST_SEEN = 4096
LAST_ROUND = 2**53
"""The last round, after which rounds begin at 0 again; up to it a float holds them exactly."""
LAST_COUNT = 2**62
"""Starts and heartbeats from this on are refused: no clock gets there, and there is room to outbid every false one."""
SMALLEST, LARGEST = 1e-150, 1e150
"""Limits on the constants mu and L of a member."""
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")


STRANGER = "an agent that is not in the list of neighbours: add it there to hear it"


class RefusedError(Exception):
    """A refused message; the text is one line, and refusals are counted by `kind`."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def note_refusal(error: RefusedError, sender: str, counts: dict[str, int], lines: list[str]) -> None:
    """Count a refused message; the first of a kind gets a line for the log."""
    counts[error.kind] = counts.get(error.kind, 0) + 1
    if counts[error.kind] == 1:
        lines.append(f"{sender}: {error}")


def check_name(name: Any) -> str:
    """Return the name of an agent; refuse any other text."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(
            f"the name of an agent must be up to 48 of a-z, 0-9, '-' and '_', got {name!r}; e.g. name = \"node-a\""
        )
    return name


@dataclass(frozen=True)
class Form:
    """The form of every message of a network: problem, method and sizes."""

    problem: str  # the settings that agents must share, as text
    method: str
    dim: int
    width: int  # columns of a row, including canaries
    vectors: int  # sent in a round
    parts: int  # vectors of an entry in the ledger of a link

    @cached_property
    def marks(self) -> tuple[bytes, bytes]:
        """The fingerprints of problem and method."""
        return mark_of(self.problem), mark_of(self.method)


@dataclass
class Member:
    """What is known about an agent: everyone repeats it, and the newest by (boot, beat) wins."""

    name: str
    boot: int  # when its process began
    beat: int  # counts up while it lives
    mu: float
    L: float
    data: int = 0  # a fingerprint of its data
    level: int = 0  # how ready it is to stop: see `adom.agents.members`
    degree: int = 0


@dataclass
class Message:
    """One message to one neighbour."""

    round: int
    degree: int = 0
    flags: int = 0
    digest: int = 0  # checksum of the sender's entry of the link, before this round
    vectors: Array | None = None  # (vectors, width)
    edge: Array | None = None  # the sender's entry of the link, (parts, width)
    seen: Array = field(default_factory=lambda: np.zeros(0))
    members: list[Member] = field(default_factory=list)


def pack(message: Message, form: Form) -> bytes:
    """Return a message as bytes."""
    problem, method = form.marks
    vectors = 0 if message.vectors is None else form.vectors
    parts = 0 if message.edge is None else form.parts
    flags = message.flags & ~REPAIR | (REPAIR if parts else 0)
    head = HEADER.pack(
        *(MAGIC, VERSION, 0, flags, problem, method, form.dim, form.width, message.round, message.degree),
        *(vectors, parts, message.digest, len(message.members), len(message.seen)),
    )
    arrays = [a for a in (message.vectors, message.edge, message.seen) if a is not None]
    entries = [_entry(member) for member in message.members]
    return b"".join([head, *(np.ascontiguousarray(a, dtype=FLOAT).tobytes() for a in arrays), *entries])


def _entry(member: Member) -> bytes:
    name = member.name.encode()
    rest = ENTRY.pack(member.boot, member.beat, member.mu, member.L, member.data, member.level, member.degree)
    return bytes([len(name)]) + name + rest


def most_bytes(form: Form) -> int:
    """Return the size that no message of this form exceeds."""
    numbers = (form.vectors + form.parts) * form.width + MOST_SEEN
    return HEADER.size + 8 * numbers + MOST_MEMBERS * (1 + 48 + ENTRY.size)


def header(data: bytes, form: struct.Struct, magic: bytes, version: int) -> tuple[Any, ...]:
    """Return the fields of a header after its first two, which must be these."""
    if len(data) < form.size:
        raise RefusedError("truncated", f"a message of {len(data)} bytes, shorter than its header")
    theirs, spoken, *fields = form.unpack_from(data)
    if theirs != magic:
        raise RefusedError("foreign", "a message that is not from adom")
    if spoken != version:
        raise RefusedError("version", f"a message of version {spoken}; this agent speaks {version}: update one of them")
    return tuple(fields)


def numbers(data: bytes, at: int, count: int = -1) -> Array:
    """Return some numbers of a message, by default all to its end."""
    found = np.frombuffer(data, FLOAT, count, at).astype(np.float64)
    if not np.isfinite(found).all():
        raise RefusedError("not finite", "a message with numbers that are not finite")
    return found


def mark_of(text: str) -> bytes:
    """Return a fingerprint of settings."""
    return blake2b(text.encode(), digest_size=8).digest()


def parse(data: bytes, form: Form) -> Message:
    """Read a message; raise `RefusedError` unless it has exactly this form."""
    if len(data) > most_bytes(form):
        raise RefusedError("oversized", f"a message of {len(data):,} bytes, more than the {most_bytes(form):,} allowed")
    zero, flags, problem, method, dim, width, *rest = header(data, HEADER, MAGIC, VERSION)
    number, degree, vectors, parts, digest, members, seen = rest
    if dim != form.dim:
        raise RefusedError(
            "dimension", f"a neighbour with {dim} features, but this agent has {form.dim}: correct its data"
        )
    if (problem, method) != form.marks:
        what = "problem" if problem != form.marks[0] else "method"
        raise RefusedError(what, f"a neighbour with another {what} than {getattr(form, what)!r}: use the same settings")
    fits = (width, vectors or form.vectors, parts or form.parts) == (form.width, form.vectors, form.parts)
    if not fits or zero or flags > ALL_FLAGS or bool(flags & REPAIR) != bool(parts):
        raise RefusedError("shape", f"a message of shape {(width, vectors, parts)}; expected {form.width} columns")
    if members > MOST_MEMBERS or seen > MOST_SEEN or number > LAST_ROUND or (parts and not vectors):
        raise RefusedError("shape", "a message whose counts are out of range")
    sizes = (vectors * width, parts * width, seen)
    total = HEADER.size + 8 * sum(sizes)
    if len(data) < total + members * (1 + 1 + ENTRY.size):
        raise RefusedError("truncated", f"a message of {len(data)} bytes; expected at least {total}")
    rows, edge, told = np.split(numbers(data, HEADER.size, sum(sizes)), np.cumsum(sizes)[:2])
    return Message(
        *(number, degree, flags, digest),
        vectors=rows.reshape(vectors, width) if vectors else None,
        edge=edge.reshape(parts, width) if parts else None,
        seen=told,
        members=_members(data, total, members),
    )


def _members(data: bytes, at: int, count: int) -> list[Member]:
    """Read the list of members, which ends the message."""
    found = []
    for _ in range(count):
        length = data[at] if at < len(data) else 0
        end = at + 1 + length + ENTRY.size
        if not length or end > len(data):
            raise RefusedError("truncated", "a list of members that ends early")
        name = data[at + 1 : at + 1 + length].decode("ascii", "replace")
        boot, beat, mu, L, own_data, level, degree = ENTRY.unpack_from(data, at + 1 + length)
        counts = max(boot, beat) < LAST_COUNT and level <= 3
        if not NAME.fullmatch(name) or not SMALLEST <= mu <= L <= LARGEST or not counts:
            raise RefusedError("members", "a list of members with an impossible entry")
        found.append(Member(name, boot, beat, mu, L, own_data, level, degree))
        at = end
    if at != len(data):
        raise RefusedError("trailing", f"a message with {len(data) - at} bytes too many")
    return found
