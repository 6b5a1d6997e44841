"""Progress bar, and Ctrl-C as a request to stop."""

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class Progress:
    """Progress bar with rounds (or another unit), time left and error; shown only on a terminal by default."""

    def __init__(self, total: int, title: str, show: bool | None = None, unit: str = "rounds") -> None:
        self.total, self.title, self.unit = total, title, unit
        self.show = sys.stderr.isatty() if show is None else show
        self._bar: Any = None

    def __enter__(self) -> Self:
        if self.show:
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
        """Move the bar to `done`."""
        if self._bar is not None:
            self._bar.update(self._task, completed=min(done, self.total), note=note)


class Interrupt:
    """Turn the first Ctrl-C into `asked = True`; a second one interrupts as usual."""

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
