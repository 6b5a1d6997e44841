"""NumPy archives that are checked before they are believed: a SHA-256 of the whole file, and limits before memory.

A file written here is an ordinary ``.npz`` that `numpy.load` reads: arrays, and one text of JSON about them. The
comment at its end, where ZIP allows one, holds the SHA-256 of every byte before it, and the JSON says that it must be
there; so no bit can change unnoticed. Files of earlier versions have no such seal, and pass if all else is in order.

Nothing is unpickled, and no memory is taken for what a file merely claims.
"""

import hashlib
import json
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from .files import atomic, open_regular

__all__ = ["USUAL", "Damaged", "Limits", "open_regular", "plain", "read_json", "read_npz", "unpack", "write_npz"]

SEALED = "sealed"
"""The key in the JSON that says that the file ends with a seal."""
SEAL = b"adom-sha256:"
DIGEST = 64
HEADER = re.compile(
    rb"\{'descr': '(?P<dtype>[<>|][a-zA-Z]\d{1,9})', 'fortran_order': (?P<fortran>True|False), "
    rb"'shape': \((?P<shape>[\d, ]*)\), \} *\n"
)
"""The header of an array as NumPy writes it, of one plain type."""
KINDS = "fiubU"
ODD = (OSError, ValueError, TypeError, EOFError, RuntimeError, LookupError, OverflowError)
"""What reading an archive whose numbers make no sense may raise, beside ZIP's own errors."""
STEP = 2**20


class Damaged(ValueError):  # noqa: N818  # it says what has happened to a file
    """What a file holds is not what was written, or more than is believed; the message says why, in a few words."""


@dataclass(frozen=True)
class Limits:
    """What a file may claim.

    Attributes
    ----------
    unpacked : int
        Bytes of all arrays together; more only if they are at most `ratio` times the file's own size.
    ratio : int
    arrays : int
        How many arrays.
    text : int
        Characters of JSON.
    depth : int
        How deep JSON is nested.
    """

    unpacked: int = 2**30
    ratio: int = 20
    arrays: int = 4096
    text: int = 2**26
    depth: int = 64


USUAL = Limits()


