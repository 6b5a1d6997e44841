"""Readers of labelled samples: LIBSVM text, CSV and NumPy archives, also compressed; nothing is unpickled.

scikit-learn and NumPy parse the text. If they fail, it is read again line by line to name the first bad line.
"""

import bz2
import csv
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, shown
from ..problems.checks import LARGEST_DIM, REAL, check_room, memory
from ..util.checked_json import Damaged
from ..util.checked_npz import unpack
from ..util.checks import check_whole
from ..util.files import content as file_content
from ..util.text import format_bytes

PACKERS: dict[bytes, Any] = {b"BZh": bz2.open, b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open}
"""First bytes of compressed files -> the functions that open them."""
SUFFIXES = (".bz2", ".gz", ".xz")
ARCHIVE = b"PK\x03\x04"
TEXT = 8
"""Parsing text takes at least this many times its size in memory."""
SAVE = "save one with numpy.savez(path, features=..., labels=...)"
LENIENT = re.compile(rb"_|qid")
"""Spellings that scikit-learn accepts and LIBSVM does not."""


def read(
    path: str | os.PathLike[str], *, label: str | int | None = None, features: int | None = None
) -> tuple[Any, np.ndarray]:
    r"""Read labelled samples from a file.

    ===============  ==================================================================================
    CSV              one sample per line; a first line of names, or of column numbers and names, is skipped
    NumPy archive    ``.npz`` with arrays ``features`` and ``labels`` (or ``X`` and ``y``); or the arrays of
                     `scipy.sparse.save_npz`, and labels
    LIBSVM           any other file: ``label index:value index:value ...`` with increasing indices from 1; a ``#``
                     begins a comment
    ===============  ==================================================================================

    CSV and LIBSVM files may be compressed by bzip2, gzip or xz.

    Parameters
    ----------
    path : path
    label : str or int, optional
        The column of labels in a CSV file: its name, or its number from 0; by default the last.
    features : int, optional
        Number of features. A LIBSVM file may lack the last ones; in other files the number must be exact.

    Returns
    -------
    features : array or scipy.sparse.csr_array of shape (samples, features)
        Sparse from LIBSVM and sparse archives, dense otherwise; float64.
    labels : array of shape (samples,)

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "two.svm")
    ...     _ = file.write_text("+1 1:0.5 3:2\n-1 2:1\n")
    ...     A, b = read(file)
    >>> A.toarray().tolist(), b.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1.0, -1.0])
    """
    path = Path(path)
    if features is not None:
        check_whole("features", features, remedy="leave it out to count them")
    content = file_content(path, "check the path and its permissions")
    if content.startswith(ARCHIVE) or path.suffix.lower() == ".npz":
        kind = "npz"
    else:
        content = _unpacked(path, content)
        kind = "csv" if _is_csv(path, content) else "libsvm"
    if label is not None and kind != "csv":
        raise InputError(f"label={label!r} names a column of a CSV file, and {path} is not one; leave it out")
    if not content.strip():
        raise InputError(f"{path} is empty; give a file with at least one sample")
    if kind == "npz":
        return _read_npz(path, content, features)
    if kind == "csv":
        return _read_csv(path, content, label, features)
    return parse_libsvm(path, content, features)


