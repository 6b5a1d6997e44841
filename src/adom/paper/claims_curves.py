"""The paper's claims about how single methods behave.

The ledger prints each judging function's docstring, after its first line, as the rule.
"""

from collections.abc import Iterable
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from .evidence import Curve, Interval, by_seed, cells, target_within
from .power_laws import family
from .verdicts import NOT_REPRODUCED, PARTLY, REPRODUCED, Entry, fewer, finding, missing, not_tested, untested

COMPARED = ("kappa", "chi", "real_kappa", "real_chi", "real_networks")
"""The figures in which ADOM, Mudag, Acc-DNGD and APM are compared."""
ENOUGH = 1.5
"""Largest ratio of rounds, truncated over exact oracle, at which the truncated one is enough."""
RISE = 1.1
"""Relative error above which a run grows at first."""
OPENING = 0.05
"""The share of the budget that counts as the first rounds."""
STILL = 0.1
"""A run that gains fewer digits of the error than this is too slow to have a pace."""


def acc_dngd_worsens(runs: pd.DataFrame, protocol: str) -> Entry:
    """Judge that Acc-DNGD gets worse as chi and kappa grow.

    A row is the panels of figure kappa or chi that differ in kappa or chi only. Pace is digits of the error gained in
    a thousand rounds; a run that gained less than 0.1 has none. In a row Acc-DNGD gets worse if, from the smallest to
    the largest value and in every seed, its pace falls, and falls by more than that of the fastest other method; where
    seeds disagree the row is undecided. Rows in which it has no pace even at the smallest value say nothing.
    Reproduced: worse in all rows; partly: in some; not reproduced: in none.
    """
    panels: list[dict[str, Any]] = []
    still = 0
    for swept in ("kappa", "chi"):
        rows: dict[str, list[pd.DataFrame]] = {}
        for cell in cells(runs, protocol, [swept]).values():
            if {"acc-dngd", "adom"} <= set(cell["method"]):
                rows.setdefault(family(cell["settings"].iloc[0], swept), []).append(cell)
        for row in rows.values():
            row.sort(key=lambda cell, swept=swept: float(cell[swept].iloc[0]))  # type: ignore[misc]  # bound at once
            first, last = _paces(row[0]), _paces(row[-1])
            seeds = first["acc-dngd"].dropna().index.intersection(last["acc-dngd"].dropna().index)
            if len(row) < 2 or seeds.empty:
                continue
            if not (first.loc[seeds, "acc-dngd"] > 0).all():
                still += 1
                continue
            own, behind = _slower(first.loc[seeds], last.loc[seeds])
            worse, better = own.low > 1 and behind.low > 1, own.high <= 1 or behind.high <= 1
            panels.append(
                {
                    "figure": swept,
                    "panel": f"{row[0]['panel'].iloc[0]} to {row[-1]['panel'].iloc[0]}",
                    "outcome": "worse" if worse else ("not worse" if better else "undecided"),
                    "slower": own,
                    "slower than others": behind,
                    "seeds": len(seeds),
                }
            )
    notes = [f"{still} rows say nothing: Acc-DNGD gains less than {STILL} digits in all its rounds"] if still else []
    if not panels:
        why = untested(runs, protocol, ["kappa", "chi"], "no row with two values of kappa or chi")
        return not_tested(notes) if notes else why
    holding = sum(panel["outcome"] == "worse" for panel in panels)
    parts = []
    for swept in ("kappa", "chi"):
        chosen = [panel for panel in panels if panel["figure"] == swept]
        if chosen:
            slower = median(panel["slower"].median for panel in chosen)
            more = median(panel["slower than others"].median for panel in chosen)
            parts.append(f"smallest to largest {swept}: {slower:.3g} times slower, {more:.3g} against the best other")
    notes += fewer(0, [], [panel["seeds"] for panel in panels]) + missing(runs, protocol, ["kappa", "chi"])
    return finding(panels, holding, "; ".join(parts), notes, unit="rows")


def _paces(cell: pd.DataFrame) -> pd.DataFrame:
    """Return the pace of every run of a panel, by seed and method; 0 where too few digits were gained."""
    return by_seed(cell, cell["pace"].where(-np.log10(cell["last_error"]) >= STILL, 0.0))


def _slower(first: pd.DataFrame, last: pd.DataFrame) -> tuple[Interval, Interval]:
    """Return the factor by which Acc-DNGD slows down between two panels, by itself and against the fastest other."""
    before, after = first["acc-dngd"], last["acc-dngd"]
    fastest, later = (paces.drop(columns="acc-dngd").max(axis=1) for paces in (first, last))
    behind = (later / after / (fastest / before)).where(fastest > 0, 0.0).where(after > 0, np.inf)
    return Interval.of(before / after), Interval.of(behind)


