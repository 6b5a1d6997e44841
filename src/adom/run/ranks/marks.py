"""One byte per rank, shared by all ranks of a machine: running, or left on its own.

When a rank dies, the launcher ends the others, and the list of processes does not show which was first. So a rank that
leaves on its own marks that.
"""

import mmap
import os
import tempfile
from contextlib import suppress
from pathlib import Path

UNKNOWN, RUNNING, LEFT = 0, 1, 2


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
