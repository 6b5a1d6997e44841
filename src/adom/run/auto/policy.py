"""Decisions of `parameters="auto"`: which chi to assume next, from numbers that all nodes have agreed on.

Assumed chis are powers of `RATIO`. A block of rounds has four quarters, and then some rounds in which the nodes agree
on what they saw. A canary's rate is how fast it shrank from the second quarter to the last; the rate of an assumed chi
is the worst of its canaries, and no more than what a perfect network would allow. The best rate decides.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ...algorithms import Constants, Method
from ...algorithms.base import made
from .rates import fails_where_flat, perfect_rates
from .trials import LONGEST_TRIAL, Trials

Array = np.ndarray
RATIO = 1.5
"""Ratio of two neighbouring assumptions."""
FIRST = (1, 3, 5, 7, 9, 11)
"""Powers that the first canaries assume: from 1.5 to 86."""
START = 1
"""Power that a run without plain descent assumes at first: where it is too bold, little is lost in a short block."""
CAREFUL = 26
"""Power that is safe anywhere: chi of 38,000. The run assumes it while nodes take longer to agree than to look."""
MOST = 54
"""The greatest power: chi of 3e9, more than any network has. Some methods are plain descent then, and start so."""
PLAIN_AHEAD = 1.2
"""Ratio of the rates of plain descent and of the best other assumption above which the run takes the former."""
PLAIN_SHOWN = 0.8
"""Logarithm by which its canaries must have shrunk: a shorter time shows no more than what shrinks fastest."""
AROUND = (-3, -2, -1, 0, 1, 2)
"""Powers that later canaries assume, relative to the run's."""
STIFFNESS = (0.0, 0.15, 0.3)
"""Curvatures of an assumption's canaries: how far from the end that loses stability first towards the other."""
THROUGHOUT = (0.0, 0.5, 1.0)
"""The same for plain descent, which is slowest at the other end."""
FIRST_BLOCK = 8
"""Rounds of the first block; each is twice as long as the one before."""
LONGEST_BLOCK = 1024
ROUNDS_PER_CHI = 6.0
"""Rounds of the longest block relative to the assumed chi, where that is more."""
SURE = 20.0
"""Rounds of a block relative to the assumed chi below which one more power is added to what it suggests."""
ALARM = 100.0
"""Growth of the run's own canaries from one quarter to another that ends a block at once."""
DEAD = 1e-11
"""A canary that has shrunk so much since the first quarter has died, and its rate is rounding."""
DIED = 9.0
"""Rate of a dead canary; one that has outgrown all numbers has its negative."""
NOISE = 0.03
"""Share of random numbers in the seeds of new canaries."""
REST = 100.0
"""Steps of a run that has come to rest, relative to its answer, in units of rounding."""
REST_OF_DUAL = 50.0
"""What a dual method has in addition, over kappa: its answers are gradients of conjugates, known to L / mu units."""
GROWN = 30.0
"""Growth of the run's own steps, against the smallest of a quarter, that is no oscillation."""
RISEN = 1.2
"""Growth of the run's steps within a block that counts where its canaries grow too."""
FALLEN = 0.7
"""A quarter's steps are progress below this part of the smallest so far."""
PATIENCE = 3.0
"""Time without progress, in units of the time in which a perfect network would shrink distances e-fold."""
LASTS = 1.0
"""Time for which momentum is left alone, in the same units: to restart it sooner would lose more than it gains."""
GLANCE = 16
"""Rounds from one glance at a trial to the next."""
FULLY = 1000.0
"""Spread of a column of unit size, in units of rounding, below which the rounds since have averaged it fully."""
KEPT = 0.5
"""Part of a perfect network's rate that canaries must show for such rounds to be taken to go on."""
MANY_ROUNDS = 512
"""Rounds of a block from which on rates are averaged with those of the block before."""
SLACK = 0.75
"""Growth, as a logarithm, that says nothing in a block too short for its assumption to show what it does.

What momentum has just begun to move goes on evenly, and is twice as far in the last quarter as in the second."""


class Decision(NamedTuple):
    """What all nodes do after a block."""

    power: int  # of `RATIO`: the chi assumed from now on
    back: bool  # go on from the last good state instead of the present one
    good: bool  # keep the present state as the last good one
    rest: bool  # start momentum afresh
    why: str


@dataclass
class _Block:
    """What was seen in a block."""

    rounds: int
    tops: list[Array]  # for each quarter, the greatest |answer| of the canaries: (assumptions, canaries of one)
    steps: list[float]  # for each quarter, the run's longest step
    at_rest: bool = False  # whether the last of these was rounding


