"""MPI: arrays between ranks, without pickle, and a watch over ranks that die or hang. Only this file imports mpi4py.

A rank that waits looks again and again instead of blocking, so that it can answer when another asks whether it is
still there. Whoever waits for a rank asks it from time to time; one that waits too answers, one that computes for
longer than the patience, hangs or is dead does not, and then the whole job is ended in its name.
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any, Self

import numpy as np

from ..errors import NEEDS_MPI, InputError
from .blocks import Blocks, Message
from .ranks import OwnError

try:
    import mpi4py

    mpi4py.rc.thread_level = "funneled"
    from mpi4py import MPI
except ImportError as error:
    raise InputError(f"{NEEDS_MPI} ({error})") from None
except RuntimeError as error:  # mpi4py is there, and finds no MPI library
    raise InputError(f"{NEEDS_MPI} ({str(error).splitlines()[0]})") from None

ROWS, PARTS, WORDS, ASK, ANSWER = 1, 2, 3, 4, 5
"""Tags of messages: rows of a round, parts of a record for rank 0, its decision, and the watch's."""
START_PATIENCE = 120.0
"""Seconds that ranks may take to load, build and compile before they first answer."""
EAGER = 0.02
"""Seconds of waiting in which a rank does nothing else; then it also answers and asks."""
LONG = 0.005
"""Seconds of waiting from which on a rank that shares its core sleeps: a short sleep takes half a millisecond."""
PAUSE = 0.0005
"""Seconds between two looks, later."""


class Lost(Exception):  # noqa: N818  # it says what has happened to a rank
    """A rank that does not answer."""


