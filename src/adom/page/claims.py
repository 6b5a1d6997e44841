"""The ledger as HTML: it is there also where no script runs."""

from collections.abc import Iterable, Iterator

from .content import Claim, Ledger, Table, Verdict
from .text import escaped

CLASSES = {"reproduced": "good", "partly": "mixed", "not reproduced": "bad"}  # all else is no verdict
SIGNS = {"good": "✓", "mixed": "◐", "bad": "✗", "none": "–"}
"""A sign for each verdict, so that none of them rests on its colour alone."""
CLOSING = "</tbody></table></div>"


def ledger_html(ledger: Ledger) -> str:
    """Return a ledger, its claims by what they are about, and the findings beside it."""
    return "\n".join(_ledger(ledger))


def _ledger(ledger: Ledger) -> Iterator[str]:
    yield f"<h2>The paper's claims{f': {escaped(ledger.name)}' if ledger.name else ''}</h2>"
    yield f"<p>{escaped(ledger.text)}</p>"
    yield from _counts(ledger.counts)
    for title, claims in ledger.groups.items():
        shown = [claim for claim in claims if claim.verdicts]
        if shown:
            yield f"<h3>{escaped(title)}</h3>"
        for claim in shown:
            yield from _claim(claim)
    if ledger.findings:
        yield "<h2>Beside the claims</h2>"
    for table in ledger.findings:
        yield f"<h3>{escaped(table.title)}</h3><p>{_unquoted(table.text)}</p>"
        yield from _table(table, table.title)


def _counts(table: Table) -> Iterator[str]:
    """Yield how many claims have each verdict, under each protocol."""
    first, *verdicts = table.columns
    yield from _opening("Verdicts by protocol", [escaped(first), *map(_badge, verdicts)])
    for row in table.rows:
        cells = "".join(f'<td class="number">{escaped(cell)}</td>' for cell in row[1:])
        yield f'<tr><th scope="row">{escaped(row[0])}</th>{cells}</tr>'
    yield CLOSING


def _claim(claim: Claim) -> Iterator[str]:
    yield '<article class="claim">'
    yield f"<h4><code>{escaped(claim.name)}</code> {escaped(claim.statement)}</h4>"
    yield f'<p class="where">{escaped(claim.where)}</p><ul class="verdicts">'
    for one in claim.verdicts:
        yield from _verdict(one)
    yield f"</ul><details><summary>How it is judged</summary><p>{_unquoted(claim.rule)}</p></details></article>"


def _verdict(one: Verdict) -> Iterator[str]:
    beside = (one.count, f"the full run: {one.full_run}" if one.full_run else "")
    counts = "".join(f' <span class="count">{escaped(text)}</span>' for text in beside if text)
    yield f'<li><span class="protocol">{escaped(one.protocol)}</span> {_badge(one.verdict)}{counts}'
    if one.said:
        yield f'<p class="said">{_unquoted(one.said)}</p>'
    if one.evidence is not None:
        yield f"<details><summary>Evidence, {len(one.evidence.rows)} rows</summary>"
        yield from _table(one.evidence, f"Evidence under {one.protocol}")
        yield "</details>"
    yield "</li>"


def _badge(verdict: str) -> str:
    kind = CLASSES.get(verdict, "none")
    return f'<span class="badge {kind}"><span aria-hidden="true">{SIGNS[kind]}</span> {escaped(verdict)}</span>'


def _opening(name: str, heads: Iterable[str]) -> Iterator[str]:
    """Yield how a table begins that can be scrolled, also by keys; `heads` is HTML."""
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(name)}"><table><thead><tr>'
    yield from (f'<th scope="col">{head}</th>' for head in heads)
    yield "</tr></thead><tbody>"


def _table(table: Table, name: str) -> Iterator[str]:
    yield from _opening(name, map(escaped, table.columns))
    yield from _rows(table)
    yield CLOSING


def _rows(table: Table) -> Iterable[str]:
    at = table.columns.index("panel") if "panel" in table.columns else -1
    for number, row in enumerate(table.rows):
        link = table.links[number] if table.links else ""
        cells = [escaped(cell) for cell in row]
        if link and at >= 0:
            cells[at] = f'<a href="#{escaped(link)}">{cells[at]}</a>'
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _unquoted(text: str) -> str:
    """Return text for HTML without the quotes of Markdown."""
    return escaped(text.replace("`", ""))
