"""Many jobs, done by worker processes even if one of them dies; what is finished is kept.

A job has a `key`, a digest of everything that determines it. In the folder ``results``, ``KEY.npz`` holds its run, or
``KEY.json`` other data that it leaves or the reason why it cannot run. Files are written whole or not at all, so a job
with a valid file is done, and the same call again goes on where it was ended.
"""

import itertools
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from ..dynamics.endings import FINISHED
from ..errors import Damaged, InputError
from ..run.result import Result, load
from ..util.checked_json import read_checked, write_checked
from ..util.files import kind, reason
from ..util.text import format_duration

ONE_THREAD = dict.fromkeys(("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment of a process with one core; NPROC sets the number of XLA's threads."""
EIGEN = "--xla_cpu_multi_thread_eigen=false"
FORGET = 20
"""Units after which a process drops its compiled programs; later units have other shapes, and memory would fill up."""
TELL_SECONDS = 15.0
"""Seconds between lines of progress if there is no terminal."""
AGAIN = "the same call makes it again"


@dataclass(frozen=True)
class Outcome:
    """Outcome of a job."""

    job: Any
    result: Result | None = None  # None if the job leaves data or `reason` is set
    reason: str = ""  # why there is no result: missing data set, not yet run, refused
    data: Mapping[str, Any] | None = None
    refused: bool = False  # by its method or its budget; it is not tried again
    damaged: str = ""  # error of a damaged file, which counts as missing

    @property
    def to_do(self) -> bool:
        """Whether the job is still to be done: it has no run and no data, and was not refused."""
        return self.result is None and self.data is None and not self.refused


@dataclass
class WorkUnit:
    """Jobs that one process does in one go, or a page that it draws."""

    jobs: list[Any] = field(default_factory=list)
    page: Any = None
    needs: set[str] = field(default_factory=set)  # keys of jobs that must be done first
    cost: float = 0.0  # estimated seconds


def execute(
    jobs: Sequence[Any],
    folder: Path,
    do: Callable[[Any, Path], None],
    read: Callable[[Any], Outcome],
    *,
    shared: Callable[[Any], Hashable],
    seconds: Callable[[Any], float],
    needs: Callable[[Any], set[str]] = lambda job: set(),
    pages: Mapping[Any, set[str]] | None = None,
    draw: Callable[[Any, Path], None] | None = None,
    notes: Iterable[str] = (),
    workers: int | None = None,
    progress: bool | None = None,
    name: str = "",
) -> tuple[list[Outcome], dict[str, str]]:
    """Do those jobs that have no outcome yet.

    Parameters
    ----------
    jobs : sequence
        Each has a `key`.
    folder : path
    do : callable
        Called in a process as ``do(job, folder)``; it writes the job's file, see `keep_run` and `keep_data`. It must be
        a function of a module, or a `functools.partial` of one.
    read : callable
        Returns the outcome of a job, see `read_outcome`.
    shared : callable
        Returns what a job shares with others, such as data or programs: these are done together, by one process.
    seconds : callable
        Returns the estimated seconds that a job takes on one core.
    needs : callable
        Returns the keys of jobs that must be done before a job.
    pages : dict, optional
        What is to be drawn -> the keys of the jobs that it shows.
    draw : callable, optional
        Called in a process as ``draw(page, folder)``.
    notes : iterable of str
        Lines to print at the start.
    workers : int, optional
        Processes of one thread each; by default one per core. A GPU is used only if the environment asks for it
        (``JAX_PLATFORMS=cuda``), by default by a single process.
    progress : bool, optional
        Show a bar, by default on a terminal; otherwise print a line from time to time.
    name : str
        What the bar is called.

    Returns
    -------
    list of Outcome
        In the order of the jobs.
    dict
        Key of a job that could not be done -> how its process ended.
    """
    results = folder / "results"
    results.mkdir(parents=True, exist_ok=True)
    for partial in results.glob(".*.tmp"):
        partial.unlink(missing_ok=True)
    outcomes = [read(job) for job in jobs]
    costs = {outcome.job.key: seconds(outcome.job) for outcome in outcomes if outcome.to_do}
    units = work_units([outcome.job for outcome in outcomes if outcome.to_do], shared, costs, needs)
    units += [WorkUnit(page=page, needs=keys & costs.keys()) for page, keys in (pages or {}).items()]
    runner = Runner(folder, workers or default_workers(), do, draw, gpu_wanted())
    before = len(jobs) - len(costs)
    with JobProgress(costs, before, runner.workers, progress, name) as bar:
        for line in notes:
            bar.say(line)
        for outcome in outcomes:
            if outcome.damaged:  # a job with a file would count as done
                bar.say(f"redoing a damaged result: {outcome.damaged}")
                for suffix in ("json", "npz"):
                    with suppress(OSError):
                        (results / f"{outcome.job.key}.{suffix}").unlink(missing_ok=True)
        try:
            runner.run(units, bar.tell)
        except KeyboardInterrupt:
            bar.say(f"{before + bar.count} of {len(jobs)} runs are kept in {folder}; the same command goes on")
            raise
    return [read(outcome.job) if outcome.to_do else outcome for outcome in outcomes], runner.lost


def work_units(
    jobs: Sequence[Any],
    shared: Callable[[Any], Hashable],
    costs: Mapping[str, float],
    needs: Callable[[Any], set[str]],
) -> list[WorkUnit]:
    """Group jobs by what they share; those that others need come first, then the longest."""
    keys = {job.key for job in jobs}
    units: dict[Any, WorkUnit] = {}
    for job in jobs:
        unit = units.setdefault(shared(job), WorkUnit())
        unit.jobs.append(job)
        unit.cost += costs[job.key]
        unit.needs |= needs(job) & keys
    needed = set[str]().union(*(unit.needs for unit in units.values()))
    return sorted(units.values(), key=lambda unit: (needed.isdisjoint(job.key for job in unit.jobs), -unit.cost))


def keep_run(job: Any, folder: Path, result: Result, records: int, provenance: Mapping[str, Any]) -> None:
    """Save a job's run with at most about `records` of its records; one that was interrupted is not kept."""
    if result.status not in FINISHED:
        raise KeyboardInterrupt
    kept = replace(result, history=thinned(result.columns, records), provenance={**result.provenance, **provenance})
    kept.save(folder / "results" / f"{job.key}.npz")


def keep_data(job: Any, folder: Path, data: Mapping[str, Any]) -> None:
    """Save the data that a job leaves, or {"reason": why it cannot run}."""
    write_checked(folder / "results" / f"{job.key}.json", dict(data))


def thinned(columns: Any, records: int) -> Any:
    """Return a table with at most `records` + 1 of its records, evenly spread."""
    count = len(columns["iteration"])
    if count <= records + 1:
        return columns
    chosen = np.linspace(0, count - 1, records).astype(int)
    return {name: column[chosen] for name, column in columns.items()}


def read_outcome(
    job: Any, folder: str | os.PathLike[str], place: str, check: Callable[[Any, Any], None] | None = None
) -> Outcome:
    """Return the outcome of a job; a damaged file counts as missing, and the outcome says so.

    Parameters
    ----------
    job, folder
    place : str
        Name of the entry of a run's provenance that holds the job's key.
    check : callable, optional
        Called as ``check(job, data)`` with the data of a job that leaves some; raises ValueError, LookupError or
        TypeError if they are not whole. Without it, jobs leave runs only.
    """
    results, damaged = Path(folder) / "results", ""
    try:
        if kind(path := results / f"{job.key}.json") != "nothing":
            return _read_data(job, path, check)
    except InputError as error:
        damaged = str(error)
    try:
        if kind(path := results / f"{job.key}.npz") != "nothing":
            return Outcome(job, _read_run(job, path, place))
    except InputError as error:
        damaged = damaged or str(error)
    if damaged:
        told = damaged.replace(f"{results}{os.sep}", "")  # the file's name only: the text goes into tables and pages
        return Outcome(job, reason=f"not whole: {told}", damaged=damaged)
    return Outcome(job, reason="not run yet")


def _read_data(job: Any, path: Path, check: Callable[[Any, Any], None] | None) -> Outcome:
    """Read the data that a job left, or the reason why there is no run."""
    try:
        data = read_checked(path)
        if "reason" in data:
            return Outcome(job, reason=str(data["reason"]), refused=True)
        if check is None:
            raise Damaged("it holds no reason")
        check(job, data)
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason(error)}; {AGAIN}") from None
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(f"{path} is not a valid result of a job ({error}); {AGAIN}") from None
    return Outcome(job, data=data)


def _read_run(job: Any, path: Path, place: str) -> Result:
    """Read the result of a job's run."""
    result = load(path)
    key = (result.provenance.get(place) or {}).get("key")
    whole = result.measure == "error" and len(result.history) and result.provenance.get("start_error") is not None
    if key != job.key or not whole:
        raise InputError(f"{path} does not hold the run named in its file name; {AGAIN}")
    return result


def default_workers() -> int:
    """Return the default number of processes: one per core, or one for a GPU."""
    if gpu_wanted():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpu_wanted() -> bool:
    """Return whether the environment asks JAX for a platform other than the CPU."""
    platforms = os.environ.get("JAX_PLATFORMS", "")
    return bool(platforms) and not platforms.startswith("cpu")


class Runner:
    """Does units of work in worker processes.

    If one process dies, all are ended. Their unfinished units are then done one at a time; a job whose process dies
    again is given up.

    Parameters
    ----------
    folder : path
    workers : int
    do, draw : callable
        As for `execute`.
    gpu : bool
        Whether the processes share a GPU; otherwise each has one core.
    """

    def __init__(
        self,
        folder: Path,
        workers: int,
        do: Callable[[Any, Path], None],
        draw: Callable[[Any, Path], None] | None = None,
        gpu: bool = False,
    ) -> None:
        self.folder, self.workers, self.do, self.draw, self.gpu = folder, workers, do, draw, gpu
        self.lost: dict[str, str] = {}
        """Key of a job that could not be done -> how its process ended."""

    def run(self, units: Sequence[WorkUnit], tell: Callable[[set[str]], None] = lambda done: None) -> None:
        """Do all units, in order where their needs allow; `tell` receives the keys of finished jobs."""
        waiting, suspects = list(units), list[WorkUnit]()
        while waiting or suspects:
            alone = bool(suspects)
            chosen = [suspects.pop(0)] if alone else waiting
            running: dict[Future[None], WorkUnit] = {}
            with self._processes(1 if alone else self.workers) as (executor, log):
                if alone:
                    _check_start(executor)
                try:
                    self._work_off(executor, chosen, running, tell)
                except BrokenProcessPool:
                    for unit in running.values():
                        if alone:
                            self._give_up(unit, f"ended abruptly{_last_line(log)}")
                        suspects += self._left(unit)
                    suspects += chosen if alone else []  # not started yet
        tell(self._done())

    def _work_off(
        self,
        executor: ProcessPoolExecutor,
        waiting: list[WorkUnit],
        running: dict[Future[None], WorkUnit],
        tell: Callable[[set[str]], None],
    ) -> None:
        while waiting or running:
            done = self._done()
            tell(done)
            ready = [unit for unit in waiting if unit.needs <= done | self.lost.keys()]
            if not ready and not running:  # a needed job left no file; the unit itself reports that
                ready = waiting[:1]
            for unit in ready[: self.workers - len(running)]:
                running[self._submit(executor, unit)] = unit  # raises if a process has died since
                waiting.remove(unit)
            ended, _ = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)  # the time limit lets Ctrl-C in
            for future in ended:
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    raise error
                unit = running.pop(future)
                if error is not None:
                    self._give_up(unit, f"{type(error).__name__}: {error}", error)
                    waiting += self._left(unit)

    def _submit(self, executor: ProcessPoolExecutor, unit: WorkUnit) -> "Future[None]":
        # New processes inherit the signal mask, so that Ctrl-C reaches only this one.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return executor.submit(_do_unit, unit, self.folder, self.do, self.draw)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _done(self) -> set[str]:
        """Return the keys of the jobs that have a file."""
        return {path.stem for path in (self.folder / "results").iterdir()}

    def _left(self, unit: WorkUnit) -> list[WorkUnit]:
        """Return a list with the unfinished part of a unit; empty if all is done."""
        settled = self._done() | self.lost.keys()
        jobs = [job for job in unit.jobs if job.key not in settled]
        return [replace(unit, jobs=jobs)] if jobs or unit.page is not None else []

    def _give_up(self, unit: WorkUnit, words: str, error: BaseException | None = None) -> None:
        """Give up the job that a unit was doing; raise RuntimeError if it was drawing."""
        if unit.page is not None:
            raise RuntimeError(f"a process died while drawing {unit.page}: {words}") from error
        for left in self._left(unit):
            self.lost[left.jobs[0].key] = words

    @contextmanager
    def _processes(self, count: int) -> Iterator[tuple[ProcessPoolExecutor, IO[str]]]:
        """Start processes that end with this block, and with this process even if it is killed."""
        context = get_context("spawn")
        ear, lifeline = context.Pipe(duplex=False)
        with tempfile.NamedTemporaryFile("w+") as log, _environment(self.gpu):
            executor = ProcessPoolExecutor(count, context, _begin, (ear, log.name))
            try:
                yield executor, log
            finally:
                lifeline.close()
                executor.shutdown(cancel_futures=True)
                ear.close()


