"""Worker processes, the tasks they are given, and what happens when one of them dies."""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

ONE_THREAD = dict.fromkeys(("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""A worker has one core; NPROC is the number of threads that XLA takes."""
EIGEN = "--xla_cpu_multi_thread_eigen=false"
TRIES = 2
"""How often a job is tried whose worker died."""


@dataclass
class Task:
    """Something for one worker to do in one go.

    Attributes
    ----------
    jobs : list of int
        Places in the plan.
    draw : tuple of str, optional
        A figure and a protocol to draw.
    needs : set of int
        Jobs that must have been done before.
    cost : float
        About how long it takes, in seconds.
    """

    jobs: list[int] = field(default_factory=list)
    draw: tuple[str, str] | None = None
    needs: set[int] = field(default_factory=set)
    cost: float = 0.0


class Pool:
    """Some worker processes that work off tasks; one that dies is replaced, and what it had left is done again.

    Parameters
    ----------
    folder : path
        Of the reproduction, with its plan.
    workers : int
    batch : int
        The most candidates of a search that run at the same time.
    """

    def __init__(self, folder: Path, workers: int, batch: int) -> None:
        self.command = [sys.executable, "-m", "adom.paper.worker", str(folder), str(batch)]
        self.count = workers
        self.one_thread = batch == 1
        self.answers: queue.Queue[tuple[_Worker, dict[str, Any] | None]] = queue.Queue()
        self.workers: list[_Worker] = []
        self.lost: dict[int, str] = {}  # job -> what its worker said last
        self._deaths: dict[int, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.end()

    def run(self, tasks: Sequence[Task], done: set[int], tell: Callable[[int], None]) -> None:
        """Work off tasks, in their order as far as their needs allow; `tell` is called with each job that is done."""
        waiting = list(tasks)
        while waiting or any(worker.task for worker in self.workers):
            self._hand_out(waiting, done)
            try:
                worker, answer = self.answers.get(timeout=1.0)
            except queue.Empty:
                continue  # lets Ctrl-C in
            if answer is None:
                left = self._bury(worker, done)
                waiting[:0] = [left] if left else []
                for number in self.lost:
                    done.add(number)
            elif "done" in answer:
                done.add(int(answer["done"]))
                tell(int(answer["done"]))
            elif "began" in answer:
                worker.current = int(answer["began"])
            else:
                worker.task, worker.current = None, None

    def _hand_out(self, waiting: list[Task], done: set[int]) -> None:
        for place in range(self.count):
            if place == len(self.workers):
                if not any(task.needs <= done for task in waiting):
                    return
                self.workers.append(_Worker(self.command, self._environment(), self.answers))
            worker = self.workers[place]
            if worker.task is None:
                ready = next((task for task in waiting if task.needs <= done), None)
                if ready is None:
                    return
                waiting.remove(ready)
                worker.give(ready)

    def _bury(self, worker: "_Worker", done: set[int]) -> Task | None:
        """Remove a worker that died; return what it has left undone, less a job that killed it twice."""
        self.workers.remove(worker)
        task, last = worker.task, worker.last_words()
        worker.end()
        if task is None:
            return None
        if worker.current is None and not task.jobs:  # it died while drawing
            raise RuntimeError(f"a worker process died while drawing {task.draw}: {last}")
        current = worker.current
        if current is None:
            current = task.jobs[0]
        self._deaths[current] = self._deaths.get(current, 0) + 1
        if self._deaths[current] >= TRIES:
            self.lost[current] = last
        left = [number for number in task.jobs if number not in done and number not in self.lost]
        return Task(left, None, set(), task.cost) if left else None

    def _environment(self) -> dict[str, str]:
        found = dict(os.environ)
        home = str(Path(__file__).resolve().parents[2])  # the workers are to find this very package
        found["PYTHONPATH"] = os.pathsep.join(part for part in (home, found.get("PYTHONPATH")) if part)
        if self.one_thread:
            found |= ONE_THREAD
            found["XLA_FLAGS"] = f"{found.get('XLA_FLAGS', '')} {EIGEN}".strip()
        return found


class _Worker:
    def __init__(
        self,
        command: Sequence[str],
        environment: dict[str, str],
        answers: "queue.Queue[tuple[_Worker, dict[str, Any] | None]]",
    ) -> None:
        self.task: Task | None = None
        self.current: int | None = None
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed by end()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=environment,
            start_new_session=True,  # Ctrl-C is the parent's
        )
        threading.Thread(target=self._read, args=(answers,), daemon=True).start()

    def _read(self, answers: "queue.Queue[tuple[_Worker, dict[str, Any] | None]]") -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                try:
                    answers.put((self, json.loads(line)))
                except ValueError:  # cut short by the worker's death
                    break
        answers.put((self, None))

    def give(self, task: Task) -> None:
        self.task, self.current = task, None
        assert self.process.stdin is not None
        content = {"jobs": task.jobs} if task.draw is None else {"draw": task.draw}
        with suppress(OSError):  # where it has died, as its reader will say
            self.process.stdin.write(json.dumps(content) + "\n")
            self.process.stdin.flush()

    def last_words(self) -> str:
        """Return the last line that the process wrote to stderr, or how it ended."""
        code = self.process.wait()
        self.errors.seek(0)
        lines = [line.strip() for line in self.errors.read().splitlines() if line.strip()]
        ending = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"{ending}; {lines[-1]}" if lines else ending

    def end(self) -> None:
        """End the process and let go of what it held."""
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None and not self.process.stdin.closed:
            with suppress(OSError):
                self.process.stdin.close()
        self.errors.close()
