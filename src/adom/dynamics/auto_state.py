"""The numbers by which `parameters="auto"` decides, and the state that its decisions depend on, as plain values."""

from dataclasses import dataclass, field
from math import inf, sqrt
from typing import Any, NamedTuple

Array = Any


@dataclass(frozen=True)
class AutoSettings:
    """The numbers by which `parameters="auto"` decides, alike in simulation, on ranks and in agents.

    They were measured on many problems and networks (docs/auto.md), not derived.
    """

    ratio: float = 1.5
    """Ratio of neighbouring assumed chis."""
    first: tuple[int, ...] = (1, 3, 5, 7, 9, 11)
    """Powers that the first canaries assume: from 1.5 to 86."""
    start: int = 1
    """Power that a run without plain descent assumes at first; if too bold, the short first block loses little."""
    careful: int = 26
    """Power taken as safe: chi of 38,000. The run assumes it while agreement takes longer than a block."""
    most: int = 54
    """Largest power: chi of 3e9, more than any network has. It makes some methods plain descent; they start with it."""
    plain_ahead: float = 1.2
    """The run takes plain descent if its rate exceeds the best other rate by this factor."""
    plain_shown: float = 0.8
    """Natural logarithm by which its canaries must have shrunk: before, only the fastest modes show."""
    around: tuple[int, ...] = (-3, -2, -1, 0, 1, 2)
    """Powers that later canaries assume, relative to the suggested one."""
    stiffness: tuple[float, ...] = (0.0, 0.15, 0.3)
    """Curvatures of a chi's canaries: 0 is the end of the spectrum that loses stability first, 1 the other, in logs."""
    throughout: tuple[float, ...] = (0.0, 0.5, 1.0)
    """The same for plain descent, which is slowest at the other end."""
    eigen_dim: int = 128
    """The largest dim for which canaries take their curvatures from eigenvalues of present Hessians, at cubic cost."""
    first_block: int = 8
    """Rounds of the first block; each is twice as long as the one before."""
    longest_block: int = 1024
    rounds_per_chi: float = 6.0
    """Rounds of the longest block per unit of the assumed chi, if that is more than `longest_block`."""
    sure: float = 20.0
    """In blocks of fewer rounds per unit of chi, one power is added to the suggestion."""
    alarm: float = 100.0
    """Growth of the run's own canaries since the first quarter that ends a block at once."""
    dead: float = 1e-11
    """A canary below this part of its first quarter is dead: its rate would be rounding."""
    died: float = 9.0
    """Rate given to a dead canary; one that has overflowed gets the negative."""
    noise: float = 0.03
    """Share of random numbers in the seeds of new canaries."""
    rest: float = 100.0
    """A run is at rest if its steps, relative to its answer, are at most this many units of rounding."""
    rest_of_dual: float = 50.0
    """Units added for a dual method, times kappa: its answers are gradients of conjugates, known to L / mu units."""
    grown: float = 30.0
    """Growth of the run's steps that is more than oscillation."""
    risen: float = 1.2
    """Growth of the run's steps within a block that counts as failure if its canaries grow too."""
    fallen: float = 0.7
    """Steps shorter than this part of those at the last progress are progress."""
    patience: float = 3.0
    """Time without progress before a power is added; in units of an e-fold decrease on a perfect network."""
    lasts: float = 1.0
    """Time between routine restarts of momentum, in the same unit: more of them would lose more than they gain."""
    glances: int = 8
    """Glances in a quarter where single rounds do not connect the nodes."""
    higher: float = 3.0
    """There, growth of the run's steps since the last good state that lasts for two blocks is failure."""
    warned: int = 3
    """Powers added after a glance has shown that the run grew."""
    fully: float = 1000.0
    """A column that began with unit size is fully averaged if its spread is at most this many units of rounding."""
    kept: float = 0.5
    """Part of a perfect network's rate below which canaries show that rounds no longer average fully."""
    many_rounds: int = 512
    """Rates of blocks with at least this many rounds are averaged with those of the next block."""
    slack: float = 0.75
    """Growth, as a natural logarithm, that is forgiven in a block too short to show an assumption's rate.

    Momentum that sets in moves a canary at constant speed: twice as far by the last quarter as by the second."""

    # Methods that average several rounds per gradient, whose chi is measured

    margin: float = 1.2
    """Ratio of the assumed chi to the measured one."""
    bold: float = 1.5
    """The chi assumed at first."""
    stretch: float = 5.0
    """Rounds of a measurement per unit of the assumed chi: enough to leave only the slowest part."""
    averaged: float = 100.0
    """Spread of the averaged column, in units of rounding, that is only rounding."""
    most_more: float = 4.0
    """Limit on the measured chi, relative to the assumed one: a block is too short to show more."""
    stirred: float = 1e-3
    """Spread, from about 1 at the start, at which a new averaged column replaces the old one."""

    # Agents, of which some are late and some messages are lost

    spare: int = 2
    """Powers added to that of a path."""
    short_block: int = 64
    """Rounds of a block after an agent has come or gone."""
    much: float = 30.0
    """The run goes back to the last good state only if its steps have grown by more than this since."""
    soon: int = 64
    """Rounds, and blocks, that a neighbour's settings may be ahead of any that this agent expects."""
    late: int = 4
    """Agreement times that an agent waits for missing numbers before it decides without them."""
    times: int = 3
    """How often a run goes back to one state; if it still grows, that was good for another network."""

    def chi(self, power: int) -> float:
        """Return the chi of a power."""
        return float(self.ratio**power)

    def most_growth(self, kappa: float) -> float:
        """Return how much longer a run's steps may be than those of its last good state.

        Momentum at full speed alone lengthens them by sqrt(kappa).
        """
        return max(self.grown, 2 * sqrt(kappa))


