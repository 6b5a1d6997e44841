"""Checkpoints of a run over ranks: every rank writes its block, and any number of ranks can resume from them.

A generation is a folder named after its iteration, with one sealed NumPy archive per rank, which holds a header besides
its arrays. A generation counts only if the files of all its ranks are there, whole and of the same run. The two latest
are kept, in case the latest is damaged or cut short.

One job at a time may write to a folder of checkpoints, on one or several machines. The file system's own lock (flock)
ends with its process, so a killed job leaves no lock behind. Some network file systems have no such lock, or one that
other machines do not see. So the holder also writes its name into the file, and a sign of life every two seconds. A job
that finds the name of another one, and no lock that tells, watches for these signs.
"""

import errno
import json
import os
import re
import secrets
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...errors import Damaged, InputError
from ...util.checked_json import made_from
from ...util.checked_npz import read_npz, write_npz
from ..recorder import COLUMNS, Recorder
from .peers import RankError, Ranks, at_rank_0, rank_errors
from .rank_rounds import Partition

if TYPE_CHECKING:
    from .rank_backend import RankBackend

try:
    import fcntl
except ImportError:  # Windows: the signs of life must suffice
    fcntl = None  # type: ignore[assignment]  # asked for before each use

FORMAT = "adom-checkpoint-3"
KEPT = 2
ROWS = "rows/"
"""Prefix of arrays with one row per node."""
GENERATION = re.compile(r"iteration-([0-9]{12})")
FILE = re.compile(r"rank-([0-9]+)-of-([0-9]+)\.npz")
LOCK = ".lock"
LOCK_SIZE = 512
BEAT = 2.0
"""Seconds from one sign of life to the next."""
LOOK = 3.5 * BEAT
"""Seconds to watch for another job's sign of life."""
SETTLE = 0.3
"""Seconds after which the later of two names written at once has replaced the other."""


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


@dataclass(frozen=True)
class Facts:
    """What the files of all ranks say of a run, besides its arrays."""

    settings: dict[str, Any]
    clock: int
    floats: int
    seconds: float
    look: int | None  # the round of the next look at whether to stop
    pilot: str = ""  # the state of parameters="auto" besides its arrays, as JSON


@dataclass(frozen=True)
class Header:
    """What is said in a file of a rank."""

    iteration: int
    rows: list[int]  # the first, and the one after the last
    nodes: int
    about: Facts
    format: str = FORMAT


def write(
    folder: Path, iteration: int, rank: int, partition: Partition, arrays: Mapping[str, np.ndarray], about: Facts
) -> None:
    """Write one rank's file of a generation; arrays whose names begin with `ROWS` have one row per node."""
    header = Header(iteration, list(partition.of(rank)), partition.nodes, about)
    target = generation(folder, iteration) / f"rank-{rank}-of-{partition.ranks}.npz"
    write_npz(target, arrays, asdict(header), packed=False)


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
    first: Facts | None = None
    for path in files(generation):
        about = replace(_read(path)[0].about, seconds=0.0)  # each rank's own
        if first is not None and about != first:
            raise InputError(f"checkpoint {path} is of another run than the files beside it")
        first = about


def read(generation: Path, first: int, end: int) -> tuple[dict[str, np.ndarray], Facts]:
    """Return the arrays of some nodes and the facts about the run; only files that hold these nodes are read."""
    parts: list[dict[str, np.ndarray]] = []
    paths = files(generation)
    header = _read(paths[0])[0]
    partition = Partition(header.nodes, len(paths))
    for rank, path in enumerate(paths):
        low, high = partition.of(rank)
        if low < end and high > first:
            header, archive = _read(path)
            within = slice(max(first, low) - low, min(end, high) - low)
            parts.append({name: a[within] if name.startswith(ROWS) else a for name, a in archive.items()})
    try:
        names = [name for name in parts[0] if all(name in part for part in parts)]
        joined = {
            name: np.concatenate([part[name] for part in parts]) if name.startswith(ROWS) else parts[0][name]
            for name in names
        }
    except (ValueError, IndexError) as error:
        raise InputError(f"checkpoint {generation} has parts that do not fit together: {error}") from None
    return joined, header.about


