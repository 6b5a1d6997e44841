"""Errors for bad input, and helpers for their messages.

Every message gives the value, the rule and the remedy in one line. The command line prints that line and exits with
code 2; any other exception is a bug and keeps its traceback.
"""

import re
from collections.abc import Iterable
from typing import Any

LONG_WORD = re.compile(r"\S{250,}")


class InputError(ValueError):
    r"""A caller's value breaks a rule; the message gives the value, the rule and the remedy.

    The message is one readable line even if the value contains newlines or thousands of characters.

    Examples
    --------
    >>> str(InputError("cannot read a\nb; give another"))
    'cannot read a b; give another'
    """

    def __init__(self, message: object = "") -> None:
        line = " ".join(str(message).splitlines())
        super().__init__(LONG_WORD.sub(lambda word: f"{word[0][:100]}...{word[0][-50:]}", line))

    of_all_ranks = False  # whether all ranks of a job raise this error, so that only one reports it


class InputTypeError(InputError, TypeError):
    """A value has the wrong type."""


def without_remedy(error: InputError) -> str:
    """Return an error's message without its remedy, for a problem that the program solves itself.

    Examples
    --------
    >>> without_remedy(InputError("run.npz is not whole (cut short); run and save again"))
    'run.npz is not whole (cut short)'
    """
    return str(error).rpartition("; ")[0] or str(error)


def shown(value: object, most: int = 80) -> str:
    """Return the `repr` of a value for an error message, cut if it is long.

    Examples
    --------
    >>> shown("ring"), shown([0] * 1000), shown(10**5000)
    ("'ring'", '[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...', 'a number of about 5001 digits')
    """
    try:
        text = repr(value)
    except Exception:  # an integer of more than 4300 digits, or an object whose repr fails
        if isinstance(value, int):
            return f"a number of about {int(value.bit_length() * 0.30103) + 1} digits"
        return f"a {type(value).__name__}"
    return text if len(text) <= most else f"{text[: most // 2]}..."


def closest(name: object, known: Iterable[str]) -> str:
    """Return the known name closest to a given one, or "" if none is close.

    Examples
    --------
    >>> closest("rouns", ["rounds", "tol"]), closest("x", ["rounds"])
    ('rounds', '')
    """
    from difflib import get_close_matches  # loaded late: only errors need it

    return next(iter(get_close_matches(str(name).lower(), list(known), n=1, cutoff=0.5)), "")


class Damaged(ValueError):  # noqa: N818  # describes the file
    """A file does not hold what was written, or claims too much; the message gives the reason in a few words.

    `value` is the one of a wrong type, if there is one.
    """

    def __init__(self, message: str, value: Any = None) -> None:
        super().__init__(message)
        self.value = value


def nearest(name: object, known: Iterable[str], title: str = "known:") -> str:
    """Return a hint that suggests the closest valid name and lists all of them.

    Examples
    --------
    >>> nearest("rng", ["ring", "star"])
    "did you mean 'ring'? known: ring, star"
    >>> nearest("x", ["ring", "star"], "there are")
    'there are ring, star'
    """
    names = list(known)
    close = closest(name, names)
    return (f"did you mean {close!r}? " if close else "") + f"{title} {', '.join(names)}"


def how_to_install(extra: str) -> str:
    """Return how to install what an extra of the package brings; nothing is published yet, so from a clone.

    Examples
    --------
    >>> how_to_install("mpi")
    "in a clone of adom, pip install '.[mpi]'"
    """
    return f"in a clone of adom, pip install '.[{extra}]'"


NEEDS_MPI = f"engine 'mpi' needs mpi4py and an MPI: {how_to_install('mpi')}"
"""Error shown when MPI is unavailable."""
