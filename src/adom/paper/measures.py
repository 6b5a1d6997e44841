"""What the ledger measures: rounds to a target, who is ahead in a panel, slopes, and exponents with intervals.

Runs are judged by their errors. Of the statuses only "converged", "diverged" and "interrupted" count, which have meant
the same in every version: "growing" and "stalled" are treated as "max_rounds", so that old results and new ones are
judged alike.

Errors are squared distances to the solution over that of the start. Intervals over seeds run from the least to the
greatest; with three to five seeds nothing finer can be said.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from ..study.metrics import COSTS, relative_errors
from .runs import Outcome, Panel

COARSE = 1e-2
"""The largest target that methods are ranked by; where none reaches it, the last errors are compared."""
FINE = 1e-4
"""The largest target that exponents are fitted at: above it, rounds are those of the first oscillation."""
LOST = 10.0
"""A run that ends above this multiple of a target that it had met has lost it again."""
WORST = 1e12
"""The relative error that a diverged run is taken to have."""

Runs = dict[str, dict[int, Outcome]]
"""The runs of a panel: method -> seed -> outcome."""


def grouped(
    outcomes: Iterable[Outcome], protocol: str, figures: Sequence[str], variant: str = ""
) -> dict[tuple[str, str], Runs]:
    """Return the finished runs of some figures by panel (figure and name), method and seed."""
    found: dict[tuple[str, str], Runs] = {}
    for one in outcomes:
        job = one.job
        if job.panel.figure not in figures or (job.protocol, job.variant) != (protocol, variant):
            continue
        if one.result is not None and one.result.status != "interrupted":
            found.setdefault((job.panel.figure, job.panel.name), {}).setdefault(job.method, {})[job.seed] = one
    return found


def panel_of(runs: Runs) -> Panel:
    """Return the panel that runs belong to."""
    return next(iter(next(iter(runs.values())).values())).job.panel


def errors(one: Outcome) -> np.ndarray:
    """Return the relative error of every record."""
    assert one.result is not None
    return relative_errors(one.result)


def last_error(one: Outcome) -> float:
    """Return the relative error at the end of a run, at most `WORST`, which diverged runs have."""
    assert one.result is not None
    last = errors(one)[-1]
    return float(last) if one.result.status != "diverged" and last <= WORST else WORST


def failed(one: Outcome) -> bool:
    """Whether a run diverged, or ended above its start."""
    return not last_error(one) <= 1


def stalled(one: Outcome) -> bool:
    """Whether a run neither failed nor met its tolerance, and its least error hardly fell over the later half of it."""
    assert one.result is not None
    if failed(one) or one.result.status == "converged":
        return False
    earlier, later = np.array_split(errors(one), 2)
    return bool(later.size and np.nanmin(later) > 0.5 * np.nanmin(earlier))


def converging(one: Outcome) -> bool:
    """Whether a run met its tolerance, or ended below its start and still fell over its last third."""
    assert one.result is not None
    return one.result.status == "converged" or (not failed(one) and thirds(one)[2] < 0)


def cost_to(one: Outcome, target: float, cost: str = "rounds") -> float:
    """Return what a run cost to meet a target; infinite where it did not meet it, or lost it again.

    It is the cost at the first record that meets it; where several steps lie between that record and the one before,
    the step is found by interpolating the logarithm of the error, and counts as a whole.
    """
    assert one.result is not None
    relative = errors(one)
    reached = relative <= target
    if not reached.any() or not relative[-1] <= LOST * target:
        return float("inf")
    at = int(np.argmax(reached))
    history = one.result.history
    costs, steps = (history[name].to_numpy(dtype=float) for name in (COSTS[cost], "iteration"))
    before = (relative[at - 1], costs[at - 1], steps[at - 1]) if at else (1.0, 0.0, 0.0)
    between = steps[at] - before[2]
    if between <= 1 or not relative[at] < before[0] < np.inf:
        return float(costs[at])
    part = np.log(before[0] / target) / np.log(before[0] / max(relative[at], 1e-300))
    whole = min(np.ceil(part * between - 1e-9), between) / between
    return float(before[1] + max(whole, 1 / between) * (costs[at] - before[1]))


def pace(one: Outcome) -> float:
    """Return the decimal digits that a run gained in a thousand rounds; 0 where it ended above its start."""
    assert one.result is not None
    rounds = float(one.result.history["round"].iloc[-1])
    return max(0.0, -1000 * float(np.log10(max(last_error(one), 1e-300))) / rounds)


def digits_by(one: Outcome, rounds: float | np.ndarray) -> np.ndarray:
    """Return the decimal digits of the error that a run had gained by some rounds, interpolated between records."""
    assert one.result is not None
    clock = np.concatenate([[0.0], one.result.history["round"].to_numpy(dtype=float)])
    logs = -np.log10(np.clip(np.nan_to_num(errors(one), nan=WORST, posinf=WORST), 1e-300, None))
    return np.asarray(np.interp(rounds, clock, np.concatenate([[0.0], logs])))


def thirds(one: Outcome) -> tuple[float, float, float]:
    """Return the slope of the logarithm (base 10) of the error a round, over each third of a run's rounds."""
    assert one.result is not None
    ends = np.linspace(0, float(one.result.history["round"].iloc[-1]), 4)
    first, second, third = -np.diff(digits_by(one, ends)) / np.diff(ends)
    return float(first), float(second), float(third)


