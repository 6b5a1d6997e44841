"""MPI: arrays between ranks, without pickle, and detection of ranks that die or hang. Only this file imports mpi4py.

A waiting rank polls instead of blocking. So it can answer when others ask whether it is alive, and it asks the ranks
that it waits for. A rank that hangs, is dead, or computes for longer than the patience does not answer; then the whole
job is aborted with a message that names it. At the start, and while a rank reads or writes files, a thread answers for
it (`adom.run.ranks.watch`).
"""

import atexit
import hashlib
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from types import FrameType, TracebackType
from typing import Any, Self

import numpy as np

from ...errors import NEEDS_MPI, InputError
from . import watch
from .peers import RankError, Ranks, over_ranks
from .rank_rounds import Message
from .watch import LEFT, RUNNING, Marks


@contextmanager
def _without_networks() -> Iterator[None]:
    """Keep Open MPI from probing for fast networks, which takes a second, if all ranks are on this machine."""
    ranks, here = (os.environ.get(f"OMPI_COMM_WORLD_{name}") for name in ("SIZE", "LOCAL_SIZE"))
    setting = "OMPI_MCA_btl"
    if ranks is None or ranks != here or setting in os.environ:
        yield
        return
    os.environ[setting] = "^ofi"
    try:
        yield
    finally:
        del os.environ[setting]


try:
    import mpi4py

    _ours = "mpi4py.MPI" not in sys.modules
    mpi4py.rc.thread_level = "serialized"
    mpi4py.rc.finalize = False  # `_finish` does
    with watch.all_must_start(), _without_networks():
        from mpi4py import MPI
except ImportError as error:
    raise InputError(f"{NEEDS_MPI} ({error})") from None
except RuntimeError as error:  # mpi4py is installed, but finds no MPI library
    raise InputError(f"{NEEDS_MPI} ({str(error).splitlines()[0]})") from None

ROWS, PARTS, WORDS, ASK, ANSWER, REFUSAL = 1, 2, 3, 4, 5, 6
"""Message tags: rows of a round, parts of a record for rank 0, rank 0's decision, signs of life, and refusals."""
EAGER = 0.02
"""Seconds of mere waiting before a rank also answers and asks others."""
LONG = 0.005
"""Usual wait in seconds above which a rank that shares its core sleeps; a short sleep takes half a millisecond."""
PAUSE = 0.0005
"""Seconds between two polls after `EAGER`."""
_yield = getattr(os, "sched_yield", lambda: None)
"""Yield this core to another rank, or to another program that keeps a rank from its work."""


finalize = True
"""Whether to finalize MPI at exit; False if this process ends alone, since it would wait for the others."""


@atexit.register
def _finish() -> None:
    if _ours and finalize and not MPI.Is_finalized():
        thread = _watch()
        with thread.lock:  # the thread sends only while it holds the lock
            thread.doing = None
            MPI.Finalize()


class RankLostError(Exception):
    """A rank does not answer."""


_sent: list[Any] = []  # questions and answers that are still being sent


def _reply() -> None:
    """Answer ranks that ask whether this one is alive."""
    comm, status = MPI.COMM_WORLD, MPI.Status()
    while comm.Iprobe(MPI.ANY_SOURCE, ASK, status):
        comm.Recv(bytearray(0), status.Get_source(), ASK)
        _sent.append(comm.Isend(bytearray(0), status.Get_source(), ANSWER))
    _sent[:] = [request for request in _sent if not request.Test()]


def _give_up(words: str) -> None:
    here = f"rank {MPI.COMM_WORLD.Get_rank()} of {MPI.COMM_WORLD.Get_size()}"
    _abort(f"{here} (process {os.getpid()} on {socket.gethostname()}) {words}")


def _abort(words: str) -> None:
    if words:
        print(f"error: {words}; the job is ended", file=sys.stderr, flush=True)
    sys.stdout.flush()
    MPI.COMM_WORLD.Abort(1)


@cache
def _watch() -> watch.Watch:
    thread = watch.Watch(_reply, _give_up)
    if MPI.COMM_WORLD.Get_size() > 1 and MPI.Query_thread() >= MPI.THREAD_SERIALIZED:
        thread.start()
    return thread


def begin(doing: watch.Words) -> watch.Watch:
    """Let a thread answer for this rank from now on, until a run has settled or ended."""
    thread = _watch()
    thread.doing = doing
    return thread


def count_ranks() -> int:
    """Return how many ranks the launcher has started."""
    return int(MPI.COMM_WORLD.Get_size())


def sums_of_ranks(values: np.ndarray) -> np.ndarray:
    """Return the sum of all ranks' values on every rank."""
    with World(count_ranks()) as world:
        return over_ranks(np.sum, world, values)


