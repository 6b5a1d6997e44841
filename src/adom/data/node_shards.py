"""The shard of one node: its samples as plain arrays on the disk, with the names of their columns.

Each machine makes its shard from its own file, and no other machine sees it. A shard is a folder: ``shard.json`` with
names, counts and checksums, and NumPy arrays that are memory-mapped, so a shard may be larger than memory.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import Damaged, InputError, shown
from ..problems.limits import LARGEST_DIM
from ..util.checked_json import made_from, read_checked, write_checked
from ..util.files import named, reason
from .model import unnamed
from .sample_files import Table, label_text, open_table

NAME = "shard.json"
FORMAT = "adom-shard-2"
NODE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
ARRAYS = {
    "dense": {"features": "<f8", "target": "<f8"},
    "sparse": {"values": "<f8", "indices": "<i4", "starts": "<i8", "target": "<f8"},
}
"""Names and types of the arrays of a layout, each in its own file."""
AT_ONCE = 2**19
"""Numbers that are read at a time, 4 MB."""
MOST_LABELS = 1000
"""Maximum number of classes."""


@dataclass(frozen=True)
class Facts:
    """The content of ``shard.json``.

    Attributes
    ----------
    node : str
        Name of the node.
    columns : list of str, or int
        Names of the columns; their number if they are named x1, x2, ...
    target : str
    labels : list of str, optional
        Text labels, to which the target holds indices; None for a numeric target.
    layout : str
        "dense" or "sparse".
    samples, nonzeros : int
    files : dict
        SHA-256 of every array's file.
    """

    format: str
    node: str
    columns: list[str] | int
    target: str
    labels: list[str] | None
    layout: str
    samples: int
    nonzeros: int
    files: dict[str, str]

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.columns if isinstance(self.columns, int) else len(self.columns)

    @cached_property
    def features(self) -> list[str]:
        """Names of the columns."""
        return unnamed(self.columns) if isinstance(self.columns, int) else self.columns

    @property
    def fingerprint(self) -> str:
        """Digest of what must be the same on all nodes: columns, target, kind of target, and layout."""
        kind = "numbers" if self.labels is None else "text"
        content = json.dumps([self.columns, self.target, kind, self.layout])
        return hashlib.sha256(content.encode()).hexdigest()


class NodeShard(NamedTuple):
    """An open shard; arrays stay on the disk until they are used."""

    facts: Facts
    features: Any  # an array, or a scipy.sparse.csr_array
    target: np.ndarray  # numbers, or indices into `facts.labels`
    folder: Path
    stamp: tuple[tuple[int, int], ...]  # sizes and times of the files when they were opened

    @property
    def bytes(self) -> int:
        """Bytes of memory that the features would take."""
        dense = self.facts.layout == "dense"
        return 8 * self.facts.samples * self.facts.width if dense else 12 * self.facts.nonzeros

    def blocks(self) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield features and target in blocks of rows, read from the disk; a block is valid until the next one."""
        if _stamp(self.folder, self.facts) != self.stamp:
            raise InputError(f"{self.folder} was changed while it was in use; make the shard again, and start again")
        facts, width = self.facts, self.facts.width
        if facts.layout == "sparse":
            yield from self._sparse_blocks()
            return
        some = max(1, AT_ONCE // width)
        rows = np.empty((min(some, facts.samples), width))
        with (self.folder / "features.npy").open("rb") as file:
            file.seek(8 * facts.samples * width * -1, os.SEEK_END)
            for start in range(0, facts.samples, some):
                part = rows[: min(some, facts.samples - start)]
                file.readinto(part.reshape(-1).view(np.uint8).data)
                yield part, np.asarray(self.target[start : start + len(part)])

    def _sparse_blocks(self) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield blocks that have about as many non-zeros as a dense block has numbers."""
        from scipy.sparse import csr_array

        starts, end = np.asarray(self.features.indptr), self.facts.samples
        first = 0
        while first < end:
            stop = int(np.searchsorted(starts, starts[first] + AT_ONCE, side="right")) - 1
            stop = min(max(stop, first + 1), end)
            span = slice(int(starts[first]), int(starts[stop]))
            parts = (np.array(self.features.data[span]), np.array(self.features.indices[span]))
            pointers = starts[first : stop + 1] - starts[first]
            table = csr_array((*parts, pointers), shape=(stop - first, self.facts.width), copy=False)
            yield table, np.asarray(self.target[first:stop])
            first = stop

    def classes(self) -> list[Any]:
        """Return the distinct labels: numbers or strings."""
        values = np.unique(self.target)
        return values.tolist() if self.facts.labels is None else [self.facts.labels[int(code)] for code in values]


def write_shard(
    source: str | os.PathLike[str],
    node: str,
    out: str | os.PathLike[str] = "shards",
    *,
    target: str | None = None,
    features: Sequence[str] | None = None,
    without: Sequence[str] = (),
    dim: int | None = None,
    overwrite: bool = False,
) -> Path:
    r"""Make the shard of one node from a table, a block of rows at a time.

    Parameters
    ----------
    source : path
        A CSV, Parquet, NPZ or LIBSVM file (`adom.data.sample_files`).
    node : str
        Name of the node, unique among all machines.
    out : path
        Folder of shards; the shard becomes its subfolder `node`.
    target : str, optional
        Column to predict, numbers or text; by default the last. LIBSVM text and archives have their own labels.
    features, without : sequence of str
        Columns to take, or to leave out; by default all but the target are taken.
    dim : int, optional
        Number of features of a LIBSVM file, which may lack the last ones.
    overwrite : bool
        Whether a shard of that name may be replaced.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "north.csv")
    ...     _ = file.write_text("height,weight,ill\n1.5,40,no\n1.8,80,yes\n")
    ...     shard = open_shard(write_shard(file, "north", Path(folder, "shards")))
    ...     shard.facts.features, shard.facts.target, shard.classes(), shard.features.tolist()
    (['height', 'weight'], 'ill', ['no', 'yes'], [[1.5, 40.0], [1.8, 80.0]])
    """
    if not NODE.fullmatch(node):
        raise InputError(
            f"node must be a plain name of letters, digits, '.', '_' and '-', got {shown(node)}; e.g. north"
        )
    path, folder = Path(source), Path(out)
    place = folder / node
    if place.exists() and not overwrite:
        raise InputError(f"{place} is there already; name another node, or take overwrite=True (--overwrite)")
    table = open_table(path, -1 if target is None else target, features, without=without, dim=dim)
    return put_shard(path, table, node, folder)


def put_shard(source: Path, table: Table, node: str, folder: Path) -> Path:
    """Write the shard of a node whole, in place of an older one; `source` names the table in error messages."""
    place = folder / node
    with unfinished(folder, f".{node[:30]}.") as partial:
        facts = _write_arrays(source, table, partial, node)
        write_checked(partial / NAME, asdict(facts))
        partial.chmod(0o755)
        old = folder / f".{node}.old"
        if place.exists():
            shutil.rmtree(old, ignore_errors=True)
            place.rename(old)
        partial.rename(place)
        shutil.rmtree(old, ignore_errors=True)
    return place


@contextmanager
def unfinished(folder: Path, prefix: str) -> Iterator[Path]:
    """Yield a new folder within another, to be filled and moved into place; what is left of it is removed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=prefix, ignore_cleanup_errors=True) as partial:
            yield Path(partial)
    except OSError as error:
        raise InputError(f"cannot write to {named(folder)}: {reason(error)}; choose another place") from None


