"""The loop that advances a method: run a chunk of steps, record it, then stop, checkpoint or go on.

A backend only makes steps: for all nodes in one process (`adom.run.local.backend`), or for one rank's block of nodes
(`adom.run.ranks.rank_backend`). Results do not depend on where chunks end.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from .progress import Interrupt, Journal, Progress
from .recorder import CLOCK, SECONDS, Plan, Recorder

Array = np.ndarray
FIRST_CHUNK = 8
"""Steps of the first chunk; later ones last about `CHUNK_SECONDS`."""
CHUNK_SECONDS = 0.2
SNAPSHOT_BYTES = 2**25
"""Most memory for the records of a chunk."""
SPARE_BYTES = 2**20
"""Memory always used for records, so that runs of different lengths share a compiled program."""


@dataclass
class Chunk:
    """A stretch of steps and its observations."""

    begin: int  # iterations before the chunk
    end: int  # iterations after it
    seconds: float  # without compilation
    records: int
    observed: Any


class Backend(Protocol):
    """Makes steps of one method, for one or several settings at once."""

    def fits(self, plan: Plan) -> bool:
        """Return whether the budget may cover one more step."""

    def advance(self, plan: Plan, pace: int) -> Chunk:
        """Make about `pace` steps, at least one if it fits, and observe them at the plan's records."""


class RecordingBackend(Backend, Protocol):
    """A backend whose steps are recorded."""

    agreed: bool  # whether the nodes have agreed that the tolerance is met

    def measure(self, chunk: Chunk, members: list[int]) -> Array | None:
        """Return the records, of shape (members, records, columns), without times; None on ranks other than 0."""

    def share(self, taken: list[int | None] | None, chunk: Chunk, recorder: Recorder) -> list[int | None]:
        """Send rank 0's statuses to every rank; return which records rank 0 has taken."""

    def rows(self, chunk: Chunk, record: int, position: int) -> Array:
        """Return the rows of a record, for the carried member at `position`."""

    def anyone(self, asked: bool) -> bool:
        """Return, at rank 0, whether any rank was asked to stop."""

    def between(self, chunk: Chunk, recorder: Recorder) -> None:
        """Finish a chunk: write a checkpoint, drop members that have ended."""


def chunks(backend: Backend, plan: Plan, least: int = 1, first: int = FIRST_CHUNK) -> Iterator[Chunk]:
    """Advance a backend until its rounds are spent, a fraction of a second at a time; `first` are the first steps."""
    pace = max(first, least)
    while backend.fits(plan):
        chunk = backend.advance(plan, pace)
        yield chunk
        steps = chunk.end - chunk.begin
        if not steps:
            return
        pace = int(np.clip(CHUNK_SECONDS / max(chunk.seconds, 1e-9) * steps, least, 8 * pace))


def slots(plan: Plan, record_bytes: int) -> int:
    """Return how many records of a chunk fit in memory.

    Examples
    --------
    >>> [slots(Plan(rounds), record_bytes) for record_bytes in (1000, 100_000) for rounds in (5, 50, 5000)]
    [512, 512, 512, 10, 50, 335]
    """
    wanted = max(-(-plan.rounds // plan.record_every), SPARE_BYTES // record_bytes)
    return max(1, min(512, wanted, SNAPSHOT_BYTES // record_bytes))


def drive(
    backend: RecordingBackend,
    plan: Plan,
    recorder: Recorder,
    progress: Progress,
    interrupt: Interrupt,
    journal: Journal | None = None,
) -> None:
    """Advance a backend until all members have ended or Ctrl-C stops it; `journal` takes the first one's records."""
    with progress:
        for chunk in chunks(backend, plan, first=1):  # its error is the start of a dual method (`History.start`)
            asked = backend.anyone(interrupt.asked)
            tables = backend.measure(chunk, recorder.members)
            taken = None
            if tables is not None:
                ending = "converged" if backend.agreed else "interrupted" if asked else ""
                taken = recorder.take(_timed(tables, chunk, recorder.seconds), ending)
                progress.update(int(tables[:, -1, CLOCK].max()), _worst(recorder))
                if journal is not None:
                    journal.take(recorder.histories[0])
            taken = backend.share(taken, chunk, recorder)
            recorder.keep_rows(taken, partial(backend.rows, chunk))
            recorder.seconds += chunk.seconds
            if not recorder.going:
                return
            backend.between(chunk, recorder)


def _timed(tables: Array, chunk: Chunk, before: float) -> Array:
    """Fill the column of seconds, spreading a chunk's time evenly over its steps."""
    share = (tables[..., 0] - chunk.begin) / max(1, chunk.end - chunk.begin)
    tables[..., SECONDS] = before + chunk.seconds * share
    return tables


def _worst(recorder: Recorder) -> str:
    """Return the largest error of the carried members, with its name; "" if nothing is measured."""
    histories = [recorder.histories[member] for member in recorder.members]
    measure = histories[0].measure
    return f"{measure} {max(history.error for history in histories):.2e}" if measure else ""
