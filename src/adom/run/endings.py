"""Status of a run whose rounds are spent, judged by its curve of errors.

The curve is cut into eighths, each with its greatest, middle and least error, on a logarithmic scale: accelerated
methods ripple over orders of magnitude, so single records say little. A rise counts as growth only where the run has
not come back from as great a rise before, and where it is great or has led above the start.
"""

from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np

FINISHED = ("converged", "max_rounds", "growing", "stalled", "diverged")
"""The statuses of runs that came to their end; the others were interrupted."""
LOST = ("diverged", "growing")
"""The statuses of runs that went the wrong way."""
FEW = 4
"""Records below which no trend is seen."""
MANY = 32
"""Records from which a run may be said to have stalled."""
SMALL = log(1.1)
"""Smallest difference of logarithms that is a trend."""
GREAT = log(100.0)
"""A rise, also below the start, that is growth."""
NOTHING = 1e-9
"""Logarithms that differ by less are equal."""
HIGH = log(10.0)
"""A height above the start that no ripple explains."""
FAST = log(1.5)
"""A fall from quarter to quarter too large for rounding."""
LEAST = 1e-300


def rounding(dtype: str, kappa: float) -> float:
    """Return the part of the initial distance that rounding may leave, at most 0.1.

    Examples
    --------
    >>> f"{rounding('float64', 100.0):.1e} {rounding('float32', 100.0):.1e}"
    '6.7e-12 3.6e-03'
    """
    return min(0.1, 3000 * float(np.finfo(dtype).eps) * sqrt(kappa))


class Ending(NamedTuple):
    """A status and a remark."""

    status: str
    message: str = ""


def judge(
    rounds: np.ndarray,
    errors: np.ndarray,
    start_error: float = 0.0,
    tol: float | None = None,
    floor: float = 0.0,
    measure: str = "error",
) -> Ending:
    """Return how a run ended whose rounds are spent.

    Parameters
    ----------
    rounds, errors : arrays
        Of the records, in their order.
    start_error : float
        Before the first round; 0 where it is not known, then the first record stands in for it.
    tol : float, optional
        The error that was to be reached.
    floor : float
        The part of the error at the start below which rounding hides everything.
    measure : str
        Name of the errors; "" where none were measured.

    Returns
    -------
    Ending
        "converged": the last error is at most tol. "diverged": it is not a finite number. "growing": the last eighth
        lies above the best one, nothing since has been higher, the run has not come back from such a rise before, and
        it is a hundredfold or ends above the start. "stalled": over the last half nothing has changed, or nothing has
        been below the start, though the error is above tol and the floor; or it is at the floor and tol below it.
        "max_rounds": all else, such as an error that still falls, one at the floor without a tol, too few records.

    Examples
    --------
    >>> rounds = np.arange(1, 101)
    >>> judge(rounds, 0.9**rounds, 1.0, tol=1e-8)
    Ending(status='max_rounds', message='at this pace about 75 more rounds to 1e-08')
    >>> judge(rounds, 1.1**rounds, 1.0).status, judge(rounds, np.full(100, 0.2), 1.0).status
    ('growing', 'stalled')
    """
    if not measure or len(errors) == 0:
        return Ending("max_rounds", "no record says how near it came")
    if not np.isfinite(errors[-1]):
        return Ending("diverged", f"the {measure} was {errors[-1]} at round {int(rounds[-1])}")
    if tol is not None and errors[-1] <= tol:
        return Ending("converged")
    curve = Curve(np.asarray(rounds, dtype=float), np.asarray(errors, dtype=float), start_error)
    above = f"it ended at {curve.multiple:.3g} times {curve.origin}" if curve.multiple > 1.1 else ""
    if len(errors) < FEW:
        return Ending("max_rounds", above)
    since = curve.below(floor)
    if curve.falls and (since is None or curve.fell > FAST):
        ahead = f"at this pace about {curve.rounds_to(tol):,} more rounds to {tol:.3g}" if tol else ""
        return Ending("max_rounds", "; ".join(filter(None, (ahead, above))))
    if since is not None:
        words = f"at the floor of rounding since round {since}"
        return Ending("max_rounds", words) if tol is None else Ending("stalled", f"{words}, above {tol:.3g}")
    if curve.grows:
        return Ending("growing", "; ".join(filter(None, (curve.risen(measure), above))))
    if words := curve.rests:
        return Ending("stalled", f"the {measure} {words}")
    return Ending("max_rounds", "; ".join(filter(None, (curve.risen(measure) if curve.rises else "", above))))


