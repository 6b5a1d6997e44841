"""Checkpoints of a run over several ranks: every rank writes its block, and any number of ranks can go on from them.

A generation is a folder named after its iteration, with one file a rank: the SHA-256 of what follows, a line of JSON
about the run, and a NumPy archive. Files are written under another name and moved into place. A generation counts only
if the files of all its ranks are there and whole; the two latest are kept, so that one which is damaged, or was cut
short by a kill, leaves the one before it.
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
from typing import Any

import numpy as np

from ..errors import InputError
from ..files import atomic
from .blocks import Blocks

FORMAT = "adom-checkpoint-2"
KEPT = 2
ROWS = "rows/"
"""What the names of arrays begin with that have one row a node."""
GENERATION = re.compile(r"iteration-(\d{12})")
FILE = re.compile(r"rank-(\d+)-of-(\d+)\.ckpt")


@dataclass(frozen=True)
class Checkpoints:
    """Where and how often to write checkpoints, and whether to go on from them.

    Attributes
    ----------
    folder : path
        Of this run alone; on several machines it must be one that all of them see.
    every_rounds : int, optional
    every_seconds : float, optional
        By default every 60 seconds where no number of rounds is given.
    resume : bool
        Whether to go on from the latest whole generation; without one it starts from the beginning.
    """

    folder: str | os.PathLike[str]
    every_rounds: int | None = None
    every_seconds: float | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        for name in ("every_rounds", "every_seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise InputError(f"{name} of checkpoints must be positive, got {value!r}; leave it out for a minute")

    @property
    def path(self) -> Path:
        """The folder."""
        return Path(self.folder)

    @property
    def seconds(self) -> float:
        """Seconds from one checkpoint to the next; infinite where rounds are counted alone."""
        if self.every_seconds is not None:
            return self.every_seconds
        return 60.0 if self.every_rounds is None else float("inf")


def write(
    folder: Path, iteration: int, rank: int, blocks: Blocks, arrays: Mapping[str, np.ndarray], about: Any
) -> None:
    """Write one rank's file of a generation; arrays whose names begin with `ROWS` have one row a node of it."""
    archive = io.BytesIO()
    np.savez(archive, allow_pickle=False, **arrays)
    header = {"format": FORMAT, "iteration": iteration, "rows": blocks.of(rank), "nodes": blocks.nodes, "about": about}
    content = json.dumps(header).encode() + b"\n" + archive.getvalue()
    target = folder / f"iteration-{iteration:012d}" / f"rank-{rank}-of-{blocks.ranks}.ckpt"
    with atomic(target) as partial, partial.open("wb") as file:
        file.write(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def forget(folder: Path, kept: int = KEPT) -> None:
    """Remove all generations but the latest, and what a kill has left half-written in them."""
    for _, old in generations(folder)[kept:]:
        shutil.rmtree(old, ignore_errors=True)


def forget_after(generation: Path | None, folder: Path) -> None:
    """Remove the generations after one, which are not whole; all of them where there is none."""
    for _, path in generations(folder):
        if path == generation:
            return
        shutil.rmtree(path, ignore_errors=True)


def generations(folder: Path) -> list[tuple[int, Path]]:
    """Return all generations of a folder, whole or not, the latest first."""
    if not folder.is_dir():
        return []
    found = [(int(match[1]), path) for path in folder.iterdir() if (match := GENERATION.fullmatch(path.name))]
    return sorted(found, reverse=True)


def latest(folder: Path, say: Callable[[str], None]) -> Path | None:
    """Return the latest generation that is whole, saying which ones are not and why; None if there is none."""
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
    """Return the files of a generation in the order of ranks; those of one number of ranks, all of them."""
    ranked: dict[int, dict[int, Path]] = {}
    for path in generation.iterdir():
        match = FILE.fullmatch(path.name)
        if match:
            ranked.setdefault(int(match[2]), {})[int(match[1])] = path
    for ranks, found in sorted(ranked.items()):
        if len(found) == ranks:
            return [found[rank] for rank in range(ranks)]
    there = ", ".join(f"{len(found)} of {ranks}" for ranks, found in ranked.items()) or "none"
    raise InputError(f"checkpoint {generation} is not complete: {there} of its files are there")


def complete(generation: Path) -> bool:
    """Return whether all files of a generation are there, whole or not; a kill while it was written leaves fewer."""
    try:
        return bool(files(generation))
    except InputError:
        return False


def check(generation: Path) -> None:
    """Refuse a generation that is not whole."""
    end = nodes = 0
    for path in files(generation):
        header, _ = _read(path)
        first, nodes = header["rows"][0], header["nodes"]
        if first != end:
            raise InputError(f"checkpoint {path} begins at node {first}, not at {end}: files are mixed up")
        end = header["rows"][1]
    if end != nodes:
        raise InputError(f"checkpoint {generation} ends at node {end - 1} of {nodes}: files are mixed up")


def read(generation: Path, first: int, end: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays of some nodes, and what was written about the run; opens no more files than they are in."""
    parts: list[dict[str, np.ndarray]] = []
    about: dict[str, Any] = {}
    for path in files(generation):
        low, high = _header(path)["rows"]
        if low < end and high > first:
            header, archive = _read(path)
            about, within = header["about"], slice(max(first, low) - low, min(end, high) - low)
            parts.append({name: a[within] if name.startswith(ROWS) else a for name, a in archive.items()})
    names = [name for name in parts[0] if all(name in part for part in parts)]
    joined = {
        name: np.concatenate([part[name] for part in parts]) if name.startswith(ROWS) else parts[0][name]
        for name in names
    }
    return joined, about


def of_rank_0(generation: Path) -> dict[str, np.ndarray]:
    """Return the arrays that rank 0 wrote."""
    return _read(files(generation)[0])[1]


def _header(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            file.readline()
            return dict(json.loads(file.readline()))
    except OSError as error:
        raise InputError(f"cannot read checkpoint {path}: {error.strerror}") from None
    except (ValueError, TypeError) as error:
        raise InputError(f"checkpoint {path} is damaged ({error})") from None


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a file, after its checksum was looked at."""
    try:
        written, _, content = path.read_bytes().partition(b"\n")
    except OSError as error:
        raise InputError(f"cannot read checkpoint {path}: {error.strerror}") from None
    if hashlib.sha256(content).hexdigest().encode() != written:
        raise InputError(f"checkpoint {path} is damaged: it was cut short or changed, its SHA-256 does not fit")
    line, _, archive = content.partition(b"\n")
    header = json.loads(line)
    if header.get("format") != FORMAT:
        raise InputError(f"checkpoint {path} has format {header.get('format')!r}, not {FORMAT}")
    with np.load(io.BytesIO(archive), allow_pickle=False) as arrays:
        return header, {name: arrays[name] for name in arrays.files}
