"""An entry of the ledger: one claim under one protocol, its evidence, and the verdict that follows from it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd

from ..errors import InputError, shown
from .evidence import plain
from .table import Table

REPRODUCED, PARTLY, NOT_REPRODUCED, NOT_TESTED = "reproduced", "partly", "not reproduced", "not tested"
NOT_JUDGED = "not judged"
"""The verdict of a miniature on a claim that it cannot judge."""
VERDICTS = (REPRODUCED, PARTLY, NOT_REPRODUCED, NOT_TESTED, NOT_JUDGED)
FEW = 3
"""Fewer seeds than this make no error bars."""
PANELS = {"slow2": 8, "kappa": 16, "chi": 16, "real_kappa": 12, "real_chi": 12, "real_networks": 6}
"""How many panels each figure of the paper has."""


@dataclass(frozen=True)
class Entry:
    """A claim under a protocol.

    Attributes
    ----------
    claim, statement, where : str
        Its id, what the paper says, and where.
    protocol : str
        How parameters were chosen.
    verdict : str
        One of `VERDICTS`.
    holding, tested : int
        In how many of the panels (or fits, as `unit` says) it held.
    unit : str
    evidence : dict
        What was measured, as JSON can hold it; "summary" is a line of text, "panels" a list with a row for each.
    notes : tuple of str
    full_run : str
        In a miniature, the verdict of the full run.
    """

    claim: str
    statement: str
    where: str
    protocol: str
    verdict: str
    holding: int = 0
    tested: int = 0
    unit: str = "panels"
    evidence: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    full_run: str = ""

    @property
    def count(self) -> str:
        """How many of how many, in words; nothing where that is no verdict.

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
        """Read what `to_json` gave."""
        entry = cls(**content | {"notes": tuple(map(str, content["notes"]))})
        texts = (entry.claim, entry.statement, entry.where, entry.protocol, entry.unit)
        panels = entry.evidence.get("panels", [])
        whole = all(isinstance(text, str) for text in texts) and all(isinstance(row, dict) for row in panels)
        if not whole or entry.verdict not in VERDICTS:
            raise InputError(f"this is no entry of a ledger: {shown(content)}")
        return entry


@dataclass(frozen=True)
class Finding:
    """The judgement of a claim's function; the registry adds what the claim is."""

    verdict: str
    holding: int = 0
    tested: int = 0
    summary: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    unit: str = "panels"

    def entry(self, claim: str, statement: str, where: str, protocol: str) -> Entry:
        """Return the entry of the ledger."""
        evidence = {"summary": self.summary} | plain(self.evidence) if self.summary else plain(self.evidence)
        return Entry(
            claim,
            statement,
            where,
            protocol,
            self.verdict,
            int(self.holding),
            int(self.tested),
            self.unit,
            evidence,
            tuple(self.notes),
        )


def overall(holding: int, tested: int) -> str:
    """Return the verdict on a claim about all of some: all, some or none of them hold.

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


def untested(runs: pd.DataFrame, protocol: str, figures: Sequence[str], why: str = "", variant: str = "") -> Finding:
    """Return the finding where nothing could be tested, and why."""
    reasons = missing(runs, protocol, figures, variant)
    return Finding(NOT_TESTED, notes=reasons or [why or f"no runs of {', '.join(figures)} under {protocol}"])


def missing(runs: pd.DataFrame, protocol: str, figures: Sequence[str], variant: str = "") -> list[str]:
    """Return why runs are missing, each reason with the number of runs."""
    chosen = (runs["protocol"] == protocol) & (runs["variant"] == variant) & runs["figure"].isin(figures)
    reasons = Counter(runs.loc[chosen & (runs["status"] == "missing"), "reason"])
    return [f"{count} run{'s' if count > 1 else ''} missing: {reason}" for reason, count in reasons.most_common()]


def fewer(tested: int, figures: Sequence[str], seeds: Iterable[int] = ()) -> list[str]:
    """Return notes where there are fewer panels than the paper has, or too few seeds for error bars."""
    notes = []
    whole = sum(PANELS.get(figure, 0) for figure in figures)
    if 0 < tested < whole:
        notes.append(f"{tested} of the paper's {whole} panels")
    least = min(seeds, default=FEW)
    if least < FEW:
        notes.append(f"{least} seed{'s' if least > 1 else ''} only: no error bars")
    return notes
