"""Where an error arose in code of the user's own, in words."""

import sys
import traceback
from pathlib import Path
from typing import Any

MOST = 300
"""Letters of an error that are shown."""
COMPILED = {
    "TracerBoolConversionError": "steps are compiled: take jnp.where in place of `if`",
    "TracerArrayConversionError": "steps are compiled: take jax.numpy in place of NumPy",
    "TracerIntegerConversionError": "steps are compiled: take no number of an array for a length or an index of a list",
    "ConcretizationTypeError": "steps are compiled: take no number out of an array",
}
"""Errors of JAX at code that wants numbers where there are none yet, and their remedies."""


def files_of(named: Any) -> list[str]:
    """Return the user's files that a function, or a class with its bases, is written in; none for our own."""
    owners = named.__mro__ if isinstance(named, type) else (named if hasattr(named, "__module__") else type(named),)
    modules = dict.fromkeys(owner.__module__ for owner in owners)
    others = [sys.modules.get(name) for name in modules if name.partition(".")[0] != "adom"]
    return [module.__file__ for module in others if getattr(module, "__file__", None)]  # type: ignore[union-attr,misc]


def place(error: BaseException, files: list[str]) -> str:
    """Return the last line of these files, by path or by name alone, that an error passed through; "" if of none.

    Examples
    --------
    >>> try:
    ...     Path("none").read_text()
    ... except OSError as error:
    ...     place(error, ["mine.py"])
    ''
    """
    if isinstance(error, SyntaxError) and _is_one_of(error.filename or "", files):
        return f"{Path(str(error.filename)).name}, line {error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_one_of(frame.filename, files)]
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""


def _is_one_of(file: str, files: list[str]) -> bool:
    return file in files or Path(file).name in files


def remedy(error: BaseException) -> str:
    """Return what to do about an error in code of the user's own.

    Examples
    --------
    >>> remedy(ZeroDivisionError("division by zero"))
    'mend it'
    """
    return COMPILED.get(type(error).__name__, "mend it")


def in_words(error: BaseException, at: str = "") -> str:
    """Return an error in one line, and where it arose.

    Examples
    --------
    >>> in_words(ZeroDivisionError("division by zero"), "mine.py, line 3")
    'ZeroDivisionError: division by zero (mine.py, line 3)'
    """
    name, text = type(error).__name__, str(error.msg if isinstance(error, SyntaxError) else error)
    text = " ".join((text.partition("\n")[0] if name in COMPILED else text).split())  # the rest is of JAX's own insides
    text = text if len(text) <= MOST else f"{text[:MOST]}..."
    return (f"{name}: {text}" if text else name) + (f" ({at})" if at else "")