def power_of_ten(value: float) -> float:
    """Return the smallest power of ten that is not below a value, up to rounding.

    Examples
    --------
    >>> power_of_ten(3e-9), power_of_ten(1e-9), power_of_ten(2.0)
    (1e-08, 1e-09, 10.0)
    """
    return float(f"1e{int(np.ceil(np.log10(max(value, 1e-300)) - 1e-9))}")


def target_of(runs: Runs, methods: Sequence[str] | None = None) -> float:
    """Return the error to rank methods by: the smallest power of ten that the best of them met.

    The best is that of the least last error in the median over seeds. No target is below the error at which runs
    stop, and none above `COARSE`; where there would be, the answer is NaN.
    """
    chosen = [seeds for method, seeds in runs.items() if methods is None or method in methods]
    best = min(median(map(last_error, seeds.values())) for seeds in chosen)
    stop = max(one.job.rtol for seeds in chosen for one in seeds.values())
    target = power_of_ten(max(best, stop))
    return target if target <= COARSE else float("nan")


def target_within(runs: dict[int, Outcome], rounds: float) -> float:
    """Return the smallest power of ten met within some rounds, in the median over seeds, bounded as in `target_of`."""
    met = []
    for one in runs.values():
        assert one.result is not None
        inside = errors(one)[one.result.history["round"].to_numpy() <= rounds]
        met.append(float(inside[-1]) if inside.size and np.isfinite(inside[-1]) else WORST)
    target = power_of_ten(max(median(met), *(one.job.rtol for one in runs.values())))
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
        found = list(values)
        return cls(median(found), min(found), max(found))

    def __str__(self) -> str:
        return f"{short(self.median)} [{short(self.low)}, {short(self.high)}]"


@dataclass(frozen=True)
class Contest:
    """One method against others in a panel.

    Attributes
    ----------
    panel : Panel
    target : float
        The relative error by which they are ranked; NaN where the last errors are compared.
    rival : str
        The best of the others in the median over seeds.
    factor : Interval
        Rounds of the best rival (seed by seed) over those of the champion; or the same of last errors. A run that
        does not meet the target counts with its whole budget, so that the factor is a bound.
    bound : bool
        Whether some run did not meet the target.
    rounds : dict
        Method -> rounds to the target, in the median over seeds; infinite where most seeds do not meet it.
    seeds : int
    """

    panel: Panel
    target: float
    rival: str
    factor: Interval
    bound: bool
    rounds: dict[str, float]
    seeds: int

    @property
    def outcome(self) -> str:
        """Who is ahead: "won" or "lost" for every seed, otherwise "undecided"."""
        if self.factor.low > 1:
            return "won"
        return "lost" if self.factor.high < 1 else "undecided"

    @property
    def text(self) -> str:
        """The factor, and which way it is a bound."""
        sign = (">= " if self.factor.median >= 1 else "<= ") if self.bound else ""
        return f"{sign}{self.factor}"


def contest(runs: Runs, champion: str, rivals: Sequence[str], target: float | None = None) -> Contest | None:
    """Rank a champion against rivals by the rounds to a common target; None without both on a common seed."""
    there = [method for method in rivals if method in runs]
    if champion not in runs or not there:
        return None
    seeds = [seed for seed in runs[champion] if any(seed in runs[method] for method in there)]
    if not seeds:
        return None
    aim = target_of(runs, [champion, *there]) if target is None else target
    everyone = [champion, *there]
    budget = max(one.job.rounds for method in everyone for one in runs[method].values())

    def score(one: Outcome) -> float:
        return last_error(one) if np.isnan(aim) else min(cost_to(one, aim), budget)

    factors = []
    for seed in seeds:
        best = min(score(runs[method][seed]) for method in there if seed in runs[method])
        factors.append(best / max(score(runs[champion][seed]), 1e-300))
    medians = {method: median(score(one) for one in runs[method].values()) for method in everyone}
    rounds = {method: median(cost_to(one, aim) for one in runs[method].values()) for method in everyone}
    rival = min(there, key=lambda method: medians[method])
    bound = not np.isnan(aim) and any(
        np.isinf(cost_to(runs[method][seed], aim)) for method in (champion, rival) for seed in runs[method]
    )
    return Contest(panel_of(runs), aim, rival, Interval.of(factors), bool(bound), rounds, len(seeds))


