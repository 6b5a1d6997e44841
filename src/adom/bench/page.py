"""The page of a benchmark: profiles, ranks and costs, every error curve, all runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..page.content import Content, Figure, Line, Panel, Profile, Run
from ..page.reading import ResultFile, run_row
from ..study.execute import Outcome
from ..study.profiles import costs_by_instance, performance_profile, rank_table
from ..util.cards import escaped
from ..util.columns import METRICS
from ..util.table import Table
from ..util.text import format_short
from . import suite
from .records import Record

if TYPE_CHECKING:
    import pandas as pd

COSTS = {metric.words: metric.to_target for metric in METRICS.values() if metric.links}
"""Costs of communication, by which methods are ranked."""


def tables(records: Sequence[Record]) -> dict[str, "pd.DataFrame"]:
    """Return the runs of every protocol as a long table, with protocols in order of appearance."""
    import pandas as pd

    whole = pd.DataFrame([record.model_dump() for record in records])
    whole[list(COSTS.values())] = whole[list(COSTS.values())].astype(float)
    return {str(name): part.reset_index(drop=True) for name, part in whole.groupby("protocol", sort=False)}


def ranks(records: Sequence[Record]) -> dict[str, "pd.DataFrame"]:
    """Return how methods rank by rounds, for each protocol; see `adom.study.profiles.rank_table`."""
    return {protocol: rank_table(table, COSTS["rounds"]) for protocol, table in tables(records).items()}


def content(
    records: Sequence[Record], outcomes: Sequence[Outcome], scale: suite.SuiteSize, notes: Sequence[str]
) -> Content:
    """Return everything that the page shows."""
    title = f"Benchmark, suite {suite.VERSION}"
    html = [f"<h2>Rounds and floats to {scale.target:g} of the squared error at the start</h2>"]
    html += [f"<p>{escaped(note)}</p>" for note in notes]
    profiles: list[Profile] = []
    for protocol, table in tables(records).items():
        html += _section(protocol, table, len(profiles))
        profiles += [_profile(table, cost, protocol) for cost in COSTS]
    ledger = "\n".join(html)
    return Content(
        title, list(notes), _figures(outcomes), _runs(outcomes), [ledger], tab="Ranks and profiles", profiles=profiles
    )


def _section(protocol: str, table: "pd.DataFrame", first: int) -> list[str]:
    """Return HTML for one protocol: placeholders for profiles, numbered from `first` on, then ranks and costs."""
    parts = [f"<h3>Parameters {escaped(protocol)}</h3>", '<div class="profiles">']
    for number, cost in enumerate(COSTS, first):
        parts.append(f'<div><h4>Profile by {cost}</h4><div id="profile-{number}" class="plot" role="img"></div></div>')
    parts += ["</div>", f'<ul class="names" data-legend="{first}"></ul>']
    for cost, column in COSTS.items():
        shown = shown_ranks(rank_table(table, column), cost)
        parts += [f"<h4>Ranks by {cost}</h4>", shown.html(f"Ranks by {cost}, {protocol}", row_heads=True)]
    parts += _refused(table)
    costs = costs_by_instance(table)
    rows = [
        [" on ".join(map(str, pair)), *map(format_short, row)]
        for pair, row in zip(costs.index, costs.values, strict=True)
    ]
    parts.append(f"<h4>Rounds on every pair, {escaped(protocol)}</h4>")
    return [*parts, Table(["pair", *costs.columns], rows).html(f"Rounds on every pair, {protocol}", row_heads=True)]


def _profile(table: "pd.DataFrame", cost: str, protocol: str) -> Profile:
    """Return the performance profile by a cost, with only those points at which a method's curve rises."""
    found = performance_profile(table, COSTS[cost])
    ratios, curves = found.index.to_numpy(dtype=float), {}
    for name in found.columns:
        shares = found[name].to_numpy(dtype=float)
        rises = np.append(True, np.diff(shares) > 0)
        curves[str(name)] = ratios[rises].tolist(), shares[rises].tolist()
    title = f"Performance profile by {cost}, parameters {protocol}"
    return Profile(
        title, f"{cost} / least {cost} of the pair", "share of pairs solved", curves, 1.1 * max(2.0, ratios[-1])
    )


def _refused(table: "pd.DataFrame") -> list[str]:
    """Return HTML that says which methods did not run on which pairs, and why."""
    lines = []
    for (method, reason), rows in table[table["status"] == "refused"].groupby(["method", "reason"], sort=False):
        pairs = ", ".join(
            f"{problem} on {network}" for problem, network in zip(rows["problem"], rows["network"], strict=True)
        )
        lines.append(f"<li>{escaped(f'{method} did not run: {pairs}. {reason}')}</li>")
    return ["<p>Runs that were refused count as failed:</p>", "<ul>", *lines, "</ul>"] if lines else []


def shown_ranks(found: "pd.DataFrame", cost: str) -> Table:
    """Return a table of ranks formatted for reading."""
    heads = ["method", "mean rank", "first", "reached", "of", f"median {cost}", f"{cost} / best (median)"]
    rows = [
        [str(m), f"{rank:.2f}", str(first), str(reached), str(of), format_short(median), format_short(over)]
        for m, rank, first, reached, of, median, over in found.itertuples(index=False)
    ]
    return Table(heads, rows)


def _figures(outcomes: Sequence[Outcome]) -> list[Figure]:
    """Return the error curves: one figure, a panel for every pair."""
    pages: dict[str, list[Panel]] = {}
    pairs = list(dict.fromkeys((o.job.problem, o.job.network) for o in outcomes))
    for protocol in dict.fromkeys(o.job.protocol for o in outcomes):
        for place, pair in enumerate(pairs):
            mine = [o for o in outcomes if (o.job.problem, o.job.network) == pair and o.job.protocol == protocol]
            lines = [Line(o.job.label, o.job.label, [o.result]) for o in mine if o.result is not None]
            reason = "; ".join(f"{o.job.label}: {o.reason}" for o in mine if o.refused)
            name = " on ".join(pair)
            pages.setdefault(protocol, []).append(
                Panel(name, name, lines, f"parameters {protocol}", place // 4, place % 4, reason)
            )
    return [Figure("suite", "Error curves", "", pages)]


def _runs(outcomes: Sequence[Outcome]) -> list[Run]:
    rows: list[Run] = []
    for o in outcomes:
        more: dict[str, Any] = {"figure": "suite", "panel": f"{o.job.problem} on {o.job.network}"}
        more["protocol"] = o.job.protocol
        if o.result is not None:
            rows.append(run_row(ResultFile(Path(f"{o.job.key}.npz"), o.result, o.job.label), "suite", **more))
        elif o.refused:
            cells = {"source": "suite", **more, "method": o.job.title, "status": "refused"}
            rows.append(Run(cells, {"message": o.reason}))
    return rows
