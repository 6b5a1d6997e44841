"""Find, check and download the files of the data sets.

A data set lies in its subfolder of the data folder or in the data folder itself: as plain or compressed texts, or as
the official archive. Only texts with the right SHA-256 are used. A download is checked in memory, written to a scratch
folder and moved into place, so a file in place is always complete. Names in an archive are never used as paths.
"""

import hashlib
import io
import lzma
import os
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from ..errors import InputError
from ..util.cache_dir import cache_dir
from ..util.checked_json import Damaged
from ..util.files import kind
from .sets import DataSet, Piece, find_set
from .text_files import SUFFIXES, unpack_text

MARGIN = 1 << 20
"""Bytes that a file may have beyond the size of its texts."""
MOST_MEMBERS = 64
"""Maximum number of files in an archive."""
TIMEOUT = (10, 60)
"""Seconds to wait for a connection, and for the next bytes."""


class State(NamedTuple):
    """Whether a data set's files are "present", "absent" or "wrong", and where."""

    status: str
    path: Path
    message: str = ""


def folder() -> Path:
    """Return the data folder: $ADOM_DATA, or `data` in adom's cache folder."""
    try:
        chosen = os.environ.get("ADOM_DATA")
        return Path(chosen).expanduser() if chosen else cache_dir() / "data"
    except RuntimeError as error:
        raise InputError(f"no folder for data: {error}; set ADOM_DATA to one") from None


def fetch(name: str) -> list[Path]:
    """Check a data set, downloading it if it is missing; return its files.

    Parameters
    ----------
    name : str
        "a6a", "w6a", "ijcnn1" or "infectious_ct1".
    """
    data_set = find_set(name)
    texts(data_set)
    return _files(data_set, _names(data_set))


def state(name: str) -> State:
    """Return whether a data set is present and intact, without downloading anything."""
    data_set = find_set(name)
    files = _files(data_set, _names(data_set))
    if not files:
        return State("absent", folder() / data_set.home / ("" if data_set.archive else data_set.file))
    path = files[0] if len(files) == 1 else files[0].parent
    try:
        _read(data_set, files, _names(data_set))
    except InputError as error:
        return State("wrong", path, str(error))
    return State("present", path)


def texts(data_set: DataSet, wanted: Sequence[str] = ()) -> dict[str, bytes]:
    """Return the checked texts of the wanted pieces, by default all, by name; download the set if any is missing."""
    names = list(wanted) or _names(data_set)
    files = _files(data_set, names)
    content = _read(data_set, files, names) if files else _download(data_set)
    return {name: content[name] for name in names}


def _names(data_set: DataSet) -> list[str]:
    return [piece.name for piece in data_set.pieces]


def _files(data_set: DataSet, names: Sequence[str]) -> list[Path]:
    """Return the files of the pieces, or else the archive of all; [] if there are neither."""
    homes = (folder() / data_set.home, folder())

    def find(name: str, *suffixes: str) -> Path | None:
        candidates = (home / (name + suffix) for home in homes for suffix in ("", *suffixes))
        return next((path for path in candidates if kind(path) == "file"), None)

    loose = [path for path in (find(name, *SUFFIXES) for name in names) if path]
    archive = find(data_set.file)
    return loose if len(loose) == len(names) else [archive] if archive else []


def _read(data_set: DataSet, files: Sequence[Path], names: Sequence[str]) -> dict[str, bytes]:
    """Read and check the files of pieces, or the archive of all of them."""
    content: dict[str, bytes] = {}
    for path, name in zip(files, names, strict=False):
        try:
            with path.open("rb") as file:
                packed = file.read(_most(data_set))
            if data_set.archive and path.name == data_set.file:
                return _members(data_set, packed)
            content[name] = _text(data_set, data_set.piece(name), packed)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}; check its permissions") from None
        except Damaged as error:
            raise InputError(f"{path} {error}; delete it to have it fetched again") from None
    return content


def _most(data_set: DataSet) -> int:
    """Return the maximum size in bytes of a file of the data set."""
    return sum(piece.size for piece in data_set.pieces) + MARGIN


