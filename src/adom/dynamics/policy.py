"""Decisions of `parameters="auto"`: which chi to assume next, from numbers that all nodes have agreed on.

Assumed chis are powers of `RATIO`. A block of rounds has four quarters, followed by rounds in which the nodes agree on
what they saw. A canary's rate is how fast it shrank from the second quarter to the last. The rate of an assumed chi is
the worst rate of its canaries, at most the rate on a perfect network. The chi with the best rate is taken.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import Constants, Method
from ..algorithms.base import made
from .rates import fails_where_flat, perfect_rates
from .trials import BOLDER, LONGEST_TRIAL, WORSE, Trials

Array = np.ndarray
RATIO = 1.5
"""Ratio of neighbouring assumed chis."""
FIRST = (1, 3, 5, 7, 9, 11)
"""Powers that the first canaries assume: from 1.5 to 86."""
START = 1
"""Power that a run without plain descent assumes at first; if it is too bold, the short first block loses little."""
CAREFUL = 26
"""Power taken as safe: chi of 38,000. The run assumes it while agreement takes longer than a block."""
MOST = 54
"""Largest power: chi of 3e9, more than any network has. It makes some methods plain descent; they start with it."""
PLAIN_AHEAD = 1.2
"""The run takes plain descent if its rate exceeds the best other rate by this factor."""
PLAIN_SHOWN = 0.8
"""Natural logarithm by which its canaries must have shrunk: before, only the fastest modes show."""
AROUND = (-3, -2, -1, 0, 1, 2)
"""Powers that later canaries assume, relative to the suggested one."""
STIFFNESS = (0.0, 0.15, 0.3)
"""Curvatures of a chi's canaries: 0 is the end of the spectrum that loses stability first, 1 the other (log scale)."""
THROUGHOUT = (0.0, 0.5, 1.0)
"""The same for plain descent, which is slowest at the other end."""
FIRST_BLOCK = 8
"""Rounds of the first block; each is twice as long as the one before."""
LONGEST_BLOCK = 1024
ROUNDS_PER_CHI = 6.0
"""Rounds of the longest block per unit of the assumed chi, if that is more than `LONGEST_BLOCK`."""
SURE = 20.0
"""In blocks of fewer rounds per unit of chi, one power is added to the suggestion."""
ALARM = 100.0
"""Growth of the run's own canaries since the first quarter that ends a block at once."""
DEAD = 1e-11
"""A canary below this part of its first quarter is dead: its rate would be rounding."""
DIED = 9.0
"""Rate given to a dead canary; one that has overflowed gets the negative."""
NOISE = 0.03
"""Share of random numbers in the seeds of new canaries."""
REST = 100.0
"""A run is at rest if its steps, relative to its answer, are at most this many units of rounding."""
REST_OF_DUAL = 50.0
"""Units added for a dual method, times kappa: its answers are gradients of conjugates, known to L / mu units."""
GROWN = 30.0
"""Growth of the run's steps that is more than oscillation."""
RISEN = 1.2
"""Growth of the run's steps within a block that counts as failure if its canaries grow too."""
FALLEN = 0.7
"""Steps shorter than this part of those at the last progress are progress."""
PATIENCE = 3.0
"""Time without progress before a power is added; its unit is the time of an e-fold decrease on a perfect network."""
LASTS = 1.0
"""Time between routine restarts of momentum, in the same unit: more of them would lose more than they gain."""
GLANCES = 8
"""Glances in a quarter where single rounds do not connect the nodes."""
GLANCE = 16
"""Rounds between glances at a trial."""
FULLY = 1000.0
"""A column that began with unit size is fully averaged if its spread is at most this many units of rounding."""
KEPT = 0.5
"""Part of a perfect network's rate below which canaries show that rounds no longer average fully."""
MANY_ROUNDS = 512
"""Rates of blocks with at least this many rounds are averaged with those of the next block."""
SLACK = 0.75
"""Growth, as a natural logarithm, that is forgiven in a block too short to show an assumption's rate.

Momentum that sets in moves a canary at constant speed: twice as far by the last quarter as by the second."""


