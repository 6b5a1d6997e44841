"""Text files of samples, read in pieces of whole lines, also compressed; and LIBSVM text.

scikit-learn parses LIBSVM text. If that fails, it is read again line by line to name the first bad line.
"""

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from ..errors import Damaged, InputError, shown
from ..problems.limits import LARGEST_DIM, check_room, memory
from ..util.files import open_regular
from ..util.text import format_bytes

PACKERS: dict[bytes, Any] = {b"BZh": bz2.open, b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open}
"""First bytes of compressed files -> the functions that open them."""
SUFFIXES = (".bz2", ".gz", ".xz")
BROKEN = (OSError, ValueError, EOFError, zlib.error, lzma.LZMAError)
"""What reading a damaged packed file raises."""
TEXT_BLOCK = 2**22
"""Bytes of text in a piece."""
TEXT = 8
"""Parsing text takes at least this many times its size in memory."""
LENIENT = re.compile(rb"_|qid")
"""Spellings that scikit-learn accepts and LIBSVM does not."""


def unpack_text(content: bytes, most: float) -> bytes:
    """Decompress bzip2, gzip or xz to little more than `most` bytes, or raise `Damaged`; return other bytes as is."""
    opener = next((opener for start, opener in PACKERS.items() if content.startswith(start)), None)
    if opener is None:
        return content
    text = bytearray()
    try:
        with opener(io.BytesIO(content)) as file:
            while len(text) <= most and (part := file.read(2**20)):
                text += part
    except BROKEN as error:
        raise Damaged(f"is cut short or damaged ({error})") from None
    return bytes(text)


class Piece(NamedTuple):
    """Whole lines of a text file."""

    first: int  # number of its first line
    text: bytes


def pieces(path: Path, *, whole: bool, quoted: bool = False) -> Iterator[Piece]:
    """Yield the lines of a text file, decompressed if need be, without a byte order mark.

    `whole` says that all of them will be held in memory, `quoted` that a line end between quotes ends no record.
    """
    with open_regular(path) as file:
        start = file.read(6)
    opener = next((opener for mark, opener in PACKERS.items() if start.startswith(mark)), None)
    if start and path.suffix.lower() in SUFFIXES and opener is None:
        raise InputError(f"{path} is not a {path.suffix} file although its name says so; rename it, or fetch it again")
    most, seen, first, rest = memory() / TEXT, 0, 1, b""
    try:
        opened: IO[bytes] = (opener or Path.open)(path, "rb")
        with opened as file:
            while part := file.read(TEXT_BLOCK):
                part = part.removeprefix(b"\xef\xbb\xbf") if not seen else part
                seen += len(part)
                if (seen if whole and opener else len(rest)) > most:
                    what = "unpacks to" if opener else "has a line of"
                    size = format_bytes(most)
                    raise InputError(f"{path} {what} more than {size}, too much for this machine; split it")
                lines, newline, tail = (rest + part).rpartition(b"\n")
                if not newline or (quoted and lines.count(b'"') % 2):
                    rest += part
                    continue
                yield Piece(first, lines + newline)
                first, rest = first + lines.count(b"\n") + 1, tail
    except BROKEN as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is cut short or damaged ({error}); fetch it again") from None
    if rest:
        yield Piece(first, rest)


def parse_libsvm(path: Path | str, content: bytes, features: int | None) -> tuple[Any, np.ndarray]:
    """Parse LIBSVM text; `path` names it in error messages."""
    return join(path, [libsvm_piece(path, Piece(1, content), features)], features)


