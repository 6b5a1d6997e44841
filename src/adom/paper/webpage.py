"""Content of a reproduction's page: every panel of every figure, every run, the ledger, and a network in motion."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..algorithms import method_class
from ..errors import InputError
from ..page.content import Content, Figure, Line, Panel, Run
from ..page.reading import ResultFile, run_row
from ..run.progress import Progress
from ..study.execute import Outcome
from ..study.replay import NODES, Motion, replay
from ..util.table import in_words
from ..util.text import SUPERSCRIPTS
from . import findings, ledger
from .evidence import SETTINGS, table_of_runs
from .panels import FIGURES
from .runs import PaperJob, load_plan, read_outcome

SYMBOLS = {"kappa": "κ", "chi": "χ", "mu": "μ", "eta": "η", "tau": "τ", "sigma": "σ", "theta": "θ", "alpha": "α"}
VARIANTS = {"": "", "split-label": "split by label", "exact": "oracle exact", "auto": "oracle auto", "others": ""}
"""Variants of a method's runs in a panel, in words; those not in `ON` are hidden at first."""
ON = ("", "split-label", "others")
TITLES = {
    "slow2": "slow changes",
    "kappa": "synthetic data over κ",
    "chi": "synthetic data over χ",
    "real_kappa": "real data over κ",
    "real_chi": "real data over χ",
    "real_networks": "real data, real network",
    "complete": "the complete graph",
    "rates": "rates of Table 1",
    "heterogeneity": "data split by label",
}
"""Titles of the figures on the page."""


def read_reproduction(
    folder: Path, prefix: str = "", progress: bool | None = None, say: Callable[[str], None] = lambda text: None
) -> Content:
    """Read a reproduction's folder; `prefix` goes before its figures' names, `say` reports damaged files."""
    plan = load_plan(folder)
    outcomes = []
    with Progress(len(plan.jobs), "reading", progress, "runs") as bar:
        for number, job in enumerate(plan.jobs):
            outcomes.append(read_outcome(job, folder, plan))
            bar.update(number + 1)
    for outcome in outcomes:
        if outcome.damaged:
            say(f"left out: {outcome.damaged}")
    table = table_of_runs(outcomes)
    judged = ledger.compute(table, quick=plan.quick, commit=plan.commit)
    size, done = "in miniature" if plan.quick else "at full size", judged.runs
    if not judged.runs and (folder / "ledger.json").exists():  # only the ledger was copied, without the results
        judged = ledger.read(folder)
    name = folder.resolve().name
    about = f"{name}: a reproduction {size}, {done} of {len(outcomes)} jobs done, commit {plan.commit}"
    shown = [outcome for outcome in outcomes if not outcome.job.leaves_data]
    begun = {_page(outcome) for outcome in shown if outcome.result is not None}
    left = sorted({" ".join(_page(outcome)) for outcome in shown} - {" ".join(page) for page in begun})
    if begun and left:
        about += f"; nothing to draw yet of {', '.join(left)}"
    with_curves = [outcome for outcome in shown if _page(outcome) in begun or not begun]
    drawn = {(*_page(outcome), outcome.job.panel.name) for outcome in with_curves}
    sections = findings.compute(table, quick=plan.quick)
    claims = ledger.as_html(judged, sections, name=prefix.rstrip(": "), prefix=prefix, drawn=drawn)
    return Content("", [about], _figures(with_curves, prefix), [_row(outcome, name) for outcome in shown], [claims])


def _page(outcome: Outcome) -> tuple[str, str]:
    """Return the figure and protocol under which an outcome is drawn."""
    return outcome.job.panel.figure, outcome.job.protocol


def _figures(outcomes: Sequence[Outcome], prefix: str) -> list[Figure]:
    pages: dict[str, dict[str, dict[str, list[Outcome]]]] = {}
    for outcome in outcomes:
        panel = outcome.job.panel
        by_protocol = pages.setdefault(panel.figure, {}).setdefault(outcome.job.protocol, {})
        by_protocol.setdefault(panel.name, []).append(outcome)
    figures = []
    for name, protocols in pages.items():
        title = f"{prefix}{name}: {TITLES[name]}" if name in TITLES else f"{prefix}{name}"
        caption = FIGURES[name].caption if name in FIGURES else ""
        panels = {protocol: [_panel(some) for some in of_panel.values()] for protocol, of_panel in protocols.items()}
        figures.append(Figure(f"{prefix}{name}", title, caption, panels))
    return figures


