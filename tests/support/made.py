"""Made-up outcomes of a reproduction, whose curves, and so whose verdicts, are known."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adom.paper.runs import PaperJob, PaperPanel, ReproductionPlan
from adom.run.result import Result
from adom.study.execute import Outcome
from adom.util.checked_json import write_checked

START = 4.0
RTOL = 1e-8
SEEDS = (0, 1, 2)


def panel(figure: str = "kappa", name: str = "one", **settings: Any) -> PaperPanel:
    usual = {"data": "synthetic", "dim": 40, "kappa": 100.0, "chi": 30.0, "network": "geometric", "nodes": 4}
    return PaperPanel(figure, name, 0, 0, name, usual | settings)


def linear(rounds: float) -> Callable[[np.ndarray], np.ndarray]:
    """A curve that meets RTOL after so many rounds; a negative number makes it grow."""
    return lambda k: RTOL ** (k / rounds)


def made(
    place: PaperPanel,
    method: str,
    curve: float | Callable[[np.ndarray], np.ndarray],
    *,
    seed: int = 0,
    protocol: str = "unit",
    variant: str = "",
    oracle: str = "",
    budget: int = 1000,
    step: int = 1,
    gradients: float = 1.0,
    floats: float = 1.0,
    rows: np.ndarray | None = None,
    network: dict[str, Any] | None = None,
) -> Outcome:
    """A run that follows a curve (round -> relative error), or meets RTOL after so many rounds."""
    rounds = np.arange(step, budget + 1, step)
    shape = curve if callable(curve) else linear(curve)
    with np.errstate(over="ignore"):
        relative = np.asarray(shape(rounds.astype(float)))
    ends = np.flatnonzero((relative <= RTOL * (1 + 1e-9)) | ~(relative <= 1e12))
    status = "max_rounds"
    if ends.size:
        status = "converged" if relative[ends[0]] <= 1 else "diverged"
        rounds, relative = rounds[: ends[0] + 1], relative[: ends[0] + 1]
    history = pd.DataFrame(
        {
            "iteration": rounds // step,
            "round": rounds,
            "gradients": gradients * rounds,
            "floats_sent": (floats * rounds).astype(int),
            "seconds": 0.0,
            "error": START * relative,
            "consensus": 0.0,
        }
    )
    settings = place.settings
    provenance = {
        "method": {"name": method, "title": method.upper(), "parameters": {}},
        "problem": {"kappa": settings["kappa"], "nodes": settings["nodes"]},
        "network": {"chi": settings["chi"]} | (network or {}),
        "start_error": START,
    }
    x = np.zeros((settings["nodes"], 1)) if rows is None else rows
    job = PaperJob(place, protocol, seed, method, oracle, budget, RTOL, variant)
    provenance["reproduction"] = {"key": job.key}
    return Outcome(job, Result(x, history, status, provenance))


def seeds(place: PaperPanel, method: str, *curves: Any, **more: Any) -> list[Outcome]:
    """One run a seed: the curves given, or the same one for all seeds."""
    each = curves if len(curves) > 1 else curves * len(SEEDS)
    return [made(place, method, curve, seed=seed, **more) for seed, curve in enumerate(each)]


def four(place: PaperPanel, adom: Any, mudag: Any, acc: Any, apm: Any, **more: Any) -> list[Outcome]:
    """The paper's four methods, each with a curve or a sequence of one curve a seed."""
    found = []
    for method, curve in {"adom": adom, "mudag": mudag, "acc-dngd": acc, "apm": apm}.items():
        found += seeds(place, method, *(curve if isinstance(curve, Sequence) else (curve,)), **more)
    return found


def absent(place: PaperPanel, method: str, reason: str, *, protocol: str = "unit", variant: str = "") -> Outcome:
    return Outcome(PaperJob(place, protocol, 0, method, "", 1000, RTOL, variant), None, reason)


def verified(ratio: float, *, name: str = "one", theorem: float = 0.1) -> Outcome:
    """A verification with a worst ratio of the lemmas and one of the theorem."""
    rows = [
        {"name": title, "statement": "", "worst_ratio": value, "round_of_worst": 7, "rounds_checked": 90,
         "holds": value <= 1 + 1e-6}
        for title, value in {"Lemma 1": 0.5, "Lemma 4": ratio, "Theorem 1": theorem}.items()
    ]  # fmt: skip
    job = PaperJob(panel("theory", name), "theory", 0, "adom", "exact", 100, RTOL, "verify")
    return Outcome(job, None, "", {"holds": all(row["holds"] for row in rows), "rows": rows})


def saved(outcomes: Sequence[Outcome], folder: Path, *, quick: bool = False) -> Path:
    """Write the folder of a reproduction that has these outcomes."""
    ReproductionPlan(quick, [one.job for one in outcomes], commit="abc123").save(folder)
    for one in outcomes:
        if one.result is not None:
            one.result.save(folder / "results" / f"{one.job.key}.npz")
        elif one.reason != "not run yet":
            data = {"reason": one.reason} if one.data is None else dict(one.data)
            write_checked(folder / "results" / f"{one.job.key}.json", data)
    return folder
