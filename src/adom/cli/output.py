"""Output of the commands: data on stdout, everything else on stderr."""

import json
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from ..errors import InputError
from ..util import files
from ..util.text import format_number, json_ready

INTERRUPTED = "interrupted; what was done is saved, and the same command goes on from there"
"""Message at Ctrl-C of a command that saves every run."""
LONGEST_NAME = 255
"""The most bytes of a file name on common systems."""
TEXT_WIDTH = 20
"""Least width of a column of text in a table."""


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    numbers: Sequence[str] = (),
    spare: Sequence[str] = (),
) -> None:
    """Print a table on stdout; the columns named in `numbers` are flush right.

    Words are never broken. If the columns do not fit side by side, those named in `spare` are left out one by one, from
    the first on. If that is not enough, each row becomes a list.
    """
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    cells = [[str(cell) for cell in row] for row in rows]
    for left_out in range(len(spare) + 1):
        keep = [number for number, column in enumerate(columns) if column not in spare[:left_out]]
        shown = [(columns[number], *(row[number] for row in cells)) for number in keep]
        widths = _widths(shown, console.width - 3 * len(shown) - 1)
        if widths:
            break
    if len(columns) > 2 and not widths:
        lines(*(line for part in [*title.splitlines(), ""] if title for line in wrapped(part)))
        for row in cells:
            lines(*wrapped(row[0]), *(line for pair in zip(columns[1:], row[1:], strict=True) for line in _item(*pair)))
            lines("")
        return
    grid = Table(title=escape(title) or None, title_justify="left", box=box.SIMPLE_HEAD, show_header=any(columns))
    for index, (column, *_) in enumerate(shown):
        justify: Literal["left", "right"] = "right" if column in numbers else "left"
        width = widths[index] if widths else None
        grid.add_column(column, style="bold" if index == 0 else None, overflow="fold", justify=justify, width=width)
    for row in cells:
        grid.add_row(*(escape(row[number]) for number in keep))
    console.print(grid)


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """Share the room among columns, each at least as wide as its words and `TEXT_WIDTH`; [] if it is too small.

    A column is its header, which may be wrapped, and its cells.

    Examples
    --------
    >>> _widths([["name", "adom"], ["words", "a sentence of some length"]], 26)
    [4, 22]
    >>> _widths([["name", "adom"], ["words", "a sentence of some length"]], 23)
    []
    """
    words = [max(len(word) for cell in column for word in (cell.split() or [""])) for column in columns]
    natural = [max(word, *map(len, cells)) for word, (_, *cells) in zip(words, columns, strict=True)]
    widths = [max(word, min(width, TEXT_WIDTH)) for word, width in zip(words, natural, strict=True)]
    if sum(widths) > room:
        return []
    for _ in range(room - sum(widths)):
        index = max(range(len(widths)), key=lambda column: natural[column] - widths[column])
        widths[index] += natural[index] > widths[index]
    return widths


def _item(name: str, text: str) -> list[str]:
    return wrapped(f"{name}: {text}", "  ", "    ") if text else []


def wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    """Wrap a text to the width of the terminal, between words only; `first` and `rest` are indents."""
    wrapper = textwrap.TextWrapper(shutil.get_terminal_size().columns, first, rest)
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return wrapper.wrap(text) or [""]


def lines(*texts: object) -> None:
    """Print plain lines on stdout."""
    for text in texts:
        print(text)


def wrote(*paths: object) -> None:
    """Print which files were written."""
    lines("wrote", *(f"  {path}" for path in paths))


def as_json(content: dict[str, Any]) -> None:
    """Print one JSON object on stdout; numbers that are not finite become null."""
    print(json.dumps(json_ready(content), allow_nan=False, default=str))


def folder(path: Path, option: str = "--out") -> None:
    """Make a folder; refuse one that cannot be written to, before any work is done."""
    files.make_folder(path, f"choose another {option}")


def file(path: Path, suffixes: Sequence[str], option: str) -> None:
    """Refuse an output file with another suffix, or in a place that cannot be written to."""
    if path.suffix.lower() not in suffixes:
        raise InputError(
            f"cannot write {path}: its suffix must be one of {', '.join(suffixes)}; "
            f"e.g. {option} {path.with_suffix(suffixes[0]) if path.name else 'result' + suffixes[0]}"
        )
    if files.kind(path) in ("folder", "other"):
        kind = "a folder" if files.kind(path) == "folder" else "a pipe or a device"
        raise InputError(f"cannot write {files.named(path)}: it is {kind}; choose another {option}")
    if len(os.fsencode(path.name)) > LONGEST_NAME:
        raise InputError(f"cannot write {files.named(path)}: File name too long; choose another {option}")
    folder(path.parent, option)


def note(text: str) -> None:
    """Print one line on stderr; ignore errors, such as a closed stream."""
    with suppress(OSError):
        print(" ".join(text.splitlines()), file=sys.stderr, flush=True)


def prepare_streams() -> None:
    """Make stdout and stderr work when closed, or unable to print a character."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123  # for good
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def plain_warnings(quiet: bool = False) -> None:
    """Print our own warnings as one line without the place in the code, or not at all."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *location: Any, **more: Any) -> None:
        if category is not UserWarning:
            usual(message, category, *location, **more)
        elif not quiet:
            note(f"warning: {message}")

    warnings.showwarning = show


def mute() -> None:
    """Discard all later output on stdout."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # not a real file, as in tests
        return


@contextmanager
def busy(doing: str) -> Iterator[None]:
    """Show a spinner on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(doing):
        yield


def number(value: float) -> str:
    """Format a number for people.

    Examples
    --------
    >>> number(1234567), number(30.7154), number(1.23456e-9), number(1e8)
    ('1,234,567', '30.72', '1.235e-09', '100,000,000')
    """
    whole = isinstance(value, float) and value.is_integer() and value < 1e15
    return format_number(int(value) if whole else value, 4)


def steps_of(window: int) -> str:
    """Return the words that follow chi if a step is a window of several rounds, else "".

    Examples
    --------
    >>> f"chi 30{steps_of(1)}", f"chi 30{steps_of(7)}"
    ('chi 30', 'chi 30 of windows of 7 rounds, each of which is one step')
    """
    return f" of windows of {window:,} rounds, each of which is one step" if window > 1 else ""
