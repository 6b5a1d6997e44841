"""Tables with named columns, read a block of rows at a time: CSV, Parquet, LIBSVM and NumPy archives.

Only NumPy archives are loaded as a whole; other tables may be larger than memory. Features must be finite numbers.
Text in them is refused, since only the owner of the data can say how categories become numbers.
"""

import csv
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from ..errors import InputError, how_to_install, nearest, shown
from ..problems.checks import REAL, flaw
from ..util.files import open_regular
from ..util.text import format_exact
from .sample_files import PACKERS, SUFFIXES, parse_libsvm, read

BLOCK = 2**21
"""Numbers in a block, about 16 MB."""
TEXT_BLOCK = 2**24
"""Bytes of LIBSVM text in a block."""


class Block(NamedTuple):
    """Some rows of a table."""

    features: Any  # an array, or a scipy.sparse.csr_array
    target: np.ndarray | None  # numbers, or text


class Table(NamedTuple):
    """An open table: the names of its features, and its blocks, which can be read once."""

    names: list[str]  # [] for LIBSVM text, which does not say how many features there are
    blocks: Iterator[Block]


def open_table(
    path: str | os.PathLike[str],
    target: str | None = None,
    features: Sequence[str] | None = None,
    *,
    without: Sequence[str] = (),
) -> Table:
    r"""Open a table.

    Parameters
    ----------
    path : path
        A CSV file with a line of names, a Parquet file (needs pyarrow), a NumPy archive with ``features``,
        ``labels`` and optionally ``names``, or LIBSVM text, whose features are named x1, x2, ...
    target : str, optional
        The column to predict. In LIBSVM text and archives the labels have no name, so any string selects them. None
        leaves the target out.
    features : sequence of str, optional
        The columns to take, in this order; by default all but the target.
    without : sequence of str
        Columns to leave out.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "two.csv")
    ...     _ = file.write_text("height,weight,ill\n1.5,40,no\n1.8,80,yes\n")
    ...     table = open_table(file, "ill")
    ...     [block] = table.blocks
    >>> table.names, block.features.tolist(), block.target.tolist()
    (['height', 'weight'], [[1.5, 40.0], [1.8, 80.0]], ['no', 'yes'])
    """
    file = Path(path)
    try:
        open_regular(file).close()
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or "it is not a possible file name"
        raise InputError(f"cannot read {file}: {words}; check the path and its permissions") from None
    kind = next((s.lower() for s in reversed(file.suffixes) if s.lower() not in SUFFIXES), "")
    reader = {".csv": _csv, ".parquet": _parquet, ".npz": _npz}.get(kind, _libsvm)
    return reader(file, target, features, without)


def _chosen(
    path: Path, names: list[str], target: str | None, features: Sequence[str] | None, without: Sequence[str]
) -> list[str]:
    """Return the names of the features; refuse missing and repeated columns."""
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise InputError(f"{path} has several columns named {shown(twice)}; rename all but one of them")
    known = set(names)
    missing = [
        name for name in (*([] if target is None else [target]), *(features or ()), *without) if name not in known
    ]
    if missing:
        many = f" and lacks {len(missing) - 1} more: {', '.join(missing[1:6])}" if len(missing) > 1 else ""
        raise InputError(f"{path} has no column {shown(missing[0])}{many}; {nearest(missing[0], names[:20], 'it has')}")
    chosen = [name for name in (names if features is None else features) if name != target and name not in without]
    if not chosen:
        raise InputError(f"{path} has no column of features beside {shown(target)}; give some")
    return chosen


def _csv(path: Path, target: str | None, features: Sequence[str] | None, without: Sequence[str]) -> Table:
    import pandas as pd

    try:
        with _unpacked(path) as file:
            line = file.readline(2**24).decode("utf-8-sig")
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"{path} is not a CSV file with a line of names ({_line(error)}); save it again") from None
    mark = next((mark for mark in ",;\t" if mark in line), ",")
    names = [name.strip() for name in next(csv.reader([line], delimiter=mark), [])]
    if not names:
        raise InputError(f"{path} is empty; give a file with a line of names and at least one row")
    if all(_is_number(name) for name in names):
        raise InputError(f"{path} begins with numbers, not names; add a first line with a name for every column")
    chosen = _chosen(path, names, target, features, without)
    options: dict[str, Any] = {"sep": mark, "header": 0, "names": names, "index_col": False, "low_memory": False}
    options |= {"encoding": "utf-8-sig", "skipinitialspace": True}
    if pd.__version__ < "3":  # later versions read numbers exactly by default
        options["float_precision"] = "round_trip"
    options["usecols"] = [*chosen, *([] if target is None else [target])]
    if target is not None:
        options["dtype"] = {target: str}

    def blocks() -> Iterator[Block]:
        rows = 0
        try:
            rows_at_once = max(1, BLOCK // len(names))
            with _unpacked(path) as file, pd.read_csv(file, chunksize=rows_at_once, **options) as reader:
                for frame in filter(len, reader):
                    yield _from_frame(path, frame, chosen, target, rows)
                    rows += len(frame)
        except (ValueError, OSError, EOFError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path} is not a whole CSV file ({_line(error)}); save it again") from None

    return Table(chosen, blocks())


def _unpacked(path: Path) -> IO[bytes]:
    """Open a file for reading bytes, decompressed if need be."""
    with open_regular(path) as file:
        start = file.read(6)
    opener: Any = next((opener for mark, opener in PACKERS.items() if start.startswith(mark)), open)
    opened: IO[bytes] = opener(path, "rb")
    return opened


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:150]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _from_frame(path: Path, frame: Any, chosen: list[str], target: str | None, before: int) -> Block:
    """Check a data frame and return it as a block."""
    for name in chosen:
        column = frame[name]
        if column.dtype.kind not in REAL:
            texts = column.dropna()
            bad = next((i for i in texts.index if not _is_number(str(texts[i]))), texts.index[0] if len(texts) else 0)
            raise InputError(
                f"{path}, row {before + frame.index.get_loc(bad) + 1}, column {name}: {shown(column[bad])} is not a "
                "number; turn categories into columns of 0 and 1 first, or leave the column out (--without)"
            )
    table = frame[chosen].to_numpy(dtype=np.float64)
    if found := flaw(table):
        (row, position), why = found
        what = "an empty cell" if np.isnan(table[row, position]) else "the value"
        raise InputError(f"{path}, row {before + row + 1}, column {chosen[position]}: {what} {why}")
    if target is None:
        return Block(table, None)
    values = frame[target]
    if values.isna().any():
        row = int(np.argmax(values.isna().to_numpy()))
        raise InputError(f"{path}, row {before + row + 1}, column {target}: it is empty; drop that row or fill it in")
    return Block(table, as_target(values.astype(str).to_numpy()))


