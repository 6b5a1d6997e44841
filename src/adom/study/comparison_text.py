"""Comparisons as text of at most 80 columns, as LaTeX, and as HTML for notebooks."""

import math
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..util.cards import Markup, bold, bounds, card, curve, escaped, grid
from ..util.columns import HEADS, METRICS, metric_of
from ..util.table import (
    SPARE,
    WIDTH,
    error_text,
    latex_number,
    latex_spread,
    latex_table,
    latex_text,
    spread,
    text_table,
)
from ..util.text import format_count, format_short
from .metrics import aim

if TYPE_CHECKING:
    from .compare import Comparison

MOST_TABLES = 4
"""Maximum number of pairs of problem and network with a table each; more pairs are the rows of one table."""
ERROR_HEAD = "last error"
"""Head of the column of relative errors at the end of a run."""
MEDIANS = (HEADS[0], "reached", *HEADS[1:], ERROR_HEAD)
"""Heads of a table of medians."""
SINGLE = ("status", *HEADS, ERROR_HEAD)
"""Heads of a table of single runs."""
Rows = list[dict[str, Any]]


def as_text(found: "Comparison") -> str:
    """Return the tables of medians, and of ranks if there are several problems or networks."""
    about, places = "\n".join(_about(found)), _rows_by_place(found, "rounds")
    if len(places) > MOST_TABLES:
        parts = _wide(found)
    else:
        heads = ["method", *(SINGLE if found.single else MEDIANS)]
        headings = [textwrap.fill(_heading(found, place, rows), WIDTH) for place, rows in places]
        tables = [text_table(heads, _cells(found, rows), SPARE) for _, rows in places]
        parts = [f"{heading}\n{table}" for heading, table in zip(headings, tables, strict=True)]
    if found.single:
        return "\n".join(filter(None, [*parts, about]))
    if len(found.places) > 1:
        parts.append(f"all {_instances(found)}\n{text_table(*_ranks(found, 'rounds'))}")
    return "\n\n".join([about, *parts])


def as_html(found: "Comparison") -> str:
    """Return the table of the runs, or the tables of medians, as HTML for a notebook."""
    if not found.single:
        tables = [
            grid([_heading(found, place, rows), *MEDIANS], _cells(found, rows))
            for place, rows in _rows_by_place(found, "rounds")
        ]
        about = Markup("".join(f"<br>{escaped(line)}" for text in _about(found) for line in text.splitlines()))
        return card("Comparison", about, {}, below="".join(tables))
    ((_, rows),) = _rows_by_place(found, "rounds")
    box, least = bounds(run._curve() for run in found.results.values()), _least(rows)
    cells: list[list[object]] = []
    for row, run in zip(rows, found.results.values(), strict=True):
        how = [row["method"], row["protocol"], run.provenance.get("oracle") or "–", row["status"]]
        spent = [bold(row[cost]) if row[cost] == least[cost] < math.inf else row[cost] for cost in METRICS]
        cells.append([*how, curve(*run._curve(), box=box, labels=False), row["error"], *spent])
    how = ["method", "parameters", "dual oracle", "status", "error", "relative error at the end"]
    notes = {f"{label} skipped": reason for label, reason in found.skipped.items()}
    notes |= {"outside of their proofs": found.outside} if found.outside else {}
    notes |= {"weights": found.weighting} if found.weighting else {}
    words = [metric.words for metric in METRICS.values()]
    return card("Comparison", f"cost to reach {found.aim}; the least in bold", notes, below=grid([*how, *words], cells))


def in_short(found: "Comparison") -> str:
    """Return a comparison in one line."""
    if not found.single:
        size = f"{format_count(len(found.titles), 'method')} on {format_count(len(found.judged), 'instance')}"
        parts = [size, format_count(len(found.seeds), "seed"), unfinished(found)]
        return f"Comparison({', '.join(filter(None, parts))})"
    reached = []
    for row in found.table.to_dict("records"):
        rounds = row["rounds_to_target"]
        reached.append(f"{row['label']} {'not reached' if math.isnan(rounds) else int(rounds)} ({row['status']})")
    extra = [f"skipped: {', '.join(found.skipped)}" if found.skipped else "", found.outside, found.weighting]
    parts = [f"rounds to relative error {found.target:.3g}: {', '.join(reached)}", *filter(None, extra)]
    return f"Comparison({'; '.join(parts)})"


