"""A method and a problem in a file of the user's own, as the command line finds them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import adom
from adom.algorithms.base import Array, Method, Number


class State(NamedTuple):
    x: Array
    y: Array
    g: Array


@dataclass(frozen=True)
class Mine(Method):
    """x^{k+1} = M (x^k - a y^k), y^{k+1} = M y^k + grad F(x^{k+1}) - grad F(x^k): y tracks the mean gradient."""

    name, title, oracle, vectors_per_round = "mine", "Mine", "primal", 2
    complexity, reference = "to be proved", "a thesis"

    a: Number

    def __post_init__(self) -> None:
        self._require_positive("a")

    @classmethod
    def theory(cls, constants):  # type: ignore[no-untyped-def]  # as a student writes it
        """Return a step that shrinks with chi."""
        return cls(a=1 / (constants.L * constants.chi))

    unit = theory

    def init(self, zeros, oracle):  # type: ignore[no-untyped-def]  # as a student writes it
        """Start at 0."""
        g = oracle.gradient(zeros)
        return State(zeros, g, g)

    def step(self, state, oracle, gossip):  # type: ignore[no-untyped-def]  # as a student writes it
        """Make one step."""
        x, y = gossip.average(state.x - self.a * state.y, state.y)
        g = oracle.gradient(x)
        return State(x, y + g - state.g, g), x


def make(nodes: int, seed: int, dim: int = 2) -> adom.Quadratic:
    """Return a quadratic problem, drawn with a seed."""
    rng = np.random.default_rng(seed)
    curvatures = rng.uniform(1.0, 8.0, (nodes, dim))
    return adom.Quadratic(np.stack([np.diag(row) for row in curvatures]), rng.standard_normal((nodes, dim)))


ready = make(4, 0)
number = 3