def of_rank_0(generation: Path) -> dict[str, np.ndarray]:
    """Return the arrays that rank 0 wrote."""
    return _read(files(generation)[0])[1]


def _read(path: Path) -> tuple[Header, dict[str, np.ndarray]]:
    """Return the header and the arrays of a file whose checksum fits."""
    try:
        arrays, about = read_npz(path)
        header = made_from(about, Header)
        _check_header(path, header, arrays)
    except OSError as error:
        raise InputError(f"cannot read checkpoint {path}: {error.strerror}") from None
    except Damaged as error:
        raise InputError(f"checkpoint {path} is damaged: {error}") from None
    return header, arrays


def _check_header(path: Path, header: Header, arrays: dict[str, np.ndarray]) -> None:
    """Refuse a file whose header contradicts its name, its arrays or itself."""
    match = FILE.fullmatch(path.name)
    if header.format != FORMAT or match is None:
        raise Damaged(f"its format is {header.format!r}, not {FORMAT}")
    rank, ranks, nodes = int(match[1]), int(match[2]), header.nodes
    if not 0 <= rank < ranks <= nodes < 2**40:
        raise Damaged(f"rank {rank} of {ranks} has no part of {nodes} nodes")
    first, end = Partition(nodes, ranks).of(rank)
    if header.rows != [first, end] or path.parent != generation(path.parent.parent, header.iteration):
        raise Damaged("it is the file of another rank or another iteration")
    for name, array in arrays.items():
        if name.startswith(ROWS) and (array.ndim == 0 or len(array) != end - first):
            raise Damaged(f"{name} has shape {array.shape}, not one row for each of its {end - first} nodes")


@contextmanager
def locked(world: Ranks, kept: Checkpoints | None) -> Iterator[None]:
    """Lock the folder of checkpoints for this job."""
    if kept is None:
        yield
        return
    with ExitStack() as holding:

        def take() -> int:
            holding.enter_context(FolderLock(kept.path))
            if generations(kept.path) and not kept.resume:
                raise InputError(
                    f"{kept.path} holds checkpoints of an earlier run; go on from them (--resume), "
                    "or take another folder"
                )
            return 0

        with world.busy(f"looking into {kept.path}"):
            at_rank_0(world, take)
        yield


def resume(world: Ranks, backend: "RankBackend", recorder: Recorder, kept: Checkpoints | None) -> int:
    """Resume from the latest whole checkpoint, if there is one; return its iteration, else 0."""
    if kept is None:
        return 0
    with world.busy(f"looking for checkpoints in {kept.path}"):
        iteration = at_rank_0(world, lambda: _start(kept))
    if iteration < 0:
        return 0
    recorder.seconds = restore(backend, generation(kept.path, iteration))
    return iteration


def _start(kept: Checkpoints) -> int:
    """Return the iteration to resume from; -1 if there is none."""
    all_generations = generations(kept.path)
    chosen = latest(kept.path, lambda words: print(f"adom: {words}", file=sys.stderr, flush=True))
    if chosen is None and any(complete(path) for _, path in all_generations):  # damaged, not just unfinished
        raise InputError(f"no checkpoint in {kept.path} is whole; remove the folder to start afresh")
    forget_after(chosen, kept.path)
    if chosen is None:
        if kept.resume:
            print(f"adom: no checkpoint in {kept.path}: starting from the beginning", file=sys.stderr, flush=True)
        return -1
    iteration = int(chosen.name.rpartition("-")[2])
    print(f"adom: going on from iteration {iteration} ({chosen})", file=sys.stderr, flush=True)
    return iteration


