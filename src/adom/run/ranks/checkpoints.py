"""Checkpoints of a run over ranks: every rank writes its block, and any number of ranks can resume from them.

A generation is a folder named after its iteration, with one file per rank: the SHA-256 of the rest, a line of JSON, and
a NumPy archive. Files are written under another name and moved into place. A generation counts only if the files of all
its ranks are there, whole and of the same run. The two latest are kept, in case the latest is damaged or cut short.
"""

import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from ...errors import InputError
from ...util.checked_json import MOST_TEXT, Damaged, read_json
from ...util.checked_npz import unpack
from ...util.files import atomic, open_regular
from .partition import Partition

FORMAT = "adom-checkpoint-2"
"""The earlier format, without digests of the data."""
KEPT = 2
ROWS = "rows/"
"""Prefix of arrays with one row per node."""
GENERATION = re.compile(r"iteration-([0-9]{12})")
FILE = re.compile(r"rank-([0-9]+)-of-([0-9]+)\.ckpt")
DIGEST = 64
ABOUT = {"settings": dict, "clock": int, "floats": int, "seconds": float, "look": int | None}
"""Facts about a run besides its arrays, and their types."""


@dataclass(frozen=True)
class Checkpoints:
    """Folder and frequency of checkpoints, and whether to resume from them.

    Attributes
    ----------
    folder : path
        Used by this run alone, and visible to all its machines.
    every_rounds : int, optional
    every_seconds : float, optional
        By default 60 if `every_rounds` is not given.
    resume : bool
        Whether to resume from the latest whole generation; without one the run starts from the beginning.
    """

    folder: str | os.PathLike[str]
    every_rounds: int | None = None
    every_seconds: float | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        for name in ("every_rounds", "every_seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise InputError(
                    f"{name} of checkpoints must be positive, got {value!r}; leave it out for one every minute"
                )

    @property
    def path(self) -> Path:
        """The folder."""
        return Path(self.folder)

    @property
    def seconds(self) -> float:
        """Seconds between checkpoints; infinite if only rounds are counted."""
        if self.every_seconds is not None:
            return self.every_seconds
        return 60.0 if self.every_rounds is None else float("inf")


