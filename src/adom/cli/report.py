"""`adom report`: results, the ledger and the network in motion as one page that works offline."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .exit_codes import Exit
from .options import OUTPUT, AsJson

if TYPE_CHECKING:
    from ..run.result import Result
    from ..study.replay import Motion

MOST = 200
"""Runs of a folder among which one is looked for that can be shown in motion."""
HINT = "`adom solve` leaves config.toml beside its result; `adom report` on that folder shows the network in motion"


def report(
    results: Annotated[
        list[Path],
        typer.Argument(metavar="RESULTS...", help="Result files, or folders of solve, compare, sweep or reproduce."),
    ],
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="What the page is called.")] = "",
    network: Annotated[
        bool,
        typer.Option("--network/--no-network", metavar="", help="Run a stretch again and show the network in motion."),
    ] = True,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="Page to write: .html.", rich_help_panel=OUTPUT),
    ] = Path("report.html"),
    json: AsJson = False,
) -> int:
    """Write one HTML page: curves, the paper's claims, the network, all runs.

    The page works offline. To show the network in motion, the first stretch of
    one run is made again, from the config.toml beside it or from the plan of a
    reproduction.
    """
    from dataclasses import replace

    from .. import page
    from ..page import report as reports
    from . import output

    page.check()
    for path in results:
        reports.kind(path)  # which refuses what cannot be read
    output.results([path for path in results if not path.is_dir()])
    output.file(out, (".html", ".htm"), "--out")
    content = reports.read(results, title=title, say=output.note)
    motion, why = _motion(results) if network else (None, "It was left out with --no-network.")
    content = replace(content, motion=motion, motionless=why)
    with output.busy("writing the page"):
        written = page.write(content, out)
    size = written.stat().st_size
    if json:
        frames = 0 if motion is None else len(motion.rounds)
        output.as_json(
            {
                "file": written,
                "files": {"page": written},
                "bytes": size,
                "runs": len(content.runs),
                "figures": len(content.figures),
                "frames": frames,
            }
        )
    else:
        count = len(content.runs)
        output.lines("wrote", f"  {written} ({size / 1e6:.1f} MB, {count} run{'' if count == 1 else 's'})")
    if network and motion is None:
        output.note(f"no network in motion: {why}")
    return Exit.DONE


def _motion(results: list[Path]) -> "tuple[Motion | None, str]":
    """Return the network in motion from the first input that allows it, or why none does."""
    why = ""
    for path in results:
        try:
            return _of(path), ""
        except InputError as error:
            why = why or str(error)
    return None, why


def _of(path: Path) -> "Motion":
    from ..page import report as reports
    from ..study import replay
    from . import build
    from .config import settle
    from .settings import USUAL

    kind = reports.kind(path)
    if kind == "reproduction":
        return replay.replay_panel(path)
    folder = path.parent if kind == "file" else path
    if not (folder / "config.toml").is_file():
        raise InputError(f"{path} has no config.toml beside it that says how it was made; {HINT}")
    files = [path] if kind == "file" else sorted(folder.glob("members/*.npz" if kind == "sweep" else "*.npz"))
    runs = sorted(_whole(files[:MOST]), key=_preference)
    replay.check_size((runs[0].provenance.get("problem") or {}).get("nodes") or 0)  # before anything large is built
    settings = settle(folder / "config.toml", {}, USUAL)
    network = build.network(settings)
    problem = build.problem(settings, network.nodes)
    why = None
    for run in runs:
        try:
            return replay.replay(run, problem, network)
        except InputError as error:
            why = why or error
    assert why is not None
    raise why


def _whole(files: list[Path]) -> "list[Result]":
    """Read those results that are not damaged, of which there is one at least."""
    from ..run.result import load

    found, damaged = [], []
    for file in files:
        try:
            found.append(load(file))
        except InputError as error:
            damaged.append(error)
    if not found:
        raise damaged[0]
    return found


def _preference(run: "Result") -> tuple[Any, ...]:
    """Return what sorts the runs of a folder, the one to be shown in motion first: ADOM's best that is not lost."""
    from ..page.report import rank
    from ..run.endings import LOST

    return run.status in LOST, run.provenance["method"]["name"] != "adom", rank(run)
