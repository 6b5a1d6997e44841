"""Verdicts and findings of the full run, which miniatures show beside their own.

full_run.json holds the verdicts of docs/ledger.md and the sentences of docs/findings.md; the command that writes those
two, `make reproduction-docs`, writes it too.
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
    """Return the full run's verdict on a claim and in how many panels it holds; empty if it has none.

    Examples
    --------
    >>> verdict("theorem-1", "theory")
    'reproduced, 11 of 11 verifications'
    """
    return str(_content()["verdicts"].get(claim, {}).get(protocol, ""))


def finding(title: str) -> str:
    """Return the text of the full run under a title of the findings; empty if it has none."""
    return str(_content()["findings"].get(title, ""))
