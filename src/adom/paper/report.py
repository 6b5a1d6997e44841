"""A reproduction as a report shows it: every panel of every figure, every run, the ledger with its evidence."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..algorithms import method_class
from ..page.content import Claim, Content, Figure, Ledger, Line, Panel, Run, Table, Verdict
from ..page.text import address, plain_title
from ..run.progress import Progress
from . import findings
from .claims import GROUPS
from .ledger import compute, in_words, read
from .pages import SETTINGS
from .panels import FIGURES
from .runs import Outcome, Plan, load_plan, outcome
from .verdicts import Entry

VARIANTS = {"": "", "split-label": "split by label", "exact": "oracle exact", "auto": "oracle auto"}
"""The kinds of run of one method in one panel, in words; all but the first two are switched off at first."""
ON = ("", "split-label")
SAID = {
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
"""What figures are called on the page."""


def read_reproduction(
    folder: Path, prefix: str = "", progress: bool | None = None, say: Callable[[str], None] = lambda text: None
) -> Content:
    """Read a reproduction's folder; `prefix` stands before the names of its figures, `say` is told of damaged files."""
    plan = load_plan(folder)
    outcomes = []
    with Progress(len(plan.jobs), "reading", progress, "runs") as bar:
        for number, job in enumerate(plan.jobs):
            outcomes.append(outcome(job, folder, plan.refused))
            bar.update(number + 1)
    for one in outcomes:
        if one.damaged:
            say(f"left out: {one.damaged}")
    done = sum(one.result is not None or one.data is not None for one in outcomes)
    size = "in miniature" if plan.quick else "at full size"
    said = f"{folder.resolve().name}: a reproduction {size}, {done} of {len(outcomes)} jobs done, commit {plan.commit}"
    runs = [_row(one, folder.resolve().name) for one in outcomes if not one.job.leaves_data]
    return Content("", [said], _figures(outcomes, prefix), runs, [_ledger(folder, plan, outcomes, prefix)])


def _figures(outcomes: Sequence[Outcome], prefix: str) -> list[Figure]:
    by_figure: dict[str, list[Outcome]] = {}
    for one in outcomes:
        if not one.job.leaves_data:
            by_figure.setdefault(one.job.panel.figure, []).append(one)
    found = []
    for name, some in by_figure.items():
        caption = FIGURES[name].caption if name in FIGURES else ""
        pages = {
            protocol: _panels([one for one in some if one.job.protocol == protocol])
            for protocol in dict.fromkeys(one.job.protocol for one in some)
        }
        found.append(
            Figure(f"{prefix}{name}", f"{prefix}{name}{f': {SAID[name]}' if name in SAID else ''}", caption, pages)
        )
    return found


def _panels(outcomes: Sequence[Outcome]) -> list[Panel]:
    grouped: dict[str, list[Outcome]] = {}
    for one in outcomes:
        grouped.setdefault(one.job.panel.name, []).append(one)
    return [_panel(some) for some in grouped.values()]


def _panel(outcomes: Sequence[Outcome]) -> Panel:
    place = outcomes[0].job.panel
    runs: dict[tuple[str, str], list[Any]] = {}
    missing: dict[str, int] = {}
    for one in outcomes:
        if one.result is None or not one.result.measure:
            reason = one.reason or "it ran without monitoring"
            missing[reason] = missing.get(reason, 0) + 1
        else:
            runs.setdefault((one.job.method, one.job.variant), []).append(one.result)
    lines = []
    for (method, variant), results in runs.items():
        words = VARIANTS.get(variant, variant)
        label = f"{method_class(method).title}{f', {words}' if words else ''}"
        lines.append(Line(label, method, results, words, variant in ON))
    reason = "; ".join(f"{count} run{'s' if count > 1 else ''} missing: {why}" for why, count in missing.items())
    about = {name: place.settings.get(name) for name in SETTINGS}
    return Panel(place.name, plain_title(place.title), lines, _settings(about), place.row, place.column, reason)


def _settings(about: Mapping[str, Any]) -> str:
    """Return the settings of a panel in words.

    Examples
    --------
    >>> _settings({"data": "a6a", "dim": None, "kappa": 100.0, "chi": 30.0, "network": "geometric", "nodes": 100})
    'data a6a, kappa 100, chi 30, network geometric, nodes 100'
    """
    given = {name: value for name, value in about.items() if value is not None}
    return ", ".join(f"{name} {in_words(value)}" for name, value in given.items())


def _row(one: Outcome, source: str) -> Run:
    from ..page.report import Found, run_row

    job = one.job
    place = {
        "figure": job.panel.figure,
        "panel": job.panel.name,
        "protocol": job.protocol,
        "variant": VARIANTS.get(job.variant, job.variant),
        "seed": job.seed,
    }
    if one.result is None:
        cells = {"source": source, **place, "method": method_class(job.method).title, "oracle": job.oracle}
        return Run({**cells, "status": "missing"}, {"reason": one.reason, "key": job.key})
    return run_row(Found(Path(f"{job.key}.npz"), one.result, ""), source, **place)


def _ledger(folder: Path, plan: Plan, outcomes: Sequence[Outcome], prefix: str) -> Ledger:
    """Return the ledger of the results; of a folder whose results were left behind, the one that it holds."""
    found = compute(outcomes, quick=plan.quick, commit=plan.commit)
    if not found.runs and (folder / "ledger.json").exists():
        found = read(folder)
    kind = "the miniature: small stand-ins for the paper's panels" if plan.quick else "the paper's own sizes"
    text = f"Computed from {found.runs} result files"
    text += f", {found.missing} more are missing; {kind}." if found.missing else f"; {kind}."
    text += " Errors are squared distances to the solution, relative to the start. In brackets: the least and the "
    text += "greatest over seeds, or the 95 % interval of a fitted exponent."
    text += f" {found.said_of_size}" if found.quick else ""
    counts = [(name, *map(str, found.counts(name).values())) for name in found.protocols]
    drawn = {(job.panel.figure, job.protocol, job.panel.name) for job in plan.jobs if not job.leaves_data}
    groups = {
        title: [
            Claim(
                one.name,
                one.statement,
                one.where,
                one.rule,
                [_verdict(entry, drawn, prefix) for entry in found.entries if entry.claim == one.name],
            )
            for one in claims
        ]
        for title, claims in GROUPS.items()
    }
    sections = findings.compute(outcomes, quick=plan.quick)
    beside = [Table(one.title, one.text, one.columns, one.rows) for one in sections if one.rows]
    return Ledger(prefix.rstrip(": "), text, Table("", "", ("protocol", *found.verdicts), counts), groups, beside)


def _verdict(one: Entry, drawn: Collection[tuple[str, str, str]], prefix: str) -> Verdict:
    """Return an entry; its rows of evidence lead to the panels that are drawn."""
    panels = one.evidence.get("panels", [])
    if not panels:
        return Verdict(one.protocol, one.verdict, one.count, one.said, full_run=one.full_run)
    columns = list(dict.fromkeys(name for row in panels for name in row))
    rows = [[in_words(row.get(name, "")) for name in columns] for row in panels]
    links = [
        address("curves", f"{prefix}{row['figure']}", one.protocol, row["panel"])
        if (row.get("figure"), one.protocol, row.get("panel")) in drawn
        else ""
        for row in panels
    ]
    evidence = Table("", "", columns, rows, links)
    return Verdict(one.protocol, one.verdict, one.count, one.said, evidence, one.full_run)
