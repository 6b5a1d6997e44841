"""The functions that judge the paper's claims: about theory, about which method is ahead, and about single methods.

The ledger prints each judging function's docstring, after its first line, as the rule.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from ..run.result import Result
from .evidence import COARSE, Curve, Interval, by_seed, cells, contest, finished, target_within
from .growth import SLACK, PowerLaw, exponents, family, power_law, swept_figures
from .runs import VERIFY
from .verdicts import (
    NOT_REPRODUCED,
    NOT_TESTED,
    PARTLY,
    REPRODUCED,
    Entry,
    fewer,
    finding,
    missing,
    not_tested,
    overall,
    untested,
)

SAME = 1e-6
"""Largest distance between runs that differ only by rounding, relative to the distance from start to solution."""
RIVALS = ("mudag", "acc-dngd", "apm")
"""The methods that the paper compares ADOM with."""
STUCK = 0.1
"""Last relative error above which a run hardly converges."""
CHI, NODES, GRAPHS = 232.0, 50, 200
"""The paper's numbers for infectious_ct1."""
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


def theorem(runs: pd.DataFrame, protocol: str) -> Entry:
    """Judge Theorem 1.

    A verification holds if error <= C (1 - tau)^k, C from the proof, in every round checked, beyond 1e-6 of rounding.
    Reproduced: all verifications hold; partly: some; not reproduced: none.
    """
    return _inequalities(runs, protocol, "Theorem")


def lemmas(runs: pd.DataFrame, protocol: str) -> Entry:
    """Judge Lemmas 1 to 4.

    A verification holds if left side <= right side for every lemma in every round checked, beyond 1e-6 of rounding.
    Reproduced: all verifications hold; partly: some; not reproduced: none.
    """
    return _inequalities(runs, protocol, "Lemma")


def _inequalities(runs: pd.DataFrame, protocol: str, kind: str) -> Entry:
    panels: list[dict[str, Any]] = []
    worst: dict[str, float] = {}
    rounds = whole = 0
    verifications = runs[runs["variant"] == VERIFY]
    done = verifications[(verifications["protocol"] == protocol) & verifications["content"].notna()]
    for job in done.to_dict("records"):
        rows = [row for row in job["content"]["rows"] if str(row["name"]).startswith(kind) and row["rounds_checked"]]
        if not rows:  # both sides were within rounding of 0 in every round
            continue
        # JSON has no number for an infinite ratio
        ratios = {str(row["name"]): float(np.inf if row["worst_ratio"] is None else row["worst_ratio"]) for row in rows}
        panel = {name: job[name] for name in ("figure", "panel", "seed")}
        panels.append(panel | {"holds": all(row["holds"] for row in rows)} | ratios)
        rounds += min(int(row["rounds_checked"]) for row in rows)
        whole += int(rows[0].get("rounds", job["budget"]))
        worst = {name: max(ratio, worst.get(name, 0.0)) for name, ratio in ratios.items()}
    if not panels:
        return untested(runs, protocol, list(verifications["figure"]), f"no verification under {protocol}", VERIFY)
    holding = sum(panel["holds"] for panel in panels)
    ratios_text = ", ".join(f"{name} {ratio:.4g}" for name, ratio in worst.items())
    summary = f"worst left/right side over {rounds} rounds: {ratios_text}"
    notes = [f"{whole - rounds} more rounds not checked: both sides are within rounding of 0"] if whole > rounds else []
    return finding(panels, holding, summary, notes, unit="verifications", evidence={"worst": worst, "rounds": rounds})


