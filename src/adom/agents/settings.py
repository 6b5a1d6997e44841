"""Parameters of an agent's method, from the constants of all agents present and an assumed chi."""

from math import pi, sin
from typing import Any

import numpy as np

from ..algorithms import Constants, Method
from ..errors import InputError

Array = np.ndarray


def safe_chi(nodes: int) -> float:
    """Return the chi of a path, which with the agents' weights mixes about the slowest of all connected networks.

    Examples
    --------
    >>> [round(safe_chi(nodes), 1) for nodes in (1, 2, 8, 32)]
    [1.0, 2.0, 26.3, 415.3]
    """
    return 1.0 if nodes < 2 else 1 / sin(pi / (2 * nodes)) ** 2


class Settings:
    """Parameters that follow from mu, L and the number of agents, with a chi that is given or safe.

    Parameters
    ----------
    cls : type of Method
    chi, mu, L : float, optional
        Used in place of those of the agents present.
    """

    canaries = 0
    why = "chi is given, or that of a path"

    def __init__(
        self, cls: type[Method], chi: float | None = None, mu: float | None = None, L: float | None = None
    ) -> None:
        check_method(cls)
        self.cls, self._chi, self._mu, self._L = cls, chi, mu, L
        self._key: tuple[Any, ...] = ()
        self._method: Method | None = None

    def method(self, mu: float, L: float, nodes: int) -> Method:
        """Return the method for the constants of all agents present."""
        key = (self._mu or mu, self._L or L, self._chi or safe_chi(nodes), nodes)
        if self._method is None or key != self._key:
            mu, L, chi, nodes = key
            self._key, self._method = key, self.cls.unit(Constants(mu, L, 1 / chi, 1.0, nodes))
        return self._method

    @property
    def chi(self) -> float:
        """The assumed chi."""
        return float(self._key[2]) if self._key else float("nan")

    def seen(self) -> Array:
        """Return the numbers to tell neighbours: none."""
        return np.zeros(0)

    def hear(self, seen: Array) -> None:
        """Ignore the numbers of a neighbour."""

    def begin(self, number: int, rows: Any) -> None:
        """Do nothing before a round."""

    def plant(self, rows: Any, function: Any) -> None:
        """Plant no canaries."""

    def excuse(self) -> None:
        """Ignore a change of this agent's function."""

    def look(self, wide: Array, number: int) -> None:
        """Ignore the answer of a round."""


def check_method(cls: type[Method]) -> None:
    """Refuse a method whose step takes more than one exchange with neighbours, or needs directed links."""
    if cls.rounds_per_step != 1 or cls.directed or cls.name == "pngd":
        raise InputError(
            f"agents cannot run {cls.name}: its steps need more than one round on undirected links; "
            "take adom, adom+ or diging"
        )
