"""The parts of oracle and gossip that both engines share: counting and averaging."""

from collections.abc import Callable
from typing import Any

from ..problems.oracles import Memory

Array = Any


class CountingOracle:
    """The oracle that a step sees (`adom.algorithms.base.Oracle`), with a count of gradients.

    Parameters
    ----------
    gradient : callable
        Returns grad F(x).
    dual_gradient : callable
        Takes the oracle's memory and z; returns the memory with grad F*(z) in it.
    memory : Memory
    """

    def __init__(
        self, gradient: Callable[[Array], Array], dual_gradient: Callable[..., Memory], memory: Memory
    ) -> None:
        self._gradient, self._dual_gradient, self.memory = gradient, dual_gradient, memory
        self.calls = 0  # gradients of every node besides those that the memory counts

    def gradient(self, x: Array) -> Array:
        """Return grad F(x), one gradient per node."""
        self.calls += 1
        return self._gradient(x)

    def dual_gradient(self, z: Array) -> Array:
        """Return grad F*(z), computed by the chosen oracle."""
        self.memory = self._dual_gradient(self.memory, z)
        return self.memory.x

    @property
    def gradients(self) -> Array:
        """Gradients that each node has spent so far."""
        return self.memory.gradients + self.calls


class CountingGossip:
    """The gossip that a step sees (`adom.algorithms.base.Gossip`), without the products."""

    def __init__(self, clock: Any, floats: Any, lambda_max: Any) -> None:
        self.clock, self.floats, self.lambda_max = clock, floats, lambda_max

    def count(self, links: Any, width: int) -> None:
        """Count one round in which `width` numbers travel over every link."""
        self.clock = self.clock + 1
        self.floats = self.floats + links * width

    def __call__(self, *vectors: Array) -> Any:
        """Spend one round: return W(k) v for every vector v given."""
        raise NotImplementedError

    def average(self, *vectors: Array) -> Any:
        """Spend one round of averaging: M(k) v = v - W(k) v / lambda_max for every vector."""
        differences = self(*vectors)
        if len(vectors) == 1:
            return vectors[0] - differences / self.lambda_max
        return tuple(v - w / self.lambda_max for v, w in zip(vectors, differences, strict=True))

    def mix(self, v: Array, rounds: Any) -> Array:
        """Spend `rounds` rounds of averaging."""
        for _ in range(int(rounds)):
            v = self.average(v)
        return v