def feature_names(path: str | os.PathLike[str], label: str | int | None = None) -> list[str] | None:
    """Return the feature names in a CSV file; None if its header is missing or has duplicates, or for other files."""
    path = Path(path)
    content = file_content(path, "check the path and its permissions")
    if content.startswith(ARCHIVE) or not _is_csv(path, content := _unpacked(path, content)):
        return None
    first_line = content.lstrip().partition(b"\n")[0].decode("utf-8-sig")
    delimiter = next((mark for mark in ",;\t" if mark in first_line), ",")
    _, first = next(_rows(path, io.StringIO(first_line, newline=""), delimiter), (0, []))
    if not _is_header(first, label) or len(set(first)) < len(first):
        return None
    del first[_label_column(path, label, first, len(first))]
    return first


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
    except (OSError, ValueError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise Damaged(f"is cut short or damaged ({error})") from None
    return bytes(text)


def _unpacked(path: Path, content: bytes) -> bytes:
    """Return the text of a file, decompressed if need be."""
    if content and path.suffix.lower() in SUFFIXES and not content.startswith(tuple(PACKERS)):
        raise InputError(f"{path} is not a {path.suffix} file although its name says so; rename it, or fetch it again")
    most = memory() / TEXT
    try:
        text = unpack_text(content, most)
    except Damaged as error:
        raise InputError(f"{path} {error}; fetch it again") from None
    if text is not content and len(text) > most:
        raise InputError(f"{path} unpacks to more than {format_bytes(most)}, too much for this machine; split it")
    return text.removeprefix(b"\xef\xbb\xbf")


def _is_csv(path: Path, content: bytes) -> bool:
    """Return whether text is CSV, by the suffix, or by the first line if the suffix is .txt or missing."""
    suffix = next((s.lower() for s in reversed(path.suffixes) if s.lower() not in SUFFIXES), "")
    if suffix in ("", ".txt"):
        first = content.lstrip()[:65536].splitlines()[:1]
        return bool(first) and b"," in first[0] and b":" not in first[0]
    return suffix == ".csv"


def parse_libsvm(path: Path | str, content: bytes, features: int | None) -> tuple[Any, np.ndarray]:
    """Parse LIBSVM text; `path` names it in error messages."""
    from scipy.sparse import csr_array
    from sklearn.datasets import load_svmlight_file

    if LENIENT.search(content):
        _check_lines(path, content, features)
    try:
        matrix, labels = load_svmlight_file(io.BytesIO(content), n_features=features, zero_based=False)
    except (ValueError, OverflowError) as error:
        _check_lines(path, content, features)
        raise InputError(f"{path} is not LIBSVM text ({error}); expected lines `label index:value ...`") from None
    if not (np.isfinite(matrix.data).all() and np.isfinite(labels).all()):
        _check_lines(path, content, features)
    if not len(labels):
        raise InputError(f"{path} holds no samples; expected lines `label index:value index:value ...`")
    if features is None and not matrix.nnz:
        raise InputError(f"{path} has no features in any of its {len(labels)} samples; give features= or other data")
    width = matrix.shape[1]
    if features is None:
        sample = int(np.searchsorted(matrix.indptr, matrix.indices.argmax(), side="right")) - 1
        line, _ = next(islice(_samples(content), sample, None))
    check_room(1, width, f"features={features}" if features else f"{path}, line {line}: index {width}")
    small = np.int32 if matrix.nnz <= LARGEST_DIM else np.int64
    indices, starts = matrix.indices.astype(small), matrix.indptr.astype(small)
    return csr_array((matrix.data, indices, starts), shape=matrix.shape), labels


def _samples(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the text, without comments, of each line that holds a sample."""
    for number, line in enumerate(content.split(b"\n"), start=1):
        sample = line.partition(b"#")[0].strip()
        if sample:
            yield number, sample


def _check_lines(path: Path | str, content: bytes, features: int | None) -> None:
    """Refuse the first line that is not a LIBSVM sample."""
    most = features or LARGEST_DIM
    for number, line in _samples(content):
        fault = _fault(line, most)
        if fault:
            raise InputError(f"{path}, line {number}: {fault}")


def _fault(line: bytes, most: int) -> str:
    """Say why a line is not a LIBSVM sample; "" if it is one."""
    label, *pairs = (part.decode("utf-8", "backslashreplace") for part in line.split())
    if not _is_number(label):
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
        if not _is_number(value):
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


def _read_csv(
    path: Path, content: bytes, label: str | int | None, features: int | None
) -> tuple[np.ndarray, np.ndarray]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"{path}, line {line}: not UTF-8 text; save the file as UTF-8") from None
    first_line = text.lstrip().partition("\n")[0]
    delimiter = next((mark for mark in ",;\t" if mark in first_line), ",")
    stream = io.StringIO(text, newline="")
    _, first = next(_rows(path, stream, delimiter), (0, []))
    if not first:
        raise InputError(f"{path} holds no samples, only separators; give a file with at least one")
    header = first if _is_header(first, label) else None
    rest = io.StringIO(stream.read() if header else text, newline="")
    lines = [line for line in rest if line.strip(f"{delimiter}\"' \t\r\n")]
    if not lines:
        raise InputError(f"{path} holds a header and no samples; give a file with at least one")
    width = len(first)
    if width < 2:
        raise InputError(f"{path} has one column only; expected features and labels, separated by commas")
    if features not in (None, width - 1):
        raise InputError(f"{path} has {width - 1} features beside the label, not {features}; leave that number out")
    column = _label_column(path, label, header, width)
    try:
        table = np.loadtxt(lines, delimiter=delimiter, quotechar='"', comments=None, ndmin=2)
    except ValueError as error:
        _check_cells(path, text, delimiter, header, width)
        raise InputError(f"{path} is not a table of numbers ({error}); fix it") from None
    if table.shape[1] != width or not np.isfinite(table).all():
        _check_cells(path, text, delimiter, header, width)
    return np.delete(table, column, axis=1), table[:, column].copy()


def _rows(path: Path, stream: io.StringIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the stripped cells of each line that is not empty."""
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}; repair the quotes") from None


def _check_cells(path: Path, text: str, delimiter: str, header: list[str] | None, width: int) -> None:
    """Refuse the first line of another width, and the first cell that is not a finite number."""
    for number, cells in islice(_rows(path, io.StringIO(text, newline=""), delimiter), bool(header), None):
        if len(cells) != width:
            raise InputError(f"{path}, line {number}: {len(cells)} columns, but {width} in the first line; fix it")
        column = next((column for column, cell in enumerate(cells) if not _is_number(cell)), None)
        if column is not None:
            name = f" ({header[column]})" if header else ""
            raise InputError(
                f"{path}, line {number}, column {column + 1}{name}: {shown(cells[column])} is not a finite "
                "number; map it to one, fill it in, or drop the line"
            )


def _is_number(cell: str) -> bool:
    """Return whether a cell is a finite number; unlike `float`, refuse underscores."""
    try:
        return "_" not in cell and bool(np.isfinite(float(cell)))
    except ValueError:
        return False


def _is_header(cells: list[str], label: str | int | None) -> bool:
    """Return whether a line is a header: any number in it is its column's own, or one cell names the label."""
    numbers = {column: cell for column, cell in enumerate(cells) if _is_number(cell)}
    if len(numbers) == len(cells):
        return False
    return all(cell == str(column) for column, cell in numbers.items()) or label in cells


def _label_column(path: Path, label: str | int | None, header: list[str] | None, width: int) -> int:
    """Return the column that holds the labels."""
    if label is None:
        return width - 1
    if header and label in header:
        return header.index(str(label))
    try:
        number = int(label)
    except ValueError:
        known = f"columns are {', '.join(header[:8])}" if header else "it has no header: give the column's number"
        raise InputError(f"{path} has no column {label!r}; {known}") from None
    if not -width <= number < width:
        raise InputError(f"{path} has no column {number}; columns count from 0 to {width - 1}")
    return number % width


def _read_npz(path: Path, content: bytes, features: int | None) -> tuple[Any, np.ndarray]:
    if not content.startswith(ARCHIVE):
        raise InputError(f"{path} is not a NumPy archive; {SAVE}")
    try:
        most = int(min(memory() / 2, 2**62))
        arrays = unpack(io.BytesIO(content), most, ratio=1, kinds=REAL + "cUS")
        matrix = next((arrays[name] for name in ("features", "X") if name in arrays), None)
        labels = next((arrays[name] for name in ("labels", "y") if name in arrays), None)
        if matrix is None and "format" not in arrays:
            raise InputError(f"{path} has no array features or X; it has {', '.join(arrays) or 'nothing'}: {SAVE}")
        if labels is None:
            raise InputError(f"{path} has no array labels or y; it has {', '.join(arrays)}: {SAVE}")
        if matrix is None:
            matrix = _sparse(path, arrays, labels)
    except InputError:
        raise
    except (ValueError, TypeError, LookupError, OverflowError, MemoryError) as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise InputError(f"{path} is not a whole archive of plain arrays ({reason}); save it again") from None
    for name, array in (("features", matrix), ("labels", labels)):
        if array.dtype.kind not in REAL + ("US" if name == "labels" else ""):
            raise InputError(f"{name} in {path} must be real numbers, got {array.dtype}; convert them first")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(f"features in {path} must have shape (samples, features), got {matrix.shape}")
    if labels.shape != (matrix.shape[0],):
        raise InputError(
            f"labels in {path} must have shape ({matrix.shape[0]},), one for every sample, got {labels.shape}"
        )
    if features is not None and features != matrix.shape[1]:
        raise InputError(f"{path} has {matrix.shape[1]} features, not {features}; leave that number out")
    return matrix.astype(np.float64), labels


def _sparse(path: Path, arrays: dict[str, np.ndarray], labels: np.ndarray) -> Any:
    """Return the matrix that `scipy.sparse.save_npz` wrote."""
    import scipy.sparse as sp

    layout = arrays["format"].astype("S8").item().decode("ascii", "replace")
    if layout not in ("csr", "csc", "coo"):
        raise InputError(f"{path} holds a sparse matrix in format {layout!r}; save it as csr, csc or coo")
    rows, columns = (int(size) for size in arrays["shape"])
    if labels.size != rows or not 0 < columns <= LARGEST_DIM:  # before memory is allocated for them
        raise InputError(
            f"features in {path} of shape ({rows}, {columns}) do not fit its {labels.size} labels; save again"
        )
    positions = [arrays[name] for name in (("row", "col") if layout == "coo" else ("indices", "indptr"))]
    if any(array.dtype.kind not in "iu" or array.ndim != 1 for array in positions):
        raise InputError(f"the positions in the sparse matrix of {path} must be whole numbers; save it again")
    if layout == "coo":
        return sp.coo_array((arrays["data"], tuple(positions)), shape=(rows, columns)).tocsr()
    make = sp.csr_array if layout == "csr" else sp.csc_array
    matrix = make((arrays["data"], *positions), shape=(rows, columns))
    matrix.check_format(full_check=True)
    return matrix.tocsr()