def complete(runs: pd.DataFrame, protocol: str) -> Entry:
    """Judge that on the complete graph ADOM is PNGD, at rate sqrt(kappa).

    In a panel the two are the same if their distances to the solution never differ by more than 1e-6 of that at the
    start, and their last rows by no more than 1e-6 of the solution's norm, in every seed. The exponent of kappa is
    fitted to ADOM's rounds to a target; it agrees if the 95 % interval lies below 1/2 + 0.1 and reaches 1/2 - 0.1.
    Reproduced: the same in all panels, and the exponent agrees; not reproduced: the same in none; partly: all else.
    """
    panels: list[dict[str, Any]] = []
    for (_, name), cell in cells(runs, protocol, ["complete"]).items():
        curves = by_seed(cell, "curve").reindex(columns=["adom", "pngd"]).dropna()
        if len(curves):
            pairs = list(curves.itertuples(index=False, name=None))
            history = max(_curves_apart(*pair) for pair in pairs)
            rows = max(_rows_apart(*pair) for pair in pairs)
            panels.append({"panel": name, "holds": max(history, rows) <= SAME, "distance": history, "rows": rows})
    if not panels:
        return untested(runs, protocol, ["complete"])
    holding = sum(panel["holds"] for panel in panels)
    power = power_law(finished(runs, protocol, ["complete"]), "adom", "kappa")
    apart = max(max(panel["distance"], panel["rows"]) for panel in panels)
    summary = f"greatest relative distance {apart:.1e}; "
    evidence: dict[str, Any] = {}
    agrees = False
    if isinstance(power, PowerLaw):
        agrees = 0.5 - SLACK <= power.high <= 0.5 + SLACK
        summary += f"exponent of kappa {power.exponent:.3f} [{power.low:.3f}, {power.high:.3f}] (proved: 0.5)"
        evidence = {"exponent": power.row()}
    else:
        summary += f"exponent of kappa not fitted: {power}"
    verdict = overall(holding, len(panels))
    if verdict == REPRODUCED and not agrees:
        verdict = PARTLY
    notes = missing(runs, protocol, ["complete"])
    return finding(panels, holding, summary, notes, verdict=verdict, evidence=evidence | {"distance": apart})


def _curves_apart(adom: Curve, pngd: Curve) -> float:
    """Return the greatest difference between the runs' distances to the solution, relative to the start's."""
    _, first, second = np.intersect1d(adom.rounds, pngd.rounds, return_indices=True)
    gap = np.abs(np.sqrt(adom.errors[first]) - np.sqrt(pngd.errors[second]))
    return float(np.max(np.nan_to_num(gap, nan=np.inf), initial=0.0))


def _rows_apart(adom: Curve, pngd: Curve) -> float:
    """Return the distance between the last rows, relative to the start's; 0 if the runs ended in different rounds."""
    if adom.rounds[-1] != pngd.rounds[-1]:
        return 0.0
    gap = adom.result.x - pngd.result.x
    return float(np.sqrt((gap**2).sum() / adom.result.provenance["start_error"]))


def rates(runs: pd.DataFrame, protocol: str) -> Entry:
    """Judge Table 1: how rounds to a target grow with kappa and chi, for each method of the table.

    The exponent is fitted by least squares of log(rounds) against log(kappa) or log(chi), as measured, with one
    intercept for each seed and each set of other settings; Mudag's rounds are divided by log(kappa). A fit holds if its
    95 % interval (Student's t) lies below the table's exponent + 0.1, since the table has upper bounds; it fails if the
    interval lies above; otherwise it is undecided. The target is the smallest power of ten that all runs met; above
    1e-4, panels that miss 1e-4 are left out. Reproduced: all fits hold, both of ADOM's among them; not reproduced: none
    holds; partly: all else.
    """
    fits, notes = exponents(runs, protocol)
    if not fits:
        figures = swept_figures(runs, protocol)
        return not_tested(notes) if notes else untested(runs, protocol, figures, f"no runs under {protocol}")
    holding = sum(fit["outcome"] == "holds" for fit in fits)
    summary = "; ".join(
        f"{fit['method']} {fit['against']}^{fit['exponent']:.2f} [{fit['low']:.2f}, {fit['high']:.2f}], "
        f"table {fit['table']:.3g}"
        for fit in fits
    )
    verdict = overall(holding, len(fits))
    if verdict == REPRODUCED and sum(fit["method"] == "adom" for fit in fits) < 2:
        verdict = PARTLY
    return finding(fits, holding, summary, notes, verdict=verdict, unit="exponents")


