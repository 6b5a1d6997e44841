"""Trials: blocks that assume a smaller chi than the canaries suggest, judged by the run itself.

A canary combines the flattest directions of all nodes in one scalar problem. If these directions differ much between
nodes, the real problem tolerates a smaller chi than its canaries, and only the run can show it.
"""

from dataclasses import dataclass
from math import inf, log

BOLDER = 3
"""Powers by which a trial lowers the assumed chi."""
PAYS = 1.1
"""A trial's chi is kept if the run's rate exceeds the rate before it by this factor."""
WORSE = 3.0
"""Growth of the run's steps that ends a trial."""
LEAST = 7
"""Lowest power from which a trial starts, chi of 17: below it, little can be gained."""
SETTLED = 2
"""Blocks with nearly the same suggestion before a trial; the number doubles after each trial that did not pay."""
LONGEST_TRIAL = 2048
"""In blocks of more rounds the run follows its canaries: looks would be too far apart to notice growth."""
ROUNDS = 512
"""In blocks of fewer rounds nothing is tried: the canaries' suggestion may still change."""


@dataclass
class Trials:
    """State of the trials of a run."""

    bold: int = 0  # powers below the canaries' suggestion that have paid
    trying: bool = False
    suggested: int = 0  # by the canaries, in the last block
    calm: int = 0  # successive blocks with nearly the same suggestion
    wait: int = SETTLED
    rate: float = 0.0  # of the run, before the trial
    step: float = inf  # the run's longest step at the end of the last block
    clock: int = 0  # the last round of that block
    jump: float = 0.0  # the longest step at a trial's first glance: restarts jump, farther with a smaller chi
    wild: bool = False  # whether a glance has shown that the run grows

    @property
    def own_way(self) -> bool:
        """Whether the run assumes a smaller chi than its canaries suggest."""
        return self.trying or self.bold > 0

    def worse(self, steps: list[float]) -> bool:
        """Return whether a trial must end; its first quarter does not count, since a new start jumps."""
        return self.wild or (self.trying and len(steps) > 1 and not steps[-1] <= WORSE * self.step)

    def next(self, suggested: int, step: float, clock: int, rounds: int, *, back: bool, may: bool) -> int:
        """Return the power to assume, given the canaries' suggestion and the longest step in a block's last quarter.

        `back`: the run returns to its last good state. `may`: whether a new trial may start.
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
