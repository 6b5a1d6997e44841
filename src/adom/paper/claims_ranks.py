"""The paper's claims about who is ahead, judged from saved results: figures slow2, kappa, chi, real_*.

Each function's docstring is the rule that the ledger prints.
"""

from collections.abc import Sequence
from statistics import median
from typing import Any

from .measures import COARSE, Contest, Runs, contest, converging, failed, grouped, last_error, panel_of, stalled
from .runs import Outcome
from .verdicts import (
    NOT_REPRODUCED,
    NOT_TESTED,
    PARTLY,
    REPRODUCED,
    Finding,
    contest_row,
    fewer,
    missing,
    overall,
    untested,
)

RIVALS = ("mudag", "acc-dngd", "apm")
"""The methods that the paper compares ADOM with."""
STUCK = 0.1
"""The last relative error above which a run almost does not converge."""
CHI, NODES, GRAPHS = 232.0, 50, 200
"""What the paper says of infectious_ct1."""


def best_over_kappa(outcomes: Sequence[Outcome], protocol: str) -> Finding:
    """Judge that ADOM is best in all panels of figure kappa.

    Methods are ranked by rounds to a common relative squared error: the smallest power of ten that the best of them
    met in the median over seeds, not below the error at which runs stop. A run that misses it counts with its whole
    budget. ADOM is best in a panel if the best rival's rounds over ADOM's exceed 1 in every seed; where seeds disagree
    the panel is undecided. Where nobody meets 1e-2, last errors are compared instead. Reproduced: best in all panels;
    partly: in some; not reproduced: in none.
    """
    return _best(outcomes, protocol, ["kappa"])


def best_over_chi(outcomes: Sequence[Outcome], protocol: str) -> Finding:
    """Judge that ADOM is best in all panels of figure chi.

    The rule is that of figure kappa.
    """
    return _best(outcomes, protocol, ["chi"])


def _contests(outcomes: Sequence[Outcome], protocol: str, figures: Sequence[str]) -> list[tuple[Runs, Contest]]:
    found = [(runs, contest(runs, "adom", RIVALS)) for runs in grouped(outcomes, protocol, figures).values()]
    return [(runs, one) for runs, one in found if one is not None]


def _best(outcomes: Sequence[Outcome], protocol: str, figures: Sequence[str]) -> Finding:
    contests = _contests(outcomes, protocol, figures)
    if not contests:
        return untested(outcomes, protocol, figures)
    panels = [one for _, one in contests]
    won = [one for one in panels if one.outcome == "won"]
    evidence: dict[str, Any] = {name: _count(panels, name) for name in ("won", "lost", "undecided")}
    early = [contest(runs, "adom", RIVALS, target=COARSE) for runs, _ in contests]
    evidence["won at 1e-2"] = sum(one is not None and one.outcome == "won" for one in early)
    evidence |= {"factor": median(one.factor.median for one in panels), "panels": [contest_row(one) for one in panels]}
    least = min(panels, key=lambda one: one.factor.median)
    most = max(panels, key=lambda one: one.factor.median)
    summary = (
        f"best rival/ADOM: median {evidence['factor']:.2f}, from {least.text} ({least.panel.name}, {least.rival}) "
        f"to {most.text} ({most.panel.name}, {most.rival}); lost {evidence['lost']}, "
        f"undecided {evidence['undecided']}; at 1e-2 best in {evidence['won at 1e-2']}"
    )
    notes = fewer(len(panels), figures, [one.seeds for one in panels]) + missing(outcomes, protocol, figures)
    by_error = sum(one.target != one.target for one in panels)
    if by_error:
        notes.append(f"nobody meets 1e-2 in {by_error} panels; last errors are compared there")
    return Finding(overall(len(won), len(panels)), len(won), len(panels), summary, evidence, notes)


def _count(panels: Sequence[Contest], outcome: str) -> int:
    return sum(one.outcome == outcome for one in panels)


