"""JSON files with a checksum of their content, read within limits, and checks of what they hold.

The first key of the object announces the checksum, the last one holds it. A file that somebody
else writes may have neither.
"""

import hashlib
import json
import os
import sys
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from ..errors import Damaged, shown
from .files import atomic, open_regular
from .text import json_ready

Made = TypeVar("Made")

SEALED, SEAL = "sealed", "sha256"
MOST_TEXT = 2**26
"""Most characters of JSON that are read."""
MOST_DEPTH = 64
TYPES = {int: "a whole number", float: "a finite number", str: "text", bool: "true or false"}


def write_checked(path: str | os.PathLike[str], content: dict[str, Any]) -> Path:
    """Write an object as JSON, whole or not at all; numbers that are not finite become null."""
    ready = json_ready(content)
    with atomic(Path(path)) as partial:
        sealed = {SEALED: SEAL, **ready, SEAL: _digest(ready)}
        partial.write_text(json.dumps(sealed, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return Path(path)


def read_checked(path: str | os.PathLike[str], most: int = MOST_TEXT) -> dict[str, Any]:
    """Read the object in a JSON file; raises `Damaged`, or OSError if it cannot be opened."""
    with open_regular(path) as file:
        content = read_json(file.read(most + 1), most)
    announced, digest = content.pop(SEALED, None), content.pop(SEAL, None)
    if (announced, digest) not in ((None, None), (SEAL, _digest(content))):
        raise Damaged("it was changed: its SHA-256 does not match")
    return content


def read_json(text: str | bytes, most: int = MOST_TEXT) -> dict[str, Any]:
    """Parse a JSON object that is not too long or too deep; raises `Damaged`.

    Examples
    --------
    >>> read_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> read_json("[" * 100_000)
    Traceback (most recent call last):
    adom.errors.Damaged: its JSON is nested too deeply
    """
    if len(text) > most:
        raise Damaged(f"its JSON has {len(text)} characters, more than {most}")
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


def made_from(content: dict[str, Any], cls: type[Made], within: str = "") -> Made:
    """Return a dataclass from an object that has exactly its fields, of their types; raises `Damaged`.

    Fields with defaults may be missing. A type is a class, a dataclass, a union, list[...] or dict[str, ...]; bools are
    no numbers, and a float is any finite number.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Page:
    ...     name: str
    ...     numbers: list[int]
    >>> made_from({"name": "first", "numbers": [1, 2]}, Page)
    Page(name='first', numbers=[1, 2])
    >>> made_from({"name": "first", "numbers": [1, 2.5]}, Page)
    Traceback (most recent call last):
    adom.errors.Damaged: its numbers.1 is 2.5; it must be a whole number
    """
    types, found = get_type_hints(cls), {}
    for field in fields(cls):  # type: ignore[arg-type]  # a dataclass
        if field.name in content:
            found[field.name] = of_type(content[field.name], types[field.name], within + field.name)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise Damaged(f"it has no {within}{field.name}")
    if strange := content.keys() - types.keys():
        raise Damaged(f"it has an unknown {within}{shown(min(strange))}")
    return cls(**found)


def of_type(value: Any, kind: Any, name: str) -> Any:
    """Return a value of a type, as `made_from` describes types; raises `Damaged`, which has the part that is not."""
    origin, inner = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, dict):
        return made_from(value, kind, f"{name}.")
    if origin is list and isinstance(value, list):
        return [of_type(each, inner[0], f"{name}.{place}") for place, each in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        return {key: of_type(each, inner[1], f"{name}.{key}") for key, each in value.items()}
    for each in inner if origin is UnionType else ():
        with suppress(Damaged):
            return of_type(value, each, name)
    if isinstance(value, bool):
        fits = kind in (bool, Any)
    elif kind is float:
        fits = isinstance(value, int | float) and abs(value) <= sys.float_info.max
    else:
        fits = kind is Any or (isinstance(kind, type) and isinstance(value, kind))
    if fits:
        return value
    raise Damaged(f"its {name:.80} is {shown(value)}; it must be {TYPES.get(kind, kind)}", value)