def best_over_kappa(runs: pd.DataFrame, protocol: str) -> Entry:
    """Judge that ADOM is best in all panels of figure kappa.

    Methods are ranked by rounds to a common relative squared error: the smallest power of ten that the best of them
    met in the median over seeds, not below the error at which runs stop. A run that misses it counts with its whole
    budget. ADOM is best in a panel if the best rival's rounds over ADOM's exceed 1 in every seed; where seeds disagree
    the panel is undecided. Where nobody meets 1e-2, last errors are compared instead. Reproduced: best in all panels;
    partly: in some; not reproduced: in none.
    """
    return _best(runs, protocol, ["kappa"])


def best_over_chi(runs: pd.DataFrame, protocol: str) -> Entry:
    """Judge that ADOM is best in all panels of figure chi.

    The rule is that of figure kappa.
    """
    return _best(runs, protocol, ["chi"])


def _contests(
    runs: pd.DataFrame, protocol: str, figures: Sequence[str], target: float | None = None
) -> list[tuple[pd.DataFrame, dict[str, Any]]]:
    """Return the panels in which ADOM has a rival, each with its contest."""
    ranked = [(cell, contest(cell, "adom", RIVALS, target)) for cell in cells(runs, protocol, figures).values()]
    return [(cell, row) for cell, row in ranked if row is not None]


def _best(runs: pd.DataFrame, protocol: str, figures: Sequence[str]) -> Entry:
    panels = [row for _, row in _contests(runs, protocol, figures)]
    if not panels:
        return untested(runs, protocol, figures)
    outcomes = [row["outcome"] for row in panels]
    evidence: dict[str, Any] = {name: outcomes.count(name) for name in ("won", "lost", "undecided")}
    early = [row["outcome"] for _, row in _contests(runs, protocol, figures, COARSE)]
    evidence["won at 1e-2"] = early.count("won")
    evidence["factor"] = median(row["factor"].median for row in panels)
    least, most = (choose(panels, key=lambda row: row["factor"].median) for choose in (min, max))
    summary = (
        f"best rival/ADOM: median {evidence['factor']:.2f}, "
        f"from {_factor(least)} ({least['panel']}, {least['rival']}) "
        f"to {_factor(most)} ({most['panel']}, {most['rival']}); lost {evidence['lost']}, "
        f"undecided {evidence['undecided']}; at 1e-2 best in {evidence['won at 1e-2']}"
    )
    notes = fewer(len(panels), figures, [row["seeds"] for row in panels]) + missing(runs, protocol, figures)
    by_error = sum(row["target"] == "last error" for row in panels)
    if by_error:
        notes.append(f"nobody meets 1e-2 in {by_error} panels; last errors are compared there")
    return finding(panels, evidence["won"], summary, notes, evidence=evidence)


def _factor(row: dict[str, Any]) -> str:
    """Return the factor of a contest as text, with >= or <= if it is a bound."""
    sign = (">= " if row["factor"].median >= 1 else "<= ") if row["bound"] else ""
    return f"{sign}{row['factor']}"


def best_on_real_data(runs: pd.DataFrame, protocol: str) -> Entry:
    """Judge that ADOM is best on a6a, w6a and ijcnn1, and that Acc-DNGD almost does not converge for some settings.

    The ranking's rule is that of figure kappa. Acc-DNGD almost does not converge in a panel if its last relative
    error is above 0.1, and ADOM's is not above 1e-2, in the median over seeds. Reproduced: ADOM is best in all panels
    and there is at least one such panel; not reproduced: best in none; partly: all else.
    """
    figures = ["real_kappa", "real_chi"]
    ranked = _best(runs, protocol, figures)
    if ranked.verdict == NOT_TESTED:
        return ranked
    stuck = []
    for cell, row in _contests(runs, protocol, figures):
        ends = cell.groupby("method")["last_error"].median()
        if ends.get("acc-dngd", 0.0) > STUCK and ends["adom"] <= COARSE:
            stuck.append(f"{row['figure']} {row['panel']}")
    verdict = PARTLY if ranked.verdict == REPRODUCED and not stuck else ranked.verdict
    summary = f"{ranked.summary}; Acc-DNGD almost does not converge in {len(stuck)} panels"
    return replace(ranked, verdict=verdict, evidence=ranked.evidence | {"summary": summary, "acc-dngd stuck": stuck})


