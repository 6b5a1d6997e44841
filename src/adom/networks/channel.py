"""How links change their messages: coarse numbers, missing numbers, noise and delay."""

from dataclasses import dataclass
from math import pi, sin

import numpy as np


@dataclass(frozen=True)
class Quantised:
    """Messages of few bits per number, on an even grid up to the largest number, which is sent exactly."""

    bits: int
    dither: bool
    seed: int


@dataclass(frozen=True)
class Sparsified:
    """Messages with a share of their numbers: the largest, or places that both ends of a link draw from one seed."""

    keep: float
    largest: bool
    seed: int


@dataclass(frozen=True)
class Channel:
    """What happens to a message on its way.

    Attributes
    ----------
    coders : tuple of Quantised and Sparsified
        Applied in this order.
    feedback : bool
        Whether both ends of a link keep copies of the rows sent over it, and messages carry coded differences to them.
    delay : int
        Rounds by which a message is late.
    varying : bool
        Whether each message is late by a number of rounds drawn from 0, ..., delay.
    noise : float
        Standard deviation of the noise on every number that arrives.
    delay_seed, noise_seed : int
    """

    coders: tuple[Quantised | Sparsified, ...] = ()
    feedback: bool = False
    delay: int = 0
    varying: bool = False
    noise: float = 0.0
    delay_seed: int = 0
    noise_seed: int = 0

    @property
    def perfect(self) -> bool:
        """Whether messages arrive unchanged and at once."""
        return not (self.coders or self.delay or self.noise)

    @property
    def mean_delay(self) -> float:
        """The average delay of messages, in rounds."""
        return self.delay / 2 if self.varying else self.delay

    @property
    def share(self) -> float:
        """The share of W that acts on average; below 1 if both ends leave out the same numbers and keep no copies."""
        drawn = [c.keep for c in self.coders if isinstance(c, Sparsified) and not c.largest]
        return 1.0 if self.feedback else float(np.prod(drawn))

    @property
    def age(self) -> float:
        """How many rounds old numbers are when used: the delay plus, with feedback, the wait for sparse updates."""
        renewed = float(np.prod([c.keep for c in self.coders if isinstance(c, Sparsified)]))
        return self.delay + self.feedback * (1 / renewed - 1)

    @property
    def damping(self) -> float:
        """The factor by which lambda_max counts as larger, so that averaging with old values stays stable.

        x(k + 1) = x(k) - a x(k - d) is stable for a < 2 sin(pi / (4 d + 2)), twice the inverse of this factor.
        """
        return 1 / sin(pi / (4 * self.age + 2))
