"""The evidence: a table with one row per job of a reproduction, and the measurements that claims rest on.

Errors are squared distances to the solution, relative to the start. Only the statuses "converged", "diverged" and
"interrupted" count, since they mean the same in every version. "growing" and "stalled" are treated as "max_rounds", so
that old and new results are judged alike.

Intervals over seeds run from the least to the greatest value: three to five seeds allow nothing finer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from ..run.result import Result
from ..study.execute import Outcome
from ..study.metrics import power_of_ten, relative_errors
from ..util.columns import METRICS, totals
from ..util.files import atomic
from ..util.text import format_number
from .runs import TUNE, VERIFY

COARSE = 1e-2
"""The largest target that methods are ranked by; if none reaches it, last errors are compared."""
LOST = 10.0
"""A run loses a target that it met by ending above this multiple of it."""
ROUNDED = 1e-9
"""How far, relatively, rounding may lift an error above the power of ten that it met."""
WORST = 1e12
"""The relative error assigned to diverged runs."""
UNDECIDED = "undecided"
"""Outcome of a panel where seeds disagree."""
TARGETS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
"""Relative errors that the columns rounds_to_* refer to."""
SETTINGS = ("data", "dim", "kappa", "chi", "network", "every", "nodes", "graphs", "samples")

ABOUT = ("figure", "panel", "row", "column", *SETTINGS, "protocol", "seed", "method", "oracle")
COUNTED = tuple(name for name, metric in METRICS.items() if not metric.timed)
ENDS = ("status", *COUNTED, "error", "relative_error", "best_relative_error")
SAVED = (
    *(*ABOUT, "variant", "budget", "chi_measured", "start_error", *ENDS),
    *(*(f"rounds_to_{target:.0e}" for target in TARGETS), "reason", "key"),
)
"""Columns of runs.csv."""
JUDGED = ("accuracy", "kappa_measured", "last_error", "failed", "stalled", "converging", "pace", "slopes", "settings")
COLUMNS = (*SAVED, *JUDGED, "curve", "content")
"""All columns: those of runs.csv, those that claims need, the run's `Curve`, and the data of searches and checks."""


