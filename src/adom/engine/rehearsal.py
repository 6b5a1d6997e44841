"""How exact the `auto` oracle has to be: a dress rehearsal on quadratics with the run's own constants.

Too few inner steps let the answer grad F*(z) lag behind z, which slows a dual method down or makes it diverge;
too many cost gradients and gain nothing. What is right depends on the method, its parameters, kappa and the
sequence of graphs, and no formula covers all of these. So the method itself is run beforehand where a gradient
costs nothing: on separable quadratics whose curvatures span [mu, L], over the very graphs of the run, for many
numbers T of inner steps at once. No gradient of the real problem is spent. The T that reaches the target with the
fewest inner gradients becomes the cap; the lag at which the next smaller T ran, which was too much, says how much
lag to allow (`adom.problems.oracles.auto_steps` says how the two are used).

On a quadratic of curvature h, T inner steps from x_0 end at x + p_T(h) (x_0 - x), x being the exact answer and
p_T a known polynomial, so a rehearsed round costs one multiplication by W(k), whatever T is.
"""

from collections.abc import Callable
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from ..algorithms import Constants, Method
from ..networks import Network
from ..problems.oracles import SMOOTHING, Accuracy

Array = Any
CANDIDATES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256, 512)
CURVATURES = 8  # the quadratics of a rehearsal, evenly spaced on a logarithmic scale
MORE_CURVATURES = 32  # to tell finely where a method beyond its theorem begins to fail
ROUNDS = 2000
TARGET = 1e-8  # the relative error up to which gradients are compared
LONGEST = 2**31 - 1  # rounds, so that counting them fits whatever kappa is
HARDLY = 0.005  # the lag allowed where the rehearsal could not be of the whole play
REAL_NODES = 300  # beyond, the network is stood in for by the eigenvalues it may have


