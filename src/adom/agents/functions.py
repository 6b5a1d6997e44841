"""The function f_i of one agent, in NumPy: of samples, for every loss; without JAX, so that an agent starts fast.

`adom.problems` has the same functions for many nodes at once; losses and the steps of Newton's method are shared.

Intercepts have no penalty, although every f_i must be strongly convex. As in `adom.run.stages`, a term r / 2 (v - c)^2
holds the intercepts v near a centre c, and c follows v. Each time c moves to v, the distance to the minimiser without a
penalty on v shrinks by r / (r + b), where b, the curvature along the intercepts, is 100 r or more. At every check
(`adom.agents.certificate`) all agents look at the same point: they move their centres to its intercepts if it is near
the answer that the present centres lead to.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np

from ..data.node_shards import NodeShard
from ..data.preparing import Agreed
from ..errors import InputError, nearest
from ..problems.losses import LOSSES, Loss, models
from ..problems.minimiser import ACCURACY, NEAR_ROUNDING, SHORTEST, ULP, conjugate_gradients, damped_step
from ..problems.nearness import lengths_of, noise_of, terms
from ..problems.samples import dense, hessian_sum, largest_curvature, scaled_rows
from ..util.arrays import is_sparse

Array = np.ndarray
NEWTON = 60
"""The most Newton steps in one call."""
SLOW = 0.1
"""A step that leaves more than this part of the residual shows that the Hessian is out of date."""
HELD = 2048
"""The largest matrix to invert, by coordinates or by samples; beyond it, conjugate gradients."""
CG_ACCURACY, CG_STEPS = 0.03, 500
"""Relative residual, and the most steps, of conjugate gradients."""
ROUGH = 0.1
"""A centre of intercepts moves once the error of the point is at most this part of the way that it would move."""

Spend = Callable[[int], None]


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

    def inverse(self, x: Array, spend: Spend) -> Callable[[Array], Array]:
        """Return e -> H^-1 e for the Hessian H at x.

        `spend` is told what it costs in gradients: a matrix its columns, and a product with the Hessian one.
        """
        spend(self.dim)
        inverse = np.linalg.inv(self.hessian(x))
        return lambda e: np.asarray(inverse @ e)


class SampleFunction(Function):
    """weight * (mean over samples of loss(a_j'x, b_j) + l2 |x|^2 / 2).

    With a vector for each class, x holds the vectors one after the other.
    """

    def __init__(
        self, loss: Loss, features: Any, targets: Array, l2: float, weight: float = 1.0, vectors: int = 1
    ) -> None:
        if not 0 < l2 < np.inf:
            raise InputError(f"l2 must be positive and finite, got {l2!r}; e.g. l2 = 0.01")
        self._a: Any = features if is_sparse(features) else np.asarray(features, dtype=float)
        self._b, self._l2, self._weight = np.asarray(targets, dtype=float), float(l2), float(weight)
        if self._a.ndim != 2 or self._b.shape != self._a.shape[:1] or not self._b.size:
            raise InputError(
                f"features must be (samples, dim) and labels (samples,), got {self._a.shape} and {self._b.shape}; "
                "check that they describe the same samples"
            )
        values = self._a.data if is_sparse(self._a) else self._a
        if not (np.isfinite(values).all() and np.isfinite(self._b).all()):
            raise InputError("features and labels must be finite numbers; drop the samples that are not")
        if flaw := loss.flaw(self._b):
            raise InputError(flaw)
        self.loss, self._vectors = loss, vectors
        self.samples, self.dim = self._a.shape[0], vectors * self._a.shape[1]
        top = float(largest_curvature(self._a, np.array([self.samples]))[0])
        self.mu = self._weight * self._l2
        self.L = self._weight * (self._l2 + loss.steepest * top)
        self._lengths = lengths_of(self._a)
        self.reach = float(self._lengths.max())
        self.bend = loss.twist * self.reach
        self.unit = 1.0 if loss.classes else float(self._b.std()) or 1.0
        self.data = crc32(repr((self._a.shape, l2, weight)).encode(), crc32(values.tobytes(), crc32(self._b.tobytes())))

    def _margins(self, x: Array) -> Array:
        return np.asarray(self._a @ (x.reshape(self._vectors, -1).T if self.loss.coupled else x))

    def gradient(self, x: Array) -> Array:
        """Return the gradient."""
        sums = (self._a.T @ self.loss.slope(self._margins(x), self._b)).T
        if self.loss.coupled:
            sums = (sums - sums.mean(axis=0)).ravel()  # the sum is 0 but for rounding, which only l2 would keep small
        return np.asarray(self._weight * (sums / self.samples + self._l2 * x))

    def noise(self, x: Array) -> float:
        """Return how far rounding may move the gradient, if errors add up as random ones do."""
        size = float(np.linalg.norm(x))
        mean = terms(self.loss, self._margins(x), self._b, self._lengths, size) / self.samples
        return noise_of(self._weight * (mean + self._l2 * size), self.samples, self.dim)

    def columns(self, x: Array, which: Array) -> Array:
        """Return some columns of the Hessian, as products with unit vectors."""
        product, columns = self._product(x), np.zeros((self.dim, len(which)))
        for place, each in enumerate(which):
            columns[:, place] = product(np.eye(1, self.dim, each)[0])
        return columns

    def hessian(self, x: Array) -> Array:
        """Return the Hessian, block by block if there is a vector for each class."""
        sums = hessian_sum(self._a, self.loss.bends(self._margins(x), self._b), self._vectors)
        return np.asarray(self._weight * (sums / self.samples + self._l2 * np.eye(self.dim)))

    def inverse(self, x: Array, spend: Spend) -> Callable[[Array], Array]:
        """Return e -> H^-1 e, from the smaller of A'A and A A', or by conjugate gradients if both are large."""
        if self.dim <= (HELD if self.loss.coupled else min(self.samples, HELD)):
            return super().inverse(x, spend)
        if self.loss.coupled or self.samples > HELD:
            product = self._product(x)

            def counted(v: Array) -> Array:
                spend(1)
                return product(v)

            return lambda e: conjugate_gradients(counted, e, CG_ACCURACY, CG_STEPS)
        spend(self.samples)
        s = scaled_rows(self._a, np.sqrt(self.loss.curvature(self._margins(x), self._b) / self.samples))
        inverse = np.linalg.inv(dense(s @ s.T) + self._l2 * np.eye(self.samples))
        return lambda e: np.asarray((e - s.T @ (inverse @ (s @ e))) / (self._weight * self._l2))

    def _product(self, x: Array) -> Callable[[Array], Array]:
        """Return v -> H v for the Hessian H at x."""
        bends = self.loss.bends(self._margins(x), self._b)

        def product(v: Array) -> Array:
            sums = self._a.T @ bends(self._margins(v))
            return np.asarray(self._weight * (sums.T.ravel() / self.samples + self._l2 * v))

        return product


def from_samples(kind: str, features: Any, labels: Array, l2: float, count: str, classes: Any = None) -> Function:
    """Return the function of one agent's samples.

    Parameters
    ----------
    kind : str
        Name of a loss for numbers or for two classes.
    count : str
        "nodes": every agent counts alike; "samples": every sample does.
    classes : (smaller, larger), optional
        The two labels; -1 and 1 by default.
    """
    if kind not in models():
        raise InputError(f"unknown problem {kind!r}; {nearest(kind, models())}")
    loss, labels = LOSSES[kind], np.asarray(labels, dtype=float)
    if loss.classes:
        smaller, larger = (-1.0, 1.0) if classes is None else (float(value) for value in classes)
        odd = (labels != smaller) & (labels != larger)
        if odd.any():
            raise InputError(
                f"labels must be {smaller:g} or {larger:g}, got {labels[odd][0]:g}; name both, as classes = [0, 1]"
            )
        labels = loss.coded(labels == larger)
    return SampleFunction(loss, features, labels, l2, float(len(labels)) if count == "samples" else 1.0)


def from_prepared(agreed: Agreed, shard: NodeShard) -> Function:
    """Return the function of a shard that was prepared together with others: the f_i of `Agreed.problem`."""
    table, targets = agreed.table(shard), agreed.targets(shard)
    weight = len(agreed.counts) * len(targets) / agreed.samples if agreed.count == "samples" else 1.0
    return SampleFunction(agreed.loss, table, targets, agreed.l2 / weight, weight, agreed.vectors)


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
    >>> inner = from_samples("ridge", np.zeros((1, 2)), np.zeros(1), 1.0, "nodes")
    >>> Free(inner, 1.0, np.array([0.0, 1.0])).hessian(np.zeros(2)).tolist()
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
        return self._inner.noise(x) + float(ULP * np.linalg.norm(self._taken * x))


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


class AgentOracle:
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

    def _spend(self, gradients: int) -> None:
        self.gradients += gradients

    def _solve(self, z: Array) -> Array:
        """Solve grad f(x) = z by Newton steps: keep a Hessian while it works, damp the steps where a new one fails."""
        f, x = self.function, self._x

        def residual(x: Array) -> Array:
            return np.asarray(self._gradient(x) - z)

        e = residual(x)
        size = float(np.linalg.norm(e))
        rounding = 4 * ULP * float(size + np.linalg.norm(z) + f.L * np.linalg.norm(x))
        enough = rounding if self.exact else max(ACCURACY * float(np.linalg.norm(z - self._z)), rounding)
        for _ in range(NEWTON):
            if size <= enough:
                break
            kept, near = self._inverse, size <= NEAR_ROUNDING * rounding
            self._inverse = inverse = f.inverse(x, self._spend) if kept is None else kept
            found = damped_step(residual, x, e, inverse(e), SHORTEST if kept is None and not near else 1.0)
            if found is None and (kept is None or near):
                break
            before = size
            if found is not None:
                x, e = found
                size = float(np.linalg.norm(e))
            if found is None or size > SLOW * before:
                self._inverse = None  # its Hessian is out of date
        self._x, self._z = x, np.array(z)
        return x
