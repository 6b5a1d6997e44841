"""NumPy archives with a SHA-256 of the whole file, read within limits.

A file is an ordinary ``.npz`` that `numpy.load` reads: arrays, and one JSON text about them. The ZIP comment at its end
holds the SHA-256 of every byte before it, so no bit can change unnoticed.

Nothing is unpickled, and memory is only allocated for bytes that are really there.
"""

import hashlib
import json
import math
import os
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..errors import Damaged
from .checked_json import read_json
from .files import atomic, open_regular

ABOUT = "provenance"
"""The array that holds the JSON."""
SEAL = b"adom-sha256:"
DIGEST = 64
HEADER = re.compile(
    rb"\{'descr': '(?P<dtype>[<>|][a-zA-Z]\d{1,9})', 'fortran_order': (?P<fortran>True|False), "
    rb"'shape': \((?P<shape>[\d, ]*)\), \} *\n"
)
"""The header of an array of a plain type, as NumPy writes it."""
KINDS = "fiubU"
UNPACKED, RATIO = 2**30, 20
"""Most bytes of all arrays together, or if it is more, this multiple of the file's own size."""
MOST_ARRAYS = 4096
STEP = 2**20
ODD = (OSError, ValueError, TypeError, EOFError, RuntimeError, LookupError, OverflowError, struct.error, zlib.error)
"""Errors raised while reading a corrupt archive, besides ZIP's own."""


def write_npz(
    path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], meta: dict[str, Any], *, packed: bool = True
) -> None:
    """Write arrays and JSON without NaN to a sealed file, whole or not at all."""
    members = {**arrays, ABOUT: np.array(json.dumps(meta, allow_nan=False))}
    # Larger arrays are stored uncompressed, so that reading never exceeds the limits.
    packed = packed and sum(array.nbytes for array in members.values()) <= UNPACKED
    method = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with atomic(Path(path)) as partial, partial.open("w+b") as file:
        with zipfile.ZipFile(file, "w") as archive:
            archive.comment = SEAL + b"0" * DIGEST
            for name, array in members.items():
                entry = zipfile.ZipInfo(f"{name}.npy")  # its fixed date makes files with equal contents equal
                entry.compress_type = method
                with archive.open(entry, "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
        digest = _digest(file, file.seek(0, os.SEEK_END) - DIGEST)
        file.seek(-DIGEST, os.SEEK_END)
        file.write(digest)


def read_npz(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the arrays and the JSON of a file; raises `Damaged`, or OSError if it cannot be opened."""
    with open_regular(path) as file:
        _check_seal(file)
        arrays = unpack(file)
    if ABOUT not in arrays:
        raise Damaged(f"it holds no {ABOUT}")
    text = arrays.pop(ABOUT)
    if text.dtype.kind != "U" or text.ndim or text.reshape(1).view(np.uint32).max(initial=0) > sys.maxunicode:
        raise Damaged(f"its {ABOUT} is not text")
    try:
        return arrays, read_json(str(text))
    except ValueError as error:  # also a code point that is not a character
        raise Damaged(f"its {ABOUT}: {error}") from None


def unpack(file: IO[bytes], most: int = UNPACKED, ratio: int = RATIO, kinds: str = KINDS) -> dict[str, np.ndarray]:
    """Read the arrays of an archive, with NumPy's type letters in `kinds`; raises `Damaged`.

    Together they may have `most` bytes or `ratio` times the size of the file, whichever is more.
    """
    size = file.seek(0, os.SEEK_END)
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            file.seek(size - len(archive.comment) - 12)  # zipfile does not check the number of entries stated there
            if len(entries) != int.from_bytes(file.read(2), "little"):
                raise Damaged("some of its arrays are missing")
            _check_entries(entries, size, max(most, ratio * size))
            return {entry.filename.removesuffix(".npy"): _read_array(archive, entry, kinds) for entry in entries}
    except Damaged:
        raise
    except (*ODD, zipfile.BadZipFile) as error:
        raise Damaged(f"it is not a whole NumPy archive: {error}") from None


def _digest(file: IO[bytes], size: int) -> bytes:
    """Return the SHA-256 of the first bytes of a file."""
    file.seek(0)
    digest = hashlib.sha256()
    while size > 0 and (part := file.read(min(STEP, size))):
        digest.update(part)
        size -= len(part)
    return digest.hexdigest().encode()


def _check_seal(file: IO[bytes]) -> None:
    """Refuse a file without a seal, or with a broken one."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - len(SEAL) - DIGEST))
    end = file.read()
    if not end.startswith(SEAL):
        raise Damaged("it has no checksum at its end")
    if _digest(file, size - DIGEST) != end[len(SEAL) :]:
        raise Damaged("it was changed or cut short: its SHA-256 does not match")


def _check_entries(entries: list[zipfile.ZipInfo], size: int, most: int) -> None:
    """Refuse an archive that claims too much, or holds anything but arrays."""
    if len(entries) > MOST_ARRAYS:
        raise Damaged(f"it claims {len(entries)} arrays, more than {MOST_ARRAYS}")
    claimed = sum(entry.file_size for entry in entries)
    if claimed > most:
        raise Damaged(f"it claims {claimed} bytes of arrays in a file of {size} bytes")
    names = [entry.filename for entry in entries]
    if len(set(names)) != len(names) or not all(name.endswith(".npy") for name in names):
        raise Damaged("its arrays have odd names")
    for entry in entries:
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or entry.flag_bits & 1:
            raise Damaged(f"{entry.filename} is packed in a way that NumPy does not use")


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, kinds: str) -> np.ndarray:
    """Read one array, allocating memory only for bytes that arrive."""
    with archive.open(entry) as member:
        content = bytearray()
        while part := member.read(STEP):  # to the end, where ZIP compares its own checksum
            content += part
    if content[:6] != b"\x93NUMPY" or len(content) < 12 or content[6] not in (1, 2):
        raise Damaged(f"{entry.filename} is not an array")
    begin = 10 if content[6] == 1 else 12
    start = begin + int.from_bytes(content[8:begin], "little")
    match = HEADER.fullmatch(content, begin, start) if start <= 4096 else None
    if match is None:
        raise Damaged(f"{entry.filename} is an array of a kind that is not written here")
    dtype = np.dtype(match["dtype"].decode())
    shape = tuple(int(part) for part in match["shape"].decode().split(",") if part.strip())
    count = math.prod(shape)
    if dtype.kind not in kinds or dtype.itemsize == 0 or count * dtype.itemsize != len(content) - start:
        raise Damaged(f"{entry.filename} claims {match['dtype'].decode()} of shape {shape}, which it is not")
    flat = np.frombuffer(content, dtype, count, start) if count else np.empty(0, dtype)
    if dtype.kind == "b" and (flat.view(np.uint8) > 1).any():
        raise Damaged(f"{entry.filename} has truth values that are neither 0 nor 1")
    return flat.reshape(shape, order="F" if match["fortran"] == b"True" else "C")