def all_refuse(words: str, seconds: float = 5.0) -> bool:
    """Return whether all ranks refuse their input with the same words; works without a `World`."""
    comm = MPI.COMM_WORLD
    own = np.frombuffer(hashlib.sha256(words.encode(errors="replace")).digest(), dtype=np.uint8).copy()
    others = [np.zeros_like(own) for _ in range(comm.Get_size() - 1)]
    verdict = np.zeros(1, dtype=np.uint8)
    with _watch().lock:
        if comm.Get_rank():
            requests = [comm.Isend(own, 0, REFUSAL), comm.Irecv(verdict, 0, REFUSAL)]
        else:
            requests = [comm.Irecv(other, rank, REFUSAL) for rank, other in enumerate(others, 1)]
        end = time.monotonic() + seconds
        while not MPI.Request.Testall(requests):
            if time.monotonic() > end:
                return False
            time.sleep(0.001)
        if comm.Get_rank() == 0:
            verdict[0] = all((other == own).all() for other in others)
            MPI.Request.Waitall([comm.Isend(verdict, rank, REFUSAL) for rank in range(1, comm.Get_size())])
    return bool(verdict[0])


class World(Ranks):
    """All ranks of a job, as a context: an error inside aborts the job, unless all ranks refuse the same input.

    Parameters
    ----------
    nodes : int
        Nodes of the problem.
    patience : float
        Seconds without an answer after which a rank counts as hanging.
    """

    def __init__(self, nodes: int, patience: float = 10.0) -> None:
        self.comm = MPI.COMM_WORLD
        self.rank, self.ranks = self.comm.Get_rank(), self.comm.Get_size()
        super().__init__(nodes)
        self._usual_patience = patience
        self._settled = False
        self._rounds = 0
        self._heard: dict[int, float] = {}
        self._asked: dict[int, float] = {}
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._crowded = _ranks_here(self.ranks) > cores  # if so, ranks that wait long sleep
        self._usual_wait = 0.0
        self._peers: list[tuple[str, int]] = []
        self._marks: Marks | None = None
        self._before: Any = None
        self._watch = begin("starting")
        self._watch.give_up = lambda words: self.abort(f"{self.name(self.rank)} {words}")
        self._watch.patience = max(watch.START_PATIENCE, patience)
        self._lock = self._watch.lock

    def __enter__(self) -> Self:
        self.patience = max(watch.arrival(), self._usual_patience)
        try:
            self._introduce()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        self.patience = self._watch.patience
        with suppress(ValueError):  # only the main thread can handle signals
            if self.ranks > 1:  # one rank alone ends as without MPI
                self._before = signal.signal(signal.SIGTERM, self._ended)
        return self

    def _introduce(self) -> None:
        """Exchange host names and process ids."""
        text = np.zeros(160, dtype=np.uint8)
        name = f"{socket.gethostname()[:100]} {os.getpid()} {secrets.token_hex(8)}".encode()[:160]
        text[: len(name)] = np.frombuffer(name, dtype=np.uint8)
        everyone = np.zeros((self.ranks, 160), dtype=np.uint8)
        everyone[0] = text
        self._gather(text, list(everyone[1:]), "arrival")
        self.tell(everyone)
        tokens = []
        for row in everyone:
            host, pid, token = bytes(row).rstrip(b"\0").decode(errors="replace").rsplit(" ", 2)
            self._peers.append((host, int(pid)))
            tokens.append(token)
        first = next(rank for rank, (host, _) in enumerate(self._peers) if host == self._peers[self.rank][0])
        with suppress(OSError):  # without marks, only the launcher names a rank that dies
            self._marks = Marks(tokens[first], self.ranks)
            self._marks[self.rank] = RUNNING

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)
        if kind is None or (issubclass(kind, InputError) and not issubclass(kind, RankError)):
            self._leave()
            if isinstance(error, InputError):
                error.of_all_ranks = True
            return
        if issubclass(kind, RankLostError):
            words = str(error)
        elif issubclass(kind, KeyboardInterrupt):
            words = f"{self.name(self.rank)}: interrupted"
        else:
            words = f"{self.name(self.rank)}: {kind.__name__}: {error}"
            if issubclass(kind, RankError):
                words = f"{self.name(self.rank)}: {error}"
            elif not issubclass(kind, OSError | MemoryError):
                import traceback

                traceback.print_exception(kind, error, trace)
        self.abort(words)

    def _leave(self) -> None:
        self._watch.doing = None
        if self._marks is not None:
            self._marks[self.rank] = LEFT
            self._marks.forget()

    def name(self, rank: int) -> str:
        """Describe a rank, its nodes and its process."""
        where = f"; process {self._peers[rank][1]} on {self._peers[rank][0]}" if self._peers else ""
        return f"rank {rank} of {self.ranks} ({self.partition.name(rank)}{where})"

    def abort(self, words: str) -> None:
        """Print the reason and end all ranks."""
        first = self._marks is None or self._marks.first()
        self._leave()
        _abort(words if first else "")

    def settled(self) -> None:
        """Note that the start is over."""
        if not self._settled:
            self._settled, self.patience, self._watch.doing = True, self._usual_patience, None
            if self._marks is not None:
                self._marks.forget()

    def busy(self, doing: watch.Words) -> AbstractContextManager[None]:
        """Let a thread answer while this rank does something that may take long."""
        return self._watch.busy(doing)

    def exchange(self, sends: Sequence[Message], receives: Sequence[Message]) -> None:
        """Send rows to ranks and receive rows from ranks."""
        comm = self.comm
        with self._lock:
            requests = [comm.Irecv(buffer, rank, ROWS) for rank, buffer in receives]
            requests += [comm.Isend(buffer, rank, ROWS) for rank, buffer in sends]
            self._rounds += 1
            if self._rounds % 256 == 0:  # a rank that never has to wait answers here
                self._answer()
            if requests and not MPI.Request.Testall(requests):
                self._wait(requests, [rank for rank, _ in (*receives, *sends)], "rows")

    def collect(self, part: np.ndarray) -> list[np.ndarray] | None:
        """Send an array to rank 0."""
        if self.rank:
            self._gather(np.ascontiguousarray(part), [], "records")
            return None
        rows = np.diff(self.partition.starts)
        parts = [part, *(np.empty((part.shape[0], count, *part.shape[2:]), part.dtype) for count in rows[1:])]
        self._gather(part, parts[1:], "records")
        return parts

    def _gather(self, own: np.ndarray, others: Sequence[np.ndarray], what: str) -> None:
        """Send an array to rank 0, which receives one from every other rank."""
        with self._lock:
            if self.rank:
                self._wait([self.comm.Isend(own, 0, PARTS)], [0], what)
            elif self.ranks > 1:
                requests = [self.comm.Irecv(other, rank, PARTS) for rank, other in enumerate(others, 1)]
                self._wait(requests, list(range(1, self.ranks)), what)

    def tell(self, words: np.ndarray) -> None:
        """Send an array from rank 0 to all."""
        with self._lock:
            if self.rank:
                self._wait([self.comm.Irecv(words, 0, WORDS)], [0], "what to do next")
            elif self.ranks > 1:
                requests = [self.comm.Isend(words, rank, WORDS) for rank in range(1, self.ranks)]
                self._wait(requests, list(range(1, self.ranks)), "what to do next")

    def meet(self) -> None:
        """Wait until all ranks are here."""
        self.collect(np.zeros((1, self.partition.of(self.rank)[1] - self.partition.of(self.rank)[0])))
        self.tell(np.zeros(1))

    def _wait(self, requests: list[Any], peers: list[int], what: str) -> None:
        """Wait until requests are done, answering others; raise `RankLostError` if a peer does not answer."""
        began = time.monotonic()
        looks = 0
        while not MPI.Request.Testall(requests):
            looks += 1
            if looks < 4 or self._usual_wait < LONG:
                _yield()
            else:
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
        _reply()
        status = MPI.Status()
        while self.comm.Iprobe(MPI.ANY_SOURCE, ANSWER, status):
            self.comm.Recv(bytearray(0), status.Get_source(), ANSWER)
            self._heard[status.Get_source()] = time.monotonic()
            self._asked.pop(status.Get_source(), None)

    def _ask(self, requests: list[Any], peers: list[int], began: float, now: float, what: str) -> None:
        """Ask the awaited ranks; raise `RankLostError` for one that has not answered for too long."""
        pending = {peer for request, peer in zip(requests, peers, strict=True) if request != MPI.REQUEST_NULL}
        for peer in pending:
            since = now - max(began, self._heard.get(peer, 0.0))
            if since > self.patience:
                why = "it hangs, is stopped, or computes for longer (then raise --patience)"
                if not self._settled:
                    why = "it is stopped, or its machine is gone"
                    why += "" if self._peers else ", or it has not called adom.solve"
                raise RankLostError(
                    f"{self.name(peer)} has not answered for {self.patience:g} s, while rank {self.rank} waits "
                    f"for its {what}: {why}"
                )
            if peer not in self._asked and since > self.patience / 4:
                self._asked[peer] = now
                _sent.append(self.comm.Isend(bytearray(0), peer, ASK))

    def _ended(self, number: int, frame: FrameType | None) -> None:
        """When the launcher ends the job, name the rank that died, if it was on this machine."""
        marks, host = self._marks, self._peers[self.rank][0]
        if marks is not None:
            here = (rank for rank, (where, pid) in enumerate(self._peers) if where == host and _gone(pid))
            dead = [self.name(rank) for rank in here if marks[rank] == RUNNING]
            if dead and marks.first():
                print(f"error: {'; '.join(dead)}: killed or crashed; the job is ended", file=sys.stderr, flush=True)
            marks[self.rank] = LEFT
            marks.forget()
        os._exit(1)


def _ranks_here(ranks: int) -> int:
    """Return the number of ranks on this machine, or `ranks` if the launcher does not tell."""
    count = os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", os.environ.get("MPI_LOCALNRANKS", ""))
    return int(count) if count.isdigit() else ranks


def _gone(pid: int) -> bool:
    """Return whether a process of this machine has ended or is a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123  # no path to keep
            return file.read().rpartition(")")[2].split()[0] in ("Z", "X")
    except OSError:
        return True
