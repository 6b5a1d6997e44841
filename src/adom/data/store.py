"""The files of the data sets: found, checked, and fetched where they are missing.

A data set lies in its own subfolder of the data folder or in the folder itself, plain or packed, an archive also
whole. Only what has the right SHA-256 is used. A download is checked in memory, written to a scratch folder inside
the data folder, and moved into place: whatever happens, a file in place is whole. No name in an archive is ever
used as a path.
"""

import bz2
import gzip
import hashlib
import io
import lzma
import os
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from ..errors import InputError
from ..util.cache_dir import cache_dir
from ..util.files import kind
from .sample_files import PACKED, SUFFIXES
from .sets import DataSet, Piece, named

OPEN: dict[str, Any] = {"bz2": bz2.open, "gzip": gzip.open, "lzma": lzma.open}
DAMAGED = (EOFError, ValueError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
"""What the unpackers raise at damaged files, beside OSError."""
MARGIN = 1 << 20
"""What a download may take beyond the size of its texts."""
MOST_MEMBERS = 64
"""The most files in an archive."""
PATIENCE = (10, 60)
"""Seconds to wait for a connection, and for the next bytes."""


class State(NamedTuple):
    """What is known of a data set's files: `status` is "present", "absent" or "wrong"."""

    status: str
    path: Path
    message: str = ""


class _Origin(NamedTuple):
    """Where bytes came from and what to do if they are not the right ones, for errors."""

    where: str
    remedy: str = "delete it to have it fetched anew"


def folder() -> Path:
    """Return the data folder: $ADOM_DATA, or `data` in adom's cache folder."""
    try:
        given = os.environ.get("ADOM_DATA")
        return Path(given).expanduser() if given else cache_dir() / "data"
    except RuntimeError as error:
        raise InputError(f"no folder for data: {error}; set ADOM_DATA to one") from None


def fetch(name: str) -> list[Path]:
    """Make sure that a data set is there and whole, downloading it if not; return its files.

    Parameters
    ----------
    name : str
        "a6a", "w6a", "ijcnn1" or "infectious_ct1".
    """
    chosen = named(name)
    contents(chosen)
    return _files(chosen)


def state(name: str) -> State:
    """Say whether a data set is there and whole, without downloading anything."""
    chosen = named(name)
    at = folder() / chosen.home / ("" if chosen.archive else chosen.file)
    files = _files(chosen)
    if not files:
        return State("absent", at)
    at = files[0] if len(files) == 1 else files[0].parent
    try:
        _held(chosen, [piece.name for piece in chosen.pieces])
    except InputError as error:
        return State("wrong", at, str(error))
    return State("present", at)


def contents(chosen: DataSet, wanted: Sequence[str] = ()) -> dict[str, bytes]:
    """Return the checked texts of the pieces wanted, all by default, by name; download them if they are missing."""
    names = list(wanted) or [piece.name for piece in chosen.pieces]
    held = _held(chosen, names)
    texts = _download(chosen) if held is None else held
    return {name: texts[name] for name in names}


def _find(chosen: DataSet, name: str, suffixes: Iterable[str] = ()) -> Path | None:
    """Return the file of that name, or of that name and one of the suffixes."""
    homes = (folder() / chosen.home, folder())
    places = (home / (name + suffix) for home in homes for suffix in ("", *suffixes))
    return next((place for place in places if kind(place) == "file"), None)


def _files(chosen: DataSet) -> list[Path]:
    """Return the files that hold the data set, or none if some are missing."""
    loose = [_find(chosen, piece.name, SUFFIXES) for piece in chosen.pieces]
    if all(loose):
        return [path for path in loose if path]
    whole = _find(chosen, chosen.file)
    return [whole] if whole else []


def _held(chosen: DataSet, names: Sequence[str]) -> dict[str, bytes] | None:
    """Return the checked texts of files that are there, loose or in their archive."""
    loose = {name: _find(chosen, name, SUFFIXES) for name in names}
    if all(loose.values()):
        return {
            name: _text(chosen, chosen.piece(name), _read(chosen, path), _Origin(str(path)))
            for name, path in loose.items()
            if path
        }
    whole = _find(chosen, chosen.file) if chosen.archive else None
    return _members(chosen, _read(chosen, whole), _Origin(str(whole))) if whole else None


def _most(chosen: DataSet) -> int:
    """Return the most bytes that a file of the data set may have."""
    return sum(piece.size for piece in chosen.pieces) + MARGIN


def _read(chosen: DataSet, path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_most(chosen))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; check its permissions") from None


def _text(chosen: DataSet, piece: Piece, content: bytes, origin: _Origin) -> bytes:
    """Return the text of a plain or packed file if it is the right one; unpack it no further than it may go."""
    packer = next((name for magic, name in PACKED.items() if content.startswith(magic)), None)
    if packer is None:
        return _checked(chosen, piece, content, origin)
    try:
        with OPEN[packer](io.BytesIO(content)) as file:
            text = file.read(piece.size + 1)
    except (OSError, *DAMAGED) as error:
        raise InputError(f"{origin.where} is cut short or damaged ({error}); {origin.remedy}") from None
    return _checked(chosen, piece, text, origin)


def _checked(chosen: DataSet, piece: Piece, text: bytes, origin: _Origin) -> bytes:
    """Refuse a text with another checksum than the one that is known."""
    got = hashlib.sha256(text).hexdigest() if len(text) <= piece.size else f"more than {piece.size:,} bytes"
    if got != piece.sha256:
        raise InputError(
            f"{origin.where} is not the {piece.name} of {chosen.name}: "
            f"its text must have sha256 {piece.sha256}, got {got}; {origin.remedy}"
        )
    return text


def _members(chosen: DataSet, content: bytes, origin: _Origin) -> dict[str, bytes]:
    """Return the checked texts of the pieces in a zip archive."""
    where, remedy = origin
    texts = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            wanted = {piece.name for piece in chosen.pieces}
            found: dict[str, zipfile.ZipInfo] = {}
            for number, info in enumerate(archive.infolist()):
                name = PurePosixPath(info.filename)
                if name.is_absolute() or ".." in name.parts or set("\\:") & set(info.filename):
                    raise InputError(f"{where} holds {info.filename!r}, a path out of its folder; {remedy}")
                if name.name in found or number == MOST_MEMBERS:
                    raise InputError(f"{where} holds {info.filename!r}, one file too many; {remedy}")
                if name.name in wanted:
                    found[name.name] = info
            for piece in chosen.pieces:
                if piece.name not in found:
                    raise InputError(f"{where} does not hold {piece.name}; {remedy}")
                with archive.open(found[piece.name]) as file:
                    texts[piece.name] = file.read(piece.size + 1)
    except InputError:
        raise
    except (OSError, *DAMAGED) as error:
        raise InputError(f"{where} is no whole zip archive ({error}); {remedy}") from None
    for piece in chosen.pieces:
        _checked(chosen, piece, texts[piece.name], origin)
    return texts


def _download(chosen: DataSet) -> dict[str, bytes]:
    """Fetch the official file, check it, and put it, or what is in it, into the data folder."""
    home = folder() / chosen.home
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home, prefix=".download-") as scratch:
            content = _transfer(chosen)
            origin = _Origin(
                chosen.url, "try again later; if it stays so, the page holds another version than the one known here"
            )
            if chosen.archive:
                files = texts = _members(chosen, content, origin)
            else:
                (piece,) = chosen.pieces
                files, texts = {chosen.file: content}, {piece.name: _text(chosen, piece, content, origin)}
            for name, part in files.items():
                Path(scratch, name).write_bytes(part)
            for name in files:
                Path(scratch, name).replace(home / name)
    except OSError as error:
        raise InputError(
            f"{chosen.name} is not in {folder()} and cannot be put there ({error.strerror or error}); "
            f"set ADOM_DATA to a folder that can be written to, or to one that has {chosen.file}"
        ) from None
    print(f"adom: downloaded {chosen.url} into {home}", file=sys.stderr, flush=True)
    return texts


