"""Exit codes of the commands, and their meaning in words; SIGTERM as Ctrl-C."""

import signal
from enum import IntEnum
from types import FrameType
from typing import Any


class Exit(IntEnum):
    """Exit code of a command."""

    DONE = 0
    FAILED = 1
    REFUSED = 2
    BUG = 70
    INTERRUPTED = 130
    UNREAD = 141
    ENDED = 143


MEANING = {
    Exit.DONE: "done",
    Exit.FAILED: "it ran and failed: diverged, growing, stalled above the tolerance, a lemma broken, "
    "a data file wrong, runs or ranks lost",
    Exit.REFUSED: "bad input: one line on stderr says the value, the rule and the remedy",
    Exit.BUG: "a bug in adom: please report it",
    Exit.INTERRUPTED: "interrupted by Ctrl-C: finished work is saved, where the command saves anything",
    Exit.UNREAD: "the reader of the output closed it, as head does",
    Exit.ENDED: "ended by SIGTERM, as batch systems do when time is over: as for Ctrl-C, finished work is saved",
}


def of_run(status: str, tol: float | None) -> Exit:
    """Return the exit code of a run; running out of rounds is not a failure.

    Examples
    --------
    >>> [of_run(status, 1e-8).name for status in ("converged", "max_rounds", "growing", "stalled")]
    ['DONE', 'DONE', 'FAILED', 'FAILED']
    >>> of_run("stalled", None).name  # it missed no tolerance
    'DONE'
    """
    if status == "interrupted":
        return Exit.INTERRUPTED
    failed = status in {"diverged", "growing"} or (status == "stalled" and tol is not None)
    return Exit.FAILED if failed else Exit.DONE


class Ending:
    """SIGTERM as Ctrl-C: what that would do happens, once, and the exit code says which of the two it was."""

    def __init__(self) -> None:
        self.asked = False

    def listen(self) -> None:
        """Handle SIGTERM from now on."""
        signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:  # `timeout` and batch systems may send it to the process, and again to its group
            return
        self.asked = True
        at_ctrl_c: Any = signal.getsignal(signal.SIGINT)
        if not callable(at_ctrl_c):  # a shell's background job ignores Ctrl-C
            raise KeyboardInterrupt
        at_ctrl_c(signal.SIGINT, frame)

    def code(self, code: int) -> int:
        """Return the exit code of a command that would end with `code`."""
        return Exit.ENDED if self.asked and code == Exit.INTERRUPTED else code
