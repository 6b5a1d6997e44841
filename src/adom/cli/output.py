"""What the commands print: data on stdout, everything else on stderr."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from ..errors import InputError


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers: Sequence[str] = ()) -> None:
    """Print a table on stdout; the columns named in `numbers` are flush right."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    grid = Table(title=escape(title) or None, title_justify="left", box=box.SIMPLE_HEAD, show_header=any(columns))
    for number, column in enumerate(columns):
        justify: Literal["left", "right"] = "right" if column in numbers else "left"
        grid.add_column(column, style="bold" if number == 0 else None, overflow="fold", justify=justify)
    for row in rows:
        grid.add_row(*(escape(str(cell)) for cell in row))
    Console().print(grid)


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


def folder(path: Path) -> None:
    """Make a folder, and refuse one that cannot be written to before any work is done."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {path}: {error.strerror or error}; choose another --out") from None
    if not os.access(path, os.W_OK):
        raise InputError(f"cannot write to the folder {path}: permission denied; choose another --out")


def note(text: str) -> None:
    """Print one line on stderr."""
    print(" ".join(text.splitlines()), file=sys.stderr)


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