class _Column:
    """Converter of labels to numbers, block by block: numbers stay, each distinct text gets an index."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.codes: dict[str, int] | None = None
        self.rows = 0

    def numbers(self, values: np.ndarray) -> np.ndarray:
        """Return a block of labels as numbers."""
        if self.rows == 0 and values.dtype.kind == "U":
            self.codes = {}
        self.rows += len(values)
        if self.codes is None:
            if values.dtype.kind == "U":
                raise InputError(
                    f"{self.path}, column {self.name}: {shown(str(values[0]))} after numbers; name all classes alike"
                )
            if not np.isfinite(values).all():
                raise InputError(f"{self.path}, column {self.name}: a label is not finite; drop that row or fill it in")
            return values.astype(np.float64)
        texts = [label_text(value) for value in values]
        for text in texts:
            self.codes.setdefault(text, len(self.codes))
        if len(self.codes) > MOST_LABELS:
            raise InputError(
                f"{self.path}, column {self.name} has more than {MOST_LABELS} different texts; is it the target?"
            )
        return np.array([self.codes[text] for text in texts], dtype=np.float64)


def _write_arrays(path: Path, table: Table, folder: Path, node: str) -> Facts:
    """Write the arrays of a shard; return its facts."""
    column, nonzeros, width = _Column(path, table.target), 0, 0
    files: dict[str, _Growing] = {}
    try:
        for features, labels in table.blocks:
            sparse = hasattr(features, "indptr")
            if not files:
                types = ARRAYS["sparse" if sparse else "dense"]
                files = {key: _Growing(folder / f"{key}.npy", dtype) for key, dtype in types.items()}
                if sparse:
                    files["starts"].add(np.zeros(1, dtype=np.int64))
            if sparse:
                files["values"].add(features.data)
                files["indices"].add(features.indices)
                files["starts"].add(nonzeros + features.indptr[1:].astype(np.int64))
                nonzeros += int(features.nnz)
            else:
                files["features"].add(features)
                nonzeros += int(np.count_nonzero(features))
            width = max(width, features.shape[1])
            files["target"].add(column.numbers(np.asarray(labels)))
        if not column.rows:
            raise InputError(f"{path} has no rows; a node needs one at least: leave it out")
        digests = {f"{key}.npy": file.finish() for key, file in files.items()}
    finally:
        if isinstance(table.blocks, Generator):
            table.blocks.close()  # and with it the file that it reads
        for file in files.values():
            file.file.close()
    return Facts(
        format=FORMAT,
        node=node,
        columns=table.names if table.names and table.names != unnamed(width) else width,
        target=table.target,
        labels=None if column.codes is None else list(column.codes),
        layout="sparse" if "values" in files else "dense",
        samples=column.rows,
        nonzeros=nonzeros,
        files=digests,
    )


class _Growing:
    """A .npy file written in blocks of rows; its header has a fixed length and is rewritten at the end."""

    def __init__(self, path: Path, dtype: str) -> None:
        self.dtype, self.rows, self.columns = np.dtype(dtype), 0, ()
        self.file = path.open("w+b")

    def _header(self) -> None:
        self.file.seek(0)
        about = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.rows, *self.columns)}
        np.lib.format.write_array_header_1_0(self.file, about)

    def add(self, block: np.ndarray) -> None:
        """Append rows."""
        if not self.rows:
            self.columns = block.shape[1:]
            self._header()
        self.rows += len(block)
        self.file.write(np.ascontiguousarray(block, dtype=self.dtype).data)

    def finish(self) -> str:
        """Write the header; return the SHA-256 of the file."""
        length = self.file.tell()
        self._header()
        assert self.file.tell() % 64 == 0
        self.file.flush()
        assert os.fstat(self.file.fileno()).st_size == length
        os.fsync(self.file.fileno())
        self.file.seek(0)
        return hashlib.file_digest(self.file, "sha256").hexdigest()


def _stamp(place: Path, facts: Facts) -> tuple[tuple[int, int], ...]:
    """Return size and modification time of each file of a shard; skip missing files."""
    found = []
    for name in facts.files:
        with suppress(OSError):
            status = (place / name).stat()
            found.append((status.st_size, status.st_mtime_ns))
    return tuple(found)


def shard_names(folder: Path) -> list[str]:
    """Return the sorted names of the shards in a folder."""
    try:
        return sorted(path.parent.name for path in folder.glob(f"*/{NAME}") if not path.parent.name.startswith("."))
    except OSError:
        return []


def read_facts(place: Path) -> Facts:
    """Read and check the ``shard.json`` of a shard."""
    try:
        facts = made_from(read_checked(place / NAME), Facts)
        listed = {f"{key}.npy" for key in ARRAYS.get(facts.layout, ())}
        if facts.format != FORMAT or facts.files.keys() != listed or facts.node != place.name:
            raise Damaged("its fields contradict one another")
        if len(set(facts.features)) < facts.width:
            raise Damaged("it names a column twice")
        return facts
    except Damaged as error:
        raise InputError(f"{place} is not a whole shard ({error}); make it again with `adom shard`") from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {named(place / NAME)}: {reason(error)}; make it with `adom shard`") from None


def open_shard(place: str | os.PathLike[str], reading: Callable[[Path], object] = lambda path: None) -> NodeShard:
    """Open a shard: verify the checksums of its arrays and memory-map them.

    `reading` is called with every file before it is read.
    """
    place = Path(place)
    facts = read_facts(place)
    arrays, stamp = {}, _stamp(place, facts)
    for name, digest in facts.files.items():
        path = place / name
        reading(path)
        try:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found == digest:
                arrays[name.removesuffix(".npy")] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read {named(path)}: {reason(error)}; make the shard again") from None
        if found != digest:
            raise InputError(f"{path} was changed after `adom shard` made it; make the shard of {facts.node} again")
    features = _features(facts, arrays)
    if features.shape != (facts.samples, facts.width) or arrays["target"].shape != (facts.samples,):
        raise InputError(f"{place} is not a whole shard (its arrays do not fit together); make it again")
    return NodeShard(facts, features, arrays["target"], place, stamp)


def _features(facts: Facts, arrays: dict[str, np.ndarray]) -> Any:
    if facts.layout == "dense":
        return arrays["features"]
    from scipy.sparse import csr_array

    starts = arrays["starts"].astype(np.int32 if facts.nonzeros <= LARGEST_DIM else np.int64)  # as narrow as indices
    parts = (arrays["values"], arrays["indices"], starts)
    return csr_array(parts, shape=(facts.samples, facts.width), copy=False)