def _do_unit(
    unit: WorkUnit,
    folder: Path,
    do: Callable[[Any, Path], None],
    draw: Callable[[Any, Path], None] | None,
) -> None:
    """Do the jobs of a unit, or draw its page."""
    for job in unit.jobs:
        do(job, folder)
    if unit.page is not None and draw is not None:
        draw(unit.page, folder)
    if next(_UNITS) % FORGET == 0:
        import jax

        jax.clear_caches()


_UNITS = itertools.count(1)
"""Counter of the units that this process does."""


def _begin(ear: Connection, log: str) -> None:
    """Initialize a process: stderr goes to a file, and a thread ends it when the parent's end of the pipe closes."""
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), 2)
    threading.Thread(target=_end_with, args=(ear,), daemon=True).start()


def _end_with(ear: Connection) -> None:
    with suppress(EOFError, OSError):
        ear.recv()
    os._exit(0)


def _check_start(executor: ProcessPoolExecutor) -> None:
    """Raise RuntimeError if processes cannot even start."""
    try:
        executor.submit(int).result()
    except BrokenProcessPool:
        raise RuntimeError(
            "processes die as soon as they start; in a script, call it under `if __name__ == '__main__':`"
        ) from None


def _last_line(log: IO[str]) -> str:
    log.seek(0)
    lines = [line.strip() for line in log if line.strip()]
    return f"; {lines[-1]}" if lines else ", as it does when memory runs out"