def apm_flattens(runs: pd.DataFrame, protocol: str) -> Entry:
    """Judge that APM is sub-linear: its slope flattens as rounds grow.

    The slope is that of log(error) against rounds, over the first and the last third of a run's rounds. APM flattens
    in a panel of figures kappa and chi if the last slope over the first is below 1 in every seed; where seeds disagree
    the panel is undecided. Runs that diverged, or had not fallen by the end of their first third, do not flatten.
    Reproduced: in all panels; partly: in some; not reproduced: in none. A method that is linear has a ratio of 1, one
    with log^2(1/eps) of 0.32.
    """
    figures = ["kappa", "chi"]
    panels: list[dict[str, Any]] = []
    for (figure, name), cell in cells(runs, protocol, figures).items():
        apm = cell[cell["method"] == "apm"]
        if apm.empty:
            continue
        ratio = Interval.of(map(_flattening, apm["curve"]))
        flat = "flattens" if ratio.high < 1 else ("does not" if ratio.low >= 1 else "undecided")
        row = {"figure": figure, "panel": name, "outcome": flat, "ratio": ratio, "seeds": len(apm)}
        row["last over middle"] = Interval.of(last / (middle or np.nan) for _, middle, last in apm["slopes"])
        steady = cell.loc[(cell["method"] == "adom") & cell["converging"].astype(bool), "slopes"]
        if len(steady):
            row["ADOM's ratio"] = Interval.of(last / first for first, _, last in steady)
            row["ADOM's last over middle"] = Interval.of(last / middle for _, middle, last in steady)
        panels.append(row)
    if not panels:
        return untested(runs, protocol, figures)
    holding = sum(panel["outcome"] == "flattens" for panel in panels)
    ratios = [panel["ratio"].median for panel in panels]
    summary = f"last slope/first: median {median(ratios):.3g}, {min(ratios):.3g} to {max(ratios):.3g} over panels"
    summary += f"; last/middle {median(panel['last over middle'].median for panel in panels):.3g}"
    linear = [panel for panel in panels if "ADOM's ratio" in panel]
    if linear:
        both = (median(panel[name].median for panel in linear) for name in ("ADOM's ratio", "ADOM's last over middle"))
        summary += "; for comparison ADOM's {:.3g} and {:.3g}".format(*both)
    notes = fewer(len(panels), figures, [panel["seeds"] for panel in panels]) + missing(runs, protocol, figures)
    return finding(panels, holding, summary, notes)


def _flattening(curve: Curve) -> float:
    first, _, last = curve.slopes
    return float("inf") if curve.failed or first >= 0 else last / first


def few_inner_steps(runs: pd.DataFrame, protocol: str) -> Entry:
    """Judge that T <= 3 inner steps are enough, and T = 1 outside figure slow2.

    In a panel, rounds of ADOM with the paper's T over those with the exact oracle, seed by seed, to the smallest power
    of ten that the exact runs met in the median, within the rounds allowed to T over 1.5; a run that misses it, or
    diverges, has an infinite ratio. Where exact runs miss 1e-2, the ratio is that of the digits gained by the end of
    the exact run, its own over those with T. T is enough if the ratio is at most 1.5 in every seed, not enough if it is
    above in every seed, else undecided. Panels in which a run with the exact oracle does not converge either (within
    its rounds) say nothing about T. Reproduced: enough in all panels; partly: in some; not reproduced: in none.
    """
    figures = sorted(set(runs.loc[runs["variant"] == "exact", "figure"]))
    own = adom_cells(runs, protocol, figures)
    panels: list[dict[str, Any]] = []
    broken = 0
    for key, exact in adom_cells(runs, protocol, figures, "exact").items():
        if key not in own:
            continue
        few = own[key]
        both = few.merge(exact, left_index=True, right_index=True, suffixes=("", "_exact"))
        if both.empty:
            continue
        if not both["converging_exact"].all():
            broken += 1
            continue
        target = target_within(exact, few["budget"].min() / ENOUGH)
        pairs = zip(both["curve"], both["curve_exact"], strict=True)
        ratio = Interval.of(_truncation(curve, reference, target) for curve, reference in pairs)
        enough = "enough" if ratio.high <= ENOUGH else ("not enough" if ratio.low > ENOUGH else "undecided")
        diverged = f"{both['failed'].sum()} of {len(both)} seeds"
        row = {"figure": key[0], "panel": key[1], "oracle": both["oracle"].iloc[0], "outcome": enough}
        panels.append(row | {"ratio": ratio, "diverged": diverged, "seeds": len(both)})
    notes = (
        [f"{broken} panels say nothing: the exact oracle does not converge there within its rounds"] if broken else []
    )
    if not panels:
        why = untested(runs, protocol, figures, f"no runs with the exact oracle under {protocol}", "exact")
        return not_tested(notes) if notes else why
    holding = sum(panel["outcome"] == "enough" for panel in panels)
    ratios = [panel["ratio"].median for panel in panels]
    bad = sum(not panel["diverged"].startswith("0 ") for panel in panels)
    summary = f"rounds over the exact oracle's: median {median(ratios):.3g}, up to {max(ratios):.3g}"
    summary += f"; diverges in {bad} of {len(panels)} panels"
    everywhere = adom_cells(runs, protocol, ("slow2", *COMPARED))
    lost = sum(bool(cell["failed"].any()) for cell in everywhere.values())
    summary += f" (with or without exact runs beside it: in {lost} of {len(everywhere)})"
    notes += fewer(len(panels), figures, [panel["seeds"] for panel in panels])
    return finding(panels, holding, summary, notes, evidence={"diverges": lost, "of": len(everywhere)})