class Decision(NamedTuple):
    """What all nodes do after a block."""

    power: int  # the chi assumed from now on is RATIO^power
    back: bool  # return to the last good state
    good: bool  # keep the present state as the last good one
    rest: bool  # restart momentum
    why: str


@dataclass
class _Block:
    """Observations of a block."""

    rounds: int
    tops: list[Array]  # for each quarter, the greatest |answer| of the canaries: (assumptions, canaries of one)
    steps: list[float]  # for each quarter, the run's longest step
    at_rest: bool = False  # whether the last step was rounding


class _Seen(NamedTuple):
    """Rates that canaries have shown in a block."""

    rates: Array  # one for each power of the window, without plain descent
    plain: float  # of plain descent
    perfect: dict[int, float]  # power -> the rate that a perfect network would allow
    span: int  # rounds over which they were measured


class Policy:
    """Decisions about the parameters of a run.

    Parameters
    ----------
    cls : type of Method
    constants : Constants
        lambda_min_plus is unknown and set to lambda_max.
    plain : bool
        Whether plain descent is among the assumptions.
    tries : bool
        Whether the run itself tries bolder assumptions than its canaries suggest.
    apart : int
        Rounds in which all nodes hear of each other, if single rounds do not connect them; else 0. Every quarter of a
        block then has as many rounds, and every run is careful at first.
    """

    def __init__(
        self, cls: type[Method], constants: Constants, plain: bool = False, tries: bool = False, apart: int = 0
    ) -> None:
        self._cls = cls
        self.constants = constants
        self._flat = fails_where_flat(cls, constants)
        self._plain = [MOST] if plain else []
        self.power, self.centre = self.careful if plain or apart else START, START
        self.window = [*FIRST, *self._plain]
        self._apart, self._shortest = apart > 0, max(FIRST_BLOCK, 4 * apart)
        self.grown = False  # where nodes are apart: whether a glance has ended the block, since the run grows
        self.block = _Block(self._shortest, [], [])
        self.agreement = 0  # rounds of the agreement after the last block
        self._caution = 0
        self._least_step = self._good_step = np.inf
        self._high_step = 0.0  # where nodes are apart: of the block before, if it lay well above the last good state's
        self._returned = False  # whether the block began at the last good state
        self._rested = 0  # the round of the last restart of momentum
        self._progress = 0  # the round of the last progress
        self._before: dict[int, float] = {}  # rates of the block before, by power
        self._begun = False  # whether the first look is over
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
        """The chi around which the canaries' chis lie."""
        return float(RATIO**self.centre)

    @property
    def careful(self) -> int:
        """The power taken as safe."""
        return MOST if self._plain else CAREFUL

    def curvatures(self, flattest: Array, steepest: Array) -> Array:
        """Return the curvatures of each node's canaries for all assumptions; plain descent comes last."""
        some = [STIFFNESS] * (len(self.window) - len(self._plain)) + [THROUGHOUT] * len(self._plain)
        each = [curvatures_between(flattest, steepest, self._flat, stiffness) for stiffness in some]
        return np.concatenate(each, axis=1)

    @property
    def facts(self) -> dict[str, Any]:
        """All that decisions depend on, as data that JSON can hold; `recall` restores it."""
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
            "grown": [self.grown, self._high_step],
            "trials": asdict(self._trials),
        }

    def recall(self, facts: dict[str, Any]) -> None:
        """Restore what `facts` returned."""
        rounds, tops, steps, at_rest = facts["block"]
        self.power, self.centre = (int(power) for power in facts["powers"])
        self.window = [int(power) for power in facts["window"]]
        self.block = _Block(int(rounds), [np.array(top, dtype=float) for top in tops], list(steps), bool(at_rest))
        self._caution, self._least_step, self._good_step, self._progress, self._rested = facts["numbers"]
        self._before = {int(power): float(rate) for power, rate in facts["before"]}
        self._begun, self._perfect = facts["first"]
        self._returned = bool(facts["returned"])
        self.agreement = int(facts["agreement"])
        self.grown, self._high_step = facts["grown"]
        self._trials = Trials(**facts["trials"])

    def rests(self, step: float, size: float, eps: float) -> bool:
        """Return whether the longest step is only rounding, for answers of this size."""
        units = REST + REST_OF_DUAL * self.constants.kappa * (self._cls.oracle == "dual")
        return bool(step <= units * eps * size)

    @property
    def quarter(self) -> int:
        """Rounds of a quarter."""
        return max(2, self.block.rounds // 4)

    @property
    def glance(self) -> int:
        """Rounds until the next glance: at most `GLANCE` in a trial; else a quarter, or a part of it where apart."""
        if self._trials.trying:
            return min(self.quarter, GLANCE)
        return max(2, self.quarter // GLANCES) if self._apart else self.quarter

    def wild(self, step: float) -> bool:
        """Return whether a block must end at once, given the run's longest step since the last look.

        A trial must, and any block where single rounds do not connect the nodes: there it is long, and canaries that
        start from one round's few links show too little at first.
        """
        trials = self._trials
        if self._apart and self.block.steps and not trials.trying:
            known = max(self.block.steps[0], self._good_step if np.isfinite(self._good_step) else 0.0)
            self.grown = not step <= most_growth(self.constants.kappa) * known
            return self.grown
        if trials.trying:
            expected = max(trials.step, trials.jump) if trials.jump else most_growth(self.constants.kappa) * trials.step
            trials.jump, trials.wild = trials.jump or step, not step <= GROWN * expected
        return trials.wild

    def see(self, tops: Array, step: float, at_rest: bool = False, fully: bool = False) -> bool:
        """Record each canary's largest |answer| and the run's longest step; return whether the block is over.

        `at_rest`: the run's steps are rounding, so more care gains nothing. `fully`: a column is fully averaged; at the
        first look this ends the block, since there is nothing to find.
        """
        block = self.block
        block.tops.append(np.asarray(tops, dtype=float).reshape(len(self.window), len(STIFFNESS)))
        block.steps.append(float(step))
        block.at_rest = at_rest
        if len(block.tops) == 1 and not self._begun:
            self._begun, self._perfect = True, fully
            return self._perfect
        if self.grown or self._trials.worse(block.steps):
            return True
        if len(block.tops) == 1 or self._trials.own_way or self.power not in self.window:
            return len(block.tops) == 4
        own = self.window.index(self.power)
        first, last = block.tops[0][own].max(), block.tops[-1][own].max()
        return len(block.tops) == 4 or not last <= ALARM * max(first, 1e-300)

    def decide(self, clock: int, flattest: float, steepest: float, left: float = np.inf) -> Decision:
        """Return what to do, given the least and the greatest curvature of any node; begin the next block.

        `left` is how many rounds remain: no trial starts that could not be undone in time.
        """
        block = self.block
        if not block.tops[-1].any() and not block.tops[0].any():
            self.power, self.block = self.careful, _Block(2 * block.rounds, [], [])
            return Decision(
                self.power, False, False, False, "canaries have not started: no links in the round that planted them"
            )
        seen = self._rates(flattest, steepest)
        power, why = self._suggested(seen, clock)
        own, step = self._own_rate(seen), block.steps[-1]
        worse = self._trials.worse(block.steps)
        if self._returned:  # the last good state needs steps this long, even if its last ones were shorter
            self._good_step = max(self._good_step, block.steps[0])
        if self._apart and self._good_step == np.inf and (self.power in self.window or self._cls.oracle == "dual"):
            self._good_step = block.steps[0]  # the start is a good state; a dual method's first step is long
        grew = not step <= most_growth(steepest / flattest) * self._good_step or (
            own < 0 and step > RISEN * block.steps[0]
        )
        high = self._apart and step > WORSE * self._good_step
        slowly = high and step > self._high_step > 0  # two blocks in a row, the second one higher
        back = worse or bool(grew) or self.grown or slowly
        self._high_step = step if high and not back else 0.0
        if back:
            known = power if len(block.tops) > 1 else self._trials.suggested  # after one look canaries show nothing
            power = known if worse else max(power, self.centre + (BOLDER if self.grown else 1))
            why = "the run grew: back to the last good state"
        early = self._apart and self.power not in self.window  # the steps of a far greater chi tell nothing
        good = not back and bool(own > 0) and step < self._good_step and not early
        old = not self._perfect and (clock - self._rested) * seen.perfect.get(self.power, 0.0) >= LASTS
        rest = back or self.power == MOST or old
        alarmed = len(block.tops) < 4 and not self._perfect
        # After an alarm, no block is shorter than its agreement.
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
                why = "a trial: a smaller chi than the canaries suggest"
        if self._apart and back and left <= self.block.rounds + self.agreement:
            self.power = self.careful  # growth could not be undone in time
        self._good_step = step if good else self._good_step
        self._rested = clock if rest else self._rested
        self._returned = back
        return Decision(self.power, back, good, rest, why)

    def _rates(self, flattest: float, steepest: float) -> _Seen:
        """Return the rates that the block's canaries have shown."""
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
        """Return the rate of the run's own canaries; the best rate if the run does not follow its canaries."""
        if self._plain and self.power == MOST:
            return seen.plain
        powers = self.window[: len(seen.rates)]
        if self.power in powers and not self._trials.own_way:
            return float(seen.rates[powers.index(self.power)])
        return float(seen.rates.max())

    def excuse(self, clock: int) -> None:
        """Forget earlier steps, so that a run whose functions have changed may grow."""
        self._progress, self._least_step, self._good_step, self._trials = clock, np.inf, np.inf, Trials()
        self.block.steps = self.block.steps[-1:] * len(self.block.steps)

    def forget(self, clock: int) -> None:
        """Restart after nodes have left or joined: keep the present chi, and let the run grow."""
        self.excuse(clock)
        self._caution, self._before, self._perfect = 0, {}, False
        self.begin(self.centre, self.block.rounds // 2)

    def _averaged(self, rates: Array) -> Array:
        """Return rates, averaged with those of the block before if that was long; only where both are positive."""
        for i, power in enumerate(self.window):
            before = self._before.get(power, 0.0)
            if rates[i] > 0 and before > 0:
                rates[i] = (rates[i] + before) / 2
        long = self.block.rounds >= MANY_ROUNDS and len(self.block.tops) == 4
        self._before = dict(zip(self.window, rates.tolist(), strict=True)) if long else {}
        return rates

    def _waited(self, clock: int) -> int:
        """Return how many powers to add; it rises by one whenever the run makes no progress for long."""
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
        """Begin a block of about `rounds` rounds that assumes chi = RATIO^power."""
        longest = max(LONGEST_BLOCK, ROUNDS_PER_CHI * RATIO**power, self._shortest)
        self.power = self.centre = power
        self.grown = False
        self.window = [*(max(0, power + offset) for offset in AROUND), *self._plain]
        self.block = _Block(int(min(max(self._shortest, rounds), longest)), [], [])


def most_growth(kappa: float) -> float:
    """Return how much longer a run's steps may be than those of its last good state.

    Momentum at full speed alone lengthens them by sqrt(kappa).
    """
    return max(GROWN, 2 * sqrt(kappa))


def _quarters_between(tops: Sequence[Array]) -> int:
    """Return how many quarters lie between the second one seen (the first of two) and the last."""
    return max(1, len(tops) - (2 if len(tops) > 2 else 1))


def _shrinking(tops: Sequence[Array], span: int) -> Array:
    """Return how fast each canary shrank, per round, from the second quarter seen (the first of two) to the last."""
    first = tops[1 if len(tops) > 2 else 0]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rates: Array = np.log(first / tops[-1]) / span
    rates = np.nan_to_num(rates, nan=-DIED, posinf=DIED, neginf=-DIED)
    rates[(tops[-1] < DEAD * tops[0]) | (tops[-1] == 0)] = DIED  # one by one: others may have overflowed
    return rates


def curvatures_between(flattest: Array, steepest: Array, flat: bool, stiffness: Sequence[float] = STIFFNESS) -> Array:
    """Return the curvatures of each node's canaries for one chi, (nodes, canaries), from the flat or the steep end.

    Examples
    --------
    >>> curvatures_between(np.array([1.0]), np.array([1e4]), flat=True).round(2).tolist()
    [[1.0, 3.98, 15.85]]
    """
    spread = np.log(steepest / flattest)[:, None] * np.array(stiffness)
    curvatures: Array = flattest[:, None] * np.exp(spread) if flat else steepest[:, None] * np.exp(-spread)
    return curvatures
