"""What a reproduction leaves for people: its figures and its tables, made from its result files."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..run.result import Result
from ..study.metrics import relative_errors
from ..util.files import atomic
from .panels import FIGURES
from .runs import TUNE, VERIFY, Outcome, Panel, load_plan, outcome

if TYPE_CHECKING:
    from .figures import Curves

TARGETS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
"""Relative errors to which the table counts rounds."""
DRAWN = ("", "split-label")
"""The variants that are drawn."""
SETTINGS = ("data", "dim", "kappa", "chi", "network", "every", "nodes", "graphs", "samples")


def draw(folder: Path, figure: str, protocol: str) -> list[Path]:
    """Draw one figure under one protocol as PNG and PDF; the picture of a network has no protocol."""
    from .. import networks
    from ..plot.style import save
    from .figures import panel_grid, sample_network

    plan = load_plan(folder)
    if figure == "network":
        sample = networks.geometric(20, 0.3, graphs=3, seed=0)
        return [save(sample_network(sample), folder / "figures" / f"network{kind}") for kind in (".png", ".pdf")]
    jobs = [job for job in plan.jobs if (job.panel.figure, job.protocol) == (figure, protocol)]
    found = [outcome(job, folder, plan.refused) for job in jobs if job.variant in DRAWN]
    if not found:
        return []
    shown: dict[str, tuple[Panel, Any, str]] = {}
    rounds: dict[tuple[int, int], int] = {}
    for one in found:
        panel = one.job.panel
        curves = shown.setdefault(panel.name, (panel, {}, one.reason))[1]
        if one.result is not None:
            curves.setdefault((one.job.method, one.job.variant), []).append(one.result)
        rounds[panel.row, panel.column] = max(one.job.rounds, rounds.get((panel.row, panel.column), 0))
    about = FIGURES[figure]
    title = f"{about.caption}\nparameters {protocol}{'; quick: a miniature' if plan.quick else ''}"
    page = panel_grid(list(shown.values()), title=title, methods=list(about.methods), rounds=_reach(shown, rounds))
    return [save(page, folder / "figures" / f"{figure}-{protocol}{kind}") for kind in (".png", ".pdf")]


def _reach(
    shown: "dict[str, tuple[Panel, Curves, str]]", rounds: dict[tuple[int, int], int]
) -> dict[tuple[int, int], int]:
    """Return how far each axis goes: the budget, or as far as the longest run that did not diverge."""
    found = {}
    for panel, curves, _ in shown.values():
        place = panel.row, panel.column
        runs = [run for several in curves.values() for run in several if run.status != "diverged"]
        longest = max((int(run.history["round"].iloc[-1]) for run in runs), default=0)
        found[place] = min(rounds[place], longest) or rounds[place]
    return found


def pages(figures: Sequence[str], protocols: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pages that some figures have: a figure and a protocol each."""
    found = []
    for name in dict.fromkeys(given.partition("/")[0] for given in figures):
        if name == "network":
            found.append((name, ""))
        elif name != "theory":  # a table, not curves
            found += [(name, protocol) for protocol in FIGURES[name].protocols if protocol in protocols]
    return found


def write_tables(folder: Path, outcomes: Sequence[Outcome]) -> list[Path]:
    """Write runs.csv, tuning.csv and theory.csv, those that have rows; none of them holds a time."""
    import pandas as pd

    tables = {
        "runs": [_run_row(one) for one in outcomes if not one.job.leaves_data],
        "tuning": [_tuning_row(one) for one in outcomes if one.job.variant == TUNE],
        "theory": [row for one in outcomes if one.job.variant == VERIFY for row in _theory_rows(one)],
    }
    written = []
    for name, rows in tables.items():
        if rows:
            target = folder / "tables" / f"{name}.csv"
            with atomic(target) as partial:
                pd.DataFrame(rows).to_csv(partial, index=False)
            written.append(target)
    return written


def _about(one: Outcome) -> dict[str, Any]:
    job = one.job
    place = {"figure": job.panel.figure, "panel": job.panel.name, "row": job.panel.row, "column": job.panel.column}
    settings = {name: job.panel.settings.get(name) for name in SETTINGS}
    return {**place, **settings, "protocol": job.protocol, "seed": job.seed, "method": job.method, "oracle": job.oracle}


def _run_row(one: Outcome) -> dict[str, Any]:
    row = {**_about(one), "variant": one.job.variant, "budget": one.job.rounds}
    if one.result is None:
        return {**row, "status": "missing", "reason": one.reason, "key": one.job.key}
    result = one.result
    last, relative = result.history.iloc[-1], relative_errors(result)
    measured = {
        "chi_measured": result.provenance["network"].get("chi"),
        "start_error": result.provenance["start_error"],
    }
    ends = {
        "status": result.status,
        "rounds": int(last["round"]),
        "gradients": float(last["gradients"]),
        "floats_sent": int(last["floats_sent"]),
        "error": float(last["error"]),
        "relative_error": float(relative[-1]),
        "best_relative_error": float(np.nanmin(relative)) if np.isfinite(relative).any() else None,
    }
    reached = {f"rounds_to_{target:.0e}": _first(result, relative, target) for target in TARGETS}
    return {**row, **measured, **ends, **reached, "reason": "", "key": one.job.key}


def _first(result: Result, relative: np.ndarray, target: float) -> int | None:
    """Return the round of the first record at a target."""
    reached = relative <= target
    return int(result.history["round"].iloc[int(np.argmax(reached))]) if reached.any() else None


def _tuning_row(one: Outcome) -> dict[str, Any]:
    row = {**_about(one), "budget": one.job.rounds, "target": one.job.rtol}
    if one.data is None:
        return {**row, "reason": one.reason}
    chosen = one.data["chosen"]
    names = {"name": "chosen", "mu": "mu_factor", "L": "L_factor", "chi": "chi_factor"}
    best = {column: chosen[name] for name, column in names.items()}
    ends = {name: chosen[name] for name in ("rounds", "relative_error", "status")}
    return {**row, "candidates": one.data["candidates"], **best, **ends, "reason": ""}


def _theory_rows(one: Outcome) -> list[dict[str, Any]]:
    if one.data is None:
        return [{**_about(one), "reason": one.reason}]
    return [{**_about(one), **row, "reason": ""} for row in one.data["rows"]]
