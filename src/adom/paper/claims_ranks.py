"""The paper's claims about which method is ahead: figures slow2, kappa, chi, real_*.

The ledger prints each judging function's docstring, after its first line, as the rule.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import pandas as pd

from ..run.result import Result
from .evidence import COARSE, cells, contest
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
    untested,
)

RIVALS = ("mudag", "acc-dngd", "apm")
"""The methods that the paper compares ADOM with."""
STUCK = 0.1
"""Last relative error above which a run hardly converges."""
CHI, NODES, GRAPHS = 232.0, 50, 200
"""The paper's numbers for infectious_ct1."""


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
