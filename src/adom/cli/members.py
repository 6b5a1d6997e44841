"""Runs that a command keeps in a folder, one file each, to go on where it was ended."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ..errors import InputError
from ..util.files import atomic
from ..util.text import format_count
from .settings import USUAL, Config

MEMBERS = "members"
"""Folder of the runs, beside the table and config.toml."""
FRESH = "take another --out, or --fresh to remove them"
EARLIER = ".earlier"
"""Folder in it of the runs that `--fresh` is to remove, until the command has not been refused."""


def kept(out: Path) -> list[Path]:
    """Return the files of runs that a folder holds."""
    return [path for path in (out / MEMBERS).glob("*.npz") if re.fullmatch("[0-9a-f]{32}", path.stem)]


@contextmanager
def runs_kept(settings: Config, out: Path, command: str, *, fresh: bool) -> Iterator[None]:
    """Write config.toml, which says whose runs the folder holds; refuse it if these are not all among those asked for.

    With `fresh` they are removed instead. A command that is refused changes neither runs nor settings.
    """
    from .config import write_toml

    file, members, earlier = out / "config.toml", kept(out), out / MEMBERS / EARLIER
    before = file.read_bytes() if file.is_file() else None
    shutil.rmtree(earlier, ignore_errors=True)
    if members and fresh:
        earlier.mkdir()
        for path in members:
            path.rename(earlier / path.name)
    elif members and not _extends(settings, file, command):
        raise _another(out, len(members), FRESH)
    write_toml(settings, file, command)
    try:
        yield
    except InputError:
        for path in earlier.glob("*.npz"):
            path.rename(out / MEMBERS / path.name)
        if before is not None:
            with atomic(file) as partial:
                partial.write_bytes(before)
        elif not kept(out):
            file.unlink(missing_ok=True)
        raise
    finally:
        shutil.rmtree(earlier, ignore_errors=True)


def _extends(settings: Config, file: Path, command: str) -> bool:
    """Return whether settings are those of a file, but for lists that are longer."""
    from .compare_lists import covers
    from .config import settle, toml_text

    try:
        earlier, text = getattr(settle(file, {}, USUAL), command), file.read_text(encoding="utf-8")
    except InputError:  # it is no file of settings
        return False
    same = text == toml_text(replace(settings, **{command: earlier}), file, command)
    return same and covers(getattr(settings, command), earlier)


def refuse_members(out: Path, remedy: str) -> None:
    """Refuse a folder with the runs of a sweep or of several seeds, whose settings another command would replace."""
    if members := kept(out):
        raise _another(out, len(members), remedy)


def _another(out: Path, count: int, remedy: str) -> InputError:
    return InputError(f"{out} holds {format_count(count, 'run')} of another sweep or comparison; {remedy}")
