"""`adom plot`: draw saved results again; nothing is run."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError, nearest
from ..util.columns import AXES
from .exit_codes import Exit
from .options import OUTPUT, AsJson, one_of

CHOICES = (*AXES, "all")
"""What runs can be drawn against."""


def plot(
    results: Annotated[list[Path], typer.Argument(metavar="RESULT.npz...", help="Files that runs saved.")],
    axis: Annotated[
        str,
        typer.Option(
            "--axis",
            metavar="AXIS",
            help=f"{', '.join(AXES)}, or all: a picture of each.",
            autocompletion=one_of(CHOICES),
        ),
    ] = "round",
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="Figure: .png, .pdf or .svg.", rich_help_panel=OUTPUT),
    ] = Path("out/plot.png"),
    json: AsJson = False,
) -> int:
    """Draw saved runs in one figure; nothing is run."""
    from . import output

    if axis not in CHOICES:
        raise InputError(f"unknown axis {axis!r}; {nearest(axis, CHOICES)}")
    output.results(results)
    output.file(out, (".png", ".pdf", ".svg"), "--out")

    from ..plot.curves import convergence
    from ..plot.style import save
    from ..run.result import load

    runs = [load(path) for path in results]
    written = save(convergence(runs, axis=axis), out)
    if json:
        output.as_json({"runs": len(runs), "axis": axis, "files": {"figure": written}})
    else:
        output.wrote(written)
    return Exit.DONE
