"""The tables of a reproduction as CSV files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..study.execute import Outcome
from ..util.files import atomic
from .evidence import SAVED, about, table_of_runs
from .runs import TUNE, VERIFY


def write_tables(folder: Path, outcomes: Sequence[Outcome]) -> list[Path]:
    """Write runs.csv, tuning.csv and theory.csv without timings, each only if it has rows; return their paths."""
    runs = table_of_runs(outcome for outcome in outcomes if not outcome.job.leaves_data)[list(SAVED)]
    searches = [_search_row(outcome) for outcome in outcomes if outcome.job.variant == TUNE]
    rows = [row for outcome in outcomes if outcome.job.variant == VERIFY for row in _verification_rows(outcome)]
    written = []
    for name, table in {"runs": runs, "tuning": pd.DataFrame(searches), "theory": pd.DataFrame(rows)}.items():
        if len(table):
            target = folder / "tables" / f"{name}.csv"
            with atomic(target) as partial:
                table.to_csv(partial, index=False)
            written.append(target)
    return written


def _search_row(outcome: Outcome) -> dict[str, Any]:
    row = {**about(outcome), "budget": outcome.job.rounds, "target": outcome.job.rtol}
    if outcome.data is None:
        return {**row, "reason": outcome.reason}
    chosen = outcome.data["chosen"]
    names = {"name": "chosen", "mu": "mu_factor", "L": "L_factor", "chi": "chi_factor"}
    best = {column: chosen[name] for name, column in names.items()}
    ends = {name: chosen[name] for name in ("rounds", "relative_error", "status")}
    return {**row, "candidates": outcome.data["candidates"], **best, **ends, "reason": ""}


def _verification_rows(outcome: Outcome) -> list[dict[str, Any]]:
    if outcome.data is None:
        return [{**about(outcome), "reason": outcome.reason}]
    return [{**about(outcome), **row, "reason": ""} for row in outcome.data["rows"]]
