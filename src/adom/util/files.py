"""Files that others give, and files that we write.

A path may name anything: a folder, a pipe that nobody writes to, a device without an end, a loop of links, nothing at
all, or no possible file. What is read here is a regular file of a bearable size; what is written is whole or not there.
"""

import errno
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from ..errors import InputError, shown

SETTINGS, DATA = 2**24, 2**33
"""The most bytes of a file that people write, and of one that machines write."""


def kind(path: str | os.PathLike[str]) -> str:
    r"""Return what a path names: "file", "folder", "nothing", or "other": a pipe, a device, a socket.

    Examples
    --------
    >>> kind("/"), kind("/dev/null"), kind("x" * 300), kind("no\0path")
    ('folder', 'other', 'nothing', 'nothing')
    """
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return "nothing"
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


def open_regular(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file for reading, if it is one: a pipe or a device could keep the reader waiting for ever."""
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(number, "rb")
    os.close(number)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "Is a directory", os.fspath(path))
    raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))


def content(path: str | os.PathLike[str], remedy: str, most: int = DATA) -> bytes:
    """Return the bytes of a regular file; `remedy` ends the line that refuses anything else."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= most:
                return file.read()
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {named(path)}: {reason(error)}; {remedy}") from None
    raise InputError(f"cannot read {path}: its {size:,} bytes are more than the {most:,} that it may have; {remedy}")


def text(path: str | os.PathLike[str], remedy: str, most: int = DATA) -> str:
    """Return the text of a regular file in UTF-8, with or without a byte order mark."""
    raw = content(path, remedy, most)
    if b"\0" in raw:
        raise InputError(
            f"{path} is no text file in UTF-8: it has zero bytes, as UTF-16 has; save it in UTF-8; {remedy}"
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is no text file in UTF-8; save it in UTF-8; {remedy}") from None


def reason(error: Exception) -> str:
    """Return in a few words why a path cannot be used, whatever Python raised."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "a file stands where a folder is needed"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "no file can be called so"  # a zero byte, or a character that there is none of


def named(path: str | os.PathLike[str]) -> str:
    """Return a path as an error shows it: as it is, unless it cannot be printed."""
    plain = os.fspath(path)
    return plain if plain.isprintable() else shown(plain, 400)


class atomic:  # noqa: N801  # reads as a verb in a with-statement
    """A temporary path beside `target` that replaces it when the block ends well, and vanishes otherwise."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __enter__(self) -> Path:
        try:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                if stat.S_ISDIR(self.target.stat().st_mode):
                    raise IsADirectoryError(errno.EISDIR, "Is a directory")
            start = f".{self.target.name[:30]}."  # what is as long as a name may be must leave room
            handle, name = tempfile.mkstemp(dir=self.target.parent, prefix=start, suffix=".tmp")
        except (OSError, ValueError) as error:
            raise self._refused(error, "choose another place") from None
        os.close(handle)
        self.partial = Path(name)
        return self.partial

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        try:
            if kind is None:
                self.partial.chmod(0o666 & ~_umask())
                with self.partial.open("rb") as file:
                    os.fsync(file.fileno())
                self.partial.replace(self.target)
        except OSError as trouble:
            error = trouble
        if error is not None:
            with suppress(OSError):
                self.partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise self._refused(error, "nothing was changed") from None

    def _refused(self, error: Exception, remedy: str) -> InputError:
        return InputError(f"cannot write {named(self.target)}: {reason(error)}; {remedy}")


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
