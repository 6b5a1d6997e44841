"""Verdicts: an entry of the ledger is one claim under one protocol, its evidence and its verdict.

full_run.json holds the verdicts of docs/ledger.md and the sentences of docs/findings.md, which miniatures show beside
theirs; `make reproduction-docs` writes all three.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import InputError, shown
from ..util.table import Table
from .evidence import plain

REPRODUCED, PARTLY, NOT_REPRODUCED, NOT_TESTED = "reproduced", "partly", "not reproduced", "not tested"
NOT_JUDGED = "not judged"
"""The verdict of a miniature on a claim that it cannot judge."""
VERDICTS = (REPRODUCED, PARTLY, NOT_REPRODUCED, NOT_TESTED, NOT_JUDGED)
FEW = 3
"""The fewest seeds that give error bars."""
PANELS = {"slow2": 8, "kappa": 16, "chi": 16, "real_kappa": 12, "real_chi": 12, "real_networks": 6}
"""How many panels each figure of the paper has."""


@dataclass(frozen=True)
class Entry:
    """A claim under a protocol."""

    claim: str  # its id
    statement: str  # what the paper says
    where: str
    protocol: str  # how parameters were chosen
    verdict: str  # one of `VERDICTS`
    holding: int = 0  # units in which the claim holds
    tested: int = 0
    unit: str = "panels"  # what was counted
    evidence: dict[str, Any] = field(default_factory=dict)  # "summary": one line; "panels": one row per panel
    notes: tuple[str, ...] = ()
    full_run: str = ""  # in a miniature, the verdict of the full run

    @property
    def count(self) -> str:
        """How many panels hold, in words; empty if none was tested or a miniature cannot judge.

        Examples
        --------
        >>> Entry("best-over-kappa", "", "", "unit", PARTLY, 12, 16).count
        '12 of 16 panels'
        """
        return f"{self.holding} of {self.tested} {self.unit}" if self.tested and self.verdict != NOT_JUDGED else ""

    @property
    def summary(self) -> str:
        """The evidence in one line."""
        return str(self.evidence.get("summary", ""))

    @property
    def table(self) -> Table | None:
        """The evidence panel by panel, if there is any."""
        panels = self.evidence.get("panels", [])
        return Table.of(panels) if panels else None

    @property
    def text(self) -> str:
        """The evidence and the notes in one line."""
        text = "; ".join(text for text in (self.summary, *self.notes) if text)
        return f"in miniature: {text}" if text and self.verdict == NOT_JUDGED else text

    def to_json(self) -> dict[str, Any]:
        """Return the entry as plain data."""
        return asdict(self) | {"notes": list(self.notes)}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Entry":
        """Return the entry from the output of `to_json`."""
        entry = cls(**content | {"notes": tuple(map(str, content["notes"]))})
        texts = (entry.claim, entry.statement, entry.where, entry.protocol, entry.unit)
        panels = entry.evidence.get("panels", [])
        whole = all(isinstance(text, str) for text in texts) and all(isinstance(row, dict) for row in panels)
        if not whole or entry.verdict not in VERDICTS:
            raise InputError(f"this is not an entry of a ledger: {shown(content)}")
        return entry


def finding(
    panels: Sequence[Mapping[str, Any]],
    holding: int,
    summary: str,
    notes: Sequence[str] = (),
    *,
    verdict: str = "",
    unit: str = "panels",
    evidence: Mapping[str, Any] | None = None,
) -> Entry:
    """Return an entry with verdict and evidence; `Claim.entry` adds the claim and the protocol."""
    given = plain({"summary": summary, **(evidence or {}), "panels": panels})
    verdict = verdict or overall(holding, len(panels))
    return Entry("", "", "", "", verdict, int(holding), len(panels), unit, given, tuple(notes))


def not_tested(notes: Sequence[str]) -> Entry:
    """Return the entry of a claim that could not be tested."""
    return Entry("", "", "", "", NOT_TESTED, notes=tuple(notes))


def overall(holding: int, tested: int) -> str:
    """Return the verdict on a claim that holds in all, some or none of the panels tested.

    Examples
    --------
    >>> overall(16, 16), overall(3, 16), overall(0, 16), overall(0, 0)
    ('reproduced', 'partly', 'not reproduced', 'not tested')
    """
    if tested == 0:
        return NOT_TESTED
    if holding == tested:
        return REPRODUCED
    return PARTLY if holding else NOT_REPRODUCED


def untested(runs: pd.DataFrame, protocol: str, figures: Sequence[str], why: str = "", variant: str = "") -> Entry:
    """Return the entry of a claim that could not be tested, with the reasons why runs are missing."""
    reasons = missing(runs, protocol, figures, variant)
    return not_tested(reasons or [why or f"no runs of {', '.join(figures)} under {protocol}"])


def missing(runs: pd.DataFrame, protocol: str, figures: Sequence[str], variant: str = "") -> list[str]:
    """Return why runs are missing, each reason with the number of runs."""
    chosen = (runs["protocol"] == protocol) & (runs["variant"] == variant) & runs["figure"].isin(figures)
    reasons = Counter(runs.loc[chosen & (runs["status"] == "missing"), "reason"])
    return [f"{count} run{'s' if count > 1 else ''} missing: {reason}" for reason, count in reasons.most_common()]


def fewer(tested: int, figures: Sequence[str], seeds: Iterable[int] = ()) -> list[str]:
    """Return notes if fewer panels than the paper's were tested, or too few seeds for error bars."""
    notes = []
    whole = sum(PANELS.get(figure, 0) for figure in figures)
    if 0 < tested < whole:
        notes.append(f"{tested} of the paper's {whole} panels")
    least = min(seeds, default=FEW)
    if least < FEW:
        notes.append(f"{least} seed{'s' if least > 1 else ''} only: no error bars")
    return notes


FILE = Path(__file__).with_name("full_run.json")


@cache
def _full_run() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILE.read_text())
    return content


def full_commit() -> str:
    """Return the commit that the full run was made with."""
    return str(_full_run()["commit"])


def full_verdict(claim: str, protocol: str) -> str:
    """Return the full run's verdict on a claim, with the number of panels that hold; empty if there is none.

    Examples
    --------
    >>> full_verdict("theorem-1", "theory")
    'reproduced, 11 of 11 verifications'
    """
    return str(_full_run()["verdicts"].get(claim, {}).get(protocol, ""))


def full_finding(title: str) -> str:
    """Return the full run's text of a section of the findings; empty if there is none."""
    return str(_full_run()["findings"].get(title, ""))