class Curve:
    """Errors of a run on a logarithmic scale, from the start on."""

    def __init__(self, rounds: np.ndarray, errors: np.ndarray, start_error: float) -> None:
        first = [start_error] if 0 < start_error < np.inf else []
        self.origin = "its start" if first else "its first record"
        values = np.nan_to_num(np.concatenate([first, errors]), nan=np.inf)
        self.logs = np.log(np.clip(values, LEAST, 1 / LEAST))
        self.rounds = np.concatenate([np.zeros(len(first)), rounds])
        self.parts = np.array_split(self.logs, min(8, len(self.logs)))
        self.tops = np.array([part.max() for part in self.parts])
        self.middles = np.array([np.median(part) for part in self.parts])
        self.lows = np.array([part.min() for part in self.parts])
        self.lowest = int(np.argmin(self.tops))
        self.before = np.concatenate(self.parts[: self.lowest + 1])  # up to the end of the best part

    @property
    def multiple(self) -> float:
        """Last error relative to the start."""
        return exp(min(self.logs[-1] - self.logs[0], 700.0))

    @property
    def quarters(self) -> list[np.ndarray]:
        """The last two quarters."""
        return np.array_split(self.logs, 4)[2:]

    @property
    def fell(self) -> float:
        """Drop of the median from the last quarter but one to the last."""
        earlier, later = self.quarters
        return float(np.median(earlier) - np.median(later))

    @property
    def falls(self) -> bool:
        """True if the last quarter lies lower than the one before, or the last part below all of the one before."""
        earlier, later = self.quarters
        if all(of(earlier) - of(later) >= SMALL for of in (np.max, np.median, np.min)):
            return True
        fell = -np.diff(self.middles)
        apart = self.tops[-1] <= self.lows[-2] and fell[-1] > NOTHING
        return bool(apart and fell[-1] >= fell[-2] / 2)  # what comes to rest falls less and less

    def rounds_to(self, tol: float) -> int:
        """Estimate the rounds still needed to reach `tol` at the present pace, to two digits."""
        for parts in (4, 8):  # the last quarters, or where they do not fall yet, the last eighths
            count = min(parts, len(self.logs))  # none is empty
            logs = [float(np.median(part)) for part in np.array_split(self.logs, count)[-2:]]
            clock = [float(np.median(part)) for part in np.array_split(self.rounds, count)[-2:]]
            if logs[1] < logs[0]:
                break
        pace = max(logs[0] - logs[1], NOTHING) / (clock[1] - clock[0])
        more = max(1.0, clock[1] + (logs[1] - log(tol)) / pace - self.rounds[-1])
        return int(float(f"{more:.1e}"))

    def below(self, floor: float) -> int | None:
        """Return the round since which all errors have been at the floor; None where the last part is not."""
        limit = max(log(max(floor, LEAST)) + self.logs[0], log(LEAST))
        if self.tops[-1] > limit:
            return None
        higher = np.flatnonzero(self.logs > limit)
        return int(self.rounds[higher[-1] + 1 if higher.size else 0])

    @property
    def rises(self) -> bool:
        """True if all of the last part lies above the best one, and nothing since then has been higher."""
        apart = self.lows[-1] > self.tops[self.lowest] + SMALL
        since = slice(self.lowest, None)
        return bool(apart and self.tops[-1] >= self.tops[since].max() and self.lows[-1] >= self.lows[since].max())

    @property
    def grows(self) -> bool:
        """True if it ends high above the start and at its highest, or rises more than it has recovered from before."""
        moves = len(self.parts) < 2 or self.middles[-1] - self.middles[-2] > NOTHING  # more than rounding at a level
        if self.logs[-1] > self.logs[0] + HIGH and self.tops[-1] >= self.tops.max() and moves:
            return True
        back = (self.before - np.minimum.accumulate(self.before)).max()
        rise = self.logs[-1] - self.before.min()
        return bool(self.rises and rise > back and (rise >= GREAT or self.logs[-1] > self.logs[0]))

    def risen(self, measure: str) -> str:
        """Describe the rise."""
        low = int(np.argmin(self.before))
        ends = [f"{exp(self.logs[at]):.3g} at round {int(self.rounds[at])}" for at in (low, -1)]
        return f"the {measure} rose from {ends[0]} to {ends[1]}"

    @property
    def rests(self) -> str:
        """Words for a last half that goes nowhere; "" where it moves or records are few."""
        if len(self.logs) <= MANY:
            return ""
        half = len(self.logs) - sum(map(len, self.parts[4:]))
        last, since = self.logs[half:], int(self.rounds[half])
        if last.min() > self.logs[0] + SMALL:
            return f"has stayed above {self.origin} since round {since}"
        tops, middles, lows = self.tops[4:], self.middles[4:], self.lows[4:]
        within = float(np.median(tops - lows))
        moves = max(lows[-1] - tops[-2], lows[-2] - tops[-1]) > NOTHING and abs(middles[-1] - middles[-2]) > SMALL / 100
        alike = np.ptp(middles) <= max(SMALL / 10, within / 4) and np.ptp(tops) <= 4 * SMALL
        if moves or not alike or last.max() - last.min() > log(10.0):
            return ""
        return f"has stayed between {exp(last.min()):.3g} and {exp(last.max()):.3g} since round {since}"
