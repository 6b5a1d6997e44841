"""The paper's claims about how single methods behave, judged from saved results.

Each function's docstring is the rule that the ledger prints.
"""

from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from .measures import (
    Interval,
    Runs,
    converging,
    cost_to,
    digits_by,
    errors,
    failed,
    family,
    grouped,
    last_error,
    pace,
    panel_of,
    target_within,
    thirds,
)
from .runs import Outcome
from .verdicts import NOT_REPRODUCED, NOT_TESTED, PARTLY, REPRODUCED, Finding, fewer, missing, overall, untested

COMPARED = ("kappa", "chi", "real_kappa", "real_chi", "real_networks")
"""The figures in which ADOM, Mudag, Acc-DNGD and APM are compared."""
ENOUGH = 1.5
"""The rounds of a truncated oracle over those of the exact one, up to which it is enough."""
RISE = 1.1
"""The relative error above which a run has grown at first."""
OPENING = 0.05
"""The first rounds, as a part of the budget."""
STILL = 0.1
"""Fewer digits gained than this are no progress that a pace could be told from."""


def acc_dngd_worsens(outcomes: Sequence[Outcome], protocol: str) -> Finding:
    """Judge that Acc-DNGD gets worse as chi and kappa grow.

    A row is the panels of figure kappa or chi that differ in kappa or chi only. Pace is digits of the error gained in
    a thousand rounds; a run that gained less than 0.1 has none. In a row Acc-DNGD gets worse if, from the smallest to
    the largest value and in every seed, its pace falls, and falls by more than that of the fastest other method; where
    seeds disagree the row is undecided. Rows in which it has no pace even at the smallest value say nothing.
    Reproduced: worse in all rows; partly: in some; not reproduced: in none.
    """
    rows: dict[tuple[str, str], list[Runs]] = {}
    for swept in ("kappa", "chi"):
        for runs in grouped(outcomes, protocol, [swept]).values():
            if {"acc-dngd", "adom"} <= runs.keys():
                rows.setdefault((swept, family(panel_of(runs), swept)), []).append(runs)
    panels: list[dict[str, Any]] = []
    still = 0
    for (swept, _), cells in rows.items():
        cells.sort(key=lambda runs, swept=swept: float(panel_of(runs).settings[swept]))  # type: ignore[misc]  # bound at once
        first, last = cells[0], cells[-1]
        seeds = sorted(first["acc-dngd"].keys() & last["acc-dngd"].keys())
        if len(cells) < 2 or not seeds:
            continue
        if not all(_pace(first["acc-dngd"][seed]) > 0 for seed in seeds):
            still += 1
            continue
        own = Interval.of(_slower(first, last, seed, own=True) for seed in seeds)
        behind = Interval.of(_slower(first, last, seed, own=False) for seed in seeds)
        worse = own.low > 1 and behind.low > 1
        better = own.high <= 1 or behind.high <= 1
        names = f"{panel_of(first).name} to {panel_of(last).name}"
        outcome = "worse" if worse else ("not worse" if better else "undecided")
        row = {"figure": swept, "panel": names, "outcome": outcome, "slower": own, "slower than others": behind}
        panels.append(row | {"seeds": len(seeds)})
    notes = [f"{still} rows say nothing: Acc-DNGD gains less than {STILL} digits in all its rounds"] if still else []
    if not panels:
        why = untested(outcomes, protocol, ["kappa", "chi"], "no row with two values of kappa or chi")
        return Finding(NOT_TESTED, notes=notes or why.notes)
    holding = sum(one["outcome"] == "worse" for one in panels)
    parts = []
    for swept in ("kappa", "chi"):
        chosen = [one for one in panels if one["figure"] == swept]
        if chosen:
            own_slow = median(one["slower"].median for one in chosen)
            more = median(one["slower than others"].median for one in chosen)
            parts.append(f"smallest to largest {swept}: {own_slow:.3g} times slower, {more:.3g} against the best other")
    notes += fewer(0, [], [one["seeds"] for one in panels]) + missing(outcomes, protocol, ["kappa", "chi"])
    evidence = {"panels": panels}
    return Finding(overall(holding, len(panels)), holding, len(panels), "; ".join(parts), evidence, notes, "rows")


def _slower(first: Runs, last: Runs, seed: int, *, own: bool) -> float:
    """Return how many times Acc-DNGD slowed down from one panel to another, by itself or against the fastest other."""
    before, after = _pace(first["acc-dngd"][seed]), _pace(last["acc-dngd"][seed])
    if after == 0:
        return float("inf")
    if own:
        return before / after
    fastest = [
        max(_pace(found[seed]) for name, found in runs.items() if name != "acc-dngd" and seed in found)
        for runs in (first, last)
    ]
    return fastest[1] / after / (fastest[0] / before) if fastest[0] > 0 else 0.0


