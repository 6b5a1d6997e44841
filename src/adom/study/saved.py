"""Folders that `save` writes: what an earlier comparison or sweep left in one makes room for the next."""

import csv
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

MEMBERS = "members"
"""Folder of the results of single runs, beside the table of all."""
FILE = "file"
"""The column of that table that names a run's file there."""
KEPT = re.compile(r"[0-9a-f]{16,}\.npz")
"""The name of a file after a digest of what gave it."""
BESIDE = {
    "member": ("sweep.png",),
    "problem": ("summary.csv", "table.tex", "comparison.png", "profile.png"),
    "label": ("comparison.png",),
}
"""A column by which the table of a sweep, of comparisons or of a comparison is known, and what stands beside it."""


@contextmanager
def replaced(folder: Path) -> Iterator[list[Path]]:
    """Yield a list for the files that are written; then remove what an earlier `save` wrote and this one did not.

    Those are the files that its table tells of, but for runs that are called by what gave them: a later comparison or
    sweep may find them by that name. Everything else stays.
    """
    before = _beside_table(folder / "table.csv")
    written: list[Path] = []
    yield written
    for path in before:
        if path not in written and not KEPT.fullmatch(path.name):
            path.unlink(missing_ok=True)


def _beside_table(table: Path) -> list[Path]:
    """Return the files that belong to the table of an earlier `save`; none where there is no such table."""
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
    """Return a file name for each label: safe on every system, and no two the same even where case is ignored.

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
