"""`adom reproduce`: the paper's figures and claims, from scratch or from where it was left."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError, nearest
from .completion import one_of, several_of
from .exit_codes import Exit
from .options import AsJson, OutFolder, number
from .settings import PARAMETERS, Setting

if TYPE_CHECKING:
    from ..paper.reproduce import Reproduction

FIGURES = (
    "network",
    "slow2",
    "kappa",
    "chi",
    "real_kappa",
    "real_chi",
    "real_networks",
    "complete",
    "theory",
    "rates",
    "heterogeneity",
)

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FIGURE]...",
        help="network, slow2, kappa, chi, real_kappa, real_chi, real_networks; and complete, theory, rates, "
        "heterogeneity; or a panel, such as kappa/d40-kappa100; left out: all of them.",
        show_default=False,
        autocompletion=one_of(FIGURES),
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", metavar="", help="A miniature of everything, in less than three minutes.")
]
Protocols = Annotated[
    str,
    typer.Option(
        "--protocols",
        metavar="TEXT",
        help="Ways to choose parameters, separated by commas: some of theory, unit, tuned.",
        autocompletion=several_of(PARAMETERS),
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        metavar="N",
        help="Draws a panel; by default 3, with --quick 1.",
        show_default=False,
        parser=number(int, "--seeds", Setting("", least=1, most=1000, example=3)),
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        help="Processes; by default one a core.",
        show_default=False,
        parser=number(int, "--workers", Setting("", least=1, most=10_000, example=2)),
    ),
]


def reproduce(
    figures: Names = None,
    quick: Quick = False,
    protocols: Protocols = "theory,unit,tuned",
    seeds: Seeds = None,
    workers: Workers = None,
    out: OutFolder = Path("out/reproduce"),
    json: AsJson = False,
) -> int:
    """Reproduce the paper: its figures, tables of all runs, and a ledger of its claims.

    Every run is saved as soon as it has finished; the same command goes on
    where it was ended or killed. The exit code is 1 if some runs could not be
    made. Writes figures/, tables/, ledger.md and findings.md; the paper's sizes
    take hours, --quick minutes. What --quick cannot judge it shows beside the
    full run's verdict.
    """
    from . import output

    chosen = _check_early(figures, protocols)
    output.folder(out)

    from ..paper.reproduce import reproduce as reproduce_paper

    done = reproduce_paper(figures, quick=quick, folder=out, protocols=chosen, seeds=seeds, workers=workers)
    for job, words in done.lost.items():
        output.note(f"{job} could not be run: its process died ({words}); the same command tries it again")
    if json:
        output.as_json(_summary(done))
    else:
        _print(done)
    return Exit.FAILED if done.lost else Exit.DONE


def _check_early(figures: list[str] | None, protocols: str) -> list[str]:
    """Refuse names that are not known before anything is loaded; return the protocols."""
    for name in figures or []:
        if name.partition("/")[0] not in FIGURES:
            raise InputError(f"no figure is called {name!r}; {nearest(name, FIGURES)}")
    chosen = [name.strip() for name in protocols.split(",") if name.strip()]
    for name in chosen:
        if name not in PARAMETERS:
            raise InputError(f"unknown protocol {name!r}; {nearest(name, PARAMETERS)}")
    if not chosen:
        raise InputError(f"--protocols {protocols!r} names none; give some of {', '.join(PARAMETERS)}")
    return chosen


def _summary(done: "Reproduction") -> dict[str, Any]:
    return {
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


def _print(done: "Reproduction") -> None:
    from .output import lines, table

    size = "a miniature: --quick" if done.plan.quick else "the paper's sizes"
    took = f"{done.done} of {len(done.outcomes)} runs, {size}, {done.seconds:.0f} s"
    table(took, done.ledger.columns, done.ledger.rows())
    lines(*([done.ledger.said_of_size] if done.plan.quick else []))
    by_folder: dict[Path, list[str]] = {}
    for path in done.files:
        by_folder.setdefault(path.parent, []).append(path.name)
    lines("wrote", *(f"  {folder}: {', '.join(names)}" for folder, names in by_folder.items()))
