"""Saved results once more: `adom report` makes one page that works offline, `adom plot` one figure.

The page has curves, the ledger, and the network in motion: for that alone a part of a run is made again.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError, nearest
from ..util.columns import AXES
from .exit_codes import Exit
from .options import OUTPUT, AsJson, one_of

if TYPE_CHECKING:
    from ..networks import Network
    from ..problems.base import Problem
    from ..run.result import Result
    from ..study.replay import Motion

MOST = 200
"""The most runs of a folder to try for the network in motion."""
HINT = (
    "commands write it beside their results; for results saved from Python, "
    "adom.replay(result, problem, network) gives the motion"
)
CHOICES = (*AXES, "all")
"""What runs can be drawn against."""


def report(
    results: Annotated[
        list[Path],
        typer.Argument(metavar="RESULTS...", help="Result files, or folders of solve, compare, sweep or reproduce."),
    ],
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="Title of the page.")] = "",
    network: Annotated[
        bool,
        typer.Option(
            "--network/--no-network",
            metavar="",
            help="Run the first part of a run again and show the network in motion.",
        ),
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
    from .. import page
    from ..page import reading
    from ..paper.webpage import read_reproduction
    from ..util.text import format_count
    from . import output

    page.check()
    for path in results:
        reading.kind(path)  # which refuses other files
    output.file(out, (".html", ".htm"), "--out")
    content = reading.read(results, title=title, say=output.note, reproduction=read_reproduction)
    motion, why = _motion(results) if network else (None, "It was left out with --no-network.")
    content = replace(content, motion=motion, motionless=why)
    with output.busy("writing the page"):
        written = page.write(content, out)
    size, count = written.stat().st_size, len(content.runs)
    if json:
        frames = 0 if motion is None else len(motion.rounds)
        counts = {"bytes": size, "runs": count, "figures": len(content.figures), "frames": frames}
        output.as_json({"file": written, "files": {"page": written}, **counts})
    else:
        output.wrote(f"{written} ({size / 1e6:.1f} MB, {format_count(count, 'run')})")
    if network and motion is None:
        output.note(f"no network in motion: {why}")
    return Exit.DONE


def _motion(results: list[Path]) -> "tuple[Motion | None, str]":
    """Return the network in motion from the first input that allows it, or why none does."""
    why = ""
    for path in results:
        try:
            return _replay(path), ""
        except InputError as error:
            why = why or str(error)
    return None, why


def _replay(path: Path) -> "Motion":
    """Run the first stretch of a saved run again."""
    from ..dynamics.endings import LOST
    from ..page import reading
    from ..paper.webpage import replay_panel
    from ..plot.curves import instance
    from ..run.result import load
    from ..study import replay

    kind = reading.kind(path)
    if kind == "reproduction":
        return replay_panel(path)
    folder = path.parent if kind == "file" else path
    if not (folder / "config.toml").is_file():
        raise InputError(f"{path} has no config.toml beside it that says how it was made; {HINT}")
    files = [path] if kind == "file" else reading.run_files(path, kind)
    errors, runs = [], []
    for file in files[:MOST]:
        try:
            runs.append(load(file))
        except InputError as error:
            errors.append(error)
    if not runs:
        raise errors[0]
    runs = [run for run in runs if not reading.is_search(run)] or runs
    # ADOM's best run that did not fail comes first.
    runs.sort(key=lambda run: (run.status in LOST, run.provenance["method"]["name"] != "adom", reading.rank(run)))
    replay.check_size((runs[0].provenance.get("problem") or {}).get("nodes") or 0)  # before anything large is built
    pair_of = _pairs(folder / "config.toml")
    errors = []
    for run in runs:
        try:
            motion = replay.replay(run, *pair_of(run))
        except InputError as error:
            errors.append(error)
        else:
            if "compare" in run.provenance:
                at = ", ".join(filter(None, instance(run).values()))
                return replace(motion, title=f"{motion.title}; {at}")
            return motion
    raise errors[0]


def _pairs(file: Path) -> "Callable[[Result], tuple[Problem, Network]]":
    """Return a function that builds problem and network of a run, from the settings and its place in a comparison."""
    from . import build
    from .config import settle
    from .many_runs import networks_by_seed, networks_of, problem_by_seed, ways_of
    from .settings import USUAL

    settings = settle(file, {}, USUAL)
    drawn, ways = bool(settings.compare.seeds), ways_of(settings)

    @cache
    def built(problem: str, network: str, seed: int | None) -> "tuple[Problem, Network]":
        configs = networks_of(settings, {}, file)
        if network not in configs:
            raise InputError(
                f"the run is on the network {network}, but {file} has {', '.join(configs)}; "
                "put the config.toml there that was written with the run"
            )
        (net,) = networks_by_seed({network: configs[network]}, drawn=drawn).values()
        on = problem_by_seed(settings, net, drawn=drawn, ways=bool(ways))
        made = on if not callable(on) else on(seed, problem) if ways else on(seed)
        return made, net(seed) if callable(net) else net

    def pair_of(run: "Result") -> "tuple[Problem, Network]":
        if at := run.provenance.get("compare"):
            return built(at["problem"], at["network"], at.get("seed"))
        return alone()

    @cache
    def alone() -> "tuple[Problem, Network]":
        network = build.network(settings)
        return build.problem(settings, network.nodes), network

    return pair_of


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
