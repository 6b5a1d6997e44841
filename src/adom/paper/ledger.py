"""The ledger: every claim of the paper with its evidence and a verdict, computed from the files of a reproduction."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError, nearest, shown
from ..util.checked_json import read_checked, write_checked
from ..util.files import atomic, reason
from . import full_run
from .claims import CLAIMS, GROUPS, PROTOCOLS, entries
from .runs import Outcome, load_outcomes, load_plan
from .verdicts import NOT_JUDGED, VERDICTS, Entry

FORMAT = "adom-ledger-1"


@dataclass(frozen=True)
class Ledger:
    """All entries, and what they were computed from.

    Attributes
    ----------
    entries : tuple of Entry
        In the order of the claims, for each by protocol.
    quick : bool
        Whether the reproduction is the miniature.
    commit : str, optional
        That of the code that made the plan.
    command : str
        What computes the ledger again.
    runs, missing : int
        How many jobs left something, and how many did not.
    """

    entries: tuple[Entry, ...]
    quick: bool = False
    commit: str | None = None
    command: str = ""
    runs: int = 0
    missing: int = 0

    def find(self, claim: str, protocol: str) -> Entry:
        """Return one entry."""
        for one in self.entries:
            if (one.claim, one.protocol) == (claim, protocol):
                return one
        raise InputError(f"the ledger has no entry {claim!r} under {protocol!r}; claims: {', '.join(CLAIMS)}")

    def of(self, claim: str) -> "Ledger":
        """Return the ledger of one claim only."""
        check_claim(claim)
        kept = tuple(one for one in self.entries if one.claim == claim)
        return Ledger(kept, self.quick, self.commit, self.command, self.runs, self.missing)

    def counts(self, protocol: str) -> dict[str, int]:
        """Return how many claims have each verdict under a protocol."""
        found = [one.verdict for one in self.entries if one.protocol == protocol]
        return {verdict: found.count(verdict) for verdict in self.verdicts}

    @property
    def verdicts(self) -> list[str]:
        """Those that there can be."""
        return [verdict for verdict in VERDICTS if self.quick or verdict != NOT_JUDGED]

    @property
    def protocols(self) -> list[str]:
        """The protocols that there are entries for."""
        return [name for name in PROTOCOLS if any(one.protocol == name for one in self.entries)]

    @property
    def said_of_size(self) -> str:
        """What a miniature can judge and what it cannot, in words; empty for the full size."""
        if not self.quick:
            return ""
        told = ", ".join(claim.name for claim in CLAIMS.values() if claim.miniature)
        return (
            f"A miniature has small stand-ins for the paper's panels, and few draws of them. It can judge {told}; the "
            f"others are {NOT_JUDGED}, whatever it measures, and the verdict to go by is the full run's beside them "
            f"(docs/ledger.md, commit {full_run.commit()})."
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """What a terminal shows of an entry."""
        return ("claim", "protocol", "verdict", "holds in", *(["full run"] if self.quick else []), "evidence")

    def rows(self) -> list[tuple[str, ...]]:
        """Return what a terminal shows, under `columns`: of evidence the summary, or else the first note."""
        return [
            (
                *(one.claim, one.protocol, one.verdict, one.count),
                *([one.full_run] if self.quick else []),
                "" if one.verdict == NOT_JUDGED else one.summary or "".join(one.notes[:1]),
            )
            for one in self.entries
        ]

    def lines(self) -> Iterator[str]:
        """Yield the ledger as lines of text, one an entry."""
        for claim, protocol, verdict, count, *full, evidence in self.rows():
            beside = "; ".join([text for text in (count, *(f"full run {text}" for text in full if text)) if text])
            yield f"{claim:6}{protocol:8}{verdict:15} {f'{beside}: ' if beside else ''}{evidence}"

    def to_json(self) -> dict[str, Any]:
        """Return the ledger as plain data."""
        return {
            "format": FORMAT,
            "quick": self.quick,
            "commit": self.commit,
            "command": self.command,
            "runs": self.runs,
            "missing": self.missing,
            "rules": {name: claim.rule for name, claim in CLAIMS.items()},
            "entries": [one.to_json() for one in self.entries],
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Ledger":
        """Read what `to_json` gave."""
        if content.get("format") != FORMAT:
            raise InputError(f"this is no ledger: its format is {shown(content.get('format'))}, not {FORMAT!r}")
        found = _of_size(map(Entry.from_json, content["entries"]), content["quick"])
        rest = {name: content[name] for name in ("quick", "commit", "command", "runs", "missing")}
        if not isinstance(rest["runs"], int) or not isinstance(rest["missing"], int):
            raise InputError(f"this is no ledger: it counts {shown(rest['runs'])} runs")
        return cls(found, **rest)

    def markdown(self) -> str:
        """Return the ledger as a page."""
        return "\n".join(_page(self)) + "\n"


def compute(
    outcomes: Sequence[Outcome], *, quick: bool = False, commit: str | None = None, command: str = ""
) -> Ledger:
    """Judge every claim under every protocol that there are runs of.

    Examples
    --------
    >>> [(one.claim, one.verdict) for one in compute([]).entries][:2]
    [('thm', 'not tested'), ('lem', 'not tested')]
    """
    present = {one.job.protocol for one in outcomes}
    protocols = [name for name in PROTOCOLS if name in present] or list(PROTOCOLS)
    there = sum(one.result is not None or one.data is not None for one in outcomes)
    found = _of_size(entries(outcomes, protocols), quick)
    return Ledger(found, quick, commit, command, there, len(outcomes) - there)


def _of_size(found: Iterable[Entry], quick: bool) -> tuple[Entry, ...]:
    """Return entries as the full run or a miniature gives them."""
    return tuple(CLAIMS[one.claim].in_miniature(one) if quick and one.claim in CLAIMS else one for one in found)


def write(folder: str | os.PathLike[str], outcomes: Sequence[Outcome] | None = None) -> Ledger:
    """Compute the ledger of a reproduction's folder from its files; write ledger.json and ledger.md there."""
    plan, target = load_plan(folder), Path(folder)
    read_outcomes = load_outcomes(folder) if outcomes is None else outcomes
    found = compute(read_outcomes, quick=plan.quick, commit=plan.commit, command=f"adom ledger {target}")
    write_checked(target / "ledger.json", found.to_json())
    with atomic(target / "ledger.md") as partial:
        partial.write_text(found.markdown())
    return found


