"""Errors in the user's own code, in words: what they are, where they arose, and what to do."""

import sys
import traceback
from pathlib import Path
from typing import Any

MOST = 300
"""Most characters of an error to show."""
COMPILED = {
    "TracerBoolConversionError": "steps are compiled: use jnp.where instead of `if`",
    "TracerArrayConversionError": "steps are compiled: use jax.numpy instead of NumPy",
    "TracerIntegerConversionError": "steps are compiled: do not use a number from an array as a length or list index",
    "ConcretizationTypeError": "steps are compiled: do not convert an array to a Python number",
}
"""JAX's errors about code that needs concrete numbers during tracing, and their remedies."""


def files_of(named: Any) -> list[str]:
    """Return the user's files that define a function, or a class and its bases; none for code of adom."""
    owners = named.__mro__ if isinstance(named, type) else (named if hasattr(named, "__module__") else type(named),)
    modules = dict.fromkeys(owner.__module__ for owner in owners)
    others = [sys.modules.get(name) for name in modules if name.partition(".")[0] != "adom"]
    return [module.__file__ for module in others if getattr(module, "__file__", None)]  # type: ignore[union-attr,misc]


def place(error: BaseException, files: list[str]) -> str:
    """Return the last line of `files` (paths or bare names) that an error passed through; "" if none.

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
    """Return what to do about an error in the user's own code.

    Examples
    --------
    >>> remedy(ZeroDivisionError("division by zero"))
    'fix it'
    """
    return COMPILED.get(type(error).__name__, "fix it")


def in_words(error: BaseException, at: str = "") -> str:
    """Return an error in one line, and where it arose.

    Examples
    --------
    >>> in_words(ZeroDivisionError("division by zero"), "mine.py, line 3")
    'ZeroDivisionError: division by zero (mine.py, line 3)'
    """
    name, text = type(error).__name__, str(error.msg if isinstance(error, SyntaxError) else error)
    text = " ".join((text.partition("\n")[0] if name in COMPILED else text).split())  # the rest is JAX's internals
    text = text if len(text) <= MOST else f"{text[:MOST]}..."
    return (f"{name}: {text}" if text else name) + (f" ({at})" if at else "")
