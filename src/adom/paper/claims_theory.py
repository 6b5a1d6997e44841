"""The paper's claims about theory: Theorem 1, its lemmas, PNGD, and Table 1's exponents.

The ledger prints each judging function's docstring, after its first line, as the rule.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from .evidence import Curve, by_seed, cells, finished
from .power_laws import Growth, PowerLaw, growth, power_law
from .runs import VERIFY
from .verdicts import PARTLY, REPRODUCED, Entry, finding, missing, not_tested, overall, untested

TABLE = {
    "adom": (0.5, 1.0),
    "mudag": (0.5, 1.0),
    "apm": (0.5, 1.0),
    "acc-dngd": (5 / 7, 1.5),
    "panda": (1.5, 2.0),
    "diging": (1.5, 2.0),
}
"""Table 1: the exponents of kappa and chi. Mudag has another factor log(kappa), so its rounds are divided by it."""
SLACK = 0.1
"""How much a fitted exponent may exceed the proved one: bounds hold up to constants, and sweeps are short."""
SAME = 1e-6
"""Largest distance between runs that differ only by rounding, relative to the distance from start to solution."""


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
        figures = _swept(runs, protocol)
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


def _swept(runs: pd.DataFrame, protocol: str) -> list[str]:
    """Return the figures that sweep kappa and chi: figure rates if it has runs, else the paper's."""
    return ["kappa", "chi"] if finished(runs, protocol, ["rates"]).empty else ["rates"]


def growths(runs: pd.DataFrame, protocol: str) -> Iterator[tuple[str, str, float, Growth | str]]:
    """Yield method, swept setting, Table 1's exponent, and how rounds grow or why this is unknown."""
    chosen = finished(runs, protocol, _swept(runs, protocol))
    for method, bounds in TABLE.items():
        for swept, bound in zip(("kappa", "chi"), bounds, strict=True):
            yield method, swept, bound, growth(chosen, method, swept, divide_by_log=method == "mudag")


def exponents(runs: pd.DataFrame, protocol: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the fitted exponents beside those of Table 1 as rows of evidence, and notes on what was not fitted."""
    fits: list[dict[str, Any]] = []
    notes = []
    for method, swept, bound, grown in growths(runs, protocol):
        power = grown if isinstance(grown, str) else grown.fit()
        if isinstance(power, str):
            if power != "no runs":
                notes.append(f"{method} against {swept} not fitted: {power}")
            continue
        outcome = power.judged(bound, SLACK)
        fits.append({"method": method, "against": swept, "table": bound, "outcome": outcome, **power.row()})
        if power.dropped:
            notes.append(f"{method} against {swept}: {power.dropped} runs left out that missed {power.target:.0e}")
    return fits, notes
