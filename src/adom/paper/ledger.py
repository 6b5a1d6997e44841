"""The ledger: every claim of the paper with its evidence and a verdict, computed from the files of a reproduction.

It is written as JSON and Markdown; on the page of a report it is HTML that is readable without scripts.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from ..errors import InputError, shown
from ..study.execute import Outcome
from ..util.cards import Markup, escaped
from ..util.checked_json import read_checked, write_checked
from ..util.files import atomic, reason
from ..util.table import Table
from . import findings
from .claims import CLAIMS, GROUPS, Claim, entries, find_claim
from .evidence import table_of_runs
from .runs import PROTOCOLS, load_outcomes, load_plan
from .verdicts import NOT_JUDGED, VERDICTS, Entry, full_commit

FORMAT = "adom-ledger-1"
ERRORS = (
    "Errors are squared distances to the solution, relative to the start. In brackets: the least and the "
    "greatest over seeds, or the 95 % interval of a fitted exponent."
)


@dataclass(frozen=True)
class Ledger:
    """All entries and their origin."""

    entries: tuple[Entry, ...]  # by claim, then by protocol
    quick: bool = False  # whether the reproduction is the miniature
    commit: str | None = None  # of the code that made the plan
    command: str = ""  # recomputes the ledger
    runs: int = 0  # jobs with a result
    missing: int = 0  # jobs without one

    def find(self, claim: str, protocol: str) -> Entry:
        """Return the entry of a claim under a protocol."""
        for entry in self.entries:
            if (entry.claim, entry.protocol) == (claim, protocol):
                return entry
        raise InputError(f"the ledger has no entry {claim!r} under {protocol!r}; claims: {', '.join(CLAIMS)}")

    def of(self, claim: str) -> "Ledger":
        """Return the ledger of one claim only."""
        name = find_claim(claim).name
        return replace(self, entries=tuple(entry for entry in self.entries if entry.claim == name))

    @property
    def verdicts(self) -> list[str]:
        """The verdicts that can occur."""
        return [verdict for verdict in VERDICTS if self.quick or verdict != NOT_JUDGED]

    @property
    def protocols(self) -> list[str]:
        """The protocols that have entries."""
        return [name for name in PROTOCOLS if any(entry.protocol == name for entry in self.entries)]

    def counts(self) -> Table:
        """Return how many claims have each verdict, protocol by protocol."""
        rows = []
        for protocol in self.protocols:
            verdicts = [entry.verdict for entry in self.entries if entry.protocol == protocol]
            rows.append([protocol, *(str(verdicts.count(verdict)) for verdict in self.verdicts)])
        return Table(["protocol", *self.verdicts], rows)

    @property
    def note_on_size(self) -> str:
        """Note on the claims that a miniature can judge; empty for the full size."""
        if not self.quick:
            return ""
        judged = ", ".join(claim.name for claim in CLAIMS.values() if claim.miniature)
        return (
            f"A miniature has small stand-ins for the paper's panels, and few draws of them. It can judge {judged}; "
            f"the others are {NOT_JUDGED}, whatever it measures, and the verdict to go by is the full run's beside "
            f"them (docs/ledger.md, commit {full_commit()})."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the ledger as plain data."""
        about = {name: getattr(self, name) for name in ("quick", "commit", "command", "runs", "missing")}
        rules = {name: claim.rule for name, claim in CLAIMS.items()}
        return {"format": FORMAT, **about, "rules": rules, "entries": [entry.to_json() for entry in self.entries]}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Ledger":
        """Return the ledger from the output of `to_json`."""
        if content.get("format") != FORMAT:
            raise InputError(f"this is not a ledger: its format is {shown(content.get('format'))}, not {FORMAT!r}")
        read_entries = [Entry.from_json(entry) for entry in content["entries"]]
        about = {name: content[name] for name in ("quick", "commit", "command", "runs", "missing")}
        if not isinstance(about["runs"], int) or not isinstance(about["missing"], int):
            raise InputError(f"this is not a ledger: it counts {shown(about['runs'])} runs")
        return cls(tuple(read_entries), **about)

    def markdown(self) -> str:
        """Return the ledger as a page."""
        return "\n".join(_page(self)) + "\n"


