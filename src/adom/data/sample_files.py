"""Labelled samples from files: LIBSVM text, CSV and NumPy archives, packed or not; nothing is ever unpickled.

Whatever is wrong with a file is said in one line: the file, the line and column where there is one, and why.
"""

import csv
import io
import os
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..problems.checks import LARGEST_DIM, REAL, check_room, memory
from ..util.checked_json import Damaged
from ..util.checked_npz import unpack
from ..util.files import content as file_content

PACKED = {b"BZh": "bz2", b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "lzma"}
"""How a packed file begins, and the module of the standard library that unpacks it."""
SUFFIXES = {".bz2": "bz2", ".gz": "gzip", ".xz": "lzma"}
ARCHIVE = b"PK\x03\x04"
LARGEST_INDEX = LARGEST_DIM
TEXT = 8
"""The memory that text takes until it is numbers, in times its own size, at least."""
ODD = (ValueError, TypeError, LookupError, OverflowError, MemoryError)
"""What pieces of a sparse matrix that do not fit together may raise."""
SAVED = "save one with numpy.savez(path, features=..., labels=...)"

_NUMBER = rb"[+-]?(?:[0-9]{1,64}(?:\.[0-9]{0,64})?|\.[0-9]{1,64})(?:[eE][+-]?[0-9]{1,4})?"
_PAIR = rb"([0-9]{1,18}):(" + _NUMBER + rb")"
_SAMPLE = re.compile(rb"[ \t]*" + _NUMBER + rb"(?:[ \t]+" + _PAIR + rb")*[ \t\r]*")


