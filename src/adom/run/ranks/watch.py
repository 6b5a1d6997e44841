"""Signs of life for a rank that is busy: starting, reading, compiling or writing.

In rounds a rank that waits answers those who ask whether it is still there. At the start it may read for a long time,
and a thread answers for it. So a process that is stopped or dead is told from one that is slow: it does not answer at
all. One that is blocked, by a file system that does not respond, has a thread that still answers; but it uses no
processor time, not even the kernel's for copying what arrives, and then the thread itself ends the job.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

START_PATIENCE = 120.0
"""Seconds at the start without an answer, or without any work, after which a rank is given up."""
ARRIVAL = 600.0
"""Seconds by which ranks may differ in reaching `adom.solve`: before, nobody answers for them."""
early = False
"""Whether ranks begin right at their start, as those of the command line do."""
BEAT = 0.5
"""Seconds between two answers of the thread."""
LEAST_WORK = 0.005
"""Seconds of processor time within the patience that show that a rank is not blocked."""
LAUNCHED = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
"""Variables that launchers set: Open MPI, srun --mpi=pmix, MPICH and Intel MPI."""

Words = str | Callable[[], str]


class Watch:
    """A thread that answers for a rank while it is busy, and gives up if the rank does nothing at all.

    Parameters
    ----------
    answer : callable
        Answers all that has been asked; called with `lock` held.

    Attributes
    ----------
    give_up : callable
        Ends the job; called with the words that say why.
    lock : RLock
        Held by whoever talks to other ranks: one thread at a time may.
    doing : str or callable, optional
        The rank's present work; None while it answers itself.
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
            if doing is None or work - worked > LEAST_WORK or now - beat > 10 * BEAT:  # the last: it was stopped itself
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
    """Return the seconds by which ranks may differ in beginning."""
    return START_PATIENCE if early else ARRIVAL


@contextmanager
def all_must_start() -> Iterator[None]:
    """End this process if a block takes too long: MPI's start, which waits for all ranks and lets no thread run."""
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
    seconds = patience + min(rank, 2)  # so that one speaks, and the launcher ends the others
    call = [sys.executable, "-I", "-S", "-c", code, str(seconds), words]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as other:
        try:
            yield
        finally:
            other.kill()
