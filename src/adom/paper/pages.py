"""The pages of a reproduction: one per figure and protocol, drawn from the files of its folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..networks import geometric
from ..plot.style import save
from ..study.execute import Outcome
from .evidence import table_of_runs
from .figures import SPLIT, Curves, panel_grid, sample_network
from .panels import FIGURES
from .rates_figure import rates_figure
from .runs import PaperPanel, load_plan, read_outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("png", "pdf")


def pages(figures: Sequence[str], protocols: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pages of some figures as (figure, protocol); figure network has the protocol ""."""
    names = dict.fromkeys(given.partition("/")[0] for given in figures)
    return [
        (name, protocol)
        for name in names
        if name != "theory"  # a table, not curves
        for protocol in ([""] if name == "network" else FIGURES[name].protocols)
        if not protocol or protocol in protocols
    ]


def pictures(folder: Path, figure: str, protocol: str) -> list[Path]:
    """Return the existing files of a page."""
    return [path for path in _files(folder, figure, protocol) if path.exists()]


def _files(folder: Path, figure: str, protocol: str) -> list[Path]:
    name = f"{figure}-{protocol}" if protocol else figure
    return [folder / "figures" / f"{name}.{kind}" for kind in KINDS]


def draw(page: tuple[str, str], folder: Path) -> None:
    """Draw a page, one figure under one protocol, as PNG and PDF; figure network has the protocol "".

    Without runs there is nothing to draw, and an old picture is removed.
    """
    figure, _ = page
    drawn = sample_network(geometric(20, 0.3, graphs=3, seed=0)) if figure == "network" else _page(folder, *page)
    for path in _files(folder, *page):
        if drawn is None:
            path.unlink(missing_ok=True)
        else:
            save(drawn, path)


def _page(folder: Path, figure: str, protocol: str) -> "Figure | None":
    """Return the picture of a figure under a protocol; None without runs."""
    plan = load_plan(folder)
    jobs = [job for job in plan.jobs if (job.panel.figure, job.protocol) == (figure, protocol)]
    outcomes = [read_outcome(job, folder, plan) for job in jobs if job.variant in ("", SPLIT)]
    if not any(outcome.result for outcome in outcomes):
        return None
    title = f"{FIGURES[figure].caption}\nparameters {protocol}{'; quick: a miniature' if plan.quick else ''}"
    laws = rates_figure(table_of_runs(outcomes), protocol, title=title) if figure == "rates" else None
    return laws or _curves(outcomes, title, list(FIGURES[figure].methods))


def _curves(outcomes: Sequence[Outcome], title: str, methods: Sequence[str]) -> "Figure":
    """Draw the curves of outcomes, each panel at its row and column."""
    shown: dict[str, tuple[PaperPanel, Any, str]] = {}
    rounds: dict[tuple[int, int], int] = {}
    for outcome in outcomes:
        panel = outcome.job.panel
        curves = shown.setdefault(panel.name, (panel, {}, outcome.reason))[1]
        if outcome.result is not None:
            curves.setdefault((outcome.job.method, outcome.job.variant), []).append(outcome.result)
        rounds[panel.row, panel.column] = max(outcome.job.rounds, rounds.get((panel.row, panel.column), 0))
    reach = _reach(list(shown.values()), rounds)
    return panel_grid(list(shown.values()), title=title, methods=methods, rounds=reach)


def _reach(
    shown: Sequence[tuple[PaperPanel, Curves, str]], rounds: Mapping[tuple[int, int], int]
) -> dict[tuple[int, int], int]:
    """Return the end of each axis: the budget, or the end of the longest run that did not diverge, if earlier."""
    reach = {}
    for panel, curves, _ in shown:
        budget = rounds[panel.row, panel.column]
        runs = [run for several in curves.values() for run in several if run.status != "diverged"]
        longest = max((int(run.history["round"].iloc[-1]) for run in runs), default=0)
        reach[panel.row, panel.column] = min(budget, longest) or budget
    return reach
