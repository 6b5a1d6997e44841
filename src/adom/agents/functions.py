"""The function f_i of one agent, in NumPy: gradient, Hessian, constants, and the gradient of its conjugate.

`adom.problems` has the same functions for many nodes at once. An agent has one, and without JAX it starts faster.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from ..errors import InputError

Array = np.ndarray
NEWTON = 60
"""The most Newton steps in one call."""
SLOW = 0.1
"""A full step that leaves more than this part of the residual shows that the Hessian is out of date."""
SHORTEST = 2.0**-30
NEAR_ROUNDING = 1e3
"""Below this multiple of rounding, the first step that does not reduce the residual ends the iteration."""
EPS = float(np.finfo(float).eps)
ACCURACY = 0.01
"""Residual at which the iteration ends, relative to how far z moved; the error is small beside the round's step."""


class Function(ABC):
    """A smooth, strongly convex function of `dim` numbers.

    Attributes
    ----------
    mu, L : float
        Constants of strong convexity and smoothness.
    bend : float
        Along any direction k, the Hessian changes by at most `bend` |k| times itself: 0 for a quadratic.
    samples : int
    reach, unit : float
        The greatest length of a sample's features, and the size of its target: scores are off by at most `reach` times
        the distance to the right answer, and that is much or little in this unit.
    data : int
        A fingerprint of the data, of 32 bits.
    """

    dim: int
    mu: float
    L: float
    bend: float = 0.0
    samples: int = 1
    reach: float = 1.0
    unit: float = 1.0
    data: int = 0

    @abstractmethod
    def gradient(self, x: Array) -> Array:
        """Return the gradient at x."""

    @abstractmethod
    def hessian(self, x: Array) -> Array:
        """Return the Hessian at x, (dim, dim)."""

    @abstractmethod
    def noise(self, x: Array) -> float:
        """Return how far rounding may move the computed gradient at x."""

    def columns(self, x: Array, which: Array) -> Array:
        """Return some columns of the Hessian at x, (dim, number of columns)."""
        return self.hessian(x)[:, which]

    def inverse(self, x: Array) -> Callable[[Array], Array]:
        """Return e -> H^-1 e for the Hessian H at x."""
        inverse = np.linalg.inv(self.hessian(x))
        return lambda e: np.asarray(inverse @ e)


class QuadraticFunction(Function):
    """x'Hx/2 - c'x.

    Examples
    --------
    >>> QuadraticFunction(np.diag([1.0, 4.0]), np.ones(2)).gradient(np.ones(2)).tolist()
    [0.0, 3.0]
    """

    def __init__(self, H: Array, c: Array) -> None:
        self._h, self._c = np.asarray(H, dtype=float), np.asarray(c, dtype=float)
        self.dim = self._c.size
        values = np.linalg.eigvalsh(self._h)
        self.mu, self.L = float(values[0]), float(values[-1])
        if not 0 < self.mu <= self.L < np.inf:
            raise InputError(
                f"H must be positive definite, got a smallest eigenvalue of {self.mu:.3g}; add a multiple of I"
            )
        self.data = crc32(self._h.tobytes() + self._c.tobytes())

    def gradient(self, x: Array) -> Array:
        """Return H x - c."""
        return np.asarray(self._h @ x - self._c)

    def hessian(self, x: Array) -> Array:
        """Return H."""
        return self._h

    def noise(self, x: Array) -> float:
        """Return how far rounding may move the gradient."""
        terms = np.abs(self._h) @ np.abs(x) + np.abs(self._c)
        return float(2 * np.sqrt(self.dim + 1) * EPS * np.linalg.norm(terms))


class Free(Function):
    """f(x) - l2 |x_free|^2 / 2: a function without its penalty on some coordinates, the intercepts.

    Parameters
    ----------
    inner : Function
    l2 : float
    free : array of shape (dim,)
        1 for the coordinates without a penalty, else 0.

    Examples
    --------
    >>> Free(QuadraticFunction(np.eye(2), np.zeros(2)), 1.0, np.array([0.0, 1.0])).hessian(np.zeros(2)).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """

    def __init__(self, inner: Function, l2: float, free: Array) -> None:
        self._inner, self._taken = inner, l2 * free
        self.dim, self.mu, self.L, self.bend = inner.dim, 0.0, inner.L, inner.bend
        self.samples, self.reach, self.unit, self.data = inner.samples, inner.reach, inner.unit, inner.data

    def gradient(self, x: Array) -> Array:
        """Return the gradient without that of the penalty."""
        return np.asarray(self._inner.gradient(x) - self._taken * x)

    def hessian(self, x: Array) -> Array:
        """Return the Hessian without that of the penalty."""
        return np.asarray(self._inner.hessian(x) - np.diag(self._taken))

    def columns(self, x: Array, which: Array) -> Array:
        """Return some columns of the Hessian."""
        return np.asarray(self._inner.columns(x, which) - np.diag(self._taken)[:, which])

    def noise(self, x: Array) -> float:
        """Return how far rounding may move the gradient."""
        return self._inner.noise(x) + float(EPS * np.linalg.norm(self._taken * x))


