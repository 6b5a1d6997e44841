"""`adom reproduce`: the paper's figures and claims, from scratch or resumed."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError, nearest
from ..run.request import AUTO, PROTOCOLS, TUNED
from .completion import one_of, several_of
from .exit_codes import Exit
from .ledger import Full, print_claims
from .options import AsJson, OutFolder, number_option, switch

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
    from . import output

    chosen = _check(figures, protocols)
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


def _check(figures: list[str] | None, protocols: str) -> list[str]:
    """Refuse unknown names before JAX is loaded; return the protocols."""
    known = figure_names()
    for name in figures or []:
        if name.partition("/")[0] not in known:
            raise InputError(f"no figure is called {name!r}; {nearest(name, known)}")
    chosen = [name.strip() for name in protocols.split(",") if name.strip()]
    for name in chosen:
        if name not in JUDGED:
            raise InputError(f"unknown protocol {name!r}; {nearest(name, JUDGED)}")
    if not chosen:
        raise InputError(f"--protocols {protocols!r} names none; give some of {', '.join(JUDGED)}")
    return chosen
