"""The ledger as HTML, readable without scripts."""

from collections.abc import Collection, Iterator, Sequence

from ..page.text import address
from ..util.cards import Markup, escaped
from ..util.table import Table
from .claims import GROUPS, Claim
from .findings import Section
from .ledger import ERRORS, Ledger
from .verdicts import Entry

CLASSES = {"reproduced": "good", "partly": "mixed", "not reproduced": "bad"}  # anything else is "none"
SIGNS = {"good": "✓", "mixed": "◐", "bad": "✗", "none": "–"}
"""A sign for each class, so that verdicts differ in more than colour."""


def ledger_html(
    ledger: Ledger,
    sections: Sequence[Section] = (),
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
    return "\n".join(_lines(ledger, sections, name, prefix, drawn))


def _lines(
    ledger: Ledger, sections: Sequence[Section], name: str, prefix: str, drawn: Collection[tuple[str, str, str]]
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
        by_claim = {claim: [entry for entry in ledger.entries if entry.claim == claim.name] for claim in claims}
        if any(by_claim.values()):
            yield f"<h3>{escaped(title)}</h3>"
        for claim, entries in by_claim.items():
            if entries:
                yield from _claim(claim, entries, prefix, drawn)
    shown = [section for section in sections if section.table.rows]
    if shown:
        yield "<h2>Beside the claims</h2>"
    for section in shown:
        yield f"<h3>{escaped(section.title)}</h3><p>{_unquoted(section.text)}</p>"
        yield section.table.html(section.title)


def _claim(
    claim: Claim, entries: Sequence[Entry], prefix: str, drawn: Collection[tuple[str, str, str]]
) -> Iterator[str]:
    yield '<article class="claim">'
    yield f"<h4><code>{escaped(claim.name)}</code> {escaped(claim.statement)}</h4>"
    yield f'<p class="where">{escaped(claim.where)}</p><ul class="verdicts">'
    for entry in entries:
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
        address("curves", f"{prefix}{row['figure']}", entry.protocol, row["panel"])
        if (row.get("figure"), entry.protocol, row.get("panel")) in drawn
        else ""
        for row in entry.evidence["panels"]
    ]


def _badge(verdict: str) -> Markup:
    kind = CLASSES.get(verdict, "none")
    sign = f'<span aria-hidden="true">{SIGNS[kind]}</span>'
    return Markup(f'<span class="badge {kind}">{sign} {escaped(verdict)}</span>')


def _unquoted(text: str) -> str:
    """Return text for HTML without Markdown's backquotes."""
    return escaped(text.replace("`", ""))