class Curve:
    """The relative errors of a run, record by record, and measurements on them."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.errors = relative_errors(result)
        self.rounds = result.history["round"].to_numpy(dtype=float)

    @cached_property
    def last_error(self) -> float:
        """The last error; `WORST` if the run diverged or ended above that."""
        last = self.errors[-1]
        return float(last) if self.result.status != "diverged" and last <= WORST else WORST

    @property
    def failed(self) -> bool:
        """Whether it diverged, or ended above its start."""
        return not self.last_error <= 1

    @property
    def stalled(self) -> bool:
        """Whether it neither failed nor met its tolerance, and its least error hardly fell over the second half."""
        if self.failed or self.result.status == "converged":
            return False
        earlier, later = np.array_split(self.errors, 2)
        return bool(later.size and np.nanmin(later) > 0.5 * np.nanmin(earlier))

    @property
    def converging(self) -> bool:
        """Whether it met its tolerance, or ended below its start and still fell over its last third."""
        return self.result.status == "converged" or (not self.failed and self.slopes[2] < 0)

    @property
    def pace(self) -> float:
        """Decimal digits gained in a thousand rounds; 0 where it ended above its start."""
        return max(0.0, -1000 * float(np.log10(max(self.last_error, 1e-300))) / float(self.rounds[-1]))

    @cached_property
    def slopes(self) -> tuple[float, float, float]:
        """Slope of log10(error) per round, over each third of the rounds."""
        ends = np.linspace(0, float(self.rounds[-1]), 4)
        first, second, third = -np.diff(self.digits_by(ends)) / np.diff(ends)
        return float(first), float(second), float(third)

    def digits_by(self, rounds: float | np.ndarray) -> np.ndarray:
        """Return the decimal digits of error gained after some rounds, interpolated between records."""
        logs = -np.log10(np.clip(np.nan_to_num(self.errors, nan=WORST, posinf=WORST), 1e-300, None))
        return np.asarray(np.interp(rounds, np.append(0.0, self.rounds), np.append(0.0, logs)))

    def cost_to(self, target: float, cost: str = "rounds") -> float:
        """Return the cost to meet a target; infinite if the run did not meet it, or lost it again (see `LOST`).

        It is the cost at the first record that meets the target. If several steps lie between that record and the one
        before, the step is interpolated in the logarithm of the error, and rounded up.
        """
        reached = self.errors <= target
        if not reached.any() or not self.errors[-1] <= LOST * target:
            return float("inf")
        at = int(np.argmax(reached))
        history = self.result.history
        costs, steps = (history[name].to_numpy(dtype=float) for name in (METRICS[cost].name, "iteration"))
        error, paid, step = (self.errors[at - 1], costs[at - 1], steps[at - 1]) if at else (1.0, 0.0, 0.0)
        between = steps[at] - step
        if between <= 1 or not self.errors[at] < error < np.inf:
            return float(costs[at])
        part = np.log(error / target) / np.log(error / max(self.errors[at], 1e-300))
        whole = min(np.ceil(part * between - 1e-9), between) / between
        return float(paid + max(whole, 1 / between) * (costs[at] - paid))

    def first_round(self, target: float) -> int | None:
        """Return the round of the first record that meets a target; None if there is none."""
        reached = self.errors <= target
        return int(self.rounds[int(np.argmax(reached))]) if reached.any() else None


def table_of_runs(outcomes: Iterable[Outcome]) -> pd.DataFrame:
    """Return the table from which claims are judged: one row per job, in the given order."""
    return pd.DataFrame([_row(outcome) for outcome in outcomes], columns=list(COLUMNS))


def about(outcome: Outcome) -> dict[str, Any]:
    """Return the first columns of every table: panel, settings, protocol, seed, method and oracle."""
    job, panel = outcome.job, outcome.job.panel
    position = {"figure": panel.figure, "panel": panel.name, "row": panel.row, "column": panel.column}
    settings = {name: panel.settings.get(name) for name in SETTINGS}
    run = {"protocol": job.protocol, "seed": job.seed, "method": job.method, "oracle": job.oracle}
    return {**position, **settings, **run}


def _row(outcome: Outcome) -> dict[str, Any]:
    job, settings = outcome.job, outcome.job.panel.settings
    row = {**about(outcome), "variant": job.variant, "budget": job.rounds, "settings": settings}
    row |= {"reason": outcome.reason, "key": job.key, "content": outcome.data}
    row |= {"accuracy": job.accuracy, "failed": False, "stalled": False}
    if outcome.result is None:
        return {**row, "status": "missing" if outcome.data is None else "", "converging": False, "curve": None}
    curve, provenance, last = Curve(outcome.result), outcome.result.provenance, outcome.result.last
    chi, kappa = provenance["network"].get("chi"), (provenance.get("problem") or {}).get("kappa")
    errors = curve.errors
    measured = {"chi_measured": chi, "kappa_measured": kappa, "start_error": provenance["start_error"]}
    ends = {
        "status": outcome.result.status,
        **totals(last),
        "error": float(last["error"]),
        "relative_error": float(errors[-1]),
        "best_relative_error": float(np.nanmin(errors)) if np.isfinite(errors).any() else None,
    }
    reached = {f"rounds_to_{target:.0e}": curve.first_round(target) for target in TARGETS}
    names = ("last_error", "failed", "stalled", "converging", "pace", "slopes")
    judged = {name: getattr(curve, name) for name in names}
    return {**row, **measured, **ends, **reached, **judged, "reason": "", "curve": curve}


def finished(runs: pd.DataFrame, protocol: str, figures: Iterable[str], variant: str = "") -> pd.DataFrame:
    """Return the runs of some figures that were not interrupted."""
    chosen = (runs["protocol"] == protocol) & (runs["variant"] == variant) & runs["figure"].isin(list(figures))
    return runs[chosen & runs["curve"].notna() & (runs["status"] != "interrupted")]


def cells(
    runs: pd.DataFrame, protocol: str, figures: Iterable[str], variant: str = ""
) -> dict[tuple[str, str], pd.DataFrame]:
    """Return the finished runs of each panel, by figure and name."""
    grouped = finished(runs, protocol, figures, variant).groupby(["figure", "panel"], sort=False)
    return {(str(figure), str(panel)): cell for (figure, panel), cell in grouped}


def by_seed(cell: pd.DataFrame, values: str | pd.Series) -> pd.DataFrame:
    """Return values of a panel's runs with one row per seed and one column per method."""
    columns: dict[str, dict[int, Any]] = {}
    given = cell[values] if isinstance(values, str) else values
    for method, seed, value in zip(cell["method"], cell["seed"], given, strict=True):
        columns.setdefault(method, {})[seed] = value
    return pd.DataFrame(columns)


def costs(cell: pd.DataFrame, target: float, cost: str = "rounds") -> pd.Series:
    """Return the cost of each run to reach a target."""
    return pd.Series([curve.cost_to(target, cost) for curve in cell["curve"]], cell.index, dtype=float)


def measured(cell: pd.DataFrame, name: str) -> pd.Series:
    """Return the measured kappa or chi of runs; where none was measured, the one of their panel."""
    return cell[f"{name}_measured"].astype(float).fillna(cell[name].astype(float))


