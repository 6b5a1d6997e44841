"""Rates of a method on a perfect network, which every node can compute by itself."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from ..algorithms import Constants, Method
from ..algorithms.base import bare, made

UNMOVED = 1e-9
"""An eigenvalue this close to 1 belongs to a conserved sum."""
TRIED, MODES = (5.0, 50.0), (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 1e4)
"""Assumed chis, and ratios of lambda_max to an eigenvalue of W, at which `fails_where_flat` measures growth."""
GREATEST = 1e150
"""Stands for the eigenvalue of a step with infinite or undefined entries."""
GROWS = 1e-6
"""Growth in a round that exceeds rounding."""


class Scalars:
    """Oracle of the functions h_i x^2 / 2, one per column."""

    def __init__(self, curvature: Any) -> None:
        self.curvature = curvature

    def gradient(self, x: Any) -> Any:
        """Return h x."""
        return self.curvature * x

    def dual_gradient(self, z: Any) -> Any:
        """Return z / h."""
        return z / self.curvature


class WideOracle:
    """The run's oracle on the first columns, and the canaries', whose functions are `Scalars`, on the others."""

    def __init__(self, oracle: Any, curvature: Any) -> None:
        self.oracle, self.curvature = oracle, curvature

    def gradient(self, x: Any) -> Any:
        """Return the gradients of all columns."""
        return self._joined(x, self.oracle.gradient, Scalars(self.curvature).gradient)

    def dual_gradient(self, z: Any) -> Any:
        """Return the gradients of the conjugates."""
        return self._joined(z, self.oracle.dual_gradient, Scalars(self.curvature).dual_gradient)

    def _joined(self, rows: Any, run: Callable[[Any], Any], canaries: Callable[[Any], Any]) -> Any:
        count, library = self.curvature.shape[-1], rows.__array_namespace__()  # NumPy's, or JAX's
        return library.concat([run(rows[:, :-count]), canaries(rows[:, -count:])], axis=1)


class _OneMode:
    """A network seen by columns that are eigenvectors of W: a round multiplies each by a number."""

    def __init__(self, eigenvalues: Any, lambda_max: float) -> None:
        self._w, self._m = eigenvalues, 1 - eigenvalues / lambda_max

    def __call__(self, *vectors: Any) -> Any:
        results = tuple(self._w * v for v in vectors)
        return results[0] if len(vectors) == 1 else results

    def average(self, *vectors: Any) -> Any:
        results = tuple(self._m * v for v in vectors)
        return results[0] if len(vectors) == 1 else results

    def push_pull(self, pulled: Any, pushed: Any) -> Any:
        return self._m * pulled, self._m * pushed

    def push(self, *vectors: Any) -> Any:
        return tuple(v if v.shape[-1] == 1 else self._m * v for v in vectors)  # weights of nodes stay at 1


def perfect_rates(methods: Sequence[Method], curvatures: Sequence[float] | np.ndarray, lambda_max: float) -> np.ndarray:
    """Return, for each setting of one method, how fast distances shrink per round if every round averages fully.

    The rate is the worst over the curvatures. No network allows a higher rate for long, so a canary that shows one is
    still in its transient.

    Examples
    --------
    >>> from adom.algorithms import Constants, method_class
    >>> careful, bold = (method_class("adom").unit(Constants(1.0, 100.0, 1 / chi, 1.0)) for chi in (40.0, 4.0))
    >>> perfect_rates([careful, bold], [1.0, 100.0], 1.0).round(4).tolist()
    [0.0032, 0.0303]
    """
    modes = (lambda_max,) if type(methods[0]).oracle == "dual" else (0.0, lambda_max)  # the mean of dual rows is zero
    worst: np.ndarray = _slowest(_eigenvalues(methods, curvatures, modes, lambda_max)).min(axis=1)
    return worst


def fails_where_flat(cls: type[Method], constants: Constants) -> bool:
    """Return whether a method that assumes too small a chi grows fastest where functions are flattest, not steepest.

    A method that grows at no single eigenvalue of W fails only because nodes differ: a dual method where functions are
    flattest, any other where they are steepest.

    Examples
    --------
    >>> from adom.algorithms import method_class
    >>> [fails_where_flat(method_class(name), Constants(1.0, 100.0, 1.0, 1.0)) for name in ("adom", "adom+", "acc-gt")]
    [True, True, False]
    """
    top = constants.lambda_max
    methods = [made(cls, "unit", replace(constants, lambda_min_plus=top / chi)) for chi in TRIED]
    ends, modes = (constants.mu, constants.L), [top / mode for mode in MODES]
    rates = _slowest(_eigenvalues(methods, ends, modes, top)).reshape(len(TRIED), len(ends), len(MODES))
    flat, steep = -rates.min(axis=(0, 2))
    return bool(flat > steep) if max(flat, steep) > GROWS else cls.oracle == "dual"


def _eigenvalues(
    methods: Sequence[Method], curvatures: Sequence[float] | np.ndarray, modes: Sequence[float], lambda_max: float
) -> np.ndarray:
    """Return a step's eigenvalues for each method and each pair of a curvature and an eigenvalue of W."""
    pairs = np.array(list(product(curvatures, modes)))
    start: Any = methods[0].init(np.zeros((1, 1)), Scalars(1.0))
    moving = [number for number, part in enumerate(start) if not np.any(part)]  # all but weights of nodes
    size = len(moving)
    h, mode = np.tile(np.repeat(pairs, size, axis=0), (len(methods), 1)).T
    units = np.tile(np.eye(size), len(methods) * len(pairs))[:, None]  # one part of the state at a time, for all pairs
    network: Any = _OneMode(mode, lambda_max)
    state = [*start]
    for number, unit in zip(moving, units, strict=True):
        state[number] = unit
    settings = [method.parameters() for method in methods]
    columns = {name: np.repeat([values[name] for values in settings], len(pairs) * size) for name in settings[0]}
    after, _ = bare(type(methods[0]), columns.items()).step(type(start)(*state), Scalars(h), network)
    parts = [np.broadcast_to(after[number], (1, h.size))[0] for number in moving]
    steps = np.stack(parts).reshape(size, len(methods), len(pairs), size)
    known = np.isfinite(steps).all(axis=(0, 3))[..., None]  # a step that overflows grows without bound
    found = np.linalg.eigvals(np.where(known[..., None], steps.transpose(1, 2, 0, 3), 0.0))
    return np.where(known, found, GREATEST)


def _slowest(eigenvalues: np.ndarray) -> np.ndarray:
    """Return the rate of each step's slowest mode, conserved sums left out."""
    sizes = np.where(np.abs(eigenvalues - 1) > UNMOVED, np.abs(eigenvalues), -1.0).max(axis=-1)
    return np.where(sizes < 0, np.inf, -np.log(np.maximum(sizes, 1e-300)))
