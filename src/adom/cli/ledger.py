"""`adom ledger`: compute every verdict of a reproduction again from its files; nothing is run."""

from pathlib import Path
from typing import Annotated

import typer

from .exit_codes import Exit
from .options import AsJson

FILES = {"ledger": "ledger.md", "json": "ledger.json", "findings": "findings.md"}


def ledger(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder that `adom reproduce` filled.")],
    claim: Annotated[
        str | None, typer.Option("--claim", metavar="ID", help="Show one claim only, such as kap.", show_default=False)
    ] = None,
    json: AsJson = False,
) -> int:
    """Judge the paper's claims from the files of a reproduction.

    Writes ledger.json, ledger.md and findings.md into the folder; verdicts
    are reproduced, partly, not reproduced, and not tested; not judged is what
    a miniature cannot tell, and the full run's verdict stands beside it.
    """
    from ..paper import findings
    from ..paper import ledger as ledgers
    from ..paper.claims import CLAIMS
    from ..paper.runs import load_outcomes
    from . import output

    if claim is not None:
        ledgers.check_claim(claim)
    with output.busy("reading the results"):
        outcomes = load_outcomes(folder)
        whole = ledgers.write(folder, outcomes)
        findings.write(folder, outcomes)
    for one in outcomes:
        if one.damaged:
            output.note(f"counted as missing: {one.damaged}")
    files = {name: folder / file for name, file in FILES.items()}
    shown = whole if claim is None else whole.of(claim)
    if json:
        output.as_json({**shown.to_json(), "files": files})
        return Exit.DONE
    size = "miniature" if whole.quick else "full size"
    output.table(
        f"{whole.runs} results{f', {whole.missing} missing' if whole.missing else ''}; {size}; "
        f"commit {whole.commit or 'unknown'}",
        shown.columns,
        shown.rows(),
    )
    output.lines(*([shown.said_of_size] if shown.quick else []))
    if claim is not None:
        output.lines("rule", f"  {CLAIMS[claim].rule}")
    output.lines("wrote", *(f"  {path}" for path in files.values()))
    return Exit.DONE
