"""Safe reading and atomic writing of files.

A path from a user may name anything: a folder, a silent pipe, an endless device, a loop of links, nothing at all. Only
regular files of a reasonable size are read here; files are written whole or not at all.
"""

import csv
import errno
import hashlib
import math
import os
import platform
import re
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..errors import InputError, shown

if TYPE_CHECKING:
    import numpy as np

TEMPORARY = re.compile(r"\..+\.adom-[a-z0-9_]{8}\.tmp", re.DOTALL)
"""Names of files that are still being written."""
PAUSE, DAY = 60.0, 86400.0
"""Seconds between searches of a folder for such files, and the age at which their process counts as killed."""
_looked: dict[str, float] = {}
SETTINGS, DATA = 2**24, 2**33
"""Most bytes of a settings file, and of a data file."""


def kind(path: str | os.PathLike[str]) -> str:
    r"""Classify a path: "file", "folder", "nothing", or "other": a pipe, a device, a socket.

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
    """Open a regular file for reading; a pipe or a device could keep the reader waiting for ever."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "Is a directory", os.fspath(path))
    raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))


def content(path: str | os.PathLike[str], remedy: str, most: int = DATA) -> bytes:
    """Read the bytes of a regular file; `remedy` ends the message that refuses anything else."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= most:
                return file.read()
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {named(path)}: {reason(error)}; {remedy}") from None
    raise InputError(f"cannot read {path}: its {size:,} bytes are more than the {most:,} allowed; {remedy}")


def text(path: str | os.PathLike[str], remedy: str, most: int = DATA) -> str:
    """Read the text of a regular UTF-8 file, with or without a byte order mark."""
    raw = content(path, remedy, most)
    if b"\0" in raw:
        raise InputError(f"{path} is not UTF-8 text: it has zero bytes, as UTF-16 has; save it in UTF-8; {remedy}")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save it in UTF-8; {remedy}") from None


def reason(error: Exception) -> str:
    """Say in a few words why a path cannot be used."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "a file stands where a folder is needed"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "it is not a possible file name"  # a zero byte or a lone surrogate


def named(path: str | os.PathLike[str]) -> str:
    """Return a path for an error message, escaped if it cannot be printed."""
    plain = os.fspath(path)
    return plain if plain.isprintable() else shown(plain, 400)


def make_folder(path: Path, remedy: str) -> None:
    """Make a folder; refuse one that cannot be written to, before any work is done."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        fault = "it is a file" if kind(path) in ("file", "other") else reason(error)
        raise InputError(f"cannot make the folder {named(path)}: {fault}; {remedy}") from None
    try:
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise InputError(f"cannot write to the folder {named(path)}: {reason(error).lower()}; {remedy}") from None


def write_table(columns: Mapping[str, "np.ndarray"], target: Path) -> None:
    """Write columns as a CSV file, as pandas would but without loading it: all digits, and nothing for NaN."""
    cells = [["" if math.isnan(value) else value for value in column.tolist()] for column in columns.values()]
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*cells, strict=True))


@contextmanager
def atomic(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside `target` that replaces it when the block ends well, and vanishes otherwise."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(target.stat().st_mode):
                raise IsADirectoryError(errno.EISDIR, "Is a directory")
        _remove_left_over(target.parent)
        start = f".{target.name[:30]}.adom-"  # short enough even if the target's name has the greatest length
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=start, suffix=".tmp")
        os.close(handle)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write {named(target)}: {reason(error)}; choose another place") from None
    partial = Path(name)
    try:
        yield partial
        umask = os.umask(0)
        os.umask(umask)
        partial.chmod(0o666 & ~umask)
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(target)
    except OSError as error:
        raise InputError(f"cannot write {named(target)}: {reason(error)}; nothing was changed") from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def cache_dir() -> Path:
    """Return the folder of files that can be rebuilt or fetched again: $ADOM_CACHE, or `adom` in the user's cache."""
    chosen = os.environ.get("ADOM_CACHE")
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "adom"


@cache
def processor() -> str:
    """Return a digest of the processor's features, since different machines may share a home folder."""
    try:
        with Path("/proc/cpuinfo").open() as lines:  # it describes every core; the first is enough
            features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        features = platform.processor()
    return hashlib.sha256(f"{platform.machine()} {features}".encode()).hexdigest()[:12]


def _remove_left_over(folder: Path) -> None:
    """Remove temporary files of killed processes. A folder may be large, so it is searched once in a while only."""
    key, now = os.fspath(folder), time.monotonic()
    if now - _looked.get(key, -math.inf) < PAUSE:
        return
    _looked[key] = now
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if TEMPORARY.fullmatch(entry.name) and time.time() - entry.stat(follow_symlinks=False).st_mtime > DAY:
                    Path(entry.path).unlink()
