"""How rounds grow with kappa or chi: the points of a sweep, the exponent fitted to them, and that of Table 1."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from ..study.metrics import power_of_ten
from .evidence import ROUNDED, costs, finished, measured

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
FINE = 1e-4
"""Largest target of a fit; above it, rounds only measure the first oscillation."""


def family(settings: Mapping[str, Any], swept: str) -> str:
    """Return a key shared by the panels that differ only in the swept setting."""
    rest = {name: value for name, value in settings.items() if name not in {swept, "rounds", "radius"}}
    return json.dumps(rest, sort_keys=True, default=str)


@dataclass(frozen=True)
class PowerLaw:
    """A fitted exponent with its 95 % interval, the number of points, and their target."""

    exponent: float
    low: float
    high: float
    points: int
    target: float
    dropped: int  # runs that did not reach the target
    level: float  # mean intercept: log(rounds / divisor) where kappa or chi is 1

    def judged(self, bound: float, slack: float) -> str:
        """Return "holds" or "fails" if the interval is below or above bound + slack, otherwise "undecided"."""
        if self.high <= bound + slack:
            return "holds"
        return "fails" if self.low > bound + slack else "undecided"

    def row(self) -> dict[str, Any]:
        """Return the fit as a row of evidence."""
        values = {name: value for name, value in vars(self).items() if name not in ("dropped", "level")}
        return values | {"left out": self.dropped}

    def __str__(self) -> str:
        return f"{self.exponent:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class Growth:
    """Rounds of a method to a target as kappa or chi grows."""

    swept: str  # "kappa" or "chi"
    points: pd.DataFrame  # runs that met the target: asked and measured value, rounds, divisor, family, seed
    target: float
    dropped: int  # runs that did not reach the target

    def fit(self) -> PowerLaw | str:
        """Fit a power law to rounds / divisor by least squares of logarithms; return a text if that is impossible.

        Runs that have the same seed and differ only in the swept setting share an intercept.
        """
        rounds = self.points["rounds"] / self.points["divisor"]
        points = self.points.assign(x=np.log(self.points["value"]), y=np.log(rounds))
        points = points[points.groupby(["family", "seed"])["x"].transform("nunique") >= 3]
        if points.empty:
            few = f"fewer than three values of {self.swept}"
            return f"{few}; {self.dropped} runs did not reach {self.target:.0e}" if self.dropped else few
        series = points.groupby(["family", "seed"])
        centred = (points[name] - series[name].transform("mean") for name in ("x", "y"))
        x, y = (values.to_numpy(dtype=float) for values in centred)
        exponent = float(x @ y / (x @ x))
        freedom = len(x) - series.ngroups - 1
        spread = float(np.sqrt(((y - exponent * x) ** 2).sum() / freedom / (x @ x)))
        half = float(stdtrit(freedom, 0.975)) * spread  # quantile of Student's t
        middles = series[["x", "y"]].mean().to_numpy(dtype=float)
        level = float((middles[:, 1] - exponent * middles[:, 0]).mean())
        return PowerLaw(exponent, exponent - half, exponent + half, len(x), self.target, self.dropped, level)


def growth(runs: pd.DataFrame, method: str, swept: str, *, divide_by_log: bool = False) -> Growth | str:
    """Return how a method's rounds grow with kappa or chi, or a text that says why this is unknown.

    The target is the smallest power of ten that all runs met. If that is above `FINE`, the target is `FINE`, and panels
    in which a seed misses it are left out. `divide_by_log` sets the divisor of the rounds to log(kappa).
    """
    chosen = runs[(runs["method"] == method) & runs[swept].notna()]
    if chosen.empty:
        return "no runs"
    families = [
        f"{figure} {family(given, swept)}" for figure, given in zip(chosen["figure"], chosen["settings"], strict=True)
    ]
    chosen = chosen.assign(family=families)
    chosen = chosen[chosen.groupby("family")[swept].transform("nunique") >= 3]
    if chosen.empty:
        return f"fewer than three values of {swept}"
    target = min(power_of_ten(max(chosen["accuracy"].max(), chosen["last_error"].max()), ROUNDED), FINE)
    chosen = chosen.assign(rounds=costs(chosen, target), value=measured(chosen, swept), asked=chosen[swept])
    kept = chosen[np.isfinite(chosen.groupby(["figure", "panel"])["rounds"].transform("max"))]
    kept = kept.assign(divisor=np.log(measured(kept, "kappa")) if divide_by_log else 1.0)
    columns = ["family", "seed", "asked", "value", "rounds", "divisor"]
    return Growth(swept, kept[columns], target, len(chosen) - len(kept))


def power_law(runs: pd.DataFrame, method: str, swept: str) -> PowerLaw | str:
    """Return the exponent of kappa or chi in a method's rounds, or a text that says why there is none."""
    found = growth(runs, method, swept)
    return found if isinstance(found, str) else found.fit()


def swept_figures(runs: pd.DataFrame, protocol: str) -> list[str]:
    """Return the figures that sweep kappa and chi: figure rates if it has runs, else the paper's."""
    return ["kappa", "chi"] if finished(runs, protocol, ["rates"]).empty else ["rates"]


def growths(runs: pd.DataFrame, protocol: str) -> Iterator[tuple[str, str, float, Growth | str]]:
    """Yield method, swept setting, Table 1's exponent, and how rounds grow or why this is unknown."""
    chosen = finished(runs, protocol, swept_figures(runs, protocol))
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
