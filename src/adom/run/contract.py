"""Parts of oracle and gossip that both engines share: counting, averaging, and steps on windows of rounds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..algorithms import Gossip, Method, Oracle
from ..algorithms.base import Wrapped
from ..networks import DirectedNetwork, Network
from ..problems.oracles import Memory

Array = Any
Turn = Callable[[Any, Any], Any]


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


class Averaging:
    """Averaging built from `repeat` and W(k) v, which each kind of network implements."""

    lambda_max: Any

    def __call__(self, *vectors: Array) -> Any:
        """Spend one round: return W(k) v for every vector v given."""
        raise NotImplementedError

    def repeat(self, rounds: Any, turn: Turn, carried: Any) -> Any:
        """Return `carried` after `rounds` calls ``carried = turn(network, carried)``."""
        for _ in range(int(rounds)):
            carried = turn(self, carried)
        return carried

    def average(self, *vectors: Array) -> Any:
        """Spend one round of averaging: M(k) v = v - W(k) v / lambda_max for every vector."""
        differences = self(*vectors)
        if len(vectors) == 1:
            return vectors[0] - differences / self.lambda_max
        return tuple(v - w / self.lambda_max for v, w in zip(vectors, differences, strict=True))

    def mix(self, v: Array, rounds: Any) -> Array:
        """Spend `rounds` rounds of averaging."""
        return self.repeat(rounds, lambda network, v: network.average(v), v)

    def averaged_out(self, rounds: Any, *vectors: Array) -> tuple[Array, ...]:
        """Spend `rounds` rounds of averaging; return what they subtract from every vector.

        The result is accumulated from differences between rows, so its rows sum to zero, as those of W(k) v do.
        """

        def turn(network: Any, taken: Any) -> Any:
            products = network(*(v - t for v, t in zip(vectors, taken, strict=True)))
            products = (products,) if len(vectors) == 1 else products
            return tuple(t + p / self.lambda_max for t, p in zip(taken, products, strict=True))

        done: tuple[Array, ...] = self.repeat(rounds, turn, tuple(map(_zeros, vectors)))
        return done

    def accelerated(self, v: Array, rounds: Any, chi: Any) -> Array:
        """Spend `rounds` rounds of Chebyshev's averaging; return what they subtract from v.

        The result is P(W) v with P(W) = I - T(c (I - d W)) / T(c), where T is the polynomial of degree `rounds`,
        c = (chi + 1) / (chi - 1) and d = 2 chi / ((chi + 1) lambda_max).
        """
        rho = (chi - 1) / (chi + 1)

        def turn(network: Any, carried: Any) -> Any:
            omega, last, taken, before = carried
            step = (1 + rho) / self.lambda_max * network(v - taken)
            further = before + omega * (taken - before + step)  # one product: a sum of two may be rounded in two ways
            ahead = 1 / (1 - rho**2 * last / 4)
            return ahead, ahead, further, taken

        one = 1 + 0 * rho
        return self.repeat(rounds, turn, (one, 2 * one, _zeros(v), _zeros(v)))[2]

    def windows(self, rounds: Any) -> "Windows":
        """Return a network whose rounds each take `rounds` rounds of this one."""
        return Windows(self, rounds)


def _zeros(v: Array) -> Array:
    return v.__array_namespace__().zeros_like(v)  # NumPy's, or JAX's


class Windows(Averaging):
    """A network whose rounds are each a window of rounds of another network."""

    def __init__(self, network: Any, rounds: Any) -> None:
        self._network, self._rounds, self.lambda_max = network, rounds, network.lambda_max

    def __call__(self, *vectors: Array) -> Any:
        """Spend a window of rounds: return lambda_max times what averaging subtracts."""
        taken = tuple(self.lambda_max * t for t in self._network.averaged_out(self._rounds, *vectors))
        return taken[0] if len(vectors) == 1 else taken

    def repeat(self, rounds: Any, turn: Turn, carried: Any) -> Any:
        """Return `carried` after `rounds` calls ``carried = turn(network, carried)`` on windows."""
        return self._network.repeat(rounds, lambda inner, c: turn(Windows(inner, self._rounds), c), carried)

    def average(self, *vectors: Array) -> Any:
        """Spend a window of rounds of averaging."""
        taken = self._network.averaged_out(self._rounds, *vectors)
        left = tuple(v - t for v, t in zip(vectors, taken, strict=True))
        return left[0] if len(vectors) == 1 else left

    def mix(self, v: Array, rounds: Any) -> Array:
        """Spend `rounds` windows of averaging."""
        return self._network.mix(v, rounds * self._rounds)

    def windows(self, rounds: Any) -> "Windows":
        """Return a network whose rounds are each `rounds` windows."""
        return Windows(self._network, rounds * self._rounds)

    def project(self, v: Array) -> Array:
        """Spend one round of full averaging."""
        return self._network.project(v)


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
