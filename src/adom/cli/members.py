"""Runs that a command keeps in a folder, one file each, to go on where it was ended."""

import re
from pathlib import Path

from ..errors import InputError
from .settings import Config

MEMBERS = "members"
"""Folder of the runs, beside the table and config.toml."""


def kept(out: Path) -> list[Path]:
    """Return the files of runs that a folder holds."""
    return [path for path in (out / MEMBERS).glob("*.npz") if re.fullmatch("[0-9a-f]{32}", path.stem)]


def old_members(settings: Config, out: Path, fresh: bool, command: str) -> list[Path]:
    """Return the runs in the folder to remove; refuse a folder that holds those of other settings."""
    from .config import toml_text

    file, members = out / "config.toml", kept(out)
    if fresh:
        return members
    try:
        same = not members or file.read_text(encoding="utf-8") == toml_text(settings, file, command)
    except (OSError, UnicodeDecodeError):
        same = False
    if not same:
        raise _another(out, len(members), command)
    return []


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
