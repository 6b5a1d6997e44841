"""Intercepts without a penalty, although every f_i must be strongly convex.

As in `adom.run.stages`, a term r / 2 (v - c)^2 holds the intercepts v near a centre c, and c follows v. Each time c
moves to v, the distance to the minimiser without a penalty on v shrinks by r / (r + b), where b, the curvature along
the intercepts, is 100 r or more. At every check (`adom.agents.certificate`) all agents look at the same point: they
move their centres to its intercepts if it is near the answer that the present centres lead to.
"""

import numpy as np

from ..data.preparing import Agreed
from .functions import Free, Function

Array = np.ndarray
ROUGH = 0.1
"""A centre moves once the error of the point is at most this part of the way that the centre would move."""


class Intercepts:
    """The centre of one agent's intercepts.

    Parameters
    ----------
    agreed : Agreed
        The functions of all agents include its penalty l2 / 2 |x|^2.
    """

    def __init__(self, agreed: Agreed) -> None:
        self.free = agreed.free
        self.l2 = agreed.l2
        self.centre = np.zeros(len(self.free))
        together = self.free / np.linalg.norm(self.free)
        self.idle = together[None] if agreed.loss.coupled else together[:0].reshape(0, len(self.free))
        """Directions along which nothing changes: the intercepts of all classes together."""

    def without(self, function: Function) -> Function:
        """Return a function without its penalty on the intercepts."""
        return Free(function, self.l2, self.free)

    @property
    def lean(self) -> Array:
        """The tilt that moves the centre of the penalty from 0."""
        return self.l2 * self.centre

    def follow(self, x: Array, distance: float) -> bool:
        """Move the centre to the intercepts of x if `distance` is small; return whether it moved.

        It is a bound on how far x is from the answer that the present centres lead to.
        """
        way = float(np.linalg.norm((x - self.centre)[self.free > 0]))
        if way == 0 or not distance <= ROUGH * way:
            return False
        self.centre = np.where(self.free > 0, x, 0.0)
        return True