def save(run: "RankBackend", seconds: float) -> None:
    """Write this rank's part of a checkpoint; when all ranks have, remove older generations."""
    kept, world = run.task.checkpoints, run.world
    assert kept is not None
    arrays = {"rows/x": run.x, "rows/data": run.digests}
    for number, leaf in enumerate(run.numbers):
        array = np.asarray(leaf)
        arrays[f"rows/{number}" if array.ndim else f"one/{number}"] = array
    if world.rank == 0:
        arrays["one/table"] = run.history.table
        if run.history.first is not None:
            arrays["one/first"] = np.asarray(run.history.first)
    task, floats = run.task, int(run.session.carry.floats)
    look, pilot = None if task.stop is None else task.stop.next, json.dumps(task.pilot.facts) if task.pilot else ""
    about = Facts(task.settings, run.clock, floats, seconds, look, pilot)
    with rank_errors(), world.busy(f"writing a checkpoint to {kept.path}"):
        write(kept.path, run.iteration, world.rank, world.partition, arrays, about)
    world.meet()  # nothing older is removed before all have written
    if world.rank == 0:
        forget(kept.path)


def restore(run: "RankBackend", generation: Path) -> float:
    """Resume from a checkpoint written by any number of ranks; return the seconds spent before."""
    task, world = run.task, run.world
    first, end = world.partition.of(world.rank)
    with rank_errors(), world.busy(f"reading {generation}"):
        arrays, about = read(generation, first, end)
    _compare_settings(about.settings, task.settings, generation)
    _compare_data(run, arrays, generation)
    if about.clock > task.plan.rounds:
        raise InputError(
            f"{generation} is at round {about.clock}, beyond the budget of rounds={task.plan.rounds}; "
            "give more rounds, or another folder to start afresh"
        )
    numbers = [
        _array(arrays, f"rows/{number}" if leaf.ndim else f"one/{number}", np.asarray(leaf), generation)
        for number, leaf in enumerate(run.numbers)
    ]
    iteration = int(generation.name.rpartition("-")[2])
    found = run.go_on((iteration, about.clock, about.floats), _array(arrays, "rows/x", run.x, generation), numbers)
    if task.pilot is not None:
        try:
            task.pilot.recall(found, json.loads(about.pilot))
        except (KeyError, TypeError, ValueError) as error:
            raise RankError(f"{generation} has no valid state of parameters='auto' ({error!r}); remove it") from None
    if task.stop is not None and about.look is not None:
        task.stop.next = about.look
    if world.rank == 0:
        known = of_rank_0(generation)
        table = known.get("one/table", np.empty(0))
        if table.ndim != 2 or table.shape[1] != len(COLUMNS) or table.dtype != np.float64:
            raise RankError(f"{generation} has no table of {len(COLUMNS)} columns; remove it to use the one before")
        run.history.tables = [table] if len(table) else []
        run.history.first = float(known["one/first"]) if "one/first" in known else None
    return about.seconds


def _compare_data(run: "RankBackend", arrays: dict[str, np.ndarray], generation: Path) -> None:
    """Refuse, on all ranks, data that differs at any node."""
    now = run.digests
    differs = (_array(arrays, "rows/data", now, generation) != now).any(axis=1)
    parts = run.world.collect(differs.astype(np.float64)[None])

    def check() -> int:
        assert parts is not None
        nodes = np.flatnonzero(np.concatenate(parts, axis=1)[0])
        if nodes.size:
            raise InputError(
                f"{generation.parent} was written with other data of node {nodes[0]}; "
                "give the same data to go on, or another folder to start afresh"
            )
        return 0

    at_rank_0(run.world, check)


def _compare_settings(before: dict[str, Any], now: dict[str, Any], generation: Path) -> None:
    """Refuse to resume with other settings."""
    now = json.loads(json.dumps(now))
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            raise InputError(
                f"{generation.parent} was written with {name} = {before.get(name)!r}, now it is {now.get(name)!r}; "
                "give the same settings to go on, or another folder to start afresh"
            )


