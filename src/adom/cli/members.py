"""Runs that a command saves in a folder, one file each, so that it can resume."""

import re
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import InputError, shown
from ..util.files import atomic
from ..util.text import format_count
from .settings import SETTINGS, USUAL, Config

MEMBERS = "members"
"""Folder of the runs, beside the table and config.toml."""
FRESH = "take another --out, or --fresh to remove them"
EARLIER = ".earlier"
"""Folder inside `MEMBERS` for the runs that `--fresh` removes, once the command is sure not to be refused."""
NAMED = 4
"""The most differing settings to name."""


def kept(out: Path) -> list[Path]:
    """Return the files of runs that a folder holds."""
    return [path for path in (out / MEMBERS).glob("*.npz") if re.fullmatch("[0-9a-f]{32}", path.stem)]


@contextmanager
def runs_kept(settings: Config, out: Path, command: str, *, fresh: bool) -> Iterator[None]:
    """Write the settings to the folder's config.toml; refuse a folder with runs that they do not cover.

    With `fresh`, the folder's runs are removed instead. A refused command changes neither runs nor settings.
    """
    from .config import write_toml

    file, members, earlier = out / "config.toml", kept(out), out / MEMBERS / EARLIER
    before = file.read_bytes() if file.is_file() else None
    shutil.rmtree(earlier, ignore_errors=True)
    if members and fresh:
        earlier.mkdir()
        for path in members:
            path.rename(earlier / path.name)
    elif members and (others := _others(settings, file, command)):
        refuse_runs(out, others, FRESH)
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


def refuse_runs(out: Path, which: str, remedy: str) -> None:
    """Refuse a folder that holds runs, since the command would overwrite their settings."""
    if members := kept(out):
        raise InputError(f"{out} holds {format_count(len(members), 'run')} {which}; {remedy}")


def _others(settings: Config, file: Path, command: str) -> str:
    """Return in words how the settings of a file differ from these; "" if they are the same, or have shorter lists."""
    from .compare_lists import uncovered
    from .config import settle, toml_text

    try:
        earlier = settle(file, {}, USUAL)
    except InputError:  # not a file of settings
        return "of another comparison" if command == "compare" else "of another sweep"
    old, new = (_by_name(tomllib.loads(toml_text(each, file, command))) for each in (earlier, settings))
    lists = uncovered(getattr(settings, command), getattr(earlier, command))
    names = [
        (table, name)
        for table, name in SETTINGS
        if (name in lists if table == command else old.get((table, name)) != new.get((table, name)))
    ]
    parts = [f"{_called(*at)} {_text(old.get(at))} (now {_text(new.get(at))})" for at in names[:NAMED]]
    parts += [f"{len(names) - NAMED} more settings"] if len(names) > NAMED else []
    return f"with {', '.join(parts)}" if parts else ""


def _by_name(tables: dict[str, Any]) -> dict[tuple[str, str], Any]:
    return {(table, name): value for table, values in tables.items() for name, value in values.items()}


def _called(table: str, name: str) -> str:
    """Return the name of a setting's option, without dashes.

    Examples
    --------
    >>> _called("network", "kind"), _called("run", "rounds")
    ('network', 'rounds')
    """
    return SETTINGS[table, name].flag.removeprefix("--")


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else f"{value:.15g}" if isinstance(value, float) else shown(value)