def _pace(one: Outcome) -> float:
    return pace(one) if -np.log10(last_error(one)) >= STILL else 0.0


def apm_flattens(outcomes: Sequence[Outcome], protocol: str) -> Finding:
    """Judge that APM is sub-linear: its slope flattens as rounds grow.

    The slope is that of log(error) against rounds, over the first and the last third of a run's rounds. APM flattens
    in a panel of figures kappa and chi if the last slope over the first is below 1 in every seed; where seeds disagree
    the panel is undecided. Runs that diverged, or had not fallen by the end of their first third, do not flatten.
    Reproduced: in all panels; partly: in some; not reproduced: in none. A method that is linear has a ratio of 1, one
    with log^2(1/eps) of 0.32.
    """
    figures = ["kappa", "chi"]
    panels: list[dict[str, Any]] = []
    for runs in grouped(outcomes, protocol, figures).values():
        if "apm" not in runs:
            continue
        panel, ratio = panel_of(runs), Interval.of(map(_flattening, runs["apm"].values()))
        flat = "flattens" if ratio.high < 1 else ("does not" if ratio.low >= 1 else "undecided")
        row = {"figure": panel.figure, "panel": panel.name, "outcome": flat, "ratio": ratio, "seeds": len(runs["apm"])}
        row["last over middle"] = Interval.of(
            thirds(one)[2] / (thirds(one)[1] or np.nan) for one in runs["apm"].values()
        )
        steady = [thirds(one) for one in runs.get("adom", {}).values() if converging(one)]
        if steady:
            row["ADOM's ratio"] = Interval.of(last / first for first, _, last in steady)
            row["ADOM's last over middle"] = Interval.of(last / middle for _, middle, last in steady)
        panels.append(row)
    if not panels:
        return untested(outcomes, protocol, figures)
    holding = sum(one["outcome"] == "flattens" for one in panels)
    ratios = [one["ratio"].median for one in panels]
    summary = f"last slope/first: median {median(ratios):.3g}, {min(ratios):.3g} to {max(ratios):.3g} over panels"
    summary += f"; last/middle {median(one['last over middle'].median for one in panels):.3g}"
    linear = [one for one in panels if "ADOM's ratio" in one]
    if linear:
        both = (median(one[name].median for one in linear) for name in ("ADOM's ratio", "ADOM's last over middle"))
        summary += "; for comparison ADOM's {:.3g} and {:.3g}".format(*both)
    notes = fewer(len(panels), figures, [one["seeds"] for one in panels]) + missing(outcomes, protocol, figures)
    return Finding(overall(holding, len(panels)), holding, len(panels), summary, {"panels": panels}, notes)


def _flattening(one: Outcome) -> float:
    first, _, last = thirds(one)
    return float("inf") if failed(one) or first >= 0 else last / first


def few_inner_steps(outcomes: Sequence[Outcome], protocol: str) -> Finding:
    """Judge that T <= 3 inner steps are enough, and T = 1 outside figure slow2.

    In a panel, rounds of ADOM with the paper's T over those with the exact oracle, seed by seed, to the smallest power
    of ten that the exact runs met in the median, within the rounds allowed to T over 1.5; a run that misses it, or
    diverges, has an infinite ratio. Where exact runs miss 1e-2, the ratio is that of the digits gained by the end of
    the exact run, its own over those with T. T is enough if the ratio is at most 1.5 in every seed, not enough if it is
    above in every seed, else undecided. Panels in which a run with the exact oracle does not converge either (within
    its rounds) say nothing about T. Reproduced: enough in all panels; partly: in some; not reproduced: in none.
    """
    figures = sorted({one.job.panel.figure for one in outcomes if one.job.variant == "exact"})
    own = grouped(outcomes, protocol, figures)
    panels: list[dict[str, Any]] = []
    broken = 0
    for place, exact in grouped(outcomes, protocol, figures, "exact").items():
        seeds = sorted(exact["adom"].keys() & own.get(place, {}).get("adom", {}).keys())
        if not seeds:
            continue
        if not all(converging(exact["adom"][seed]) for seed in seeds):
            broken += 1
            continue
        runs = own[place]["adom"]
        target = target_within(exact["adom"], min(one.job.rounds for one in runs.values()) / ENOUGH)
        ratio = Interval.of(_truncation(runs[seed], exact["adom"][seed], target) for seed in seeds)
        enough = "enough" if ratio.high <= ENOUGH else ("not enough" if ratio.low > ENOUGH else "undecided")
        panel, oracle = panel_of(exact), runs[seeds[0]].job.oracle
        diverged = sum(failed(runs[seed]) for seed in seeds)
        row = {"figure": panel.figure, "panel": panel.name, "oracle": oracle, "outcome": enough, "ratio": ratio}
        panels.append(row | {"diverged": f"{diverged} of {len(seeds)} seeds", "seeds": len(seeds)})
    notes = (
        [f"{broken} panels say nothing: the exact oracle does not converge there within its rounds"] if broken else []
    )
    if not panels:
        why = untested(outcomes, protocol, figures, f"no runs with the exact oracle under {protocol}", "exact")
        return Finding(NOT_TESTED, notes=notes or why.notes)
    holding = sum(one["outcome"] == "enough" for one in panels)
    ratios = [one["ratio"].median for one in panels]
    bad = sum(not one["diverged"].startswith("0 ") for one in panels)
    summary = f"rounds over the exact oracle's: median {median(ratios):.3g}, up to {max(ratios):.3g}"
    summary += f"; diverges in {bad} of {len(panels)} panels"
    everywhere = [
        seeds["adom"] for seeds in grouped(outcomes, protocol, ("slow2", *COMPARED)).values() if "adom" in seeds
    ]
    lost = sum(any(map(failed, runs.values())) for runs in everywhere)
    summary += f" (with or without exact runs beside it: in {lost} of {len(everywhere)})"
    notes += fewer(len(panels), figures, [one["seeds"] for one in panels])
    more = {"diverges": lost, "of": len(everywhere)}
    return Finding(overall(holding, len(panels)), holding, len(panels), summary, {"panels": panels} | more, notes)