def _panel(outcomes: Sequence[Outcome]) -> Panel:
    panel = outcomes[0].job.panel
    runs: dict[tuple[str, str], list[Any]] = {}
    missing: dict[str, int] = {}
    for outcome in outcomes:
        if outcome.result is None or not outcome.result.measure:
            reason = outcome.reason or "it ran without monitoring"
            missing[reason] = missing.get(reason, 0) + 1
        else:
            runs.setdefault((outcome.job.method, outcome.job.variant), []).append(outcome.result)
    lines = []
    for (method, variant), results in runs.items():
        words = VARIANTS.get(variant, variant)
        label = f"{method_class(method).title}{f', {words}' if words else ''}"
        lines.append(Line(label, method, results, words, variant in ON))
    reason = "; ".join(f"{count} run{'s' if count > 1 else ''} missing: {why}" for why, count in missing.items())
    return Panel(
        panel.name, _plain_title(panel.title), lines, _settings(panel.settings), panel.row, panel.column, reason
    )


def _settings(given: Mapping[str, Any]) -> str:
    """Return the settings of a panel in words.

    Examples
    --------
    >>> _settings({"nodes": 100, "data": "a6a", "dim": None, "kappa": 100.0, "chi": 30.0, "network": "geometric"})
    'data a6a, kappa 100, chi 30, network geometric, nodes 100'
    """
    return ", ".join(f"{name} {in_words(given[name])}" for name in SETTINGS if given.get(name) is not None)


def _row(outcome: Outcome, source: str) -> Run:
    job = outcome.job
    position = {
        "figure": job.panel.figure,
        "panel": job.panel.name,
        "protocol": job.protocol,
        "variant": VARIANTS.get(job.variant, job.variant),
        "seed": job.seed,
    }
    if outcome.result is None:
        cells = {"source": source, **position, "method": method_class(job.method).title, "oracle": job.oracle}
        return Run({**cells, "status": "missing"}, {"reason": outcome.reason, "key": job.key})
    return run_row(ResultFile(Path(f"{job.key}.npz"), outcome.result, ""), source, **position)


def replay_panel(folder: Path, *, progress: bool | None = None) -> Motion:
    """Repeat the start of one run of a reproduction, if possible on a network that changes every round."""
    from .work import network_of, problem_of

    for job in sorted(filter(_can_be_shown, load_plan(folder).jobs), key=_preference):
        result = read_outcome(job, folder).result
        if result is not None:
            motion = replay(result, problem_of(job), network_of(job), progress=progress)
            title = f"Figure {job.panel.figure}, panel {job.panel.name}, seed {job.seed}: {motion.title}"
            return replace(motion, title=title)
    raise InputError(
        f"{folder} has no run on synthetic data and at most {NODES} nodes to show in motion yet; "
        "`adom reproduce kappa --out` that folder makes some"
    )


def _can_be_shown(job: PaperJob) -> bool:
    settings = job.panel.settings
    small = settings["nodes"] <= NODES and settings["data"] == "synthetic"
    return small and not job.variant and method_class(job.method).title == "ADOM"


def _preference(job: PaperJob) -> tuple[bool, bool]:
    """Return a job's sort key: networks that change every round first, and among them parameters `unit`."""
    settings = job.panel.settings
    return settings["network"] != "geometric" or "every" in settings, job.protocol != "unit"


def _plain_title(text: str) -> str:
    r"""Return the title of a figure without TeX.

    Examples
    --------
    >>> _plain_title("$\\kappa$ = $10^{3}$, d = 40"), _plain_title("costs $5 and $6")
    ('κ = 10³, d = 40', 'costs $5 and $6')
    """

    def change(match: re.Match[str]) -> str:
        inside = match[1]
        for name, symbol in SYMBOLS.items():
            inside = inside.replace(f"\\{name}", symbol)
        return re.sub(r"\^\{([^}]*)\}", lambda power: power[1].translate(SUPERSCRIPTS), inside)

    return re.sub(r"\$([^$]*[\\^][^$]*)\$", change, text)
