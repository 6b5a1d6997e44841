"""Exit codes of the commands, and their meaning in words."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit code of a command."""

    DONE = 0
    FAILED = 1
    REFUSED = 2
    BUG = 70
    INTERRUPTED = 130
    UNREAD = 141


MEANING = {
    Exit.DONE: "done",
    Exit.FAILED: "it ran and failed: diverged, growing, stalled above the tolerance, a lemma broken, "
    "a data file wrong, runs or ranks lost",
    Exit.REFUSED: "bad input: one line on stderr says the value, the rule and the remedy",
    Exit.BUG: "a bug in adom: please report it",
    Exit.INTERRUPTED: "interrupted by Ctrl-C: finished work is saved, where the command saves anything",
    Exit.UNREAD: "the reader of the output closed it, as head does",
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