def _truncation(one: Outcome, exact: Outcome, target: float) -> float:
    if failed(one):
        return float("inf")
    if np.isnan(target):
        assert exact.result is not None
        end = float(exact.result.history["round"].iloc[-1])
        gained = float(digits_by(one, end))
        return float(digits_by(exact, end)) / gained if gained > 0 else float("inf")
    reference = cost_to(exact, target)
    return cost_to(one, target) / reference if np.isfinite(reference) else 1.0


def early_progress(outcomes: Sequence[Outcome], protocol: str) -> Finding:
    """Judge that APM and Mudag often diverge at first while ADOM makes progress at once.

    The opening is the first 5 % of the rounds allowed, at least three records. A method diverges at first in a panel if
    the peak of its relative error there is above 1.1 in the median over seeds. ADOM makes progress at once if its peak
    is not, and its error ends the opening below the start. A panel holds if ADOM does and APM or Mudag diverges at
    first. Reproduced: ADOM makes progress at once in all panels, and at least half of them hold ("often"); not
    reproduced: no panel holds; partly: all else.
    """
    panels: list[dict[str, Any]] = []
    for runs in grouped(outcomes, protocol, COMPARED).values():
        others = [name for name in ("apm", "mudag") if name in runs]
        if "adom" not in runs or not others:
            continue
        peaks = {name: Interval.of(float(_opening(one).max()) for one in runs[name].values()) for name in runs}
        left = median(float(_opening(one)[-1]) for one in runs["adom"].values())
        at_once = peaks["adom"].median <= RISE and left < 1
        rising = [name for name in others if peaks[name].median > RISE]
        panel = panel_of(runs)
        row = {"figure": panel.figure, "panel": panel.name, "holds": at_once and bool(rising), "rising": rising}
        row |= {"ADOM at once": at_once, "ADOM's error after": left, "seeds": len(runs["adom"])}
        panels.append(row | {f"peak of {name}": peaks[name] for name in ("adom", *others)})
    if not panels:
        return untested(outcomes, protocol, COMPARED)
    holding = sum(one["holds"] for one in panels)
    progress = sum(one["ADOM at once"] for one in panels)
    verdict = PARTLY if holding else NOT_REPRODUCED
    if progress == len(panels) and holding >= len(panels) / 2:
        verdict = REPRODUCED
    rises = {name: sum(name in one["rising"] for one in panels) for name in ("apm", "mudag")}
    summary = f"of {len(panels)} panels: ADOM at once in {progress}; APM rises in {rises['apm']}, "
    summary += f"Mudag in {rises['mudag']}"
    notes = fewer(0, [], [one["seeds"] for one in panels]) + missing(outcomes, protocol, COMPARED)
    evidence = {"ADOM at once": progress, "rises": rises, "panels": panels}
    return Finding(verdict, holding, len(panels), summary, evidence, notes)


def _opening(one: Outcome) -> np.ndarray:
    """Return the relative errors of the first rounds, what is no number as infinite."""
    assert one.result is not None
    relative = errors(one)
    records = int((one.result.history["round"].to_numpy() <= OPENING * one.job.rounds).sum())
    opening: np.ndarray = np.nan_to_num(relative[: max(3, records)], nan=np.inf, posinf=np.inf)
    return opening