def target_of(cell: pd.DataFrame) -> float:
    """Return the target to rank methods by: the smallest power of ten that the best method met.

    The best method has the least last error, in the median over seeds. The target is never below the error at which
    runs stop. It is NaN if it would be above `COARSE`.
    """
    return _target(cell.groupby("method")["last_error"].median().min(), cell)


def target_within(cell: pd.DataFrame, rounds: float) -> float:
    """Return the smallest power of ten met within some rounds, in the median over seeds, bounded as in `target_of`."""
    met = []
    for curve in cell["curve"]:
        inside = curve.errors[curve.rounds <= rounds]
        met.append(float(inside[-1]) if inside.size and np.isfinite(inside[-1]) else WORST)
    return _target(median(met), cell)


def _target(met: float, cell: pd.DataFrame) -> float:
    target = power_of_ten(max(met, cell["accuracy"].max()), ROUNDED)
    return target if target <= COARSE else float("nan")


@dataclass(frozen=True)
class Interval:
    """The median over seeds, and the least and the greatest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Interval":
        """Return the interval of some values."""
        numbers = [float(value) for value in values]
        return cls(median(numbers), min(numbers), max(numbers))

    def __str__(self) -> str:
        middle, low, high = (format_number(value, separator="") for value in (self.median, self.low, self.high))
        return f"{middle} [{low}, {high}]"


def scores(cell: pd.DataFrame, target: float, cost: str = "rounds") -> pd.DataFrame:
    """Return the scores that rank the methods of a panel, one row per seed: the costs to reach a target.

    A run that misses the target scores the whole budget at the panel's highest cost per round, so it is never ahead of
    one that meets the target. If the target is NaN, the scores are the last errors.
    """
    if np.isnan(target):
        return by_seed(cell, "last_error")
    spent = costs(cell, target, cost)
    a_round = max(
        float(curve.result.history[METRICS[cost].name].iloc[-1]) / curve.rounds[-1] for curve in cell["curve"]
    )
    return by_seed(cell, spent.where(np.isfinite(spent), cell["budget"].max() * a_round))


def lead(scores: pd.DataFrame, champion: str) -> "pd.Series[float]":
    """Return the best other method's score over the champion's, for each seed that has both."""
    factors: pd.Series[float] = scores.drop(columns=champion).min(axis=1) / scores[champion].clip(lower=1e-300)
    return factors.dropna()


def best_of(scores: pd.DataFrame) -> str:
    """Return the method of a panel that is ahead of all others in every seed, or `UNDECIDED`.

    Examples
    --------
    >>> best_of(pd.DataFrame({"adom": [10, 20], "apm": [11, 21]})), best_of(pd.DataFrame({"adom": [9], "apm": [9]}))
    ('adom', 'undecided')
    """
    ahead = (method for method in map(str, scores) if len(factors := lead(scores, method)) and factors.min() > 1)
    return next(ahead, UNDECIDED)


def contest(
    cell: pd.DataFrame, champion: str, rivals: Sequence[str], target: float | None = None
) -> dict[str, Any] | None:
    """Compare a champion with its rivals in a panel by rounds to a common target; None without a common seed.

    Returns
    -------
    dict
        A row of evidence. "outcome": "won" or "lost" if so in every seed, otherwise "undecided". "rival": the best
        rival in the median over seeds. "factor": the best rival's score over the champion's, seed by seed (see
        `scores`). "bound": whether a run of the champion or of "rival" missed the target.
    """
    cell = cell[cell["method"].isin([champion, *rivals])]
    rivals = [name for name in rivals if (cell["method"] == name).any()]
    if not rivals or not (cell["method"] == champion).any():
        return None
    aim = target_of(cell) if target is None else target
    rounds, ranked = by_seed(cell, costs(cell, aim)), scores(cell, aim)
    factors = lead(ranked, champion)
    if factors.empty:
        return None
    factor, rival = Interval.of(factors), ranked[rivals].median().idxmin()
    return {
        "figure": cell["figure"].iloc[0],
        "panel": cell["panel"].iloc[0],
        "outcome": "won" if factor.low > 1 else ("lost" if factor.high < 1 else UNDECIDED),
        "target": "last error" if np.isnan(aim) else aim,
        "rival": rival,
        "factor": factor,
        "bound": bool(not np.isnan(aim) and np.isinf(rounds[[champion, rival]].to_numpy()).any()),
        "rounds": rounds[[champion, *rivals]].median().to_dict(),
        "seeds": len(factors),
    }


def plain(value: Any) -> Any:
    """Return evidence in a form that JSON can hold; numbers that are not finite become text."""
    if isinstance(value, Interval):
        return plain(vars(value))
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.6g}") if np.isfinite(value) else str(value)
    return value


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
    row = {**about(outcome), "budget": outcome.job.rounds, "target": outcome.job.accuracy}
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
