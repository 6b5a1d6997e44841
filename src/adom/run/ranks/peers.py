"""What a rank needs of the others: messages, and errors that one rank has alone."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np

from ...errors import InputError
from .rank_rounds import Message, Partition
from .watch import Words

Array = np.ndarray


class RankError(InputError):
    """Bad input of one rank, such as its nodes' files, that the other ranks do not know of."""


@contextmanager
def rank_errors() -> Iterator[None]:
    """Turn bad input and failing files inside a block into errors of this rank."""
    try:
        yield
    except InputError as error:
        raise RankError(str(error)) from None
    except OSError as error:
        raise RankError(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")) from None


class Ranks:
    """All ranks of a job: one that holds all nodes, without MPI; `adom.run.ranks.world.World` is several."""

    rank, ranks = 0, 1

    def __init__(self, nodes: int) -> None:
        self.partition = Partition(nodes, self.ranks)

    def exchange(self, sends: Sequence[Message], receives: Sequence[Message]) -> None:
        """Send rows to ranks and receive rows from ranks; one message per rank, directly from and into arrays."""
        assert not sends
        assert not receives

    def collect(self, part: Array) -> list[Array] | None:
        """Send an array to rank 0, which gets those of all ranks; only the second axis, rows, differs in length."""
        return [part]

    def tell(self, words: Array) -> None:
        """Send an array from rank 0 to all other ranks, which receive it into `words`."""

    def meet(self) -> None:
        """Wait until all ranks are here."""

    def settled(self) -> None:
        """Note that the start is over: from now on the usual patience holds, and no thread answers."""

    def busy(self, doing: Words) -> AbstractContextManager[None]:
        """Let a thread answer while this rank does something that may take long."""
        return nullcontext()


def at_rank_0(world: Ranks, work: Callable[[], int]) -> int:
    """Call `work` at rank 0 only; return its number on all ranks, or raise its error on all."""
    answer, message = np.zeros(2, dtype=np.int64), b""
    if world.rank == 0:
        try:
            with rank_errors():
                answer[0] = work()
        except InputError as error:
            message = str(error).encode()
            answer[1] = len(message)
    world.tell(answer)
    if answer[1]:
        raise InputError(tell_bytes(world, message, int(answer[1])).decode(errors="replace"))
    return int(answer[0])


def tell_bytes(world: Ranks, text: bytes, size: int | None = None) -> bytes:
    """Return rank 0's bytes on all ranks; without `size`, their number is sent first."""
    if size is None:
        count = np.array([len(text)], dtype=np.int64)
        world.tell(count)
        size = int(count[0])
    buffer = np.frombuffer(text, dtype=np.uint8).copy() if world.rank == 0 else np.zeros(size, dtype=np.uint8)
    world.tell(buffer)
    return bytes(buffer)


def over_ranks(join: Callable[..., Array], world: Ranks, values: Array) -> Array:
    """Return all ranks' values joined, as by `np.sum` or by `np.max`, to which NaN is the greatest; on every rank."""
    first, end = world.partition.of(world.rank)
    parts = world.collect(np.broadcast_to(values, (1, end - first, len(values))).copy())
    found = np.empty(len(values))
    if parts is not None:
        found[:] = join([part[0, 0] for part in parts], axis=0)
    world.tell(found)
    return found
