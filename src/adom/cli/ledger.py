"""`adom ledger`: compute every verdict of a reproduction again from its files; nothing is run."""

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .exit_codes import Exit
from .options import AsJson, switch

if TYPE_CHECKING:
    from ..paper.ledger import Ledger

FILES = {"ledger": "ledger.md", "json": "ledger.json", "findings": "findings.md"}

Full = Annotated[bool, switch("--full", "Print the evidence of every verdict too.")]


def ledger(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder that `adom reproduce` filled.")],
    claim: Annotated[
        str | None,
        typer.Option("--claim", metavar="NAME", help="Show one claim only, with its rule.", show_default=False),
    ] = None,
    full: Full = False,
    json: AsJson = False,
) -> int:
    """Judge the paper's claims from the files of a reproduction.

    Prints each claim with its verdicts: reproduced, partly, not reproduced or
    not tested; not judged is a claim that a miniature cannot judge, with the
    full run's verdict beside it. Writes ledger.json, ledger.md and findings.md
    into the folder.
    """
    from ..paper import ledger as ledgers
    from ..paper.claims import find_claim
    from ..paper.runs import load_outcomes
    from . import output

    if claim is not None:
        find_claim(claim)
    with output.busy("reading the results"):
        outcomes = load_outcomes(folder)
        whole = ledgers.write(folder, outcomes)
    for outcome in outcomes:
        if outcome.damaged:
            output.note(f"counted as missing: {outcome.damaged}")
    files = {name: folder / file for name, file in FILES.items()}
    chosen = whole if claim is None else whole.of(claim)
    if json:
        output.as_json({**chosen.to_json(), "files": files})
        return Exit.DONE
    missing = f", {whole.missing} missing" if whole.missing else ""
    size = "miniature" if whole.quick else "full size"
    output.lines(f"{whole.runs} results{missing}; {size}; commit {whole.commit or 'unknown'}", "")
    print_claims(chosen, full)
    if claim is not None:
        output.lines(*output.wrapped(f"rule: {find_claim(claim).rule}", "  ", "    "), "")
    output.wrote(*files.values())
    return Exit.DONE


def print_claims(ledger: "Ledger", full: bool) -> None:
    """Print each claim of a ledger with its verdicts, and with `full` also the evidence."""
    from .output import lines, wrapped

    for claim, group in groupby(ledger.entries, key=lambda entry: entry.claim):
        entries = list(group)
        verdicts = []
        for entry in entries:
            count = f" in {entry.count}" if entry.count else ""
            beside = f" (full run: {entry.full_run})" if entry.full_run else ""
            verdicts.append(f"{entry.protocol} {entry.verdict}{count}{beside}")
        first = entries[0]
        lines(*wrapped(f"{claim}: {first.statement} ({first.where}): {'; '.join(verdicts)}", "", "    "))
        for entry in entries:
            if full and entry.text:
                lines(*wrapped(f"{entry.protocol}: {entry.text}", "    - ", "      "))
    lines("", *([*wrapped(ledger.note_on_size), ""] if ledger.quick else []))