def join(path: Path | str, parts: list[tuple[Any, np.ndarray]], features: int | None) -> tuple[Any, np.ndarray]:
    """Return the features and labels of all blocks of a file; sparse ones may differ in width."""
    from scipy.sparse import vstack

    tables, labels = [table for table, _ in parts], np.concatenate([each for _, each in parts])
    if not hasattr(tables[0], "indptr"):
        return np.concatenate(tables), labels
    if not len(labels):
        raise InputError(f"{path} holds no samples; expected lines `label index:value index:value ...`")
    if features is None and not any(table.nnz for table in tables):
        raise InputError(f"{path} has no features in any of its {len(labels)} samples; give features= or other data")
    width = max(table.shape[1] for table in tables)
    for table in tables:
        table.resize((table.shape[0], width))
    return (tables[0] if len(tables) == 1 else vstack(tables, format="csr")), labels


def libsvm_piece(path: Path | str, piece: Piece, features: int | None) -> tuple[Any, np.ndarray]:
    """Parse some lines of LIBSVM text, which may hold no sample; by default as wide as their largest index."""
    from scipy.sparse import csr_array
    from sklearn.datasets import load_svmlight_file

    if LENIENT.search(piece.text):
        _check_lines(path, piece, features)
    try:
        matrix, labels = load_svmlight_file(io.BytesIO(piece.text), n_features=features, zero_based=False)
    except (ValueError, OverflowError) as error:
        _check_lines(path, piece, features)
        raise InputError(f"{path} is not LIBSVM text ({error}); expected lines `label index:value ...`") from None
    if not (np.isfinite(matrix.data).all() and np.isfinite(labels).all()):
        _check_lines(path, piece, features)
    width = matrix.shape[1]
    what = f"features={features}"
    if features is None and matrix.nnz:
        sample = int(np.searchsorted(matrix.indptr, matrix.indices.argmax(), side="right")) - 1
        line, _ = next(islice(_samples(piece), sample, None))
        what = f"{path}, line {line}: index {width}"
    check_room(1, width, what)
    small = np.int32 if matrix.nnz <= LARGEST_DIM else np.int64
    indices, starts = matrix.indices.astype(small), matrix.indptr.astype(small)
    return csr_array((matrix.data, indices, starts), shape=matrix.shape), labels


def _samples(piece: Piece) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the text, without comments, of each line that holds a sample."""
    for number, line in enumerate(piece.text.split(b"\n"), start=piece.first):
        sample = line.partition(b"#")[0].strip()
        if sample:
            yield number, sample


def _check_lines(path: Path | str, piece: Piece, features: int | None) -> None:
    """Refuse the first line that is not a LIBSVM sample."""
    most = features or LARGEST_DIM
    for number, line in _samples(piece):
        fault = _fault(line, most)
        if fault:
            raise InputError(f"{path}, line {number}: {fault}")


def _fault(line: bytes, most: int) -> str:
    """Say why a line is not a LIBSVM sample; "" if it is one."""
    label, *pairs = (part.decode("utf-8", "backslashreplace") for part in line.split())
    if not is_number(label):
        return (
            f"label {shown(label)} is not a finite number; expected LIBSVM's `label index:value ...`, or a file whose "
            "name ends in .csv or .npz"
        )
    before = 0
    for pair in pairs:
        index, colon, value = pair.partition(":")
        if not colon:
            return f"{shown(pair)} has no colon; expected index:value"
        if not (index.isascii() and index.isdigit()):
            return f"index {shown(index)} is not a whole number; expected index:value with indices from 1"
        if not is_number(value):
            return f"value {shown(value)} of index {index[:20]} is not a finite number; correct or drop it"
        position = int(index[:19])
        if position < 1:
            return f"index {position} is too small: indices count from 1; add 1 to all of them"
        if position <= before:
            return f"index {position} does not exceed the one before it; sort the line and drop duplicates"
        if position > most:
            return f"index {position} exceeds the {most} features allowed; correct it or allow more"
        before = position
    return ""


def is_number(cell: str) -> bool:
    """Return whether a cell is a finite number; unlike `float`, refuse underscores."""
    try:
        return "_" not in cell and bool(np.isfinite(float(cell)))
    except ValueError:
        return False