def rehearse(method: Method, constants: Constants, network: Network) -> Accuracy:
    """Return how exact the oracle has to be for this method on this network."""
    errors, lags = _perform(method, constants, network, CURVATURES, constants.mu)
    beyond = not _converges(errors)
    if beyond:
        play = partial(_perform, method, constants, network, MORE_CURVATURES)
        floor = _easier(play, constants)
        if floor >= constants.L:  # not even the exact oracle works on any quadratic: be as exact as can be
            return Accuracy(cap=CANDIDATES[-1], lag=0.0, patience=500)
        errors, lags = play(floor)
    rounds, rates = zip(*(_rounds_needed(column) for column in errors.T), strict=True)
    best = int(np.argmin(np.array(CANDIDATES) * np.array(rounds[:-1])))
    # The next smaller candidate was too inexact: three quarters of its lag are safe.
    lag = HARDLY if beyond else 0.75 * _median(lags[len(lags) // 2 :, max(best - 1, 0)])
    # Four times what halving the distance took here, and not less than the theorem's own time scale.
    halving = 2 * np.log(2) / max(rates[best], 1e-6)
    patience = max(4 * halving, 0 if beyond else 7 * constants.chi * sqrt(constants.kappa), 100)
    cap = CANDIDATES[best] * (2 if beyond else 1)  # where it was an easier play that was rehearsed, leave a margin
    return Accuracy(cap=cap, lag=lag, patience=int(min(patience, LONGEST)))


def _easier(play: Callable[[float], tuple[np.ndarray, np.ndarray]], constants: Constants) -> float:
    """Return a smallest curvature at which the exact oracle converges, with a margin.

    With parameters beyond the theorem's, even the exact oracle may fail on curvatures near mu. A real run can then
    only work if its data do not stir those, so they are left out, as few as possible: the lowest that works is
    found to within a factor of 2^(1/4), and raised by 2^(1/2).
    """
    fails, works = constants.mu, 2 * constants.mu
    while works < constants.L and not _converges(play(works)[0]):
        fails, works = works, 2 * works
    for _ in range(2):
        middle = sqrt(fails * works)
        if _converges(play(middle)[0]):
            works = middle
        else:
            fails = middle
    return sqrt(2) * works


def _converges(errors: np.ndarray) -> bool:
    """Whether the exact oracle, the last column, got anywhere."""
    return bool(np.isfinite(_rounds_needed(errors[:, -1])[0]))


def _perform(
    method: Method, constants: Constants, network: Network, curvatures: int, floor: float
) -> tuple[np.ndarray, np.ndarray]:
    """Run all candidates; return relative errors and lags, one row a round, one column a candidate.

    The last column is the exact oracle's.
    """
    rows, gossip = _stage(network)
    rng = np.random.default_rng(0)
    h = np.geomspace(floor, constants.L, curvatures)
    c = h * (1 + rng.standard_normal((rows, curvatures)))
    oracle = _Oracle(h, c, constants)
    answer = np.broadcast_to(gossip.mean(c) / h, c.shape)
    start = (answer**2).sum()
    errors, lags = [], []
    with np.errstate(all="ignore"):  # some candidates diverge: that is what we want to know
        state = method.init(np.zeros((len(CANDIDATES) + 1, rows, curvatures)), oracle)
        for k in range(ROUNDS):
            state, x = method.step(state, oracle, gossip)
            errors.append(((x - answer) ** 2).sum(axis=(-2, -1)) / start)
            lags.append(np.median(oracle.lag, axis=-1))
            if k % 50 == 49 and (errors[-1] <= TARGET).all():
                break
    return np.array(errors), np.array(lags)


def _median(values: np.ndarray) -> float:
    values = values[np.isfinite(values)]
    return float(np.median(values)) if values.size else 0.0


def _rounds_needed(errors: np.ndarray) -> tuple[float, float]:
    """Return the rounds to the target, extrapolated where it was not reached, and the rate per round."""
    quarter = len(errors) // 4
    before, after = errors[2 * quarter : 3 * quarter].max(), errors[3 * quarter :].max()
    with np.errstate(all="ignore"):
        rate = float(np.log(before / after) / quarter)
    hits = np.flatnonzero(errors <= TARGET)
    if hits.size:
        return float(hits[0] + 1), float(-np.log(TARGET) / (hits[0] + 1))
    if not 0 < rate < np.inf:
        return np.inf, -np.inf
    return len(errors) + float(np.log(after / TARGET)) / rate, rate


class _Oracle:
    """All candidates at once, each on its own page of arrays of shape (candidates + 1, rows, curvatures)."""

    def __init__(self, h: np.ndarray, c: np.ndarray, constants: Constants) -> None:
        self.h, self.c = h, c
        self.left, self.tested = inner_factors(h, constants.mu, constants.L)
        self.x: Array = 0.0
        self.z: Array = 0.0
        self.scale: Array = 0.0
        self.lag: Array = 0.0

    def dual_gradient(self, z: Array) -> Array:
        exact = (z + self.c) / self.h
        residual = self.h * self.tested * (self.x - exact)
        moved = np.sqrt(((z - self.z) ** 2).sum(axis=-1))
        self.scale = SMOOTHING * self.scale + (1 - SMOOTHING) * moved
        self.lag = np.sqrt((residual**2).sum(axis=-1)) / self.scale
        self.z = z
        self.x = exact + self.left * (self.x - exact)
        return self.x

    def gradient(self, x: Array) -> Array:
        return self.h * x - self.c


def inner_factors(h: np.ndarray, mu: float, L: float) -> tuple[np.ndarray, np.ndarray]:
    """Return what T accelerated steps leave of the distance, and what was left where the last gradient was taken.

    Both of shape (candidates + 1, 1, curvatures); the last candidate leaves nothing.
    """
    beta = (sqrt(L / mu) - 1) / (sqrt(L / mu) + 1)
    x = y = np.ones_like(h)
    left, tested = [], []
    for T in range(1, CANDIDATES[-1] + 1):
        x_next = y - h * y / L
        if T in CANDIDATES:
            left.append(x_next)
            tested.append(y)
        x, y = x_next, x_next + beta * (x_next - x)
    nothing = np.zeros_like(h)
    return np.stack([*left, nothing])[:, None, :], np.stack([*tested, nothing])[:, None, :]


class _Gossip:
    def __init__(self, times: Callable[[int, Array], Array], lambda_max: float, mean: Callable[[Array], Array]) -> None:
        self.times, self.lambda_max, self.mean = times, lambda_max, mean
        self.clock = 0

    def __call__(self, *vectors: Array) -> Any:
        mixed = self.times(self.clock, np.concatenate(vectors, axis=-1))
        self.clock += 1
        return mixed if len(vectors) == 1 else tuple(np.split(mixed, len(vectors), axis=-1))

    def average(self, *vectors: Array) -> Any:
        mixed = self(*vectors)
        if len(vectors) == 1:
            return vectors[0] - mixed / self.lambda_max
        return tuple(v - w / self.lambda_max for v, w in zip(vectors, mixed, strict=True))

    def mix(self, v: Array, rounds: Any) -> Array:
        for _ in range(int(rounds)):
            v = self.average(v)
        return v

    def push_pull(self, pulled: Array, pushed: Array) -> tuple[Array, Array]:
        raise NotImplementedError  # no dual method runs on directed graphs

    def project(self, v: Array) -> Array:
        self.clock += 1
        return v - self.mean(v)


def _stage(network: Network) -> tuple[int, _Gossip]:
    """Return rows and gossip: the network itself, or for a large one its range of eigenvalues.

    On one eigenvector of a graph, W is multiplication by its eigenvalue. A row for every eigenvalue of a grid,
    and one for the consensus direction, where W is zero, stand in for a network that does not change, at a cost
    that does not grow with the number of nodes.
    """
    if network.nodes <= REAL_NODES:
        matrices: dict[int, Array] = {}

        def times(k: int, v: Array) -> Array:
            g = int(network.order[k % network.period])
            if g not in matrices:
                matrices[g] = network.matrix(k)
            return matrices[g] @ v

        return network.nodes, _Gossip(times, network.lambda_max, lambda v: v.mean(axis=-2, keepdims=True))
    spectrum = np.append(np.geomspace(network.lambda_min_plus, network.lambda_max, 23), 0.0)[:, None]
    consensus = (spectrum == 0.0).astype(float)
    return spectrum.size, _Gossip(lambda _, v: spectrum * v, network.lambda_max, lambda v: consensus * v)
