"""Progress as a bar, as lines or as files written during a run, and Ctrl-C as a request to stop."""

import json
import math
import signal
import sys
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

import numpy as np

from ..util.columns import ADDING, BY_LINKS
from ..util.text import format_duration, json_ready

if TYPE_CHECKING:
    from .recorder import History

FIRST, LAST, GROWTH = 5.0, 60.0, 1.5
"""Seconds to the first line of progress, the most between two lines, and the factor by which they grow."""


class Pace:
    """Says when a line of progress is due: ever more rarely. Runs that follow one another share one pace."""

    def __init__(self) -> None:
        self._began = self._seen = -LAST
        self._next = FIRST

    def begin(self) -> None:
        """Start anew, unless something was under way a moment ago."""
        now = time.monotonic()
        if now - self._seen >= LAST:
            self._began, self._next = now, FIRST
        self._seen = now

    def due(self) -> bool:
        """Return whether it is time for a line."""
        self._seen = time.monotonic()
        passed = self._seen - self._began
        if passed < self._next:
            return False
        self._next = passed + min(GROWTH * self._next, LAST)
        return True


PACE = Pace()
"""The pace of this process: many short runs, none of them worth a line, are worth one together."""


class Progress:
    """Progress with rounds (or another unit) and error: a bar with the time left, or plain lines now and then.

    Parameters
    ----------
    total : int
    title : str
    show : bool, optional
        True: a bar. False: nothing. By default, a bar on a terminal and lines elsewhere, such as in a batch job's log.
    unit : str
    plain : bool
        Lines in place of a bar: for ranks, whose output is forwarded.
    """

    def __init__(
        self, total: int, title: str, show: bool | None = None, unit: str = "rounds", *, plain: bool = False
    ) -> None:
        self.total, self.title, self.unit = total, title, unit
        self.bar = not plain and (sys.stderr.isatty() if show is None else show)
        self.lines = not self.bar and show is not False
        self._began = time.monotonic()
        self._bar: Any = None
        PACE.begin()

    def __enter__(self) -> Self:
        if self.bar:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn(self.unit),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True, force_terminal=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(self.title, total=self.total, note="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def update(self, done: int, note: str = "") -> None:
        """Move the bar to `done`, or print a line if it is time."""
        if self._bar is not None:
            self._bar.update(self._task, completed=min(done, self.total), note=note)
        elif self.lines and PACE.due():
            count = f"round {done:,} of {self.total:,}"
            if self.unit != "rounds":
                count = f"{done:,} of {self.total:,} {self.unit}"
            passed = format_duration(time.monotonic() - self._began)
            words = f"{self.title}: {count}{note and f', {note}'}, after {passed}"
            print(words, file=sys.stderr, flush=True)


class Interrupt:
    """Turn the first Ctrl-C into `asked = True`; a second one interrupts as usual.

    It may be entered again within itself, so that several runs share one.
    """

    def __init__(self) -> None:
        self.asked = False
        self._depth = 0
        self._before: Any = None

    def __enter__(self) -> Self:
        self._depth += 1
        if self._depth == 1 and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth == 0 and self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


BEGIN = 2.0
"""Seconds before a run writes anything; shorter runs write nothing."""
FLUSH = 1.0
"""Seconds between writes."""
MOST = 200
"""Most records per write; from more, this many are chosen evenly, including the last."""


class Journal:
    """Appends the records of a run to ``history.csv`` and ``history.jsonl``.

    Parameters
    ----------
    folder : Path
        Where the files go; those of an earlier run are replaced when the first record is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stage = 0  # number of the run in a fit of several runs
        self._began = self._written = time.monotonic()
        self._waiting: list[dict[str, np.ndarray]] = []
        self._seen = 0
        self._ends: dict[str, float] = {}
        self._files: list[IO[str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._files:
            self._write()
        for file in self._files:
            file.close()

    def next_stage(self) -> None:
        """Begin another run of the same fit; its counts continue those of the last run."""
        self.stage += 1
        self._seen = 0
        if self.last:
            self._ends = {name: self.last[name] for name in ADDING if name not in BY_LINKS}

    last: dict[str, float] = {}  # noqa: RUF012  # replaced, never changed

    def take(self, history: "History") -> None:
        """Take a history's new records, and write them if it is time."""
        tables = history.tables[self._seen :]
        if not tables:
            return
        self._seen = len(history.tables)
        columns = history.columns(np.concatenate(tables))
        for name, before in self._ends.items():
            columns[name] = columns[name] + before
        if self.stage:
            columns = {"stage": np.full(len(columns["round"]), self.stage), **columns}
        self.last = {name: column[-1].item() for name, column in columns.items()}
        self._waiting.append(columns)
        now = time.monotonic()
        if now - self._began >= BEGIN and now - self._written >= FLUSH:
            self._write()
            self._written = time.monotonic()

    def _write(self) -> None:
        """Append the waiting records to the files, at most `MOST` of them."""
        if not self._waiting:
            return
        names = list(self._waiting[0])
        if not self._files:
            self._open(names)
        columns = [np.concatenate([part[name] for part in self._waiting]) for name in names]
        self._waiting.clear()
        count = len(columns[0])
        chosen = np.unique(np.linspace(0, count - 1, min(count, MOST)).round().astype(int))
        table, lines = self._files
        for row in zip(*(column[chosen].tolist() for column in columns), strict=True):
            table.write(",".join("" if math.isnan(value) else repr(value) for value in row) + "\n")
            lines.write(json.dumps(json_ready(dict(zip(names, row, strict=True)))) + "\n")
        for file in self._files:
            file.flush()

    def _open(self, names: list[str]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = (self.folder / "history.csv", self.folder / "history.jsonl")
        self._files = [path.open("w", encoding="utf-8", newline="\n") for path in paths]
        self._files[0].write(",".join(names) + "\n")


def following(folder: Any, journal: Journal | None = None) -> AbstractContextManager[Journal | None]:
    """Return the given journal, which its owner closes, or a new one in `folder`, or None without a folder."""
    if journal is not None or folder is None:
        return nullcontext(journal)
    return Journal(Path(folder))
