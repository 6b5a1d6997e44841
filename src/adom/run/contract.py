"""Parts of oracle and gossip that both engines share: counting, and steps on windows of rounds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..algorithms import Gossip, Method, Oracle
from ..algorithms.base import Averaging, Windows, Wrapped
from ..networks import DirectedNetwork, Network
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
        self.calls = 0  # gradients per node that the memory does not count

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


class CountingGossip(Averaging):
    """The gossip that a step sees (`adom.algorithms.base.Gossip`): its counters, but not the products."""

    def __init__(self, clock: Any, floats: Any, lambda_max: Any) -> None:
        self.clock, self.floats, self.lambda_max = clock, floats, lambda_max

    def count(self, links: Any, width: int) -> None:
        """Count one round in which `width` numbers travel over every link."""
        self.clock = self.clock + 1
        self.floats = self.floats + links * width


@dataclass(frozen=True)
class InWindows(Wrapped):
    """A method whose rounds are windows of rounds, for networks on which single rounds do not connect the nodes.

    Theorems about W(k) also hold for the W of a window of B rounds, W = I - M(k + B - 1) ... M(k) with
    M = I - W(k) / lambda_max. It satisfies |W x - x|^2 <= (1 - 1 / chi) |x|^2 for x of zero mean, with the network's
    chi. The analysis of ADOM+ (arXiv:2106.04469) needs no more, nor does the proof of Theorem 1 in the ADOM paper
    (arXiv:2102.09234), although the theorem is stated for symmetric W. Lemma 1 is this inequality, and Lemma 3 follows
    from it. In Lemma 2, with lambda_max = 1 and theta = mu,

        F*(z - theta W g) <= F*(z) - mu <g, W g> + mu / 2 |W g|^2 = F*(z) - mu / 2 (|g|_P^2 - |g - W g|_P^2),

    at most F*(z) - mu / (2 chi) |g|_P^2, as with a symmetric W. `adom.verify` checks all of them in every step. Methods
    that average more than once in a step (APM, Mudag) take as many windows as they would take rounds.

    Parameters
    ----------
    inner : Method
    window : int
        Rounds per window.
    """

    rounds_per_step = None  # the inner method's are windows

    window: Any

    def init(self, zeros: Array, oracle: Oracle) -> Any:
        """Start the method."""
        return self.inner.init(zeros, oracle)

    def renewed(self, state: Any, k: Any) -> Any:
        """Renew the method's state."""
        return self.inner.renewed(state, k)

    def step(self, state: Any, oracle: Oracle, gossip: Gossip) -> tuple[Any, Array]:
        """Make one step of the method, on windows."""
        after: tuple[Any, Array] = self.inner.step(state, oracle, Windows(gossip, self.window))
        return after

    def rounds_of_step(self, k: Any) -> Any:
        """Return the rounds of all windows of a step."""
        return self.window * self.inner.rounds_of_step(k)


def in_windows(method: Method, network: Network | DirectedNetwork) -> Method:
    """Return the method for a network, on windows if single rounds do not connect the nodes."""
    if method.directed or network.window == 1 or method.needs == "complete":  # "complete": one round is enough
        return method
    return InWindows(method, network.window)


def window_of(method: Method) -> int:
    """Return the rounds per window of a method in a run; 1 without windows."""
    if isinstance(method, InWindows):
        return int(method.window)
    return window_of(method.inner) if isinstance(method, Wrapped) else 1