def write(
    folder: Path, iteration: int, rank: int, partition: Partition, arrays: Mapping[str, np.ndarray], about: Any
) -> None:
    """Write one rank's file of a generation; arrays whose names begin with `ROWS` have one row per node."""
    archive = io.BytesIO()
    np.savez(archive, allow_pickle=False, **arrays)
    header = {
        "format": FORMAT,
        "iteration": iteration,
        "rows": partition.of(rank),
        "nodes": partition.nodes,
        "about": about,
    }
    content = json.dumps(header).encode() + b"\n" + archive.getvalue()
    target = generation(folder, iteration) / f"rank-{rank}-of-{partition.ranks}.ckpt"
    with atomic(target) as partial, partial.open("wb") as file:
        file.write(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def generation(folder: Path, iteration: int) -> Path:
    """Return the folder of a generation."""
    return folder / f"iteration-{iteration:012d}"


def forget(folder: Path, kept: int = KEPT) -> None:
    """Remove all generations but the latest `kept`."""
    for _, old in generations(folder)[kept:]:
        shutil.rmtree(old, ignore_errors=True)


def forget_after(generation: Path | None, folder: Path) -> None:
    """Remove the generations after `generation`, which are not whole; all of them if it is None."""
    for _, path in generations(folder):
        if path == generation:
            return
        shutil.rmtree(path, ignore_errors=True)


def generations(folder: Path) -> list[tuple[int, Path]]:
    """Return all generations of a folder, whole or not, the latest first."""
    if not folder.is_dir():
        return []
    named = [(GENERATION.fullmatch(path.name), path) for path in folder.iterdir()]
    return sorted(((int(match[1]), path) for match, path in named if match and path.is_dir()), reverse=True)


def latest(folder: Path, say: Callable[[str], None]) -> Path | None:
    """Return the latest whole generation, or None; `say` reports which later ones are not whole and why."""
    for number, (_, path) in enumerate(generations(folder)):
        try:
            check(path)
        except InputError as error:
            older = len(generations(folder)) > number + 1
            say(f"{error}; {'the generation before it is tried' if older else 'no older generation is left'}")
            continue
        return path
    return None


def files(generation: Path) -> list[Path]:
    """Return the files of a generation in the order of ranks; refuse one that lacks some."""
    ranked: dict[int, dict[int, Path]] = {}
    for path in generation.iterdir():
        match = FILE.fullmatch(path.name)
        if match:
            ranked.setdefault(int(match[2]), {})[int(match[1])] = path
    for ranks, paths in sorted(ranked.items()):
        if len(paths) == ranks:
            return [paths[rank] for rank in range(ranks)]
    counts = ", ".join(f"{len(paths)} of {ranks}" for ranks, paths in ranked.items()) or "none"
    raise InputError(f"checkpoint {generation} is not complete: {counts} of its files are there")


def complete(generation: Path) -> bool:
    """Return whether all files of a generation are there, whole or not; a job killed while writing leaves fewer."""
    try:
        return bool(files(generation))
    except InputError:
        return False


def check(generation: Path) -> None:
    """Refuse a generation that is not whole."""
    first: dict[str, Any] | None = None
    for path in files(generation):
        about = _read(path)[0]["about"]
        same = {name: about.get(name) for name in ("settings", "clock", "floats", "look", "pilot")}
        if first is not None and same != first:
            raise InputError(f"checkpoint {path} is of another run than the files beside it")
        first = same


def read(generation: Path, first: int, end: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays of some nodes and the facts about the run; only files that hold these nodes are read."""
    parts: list[dict[str, np.ndarray]] = []
    about: dict[str, Any] = {}
    paths = files(generation)
    partition = Partition(_read(paths[0])[0]["nodes"], len(paths))
    for rank, path in enumerate(paths):
        low, high = partition.of(rank)
        if low < end and high > first:
            header, archive = _read(path)
            about, within = header["about"], slice(max(first, low) - low, min(end, high) - low)
            parts.append({name: a[within] if name.startswith(ROWS) else a for name, a in archive.items()})
    try:
        names = [name for name in parts[0] if all(name in part for part in parts)]
        joined = {
            name: np.concatenate([part[name] for part in parts]) if name.startswith(ROWS) else parts[0][name]
            for name in names
        }
    except (ValueError, IndexError) as error:
        raise InputError(f"checkpoint {generation} has parts that do not fit together: {error}") from None
    return joined, about


def of_rank_0(generation: Path) -> dict[str, np.ndarray]:
    """Return the arrays that rank 0 wrote."""
    return _read(files(generation)[0])[1]


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a file whose checksum fits."""
    try:
        with open_regular(path) as file:
            if file.read(DIGEST + 1) != _digest(file) + b"\n":
                raise Damaged("it was cut short or changed, its SHA-256 does not match")
            file.seek(DIGEST + 1)
            header = read_json(file.readline(MOST_TEXT + 1))
            arrays = unpack(file)
        _check_header(path, header, arrays)
    except OSError as error:
        raise InputError(f"cannot read checkpoint {path}: {error.strerror}") from None
    except Damaged as error:
        raise InputError(f"checkpoint {path} is damaged: {error}") from None
    return header, arrays


def _digest(file: IO[bytes]) -> bytes:
    """Return the SHA-256 of all that follows the first line."""
    file.seek(DIGEST + 1)
    return hashlib.file_digest(file, "sha256").hexdigest().encode()  # type: ignore[arg-type]  # a file opened to read


def _check_header(path: Path, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Refuse a file whose header contradicts its name, its arrays or itself."""
    if header.get("format") != FORMAT:
        raise Damaged(f"its format is {header.get('format')!r}, not {FORMAT}")
    about, match = header.get("about"), FILE.fullmatch(path.name)
    nodes: Any = header.get("nodes")
    iteration: Any = header.get("iteration")
    if not isinstance(about, dict) or match is None or not (_whole(nodes) and _whole(iteration)):
        raise Damaged("its header is not one of a checkpoint")
    for name, kind in ABOUT.items():
        if name not in about or not isinstance(about[name], kind):
            raise Damaged(f"its header says {name} = {about.get(name)!r}")
    rank, ranks = int(match[1]), int(match[2])
    if not 0 <= rank < ranks <= nodes:
        raise Damaged(f"rank {rank} of {ranks} has no part of {nodes} nodes")
    rows = list(Partition(nodes, ranks).of(rank))
    if header.get("rows") != rows or path.parent != generation(path.parent.parent, iteration):
        raise Damaged("it is the file of another rank or another iteration")
    for name, array in arrays.items():
        if name.startswith(ROWS) and (array.ndim == 0 or len(array) != rows[1] - rows[0]):
            raise Damaged(f"{name} has shape {array.shape}, not one row for each of its {rows[1] - rows[0]} nodes")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**40
