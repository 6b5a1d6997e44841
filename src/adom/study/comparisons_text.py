"""Comparisons over seeds, problems and networks as text of at most 80 columns, as LaTeX, and as HTML for notebooks."""

import math
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..util.cards import Markup, card, escaped, grid
from ..util.columns import HEADS, METRICS, metric_of
from ..util.text import format_count, format_short
from .comparison import ERROR_HEAD, INTERRUPTED
from .metrics import aim
from .tables import (
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

if TYPE_CHECKING:
    from .comparisons import Comparisons

MOST_TABLES = 4
"""Maximum number of pairs of problem and network with a table each; more pairs are the rows of one table."""
MEDIANS = (HEADS[0], "reached", *HEADS[1:], ERROR_HEAD)
"""Heads of a table of medians."""
Rows = list[dict[str, Any]]


def as_text(found: "Comparisons") -> str:
    """Return the tables of medians, and of ranks if there are several problems or networks."""
    parts = ["\n".join(_about(found))]
    places = found.rows_by_place("rounds")
    if len(places) > MOST_TABLES:
        parts += _wide(found)
    else:
        for place, rows in places:
            heads = ["method", *MEDIANS]
            heading = textwrap.fill(_heading(found, place, rows), WIDTH)
            parts.append(f"{heading}\n{text_table(heads, _cells(found, rows), SPARE)}")
    if len(found.places) > 1:
        parts.append(f"all {_instances(found)}\n{text_table(*_ranks(found, 'rounds'))}")
    return "\n\n".join(parts)


def as_html(found: "Comparisons") -> str:
    """Return the tables of medians as HTML for a notebook."""
    tables = [
        grid([_heading(found, place, rows), *MEDIANS], _cells(found, rows))
        for place, rows in found.rows_by_place("rounds")
    ]
    about = Markup("".join(f"<br>{escaped(line)}" for text in _about(found) for line in text.splitlines()))
    return card("Comparisons", about, {}, below="".join(tables))


def as_latex(found: "Comparisons", cost: str, ranks: bool, caption: str | None, label: str) -> str:
    """Return the medians, or the ranks, as a table in LaTeX; see `Comparisons.to_latex`."""
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
        usual = f"{words.capitalize()} to {to}{over if many else ''}."
        heads, blocks = (_latex_wide if wide else _latex_medians)(found, cost)
    usual = " ".join(filter(None, (f"{left[0].upper()}{left[1:]}." if (left := unfinished(found)) else "", usual)))
    return latex_table(heads, blocks, usual if caption is None else caption, label)


def unfinished(found: "Comparisons") -> str:
    """Say how much of an interrupted comparison is done; "" for a complete one."""
    if not found.interrupted:
        return ""
    left = sum(reason == INTERRUPTED for part in found.parts.values() for reason in part.skipped.values())
    done = len(found.results)
    return f"interrupted: {done} of {format_count(done + left, 'run')} are done"


def _about(found: "Comparisons") -> list[str]:
    """Return lines on what was compared: seeds, proofs, what is missing."""
    kinds = {kind: None for kinds in found.drawn.values() for kind in kinds}
    lines = [format_count(len(found.seeds), "seed") + (f", which draw the {' and the '.join(kinds)}" if kinds else "")]
    if found.tuning_seed is not None:
        lines.append(f"tuned on seed {found.tuning_seed}, which is not among them")
    lines += ["medians, and [least, greatest] rounds"] if len(found.seeds) > 1 else []
    lines += [textwrap.fill(f"outside of their proofs: {found.outside}", WIDTH)] if found.outside else []
    lines += list(filter(None, [unfinished(found)]))
    return lines + [textwrap.fill(f"{label} did not run: {reason}", WIDTH) for label, reason in found.skipped.items()]


def _heading(found: "Comparisons", place: tuple[str, str], rows: Rows) -> str:
    """Return the problem, the network and the target in words."""
    return f"{' on '.join(place)}, to {aim(found.targets[place], any(row['reached'] for row in rows))}"


def _instances(found: "Comparisons") -> str:
    """Return the number of instances over which the methods are ranked, in words."""
    return format_count(int(found.ranks()["instances"].iloc[0]), "instance")


def _cells(found: "Comparisons", rows: Rows) -> list[list[str]]:
    """Return the medians of methods as the cells of a table."""
    cells = []
    for row in rows:
        rounds = spread(row["rounds"], row["rounds_low"], row["rounds_high"])
        costs = [format_short(row[cost]) for cost in METRICS if cost != "rounds"]
        reached = f"{row['reached']}/{row['seeds']}"
        error = error_text(row["error"], row["status"])
        cells.append([found.titles[row["method"]], rounds, reached, *costs, error])
    return cells


def _wide(found: "Comparisons") -> list[str]:
    """Return the median rounds, one row per problem and network, in as many tables as the methods need."""
    places = found.rows_by_place("rounds")
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


def _ranks(found: "Comparisons", cost: str) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the rows of the table of ranks."""
    rows = []
    for row in found.ranks(cost).to_dict("records"):
        ranked = [f"{row['mean_rank']:.2f}", f"{row['first']}", f"{row['reached']}/{row['instances']}"]
        rows.append([found.titles[row["method"]], *ranked, format_short(row["over_best"])])
    return ["method", "mean rank", "first", "reached", f"{METRICS[cost].words} / best (median)"], rows


def _latex_ranks(found: "Comparisons", cost: str) -> tuple[list[str], Any]:
    heads, ranked = _ranks(found, cost)
    best = min((row[1] for row in ranked), key=float)
    rows = []
    for name, mean, *numbers in ranked:
        shown = [rf"\mathbf{{{mean}}}" if mean == best else mean, *numbers]
        rows.append([latex_text(name), *("--" if number == "-" else f"${number}$" for number in shown)])
    return [latex_text(head) for head in heads], [("", rows)]


def _latex_medians(found: "Comparisons", cost: str) -> tuple[list[str], Any]:
    """Return the heads, and a block of rows for each problem and network: a row for each method."""
    places = found.rows_by_place(cost)
    power = _in_powers(row[f"{cost}_high"] for _, rows in places for row in rows)
    blocks = []
    for place, rows in places:
        best, lines = min(row[cost] for row in rows), []
        for row in rows:
            ends = (row[cost], row[f"{cost}_low"], row[f"{cost}_high"])
            middle = latex_spread(*ends, bold=row[cost] == best, power=power)
            reached = f"${row['reached']}/{row['seeds']}$"
            error = latex_number(row["error"]) if row["status"] != "diverged" else "diverged"
            lines.append([latex_text(found.titles[row["method"]]), middle, reached, error])
        blocks.append(("" if len(found.places) == 1 else latex_text(" on ".join(place)), lines))
    return ["method", f"{latex_text(METRICS[cost].words)} to the target", "reached", ERROR_HEAD], blocks


def _latex_wide(found: "Comparisons", cost: str) -> tuple[list[str], Any]:
    """Return the heads, one for each method, and a row of medians for each problem and network."""
    places = found.rows_by_place(cost)
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
