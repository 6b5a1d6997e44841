"""The paper's data sets: where they come from, and how their files are found, checked and downloaded.

A data set lies in its subfolder of the data folder or in the data folder itself: as plain or compressed texts, or as
the official archive. Only texts with the right SHA-256 are used. A download is checked in memory, written to a scratch
folder and moved into place, so a file in place is always complete. Names in an archive are never used as paths.
"""

import hashlib
import io
import os
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from ..errors import Damaged, InputError, nearest
from ..util.files import cache_dir, kind
from .text_files import BROKEN, SUFFIXES, unpack_text

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
TUDATASET = "https://www.chrsmrrs.com/graphkerneldatasets"
MARGIN = 1 << 20
"""Bytes that a file may have beyond the size of its texts."""
MOST_MEMBERS = 64
"""Maximum number of files in an archive."""
TIMEOUT = (10, 60)
"""Seconds to wait for a connection, and for the next bytes."""


@dataclass(frozen=True)
class Piece:
    """One text file of a data set; checksum and size are those of the unpacked text."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True)
class DataSet:
    """A data set and its official page.

    Attributes
    ----------
    name : str
    what : str
        Description in one line.
    url : str
        The official file: plain, compressed, or a zip archive of the pieces.
    home : str
        Its subfolder of the data folder.
    pieces : tuple of Piece
    reference : str
    features : int or None
        Number of features of a sample; None for a network.
    """

    name: str
    what: str
    url: str
    home: str
    pieces: tuple[Piece, ...]
    reference: str
    features: int | None = None

    @property
    def file(self) -> str:
        """The name of the official file."""
        return self.url.rpartition("/")[2]

    @property
    def archive(self) -> bool:
        """Whether the official file is a zip archive."""
        return self.file.endswith(".zip")

    def piece(self, name: str) -> Piece:
        """Return the piece of that name."""
        return next(piece for piece in self.pieces if piece.name == name)


def _libsvm(file: str, what: str, sha256: str, size: int, features: int) -> DataSet:
    name = file.removesuffix(".bz2")
    piece = Piece(name, sha256, size)
    return DataSet(name, what, f"{LIBSVM}/{file}", "libsvm", (piece,), "Chang and Lin 2011", features)


_ALL = (
    _libsvm(
        "a6a",
        "census records, from UCI Adult",
        "6023becedbd392fdc6a62ad94b60c9363149370d4c57ef13949fcc765842a031",
        802_800,
        122,
    ),
    _libsvm("w6a", "web pages", "0db197939896da01e6677f8dc39fe824dffcb75c185bd681bb870d33c93c8f82", 1_202_812, 300),
    _libsvm(
        "ijcnn1.bz2",
        "IJCNN 2001 challenge, training and validation",
        "16506cad788cf7c9607454150ed1994788204bac2ff4c9cb3b320036b6950d3f",
        7_744_897,
        22,
    ),
    DataSet(
        "infectious_ct1",
        "face-to-face contacts at a museum, a network",
        f"{TUDATASET}/infectious_ct1.zip",
        "infectious_ct1",
        tuple(
            Piece(f"infectious_ct1_{part}.txt", sha256, size)
            for part, sha256, size in (
                ("A", "31a634ec463c96b2e51ebcdd705cd6a7605df1bf343d19820f1577775cd3f3ac", 987_976),
                ("graph_indicator", "7800f9938be8069f69c836747b9835146b1e47d1fa971078b74abf901a7d3f12", 34_600),
                ("edge_attributes", "148bdc1eec55330c738758323d61055adb97626e64b8be7374596a2abc84de7f", 261_864),
                ("graph_labels", "a364320cc96592a926a7875cdf235ba8d679a9721a68097757fd3b8ac8bafb8b", 400),
                ("node_labels", "dca29b79bc4f237fad247a64195979be5bdc2059febecf9b13b3d9b0bbfe804a", 80_789),
            )
        ),
        "Oettershagen et al. 2020; Morris et al. 2020",
    ),
)

SETS: dict[str, DataSet] = {data_set.name: data_set for data_set in _ALL}
"""All data sets by name."""

SAMPLES = tuple(data_set.name for data_set in _ALL if data_set.features is not None)
"""Names of the data sets of labelled samples."""


def find_set(name: str) -> DataSet:
    """Return the data set of that name.

    Examples
    --------
    >>> find_set("ijcnn1").file
    'ijcnn1.bz2'
    """
    if name not in SETS:
        raise InputError(f"no data set is called {name!r}; {nearest(name, SETS)}")
    return SETS[name]


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
    except (*BROKEN, RuntimeError, zipfile.BadZipFile) as error:
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