def read(
    path: str | os.PathLike[str], *, label: str | int | None = None, features: int | None = None
) -> tuple[Any, np.ndarray]:
    r"""Read labelled samples from a file.

    ===============  ==================================================================================
    CSV              one sample a line; a first line of names, or of column numbers and names, is skipped
    NumPy archive    ``.npz`` with arrays ``features`` and ``labels`` (or ``X`` and ``y``); or the pieces that
                     `scipy.sparse.save_npz` writes, and labels
    LIBSVM           all else: ``label index:value index:value ...``, indices from 1 and increasing; what
                     follows a ``#`` is skipped
    ===============  ==================================================================================

    The first and the last may be packed by bzip2, gzip or xz.

    Parameters
    ----------
    path : path
    label : str or int, optional
        The column of a CSV file that holds the labels: its name or its number from 0; the last by default.
    features : int, optional
        How many features there are. A LIBSVM file may leave the last ones out; the others must agree.

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
    if features is not None and (isinstance(features, bool) or not isinstance(features, int) or features < 1):
        raise InputError(f"features must be a whole number of at least 1, got {features!r}; leave it out to count")
    content = file_content(path, "check the path and its permissions")
    if content.startswith(ARCHIVE) or path.suffix.lower() == ".npz":
        kind = "npz"
    else:
        content = _unpack(path, content)
        kind = "csv" if _is_csv(path, content) else "libsvm"
    if label is not None and kind != "csv":
        raise InputError(f"label={label!r} names a column of a CSV file, and {path} is none; leave it out")
    if not content.strip():
        raise InputError(f"{path} is empty; give a file with at least one sample")
    if kind == "npz":
        return _read_npz(path, content, features)
    if kind == "csv":
        return _read_csv(path, content, label, features)
    return parse_libsvm(path, content, features)


def _unpack(path: Path, content: bytes) -> bytes:
    """Return the text of a packed file; text that was not packed is returned as it is."""
    packer = next((name for magic, name in PACKED.items() if content.startswith(magic)), None)
    named = SUFFIXES.get(path.suffix.lower())
    if packer is None:
        if named and content:
            raise InputError(f"{path} is no {path.suffix} file although its name says so; rename it, or fetch it again")
        return content.removeprefix(b"\xef\xbb\xbf")

    import bz2
    import gzip
    import lzma

    opened: Any = {"bz2": bz2.BZ2File, "gzip": gzip.GzipFile, "lzma": lzma.LZMAFile}[packer]
    most = memory() / TEXT
    text = bytearray()
    try:
        with opened(io.BytesIO(content)) if packer != "gzip" else opened(fileobj=io.BytesIO(content)) as file:
            while part := file.read(2**20):
                text += part
                if len(text) > most:
                    raise InputError(
                        f"{path} unpacks to more than {most / 1e9:.2g} GB, too much for this machine; split it"
                    )
    except (OSError, ValueError, EOFError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is cut short or damaged ({error}); fetch it again") from None
    return bytes(text)


def _is_csv(path: Path, content: bytes) -> bool:
    """Tell CSV from LIBSVM: by the suffix, or for .txt and none by the first line."""
    suffixes = [s.lower() for s in path.suffixes if s.lower() not in SUFFIXES]
    suffix = suffixes[-1] if suffixes else ""
    if suffix in ("", ".txt"):
        first = content.lstrip()[:65536].splitlines()[:1]
        return bool(first) and b"," in first[0] and b":" not in first[0]
    return suffix == ".csv"


def parse_libsvm(path: Path | str, content: bytes, features: int | None) -> tuple[Any, np.ndarray]:
    """Parse LIBSVM text: each line is checked as a whole, and the numbers are converted all at once.

    `path` is what errors call it; see `read` for the rest.
    """
    from scipy.sparse import csr_array

    labels: list[bytes] = []
    indices: list[bytes] = []
    values: list[bytes] = []
    counts, lines = [0], []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if b"#" in line:
            line = line.partition(b"#")[0]  # noqa: PLW2901  # the rest of the line is a comment
        if not _SAMPLE.fullmatch(line):
            if not line.strip():
                continue
            raise InputError(f"{path}, line {number}: {_what_is_wrong(line)}")
        fields = line.replace(b":", b" ").split()
        labels.append(fields[0])
        indices.extend(fields[1::2])
        values.extend(fields[2::2])
        counts.append(len(indices))
        lines.append(number)
    if not lines:
        raise InputError(f"{path} holds no samples; expected lines `label index:value index:value ...`")

    starts = np.array(counts, dtype=np.int64)
    owner = np.repeat(np.arange(len(lines)), np.diff(starts))
    columns = np.array(indices, dtype="S18").astype(np.int64)
    data, signs = _floats(values), _floats(labels)

    def refuse(bad: np.ndarray, reason: str, texts: list[bytes], of_samples: bool = False) -> None:
        if bad.any():
            place = int(np.argmax(bad))
            line = lines[place if of_samples else owner[place]]
            raise InputError(f"{path}, line {line}: {reason.format(texts[place].decode())}")

    refuse(columns < 1, "index {} is too small: indices count from 1; add 1 to all of them", indices)
    follows = np.zeros(len(columns), dtype=bool)
    follows[1:] = (owner[1:] == owner[:-1]) & (columns[1:] <= columns[:-1])
    refuse(follows, "index {} does not exceed the one before it; sort the line and drop duplicates", indices)
    most = LARGEST_INDEX if features is None else features
    refuse(columns > most, f"index {{}} exceeds the {most} features allowed; correct it or allow more", indices)
    refuse(~np.isfinite(data), "value {} is too large for a 64-bit number; scale that feature", values)
    refuse(~np.isfinite(signs), "label {} is too large for a 64-bit number", labels, of_samples=True)
    width = features or int(columns.max(initial=0))
    if width == 0:
        raise InputError(f"{path} has no features in any of its {len(lines)} samples; give features= or other data")
    highest = f"{path}, line {lines[owner[np.argmax(columns)]]}: index {width}" if not features else ""
    check_room(1, width, highest or f"features={features}")
    small = np.int32 if len(columns) <= LARGEST_INDEX else np.int64
    matrix = csr_array((data, (columns - 1).astype(small), starts.astype(small)), shape=(len(lines), width))
    return matrix, signs


def _floats(texts: list[bytes]) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.array(texts, dtype=bytes).astype(np.float64) if texts else np.zeros(0)


def _what_is_wrong(line: bytes) -> str:
    """Say why a line is no LIBSVM sample."""
    label, *pairs = line.split()
    if not re.fullmatch(_NUMBER, label):
        return (
            f"label {_shown(label)} is not a finite number; expected LIBSVM's `label index:value ...`, or a file whose "
            "name ends in .csv or .npz"
        )
    for pair in pairs:
        index, colon, value = pair.partition(b":")
        if not colon:
            return f"{_shown(pair)} has no colon; expected index:value"
        if not re.fullmatch(rb"[0-9]{1,18}", index):
            return f"index {_shown(index)} is not a whole number; expected index:value with indices from 1"
        if not re.fullmatch(_NUMBER, value):
            return f"value {_shown(value)} of index {index.decode()} is not a finite number; correct or drop it"
    return f"{_shown(line)} is no sample; expected `label index:value ...` separated by spaces"


def _shown(text: bytes | str, most: int = 40) -> str:
    """Return the text in quotes, cut short, without control characters."""
    plain = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text
    return repr(plain if len(plain) <= most else plain[:most] + "...")


def _read_csv(
    path: Path, content: bytes, label: str | int | None, features: int | None
) -> tuple[np.ndarray, np.ndarray]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"{path}, line {line}: not UTF-8 text; save the file as UTF-8") from None
    first = text.lstrip().partition("\n")[0]
    delimiter = next((mark for mark in ",;\t" if mark in first), ",")
    rows, lines = [], []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}; repair the quotes") from None

    if not rows:
        raise InputError(f"{path} holds no samples, only separators; give a file with at least one")
    header = None
    if _is_header(rows[0], label):
        header = [cell.strip() for cell in rows.pop(0)]
        lines.pop(0)
    if not rows:
        raise InputError(f"{path} holds a header and no samples; give a file with at least one")
    width = len(header or rows[0])
    if width < 2:
        raise InputError(f"{path} has one column only; expected features and labels, separated by commas")
    for place, row in enumerate(rows):  # before there is a table, which one long line could make huge
        if len(row) != width:
            raise InputError(
                f"{path}, line {lines[place]}: {len(row)} columns, but {width} in the first line; mend the line"
            )
    table = np.empty((len(rows), width))
    for place, row in enumerate(rows):
        try:
            table[place] = [_float(cell) for cell in row]
        except ValueError:
            column = next(c for c, cell in enumerate(row) if not _is_number(cell))
            name = f" ({header[column]})" if header else ""
            raise InputError(
                f"{path}, line {lines[place]}, column {column + 1}{name}: {_shown(row[column])} is not a finite "
                "number; map it to one, fill it in, or drop the line"
            ) from None
    if features is not None and features != width - 1:
        raise InputError(f"{path} has {width - 1} features beside the label, not {features}; leave that number out")
    place = _label_column(path, label, header, width)
    return np.delete(table, place, axis=1), table[:, place].copy()


def _float(cell: str) -> float:
    """Return a finite number; unlike `float`, refuse underscores."""
    value = float(cell)
    if "_" in cell or value - value != 0:
        raise ValueError(cell)
    return value


def _is_number(cell: str) -> bool:
    try:
        _float(cell)
    except ValueError:
        return False
    return True


def _is_header(row: list[str], label: str | int | None) -> bool:
    """Tell names from numbers: no cell is a number, or only such as number the columns; or one is the label."""
    numbers = [_is_number(cell) for cell in row]
    if all(numbers):
        return False
    numbered = all(cell.strip() == str(place) for place, cell in enumerate(row) if numbers[place])
    return numbered or label in [cell.strip() for cell in row]


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
        raise InputError(f"{path} is no NumPy archive; {SAVED}")
    try:
        most = int(min(memory() / 2, 2**62))
        arrays = unpack(io.BytesIO(content), most, ratio=1, kinds=REAL + "cUS")
        labels = next((arrays[name] for name in ("labels", "y") if name in arrays), None)
        if not {"features", "X", "format"} & set(arrays):
            raise InputError(f"{path} has no array features or X; it has {', '.join(arrays) or 'nothing'}: {SAVED}")
        if labels is None:
            raise InputError(f"{path} has no array labels or y; it has {', '.join(arrays)}: {SAVED}")
        found = _archived(path, arrays, labels)
    except InputError:
        raise
    except (Damaged, *ODD) as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise InputError(f"{path} is no whole archive of plain arrays ({reason}); save it again") from None
    for name, array in (("features", found), ("labels", labels)):
        if array.dtype.kind not in REAL + ("US" if name == "labels" else ""):
            raise InputError(f"{name} in {path} must be real numbers, got {array.dtype}; convert them first")
    if found.ndim != 2 or 0 in found.shape:
        raise InputError(f"features in {path} must have shape (samples, features), got {found.shape}")
    if labels.shape != (found.shape[0],):
        raise InputError(
            f"labels in {path} must have shape ({found.shape[0]},), one for every sample, got {labels.shape}"
        )
    if features is not None and features != found.shape[1]:
        raise InputError(f"{path} has {found.shape[1]} features, not {features}; leave that number out")
    return found.astype(np.float64), labels


def _archived(path: Path, arrays: dict[str, np.ndarray], labels: np.ndarray) -> Any:
    """Return the features of an archive, dense or sparse."""
    for name in ("features", "X"):
        if name in arrays:
            return arrays[name]

    import scipy.sparse as sp

    layout = arrays["format"].astype("S8").item().decode("ascii", "replace")
    if layout not in ("csr", "csc", "coo"):
        raise InputError(f"{path} holds a sparse matrix in format {layout[:8]!r}; save it as csr, csc or coo")
    rows, columns = (int(size) for size in arrays["shape"])
    if labels.size != rows or not 0 < columns <= LARGEST_INDEX:  # before memory is taken for so many
        raise InputError(
            f"features in {path} of shape ({rows}, {columns}) do not fit its {labels.size} labels; save again"
        )
    places = [arrays[name] for name in (("row", "col") if layout == "coo" else ("indices", "indptr"))]
    if any(place.dtype.kind not in "iu" or place.ndim != 1 for place in places):
        raise InputError(f"the places in the sparse matrix of {path} must be whole numbers; save it again")
    if layout == "coo":
        return sp.coo_array((arrays["data"], tuple(places)), shape=(rows, columns)).tocsr()
    make = sp.csr_array if layout == "csr" else sp.csc_array
    matrix = make((arrays["data"], *places), shape=(rows, columns))
    matrix.check_format(full_check=True)
    return matrix.tocsr()