class _Seen(NamedTuple):
    """Rates that canaries have shown in a block."""

    rates: Array  # one for each power of the window, without plain descent
    plain: float  # of plain descent
    perfect: dict[int, float]  # power -> the rate that a perfect network would allow
    span: int  # the rounds in which they were seen


class Policy:
    """The decisions of a run.

    Parameters
    ----------
    cls : type of Method
    constants : Constants
        With lambda_max in the place of lambda_min_plus, which nobody knows.
    plain : bool
        Whether plain descent is among the assumptions.
    tries : bool
        Whether the run itself tries bolder assumptions than its canaries suggest.
    """

    def __init__(self, cls: type[Method], constants: Constants, plain: bool = False, tries: bool = False) -> None:
        self._cls = cls
        self.constants = constants
        self._flat = fails_where_flat(cls, constants)
        self._plain = [MOST] if plain else []
        self.power, self.centre = self.careful if plain else START, START
        self.window = [*FIRST, *self._plain]
        self.block = _Block(FIRST_BLOCK, [], [])
        self.agreement = 0  # rounds that the nodes took to agree on what they saw of the last block
        self._caution = 0
        self._least_step = self._good_step = np.inf
        self._returned = False  # whether the block began at the last good state
        self._rested = 0  # the round in which momentum started last
        self._progress = 0  # the round of the last progress
        self._before: dict[int, float] = {}  # rates of the block before, by power
        self._begun = False  # whether the nodes have looked at all
        self._perfect = False  # whether all rounds so far seem to have averaged fully
        self._tries, self._trials = tries, Trials()
        self._methods: dict[tuple[Constants, int], Method] = {}

    def method(self, power: int) -> Method:
        """Return the method that assumes chi = RATIO^power."""
        key = self.constants, power
        if key not in self._methods:
            constants = replace(self.constants, lambda_min_plus=self.constants.lambda_max / RATIO**power)
            self._methods[key] = made(self._cls, "unit", constants)
        return self._methods[key]

    @property
    def chi(self) -> float:
        """The chi around which canaries try others."""
        return float(RATIO**self.centre)

    @property
    def careful(self) -> int:
        """The power that is safe anywhere."""
        return MOST if self._plain else CAREFUL

    def curvatures(self, flattest: Array, steepest: Array) -> Array:
        """Return the curvatures of each node's canaries for all assumptions; plain descent comes last."""
        some = [STIFFNESS] * (len(self.window) - len(self._plain)) + [THROUGHOUT] * len(self._plain)
        each = [curvatures_between(flattest, steepest, self._flat, stiffness) for stiffness in some]
        return np.concatenate(each, axis=1)

    @property
    def facts(self) -> dict[str, Any]:
        """All that decisions depend on, as data that JSON can hold."""
        block = self.block
        return {
            "powers": [self.power, self.centre],
            "window": self.window,
            "block": [block.rounds, [top.tolist() for top in block.tops], block.steps, block.at_rest],
            "numbers": [self._caution, self._least_step, self._good_step, self._progress, self._rested],
            "before": list(self._before.items()),
            "first": [self._begun, self._perfect],
            "returned": self._returned,
            "agreement": self.agreement,
            "trials": asdict(self._trials),
        }

    def recall(self, facts: dict[str, Any]) -> None:
        """Go on from facts."""
        rounds, tops, steps, at_rest = facts["block"]
        self.power, self.centre = (int(power) for power in facts["powers"])
        self.window = [int(power) for power in facts["window"]]
        self.block = _Block(int(rounds), [np.array(top, dtype=float) for top in tops], list(steps), bool(at_rest))
        self._caution, self._least_step, self._good_step, self._progress, self._rested = facts["numbers"]
        self._before = {int(power): float(rate) for power, rate in facts["before"]}
        self._begun, self._perfect = facts["first"]
        self._returned = bool(facts.get("returned", False))
        self.agreement = int(facts.get("agreement", 0))
        self._trials = Trials(**facts["trials"])

    def rests(self, step: float, size: float, eps: float) -> bool:
        """Return whether the longest step is rounding, for answers of this size."""
        units = REST + REST_OF_DUAL * self.constants.kappa * (self._cls.oracle == "dual")
        return bool(step <= units * eps * size)

    @property
    def quarter(self) -> int:
        """Rounds of a quarter."""
        return max(2, self.block.rounds // 4)

    @property
    def glance(self) -> int:
        """Rounds from one glance at a trial to the next; no fewer than a quarter where nothing is tried."""
        return min(self.quarter, GLANCE) if self._trials.trying else self.quarter

    def wild(self, step: float) -> bool:
        """Return whether the run's longest step since the last look says that a trial must end at once."""
        trials = self._trials
        if trials.trying:
            expected = max(trials.step, trials.jump) if trials.jump else most_growth(self.constants.kappa) * trials.step
            trials.jump, trials.wild = trials.jump or step, not step <= GROWN * expected
        return trials.wild

    def see(self, tops: Array, step: float, at_rest: bool = False, fully: bool = False) -> bool:
        """Take in each canary's greatest |answer| and the run's longest step; return whether the block is over.

        A run whose steps are rounding is at rest: it has nothing left to gain by more care. `fully` says that the first
        rounds have averaged a column fully: then there is nothing to find, and the first block is over.
        """
        block = self.block
        block.tops.append(np.asarray(tops, dtype=float).reshape(len(self.window), len(STIFFNESS)))
        block.steps.append(float(step))
        block.at_rest = at_rest
        if len(block.tops) == 1 and not self._begun:
            self._begun, self._perfect = True, fully
            return self._perfect
        if self._trials.worse(block.steps):
            return True
        if len(block.tops) == 1 or self._trials.own_way or self.power not in self.window:
            return len(block.tops) == 4
        own = self.window.index(self.power)
        first, last = block.tops[0][own].max(), block.tops[-1][own].max()
        return len(block.tops) == 4 or not last <= ALARM * max(first, 1e-300)

    def decide(self, clock: int, flattest: float, steepest: float, left: float = np.inf) -> Decision:
        """Return what to do, given the least and the greatest curvature of any node; begin the next block.

        `left` is how many rounds the run may still take: it tries nothing from which it could not come back in time.
        """
        block = self.block
        if not block.tops[-1].any() and not block.tops[0].any():
            self.power, self.block = self.careful, _Block(2 * block.rounds, [], [])
            return Decision(self.power, False, False, False, "no canary lives yet: no links when they were planted")
        seen = self._rates(flattest, steepest)
        power, why = self._suggested(seen, clock)
        own, step = self._own_rate(seen), block.steps[-1]
        worse = self._trials.worse(block.steps)
        if self._returned:  # steps as long as these are what that state needs, however short it was seen to make them
            self._good_step = max(self._good_step, block.steps[0])
        grew = not step <= most_growth(steepest / flattest) * self._good_step or (
            own < 0 and step > RISEN * block.steps[0]
        )
        back = worse or bool(grew)
        if back:
            known = power if len(block.tops) > 1 else self._trials.suggested  # of one look canaries tell nothing
            power = known if worse else max(power, self.centre + 1)
            why = "the run grew: back to the last good state"
        good = not back and bool(own > 0) and step < self._good_step
        old = not self._perfect and (clock - self._rested) * seen.perfect.get(self.power, 0.0) >= LASTS
        rest = back or self.power == MOST or old
        alarmed = len(block.tops) < 4 and not self._perfect
        # Not so short that more rounds would go into agreeing than into looking, time and again.
        rounds = max(block.rounds // 2, self.agreement) if alarmed else 2 * block.rounds
        self.begin(min(max(0, power), MOST), rounds)
        if not back and seen.plain > max(PLAIN_AHEAD * seen.rates.max(), PLAIN_SHOWN / seen.span):
            self.power, why = MOST, "plain descent is faster than any momentum"
        if not self._tries or self._perfect or self.power == MOST or self.block.rounds > LONGEST_TRIAL:
            self._trials = Trials()
        else:
            may = not block.at_rest and left > self.block.rounds + 2 * self.agreement
            self.power = self._trials.next(self.power, step, clock, block.rounds, back=back, may=may)
            if self._trials.trying:
                good = True
                why = "a trial of less than its canaries suggest"
        self._good_step = step if good else self._good_step
        self._rested = clock if rest else self._rested
        self._returned = back
        return Decision(self.power, back, good, rest, why)

    def _rates(self, flattest: float, steepest: float) -> _Seen:
        """Return the rates that the canaries of a block have shown."""
        tops, curvatures = self.block.tops, np.geomspace(flattest, steepest, 5)
        perfect = perfect_rates(list(map(self.method, self.window)), curvatures, self.constants.lambda_max)
        span = self.quarter * _quarters_between(tops)
        doubt = SLACK * np.maximum(0.0, 1 - perfect * span) / span
        rates = self._averaged(np.minimum(_shrinking(tops, span).min(axis=1) + doubt, perfect))
        plain, rates = (float(rates[-1]), rates[:-1]) if self._plain else (-np.inf, rates)
        return _Seen(rates, plain, dict(zip(self.window, perfect.tolist(), strict=True)), span)

    def _suggested(self, seen: _Seen, clock: int) -> tuple[int, str]:
        """Return the power that the canaries suggest, and why."""
        block, rates = self.block, seen.rates
        caution = self._waited(clock)
        if self._perfect:
            self._perfect = len(block.tops) == 1 or self._own_rate(seen) > KEPT * seen.perfect.get(self.power, np.inf)
        if self._perfect:
            return caution, "every round averages fully"
        best = len(rates) - 1 - int(np.argmax(rates[::-1]))  # the most careful of equals
        if rates[best] <= 0:
            return self.window[len(rates) - 1] + 2 + caution, "all canaries grew"
        sure = block.rounds >= SURE * RATIO ** self.window[best]
        return self.window[best] + (0 if sure else 1) + caution, "its canaries died fastest"

    def _own_rate(self, seen: _Seen) -> float:
        """Return the rate of the run's own canaries; the best there is where it goes its own way."""
        if self._plain and self.power == MOST:
            return seen.plain
        powers = self.window[: len(seen.rates)]
        if self.power in powers and not self._trials.own_way:
            return float(seen.rates[powers.index(self.power)])
        return float(seen.rates.max())

    def excuse(self, clock: int) -> None:
        """Let the run grow once more, whose functions have changed: forget how long its steps were."""
        self._progress, self._least_step, self._good_step, self._trials = clock, np.inf, np.inf, Trials()
        self.block.steps = self.block.steps[-1:] * len(self.block.steps)

    def forget(self, clock: int) -> None:
        """Begin anew where nodes have left or joined, with the present assumption: the run may grow once more."""
        self.excuse(clock)
        self._caution, self._before, self._perfect = 0, {}, False
        self.begin(self.centre, self.block.rounds // 2)

    def _averaged(self, rates: Array) -> Array:
        """Return rates, averaged with those of the block before where both are positive and blocks are long."""
        for i, power in enumerate(self.window):
            before = self._before.get(power, 0.0)
            if rates[i] > 0 and before > 0:
                rates[i] = (rates[i] + before) / 2
        long = self.block.rounds >= MANY_ROUNDS and len(self.block.tops) == 4
        self._before = dict(zip(self.window, rates.tolist(), strict=True)) if long else {}
        return rates

    def _waited(self, clock: int) -> int:
        """Return how many powers to add: one more whenever the run makes no progress for long."""
        steps = self.block.steps
        if min(steps) < FALLEN * self._least_step or self.block.at_rest:
            self._least_step, self._progress = steps[-1], clock
        else:
            c = self.constants
            (slow,) = perfect_rates([self.method(self.power)], np.geomspace(c.mu, c.L, 5), c.lambda_max)
            if clock - self._progress > max(PATIENCE / slow if slow > 0 else np.inf, self.block.rounds):
                self._caution, self._progress = self._caution + 1, clock
        return self._caution

    def begin(self, power: int, rounds: int) -> None:
        """Begin a block of some rounds that assumes a power."""
        longest = max(LONGEST_BLOCK, ROUNDS_PER_CHI * RATIO**power)
        self.power = self.centre = power
        self.window = [*(max(0, power + offset) for offset in AROUND), *self._plain]
        self.block = _Block(int(min(max(FIRST_BLOCK, rounds), longest)), [], [])


def most_growth(kappa: float) -> float:
    """Return how much longer a run's steps may be than those of its last good state.

    Momentum alone makes them longer by the root of kappa, once it is at full speed.
    """
    return max(GROWN, 2 * sqrt(kappa))


def _quarters_between(tops: Sequence[Array]) -> int:
    """Return the quarters from the second (the first of two) to the last."""
    return max(1, len(tops) - (2 if len(tops) > 2 else 1))


def _shrinking(tops: Sequence[Array], span: int) -> Array:
    """Return how fast each canary shrank, per round, from the second quarter seen (the first of two) to the last."""
    first = tops[1 if len(tops) > 2 else 0]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rates: Array = np.log(first / tops[-1]) / span
    rates = np.nan_to_num(rates, nan=-DIED, posinf=DIED, neginf=-DIED)
    rates[(tops[-1] < DEAD * tops[0]) | (tops[-1] == 0)] = DIED  # each by itself: others may have grown beyond measure
    return rates


def curvatures_between(flattest: Array, steepest: Array, flat: bool, stiffness: Sequence[float] = STIFFNESS) -> Array:
    """Return the curvatures of each node's canaries for one assumption: (nodes, canaries), from the flat end or not.

    Examples
    --------
    >>> curvatures_between(np.array([1.0]), np.array([1e4]), flat=True).round(2).tolist()
    [[1.0, 3.98, 15.85]]
    """
    spread = np.log(steepest / flattest)[:, None] * np.array(stiffness)
    curvatures: Array = flattest[:, None] * np.exp(spread) if flat else steepest[:, None] * np.exp(-spread)
    return curvatures