def adom_cells(
    runs: pd.DataFrame, protocol: str, figures: Iterable[str], variant: str = ""
) -> dict[tuple[str, str], pd.DataFrame]:
    """Return ADOM's finished runs of each panel, indexed by their seed."""
    return cells(runs[runs["method"] == "adom"].set_index("seed"), protocol, figures, variant)


def _truncation(curve: Curve, exact: Curve, target: float) -> float:
    if curve.failed:
        return float("inf")
    if np.isnan(target):
        end = float(exact.rounds[-1])
        gained = float(curve.digits_by(end))
        return float(exact.digits_by(end)) / gained if gained > 0 else float("inf")
    reference = exact.cost_to(target)
    return curve.cost_to(target) / reference if np.isfinite(reference) else 1.0


def early_progress(runs: pd.DataFrame, protocol: str) -> Entry:
    """Judge that APM and Mudag often diverge at first while ADOM makes progress at once.

    The opening is the first 5 % of the rounds allowed, at least three records. A method diverges at first in a panel if
    the peak of its relative error there is above 1.1 in the median over seeds. ADOM makes progress at once if its peak
    is not, and its error ends the opening below the start. A panel holds if ADOM does and APM or Mudag diverges at
    first. Reproduced: ADOM makes progress at once in all panels, and at least half of them hold ("often"); not
    reproduced: no panel holds; partly: all else.
    """
    panels: list[dict[str, Any]] = []
    for (figure, name), cell in cells(runs, protocol, COMPARED).items():
        methods = set(cell["method"])
        others = [method for method in ("apm", "mudag") if method in methods]
        if "adom" not in methods or not others:
            continue
        openings = {
            method: [_opening(curve, budget) for curve, budget in zip(chosen["curve"], chosen["budget"], strict=True)]
            for method, chosen in cell.groupby("method")
        }
        peaks = {method: Interval.of(errors.max() for errors in some) for method, some in openings.items()}
        left = median(float(errors[-1]) for errors in openings["adom"])
        at_once = peaks["adom"].median <= RISE and left < 1
        rising = [method for method in others if peaks[method].median > RISE]
        row = {"figure": figure, "panel": name, "holds": at_once and bool(rising), "rising": rising}
        row |= {"ADOM at once": at_once, "ADOM's error after": left, "seeds": len(openings["adom"])}
        panels.append(row | {f"peak of {method}": peaks[method] for method in ("adom", *others)})
    if not panels:
        return untested(runs, protocol, COMPARED)
    holding = sum(panel["holds"] for panel in panels)
    progress = sum(panel["ADOM at once"] for panel in panels)
    verdict = PARTLY if holding else NOT_REPRODUCED
    if progress == len(panels) and holding >= len(panels) / 2:
        verdict = REPRODUCED
    rises = {method: sum(method in panel["rising"] for panel in panels) for method in ("apm", "mudag")}
    summary = f"of {len(panels)} panels: ADOM at once in {progress}; APM rises in {rises['apm']}, "
    summary += f"Mudag in {rises['mudag']}"
    notes = fewer(0, [], [panel["seeds"] for panel in panels]) + missing(runs, protocol, COMPARED)
    return finding(
        panels, holding, summary, notes, verdict=verdict, evidence={"ADOM at once": progress, "rises": rises}
    )


def _opening(curve: Curve, budget: int) -> np.ndarray:
    """Return the relative errors of the first rounds; NaN counts as infinite."""
    records = int((curve.rounds <= OPENING * budget).sum())
    return np.asarray(np.nan_to_num(curve.errors[: max(3, records)], nan=np.inf, posinf=np.inf))
