"""Records of a run, written to files while it is running."""

import json
import math
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from ..util.columns import ADDING, BY_LINKS
from ..util.text import json_ready
from .recorder import History

BEGIN = 2.0
"""Seconds before a run writes anything; shorter runs write nothing."""
FLUSH = 1.0
"""Seconds between writes."""
MOST = 200
"""Most records per write; from more, this many are chosen evenly, including the last."""


class Journal:
    """Appends the records of a run to ``history.csv`` and ``history.jsonl``.

    Parameters
    ----------
    folder : Path
        Where the files go; those of an earlier run are replaced when the first record is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stage = 0  # number of the run in a fit of several runs
        self._began = self._written = time.monotonic()
        self._waiting: list[dict[str, np.ndarray]] = []
        self._seen = 0
        self._ends: dict[str, float] = {}
        self._files: list[IO[str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._files:
            self._write()
        for file in self._files:
            file.close()

    def next_stage(self) -> None:
        """Begin another run of the same fit; its counts continue those of the last run."""
        self.stage += 1
        self._seen = 0
        if self.last:
            self._ends = {name: self.last[name] for name in ADDING if name not in BY_LINKS}

    last: dict[str, float] = {}  # noqa: RUF012  # replaced, never changed

    def take(self, history: History) -> None:
        """Take a history's new records, and write them if it is time."""
        tables = history.tables[self._seen :]
        if not tables:
            return
        self._seen = len(history.tables)
        columns = history.columns(np.concatenate(tables))
        for name, before in self._ends.items():
            columns[name] = columns[name] + before
        if self.stage:
            columns = {"stage": np.full(len(columns["round"]), self.stage), **columns}
        self.last = {name: column[-1].item() for name, column in columns.items()}
        self._waiting.append(columns)
        now = time.monotonic()
        if now - self._began >= BEGIN and now - self._written >= FLUSH:
            self._write()
            self._written = time.monotonic()

    def _write(self) -> None:
        """Append the waiting records to the files, at most `MOST` of them."""
        if not self._waiting:
            return
        names = list(self._waiting[0])
        if not self._files:
            self._open(names)
        columns = [np.concatenate([part[name] for part in self._waiting]) for name in names]
        self._waiting.clear()
        count = len(columns[0])
        chosen = np.unique(np.linspace(0, count - 1, min(count, MOST)).round().astype(int))
        table, lines = self._files
        for row in zip(*(column[chosen].tolist() for column in columns), strict=True):
            table.write(",".join("" if math.isnan(value) else repr(value) for value in row) + "\n")
            lines.write(json.dumps(json_ready(dict(zip(names, row, strict=True)))) + "\n")
        for file in self._files:
            file.flush()

    def _open(self, names: list[str]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = (self.folder / "history.csv", self.folder / "history.jsonl")
        self._files = [path.open("w", encoding="utf-8", newline="\n") for path in paths]
        self._files[0].write(",".join(names) + "\n")


def following(folder: Any, journal: Journal | None = None) -> AbstractContextManager[Journal | None]:
    """Return the given journal, which its owner closes, or a new one in `folder`, or None without a folder."""
    if journal is not None or folder is None:
        return nullcontext(journal)
    return Journal(Path(folder))
