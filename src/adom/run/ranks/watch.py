"""Signs of life of ranks: a thread that answers for a busy one, and marks of those that left on their own.

In rounds a waiting rank itself answers others that ask whether it is alive. While a rank is busy, a thread answers for
it. So a slow process can be told from a stopped or dead one, which does not answer at all. The thread also answers for
a process that is blocked by a file system. But such a process uses no processor time, not even in the kernel for
copying data; then the thread itself aborts the job.

When a rank dies, the launcher ends the others, and the list of processes does not show which was first. So ranks share
one byte each on a machine, in which a rank that leaves on its own says so.
"""

import mmap
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

START_PATIENCE = 120.0
"""Seconds at the start without an answer, or without any work, after which a rank is given up."""
ARRIVAL = 600.0
"""Seconds by which ranks may differ in reaching `adom.solve`; until then no thread answers for them."""
early = False
"""Whether ranks use this module right from their start, as those of the command line do."""
BEAT = 0.5
"""Seconds between two answers of the thread."""
LEAST_WORK = 0.005
"""Seconds of processor time within the patience that show that a rank is not blocked."""
LAUNCHED = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
"""Variables that launchers set: Open MPI, srun --mpi=pmix, MPICH and Intel MPI."""
RUNNING, LEFT = 1, 2
"""Marks of a rank; 0 until it has come."""

Words = str | Callable[[], str]


class Watch:
    """A thread that answers for a rank while it is busy, and gives up if the rank does nothing at all.

    Parameters
    ----------
    answer : callable
        Answers all pending questions; called with `lock` held.

    Attributes
    ----------
    give_up : callable
        Aborts the job; called with the reason.
    lock : RLock
        Held while a thread talks to other ranks, which only one thread may do at a time.
    doing : str or callable, optional
        The rank's present work; None while the rank answers itself.
    patience : float
    """

    def __init__(self, answer: Callable[[], None], give_up: Callable[[str], None]) -> None:
        self.lock = threading.RLock()
        self.doing: Words | None = None
        self.patience = START_PATIENCE
        self.give_up, self._answer = give_up, answer

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="adom-watch", daemon=True).start()

    @contextmanager
    def busy(self, doing: Words) -> Iterator[None]:
        """Answer for the rank within a block; name its work if it is blocked."""
        before, self.doing = self.doing, doing
        try:
            yield
        finally:
            self.doing = before

    def _run(self) -> None:
        since = beat = time.monotonic()
        worked = 0.0
        while True:
            time.sleep(BEAT)
            doing, now = self.doing, time.monotonic()
            work = time.process_time() - time.thread_time()
            if doing is None or work - worked > LEAST_WORK or now - beat > 10 * BEAT:  # the last: it was itself stopped
                worked, since = work, now
            beat = now
            if doing is None:
                continue
            if self.lock.acquire(blocking=False):
                try:
                    if self.doing is not None:
                        self._answer()
                finally:
                    self.lock.release()
            if now - since > self.patience:
                words = doing if isinstance(doing, str) else doing()
                self.give_up(
                    f"has done nothing for {self.patience:g} s while {words}: it is blocked, "
                    "as by a file system that does not respond"
                )
                return


def arrival() -> float:
    """Return the seconds by which ranks may differ in starting."""
    return START_PATIENCE if early else ARRIVAL


@contextmanager
def all_must_start() -> Iterator[None]:
    """End this process if a block takes too long; for MPI's start, which waits for all ranks and blocks all threads."""
    patience = arrival()
    rank = next((int(os.environ[name]) for name in LAUNCHED if os.environ.get(name, "").isdigit()), None)
    if os.name != "posix" or rank is None:
        yield
        return
    words = f"error: not all ranks have started within {patience:g} s: one is stopped or blocked; the job is ended"
    code = (
        "import os, select, sys\n"
        "if not select.select([0], [], [], float(sys.argv[1]))[0]:\n"
        "    print(sys.argv[2], file=sys.stderr, flush=True)\n"
        "    os.kill(os.getppid(), 9)"
    )
    seconds = patience + min(rank, 2)  # so that one rank reports, and the launcher ends the others
    call = [sys.executable, "-I", "-S", "-c", code, str(seconds), words]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as other:
        try:
            yield
        finally:
            other.kill()


class Marks:
    """The marks of a job's ranks on one machine.

    Parameters
    ----------
    name : str
        The same for all ranks of a job on the machine, and for no other job.
    ranks : int
    """

    def __init__(self, name: str, ranks: int) -> None:
        self._path = Path(tempfile.gettempdir()) / f"adom-ranks-{name}"
        number = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            os.ftruncate(number, ranks + 1)
            self._bytes = mmap.mmap(number, ranks + 1)
        finally:
            os.close(number)

    def __getitem__(self, rank: int) -> int:
        return self._bytes[rank]

    def __setitem__(self, rank: int, mark: int) -> None:
        self._bytes[rank] = mark

    def first(self) -> bool:
        """Return True for the first call among all ranks, so that only one of them reports."""
        asked, self._bytes[-1] = self._bytes[-1], 1
        return not asked

    def forget(self) -> None:
        """Remove the file, which nobody opens any more; the mapped bytes stay."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