def _text(data_set: DataSet, piece: Piece, packed: bytes) -> bytes:
    """Decompress a piece, not much beyond its known size, and verify its checksum."""
    text = unpack_text(packed, piece.size)
    got = hashlib.sha256(text).hexdigest() if len(text) <= piece.size else f"more than {piece.size:,} bytes"
    if got != piece.sha256:
        raise Damaged(
            f"is not the {piece.name} of {data_set.name}: its text must have sha256 {piece.sha256}, got {got}"
        )
    return text


def _members(data_set: DataSet, content: bytes) -> dict[str, bytes]:
    """Return the checked texts of the pieces in a zip archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members: dict[str, zipfile.ZipInfo] = {}
            for number, info in enumerate(archive.infolist()):
                path = PurePosixPath(info.filename)
                if path.is_absolute() or ".." in path.parts or set("\\:") & set(info.filename):
                    raise Damaged(f"holds {info.filename!r}, a path out of its folder")
                if path.name in members or number == MOST_MEMBERS:
                    raise Damaged(f"holds {info.filename!r}, one file too many")
                if path.name in _names(data_set):
                    members[path.name] = info
            missing = [name for name in _names(data_set) if name not in members]
            if missing:
                raise Damaged(f"does not hold {missing[0]}")
            unpacked = {}
            for piece in data_set.pieces:
                with archive.open(members[piece.name]) as file:
                    unpacked[piece.name] = _text(data_set, piece, file.read(piece.size + 1))
            return unpacked
    except Damaged:
        raise
    except (OSError, EOFError, ValueError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise Damaged(f"is not a whole zip archive ({error})") from None


def _download(data_set: DataSet) -> dict[str, bytes]:
    """Download the official file, check it, and put it or its members into the data folder."""
    home = folder() / data_set.home
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home, prefix=".download-") as scratch:
            content = _transfer(data_set)
            if data_set.archive:
                files = unpacked = _members(data_set, content)
            else:
                (piece,) = data_set.pieces
                files, unpacked = {data_set.file: content}, {piece.name: _text(data_set, piece, content)}
            for name, part in files.items():
                Path(scratch, name).write_bytes(part)
            for name in files:
                Path(scratch, name).replace(home / name)
    except Damaged as error:
        raise InputError(f"{data_set.url} {error}; try again later; the page may hold a newer version") from None
    except OSError as error:
        raise InputError(
            f"{data_set.name} is not in {folder()} and cannot be put there ({error.strerror or error}); "
            f"set ADOM_DATA to a folder that can be written to, or to one that has {data_set.file}"
        ) from None
    print(f"adom: downloaded {data_set.url} into {home}", file=sys.stderr, flush=True)
    return unpacked


class _Bounded(io.BytesIO):
    """Buffer for a download, which refuses more bytes than the file may have."""

    def __init__(self, data_set: DataSet) -> None:
        super().__init__()
        self.most = _most(data_set)

    def write(self, chunk: Any) -> int:
        if self.tell() + len(chunk) > self.most:
            raise Damaged(f"sends more than the {self.most:,} bytes it may have")
        return super().write(chunk)


def _transfer(data_set: DataSet) -> bytes:
    """Download the official file into memory with pooch."""
    import pooch
    import requests  # pooch downloads with it

    content = _Bounded(data_set)
    answers: list[Any] = []  # pooch leaves them open after an error
    hooks = {"response": lambda answer, **_: answers.append(answer)}
    try:
        pooch.HTTPDownloader(chunk_size=1 << 16, timeout=TIMEOUT, hooks=hooks)(data_set.url, content, None)
    except requests.exceptions.RequestException as error:
        reason = "no connection"
        if error.response is not None:
            reason = f"the page answers {error.response.status_code} {error.response.reason}"
        elif isinstance(error, requests.exceptions.Timeout):
            reason = "the page does not answer"
        elif isinstance(error, requests.exceptions.ChunkedEncodingError):
            reason = "the connection broke off"
        raise InputError(
            f"{data_set.name} is not in {folder()} and could not be downloaded: {reason}; "
            f"put {data_set.url} into that folder by hand, or set ADOM_DATA to a folder that has it"
        ) from None
    finally:
        for answer in answers:
            answer.close()
    return content.getvalue()