def best_on_real_data(outcomes: Sequence[Outcome], protocol: str) -> Finding:
    """Judge that ADOM is best on a6a, w6a and ijcnn1, and that Acc-DNGD almost does not converge for some settings.

    The ranking's rule is that of figure kappa. Acc-DNGD almost does not converge in a panel if its last relative
    error is above 0.1, and ADOM's is not above 1e-2, in the median over seeds. Reproduced: ADOM is best in all panels
    and there is at least one such panel; not reproduced: best in none; partly: all else.
    """
    figures = ["real_kappa", "real_chi"]
    ranked = _best(outcomes, protocol, figures)
    if ranked.verdict == NOT_TESTED:
        return ranked
    stuck = []
    for runs, one in _contests(outcomes, protocol, figures):
        if "acc-dngd" in runs:
            ends = {name: median(map(last_error, runs[name].values())) for name in ("acc-dngd", "adom")}
            if ends["acc-dngd"] > STUCK and ends["adom"] <= COARSE:
                stuck.append(f"{one.panel.figure} {one.panel.name}")
    verdict = PARTLY if ranked.verdict == REPRODUCED and not stuck else ranked.verdict
    summary = f"{ranked.summary}; Acc-DNGD almost does not converge in {len(stuck)} panels"
    evidence = ranked.evidence | {"acc-dngd stuck": stuck}
    return Finding(verdict, ranked.holding, ranked.tested, summary, evidence, ranked.notes)


def dnm_diverges(outcomes: Sequence[Outcome], protocol: str) -> Finding:
    """Judge that DNM diverges in 7 of the 8 panels of figure slow2, while ADOM converges in all.

    A run diverges if its error grew beyond all bounds or ended above its start; it converges if it met its tolerance,
    or ended below its start and still fell over its last third. It stalls if it does not diverge, and its least error
    over the last half is more than half of that over the first: a limit cycle, say. DNM diverges in a panel if it does
    in most seeds; ADOM converges in a panel if it does in every seed. The count is of panels where both are so.
    Reproduced: ADOM converges in all panels and DNM diverges in at least 7/8 of them; not reproduced: ADOM converges in
    none or DNM diverges in none; partly: all else. Stalls are told beside, and not counted.
    """
    panels: list[dict[str, Any]] = []
    for runs in grouped(outcomes, protocol, ["slow2"]).values():
        if {"adom", "dnm"} <= runs.keys():
            dnm = [failed(one) for one in runs["dnm"].values()]
            adom = [converging(one) for one in runs["adom"].values()]
            still = [stalled(one) for one in runs["dnm"].values()]
            panels.append(
                {
                    "figure": "slow2",
                    "panel": panel_of(runs).name,
                    "DNM diverges": sum(dnm) > len(dnm) / 2,
                    "ADOM converges": all(adom),
                    "seeds DNM diverges": f"{sum(dnm)} of {len(dnm)}",
                    "seeds DNM stalls": f"{sum(still)} of {len(still)}",
                    "DNM diverges or stalls": sum(dnm) + sum(still) > len(dnm) / 2,
                    "seeds ADOM converges": f"{sum(adom)} of {len(adom)}",
                    "DNM last error": median(map(last_error, runs["dnm"].values())),
                    "ADOM last error": median(map(last_error, runs["adom"].values())),
                    "seeds": min(len(dnm), len(adom)),
                }
            )
    if not panels:
        return untested(outcomes, protocol, ["slow2"])
    diverging = sum(one["DNM diverges"] for one in panels)
    stable = sum(one["ADOM converges"] for one in panels)
    both = sum(one["DNM diverges"] and one["ADOM converges"] for one in panels)
    verdict = PARTLY if stable and diverging else NOT_REPRODUCED
    if stable == len(panels) and diverging >= 7 / 8 * len(panels):
        verdict = REPRODUCED
    either = sum(one["DNM diverges or stalls"] for one in panels)
    summary = f"DNM diverges in {diverging}, diverges or stalls in {either}, "
    summary += f"ADOM converges in {stable} of {len(panels)} panels"
    notes = fewer(len(panels), ["slow2"], [one["seeds"] for one in panels]) + missing(outcomes, protocol, ["slow2"])
    evidence = {"DNM diverges": diverging, "ADOM converges": stable, "panels": panels}
    return Finding(verdict, both, len(panels), summary, evidence, notes)