def write_npz(
    path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], meta: dict[str, Any], about: str = "provenance"
) -> None:
    """Write arrays and JSON to a file, whole or not at all, with a seal.

    Parameters
    ----------
    path : path
    arrays : mapping of str to array
    meta : dict
        What JSON can say, without NaN; it is kept as text in the array `about`.
    about : str
    """
    text = json.dumps({**meta, SEALED: "sha256"}, allow_nan=False)
    members = {**arrays, about: np.array(text)}
    # What is larger is stored as it is: a reader need not wonder whether so much can come out of a small file.
    packed = sum(array.nbytes for array in members.values()) <= USUAL.unpacked
    method = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with atomic(Path(path)) as partial, partial.open("w+b") as file:
        with zipfile.ZipFile(file, "w", method) as archive:
            archive.comment = SEAL + b"0" * DIGEST
            for name, array in members.items():
                with archive.open(_entry(name, method), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
        seal = _digest(file, file.seek(0, os.SEEK_END) - DIGEST)
        file.seek(-DIGEST, os.SEEK_END)
        file.write(seal)


def read_npz(
    path: str | os.PathLike[str], limits: Limits = USUAL, about: str = "provenance"
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the JSON of a file; raises `Damaged`, or OSError where it cannot be opened."""
    with open_regular(path) as file:
        sealed = _check_seal(file)
        arrays = unpack(file, limits)
    if about not in arrays:
        raise Damaged(f"it holds no {about}")
    text = arrays.pop(about)
    if text.dtype.kind != "U" or text.ndim:
        raise Damaged(f"its {about} is no text")
    try:
        meta = read_json(str(text), limits)
    except ValueError as error:  # also a character that there is none of
        raise Damaged(f"its {about}: {error}") from None
    if meta.pop(SEALED, None) is not None and not sealed:
        raise Damaged("its checksum is missing")
    return arrays, meta


def unpack(file: IO[bytes], limits: Limits = USUAL, kinds: str = KINDS) -> dict[str, np.ndarray]:
    """Return the arrays of an archive, whose sizes are believed only within limits; raises `Damaged`.

    `kinds` are the letters by which NumPy knows the types that arrays may have.
    """
    size = file.seek(0, os.SEEK_END)
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if len(entries) != _counted(file, size, len(archive.comment)):
                raise Damaged("some of its arrays are missing")
            _check_entries(entries, size, limits)
            return {entry.filename.removesuffix(".npy"): _array(archive, entry, kinds) for entry in entries}
    except Damaged:
        raise
    except (*ODD, zipfile.BadZipFile, zlib.error, struct.error) as error:
        raise Damaged(f"it is no whole NumPy archive: {error}") from None


def read_json(text: str | bytes, limits: Limits = USUAL) -> dict[str, Any]:
    """Return the object that a text of JSON is, if it is not too long or too deep; raises `Damaged`.

    Examples
    --------
    >>> read_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> read_json("[" * 100_000)
    Traceback (most recent call last):
    adom.util.checked_npz.Damaged: its JSON is nested too deeply
    """
    if len(text) > limits.text:
        raise Damaged(f"its JSON has {len(text)} characters, more than {limits.text}")
    try:
        found = json.loads(text)
        _check_depth(found, limits.depth)
    except RecursionError:
        raise Damaged("its JSON is nested too deeply") from None
    except Damaged:
        raise
    except ValueError as error:
        raise Damaged(f"its JSON cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise Damaged("its JSON is no object")
    return found


def plain(value: Any) -> Any:
    """Return data as JSON can hold it: what is no finite number becomes null.

    Examples
    --------
    >>> plain({"a": np.float64(2), "b": (1, float("inf"))})
    {'a': 2.0, 'b': [1, None]}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _check_depth(value: Any, depth: int) -> None:
    """Refuse what is nested too deeply, and text that cannot be printed."""
    level = [value]
    for _ in range(depth):
        for one in level:
            if isinstance(one, str):
                one.encode()
            elif isinstance(one, dict):
                "".join(one).encode()
        inner: list[Any] = []
        for one in level:
            inner += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        if not inner:
            return
        level = inner
    raise Damaged("its JSON is nested too deeply")


def _entry(name: str, method: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(f"{name}.npy")
    entry.compress_type = method
    return entry


def _digest(file: IO[bytes], size: int) -> bytes:
    """Return the SHA-256 of the first bytes of a file."""
    file.seek(0)
    found = hashlib.sha256()
    while size > 0 and (part := file.read(min(STEP, size))):
        found.update(part)
        size -= len(part)
    return found.hexdigest().encode()


def _check_seal(file: IO[bytes]) -> bool:
    """Return whether a file has a seal, and refuse it if the seal is broken."""
    size = file.seek(0, os.SEEK_END)
    end = len(SEAL) + DIGEST
    if size < end:
        return False
    file.seek(-end, os.SEEK_END)
    last = file.read()
    if not last.startswith(SEAL):
        return False
    if _digest(file, size - DIGEST) != last[len(SEAL) :]:
        raise Damaged("it was changed or cut short: its SHA-256 does not fit")
    return True


def _counted(file: IO[bytes], size: int, comment: int) -> int:
    """Return how many entries an archive says that it has, in its last record; zipfile takes those that it finds."""
    file.seek(size - comment - 12)
    return int.from_bytes(file.read(2), "little")


def _check_entries(entries: list[zipfile.ZipInfo], size: int, limits: Limits) -> None:
    """Refuse an archive that claims too much, or holds something that is no array."""
    if len(entries) > limits.arrays:
        raise Damaged(f"it claims {len(entries)} arrays, more than {limits.arrays}")
    claimed = sum(entry.file_size for entry in entries)
    if claimed > max(limits.unpacked, limits.ratio * size):
        raise Damaged(f"it claims to hold {claimed} bytes in {size}, which is not believed")
    names = [entry.filename for entry in entries]
    if len(set(names)) != len(names) or not all(name.endswith(".npy") for name in names):
        raise Damaged("its arrays have odd names")
    for entry in entries:
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or entry.flag_bits & 1:
            raise Damaged(f"{entry.filename} is packed in a way that NumPy does not use")


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, kinds: str) -> np.ndarray:
    """Return one array; memory is taken as bytes arrive, and no more than there are."""
    with archive.open(entry) as member:
        content = bytearray()
        while part := member.read(STEP):  # to the end, where ZIP compares its own checksum
            content += part
    if content[:6] != b"\x93NUMPY" or len(content) < 12 or content[6] not in (1, 2):
        raise Damaged(f"{entry.filename} is no array")
    size = 2 if content[6] == 1 else 4
    begin = 8 + size
    length = int.from_bytes(content[8:begin], "little")
    match = HEADER.fullmatch(content, begin, begin + length) if length <= 4096 else None
    if match is None:
        raise Damaged(f"{entry.filename} is an array of a kind that is not written here")
    dtype = np.dtype(match["dtype"].decode())
    shape = tuple(int(part) for part in match["shape"].decode().split(",") if part.strip())
    count = math.prod(shape)
    if dtype.kind not in kinds or dtype.itemsize == 0 or count * dtype.itemsize != len(content) - begin - length:
        raise Damaged(f"{entry.filename} says {match['dtype'].decode()} of shape {shape}, which it is not")
    flat = np.frombuffer(content, dtype, count, begin + length) if count else np.empty(0, dtype)
    if dtype.kind == "b" and (flat.view(np.uint8) > 1).any():
        raise Damaged(f"{entry.filename} has truth values that are neither")
    return flat.reshape(shape, order="F" if match["fortran"] == b"True" else "C")
