"""The paper's claims about theory, judged from saved results: Theorem 1, its lemmas, PNGD, and Table 1's exponents.

Each function's docstring is the rule that the ledger prints.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .measures import Fit, errors, fit, grouped
from .runs import VERIFY, Outcome
from .verdicts import NOT_TESTED, PARTLY, REPRODUCED, Finding, missing, overall, untested

TABLE = {
    "adom": (0.5, 1.0),
    "mudag": (0.5, 1.0),
    "apm": (0.5, 1.0),
    "acc-dngd": (5 / 7, 1.5),
    "panda": (1.5, 2.0),
    "diging": (1.5, 2.0),
}
"""Table 1: the exponents of kappa and chi; Mudag has log(kappa) besides, by which its rounds are divided."""
SLACK = 0.1
"""What a fitted exponent may exceed a proved one by: a bound holds up to constants, and sweeps are short."""
SAME = 1e-6
"""How far apart, relative to the way they went, two runs may be that are the same but for rounding."""


def theorem(outcomes: Sequence[Outcome], protocol: str) -> Finding:
    """Judge Theorem 1.

    A verification holds if error <= C (1 - tau)^k, C from the proof, in every round checked, beyond 1e-6 of rounding.
    Reproduced: all verifications hold; partly: some; not reproduced: none.
    """
    return _inequalities(outcomes, protocol, "Theorem")


def lemmas(outcomes: Sequence[Outcome], protocol: str) -> Finding:
    """Judge Lemmas 1 to 4.

    A verification holds if left side <= right side for every lemma in every round checked, beyond 1e-6 of rounding.
    Reproduced: all verifications hold; partly: some; not reproduced: none.
    """
    return _inequalities(outcomes, protocol, "Lemma")


def _inequalities(outcomes: Sequence[Outcome], protocol: str, kind: str) -> Finding:
    panels: list[dict[str, Any]] = []
    worst: dict[str, float] = {}
    rounds = whole = 0
    for one in outcomes:
        if one.data is None or (one.job.variant, one.job.protocol) != (VERIFY, protocol):
            continue
        every = [row for row in one.data["rows"] if str(row["name"]).startswith(kind)]
        rows = [row for row in every if row["rounds_checked"]]
        if not rows:  # nothing but rounding
            continue
        about = {"figure": one.job.panel.figure, "panel": one.job.panel.name, "seed": one.job.seed}
        ratios = {str(row["name"]): _ratio(row["worst_ratio"]) for row in rows}
        panels.append(about | {"holds": all(row["holds"] for row in rows)} | ratios)
        rounds += min(int(row["rounds_checked"]) for row in rows)
        whole += int(rows[0].get("rounds", one.job.rounds))
        worst = {name: max(ratio, worst.get(name, 0.0)) for name, ratio in ratios.items()}
    if not panels:
        figures = [one.job.panel.figure for one in outcomes if one.job.variant == VERIFY]
        return untested(outcomes, protocol, figures, f"no verification under {protocol}", VERIFY)
    holding = sum(one["holds"] for one in panels)
    ratios_text = ", ".join(f"{name} {ratio:.4g}" for name, ratio in worst.items())
    summary = f"worst left/right side over {rounds} rounds: {ratios_text}"
    evidence = {"worst": worst, "rounds": rounds, "panels": panels}
    notes = [f"{whole - rounds} more rounds not checked: both sides are within rounding of 0"] if whole > rounds else []
    return Finding(overall(holding, len(panels)), holding, len(panels), summary, evidence, notes, "verifications")


def _ratio(value: Any) -> float:
    """Return a ratio; what JSON had no number for was infinite."""
    return float("inf") if value is None else float(value)


def complete(outcomes: Sequence[Outcome], protocol: str) -> Finding:
    """Judge that on the complete graph ADOM is PNGD, at rate sqrt(kappa).

    In a panel the two are the same if their distances to the solution never differ by more than 1e-6 of that at the
    start, and their last rows by no more than 1e-6 of the solution's norm, in every seed. The exponent of kappa is
    fitted to ADOM's rounds to a target; it agrees if the 95 % interval lies below 1/2 + 0.1 and reaches 1/2 - 0.1.
    Reproduced: the same in all panels, and the exponent agrees; not reproduced: the same in none; partly: all else.
    """
    cells = grouped(outcomes, protocol, ["complete"])
    panels: list[dict[str, Any]] = []
    for runs in cells.values():
        seeds = runs.get("adom", {}).keys() & runs.get("pngd", {}).keys()
        if seeds:
            pairs = [(runs["adom"][seed], runs["pngd"][seed]) for seed in sorted(seeds)]
            history = max(_apart(*pair) for pair in pairs)
            rows = max(_rows_apart(*pair) for pair in pairs)
            name = pairs[0][0].job.panel.name
            panels.append({"panel": name, "holds": max(history, rows) <= SAME, "distance": history, "rows": rows})
    if not panels:
        return untested(outcomes, protocol, ["complete"])
    holding = sum(one["holds"] for one in panels)
    power = fit(cells.values(), "adom", "kappa")
    apart = max(max(one["distance"], one["rows"]) for one in panels)
    summary = f"greatest relative distance {apart:.1e}; "
    if isinstance(power, Fit):
        agrees = power.high <= 0.5 + SLACK and power.high >= 0.5 - SLACK
        summary += f"exponent of kappa {_fit_text(power)} (proved: 0.5)"
        evidence: dict[str, Any] = {"exponent": _fit_row(power)}
    else:
        agrees = False
        summary += f"exponent of kappa not fitted: {power}"
        evidence = {}
    verdict = overall(holding, len(panels))
    if verdict == REPRODUCED and not agrees:
        verdict = PARTLY
    evidence |= {"distance": apart, "panels": panels}
    return Finding(verdict, holding, len(panels), summary, evidence, missing(outcomes, protocol, ["complete"]))


def _apart(one: Outcome, other: Outcome) -> float:
    """Return the greatest difference of the distances to the solution, over that at the start."""
    assert one.result is not None
    assert other.result is not None
    clock, beside = (run.history["round"].to_numpy() for run in (one.result, other.result))
    _, first, second = np.intersect1d(clock, beside, return_indices=True)
    gap = np.abs(np.sqrt(errors(one)[first]) - np.sqrt(errors(other)[second]))
    return float(np.max(np.nan_to_num(gap, nan=np.inf), initial=0.0))


def _rows_apart(one: Outcome, other: Outcome) -> float:
    """Return the distance of the last rows over that of the start; 0 where the runs ended in different rounds."""
    a, b = one.result, other.result
    assert a is not None
    assert b is not None
    if a.history["round"].iloc[-1] != b.history["round"].iloc[-1]:
        return 0.0
    return float(np.sqrt(((a.x - b.x) ** 2).sum() / a.provenance["start_error"]))


def rates(outcomes: Sequence[Outcome], protocol: str) -> Finding:
    """Judge Table 1: how rounds to a target grow with kappa and chi, for each method of the table.

    The exponent is fitted by least squares of log(rounds) against log(kappa) or log(chi), as measured, with one
    intercept for each seed and each set of other settings; Mudag's rounds are divided by log(kappa). A fit holds if its
    95 % interval (Student's t) lies below the table's exponent + 0.1, since the table has upper bounds; it fails if the
    interval lies above; otherwise it is undecided. The target is the smallest power of ten that all runs met; above
    1e-4, panels that miss 1e-4 are left out. Reproduced: all fits hold, both of ADOM's among them; not reproduced: none
    holds; partly: all else.
    """
    figures = ["rates"] if grouped(outcomes, protocol, ["rates"]) else ["kappa", "chi"]
    cells = list(grouped(outcomes, protocol, figures).values())
    fits: list[dict[str, Any]] = []
    notes = []
    for method, bounds in TABLE.items():
        for swept, bound in zip(("kappa", "chi"), bounds, strict=True):
            power = fit(cells, method, swept, divide_by_log=method == "mudag")
            if isinstance(power, str):
                if power != "no runs":
                    notes.append(f"{method} against {swept} not fitted: {power}")
                continue
            verdict = power.judged(bound, SLACK)
            fits.append({"method": method, "against": swept, "table": bound, "outcome": verdict, **_fit_row(power)})
            if power.dropped:
                notes.append(f"{method} against {swept}: {power.dropped} runs left out that missed {power.target:.0e}")
    if not fits:
        return Finding(NOT_TESTED, notes=notes or missing(outcomes, protocol, figures) or [f"no runs under {protocol}"])
    holding = sum(one["outcome"] == "holds" for one in fits)
    summary = "; ".join(
        f"{one['method']} {one['against']}^{one['exponent']:.2f} [{one['low']:.2f}, {one['high']:.2f}], "
        f"table {one['table']:.3g}"
        for one in fits
    )
    verdict = overall(holding, len(fits))
    if verdict == REPRODUCED and sum(one["method"] == "adom" for one in fits) < 2:
        verdict = PARTLY
    return Finding(verdict, holding, len(fits), summary, {"panels": fits}, notes, "exponents")


def _fit_row(power: Fit) -> dict[str, Any]:
    return {
        "exponent": power.exponent,
        "low": power.low,
        "high": power.high,
        "points": power.points,
        "target": power.target,
        "left out": power.dropped,
    }


def _fit_text(power: Fit) -> str:
    return f"{power.exponent:.3f} [{power.low:.3f}, {power.high:.3f}]"