def dnm_faster(outcomes: Sequence[Outcome], protocol: str) -> Finding:
    """Judge that where DNM converges it can be faster than ADOM.

    Tested are the panels of figure slow2 in which DNM converges in every seed. DNM is faster in a panel if ADOM's
    rounds to the target over DNM's exceed 1 in every seed; the target is that of figure kappa. Reproduced: faster in at
    least one panel; partly: in none, but some panel's interval covers 1 with a median above 1; not reproduced:
    neither; not tested: DNM converges in no panel.
    """
    cells = [runs for runs in grouped(outcomes, protocol, ["slow2"]).values() if "dnm" in runs]
    steady = [runs for runs in cells if all(converging(one) for one in runs["dnm"].values())]
    panels = [one for one in (contest(runs, "dnm", ["adom"]) for runs in steady) if one is not None]
    if not panels:
        why = f"DNM converges in none of {len(cells)} panels" if cells else ""
        return Finding(NOT_TESTED, notes=[why]) if why else untested(outcomes, protocol, ["slow2"])
    faster = sum(one.outcome == "won" for one in panels)
    close = any(one.factor.median > 1 for one in panels)
    verdict = REPRODUCED if faster else (PARTLY if close else NOT_REPRODUCED)
    best = max(panels, key=lambda one: one.factor.median)
    summary = f"ADOM's rounds over DNM's: up to {best.text} ({best.panel.name})"
    notes = fewer(0, [], [one.seeds for one in panels])
    rows = [contest_row(one) for one in panels]
    return Finding(verdict, faster, len(panels), summary, {"panels": rows}, notes, "panels where DNM converges")


def real_networks(outcomes: Sequence[Outcome], protocol: str) -> Finding:
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
    for runs, one in _contests(outcomes, protocol, ["real_networks"]):
        kappa = float(one.panel.settings["kappa"])
        ahead, behind = ("mudag", "apm") if kappa <= 30 else ("apm", "mudag")
        duel = contest(runs, ahead, [behind]) if kappa <= 30 or kappa >= 1000 else None
        order = "not compared" if duel is None else f"{ahead} {duel.outcome}"
        row = contest_row(one) | {"kappa": kappa, "order": order}
        panels.append(row if duel is None else row | {"order factor": duel.factor, "order target": duel.target})
        best += one.outcome == "won"
        ordered += duel is not None and duel.outcome == "won"
        holding += one.outcome == "won" and (duel is None or duel.outcome == "won")
        right, network = _described(next(iter(runs["adom"].values())))
        described = described and right
    if not panels:
        return untested(outcomes, protocol, ["real_networks"])
    verdict = PARTLY if holding or best else NOT_REPRODUCED
    if holding == len(panels) and described:
        verdict = REPRODUCED
    summary = f"{network}; ADOM best in {best}, Mudag and APM in the paper's order in {ordered} of {len(panels)} panels"
    notes = fewer(len(panels), ["real_networks"], [one["seeds"] for one in panels])
    if not described:
        notes.append(f"the paper says {NODES} nodes, {GRAPHS} graphs, chi about {CHI:.0f}")
    evidence = {"best": best, "order": ordered, "network": network, "panels": panels}
    notes += missing(outcomes, protocol, ["real_networks"])
    return Finding(verdict, holding, len(panels), summary, evidence, notes)


def _described(one: Outcome) -> tuple[bool, str]:
    """Return whether a run's network is the paper's, and its numbers."""
    assert one.result is not None
    about = {**one.result.provenance.get("reproduction", {}), **one.result.provenance["network"]}
    nodes, chi, graphs = one.result.x.shape[0], about.get("chi"), about.get("graphs")
    right = nodes == NODES and graphs in (GRAPHS, None) and chi is not None and abs(chi - CHI) <= 0.05 * CHI
    numbers = f"{nodes} nodes, {graphs or 'unknown number of'} graphs, chi {'unknown' if chi is None else f'{chi:.4g}'}"
    return right, numbers