def as_latex(found: "Comparison", cost: str, ranks: bool, caption: str | None, label: str) -> str:
    """Return the medians, or the ranks, as a table in LaTeX; see `Comparison.to_latex`."""
    words = latex_text(metric_of(cost).words)
    if ranks:
        usual, (heads, blocks) = f"Ranks by {words} over {_instances(found)}.", _latex_ranks(found, cost)
    else:
        targets = set(found.targets.values())
        target = next(iter(targets)) if len(targets) == 1 else math.nan
        to = f"a relative error of {latex_number(target)}" if math.isfinite(target) else "the target"
        many = len(found.seeds) > 1
        wide = len(found.places) > MOST_TABLES
        over = f": median{'' if wide else ' [least, greatest]'} over {format_count(len(found.seeds), 'seed')}"
        what = "Cost to reach" if found.single else f"{words.capitalize()} to"
        usual = f"{what} {to}{over if many else ''}."
        heads, blocks = (_latex_wide if wide else _latex_medians)(found, cost)
    usual = " ".join(filter(None, (f"{left[0].upper()}{left[1:]}." if (left := unfinished(found)) else "", usual)))
    return latex_table(heads, blocks, usual if caption is None else caption, label)


def unfinished(found: "Comparison") -> str:
    """Say how much of an interrupted comparison over seeds is done; "" for a complete one."""
    if found.single or not found.interrupted:
        return ""
    done = len(found.results)
    return f"interrupted: {done} of {format_count(done + found.left, 'run')} are done"


def _rows_by_place(found: "Comparison", cost: str) -> list[tuple[tuple[str, str], Rows]]:
    """Return the rows of the summary for each problem and network; refuse an unknown cost."""
    metric_of(cost)
    rows: Rows = found.summary.to_dict("records")  # type: ignore[assignment]  # columns are named
    by_place: dict[tuple[str, str], Rows] = {}
    for row in rows:
        by_place.setdefault((row["problem"], row["network"]), []).append(row)
    return list(by_place.items())


def _about(found: "Comparison") -> list[str]:
    """Return lines on what was compared: seeds, proofs, what is missing."""
    lines = []
    if not found.single:
        kinds = {kind: None for kinds in found.drawn.values() for kind in kinds}
        drawn = f", which draw the {' and the '.join(kinds)}" if kinds else ""
        lines.append(format_count(len(found.seeds), "seed") + drawn)
    if found.tuning_seed is not None:
        lines.append(f"tuned on seed {found.tuning_seed}, which is not among them")
    lines += ["medians, and [least, greatest] rounds"] if len(found.seeds) > 1 else []
    notes = [f"outside of their proofs: {found.outside}"] if found.outside else []
    notes += [*filter(None, [unfinished(found)])]
    notes += [f"{label} did not run: {reason}" for label, reason in found.skipped.items()]
    notes += [found.weighting] if found.single and found.weighting else []
    return lines + [textwrap.fill(note, WIDTH) for note in notes]


def _heading(found: "Comparison", place: tuple[str, str], rows: Rows) -> str:
    """Return the problem, the network and the target in words."""
    where = "cost to reach " if found.single else f"{' on '.join(place)}, to "
    return f"{where}{aim(found.targets[place], any(row['reached'] for row in rows))}"


def _instances(found: "Comparison") -> str:
    """Return the number of instances over which the methods are ranked, in words."""
    return format_count(int(found.ranks()["instances"].iloc[0]), "instance")


def _cells(found: "Comparison", rows: Rows) -> list[list[str]]:
    """Return the medians of methods, or the costs of single runs, as the cells of a table."""
    cells = []
    for row in rows:
        rounds = spread(row["rounds"], row["rounds_low"], row["rounds_high"])
        costs = [format_short(row[cost]) for cost in METRICS if cost != "rounds"]
        if found.single:
            ends = [row["status"], rounds, *costs, error_text(row["error"])]
        else:
            ends = [rounds, f"{row['reached']}/{row['seeds']}", *costs, error_text(row["error"], row["status"])]
        cells.append([found.titles[row["method"]], *ends])
    return cells


