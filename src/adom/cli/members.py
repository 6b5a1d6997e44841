"""Runs that a command keeps in a folder, one file each, to go on where it was ended."""

import re
from dataclasses import replace
from pathlib import Path

from ..errors import InputError
from .settings import USUAL, Config

MEMBERS = "members"
"""Folder of the runs, beside the table and config.toml."""


def kept(out: Path) -> list[Path]:
    """Return the files of runs that a folder holds."""
    return [path for path in (out / MEMBERS).glob("*.npz") if re.fullmatch("[0-9a-f]{32}", path.stem)]


def old_members(settings: Config, out: Path, fresh: bool, command: str) -> list[Path]:
    """Return the runs in the folder to remove; refuse a folder with runs that are not all among those asked for."""
    members = kept(out)
    if fresh:
        return members
    if members and not _extends(settings, out / "config.toml", command):
        raise _another(out, len(members), command)
    return []


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


def refuse_members(out: Path, fresh: bool) -> None:
    """Refuse a folder that holds runs of several seeds, which a plain comparison would leave beside its own."""
    members = kept(out)
    if members and not fresh:
        raise _another(out, len(members), "compare")
    for path in members:
        path.unlink(missing_ok=True)


def _another(out: Path, count: int, command: str) -> InputError:
    whose = {"sweep": "members of another sweep", "compare": "runs of another comparison"}[command]
    return InputError(f"{out} holds {count} {whose}; take another --out, or --fresh to remove them")