class World:
    """All ranks of a job, and this one among them; use it as a context, which ends the whole job if it fails here.

    Parameters
    ----------
    nodes : int
        Of the problem, which the ranks share.
    patience : float
        Seconds without an answer after which a rank counts as hanging.
    """

    def __init__(self, nodes: int, patience: float = 10.0) -> None:
        self.comm = MPI.COMM_WORLD
        self.rank, self.ranks = self.comm.Get_rank(), self.comm.Get_size()
        self.blocks = Blocks(nodes, self.ranks)
        self.patience = START_PATIENCE
        self._usual_patience = patience
        self._rounds = 0
        self._heard: dict[int, float] = {}
        self._asked: dict[int, float] = {}
        self._sent: list[Any] = []  # the watch's own messages, under way
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        # Where ranks share cores, one that waits lets others have its core at once, and sleeps where waits are long.
        self._crowded = hasattr(os, "sched_yield") and _ranks_here(self.ranks) > cores
        self._usual_wait = 0.0
        self._peers: list[tuple[str, int]] = []

    def __enter__(self) -> Self:
        here = (socket.gethostname(), os.getpid())
        text = np.zeros(128, dtype=np.uint8)
        name = f"{here[0]} {here[1]}".encode()[:128]
        text[: len(name)] = np.frombuffer(name, dtype=np.uint8)
        everyone = np.empty((self.ranks, 128), dtype=np.uint8)
        self.comm.Allgather(text, everyone)  # once, at the start
        for row in everyone:
            host, _, pid = bytes(row).rstrip(b"\0").decode().rpartition(" ")
            self._peers.append((host, int(pid)))
        try:
            self._before = signal.signal(signal.SIGTERM, self._ended)
        except ValueError:  # not the main thread: then there is nobody to tell
            self._before = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)
        if kind is None:
            return
        if issubclass(kind, InputError) and not issubclass(kind, OwnError):
            return  # all ranks refuse the same: an ordinary error
        if issubclass(kind, Lost):
            words = str(error)
        elif issubclass(kind, KeyboardInterrupt):
            words = f"{self.name(self.rank)}: interrupted"
        else:
            words = f"{self.name(self.rank)}: {kind.__name__}: {error}"
            if issubclass(kind, OwnError):
                words = f"{self.name(self.rank)}: {error}"
            elif not issubclass(kind, OSError | MemoryError):
                import traceback

                traceback.print_exception(kind, error, trace)
        self.abort(words)

    def name(self, rank: int) -> str:
        """Return a rank in words, with its nodes and where it runs."""
        host, pid = self._peers[rank] if self._peers else ("?", 0)
        return f"rank {rank} of {self.ranks} ({self.blocks.name(rank)}; process {pid} on {host})"

    def abort(self, words: str) -> None:
        """Say why, and end all ranks."""
        print(f"error: {words}; the job is ended", file=sys.stderr, flush=True)
        sys.stdout.flush()
        self.comm.Abort(1)

    def settled(self) -> None:
        """Take note that the start is over: from now on the patience is the usual one."""
        self.patience = self._usual_patience

    def exchange(self, sends: Sequence[Message], receives: Sequence[Message]) -> None:
        """Send rows to ranks and receive rows from ranks; one message a rank, straight from and into arrays."""
        comm = self.comm
        requests = [comm.Irecv(buffer, rank, ROWS) for rank, buffer in receives]
        requests += [comm.Isend(buffer, rank, ROWS) for rank, buffer in sends]
        self._rounds += 1
        if self._rounds % 256 == 0:  # a rank that never has to wait answers here
            self._answer()
        if requests and not MPI.Request.Testall(requests):
            self._wait(requests, [rank for rank, _ in (*receives, *sends)], "rows")

    def collect(self, part: np.ndarray) -> list[np.ndarray] | None:
        """Send an array to rank 0, which gets all ranks'; they differ in the second axis, the rows, only."""
        if self.rank:
            self._wait([self.comm.Isend(np.ascontiguousarray(part), 0, PARTS)], [0], "records")
            return None
        rows = np.diff(self.blocks.starts)
        parts = [part, *(np.empty((part.shape[0], count, *part.shape[2:]), part.dtype) for count in rows[1:])]
        requests = [self.comm.Irecv(parts[rank], rank, PARTS) for rank in range(1, self.ranks)]
        if requests:
            self._wait(requests, list(range(1, self.ranks)), "records")
        return parts

    def tell(self, words: np.ndarray) -> None:
        """Send an array from rank 0 to all; they receive it into theirs."""
        if self.rank:
            self._wait([self.comm.Irecv(words, 0, WORDS)], [0], "what to do next")
        elif self.ranks > 1:
            requests = [self.comm.Isend(words, rank, WORDS) for rank in range(1, self.ranks)]
            self._wait(requests, list(range(1, self.ranks)), "what to do next")

    def meet(self) -> None:
        """Wait until all ranks are here."""
        self.collect(np.zeros((1, self.blocks.of(self.rank)[1] - self.blocks.of(self.rank)[0])))
        self.tell(np.zeros(1))

    def _wait(self, requests: list[Any], peers: list[int], what: str) -> None:
        """Wait until requests are done, answering others; give up on a peer that does not answer."""
        began = time.monotonic()
        looks = 0
        while not MPI.Request.Testall(requests):
            looks += 1
            if self._crowded and (looks < 4 or self._usual_wait < LONG):
                os.sched_yield()
            elif self._crowded:
                time.sleep(0.1 * self._usual_wait)
            if looks % 16 and self._usual_wait < LONG:
                continue
            now = time.monotonic()
            if now - began > max(EAGER, 4 * self._usual_wait):
                self._answer()
                self._ask(requests, peers, began, now, what)
                time.sleep(PAUSE)
        if self._crowded:
            self._usual_wait += 0.1 * (min(time.monotonic() - began, 0.2) - self._usual_wait)
        self._heard.clear()
        self._asked.clear()

    def _answer(self) -> None:
        status = MPI.Status()
        while self.comm.Iprobe(MPI.ANY_SOURCE, ASK, status):
            self.comm.Recv(bytearray(0), status.Get_source(), ASK)
            self._sent.append(self.comm.Isend(bytearray(0), status.Get_source(), ANSWER))
        while self.comm.Iprobe(MPI.ANY_SOURCE, ANSWER, status):
            self.comm.Recv(bytearray(0), status.Get_source(), ANSWER)
            self._heard[status.Get_source()] = time.monotonic()
            self._asked.pop(status.Get_source(), None)
        self._sent = [request for request in self._sent if not request.Test()]

    def _ask(self, requests: list[Any], peers: list[int], began: float, now: float, what: str) -> None:
        """Ask those whom the wait is for, and give up on one that has not answered for too long."""
        pending = {peer for request, peer in zip(requests, peers, strict=True) if request != MPI.REQUEST_NULL}
        for peer in pending:
            since = now - max(began, self._heard.get(peer, 0.0))
            if since > self.patience:
                raise Lost(
                    f"{self.name(peer)} has not answered for {self.patience:g} s, while rank {self.rank} waits "
                    f"for its {what}: it hangs, is stopped, or computes for longer (then raise --patience)"
                )
            if peer not in self._asked and since > self.patience / 4:
                self._asked[peer] = now
                self._sent.append(self.comm.Isend(bytearray(0), peer, ASK))

    def _ended(self, number: int, frame: FrameType | None) -> None:
        """Say which rank died, as far as can be seen from here, when the launcher ends this one."""
        host = socket.gethostname()
        here = [(rank, _gone(pid)) for rank, (where, pid) in enumerate(self._peers) if where == host]
        first = min((rank for rank, gone in here if not gone), default=self.rank)
        dead = [self.name(rank) for rank, gone in here if gone]
        if dead and self.rank == first:  # one of those that are left speaks
            print(f"error: {'; '.join(dead)}: killed or crashed; the job is ended", file=sys.stderr, flush=True)
            time.sleep(0.5)  # so that the others do not take this rank for dead
        os._exit(1)


def _ranks_here(ranks: int) -> int:
    """Return how many ranks run on this machine, as far as the launcher tells."""
    told = os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", os.environ.get("MPI_LOCALNRANKS", ""))
    return int(told) if told.isdigit() else ranks


def _gone(pid: int) -> bool:
    """Return whether a process of this machine has ended, or is a zombie that waits to be buried."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123  # no path to keep
            return file.read().rpartition(")")[2].split()[0] in ("Z", "X")
    except OSError:
        return True
