"""JSON files with a checksum of their content, read within limits.

The first key of the object announces the checksum, the last one holds it. A file that somebody
else writes may have neither.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from .files import atomic, open_regular
from .text import json_ready

SEALED, SEAL = "sealed", "sha256"
MOST_TEXT = 2**26
"""Most characters of JSON that are read."""
MOST_DEPTH = 64


class Damaged(ValueError):  # noqa: N818  # describes the file
    """A file does not hold what was written, or claims too much; the message gives the reason in a few words."""


def write_checked(path: str | os.PathLike[str], content: dict[str, Any]) -> Path:
    """Write an object as JSON, whole or not at all; numbers that are not finite become null."""
    ready = json_ready(content)
    with atomic(Path(path)) as partial:
        sealed = {SEALED: SEAL, **ready, SEAL: _digest(ready)}
        partial.write_text(json.dumps(sealed, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return Path(path)


def read_checked(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the object in a JSON file; raises `Damaged`, or OSError if it cannot be opened."""
    with open_regular(path) as file:
        content = read_json(file.read(MOST_TEXT + 1))
    announced, digest = content.pop(SEALED, None), content.pop(SEAL, None)
    if (announced, digest) not in ((None, None), (SEAL, _digest(content))):
        raise Damaged("it was changed: its SHA-256 does not match")
    return content


def read_json(text: str | bytes) -> dict[str, Any]:
    """Parse a JSON object that is not too long or too deep; raises `Damaged`.

    Examples
    --------
    >>> read_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> read_json("[" * 100_000)
    Traceback (most recent call last):
    adom.util.checked_json.Damaged: its JSON is nested too deeply
    """
    if len(text) > MOST_TEXT:
        raise Damaged(f"its JSON has {len(text)} characters, more than {MOST_TEXT}")
    try:
        content = json.loads(text)
        _check_depth(content)
    except RecursionError:
        raise Damaged("its JSON is nested too deeply") from None
    except Damaged:
        raise
    except ValueError as error:
        raise Damaged(f"its JSON cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise Damaged("its JSON is not an object")
    return content


def _check_depth(content: Any) -> None:
    """Refuse deep nesting, and text that cannot be printed."""
    level = [content]
    for _ in range(MOST_DEPTH):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, str):
                value.encode()
            elif isinstance(value, dict):
                "".join(value).encode()
                inner += value.values()
            elif isinstance(value, list):
                inner += value
        if not inner:
            return
        level = inner
    raise Damaged("its JSON is nested too deeply")


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
