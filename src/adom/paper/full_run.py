"""Verdicts and findings of the full run, which miniatures show beside their own.

full_run.json holds the verdicts of docs/ledger.md and the sentences of docs/findings.md; `make reproduction-docs`
writes all three.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("full_run.json")


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILE.read_text())
    return content


def commit() -> str:
    """Return the commit that the full run was made with."""
    return str(_content()["commit"])


def verdict(claim: str, protocol: str) -> str:
    """Return the full run's verdict on a claim, with the number of panels that hold; empty if there is none.

    Examples
    --------
    >>> verdict("theorem-1", "theory")
    'reproduced, 11 of 11 verifications'
    """
    return str(_content()["verdicts"].get(claim, {}).get(protocol, ""))


def finding(title: str) -> str:
    """Return the full run's text of a section of the findings; empty if there is none."""
    return str(_content()["findings"].get(title, ""))
