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
    Exit.FAILED: "it ran and failed: diverged, a lemma broken, a data file wrong, runs or ranks lost",
    Exit.REFUSED: "bad input: one line on stderr says the value, the rule and the remedy",
    Exit.BUG: "a bug in adom: please report it",
    Exit.INTERRUPTED: "interrupted by Ctrl-C: what was done is saved, where the command saves anything",
    Exit.UNREAD: "whoever read the output went away, as head does",
}
"""In words, for the help and the documentation."""

BY_STATUS = {"diverged": Exit.FAILED, "interrupted": Exit.INTERRUPTED}
"""By the status of a run; all other statuses end with `DONE`."""
