"""What the commands print: data on stdout, everything else on stderr."""

import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal

from ..errors import InputError
from ..util import files

LONGEST_NAME = 255
"""Bytes of a file's name, on every system that is in use."""


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers: Sequence[str] = ()) -> None:
    """Print a table on stdout; the columns named in `numbers` are flush right.

    Where words would not fit side by side, each row becomes a list of its cells.
    """
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    cells = [[str(cell) for cell in row] for row in rows]
    if len(columns) > 2 and sum(map(_longest_word, zip(columns, *cells, strict=True))) > console.width - 3 * len(
        columns
    ):
        lines(*([title, ""] if title else []))
        for row in cells:
            lines(*(f"{column}: {cell}" for column, cell in zip(columns, row, strict=True)), "")
        return
    grid = Table(title=escape(title) or None, title_justify="left", box=box.SIMPLE_HEAD, show_header=any(columns))
    for number, column in enumerate(columns):
        justify: Literal["left", "right"] = "right" if column in numbers else "left"
        grid.add_column(column, style="bold" if number == 0 else None, overflow="fold", justify=justify)
    for row in cells:
        grid.add_row(*map(escape, row))
    console.print(grid)


def _longest_word(column: Sequence[str]) -> int:
    return min(12, max(len(word) for cell in column for word in (cell.split() or [""])))


def lines(*texts: object) -> None:
    """Print plain lines on stdout."""
    for text in texts:
        print(text)


def as_json(content: dict[str, Any]) -> None:
    """Print one JSON object on stdout; what JSON has no number for becomes null."""
    print(json.dumps(_plain(content), allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and value - value != 0:
        return None
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def folder(path: Path, option: str = "--out") -> None:
    """Make a folder, and refuse one that cannot be written to before any work is done."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = "it is a file" if files.kind(path) in ("file", "other") else files.reason(error)
        raise InputError(f"cannot make the folder {files.named(path)}: {reason}; choose another {option}") from None
    try:
        with TemporaryFile(dir=path):
            pass
    except OSError as error:
        reason = files.reason(error).lower()
        raise InputError(f"cannot write to the folder {files.named(path)}: {reason}; choose another {option}") from None


def file(path: Path, suffixes: Sequence[str], option: str) -> None:
    """Refuse a file to write whose suffix is not one of those, or whose place cannot be written to."""
    if path.suffix.lower() not in suffixes:
        raise InputError(
            f"cannot write {path}: its suffix must be one of {', '.join(suffixes)}; "
            f"e.g. {option} {path.with_suffix(suffixes[0]) if path.name else 'result' + suffixes[0]}"
        )
    if files.kind(path) in ("folder", "other"):
        what = "a folder" if files.kind(path) == "folder" else "a pipe or a device"
        raise InputError(f"cannot write {files.named(path)}: it is {what}; choose another {option}")
    if len(os.fsencode(path.name)) > LONGEST_NAME:
        raise InputError(f"cannot write {files.named(path)}: File name too long; choose another {option}")
    folder(path.parent, option)


def results(paths: Sequence[Path]) -> None:
    """Refuse files that are certainly no results, before anything is loaded that could read them."""
    import zipfile

    for path in paths:
        what = files.kind(path)
        if what == "folder":
            found = next(iter(sorted(path.glob("*.npz"))), None)
            remedy = f"give the file in it, {found}" if found else "give a file that `adom solve` wrote, out/result.npz"
            raise InputError(f"{path} is a folder, not a result; {remedy}")
        if what == "file" and os.access(path, os.R_OK) and not zipfile.is_zipfile(path):
            raise InputError(f"{path} is not a whole result file; give one that `adom solve` wrote, out/result.npz")


def note(text: str) -> None:
    """Print one line on stderr, unless that is full or gone; the exit code says the rest."""
    with suppress(OSError):
        print(" ".join(text.splitlines()), file=sys.stderr, flush=True)


def settle_streams() -> None:
    """Let no character, and no stream that is closed, be the end of a command."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123  # for good
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def plain_warnings(quiet: bool = False) -> None:
    """Print our own warnings as one line without the place in the code; where others say the same, not at all."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if category is not UserWarning:
            usual(message, category, *place, **more)
        elif not quiet:
            note(f"warning: {message}")

    warnings.showwarning = show


def flush() -> None:
    """Write out what is buffered, so that trouble with it shows while it can be dealt with."""
    sys.stdout.flush()


def mute() -> None:
    """Send what may still be written to stdout nowhere: nobody reads it, or it cannot be written."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # no file at all, as in tests
        return


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show on a terminal what is being done."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def number(value: float) -> str:
    """Return a number for people to read.

    Examples
    --------
    >>> number(1234567), number(30.7154), number(1.23456e-9), number(100.0)
    ('1,234,567', '30.72', '1.235e-09', '100')
    """
    if isinstance(value, int) or (abs(value) < 1e15 and value == int(value)):
        return f"{int(value):,}"
    return f"{value:.4g}"


def short(value: float) -> str:
    """Return a count in four or five characters.

    Examples
    --------
    >>> short(987), short(12_345), short(1_234_567_890), short(7.25), short(float("nan"))
    ('987', '12.3k', '1.23G', '7.25', '-')
    """
    if value - value != 0:
        return "-"
    if abs(value) < 1e4:
        return f"{value:.4g}" if value == int(value) else f"{value:.3g}"
    factor, unit = next(pair for pair in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")) if abs(value) >= pair[0])
    return f"{value / factor:.3g}{unit}"