def as_target(values: np.ndarray) -> np.ndarray:
    """Return labels as numbers if all of them are, otherwise as text.

    Examples
    --------
    >>> as_target(np.array(["1", "2.5"])).tolist(), as_target(np.array([" a", "1"])).tolist()
    ([1.0, 2.5], ['a', '1'])
    """
    if values.dtype.kind in REAL:
        return values.astype(np.float64)
    try:
        return values.astype(np.float64)
    except ValueError:
        return np.array([str(value).strip() for value in values])


def _parquet(path: Path, target: str | None, features: Sequence[str] | None, without: Sequence[str]) -> Table:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise InputError(f"reading {path} needs pyarrow: {how_to_install('parquet')}; or save it as CSV") from None
    try:
        file = ParquetFile(path)
    except (ArrowException, OSError) as error:
        raise InputError(f"{path} is not a Parquet file ({_line(error)}); save it again") from None
    names = [str(name) for name in file.schema_arrow.names]
    chosen = _chosen(path, names, target, features, without)
    wanted = [*chosen, *([] if target is None else [target])]

    def blocks() -> Iterator[Block]:
        rows = 0
        for batch in file.iter_batches(batch_size=max(1, BLOCK // len(names)), columns=wanted):
            frame = batch.to_pandas()
            yield _from_frame(path, frame, chosen, target, rows)
            rows += len(frame)

    return Table(chosen, blocks())


def _npz(path: Path, target: str | None, features: Sequence[str] | None, without: Sequence[str]) -> Table:
    matrix, labels = read(path)
    names = _archived_names(path, matrix.shape[1])
    chosen = _chosen(path, names, None, features, without)
    if chosen != names:
        matrix = matrix[:, [names.index(name) for name in chosen]]
    if found := flaw(matrix.data if hasattr(matrix, "indptr") else matrix):
        raise InputError(f"a feature in {path} {found[1]}")
    found_target = None if target is None else as_target(labels)
    if found_target is not None and found_target.dtype.kind == "f" and not np.isfinite(found_target).all():
        raise InputError(f"labels in {path} must be finite; drop the samples whose labels are not")
    return Table(chosen, iter([Block(matrix, found_target)]))


def _archived_names(path: Path, width: int) -> list[str]:
    with np.load(path, allow_pickle=False) as archive:
        if "names" not in archive:
            return [f"x{i}" for i in range(1, width + 1)]
        names = [str(name) for name in archive["names"].ravel()]
    if len(names) != width:
        raise InputError(f"{path} has {len(names)} names for {width} features; give one for each")
    return names


def _libsvm(path: Path, target: str | None, features: Sequence[str] | None, without: Sequence[str]) -> Table:
    if (features is not None and list(features) != [f"x{i}" for i in range(1, len(features) + 1)]) or without:
        raise InputError(f"{path} is LIBSVM text, whose features have no names; leave the names of columns out")
    width = None if features is None else len(features)

    def blocks() -> Iterator[Block]:
        for text in _pieces(path):
            matrix, labels = parse_libsvm(path, text, width)
            yield Block(matrix, None if target is None else labels)

    return Table(list(features or []), blocks())


def _pieces(path: Path) -> Iterator[bytes]:
    """Yield blocks of whole lines of a text file, decompressed if need be."""
    rest = b""
    try:
        with _unpacked(path) as file:
            while part := file.read(TEXT_BLOCK):
                whole, newline, rest = (rest + part).rpartition(b"\n")
                if whole.strip():
                    yield whole + newline
    except (OSError, EOFError) as error:
        raise InputError(f"{path} is cut short or damaged ({error}); fetch it again") from None
    if rest.strip():
        yield rest


def label_text(value: Any) -> str:
    """Return a label as text, a number in its shortest exact form.

    Examples
    --------
    >>> label_text(1.0), label_text(np.float64(0.1)), label_text("ill")
    ('1', '0.1', 'ill')
    """
    return format_exact(float(value)) if isinstance(value, int | float | np.number) else str(value)
