"""Files of samples, read whole or a block of rows at a time: CSV, Parquet, LIBSVM and NumPy archives.

This is the one reader of files of samples, with one set of rules. Only NumPy archives are loaded as a whole; other
tables may be larger than memory. Features must be finite numbers. Text in them is refused, since only the owner of the
data can say how categories become numbers. Nothing is unpickled.
"""

import csv
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, how_to_install, nearest, shown
from ..problems.limits import LARGEST_DIM, REAL, flaw, memory
from ..util.checked_npz import unpack
from ..util.checks import check_whole
from ..util.files import content as file_content
from ..util.files import named, open_regular, reason
from ..util.text import format_exact
from .text_files import SUFFIXES, Piece, is_number, join, libsvm_piece, pieces

BLOCK = 2**21
"""Numbers in a block of a Parquet file, about 16 MB."""
ARCHIVE = b"PK\x03\x04"
SAVE = "save one with numpy.savez(path, features=..., labels=...)"
MISSING = ("", "#N/A", "#NA", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
"""Spellings of a missing label."""
REMEDY = "map it to one (categories to columns of 0 and 1), fill it in, drop that sample, or leave the column out"


class Block(NamedTuple):
    """Some rows of a table."""

    features: Any  # an array, or a scipy.sparse.csr_array
    target: np.ndarray | None  # numbers, or text


class Table(NamedTuple):
    """An open table: the names of its features and its target, and its blocks, which can be read once."""

    names: list[str]  # [] if the file does not name its features
    target: str
    blocks: Iterator[Block]


class _Wanted(NamedTuple):
    """What to read from a table."""

    target: str | int | None
    features: Sequence[str] | None
    without: Sequence[str]
    dim: int | None
    plain: bool

    @property
    def width(self) -> int | None:
        """Number of features, if it is known."""
        return self.dim if self.features is None else len(self.features)

    def check_width(self, path: Path, width: int) -> None:
        """Refuse another number of features than asked for."""
        if self.dim not in (None, width):
            raise InputError(f"{path} has {width} features beside the label, not {self.dim}; leave that number out")


def open_table(
    path: str | os.PathLike[str],
    target: str | int | None = None,
    features: Sequence[str] | None = None,
    *,
    without: Sequence[str] = (),
    dim: int | None = None,
    plain: bool = False,
) -> Table:
    r"""Open a table.

    Parameters
    ----------
    path : path
        A Parquet file (needs pyarrow); a NumPy archive with ``features``, ``labels`` and optionally ``names`` (or ``X``
        and ``y``; or the arrays of `scipy.sparse.save_npz`, and labels); a CSV file with a line of names; or LIBSVM
        text: ``label index:value index:value ...`` with increasing indices from 1, whose features are named x1, x2,
        ...; a ``#`` begins a comment. CSV and LIBSVM files may be compressed by bzip2, gzip or xz.
    target : str or int, optional
        The column to predict: its name, or its number from 0; -1 is the last. In LIBSVM text and archives the labels
        have no name, so anything selects them. None leaves the target out.
    features : sequence of str, optional
        The columns to take, in this order; by default all but the target.
    without : sequence of str
        Columns to leave out.
    dim : int, optional
        Number of features. LIBSVM text may lack the last ones; in other files the number must be exact.
    plain : bool
        Whether a CSV file may begin with numbers instead of names; its labels must then be numbers too.

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
    file, wanted = Path(path), _Wanted(target, features, without, dim, plain)
    try:
        with open_regular(file) as opened:
            start = opened.read(len(ARCHIVE))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {named(file)}: {reason(error)}; check the path and its permissions") from None
    if not start:
        raise InputError(f"{file} is empty; give a file with at least one sample")
    kind = next((s.lower() for s in reversed(file.suffixes) if s.lower() not in SUFFIXES), "")
    if start == ARCHIVE or kind == ".npz":
        return _npz(file, start, wanted)
    if kind == ".parquet":
        return _parquet(file, wanted)
    parts = pieces(file, whole=plain, quoted=kind == ".csv")
    first = next((part for part in parts if part.text.strip()), None)
    if first is None:
        raise InputError(f"{file} is empty; give a file with at least one sample")
    if _is_csv(kind, first.text):
        parts = parts if kind == ".csv" else pieces(file, whole=plain, quoted=True)
        return _csv(file, chain([first], parts) if kind == ".csv" else parts, wanted)
    return _libsvm(file, chain([first], parts), wanted)


def read(
    path: str | os.PathLike[str], *, label: str | int | None = None, features: int | None = None
) -> tuple[Any, np.ndarray]:
    r"""Read all labelled samples of a file.

    Parameters
    ----------
    path : path
        As for `open_table`, but the first line of a CSV file may be samples, names, or column numbers and names.
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
    if features is not None:
        check_whole("features", features, remedy="leave it out to count them")
    table = open_table(path, -1 if label is None else label, dim=features, plain=True)
    blocks = [(block, labels) for block, labels in table.blocks if labels is not None]
    if not blocks:
        raise InputError(f"{path} holds no samples; give a file with at least one")
    if len(blocks) > 1 or hasattr(blocks[0][0], "indptr"):
        return join(Path(path), blocks, features)
    return blocks[0]


def feature_names(path: str | os.PathLike[str], label: str | int | None = None) -> list[str] | None:
    """Return the names of the features in a file; None if it does not name them."""
    return open_table(path, -1 if label is None else label, plain=True).names or None


def _is_csv(kind: str, content: bytes) -> bool:
    """Return whether text is CSV, by the suffix, or by the first line if the suffix is .txt or missing."""
    if kind in ("", ".txt"):
        first = content.lstrip()[:65536].splitlines()[:1]
        return bool(first) and b"," in first[0] and b":" not in first[0]
    return kind == ".csv"


def _chosen(path: Path, names: list[str], wanted: _Wanted, target: str | None) -> list[str]:
    """Return the names of the features; refuse missing and repeated columns."""
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise InputError(f"{path} has several columns named {shown(twice)}; rename all but one of them")
    features, known = wanted.features, set(names)
    asked = (*([] if target is None else [target]), *(features or ()), *wanted.without)
    missing = [name for name in asked if name not in known]
    if missing:
        many = f" and lacks {len(missing) - 1} more: {', '.join(missing[1:6])}" if len(missing) > 1 else ""
        raise InputError(f"{path} has no column {shown(missing[0])}{many}; {nearest(missing[0], names[:20], 'it has')}")
    chosen = [
        name for name in (names if features is None else features) if name != target and name not in wanted.without
    ]
    if not chosen:
        raise InputError(f"{path} has no column of features beside {shown(target)}; give some")
    wanted.check_width(path, len(chosen))
    return chosen


def _target_name(path: Path, target: str | int | None, names: list[str]) -> str | None:
    """Return the name of the column to predict, given by name or number; one that is missing stays as it is."""
    if target is None or target in names:
        return None if target is None else str(target)
    try:
        number = int(target)
    except ValueError:
        return str(target)
    if not -len(names) <= number < len(names):
        raise InputError(f"{path} has no column {number}; columns count from 0 to {len(names) - 1}")
    return names[number]


class _Sheet(NamedTuple):
    """The form of a CSV file: all its columns, and those to read."""

    path: Path
    mark: str  # between cells
    names: list[str]
    named: bool
    columns: list[int]
    target: int | None
    plain: bool


def _csv(path: Path, parts: Iterator[Piece], wanted: _Wanted) -> Table:
    start, text = 1, ""
    for part in parts:
        start, text = part.first, _decoded(path, part)
        if text.strip():
            break
    first_line = text.lstrip().partition("\n")[0]
    mark = next((mark for mark in ",;\t" if mark in first_line), ",")
    stream = io.StringIO(text, newline="")
    line, first = next(_rows(path, stream, mark, start), (start, []))
    if not first:
        raise InputError(f"{path} holds no samples, only separators; give a file with at least one")
    given = {name for name in (wanted.target, *(wanted.features or ())) if isinstance(name, str)}
    has_names = _is_header(first, given)
    if has_names:
        start, text = line + 1, stream.read()
    elif not wanted.plain:
        raise InputError(f"{path} begins with numbers, not names; add a first line with a name for every column")
    names = first if has_names else [f"column {number}" for number in range(1, len(first) + 1)]
    target = _target_name(path, wanted.target, names)
    if not has_names and target is not None and target not in names:
        raise InputError(f"{path} has no column {shown(target)}; it has no line of names: give the column's number")
    chosen = _chosen(path, names, wanted, target)
    place = {name: column for column, name in enumerate(names)}
    columns = [place[name] for name in chosen]
    sheet = _Sheet(path, mark, names, has_names, columns, None if target is None else place[target], wanted.plain)
    rest = ((part.first, _decoded(path, part)) for part in parts)
    blocks = (_csv_block(sheet, *part) for part in chain([(start, text)], rest))
    return Table(chosen if has_names else [], target or "label", (block for block in blocks if block is not None))


def _decoded(path: Path, part: Piece) -> str:
    try:
        return part.text.decode("utf-8")
    except UnicodeDecodeError as error:
        line = part.first + part.text[: error.start].count(b"\n")
        raise InputError(f"{path}, line {line}: not UTF-8 text; save the file as UTF-8") from None


def _rows(path: Path, stream: io.StringIO, mark: str, start: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the stripped cells of each line that is not empty."""
    reader = csv.reader(stream, delimiter=mark, strict=True)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield start + reader.line_num - 1, cells
    except csv.Error as error:
        raise InputError(f"{path}, line {start + reader.line_num - 1}: {error}; repair the quotes") from None


def _is_header(cells: list[str], given: set[str]) -> bool:
    """Return whether a line is a header: any number in it is its column's own, or it has a name that was given."""
    numbers = {column: cell for column, cell in enumerate(cells) if is_number(cell)}
    if len(numbers) == len(cells):
        return False
    return all(cell == str(column) for column, cell in numbers.items()) or not given.isdisjoint(cells)


def _csv_block(sheet: _Sheet, start: int, text: str) -> Block | None:
    """Parse some lines of a CSV file; return None if they hold nothing."""
    nothing, width = f"{sheet.mark}\"' \t\r\n", len(sheet.names)
    if '"' in text:
        rows = _rows(sheet.path, io.StringIO(text, newline=""), sheet.mark, start)
        counts = [len(cells) for _, cells in rows]
    else:
        lines = (line for line in io.StringIO(text, newline="") if line.strip(nothing))
        counts = [line.count(sheet.mark) + 1 for line in lines]
    if not counts:
        return None
    if min(counts) != width or max(counts) != width:
        _check_cells(sheet, start, text)

    def table(columns: list[int], dtype: Any) -> np.ndarray:
        lines = (line for line in io.StringIO(text, newline="") if line.strip(nothing))
        rules: dict[str, Any] = {"delimiter": sheet.mark, "quotechar": '"', "comments": None, "ndmin": 2}
        found: np.ndarray = np.loadtxt(lines, usecols=columns, dtype=dtype, **rules)
        return found

    try:
        if sheet.target is None:
            features, target = table(sheet.columns, np.float64), None
        else:
            try:
                both = table([*sheet.columns, sheet.target], np.float64)
                features, target = np.ascontiguousarray(both[:, :-1]), both[:, -1].copy()
            except ValueError:
                if sheet.plain:
                    raise
                texts = table([sheet.target], str)[:, 0]
                features, target = table(sheet.columns, np.float64), as_target(np.char.strip(texts))
    except ValueError as error:
        _check_cells(sheet, start, text)
        raise InputError(
            f"{sheet.path} is not a table of numbers ({' '.join(str(error).split())[:150]}); fix it"
        ) from None
    odd = target is not None and (np.isin(target, MISSING).any() if target.dtype.kind == "U" else flaw(target))
    if odd or flaw(features):
        _check_cells(sheet, start, text)
    return Block(features, target)


def _check_cells(sheet: _Sheet, start: int, text: str) -> None:
    """Refuse the first line of another width, a cell that is not a number in range, or an empty label."""
    path, width = sheet.path, len(sheet.names)
    for line, cells in _rows(path, io.StringIO(text, newline=""), sheet.mark, start):
        if len(cells) != width:
            raise InputError(f"{path}, line {line}: {len(cells)} columns, but {width} in the first line; fix it")
        numbers = {*sheet.columns, *([sheet.target] if sheet.plain and sheet.target is not None else [])}
        column = next((column for column in sorted(numbers) if not is_number(cells[column])), None)
        if column is not None:
            name = f" ({sheet.names[column]})" if sheet.named else ""
            place = f"{path}, line {line}, column {column + 1}{name}"
            raise InputError(f"{place}: {shown(cells[column])} is not a finite number; {REMEDY}")
        if found := flaw(np.array([float(cells[column]) for column in sheet.columns])):
            (position,), why = found
            raise InputError(f"{path}, line {line}, column {sheet.names[sheet.columns[position]]}: the value {why}")
        if sheet.target is not None and cells[sheet.target] in MISSING:
            name = sheet.names[sheet.target]
            raise InputError(f"{path}, line {line}, column {name}: it is empty; drop that row or fill it in")


def as_target(values: np.ndarray) -> np.ndarray:
    """Return labels as numbers if all of them are, otherwise as text.

    Examples
    --------
    >>> as_target(np.array(["1", "2.5"])).tolist(), as_target(np.array([" a", "1"])).tolist()
    ([1.0, 2.5], ['a', '1'])
    >>> as_target(np.array(["1_0", "2"])).tolist()
    ['1_0', '2']
    """
    if values.dtype.kind in REAL:
        return values.astype(np.float64)
    with suppress(ValueError):
        if not (np.char.find(values.astype(str), "_") >= 0).any():
            return values.astype(np.float64)
    return np.array([str(value).strip() for value in values])


def _parquet(path: Path, wanted: _Wanted) -> Table:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise InputError(f"reading {path} needs pyarrow: {how_to_install('parquet')}; or save it as CSV") from None
    try:
        file = ParquetFile(path)
    except (ArrowException, OSError) as error:
        why = " ".join(str(error).split())[:150]
        raise InputError(f"{path} is not a Parquet file ({why}); save it again") from None
    names = [str(name) for name in file.schema_arrow.names]
    target = _target_name(path, wanted.target, names)
    chosen = _chosen(path, names, wanted, target)

    def blocks() -> Iterator[Block]:
        rows = 0
        columns = [*chosen, *([] if target is None else [target])]
        for batch in file.iter_batches(batch_size=max(1, BLOCK // len(names)), columns=columns):
            frame = batch.to_pandas()
            yield _from_frame(path, frame, chosen, target, rows)
            rows += len(frame)

    return Table(chosen, target or "label", blocks())


def _from_frame(path: Path, frame: Any, chosen: list[str], target: str | None, before: int) -> Block:
    """Check a data frame and return it as a block."""
    for name in chosen:
        column = frame[name]
        if column.dtype.kind not in REAL:
            texts = [(row, str(value)) for row, value in enumerate(column) if value is not None]
            row, bad = next((each for each in texts if not is_number(each[1])), texts[0] if texts else (0, ""))
            raise InputError(
                f"{path}, row {before + row + 1}, column {name}: {shown(bad)} is not a finite number; {REMEDY}"
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


def _npz(path: Path, start: bytes, wanted: _Wanted) -> Table:
    if start != ARCHIVE:
        raise InputError(f"{path} is not a NumPy archive; {SAVE}")
    matrix, labels, names = _arrays(path)
    width = matrix.shape[1]
    known = [f"x{i}" for i in range(1, width + 1)] if names is None else names
    if len(known) != width:
        raise InputError(f"{path} has {len(known)} names for {width} features; give one for each")
    chosen = _chosen(path, known, wanted, None)
    if chosen != known:
        place = {name: column for column, name in enumerate(known)}
        matrix = matrix[:, [place[name] for name in chosen]]
    if found := flaw(matrix.data if hasattr(matrix, "indptr") else matrix):
        raise InputError(f"a feature in {path} {found[1]}")
    target = None if wanted.target is None else as_target(labels)
    if target is not None and target.dtype.kind == "f" and not np.isfinite(target).all():
        raise InputError(f"labels in {path} must be finite; drop the samples whose labels are not")
    return Table(chosen if names or wanted.features else [], _name(path, wanted), iter([Block(matrix, target)]))


def _name(path: Path, wanted: _Wanted) -> str:
    """Return a name for labels without one."""
    if wanted.plain and wanted.target != -1:
        raise InputError(f"label={wanted.target!r} names a column, and {path} has none by name; leave it out")
    return wanted.target if isinstance(wanted.target, str) else "label"


def _arrays(path: Path) -> tuple[Any, np.ndarray, list[str] | None]:
    """Return the features and labels in an archive, and the names of the features if it has any."""
    content = file_content(path, "check the path and its permissions")
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
    names = arrays["names"].ravel().tolist() if "names" in arrays else None
    return matrix.astype(np.float64), labels, None if names is None else [str(name) for name in names]


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


def _libsvm(path: Path, parts: Iterator[Piece], wanted: _Wanted) -> Table:
    names = wanted.features
    if (names is not None and list(names) != [f"x{i}" for i in range(1, len(names) + 1)]) or wanted.without:
        raise InputError(f"{path} is LIBSVM text, whose features have no names; leave the names of columns out")

    def blocks() -> Iterator[Block]:
        for part in parts:
            matrix, labels = libsvm_piece(path, part, wanted.width)
            if found := flaw(matrix.data):
                raise InputError(f"a feature in {path} {found[1]}")
            if len(labels):
                yield Block(matrix, None if wanted.target is None else labels)

    return Table(list(names or []), _name(path, wanted), blocks())


def label_text(value: Any) -> str:
    """Return a label as text, a number in its shortest exact form.

    Examples
    --------
    >>> label_text(1.0), label_text(np.float64(0.1)), label_text("ill")
    ('1', '0.1', 'ill')
    """
    return format_exact(float(value)) if isinstance(value, int | float | np.number) else str(value)
