"""Worker processes that do the jobs of a reproduction, even if one of them dies."""

import itertools
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..run.calls.tuning import Stages

ONE_THREAD = dict.fromkeys(("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment of a process with one core; NPROC sets the number of XLA's threads."""
EIGEN = "--xla_cpu_multi_thread_eigen=false"
BATCH = 16
"""Candidates of a search that a GPU runs at the same time; a core runs them one after the other."""
FORGET = 20
"""Units after which a process drops its compiled programs; later units have other shapes, and memory would fill up."""


@dataclass
class WorkUnit:
    """Jobs that one process does in one go, or a page that it draws."""

    jobs: list[Any] = field(default_factory=list)  # each has a key, which names its file
    page: tuple[str, str] | None = None  # a figure and a protocol to draw
    needs: set[str] = field(default_factory=set)  # keys of jobs that must be done first
    cost: float = 0.0  # estimated seconds


class Runner:
    """Does units of work in worker processes.

    If one process dies, all are ended. Their unfinished units are then done one at a time; a job whose process dies
    again is given up.

    Parameters
    ----------
    folder : path
        Folder of the reproduction.
    workers : int
    stages : sequence of (int, float)
        Stages of the searches.
    gpu : bool
        Whether the processes share a GPU; otherwise each has one core.
    do : callable
        (unit, folder, stages, batch) -> None, called in a process.
    """

    def __init__(
        self,
        folder: Path,
        workers: int,
        stages: "Stages" = (),
        gpu: bool = False,
        do: "Callable[[WorkUnit, Path, Stages, int], None] | None" = None,
    ) -> None:
        self.folder, self.workers, self.stages, self.gpu = folder, workers, stages, gpu
        self.do = do or do_unit
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
            return executor.submit(self.do, unit, self.folder, self.stages, BATCH if self.gpu else 1)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _done(self) -> set[str]:
        """Return the keys of the jobs that have a file."""
        return {path.stem for path in (self.folder / "results").iterdir()}

    def _left(self, unit: WorkUnit) -> list[WorkUnit]:
        """Return a list with the unfinished part of a unit; empty if all is done."""
        settled = self._done() | self.lost.keys()
        jobs = [job for job in unit.jobs if job.key not in settled]
        return [replace(unit, jobs=jobs)] if jobs or unit.page else []

    def _give_up(self, unit: WorkUnit, words: str, error: BaseException | None = None) -> None:
        """Give up the job that a unit was doing; raise RuntimeError if it was drawing."""
        if unit.page:
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


def do_unit(unit: WorkUnit, folder: Path, stages: "Stages", batch: int) -> None:
    """Do the jobs of a unit, or draw its page."""
    import jax

    from .figures import draw
    from .work import do_job

    for job in unit.jobs:
        do_job(job, folder, stages, batch)
    if unit.page is not None:
        draw(folder, *unit.page)
    if next(_UNITS) % FORGET == 0:
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
            "processes die as soon as they start; in a script, call reproduce under `if __name__ == '__main__':`"
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