SETTINGS = AutoSettings()
"""What every engine takes unless told otherwise."""


class Decision(NamedTuple):
    """What all nodes do after a block."""

    power: int  # the chi assumed from now on is ratio^power
    back: bool  # return to the last good state
    good: bool  # keep the present state as the last good one
    rest: bool  # restart momentum, if the method can
    why: str


@dataclass
class Block:
    """Observations of a block."""

    rounds: int
    tops: list[Array] = field(default_factory=list)
    """For each quarter, the greatest |answer| of the canaries: (assumptions, canaries of one)."""
    steps: list[float] = field(default_factory=list)
    """For each quarter, the run's longest step."""
    at_rest: bool = False
    """Whether the last step was rounding."""


@dataclass
class AutoState:
    """All that decisions depend on: where a run is in its search. Two runs with equal states decide alike."""

    power: int
    """The chi that the run assumes is ratio^power, unless it waits."""
    centre: int
    """Canaries assume powers around this one."""
    window: list[int]
    """The powers that canaries assume."""
    block: Block
    waiting: bool = False
    """Whether the run is careful until the nodes have agreed: that takes longer than the block, or the run grew."""
    agreement: int = 0
    """Rounds of the agreement after the last block."""
    grown: bool = False
    """Where nodes are apart: whether a glance has ended the block, since the run grows."""
    caution: int = 0
    """Powers added since there was no progress for long."""
    least_step: float = inf
    """The run's longest step at the last progress."""
    good_step: float = inf
    """That of the last good state."""
    high_step: float = 0.0
    """Where nodes are apart: of the block before, if it lay well above the last good state's."""
    returned: bool = False
    """Whether the block began at the last good state."""
    rested: int = 0
    """The round of the last restart of momentum."""
    progress: int = 0
    """The round of the last progress."""
    before: dict[int, float] = field(default_factory=dict)
    """Rates of the block before, by power."""
    begun: bool = False
    """Whether the first look is over."""
    perfect: bool = False
    """Whether all rounds so far seem to have averaged fully."""
