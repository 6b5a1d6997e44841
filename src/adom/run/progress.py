"""Progress as a bar or as lines, and Ctrl-C as a request to stop."""

import signal
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any, Self

from ..util.text import format_duration

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
