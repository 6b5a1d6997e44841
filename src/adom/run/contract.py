"""Parts of oracle and gossip that both engines share: counting, and averaging over one or more rounds."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..problems.oracles import Memory

Array = Any
Turn = Callable[[Any, Any], Any]


class CountingOracle:
    """The oracle that a step sees (`adom.algorithms.base.Oracle`), with a count of gradients.

    Parameters
    ----------
    problem : Problem
        The functions of the rows that a step sees.
    dual_gradient : callable
        Takes the oracle's memory and z; returns the memory with grad F*(z) in it.
    memory : Memory
    """

    def __init__(self, problem: Any, dual_gradient: Callable[..., Memory], memory: Memory) -> None:
        self._problem, self._dual_gradient, self.memory = problem, dual_gradient, memory
        self.calls: Any = 0  # gradients that the memory does not count: of every node, or of each

    def gradient(self, x: Array, where: Array | None = None) -> Array:
        """Return grad F(x), one gradient per node, of all nodes or of those in `where`."""
        return self._counted(1, self._problem.gradient_rows, x, where)

    def hessian(self, x: Array, where: Array | None = None) -> Array:
        """Return the Hessians, which count as many gradients as they have columns."""
        return self._counted(x.shape[-1], self._problem.hessian_rows, x, where)

    def _counted(self, price: int, compute: Callable[[Array], Array], x: Array, where: Array | None) -> Array:
        if where is None:
            self.calls = self.calls + price
            return compute(x)
        self.calls = self.calls + price * where.astype(self.memory.gradients.dtype)
        rows = jax.eval_shape(compute, x)
        return jax.lax.cond(where.any(), compute, lambda _: jnp.zeros(rows.shape, rows.dtype), x)

    def dual_gradient(self, z: Array) -> Array:
        """Return grad F*(z), computed by the chosen oracle."""
        self.memory = self._dual_gradient(self.memory, z)
        return self.memory.x

    def spent(self) -> Memory:
        """Return the memory with all gradients that each node has spent so far."""
        if isinstance(self.calls, int) and not self.calls:
            return self.memory
        return self.memory._replace(gradients=self.memory.gradients + self.calls)


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