def dnm_diverges(runs: pd.DataFrame, protocol: str) -> Entry:
    """Judge that DNM diverges in 7 of the 8 panels of figure slow2, while ADOM converges in all.

    A run diverges if its error grew beyond all bounds or ended above its start; it converges if it met its tolerance,
    or ended below its start and still fell over its last third. It stalls if it does not diverge, and its least error
    over the last half is more than half of that over the first: a limit cycle, say. DNM diverges in a panel if it does
    in most seeds; ADOM converges in a panel if it does in every seed. The count is of panels where both are so.
    Reproduced: ADOM converges in all panels and DNM diverges in at least 7/8 of them; not reproduced: ADOM converges in
    none or DNM diverges in none; partly: all else. Stalls are told beside, and not counted.
    """
    panels: list[dict[str, Any]] = []
    for (figure, name), cell in cells(runs, protocol, ["slow2"]).items():
        adom, dnm = (cell[cell["method"] == method] for method in ("adom", "dnm"))
        if adom.empty or dnm.empty:
            continue
        diverges, stalls, converges = int(dnm["failed"].sum()), int(dnm["stalled"].sum()), int(adom["converging"].sum())
        panels.append(
            {
                "figure": figure,
                "panel": name,
                "DNM diverges": diverges > len(dnm) / 2,
                "ADOM converges": converges == len(adom),
                "seeds DNM diverges": f"{diverges} of {len(dnm)}",
                "seeds DNM stalls": f"{stalls} of {len(dnm)}",
                "DNM diverges or stalls": diverges + stalls > len(dnm) / 2,
                "seeds ADOM converges": f"{converges} of {len(adom)}",
                "DNM last error": dnm["last_error"].median(),
                "ADOM last error": adom["last_error"].median(),
                "seeds": min(len(dnm), len(adom)),
            }
        )
    if not panels:
        return untested(runs, protocol, ["slow2"])
    diverging = sum(panel["DNM diverges"] for panel in panels)
    stable = sum(panel["ADOM converges"] for panel in panels)
    both = sum(panel["DNM diverges"] and panel["ADOM converges"] for panel in panels)
    verdict = PARTLY if stable and diverging else NOT_REPRODUCED
    if stable == len(panels) and diverging >= 7 / 8 * len(panels):
        verdict = REPRODUCED
    either = sum(panel["DNM diverges or stalls"] for panel in panels)
    summary = f"DNM diverges in {diverging}, diverges or stalls in {either}, "
    summary += f"ADOM converges in {stable} of {len(panels)} panels"
    notes = fewer(len(panels), ["slow2"], [panel["seeds"] for panel in panels]) + missing(runs, protocol, ["slow2"])
    evidence = {"DNM diverges": diverging, "ADOM converges": stable}
    return finding(panels, both, summary, notes, verdict=verdict, evidence=evidence)


def dnm_faster(runs: pd.DataFrame, protocol: str) -> Entry:
    """Judge that where DNM converges it can be faster than ADOM.

    Tested are the panels of figure slow2 in which DNM converges in every seed. DNM is faster in a panel if ADOM's
    rounds to the target over DNM's exceed 1 in every seed; the target is that of figure kappa. Reproduced: faster in at
    least one panel; partly: in none, but some panel's interval covers 1 with a median above 1; not reproduced:
    neither; not tested: DNM converges in no panel.
    """
    with_dnm = [cell for cell in cells(runs, protocol, ["slow2"]).values() if "dnm" in set(cell["method"])]
    steady = [cell for cell in with_dnm if cell.loc[cell["method"] == "dnm", "converging"].all()]
    panels = [row for cell in steady if (row := contest(cell, "dnm", ["adom"])) is not None]
    if not panels:
        why = f"DNM converges in none of {len(with_dnm)} panels"
        return not_tested([why]) if with_dnm else untested(runs, protocol, ["slow2"])
    faster = sum(row["outcome"] == "won" for row in panels)
    close = any(row["factor"].median > 1 for row in panels)
    verdict = REPRODUCED if faster else (PARTLY if close else NOT_REPRODUCED)
    best = max(panels, key=lambda row: row["factor"].median)
    summary = f"ADOM's rounds over DNM's: up to {_factor(best)} ({best['panel']})"
    notes = fewer(0, [], [row["seeds"] for row in panels])
    return finding(panels, faster, summary, notes, verdict=verdict, unit="panels where DNM converges")