def measured(one: Outcome, name: str) -> float:
    """Return the kappa or chi of a run as it was measured, or else as its panel asked for it."""
    assert one.result is not None
    about = one.result.provenance.get({"kappa": "problem", "chi": "network"}[name]) or {}
    found = about.get(name)
    return float(one.job.panel.settings[name] if found is None else found)


def family(panel: Panel, swept: str) -> str:
    """Return what panels have in common that differ in one setting only."""
    rest = {name: value for name, value in panel.settings.items() if name not in {swept, "rounds", "radius"}}
    return json.dumps([panel.figure, rest], sort_keys=True, default=str)


@dataclass(frozen=True)
class Fit:
    """A power law: the exponent, its 95 % interval, and what it was fitted to."""

    exponent: float
    low: float
    high: float
    points: int
    target: float
    dropped: int  # runs that did not reach the target

    def judged(self, bound: float, slack: float) -> str:
        """Whether an exponent is bounded: "holds", "fails", or "undecided" where the interval covers the limit."""
        if self.high <= bound + slack:
            return "holds"
        return "fails" if self.low > bound + slack else "undecided"


def fit(cells: Iterable[Runs], method: str, swept: str, divide_by_log: bool = False) -> Fit | str:
    """Fit rounds to a target against kappa or chi by least squares of logarithms; say why where it cannot be done.

    Runs that differ in the swept setting only, and have the same seed, share an intercept. The target is the smallest
    power of ten that all runs met; where that is above `FINE`, panels in which a seed misses `FINE` are left out.
    """
    panels = [list(runs[method].values()) for runs in cells if method in runs]
    panels = [seeds for seeds in panels if swept in seeds[0].job.panel.settings]
    if not panels:
        return "no runs"
    values: dict[str, set[float]] = {}
    for panel in (seeds[0].job.panel for seeds in panels):
        values.setdefault(family(panel, swept), set()).add(float(panel.settings[swept]))
    panels = [seeds for seeds in panels if len(values[family(seeds[0].job.panel, swept)]) >= 3]
    if not panels:
        return f"fewer than three values of {swept}"
    stop = max(one.job.rtol for seeds in panels for one in seeds)
    target = power_of_ten(max([stop, *(last_error(one) for seeds in panels for one in seeds)]))
    target = min(target, FINE)
    kept = [seeds for seeds in panels if all(np.isfinite(cost_to(one, target)) for one in seeds)]
    dropped = sum(map(len, panels)) - sum(map(len, kept))
    groups: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for one in (one for seeds in kept for one in seeds):
        value, rounds = measured(one, swept), cost_to(one, target)
        rounds /= np.log(measured(one, "kappa")) if divide_by_log else 1.0
        groups.setdefault((family(one.job.panel, swept), one.job.seed), []).append((np.log(value), np.log(rounds)))
    series = [np.array(points) for points in groups.values() if len({x for x, _ in points}) >= 3]
    if not series:
        missed = f"; {dropped} runs did not reach {target:.0e}" if dropped else ""
        return f"fewer than three values of {swept}{missed}"
    centred = np.concatenate([points - points.mean(axis=0) for points in series])
    x, y = centred.T
    exponent = float(x @ y / (x @ x))
    freedom = len(x) - len(series) - 1
    spread = float(np.sqrt(((y - exponent * x) ** 2).sum() / freedom / (x @ x)))
    from scipy.stats import t

    half = float(t.ppf(0.975, freedom)) * spread
    return Fit(exponent, exponent - half, exponent + half, len(x), target, dropped)


def short(value: float) -> str:
    """Return a number in a few characters.

    Examples
    --------
    >>> short(1234.6), short(0.01234), short(float("inf")), short(3e-9), short(2.0)
    ('1235', '0.0123', 'inf', '3e-09', '2')
    """
    if np.isfinite(value) and 1000 <= abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.3g}"


def plain(value: Any) -> Any:
    """Return evidence as JSON can hold it; numbers that it has no name for become text."""
    if isinstance(value, Interval):
        return {"median": plain(value.median), "low": plain(value.low), "high": plain(value.high)}
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.6g}") if np.isfinite(value) else str(value)
    return value
