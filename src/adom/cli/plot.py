"""`adom plot`: draw saved results again; nothing is run."""

from pathlib import Path
from typing import Annotated

import typer


def plot(
    results: Annotated[list[Path], typer.Argument(metavar="RESULT.npz...", help="Files that runs saved.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Figure to write: .png, .pdf or .svg.")
    ] = Path("out/plot.png"),
    axis: Annotated[
        str, typer.Option("--axis", metavar="AXIS", help="round, gradients, floats_sent, seconds or all.")
    ] = "round",
) -> int:
    """Draw saved runs in one figure."""
    from ..engine.result import load
    from ..report.figures import convergence, save
    from .output import lines

    figure = convergence([load(path) for path in results], axis=axis)
    lines("wrote", f"  {save(figure, output)}")
    return 0
