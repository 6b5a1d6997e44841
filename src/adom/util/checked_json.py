"""Files of JSON that are checked before they are believed: a checksum of what they say, and limits.

The first key of the object says that it has a checksum, the last one is that of all between. Files of earlier versions
have neither.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from .checked_npz import USUAL, Damaged, plain, read_json
from .files import atomic, open_regular

SEALED, SEAL = "sealed", "sha256"


def write_checked(path: str | os.PathLike[str], content: dict[str, Any]) -> Path:
    """Write an object as JSON, whole or not at all; what is no finite number becomes null."""
    made = plain(content)
    with atomic(Path(path)) as partial:
        sealed = {SEALED: SEAL, **made, SEAL: _digest(made)}
        partial.write_text(json.dumps(sealed, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return Path(path)


def read_checked(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the object that a file of JSON holds; raises `Damaged`, or OSError where it cannot be opened."""
    with open_regular(path) as file:
        raw = file.read(USUAL.text + 1)
    found = read_json(raw)
    said, seal = found.pop(SEALED, None), found.pop(SEAL, None)
    if (said, seal) not in ((None, None), (SEAL, _digest(found))):
        raise Damaged("it was changed: its SHA-256 does not fit")
    return found


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