def read(folder: str | os.PathLike[str]) -> Ledger:
    """Read the ledger.json of a reproduction's folder."""
    path = Path(folder) / "ledger.json"
    try:
        return Ledger.from_json(read_checked(path))
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason(error)}; `adom ledger {folder}` writes it") from None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is no whole ledger ({error}); `adom ledger {folder}` writes it anew") from None


def check_claim(name: str) -> None:
    """Refuse what is no claim's id."""
    if name not in CLAIMS:
        raise InputError(f"there is no claim {name!r}; {nearest(name, CLAIMS, 'claims:')}")


def _page(ledger: Ledger) -> Iterator[str]:
    kind = "the miniature (`--quick`): small stand-ins for the paper's panels" if ledger.quick else "the full size"
    yield from ("# The paper's claims", "")
    yield (
        f"Computed by `{ledger.command or 'adom ledger FOLDER'}` from {ledger.runs} result files"
        f"{f' ({ledger.missing} missing)' if ledger.missing else ''}; {kind}; commit {ledger.commit or 'unknown'}."
    )
    yield from ("", "Errors are squared distances to the solution, relative to the start. In brackets: the least and")
    yield "the greatest over seeds, or the 95 % interval of a fitted exponent. Parameters are chosen as `theory`,"
    yield "`unit` or `tuned` says."
    if ledger.quick:
        yield from ("", ledger.said_of_size)
    yield from ("", "| protocol | " + " | ".join(ledger.verdicts) + " |", _rule(1 + len(ledger.verdicts)))
    for protocol in ledger.protocols:
        yield f"| {protocol} | " + " | ".join(map(str, ledger.counts(protocol).values())) + " |"
    for title, claims in GROUPS.items():
        chosen = [one for claim in claims for one in ledger.entries if one.claim == claim.name]
        if not chosen:
            continue
        full = " full run |" if ledger.quick else ""
        yield from ("", f"## {title}", "", f"| verdict | claim | protocol | holds in |{full} evidence |")
        yield _rule(6 if ledger.quick else 5)
        for one in chosen:
            full = f" {one.full_run} |" if ledger.quick else ""
            yield f"| **{one.verdict}** | {one.claim} | {one.protocol} | {one.count} |{full} {_cell(one.said)} |"
        for claim in claims:
            own = [one for one in chosen if one.claim == claim.name]
            if own:
                yield from ("", f"### {claim.name}: {claim.statement} ({claim.where})", "", f"Rule: {claim.rule}")
                for one in own:
                    yield from _details(one)


def _details(one: Entry) -> Iterator[str]:
    """Yield the table of an entry's panels."""
    panels = one.evidence.get("panels", [])
    if not panels:
        return
    columns = list(dict.fromkeys(name for row in panels for name in row))
    found = ", ".join(text for text in (one.verdict, one.count) if text)
    yield from ("", f"<details><summary>{one.protocol}: {found}</summary>", "")
    yield from ("| " + " | ".join(columns) + " |", _rule(len(columns)))
    for row in panels:
        yield "| " + " | ".join(_cell(in_words(row.get(name, ""))) for name in columns) + " |"
    yield from ("", "</details>")


def in_words(value: Any) -> str:
    """Return a piece of evidence for people to read."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict) and value.keys() == {"median", "low", "high"}:
        return f"{in_words(value['median'])} [{in_words(value['low'])}, {in_words(value['high'])}]"
    if isinstance(value, dict):
        return ", ".join(f"{name} {in_words(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(in_words, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _rule(columns: int) -> str:
    return "|" + " --- |" * columns
