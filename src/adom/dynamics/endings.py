"""Status of a run that has used up its rounds, judged by its error curve.

The curve is cut into eighths, each summarised by its maximum, median and minimum on a logarithmic scale: accelerated
methods oscillate over orders of magnitude, so single records say little. A rise counts as growth only if the run has
not recovered from an equally large rise before, and if it is large or ends above the start.
"""

from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np

FINISHED = ("converged", "max_rounds", "growing", "stalled", "diverged")
"""Statuses of runs that ended by themselves; all others were interrupted."""
LOST = ("diverged", "growing")
"""Statuses of runs that went the wrong way."""
FEW = 4
"""Fewest records from which a trend is judged."""
MANY = 32
"""A run can stall only if its curve has more points than this."""
SMALL = log(1.1)
"""Smallest difference of logarithms that counts as a trend."""
GREAT = log(100.0)
"""Smallest rise that counts as growth even below the start."""
NOTHING = 1e-9
"""Logarithms that differ by less count as equal."""
HIGH = log(10.0)
"""Height above the start that no oscillation explains."""
FAST = log(1.5)
"""Drop between quarters that is too large for rounding."""
LEAST = 1e-300
LATELY = "has fallen lately"
"""Of a run that falls, but not fast enough to come below its start soon."""


def rounding(dtype: str, kappa: float) -> float:
    """Return the fraction of the initial distance that rounding may leave, at most 0.1.

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
    """Return the status of a run that has used up its rounds.

    Parameters
    ----------
    rounds, errors : arrays
        Round and error of each record, in order.
    start_error : float
        Error at which the method starts; 0 if unknown, in which case the first record is used instead.
    tol : float, optional
        Target error.
    floor : float
        Fraction of the start error below which rounding hides all progress.
    measure : str
        Name of the error measure; "" if nothing was measured.

    Returns
    -------
    Ending
        "converged": the last error is at most tol. "diverged": it is not finite. "growing": the run ends at its highest
        and more than tenfold above the start; or the last eighth lies above the best one, nothing in between is higher,
        the run has not recovered from such a rise before, and the rise is hundredfold or ends above the start.
        "stalled": over the last half the error did not change or stayed above the start; or it ends above the start,
        and does not fall so fast that it would be below after as many rounds again; or it is at the floor, and tol is
        lower. "max_rounds": anything else, such as an error that still falls, an error at the floor without a tol, or
        too few records.

    Examples
    --------
    >>> rounds = np.arange(1, 101)
    >>> judge(rounds, 0.9**rounds, 1.0, tol=1e-8)
    Ending(status='max_rounds', message='at this pace about 75 more rounds to 1e-08')
    >>> judge(rounds, 1.1**rounds, 1.0).status, judge(rounds, np.full(100, 0.2), 1.0).status
    ('growing', 'stalled')
    """
    if not measure or len(errors) == 0:
        return Ending("max_rounds", "the error was not recorded")
    if not np.isfinite(errors[-1]):
        return Ending("diverged", f"the {measure} was {errors[-1]} at round {int(rounds[-1])}")
    if tol is not None and errors[-1] <= tol:
        return Ending("converged")
    curve = Curve(np.asarray(rounds, dtype=float), np.asarray(errors, dtype=float), start_error)
    above = f"it ended at {curve.multiple:.3g} times {curve.origin}" if curve.multiple > 1.1 else ""
    if len(errors) < FEW:
        return Ending("max_rounds", above)
    since = curve.below(floor)
    falls = curve.falls
    if falls and (since is None or curve.fell > FAST) and (not above or curve.returns):
        ahead = f"at this pace about {curve.rounds_to(tol):,} more rounds to {tol:.3g}" if tol else ""
        return Ending("max_rounds", "; ".join(filter(None, (ahead, above))))
    if since is not None:
        words = f"at the floor of rounding since round {since}"
        return Ending("max_rounds", words) if tol is None else Ending("stalled", f"{words}, above {tol:.3g}")
    if curve.grows:
        return Ending("growing", "; ".join(filter(None, (curve.risen(measure), above))))
    words = f"the {measure} {LATELY if falls else curve.rests}" if falls or curve.rests else ""
    if words or (above and (len(curve.logs) > MANY or curve.multiple > exp(HIGH))):
        return Ending("stalled", "; ".join(filter(None, (words, above))))
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
        """True if the last quarter is lower than the one before, or the last eighth entirely below the one before."""
        earlier, later = self.quarters
        if all(of(earlier) - of(later) >= SMALL for of in (np.max, np.median, np.min)):
            return True
        fell = -np.diff(self.middles)
        apart = self.tops[-1] <= self.lows[-2] and fell[-1] > NOTHING
        return bool(apart and fell[-1] >= fell[-2] / 2)  # a curve that levels off falls less and less

    @property
    def returns(self) -> bool:
        """True if a falling curve is near the start, and would be below it after as many rounds again."""
        near = self.logs[-1] <= self.logs[0] + HIGH
        return bool(near and self.rounds_to(exp(self.logs[0])) <= self.rounds[-1])

    def rounds_to(self, tol: float) -> int:
        """Estimate the rounds still needed to reach `tol` at the present pace, to two digits."""
        for parts in (4, 8):  # the last quarters, or the last eighths if the quarters do not fall
            count = min(parts, len(self.logs))  # so that no part is empty
            logs = [float(np.median(part)) for part in np.array_split(self.logs, count)[-2:]]
            clock = [float(np.median(part)) for part in np.array_split(self.rounds, count)[-2:]]
            if logs[1] < logs[0]:
                break
        pace = max(logs[0] - logs[1], NOTHING) / (clock[1] - clock[0])
        more = max(1.0, clock[1] + (logs[1] - log(tol)) / pace - self.rounds[-1])
        return int(float(f"{more:.1e}"))

    def below(self, floor: float) -> int | None:
        """Return the first round from which all errors are at the floor; None if the last eighth is not."""
        limit = max(log(max(floor, LEAST)) + self.logs[0], log(LEAST))
        if self.tops[-1] > limit:
            return None
        higher = np.flatnonzero(self.logs > limit)
        return int(self.rounds[higher[-1] + 1 if higher.size else 0])

    @property
    def rises(self) -> bool:
        """True if the last eighth lies entirely above the best one, and nothing in between is higher."""
        apart = self.lows[-1] > self.tops[self.lowest] + SMALL
        since = slice(self.lowest, None)
        return bool(apart and self.tops[-1] >= self.tops[since].max() and self.lows[-1] >= self.lows[since].max())

    @property
    def grows(self) -> bool:
        """True if the curve ends at its highest and far above the start, or rises more than it ever recovered from."""
        moves = len(self.parts) < 2 or self.middles[-1] - self.middles[-2] > NOTHING  # by more than rounding
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
        """Message if the last half made no progress; "" if it did or records are few."""
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
