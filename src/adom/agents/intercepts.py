"""Intercepts that are not penalised, though every f_i must be strongly convex.

As in `adom.run.ranks.fit`, a term r / 2 (v - c)^2 holds the intercepts v to a centre c, and c follows v: the distance
to the minimiser without a penalty on v shrinks by r / (r + b) each time, b the curvature along the intercepts, which
is 100 r or more. Agents need not follow in step, nor to the same point. Only the mean of their c counts, which lies
between those of all, and each moves its own when all answers are near to what the present centres lead to.
"""

import numpy as np

from ..data.preparing import Agreed
from .functions import Function, Tilted

Array = np.ndarray
ROUGH = 0.1
"""How near answers must be for a centre to follow, as a part of the way that it would go."""
UNKNOWN, LEAST, MOST = 0.5, 0.02, 0.95
"""The shrinking factor as long as nothing is known of it, and the limits of what is measured."""


class Intercepts:
    """The centre of one agent's intercepts.

    Parameters
    ----------
    function : Function
        With a penalty l2 / 2 |x|^2 in it.
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
        """The function with the penalty on intercepts moved to their centre."""
        return Tilted(self.inner, self._l2 * self.centre)

    def _way(self, x: Array) -> float:
        return self._size * float(np.linalg.norm((x - self.centre)[self._free]))

    def left(self, x: Array) -> float:
        """Return about how far the answer with these centres is from the one without a penalty on intercepts."""
        return self._way(x) * self._factor / (1 - self._factor)

    def follow(self, x: Array, distance: float) -> bool:
        """Move the centre to the answer x, if answers are within a small distance; return whether it moved."""
        way = self._way(x)
        if way == 0 or not distance <= ROUGH * way:
            return False
        self._factor = min(max(way / self._before, LEAST), MOST) if self._before < np.inf else UNKNOWN
        self._before = way
        self.centre = np.where(self._free, x, 0.0)
        return True
