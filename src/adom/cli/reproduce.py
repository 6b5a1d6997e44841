"""`adom reproduce`: the paper's figures and claims, from scratch or resumed; `adom ledger`: the claims judged again."""

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..run.request import AUTO, PROTOCOLS, TUNED
from .exit_codes import Exit
from .options import AsJson, OutFolder, number_option, one_of, several_of, switch

if TYPE_CHECKING:
    from ..paper.ledger import Ledger

FILES = {"ledger": "ledger.md", "json": "ledger.json", "findings": "findings.md"}

Full = Annotated[bool, switch("--full", "Print the evidence of every verdict too.")]
JUDGED = (*PROTOCOLS, TUNED, AUTO)
"""Ways to choose parameters under which the claims are judged."""
ALL = ",".join(JUDGED)


def figure_names() -> list[str]:
    """Return the names of the figures."""
    from ..paper.panels import FIGURES

    return list(FIGURES)


Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FIGURE]...",
        help="network, slow2, kappa, chi, real_kappa, real_chi, real_networks; and complete, theory, rates, "
        "heterogeneity; or a panel, such as kappa/d40-kappa100, with --quick kappa/d10-kappa100; left out: all.",
        show_default=False,
        autocompletion=one_of(figure_names),
    ),
]
Quick = Annotated[bool, switch("--quick", "A miniature of everything, in less than three minutes.")]
Protocols = Annotated[
    str,
    typer.Option(
        "--protocols",
        metavar="TEXT",
        help="Ways to choose parameters, separated by commas: some of theory, unit, tuned, auto.",
        autocompletion=several_of(JUDGED),
    ),
]
Seeds = Annotated[int | None, number_option("--seeds", "Draws per panel; by default 3, with --quick 1.", int, 3)]
Workers = Annotated[int | None, number_option("--workers", "Processes; by default one per core.", int, 2)]


def reproduce(
    figures: Names = None,
    quick: Quick = False,
    protocols: Protocols = ALL,
    seeds: Seeds = None,
    workers: Workers = None,
    full: Full = False,
    out: OutFolder = Path("out/reproduce"),
    json: AsJson = False,
) -> int:
    """Reproduce the paper: its figures, tables of all runs, and a ledger of its claims.

    Every run is saved as soon as it has finished; the same command goes on
    where it was ended or killed. The exit code is 1 if some runs could not be
    made. Writes figures/, tables/, ledger.md and findings.md; the paper's sizes
    take half an hour on two cores, --quick minutes. Claims that --quick cannot
    judge are shown with the full run's verdict.
    """
    from ..paper.plan import SCALES, read_names, read_protocols
    from . import output

    chosen = [name.strip() for name in protocols.split(",") if name.strip()]
    read_protocols(chosen)
    read_names(figures, SCALES["quick" if quick else "full"].size)
    output.folder(out)

    from ..paper.reproduction import reproduce as reproduce_paper

    done = reproduce_paper(figures, quick=quick, folder=out, protocols=chosen, seeds=seeds, workers=workers)
    for job, reason in done.lost.items():
        output.note(f"{job} could not be run: its process died ({reason}); the same command tries it again")
    if json:
        summary = {
            "folder": done.folder,
            "quick": done.plan.quick,
            "jobs": len(done.outcomes),
            "done": done.done,
            "missing": done.plan.refused,
            "lost": done.lost,
            "seconds": round(done.seconds, 1),
            "files": done.files,
            "ledger": done.ledger.to_json()["entries"],
        }
        output.as_json(summary)
    else:
        size = "a miniature: --quick" if quick else "the paper's sizes"
        output.lines(f"{done.done} of {len(done.outcomes)} runs, {size}, {done.seconds:.0f} s", "")
        print_claims(done.ledger, full)
        by_folder: dict[Path, list[str]] = {}
        for path in done.files:
            by_folder.setdefault(path.parent, []).append(path.name)
        output.wrote(*(f"{folder}: {', '.join(names)}" for folder, names in by_folder.items()))
    return Exit.FAILED if done.lost else Exit.DONE


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