class _Bounded(io.BytesIO):
    """Takes what a download brings, and stops one that grows beyond what it may be."""

    def __init__(self, most: int, url: str) -> None:
        super().__init__()
        self.most, self.url = most, url

    def write(self, chunk: Any) -> int:
        if self.tell() + len(chunk) > self.most:
            raise InputError(f"{self.url} sends more than the {self.most:,} bytes it may have; try again later")
        return super().write(chunk)


def _transfer(chosen: DataSet) -> bytes:
    """Download the official file with pooch, or say in one line what to do without."""
    import pooch
    import requests  # what pooch downloads with

    content = _Bounded(_most(chosen), chosen.url)
    answers: list[Any] = []  # pooch leaves them open where something goes wrong
    hooks = {"response": lambda answer, **_: answers.append(answer)}
    try:
        pooch.HTTPDownloader(chunk_size=1 << 16, timeout=PATIENCE, hooks=hooks)(chosen.url, content, None)
    except requests.exceptions.RequestException as error:
        if error.response is not None:
            reason = f"the page answers {error.response.status_code} {error.response.reason}"
        elif isinstance(error, requests.exceptions.Timeout):
            reason = "the page does not answer"
        elif isinstance(error, requests.exceptions.ChunkedEncodingError):
            reason = "the connection broke off"
        else:
            reason = "no connection"
        raise InputError(
            f"{chosen.name} is not in {folder()} and could not be downloaded: {reason}; "
            f"put {chosen.url} into that folder by hand, or set ADOM_DATA to a folder that has it"
        ) from None
    finally:
        for answer in answers:
            answer.close()
    return content.getvalue()
