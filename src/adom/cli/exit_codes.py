"""The exit codes of the command, once: what ends with which, and how it is said in the help."""

from enum import IntEnum


class Exit(IntEnum):
    """What a command ends with."""

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
    Exit.INTERRUPTED: "interrupted by Ctrl-C: what was done is saved, where the command saves anything",
    Exit.UNREAD: "whoever read the output went away, as head does",
}
"""In words, for the help and the documentation."""


def of_run(status: str, tol: float | None) -> Exit:
    """Return the code of a run: rounds that are spent while the error falls are no failure, those that help nobody are.

    Examples
    --------
    >>> [of_run(status, 1e-8).name for status in ("converged", "max_rounds", "growing", "stalled")]
    ['DONE', 'DONE', 'FAILED', 'FAILED']
    >>> of_run("stalled", None).name  # nothing was asked for that it missed
    'DONE'
    """
    if status == "interrupted":
        return Exit.INTERRUPTED
    failed = status in {"diverged", "growing"} or (status == "stalled" and tol is not None)
    return Exit.FAILED if failed else Exit.DONE
