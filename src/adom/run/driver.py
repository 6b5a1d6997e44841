"""The loop of a run on one rank: chunks of steps, and the pauses between them at which rank 0 hears what came out.

At a pause the ranks send rank 0 the rows of the records since the last one; it computes the metrics, decides how far to
go until the next pause, and whether to write a checkpoint. What is computed does not depend on when the pauses are.
"""

from time import perf_counter
from typing import Any

import numpy as np

from .endings import FINISHED
from .progress import Interrupt, Progress
from .ranks.backend import Ended, RankRun, Record

Array = np.ndarray
CHUNK_SECONDS = 0.3
SNAPSHOT_BYTES = 2**25
STATUSES = ("", *FINISHED, "interrupted")


class Loop:
    """Chunks of steps and the pauses between them, until the run is over."""

    def __init__(self, one: RankRun, progress: Progress, interrupt: Interrupt) -> None:
        self.one, self.world, self.task = one, one.world, one.task
        self.progress, self.interrupt = progress, interrupt
        size = np.dtype(self.task.plan.dtype).itemsize * self.world.blocks.nodes * (self.task.block.dim + 1)
        self.slots = int(np.clip(SNAPSHOT_BYTES // size, 1, 512))
        self.written = perf_counter()
        self.before = (one.iteration, one.gossip.clock)  # where the present chunk began

    def go(self) -> Ended:
        """Run to the end."""
        one = self.one
        if not one.fits():  # gone on from a checkpoint at the end of the budget
            word = np.zeros(1, dtype=np.int64)
            if self.world.rank == 0:
                one.run.end()
                word[0] = STATUSES.index(one.run.status)
            self.world.tell(word)
            one.run.status = STATUSES[word[0]]
            return Ended(one.run, one.x, self._wire())
        steps = self._reach(4)
        while True:
            self.before, began = (one.iteration, one.gossip.clock), perf_counter()
            with np.errstate(over="ignore", invalid="ignore"):  # of a run that diverges, which its records say
                records = one.advance(steps, self.slots)
            elapsed = perf_counter() - began
            status, stop, steps, checkpoint = self._pause(records, elapsed)
            self.world.settled()
            if status:
                one.run.status = status
                rows = records[stop].x if stop >= 0 else one.x
                return Ended(one.run, rows, self._wire())
            if checkpoint:
                one.save()
                self.written = perf_counter()

    def _reach(self, steps: int) -> int:
        """Return how many steps to make until the next pause, so that a checkpoint falls where it should."""
        every = None if self.task.kept is None else self.task.kept.every_rounds
        if every is None:
            return steps
        clock, iteration, method = self.one.gossip.clock, self.one.iteration, self.one.method
        end, count = (clock // every + 1) * every, 0
        while clock < end and count < steps:
            clock += int(method.rounds_of_step(iteration + count))
            count += 1
        return max(1, count)

    def _pause(self, records: list[Record], elapsed: float) -> tuple[str, int, int, bool]:
        """Tell rank 0 what came out; return the status, the record at which the run ends, and what to do next."""
        one = self.one
        flags = np.zeros((1, len(one.x), 1))
        flags[0, 0, 0] = self.interrupt.asked
        asked = self.world.collect(flags)
        with np.errstate(over="ignore", invalid="ignore"):
            metrics = self._metrics(records)
        words = np.zeros(4, dtype=np.int64)
        if asked is not None:
            assert metrics is not None
            interrupted = any(part[0, 0, 0] for part in asked)
            gradients, error, consensus = metrics
            counted = np.array([(r.iteration, r.clock, r.floats) for r in records], dtype=float).T
            made = one.iteration - self.before[0]
            seconds = one.seconds + elapsed * (counted[0] - self.before[0]) / made
            table = np.stack([counted[0], counted[1], gradients, counted[2], seconds, error, consensus], axis=-1)
            taken = one.run.take(table, interrupted or one.agreed)
            if one.run.status == "diverged" and not self.task.monitor:
                one.run.message = one.run.message.replace("the ", "the rows' squared norm", 1)
            if one.agreed:  # also where the rounds are spent just then
                one.run.status, one.run.message = "converged", ""
            elif interrupted and not one.run.status:
                one.run.status = "interrupted"
            self.progress.update(int(counted[1, -1]), one.run.error if self.task.solution is not None else None)
            pace = int(np.clip(CHUNK_SECONDS / max(elapsed, 1e-9) * made, 1, 8192))
            kept = self.task.kept
            due = kept is not None and not one.run.status
            if due and kept is not None:
                due = perf_counter() - self.written >= kept.seconds or (
                    kept.every_rounds is not None
                    and one.gossip.clock // kept.every_rounds > self.before[1] // kept.every_rounds
                )
            words[:] = STATUSES.index(one.run.status), -1 if taken is None else taken, self._reach(pace), due
        self.world.tell(words)
        one.seconds += elapsed
        return STATUSES[words[0]], int(words[1]), int(words[2]), bool(words[3])

    def _metrics(self, records: list[Record]) -> tuple[Array, Array, Array] | None:
        """Return gradients a node, error (or the gradient at the mean) and consensus of records, at rank 0.

        Without monitoring the squared norm of the rows stands in the place of the error, a number a node: by it a run
        that diverges is known.
        """
        task = self.task
        gradients = np.stack([r.gradients for r in records]).astype(np.float64)
        if not task.monitor:
            squares = np.stack([np.square(r.x, dtype=np.float64).sum(axis=1) for r in records])
            found = self.world.collect(np.stack([gradients, squares], axis=-1))
            if found is None:
                return None
            numbers = np.concatenate(found, axis=1)
            return numbers[..., 0].mean(axis=1), numbers[..., 1].sum(axis=1), np.zeros(len(records))
        counts = self.world.collect(gradients)
        parts = self.world.collect(np.stack([r.x for r in records]))
        mean = np.empty((len(records), task.block.dim), dtype=task.plan.dtype)
        rows = None if parts is None else np.concatenate(parts, axis=1).astype(np.float64)
        if rows is not None:
            mean[:] = rows.mean(axis=1)
        error = None
        if task.solution is None:
            error = self._gradient_at(mean)
        if rows is None or counts is None:
            return None
        if task.solution is not None:
            error = ((rows - task.solution) ** 2).sum(axis=(1, 2))
        assert error is not None
        consensus = ((rows - rows.mean(axis=1, keepdims=True)) ** 2).sum(axis=(1, 2))
        return np.concatenate(counts, axis=1).mean(axis=1), error, consensus

    def _gradient_at(self, points: Array) -> Array | None:
        """Return, at rank 0, the norms of the mean of all nodes' gradients at points that rank 0 knows."""
        self.world.tell(points)
        own = len(self.one.x)
        rows = (np.repeat(point[None], own, axis=0) for point in points)
        found = [self.one.oracle.gradient_at(row) for row in rows]
        parts = self.world.collect(np.stack(found))
        return None if parts is None else np.linalg.norm(np.concatenate(parts, axis=1).mean(axis=1), axis=1)

    def _wire(self) -> dict[str, Any]:
        """Return what all ranks have sent, on every rank."""
        gossip = self.one.gossip
        part = np.zeros((1, len(self.one.x), 2))
        part[0, 0] = gossip.messages, gossip.bytes
        parts = self.world.collect(part)
        total = np.zeros(2)
        if parts is not None:
            total[:] = sum(one[0, 0] for one in parts)
        self.world.tell(total)
        return {"ranks": self.world.ranks, "messages": int(total[0]), "bytes": int(total[1])}