def _array(arrays: dict[str, np.ndarray], name: str, like: np.ndarray, generation: Path) -> np.ndarray:
    """Return an array of a checkpoint; refuse one with another shape or type than `like`."""
    array = arrays.get(name)
    fits = array is not None and array.shape == like.shape and array.dtype.kind in "fiub"
    if array is None or not fits or (array.ndim and array.dtype != like.dtype):
        kind = "nothing" if array is None else f"{array.dtype} of shape {array.shape}"
        raise RankError(f"{generation} has {kind} as {name}, not {like.dtype} of shape {like.shape}; remove it")
    return array


class FolderLock:
    """A lock on a folder, held within a with-block; raises InputError if another job holds it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / LOCK
        self._me = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
            "token": secrets.token_hex(8),
        }
        self._over = threading.Event()

    def __enter__(self) -> Self:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file, locked = self._open()
            before = _holder(self.path)
            if before and self._lives(before, locked):
                os.close(self._file)
                raise self._refusal(before)
            self._write(0)
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror}; choose another place") from None
        if before or not locked:  # another job may have done the same at the same time
            time.sleep(SETTLE)
            now = _holder(self.path)
            if now.get("token") != self._me["token"]:
                os.close(self._file)
                raise self._refusal(now)
        threading.Thread(target=self._beat, name="adom-lock", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        with suppress(OSError):
            if _same(self._file, self.path):
                self.path.unlink()
        os.close(self._file)

    def _open(self) -> tuple[int, bool]:
        """Return the lock's file, and whether the file system has locked it."""
        while True:
            number = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            locked = False
            try:
                if fcntl is not None:
                    fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    locked = True
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.EACCES):
                    os.close(number)
                    raise self._refusal(_holder(self.path)) from None
            if _same(number, self.path):  # not one that its holder has just removed
                return number, locked
            os.close(number)

    def _lives(self, holder: dict[str, Any], locked: bool) -> bool:
        """Return whether the process that a lock names is alive."""
        if locked and holder.get("host") == self._me["host"]:
            return False  # or it would hold the file system's lock
        print(
            f"adom: {self.folder} is marked as in use by {_name(holder)}; checking for {LOOK:g} s whether it still is",
            file=sys.stderr,
            flush=True,
        )
        end = time.monotonic() + LOOK
        while time.monotonic() < end:
            time.sleep(LOOK / 20)
            now = _holder(self.path)  # reopened: network file systems refresh only then
            if now and now != holder:
                return True
        return False

    def _refusal(self, holder: dict[str, Any]) -> InputError:
        return InputError(
            f"{self.folder} is in use by {_name(holder)}; wait until it has ended, or take another folder"
        )

    def _write(self, beat: int) -> None:
        # Of fixed length, so that nobody reads half of it.
        text = json.dumps({**self._me, "beat": beat}).encode().ljust(LOCK_SIZE)
        os.ftruncate(self._file, LOCK_SIZE)
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, text)
        os.fsync(self._file)

    def _beat(self) -> None:
        beat = 0
        while not self._over.wait(BEAT):
            beat += 1
            with suppress(OSError):
                self._write(beat)


def _holder(path: Path) -> dict[str, Any]:
    """Return the holder that a lock names; {} if it names none."""
    try:
        holder = json.loads(path.read_bytes()[:LOCK_SIZE])
    except (OSError, ValueError, RecursionError):
        return {}
    return holder if isinstance(holder, dict) else {}


def _name(holder: dict[str, Any]) -> str:
    if not holder:
        return "another job"
    return f"process {holder.get('pid')} on {holder.get('host')} (since {holder.get('since')})"


def _same(number: int, path: Path) -> bool:
    """Return whether an open file still has that name."""
    try:
        return os.path.samestat(os.fstat(number), path.stat())
    except OSError:
        return False
