"""Lock on a folder that one job at a time may write to, on one or several machines.

The file system's own lock (flock) ends with its process, so a killed job leaves no lock behind. Some network file
systems have no such lock, or one that other machines do not see. So the holder also writes its name into the file, and
a sign of life every two seconds. A job that finds the name of a process on another machine watches for these signs.
"""

import errno
import json
import os
import secrets
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ...errors import InputError

try:
    import fcntl
except ImportError:  # Windows: the name in the file must suffice
    fcntl = None  # type: ignore[assignment]  # asked for before each use

NAME = ".lock"
SIZE = 512
BEAT = 2.0
"""Seconds from one sign of life to the next."""
LOOK = 3.5 * BEAT
"""Seconds to watch for a sign of life from another machine."""
SETTLE = 0.3
"""Seconds after which the later of two names written at once has replaced the other."""


class FolderLock:
    """A lock on a folder, held within a with-block; raises InputError if another job holds it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / NAME
        self._me = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "started": started(os.getpid()),
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
            "token": secrets.token_hex(8),
        }
        self._over = threading.Event()

    def __enter__(self) -> Self:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file, locked = self._open()
            before = _read(self.path)
            if before and self._lives(before, locked):
                os.close(self._file)
                raise self._refusal(before)
            self._write(0)
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror}; choose another place") from None
        if before or not locked:  # another job may have done the same at the same time
            time.sleep(SETTLE)
            now = _read(self.path)
            if now.get("token") != self._me["token"]:
                os.close(self._file)
                raise self._refusal(now)
        threading.Thread(target=self._beat, name="adom-lock", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        with suppress(OSError):
            if _same(self._file, self.path):
                self.path.unlink()
        os.close(self._file)

    def _open(self) -> tuple[int, bool]:
        """Return the lock's file, and whether the file system has locked it."""
        while True:
            number = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            locked = False
            try:
                if fcntl is not None:
                    fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    locked = True
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.EACCES):
                    os.close(number)
                    raise self._refusal(_read(self.path)) from None
            if _same(number, self.path):  # not one that its holder has just removed
                return number, locked
            os.close(number)

    def _lives(self, holder: dict[str, Any], locked: bool) -> bool:
        """Return whether the process that a lock names is alive."""
        if holder.get("host") == self._me["host"]:
            return not locked and started(holder.get("pid")) == holder.get("started") is not None
        print(
            f"adom: {self.folder} is marked as in use by {_name(holder)}; checking for {LOOK:g} s whether it still is",
            file=sys.stderr,
            flush=True,
        )
        end = time.monotonic() + LOOK
        while time.monotonic() < end:
            time.sleep(LOOK / 20)
            now = _read(self.path)  # reopened: network file systems refresh only then
            if now and now != holder:
                return True
        return False

    def _refusal(self, holder: dict[str, Any]) -> InputError:
        return InputError(
            f"{self.folder} is in use by {_name(holder)}; wait until it has ended, or take another folder"
        )

    def _write(self, beat: int) -> None:
        # Of fixed length, so that nobody reads half of it.
        text = json.dumps({**self._me, "beat": beat}).encode().ljust(SIZE)
        os.ftruncate(self._file, SIZE)
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, text)
        os.fsync(self._file)

    def _beat(self) -> None:
        beat = 0
        while not self._over.wait(BEAT):
            beat += 1
            with suppress(OSError):
                self._write(beat)


def started(pid: Any) -> str | None:
    """Return the start time of a process of this machine; None if it does not exist."""
    try:
        return Path(f"/proc/{int(pid)}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    except (OSError, ValueError, TypeError, IndexError):
        return None


def _read(path: Path) -> dict[str, Any]:
    """Return the holder that a lock names; {} if it names none."""
    try:
        holder = json.loads(path.read_bytes()[:SIZE])
    except (OSError, ValueError, RecursionError):
        return {}
    return holder if isinstance(holder, dict) else {}


def _name(holder: dict[str, Any]) -> str:
    if not holder:
        return "another job"
    return f"process {holder.get('pid')} on {holder.get('host')} (since {holder.get('since')})"


def _same(number: int, path: Path) -> bool:
    """Return whether an open file still has that name."""
    try:
        return os.path.samestat(os.fstat(number), path.stat())
    except OSError:
        return False
