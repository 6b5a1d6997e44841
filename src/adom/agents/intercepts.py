"""Intercepts without a penalty, although every f_i must be strongly convex.

As in `adom.run.ranks.fit`, a term r / 2 (v - c)^2 holds the intercepts v near a centre c, and c follows v. Each time c
moves to v, the distance to the minimiser without a penalty on v shrinks by r / (r + b), where b, the curvature along
the intercepts, is 100 r or more. Agents need not move their centres in the same round or to the same point: only the
mean of all centres counts. An agent moves its own when all answers are near the one that the present centres lead to.
"""

import numpy as np

from ..data.preparing import Agreed
from .functions import Function, Tilted

Array = np.ndarray
ROUGH = 0.1
"""A centre moves once the answers' error is at most this part of the way that it would move."""
UNKNOWN, LEAST, MOST = 0.5, 0.02, 0.95
"""The shrinking factor before one is measured, and the limits on a measured one."""


class Intercepts:
    """The centre of one agent's intercepts.

    Parameters
    ----------
    function : Function
        Includes a penalty l2 / 2 |x|^2.
    agreed : Agreed
    """

    def __init__(self, function: Function, agreed: Agreed) -> None:
        self.inner = function
        self.centre = np.zeros(function.dim)
        self._free = agreed.free > 0
        self._l2, self._size = agreed.l2, max(1.0, agreed.column)
        self._before, self._factor = np.inf, UNKNOWN

    @property
    def function(self) -> Function:
        """The function, with the penalty on intercepts around their centre instead of 0."""
        return Tilted(self.inner, self._l2 * self.centre)

    def _way(self, x: Array) -> float:
        return self._size * float(np.linalg.norm((x - self.centre)[self._free]))

    def left(self, x: Array) -> float:
        """Return an estimate of the distance from the answer x to the one without a penalty on intercepts."""
        return self._way(x) * self._factor / (1 - self._factor)

    def follow(self, x: Array, distance: float) -> bool:
        """Move the centre to the answer x if `distance`, a bound on the error, is small; return whether it moved."""
        way = self._way(x)
        if way == 0 or not distance <= ROUGH * way:
            return False
        self._factor = min(max(way / self._before, LEAST), MOST) if self._before < np.inf else UNKNOWN
        self._before = way
        self.centre = np.where(self._free, x, 0.0)
        return True
