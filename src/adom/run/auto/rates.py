"""The rate of a method on a perfect network, which every node can compute by itself."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np

from ...algorithms import Method

UNMOVED = 1e-9
"""The distance from 1 of an eigenvalue that belongs to a conserved sum."""


class Scalars:
    """The oracle of the functions h_i x^2 / 2, one a column."""

    def __init__(self, curvature: Any) -> None:
        self.curvature = curvature

    def gradient(self, x: Any) -> Any:
        """Return h x."""
        return self.curvature * x

    def dual_gradient(self, z: Any) -> Any:
        """Return z / h."""
        return z / self.curvature


class _OneMode:
    """A network on which the rows of a column lie along one eigenvector of W."""

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


def perfect_rate(method: Method, curvatures: Iterable[float], lambda_max: float) -> float:
    """Return the rate at which distances shrink in a round where every round averages fully, worst over curvatures.

    No network lets a method with these parameters go faster for long, so a canary that seems to is still at its start.

    Examples
    --------
    >>> from adom.algorithms import Constants, method_class
    >>> careful, bold = (method_class("adom").unit(Constants(1.0, 100.0, 1 / chi, 1.0)) for chi in (40.0, 4.0))
    >>> round(perfect_rate(careful, [1.0, 100.0], 1.0), 4), round(perfect_rate(bold, [1.0, 100.0], 1.0), 4)
    (0.0032, 0.0303)
    """
    modes = (lambda_max,) if method.oracle == "dual" else (0.0, lambda_max)  # the mean of dual rows is always zero
    pairs = np.array(list(product(curvatures, modes)))
    start: Any = method.init(np.zeros((1, 1)), Scalars(1.0))
    moving = [number for number, part in enumerate(start) if not np.any(part)]  # all but weights of nodes
    size = len(moving)
    h, mode = np.repeat(pairs, size, axis=0).T
    units = np.tile(np.eye(size), len(pairs))[:, None]  # each part of the state by itself, for every pair
    network: Any = _OneMode(mode, lambda_max)
    state = [*start]
    for number, unit in zip(moving, units, strict=True):
        state[number] = unit
    after, _ = method.step(type(start)(*state), Scalars(h), network)
    parts = [np.broadcast_to(after[number], (1, h.size))[0] for number in moving]
    steps = np.stack(parts).reshape(size, len(pairs), size)
    return min(map(_slowest, np.linalg.eigvals(steps.swapaxes(0, 1))))


def _slowest(eigenvalues: Any) -> float:
    """Return the rate of the slowest mode that moves at all."""
    moving = np.abs(eigenvalues[np.abs(eigenvalues - 1) > UNMOVED])
    return float(-np.log(np.maximum(moving.max(), 1e-300))) if moving.size else float("inf")
