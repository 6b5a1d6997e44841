"""Folders that `save` writes: files of an earlier comparison or sweep are removed from them."""

import csv
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

MEMBERS = "members"
"""Folder of the results of single runs, beside the table."""
FILE = "file"
"""Column of the table with the names of the runs' files in that folder."""
KEPT = re.compile(r"[0-9a-f]{16,}\.npz")
"""Name of a file that is named by its run's key, see `adom.study.jobs`."""
BESIDE = {
    "member": ("sweep.png",),
    "problem": ("summary.csv", "table.tex", "comparison.png", "profile.png"),
    "label": ("comparison.png",),
}
"""Column that only the table of a sweep, comparisons or a comparison has -> files that `save` writes beside it."""


@contextmanager
def replaced(folder: Path) -> Iterator[list[Path]]:
    """Yield a list for the files that are written; then remove what an earlier `save` wrote and this one did not.

    The earlier files are known from the earlier table. Runs that are named by their key stay, since a later comparison
    or sweep may reuse them, and so do all other files.
    """
    before = _beside_table(folder / "table.csv")
    written: list[Path] = []
    yield written
    for path in before:
        if path not in written and not KEPT.fullmatch(path.name):
            path.unlink(missing_ok=True)


def _beside_table(table: Path) -> list[Path]:
    """Return the files that belong to the table of an earlier `save`; [] if there is no such table."""
    try:
        with table.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, ValueError, csv.Error):
        return []
    kind = next((column for column in BESIDE if rows and column in rows[0]), "")
    names = [*BESIDE.get(kind, ())]
    if kind == "label":
        names += file_names(dict.fromkeys(str(row["label"]) for row in rows)).values()
    runs = [row[FILE] for row in rows if row.get(FILE)]
    return [table.parent / name for name in names] + [table.parent / MEMBERS / Path(name).name for name in runs]


def file_names(labels: Iterable[str]) -> dict[str, str]:
    """Return a file name for each label, safe on every system and distinct even if case is ignored.

    Examples
    --------
    >>> file_names(["adom+", "ADOM, eta = 1/2", "../adom", "adom"])
    {'adom+': 'adom+.npz', 'ADOM, eta = 1/2': 'adom-eta-1-2.npz', '../adom': 'adom.npz', 'adom': 'adom-2.npz'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for label in labels:
        plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode().lower()
        stem = re.sub(r"[^a-z0-9+_]+", "-", plain).strip("-")[:60] or "method"
        name, number = stem, 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name)
        names[label] = f"{name}.npz"
    return names
