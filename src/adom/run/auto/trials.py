"""Trials of bolder assumptions than the canaries suggest, judged by the run itself.

A canary puts every node's flattest direction into one scalar problem. Where these directions differ much from node to
node the real problem bears more than its canaries do, and only the run can show it.
"""

from dataclasses import dataclass
from math import inf, log

BOLDER = 3
"""Powers by which a trial assumes less than before."""
PAYS = 1.1
"""Ratio of the run's rates in a trial and before it from which on the bolder assumption is kept."""
WORSE = 3.0
"""Growth of the run's steps that ends a trial."""
LEAST = 7
"""The least power from which a trial is made, chi of 17: below, little can be gained."""
SETTLED = 2
"""Blocks with much the same suggestion before a trial; twice as many after each that did not pay."""
LONGEST_TRIAL = 2048
"""Rounds of a block above which the run does as its canaries say: looks would be too far apart to see it grow."""
ROUNDS = 512
"""Rounds of a block below which nothing is tried: its canaries may still change their minds."""


@dataclass
class Trials:
    """What has been tried, and what comes of it."""

    bold: int = 0  # powers below the canaries' suggestion that have paid
    trying: bool = False
    suggested: int = 0  # by the canaries, in the last block
    calm: int = 0  # blocks in which that was much the same
    wait: int = SETTLED
    rate: float = 0.0  # of the run, before the trial
    step: float = inf  # the run's longest step at the end of the last block
    clock: int = 0  # its last round
    jump: float = 0.0  # the longest step at the first glance at a trial: a new start jumps, with bolder steps farther
    wild: bool = False  # whether the run has been seen to grow in the midst of a quarter

    @property
    def own_way(self) -> bool:
        """Whether the run goes by itself, not by its canaries."""
        return self.trying or self.bold > 0

    def worse(self, steps: list[float]) -> bool:
        """Return whether a trial is to end; its first quarter has the jump of the new start."""
        return self.wild or (self.trying and len(steps) > 1 and not steps[-1] <= WORSE * self.step)

    def next(self, suggested: int, step: float, clock: int, rounds: int, *, back: bool, may: bool) -> int:
        """Return the power to assume, given the canaries' and the longest step in the last quarter of a block.

        Nothing new is tried unless it `may` be.
        """
        known = 0 < step < inf and 0 < self.step < inf  # in a block without links nothing moves
        rate = log(self.step / step) / max(1, clock - self.clock) if known else 0.0
        if self.trying:
            paid = not back and rate > PAYS * max(self.rate, 0.0)
            self.trying, self.calm = False, 0
            self.bold, self.wait = (self.bold + BOLDER, 0) if paid else (self.bold, max(SETTLED, 2 * self.wait))
        elif back:
            self.bold, self.calm = max(0, self.bold - BOLDER), 0
        else:
            self.calm = self.calm + 1 if abs(suggested - self.suggested) <= 1 else 0
        if may and not back and rounds >= ROUNDS and self.calm >= self.wait and suggested - self.bold >= LEAST:
            self.trying, self.rate = True, rate
        self.suggested, self.step, self.clock, self.jump, self.wild = suggested, step, clock, 0.0, False
        return max(0, suggested - self.bold - BOLDER * self.trying)
