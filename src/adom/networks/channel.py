"""What links do to the messages that they carry: coarser numbers, fewer of them, noise, and delay."""

from dataclasses import dataclass
from math import pi, sin

import numpy as np


@dataclass(frozen=True)
class Quantised:
    """Numbers of a few bits, on an even grid up to the largest of the message, which is sent as it is."""

    bits: int
    dither: bool
    seed: int


@dataclass(frozen=True)
class Sparsified:
    """A share of the numbers of a message: the largest, or some that both ends of the link draw from one seed."""

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
        Whether the ends of a link keep copies of what came over it, and messages carry coded differences to them.
    delay : int
        Rounds that a message is late.
    varying : bool
        Whether each message is late by a number of rounds drawn from 0, ..., delay.
    noise : float
        Standard deviation of what is added to every number that arrives.
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
        """Whether messages arrive as they were sent, at once."""
        return not (self.coders or self.delay or self.noise)

    @property
    def mean_delay(self) -> float:
        """The rounds by which messages are late on average."""
        return self.delay / 2 if self.varying else self.delay

    @property
    def share(self) -> float:
        """The part of W that is heard on average, where both ends leave out the same numbers and keep no copies."""
        drawn = [c.keep for c in self.coders if isinstance(c, Sparsified) and not c.largest]
        return 1.0 if self.feedback else float(np.prod(drawn))

    @property
    def age(self) -> float:
        """The rounds by which numbers are old when they are used: late, or a share of them renewed in every round."""
        renewed = float(np.prod([c.keep for c in self.coders if isinstance(c, Sparsified)]))
        return self.delay + self.feedback * (1 / renewed - 1)

    @property
    def damping(self) -> float:
        """How much larger lambda_max counts: averaging with old values swings for ever from twice the gain on.

        x(k + 1) = x(k) - a x(k - d) is stable for a < 2 sin(pi / (4 d + 2)).
        """
        return 1 / sin(pi / (4 * self.age + 2))