def compute(runs: pd.DataFrame, *, quick: bool = False, commit: str | None = None, command: str = "") -> Ledger:
    """Judge every claim under each protocol that has runs, or under all protocols if there are no runs.

    Examples
    --------
    >>> [(entry.claim, entry.verdict) for entry in compute(table_of_runs([])).entries][:2]
    [('theorem-1', 'not tested'), ('lemmas', 'not tested')]
    """
    present = set(runs["protocol"])
    protocols = [name for name in PROTOCOLS if name in present] or list(PROTOCOLS)
    missing = int((runs["status"] == "missing").sum())
    judged = entries(runs, protocols)
    if quick:
        judged = [CLAIMS[entry.claim].in_miniature(entry) for entry in judged]
    return Ledger(tuple(judged), quick, commit, command, len(runs) - missing, missing)


def write(folder: str | os.PathLike[str], outcomes: Sequence[Outcome] | None = None) -> Ledger:
    """Judge a reproduction's folder from its files; write ledger.json, ledger.md and findings.md there."""
    plan, target = load_plan(folder), Path(folder)
    runs = table_of_runs(load_outcomes(folder) if outcomes is None else outcomes)
    name = target.name if target.is_absolute() else target  # pages must not name folders of this machine
    ledger = compute(runs, quick=plan.quick, commit=plan.commit, command=f"adom ledger {name}")
    write_checked(target / "ledger.json", ledger.to_json())
    sections = findings.compute(runs, quick=plan.quick)
    pages = {"ledger.md": ledger.markdown(), "findings.md": findings.markdown(sections, plan, ledger.command)}
    for name, text in pages.items():
        with atomic(target / name) as partial:
            partial.write_text(text)
    return ledger


def read(folder: str | os.PathLike[str]) -> Ledger:
    """Read the ledger.json of a reproduction's folder."""
    path = Path(folder) / "ledger.json"
    try:
        return Ledger.from_json(read_checked(path))
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason(error)}; `adom ledger {folder}` writes it") from None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not a whole ledger ({error}); `adom ledger {folder}` writes it anew") from None


def _page(ledger: Ledger) -> Iterator[str]:
    kind = "the miniature (`--quick`): small stand-ins for the paper's panels" if ledger.quick else "the full size"
    yield from ("# The paper's claims", "")
    yield (
        f"Computed by `{ledger.command or 'adom ledger FOLDER'}` from {ledger.runs} result files"
        f"{f' ({ledger.missing} missing)' if ledger.missing else ''}; {kind}; commit {ledger.commit or 'unknown'}."
    )
    yield from ("", "Errors are squared distances to the solution, relative to the start. In brackets: the least and")
    yield "the greatest over seeds, or the 95 % interval of a fitted exponent. Parameters are chosen as `theory`,"
    yield "`unit` or `tuned` says, or found on the way (`auto`)."
    if ledger.quick:
        yield from ("", ledger.note_on_size)
    yield from ("", ledger.counts().markdown())
    full = ["full run"] if ledger.quick else []
    for title, claims in GROUPS.items():
        chosen = [entry for claim in claims for entry in ledger.entries if entry.claim == claim.name]
        if not chosen:
            continue
        rows = []
        for entry in chosen:
            beside = [entry.full_run] if ledger.quick else []
            rows.append([f"**{entry.verdict}**", entry.claim, entry.protocol, entry.count, *beside, entry.text])
        table = Table(["verdict", "claim", "protocol", "holds in", *full, "evidence"], rows)
        yield from ("", f"## {title}", "", table.markdown())
        for claim in claims:
            judged = [entry for entry in chosen if entry.claim == claim.name]
            if judged:
                yield from ("", f"### {claim.name}: {claim.statement} ({claim.where})", "", f"Rule: {claim.rule}")
            for entry in judged:
                if entry.table is not None:
                    verdict = ", ".join(text for text in (entry.verdict, entry.count) if text)
                    yield from ("", f"<details><summary>{entry.protocol}: {verdict}</summary>", "")
                    yield from (entry.table.markdown(), "", "</details>")


CLASSES = {"reproduced": "good", "partly": "mixed", "not reproduced": "bad"}  # anything else is "none"
SIGNS = {"good": "✓", "mixed": "◐", "bad": "✗", "none": "–"}
"""A sign for each class, so that verdicts differ in more than colour."""