class Sum(Function):
    """The sum of several functions."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self._each = list(functions)
        self.dim = self._each[0].dim
        self.mu, self.L = sum(f.mu for f in self._each), sum(f.L for f in self._each)

    def gradient(self, x: Array) -> Array:
        """Return the sum of the gradients."""
        return np.asarray(sum(f.gradient(x) for f in self._each))

    def hessian(self, x: Array) -> Array:
        """Return the sum of the Hessians."""
        return np.asarray(sum(f.hessian(x) for f in self._each))

    def noise(self, x: Array) -> float:
        """Return the sum of the bounds."""
        return sum(f.noise(x) for f in self._each)

    def minimiser(self) -> Array:
        """Return the minimiser of the sum, up to rounding."""
        return np.asarray(Oracle(self, exact=True).dual_gradient(np.zeros((1, self.dim)))[0])


class Oracle:
    """The oracle of one agent's step; it computes each answer of a round once.

    A step runs twice in a round: first up to its messages, then with what was heard. The second time the
    oracle repeats its answers from the first.

    Parameters
    ----------
    function : Function
    exact : bool
        Whether to solve for the conjugate's gradient down to rounding, not just to a hundredth of how far z moved.

    Attributes
    ----------
    tilt : array
        The method sees f(x) - tilt'x instead of f.
    """

    def __init__(self, function: Function, exact: bool = False) -> None:
        self.function, self.exact = function, exact
        self.gradients = 0
        self.tilt = np.zeros(function.dim)
        self._x = np.zeros(function.dim)
        self._z = np.zeros(function.dim)
        self._inverse: Callable[[Array], Array] | None = None
        self._answers: list[Array] = []
        self._asked = 0

    def replace(self, function: Function) -> None:
        """Replace the function, after the data have changed."""
        self.function, self._inverse = function, None
        self.new_round()

    def new_round(self) -> None:
        """Forget the answers of the last round."""
        self._answers.clear()
        self.again()

    def again(self) -> None:
        """Repeat the answers of this round."""
        self._asked = 0

    def gradient(self, x: Array) -> Array:
        """Return grad f(x) - tilt for a single row."""
        return self._once(lambda: (self._gradient(x[0]) - self.tilt)[None])

    def dual_gradient(self, z: Array) -> Array:
        """Return the x with grad f(x) = z + tilt, for a single row."""
        return self._once(lambda: self._solve(z[0] + self.tilt)[None])

    def _once(self, compute: Any) -> Array:
        if self._asked == len(self._answers):
            self._answers.append(compute())
        self._asked += 1
        return self._answers[self._asked - 1]

    def _gradient(self, x: Array) -> Array:
        self.gradients += 1
        return self.function.gradient(x)

    def _solve(self, z: Array) -> Array:
        """Solve grad f(x) = z by Newton steps: keep a Hessian while it works, damp the steps where a new one fails."""
        f, x = self.function, self._x
        e = self._gradient(x) - z
        size = float(np.linalg.norm(e))
        rounding = 4 * np.finfo(float).eps * (size + np.linalg.norm(z) + f.L * np.linalg.norm(x))
        enough = rounding if self.exact else max(ACCURACY * float(np.linalg.norm(z - self._z)), rounding)
        fresh, t, inverse = False, 1.0, self._inverse
        for _ in range(NEWTON):
            if size <= enough or t < SHORTEST:
                break
            if inverse is None:
                inverse, fresh, t = f.inverse(x), True, 1.0
            trial = x - t * inverse(e)
            e_trial = self._gradient(trial) - z
            left = float(np.linalg.norm(e_trial))
            if left <= (1 - t / 4) * size:
                stale = left > SLOW * size and t == 1.0
                x, e, size, fresh = trial, e_trial, left, False
                inverse = None if stale else inverse
                t = min(1.0, 2 * t)
            elif size <= NEAR_ROUNDING * rounding:
                break
            elif not fresh:
                inverse = None
            else:
                t /= 2
        self._x, self._z, self._inverse = x, np.array(z), inverse
        return x
