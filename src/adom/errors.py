"""The one kind of error that bad input raises.

Every message says the value, the rule and the remedy in one line. The command line prints that line and
exits with code 2; anything else that is raised is a bug and keeps its traceback.
"""

import re
from collections.abc import Iterable

ENDLESS = re.compile(r"\S{250,}")
"""A word that nobody reads to its end."""


class InputError(ValueError):
    r"""A value that a caller gave breaks a rule; the message says which value, which rule, and what to do.

    It is one line that can be read whatever was given, such as a path with a newline in it or of 5000 characters.

    Examples
    --------
    >>> str(InputError("cannot read a\nb; give another"))
    'cannot read a b; give another'
    """

    def __init__(self, message: object = "") -> None:
        line = " ".join(str(message).splitlines())
        super().__init__(ENDLESS.sub(lambda word: f"{word[0][:100]}...{word[0][-50:]}", line))

    of_all_ranks = False  # whether all ranks of a job refuse the same, so that one may speak for them


class InputTypeError(InputError, TypeError):
    """A value is of the wrong kind altogether."""


def shown(value: object, most: int = 80) -> str:
    """Return a value as an error shows it: as Python writes it, cut where that is long.

    Examples
    --------
    >>> shown("ring"), shown([0] * 1000), shown(10**5000)
    ("'ring'", '[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...', 'a number of about 5001 digits')
    """
    try:
        text = repr(value)
    except Exception:  # Python writes out no number of more than 4300 digits, and an object may fail to show itself
        if isinstance(value, int):
            return f"a number of about {int(value.bit_length() * 0.30103) + 1} digits"
        return f"a {type(value).__name__}"
    return text if len(text) <= most else f"{text[: most // 2]}..."


def closest(name: object, known: Iterable[str]) -> str:
    """Return the known name that may be meant by another one, "" where none is near.

    Examples
    --------
    >>> closest("rouns", ["rounds", "rtol"]), closest("x", ["rounds"])
    ('rounds', '')
    """
    from difflib import get_close_matches  # loaded late: only errors need it

    return next(iter(get_close_matches(str(name).lower(), list(known), n=1, cutoff=0.5)), "")


def nearest(name: object, known: Iterable[str], title: str = "known:") -> str:
    """Return what an error says of a name that is not known: the one that may be meant, and all there are.

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


NEEDS_MPI = "engine 'mpi' needs mpi4py and an MPI: pip install 'adom-opt[mpi]'"
"""What is said where several processes are asked for and there is nothing to connect them."""