def real_networks(runs: pd.DataFrame, protocol: str) -> Entry:
    """Judge figure real_networks: the network's numbers, ADOM best, Mudag ahead of APM for small kappa only.

    A panel holds if ADOM is best in it (the rule of figure kappa), and if for kappa up to 30 Mudag takes fewer rounds
    than APM to the smallest power of ten that the better of the two met, or APM fewer than Mudag for kappa from 1000
    on, in every seed. The network is as described if it has 50 nodes and 200 graphs (where results tell) and its chi is
    within 5 % of 232.
    Reproduced: all panels hold and the network is as described; not reproduced: no panel holds and ADOM is best in
    none; partly: all else.
    """
    panels: list[dict[str, Any]] = []
    best = ordered = holding = 0
    described, network = True, ""
    for cell, row in _contests(runs, protocol, ["real_networks"]):
        kappa = float(cell["kappa"].iloc[0])
        ahead, behind = ("mudag", "apm") if kappa <= 30 else ("apm", "mudag")
        duel = contest(cell, ahead, [behind]) if kappa <= 30 or kappa >= 1000 else None
        won, in_order = row["outcome"] == "won", duel is not None and duel["outcome"] == "won"
        panels.append(row | {"kappa": kappa, "order": "not compared"})
        if duel is not None:
            order = {"order": f"{ahead} {duel['outcome']}", "order factor": duel["factor"]}
            panels[-1] |= order | {"order target": float("nan") if duel["target"] == "last error" else duel["target"]}
        best += won
        ordered += in_order
        holding += won and (duel is None or in_order)
        right, network = _described(cell[cell["method"] == "adom"]["curve"].iloc[0].result)
        described = described and right
    if not panels:
        return untested(runs, protocol, ["real_networks"])
    verdict = PARTLY if holding or best else NOT_REPRODUCED
    if holding == len(panels) and described:
        verdict = REPRODUCED
    summary = f"{network}; ADOM best in {best}, Mudag and APM in the paper's order in {ordered} of {len(panels)} panels"
    notes = fewer(len(panels), ["real_networks"], [panel["seeds"] for panel in panels])
    if not described:
        notes.append(f"the paper says {NODES} nodes, {GRAPHS} graphs, chi about {CHI:.0f}")
    evidence = {"best": best, "order": ordered, "network": network}
    notes += missing(runs, protocol, ["real_networks"])
    return finding(panels, holding, summary, notes, verdict=verdict, evidence=evidence)


def _described(run: Result) -> tuple[bool, str]:
    """Return whether a run's network is the paper's, and its numbers in words."""
    recipe = {**run.provenance.get("reproduction", {}), **run.provenance["network"]}
    nodes, chi, graphs = run.x.shape[0], recipe.get("chi"), recipe.get("graphs")
    right = nodes == NODES and graphs in (GRAPHS, None) and chi is not None and abs(chi - CHI) <= 0.05 * CHI
    numbers = f"{nodes} nodes, {graphs or 'unknown number of'} graphs, chi {'unknown' if chi is None else f'{chi:.4g}'}"
    return right, numbers


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
            slower, behind = _slower(first.loc[seeds], last.loc[seeds])
            worse, better = slower.low > 1 and behind.low > 1, slower.high <= 1 or behind.high <= 1
            panels.append(
                {
                    "figure": swept,
                    "panel": f"{row[0]['panel'].iloc[0]} to {row[-1]['panel'].iloc[0]}",
                    "outcome": "worse" if worse else ("not worse" if better else "undecided"),
                    "slower": slower,
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
    truncated = adom_cells(runs, protocol, figures)
    panels: list[dict[str, Any]] = []
    broken = 0
    for key, exact in adom_cells(runs, protocol, figures, "exact").items():
        if key not in truncated:
            continue
        few = truncated[key]
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