def as_html(
    ledger: Ledger,
    sections: Sequence[findings.Section] = (),
    *,
    name: str = "",
    prefix: str = "",
    drawn: Collection[tuple[str, str, str]] = (),
) -> str:
    """Return a ledger as HTML: its claims by topic, then the findings.

    Parameters
    ----------
    ledger : Ledger
    sections : sequence of Section
        The findings.
    name : str
        Name of the reproduction, if the page shows several.
    prefix : str
        Prefix of its figures' names on the page.
    drawn : collection of (str, str, str)
        Figure, protocol and name of every panel on the page; rows of evidence link to these panels.
    """
    return "\n".join(_html(ledger, sections, name, prefix, drawn))


def _html(
    ledger: Ledger,
    sections: Sequence[findings.Section],
    name: str,
    prefix: str,
    drawn: Collection[tuple[str, str, str]],
) -> Iterator[str]:
    kind = "the miniature: small stand-ins for the paper's panels" if ledger.quick else "the paper's own sizes"
    missing = f", {ledger.missing} more are missing" if ledger.missing else ""
    text = f"Computed from {ledger.runs} result files{missing}; {kind}. {ERRORS} {ledger.note_on_size}"
    yield f"<h2>The paper's claims{f': {escaped(name)}' if name else ''}</h2>"
    yield f"<p>{escaped(text.strip())}</p>"
    counts = ledger.counts()
    badges = Table([counts.columns[0], *map(_badge, counts.columns[1:])], counts.rows)
    yield badges.html("Verdicts by protocol", row_heads=True)
    for title, claims in GROUPS.items():
        by_claim = {claim: ledger.of(claim.name).entries for claim in claims}
        if any(by_claim.values()):
            yield f"<h3>{escaped(title)}</h3>"
        for claim, judged in by_claim.items():
            if judged:
                yield from _claim(claim, judged, prefix, drawn)
    shown = [section for section in sections if section.table.rows]
    if shown:
        yield "<h2>Beside the claims</h2>"
    for section in shown:
        yield f"<h3>{escaped(section.title)}</h3><p>{_unquoted(section.text)}</p>"
        yield section.table.html(section.title)


def _claim(
    claim: Claim, judged: Sequence[Entry], prefix: str, drawn: Collection[tuple[str, str, str]]
) -> Iterator[str]:
    yield '<article class="claim">'
    yield f"<h4><code>{escaped(claim.name)}</code> {escaped(claim.statement)}</h4>"
    yield f'<p class="where">{escaped(claim.where)}</p><ul class="verdicts">'
    for entry in judged:
        beside = (entry.count, f"the full run: {entry.full_run}" if entry.full_run else "")
        counts = "".join(f' <span class="count">{escaped(text)}</span>' for text in beside if text)
        yield f'<li><span class="protocol">{escaped(entry.protocol)}</span> {_badge(entry.verdict)}{counts}'
        if entry.text:
            yield f'<p class="said">{_unquoted(entry.text)}</p>'
        if entry.table is not None:
            yield f"<details><summary>Evidence, {len(entry.table.rows)} rows</summary>"
            yield entry.table.html(f"Evidence under {entry.protocol}", _links(entry, prefix, drawn))
            yield "</details>"
        yield "</li>"
    yield f"</ul><details><summary>How it is judged</summary><p>{_unquoted(claim.rule)}</p></details></article>"


def _links(entry: Entry, prefix: str, drawn: Collection[tuple[str, str, str]]) -> list[str]:
    """Return the page address of the panel of each row of evidence; "" if that panel is not drawn."""
    return [
        _address("curves", f"{prefix}{row['figure']}", entry.protocol, row["panel"])
        if (row.get("figure"), entry.protocol, row.get("panel")) in drawn
        else ""
        for row in entry.evidence["panels"]
    ]


def _address(*parts: str) -> str:
    """Return the part of an address after the # for a place on the page.

    Examples
    --------
    >>> _address("curves", "kappa", "unit", "d40/1")
    'curves/kappa/unit/d40%2F1'
    """
    return "/".join(quote(part, safe="") for part in parts)


def _badge(verdict: str) -> Markup:
    kind = CLASSES.get(verdict, "none")
    sign = f'<span aria-hidden="true">{SIGNS[kind]}</span>'
    return Markup(f'<span class="badge {kind}">{sign} {escaped(verdict)}</span>')


def _unquoted(text: str) -> str:
    """Return text for HTML without Markdown's backquotes."""
    return escaped(text.replace("`", ""))