def _wide(found: "Comparison") -> list[str]:
    """Return the median rounds, one row per problem and network, in as many tables as the methods need."""
    places = _rows_by_place(found, "rounds")
    names = [" on ".join(place) for place, _ in places]
    columns = []
    for label, title in found.titles.items():
        own = [next((row for row in rows if row["method"] == label), None) for _, rows in places]
        columns.append((title, [_short(row) for row in own]))
    targets = [format_short(found.targets[place]) for place, _ in places]
    same = len(set(targets)) == 1
    to = f"a relative error of {targets[0]}" if same else "the target"
    heading = f"{'median ' if len(found.seeds) > 1 else ''}rounds to {to}; - where most seeds did not get there"
    columns = columns if same else [("target", targets), *columns]
    tables, room = [], WIDTH - min(40, max(map(len, names)))
    while columns:
        widths = [2 + max(map(len, (title, *cells))) for title, cells in columns]
        count = max(1, sum(sum(widths[: number + 1]) <= room for number in range(len(widths))))
        some, columns = columns[:count], columns[count:]
        rows = list(zip(names, *(cells for _, cells in some), strict=True))
        tables.append(text_table(["", *(title for title, _ in some)], rows))
    return [f"{heading}\n{tables[0]}", *tables[1:]]


def _short(row: dict[str, Any] | None) -> str:
    """Return a median in short form, "diverged" if most runs did, or "" if the method did not run."""
    if row is None:
        return ""
    return format_short(row["rounds"]) if math.isfinite(row["rounds"]) else error_text(math.nan, row["status"])


def _ranks(found: "Comparison", cost: str) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the rows of the table of ranks."""
    rows = []
    for row in found.ranks(cost).to_dict("records"):
        ranked = [f"{row['mean_rank']:.2f}", f"{row['first']}", f"{row['reached']}/{row['instances']}"]
        rows.append([found.titles[row["method"]], *ranked, format_short(row["over_best"])])
    return ["method", "mean rank", "first", "reached", f"{METRICS[cost].words} / best (median)"], rows


def _latex_ranks(found: "Comparison", cost: str) -> tuple[list[str], Any]:
    heads, ranked = _ranks(found, cost)
    best = min((row[1] for row in ranked), key=float)
    rows = []
    for name, mean, *numbers in ranked:
        shown = [rf"\mathbf{{{mean}}}" if mean == best else mean, *numbers]
        rows.append([latex_text(name), *("--" if number == "-" else f"${number}$" for number in shown)])
    return [latex_text(head) for head in heads], [("", rows)]


def _least(rows: Rows) -> dict[str, float]:
    """Return the least median of each cost."""
    return {cost: min(row[cost] for row in rows) for cost in METRICS}


def _latex_medians(found: "Comparison", cost: str) -> tuple[list[str], Any]:
    """Return the heads, and a block of rows for each problem and network: a row for each method.

    Single runs have a column for every cost.
    """
    places, costs = _rows_by_place(found, cost), [*METRICS] if found.single else [cost]
    power = {name: _in_powers(row[f"{name}_high"] for _, rows in places for row in rows) for name in costs}
    blocks = []
    for place, rows in places:
        best, lines = _least(rows), []
        for row in rows:
            cells = [latex_text(found.titles[row["method"]])]
            for name in costs:
                ends = (row[name], row[f"{name}_low"], row[f"{name}_high"])
                cells.append(latex_spread(*ends, bold=row[name] == best[name], power=power[name]))
            cells += [] if found.single else [f"${row['reached']}/{row['seeds']}$"]
            lines.append([*cells, latex_number(row["error"]) if row["status"] != "diverged" else "diverged"])
        blocks.append(("" if len(found.places) == 1 else latex_text(" on ".join(place)), lines))
    words = [latex_text(METRICS[name].words) for name in costs]
    heads = words if found.single else [f"{words[0]} to the target", "reached"]
    return ["method", *heads, ERROR_HEAD], blocks


def _latex_wide(found: "Comparison", cost: str) -> tuple[list[str], Any]:
    """Return the heads, one for each method, and a row of medians for each problem and network."""
    places = _rows_by_place(found, cost)
    power = _in_powers(row[cost] for _, rows in places for row in rows)
    lines = []
    for place, rows in places:
        medians = {row["method"]: row[cost] for row in rows}
        best = min(medians.values())
        cells = [latex_number(m, bold=m == best, power=power) for m in (medians.get(t, math.nan) for t in found.titles)]
        lines.append([latex_text(" on ".join(place)), *cells])
    return ["", *map(latex_text, found.titles.values())], [("", lines)]


def _in_powers(values: Iterable[float]) -> bool:
    """Return whether to write a whole column of numbers in powers of ten because one of them is large."""
    return any(math.isfinite(value) and value >= 1e7 for value in values)
