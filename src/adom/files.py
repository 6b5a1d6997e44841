"""Files that others give: read whole if they are regular files of a bearable size, refused in one line otherwise.

A path may name anything: a folder, a pipe that nobody writes to, a device without an end, a loop of links, nothing at
all, or no possible file.
"""

import os
import stat
from pathlib import Path

from .errors import InputError, shown

SETTINGS, DATA = 2**24, 2**33
"""The most bytes of a file that people write, and of one that machines write."""


def kind(path: str | os.PathLike[str]) -> str:
    """Return what a path names: "file", "folder", "nothing", or "other": a pipe, a device, a socket.

    Examples
    --------
    >>> kind("/"), kind("/dev/null"), kind("x" * 300), kind("no\\0path")
    ('folder', 'other', 'nothing', 'nothing')
    """
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return "nothing"
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


def content(path: str | os.PathLike[str], remedy: str, most: int = DATA) -> bytes:
    """Return the bytes of a regular file; `remedy` ends the line that refuses anything else."""
    try:
        # A pipe is opened without waiting for its writer, and what was opened is what is looked at.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            state = os.fstat(handle)
            if stat.S_ISREG(state.st_mode) and state.st_size <= most:
                with open(handle, "rb", closefd=False) as file:  # noqa: PTH123  # it is open already
                    return file.read()
        finally:
            os.close(handle)
    except OSError as error:
        raise InputError(f"cannot read {os.fspath(path)}: {error.strerror or error}; {remedy}") from None
    except ValueError as error:  # a zero byte, or a character that no file system has
        raise InputError(f"cannot read {shown(os.fspath(path))}: no file can be called so ({error}); {remedy}") from None
    if stat.S_ISREG(state.st_mode):
        raise InputError(f"cannot read {path}: its {state.st_size:,} bytes are more than the {most:,} allowed; {remedy}")
    what = "Is a directory" if stat.S_ISDIR(state.st_mode) else "it is a pipe or a device, not a file"
    raise InputError(f"cannot read {path}: {what}; {remedy}")


def text(path: str | os.PathLike[str], remedy: str, most: int = DATA) -> str:
    """Return the text of a regular file in UTF-8, with or without a byte order mark."""
    raw = content(path, remedy, most)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        wide = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
        raise InputError(f"{path} is no text file in UTF-8{' but in UTF-16' if wide else ''}; {remedy}") from None
