"""The tables of a reproduction as CSV files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..util.files import atomic
from .evidence import SAVED, about, table_of_runs
from .runs import TUNE, VERIFY, Outcome


def write_tables(folder: Path, outcomes: Sequence[Outcome]) -> list[Path]:
    """Write runs.csv, tuning.csv and theory.csv, those that have rows; none of them holds a time."""
    runs = table_of_runs(one for one in outcomes if not one.job.leaves_data)[list(SAVED)]
    searches = [_search_row(one) for one in outcomes if one.job.variant == TUNE]
    rows = [row for one in outcomes if one.job.variant == VERIFY for row in _verification_rows(one)]
    written = []
    for name, table in {"runs": runs, "tuning": pd.DataFrame(searches), "theory": pd.DataFrame(rows)}.items():
        if len(table):
            target = folder / "tables" / f"{name}.csv"
            with atomic(target) as partial:
                table.to_csv(partial, index=False)
            written.append(target)
    return written


def _search_row(one: Outcome) -> dict[str, Any]:
    row = {**about(one), "budget": one.job.rounds, "target": one.job.rtol}
    if one.data is None:
        return {**row, "reason": one.reason}
    chosen = one.data["chosen"]
    names = {"name": "chosen", "mu": "mu_factor", "L": "L_factor", "chi": "chi_factor"}
    best = {column: chosen[name] for name, column in names.items()}
    ends = {name: chosen[name] for name in ("rounds", "relative_error", "status")}
    return {**row, "candidates": one.data["candidates"], **best, **ends, "reason": ""}


def _verification_rows(one: Outcome) -> list[dict[str, Any]]:
    rows = [{"reason": one.reason}] if one.data is None else [{**row, "reason": ""} for row in one.data["rows"]]
    return [{**about(one), **row} for row in rows]