@contextmanager
def _environment(gpu: bool) -> Iterator[None]:
    """Set the environment in which processes start."""
    before = dict(os.environ)
    if gpu:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or the first process takes all memory
    else:
        flags = f"{before.get('XLA_FLAGS', '')} {EIGEN}".strip()
        os.environ.update(ONE_THREAD, XLA_FLAGS=flags, JAX_PLATFORMS="cpu")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class JobProgress:
    """Shows how many jobs are done and how much time is left: a bar on a terminal, elsewhere a line now and then.

    `costs` maps the keys of pending jobs to estimated seconds; `before` is the number of jobs done already.
    """

    def __init__(self, costs: dict[str, float], before: int, workers: int, show: bool | None, name: str) -> None:
        self.name = name
        self.costs, self.before, self.workers = costs, before, workers
        self.total, self.paid, self.count = sum(costs.values()), 0.0, 0
        self.show = sys.stderr.isatty() if show is None else show
        self.began = self._printed = time.perf_counter()
        self._bar: Any = None

    def __enter__(self) -> Self:
        if self.show:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            columns = (TextColumn(self.name), BarColumn(), TextColumn("{task.fields[note]}"))
            self._bar = Progress(*columns, console=Console(stderr=True, force_terminal=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=self.total or 1.0, note=self._note())
        elif self.costs:
            self.say(self._note())
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def say(self, text: str) -> None:
        """Print a line on stderr, above the bar if there is one."""
        if self._bar is not None:
            self._bar.console.print(f"adom: {text}", markup=False, highlight=False)
        else:
            print(f"adom: {text}", file=sys.stderr, flush=True)

    def tell(self, done: set[str]) -> None:
        """Show the jobs that are done, by their keys."""
        now = self.costs.keys() & done
        self.count, self.paid = len(now), sum(self.costs[key] for key in now)
        if self._bar is not None:
            self._bar.update(self._task, completed=self.paid, note=self._note())
        elif time.perf_counter() - self._printed > TELL_SECONDS:
            self._printed = time.perf_counter()
            self.say(self._note())

    def _note(self) -> str:
        done, of = self.before + self.count, self.before + len(self.costs)
        return f"{done} of {of} runs, {format_duration(self.left())} left"

    def left(self) -> float:
        """Return the estimated seconds left: from the estimates at first, then from the pace."""
        elapsed = time.perf_counter() - self.began
        guess = self.total / self.workers
        pace = (elapsed + 0.1 * guess) / (self.paid + 0.1 * self.total) if self.total else 0.0
        return max(0.0, pace * (self.total - self.paid))
