"""`adom bench`: rank methods on a fixed suite, also from the files of others."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError, nearest
from ..run.request import AUTO, PROTOCOLS
from ..util.text import format_count
from .exit_codes import Exit
from .many_runs import once
from .options import AsJson, OutFolder, number_option, several_of, switch
from .own_code import method_of, name_of

CHOICES = (AUTO, *PROTOCOLS)
Methods = Annotated[
    str | None,
    typer.Option(
        "--methods",
        metavar="TEXT",
        help="Names of methods, separated by commas, also module:Class of your own; left out: all.",
    ),
]
Method = Annotated[
    list[str] | None,
    typer.Option("--method", metavar="TEXT", help="module:Class of your own, beside the others; may be repeated."),
]
Protocols = Annotated[
    str,
    typer.Option(
        "--protocols",
        metavar="TEXT",
        help="Ways to choose parameters, separated by commas: some of auto, theory, unit.",
        autocompletion=several_of(CHOICES),
    ),
]
Add = Annotated[
    list[Path] | None,
    typer.Option("--add", metavar="FILE", help="File of results of another method, to rank too; may be repeated."),
]


def bench(
    quick: Annotated[bool, switch("--quick", "Three pairs with a smaller budget: about a minute.")] = False,
    methods: Methods = None,
    method: Method = None,
    protocols: Protocols = "auto,theory",
    add: Add = None,
    fresh: Annotated[bool, switch("--fresh", "Do not resume: remove the runs that the folder holds.")] = False,
    schema: Annotated[bool, switch("--schema", "Print the schema of a file of results, and run nothing.")] = False,
    workers: Annotated[
        int | None, number_option("--workers", "Processes; by default one per core.", int, 2, ge=1, le=10_000)
    ] = None,
    out: OutFolder = Path("out/bench"),
    json: AsJson = False,
) -> int:
    """Run all methods on a fixed suite of problems and networks.

    Every run is saved as soon as it has finished; the same command goes on
    where it was ended or killed, and one with more methods runs these. Writes
    bench.html with ranks, performance profiles and curves, and results.json,
    which others can --add to theirs.
    """
    from . import output

    if schema:
        from ..bench.records import schema as text

        output.lines(text())
        return Exit.DONE
    chosen, ways = _methods(methods, method), _protocols(protocols)
    output.folder(out)

    from ..bench.page import shown_ranks
    from ..bench.run import bench as run_bench

    done = run_bench(chosen, quick=quick, folder=out, protocols=ways, add=add or [], fresh=fresh, workers=workers)
    for key, reason in done.lost.items():
        output.note(f"{key} could not be run ({reason}); the same command tries it again")
    for reason, count in Counter(f"{o.job.label} did not run: {o.reason}" for o in done.outcomes if o.refused).items():
        output.note(f"{reason} ({format_count(count, 'run')})")
    if json:
        found = {name: table.to_dict("records") for name, table in done.ranks.items()}
        counts = {"runs": len(done.outcomes), "done": sum(not o.to_do for o in done.outcomes)}
        about = {"folder": done.folder, "quick": quick, **counts, "seconds": round(done.seconds, 1)}
        output.as_json({**about, "notes": done.notes, "ranks": found, "lost": done.lost, "files": done.files})
    else:
        output.lines(*done.notes, f"{len(done.outcomes)} runs, {done.seconds:.0f} s")
        for name, ranked in done.ranks.items():
            t = shown_ranks(ranked, "rounds")
            output.table(f"parameters {name}", tuple(t.columns), t.rows, numbers=tuple(t.columns[1:]))
        output.wrote(*map(str, done.files))
    return Exit.FAILED if done.lost else Exit.DONE


def _methods(names: str | None, own: list[str] | None) -> list[str] | None:
    """Return the requested methods; None for all."""
    chosen = None if names is None else [name_of(part.strip()) for part in names.split(",") if part.strip()]
    if own and chosen is None:
        from ..bench.run import suite_methods

        chosen = suite_methods()
    for flag, given in (("--methods", chosen), ("--method", own)):
        for name in once(flag, given or []):
            method_of(name, flag)
    if twice := next((name for name in own or [] if name in (chosen or [])), None):
        raise InputError(f"--method {twice} is among the others already; leave it out")
    if chosen == []:
        raise InputError(f"--methods {names!r} names no method; `adom methods` lists them")
    return [*(chosen or []), *(own or [])] or None


def _protocols(text: str) -> list[str]:
    chosen = [name.strip() for name in text.split(",") if name.strip()]
    for name in chosen:
        if name not in CHOICES:
            raise InputError(f"unknown protocol {name!r}; {nearest(name, CHOICES)}")
    if not chosen:
        raise InputError(f"--protocols {text!r} names none; give some of {', '.join(CHOICES)}")
    return chosen
