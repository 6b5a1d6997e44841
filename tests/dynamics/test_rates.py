"""The rate on a perfect network is what a run there shows."""

import numpy as np
import pytest

from adom.algorithms import Constants, method_class
from adom.dynamics.policy import perfect_rates


class Perfect:
    """Full averaging in every round."""

    def __call__(self, *vectors):
        results = tuple(v - v.mean(axis=0) for v in vectors)
        return results[0] if len(vectors) == 1 else results

    def average(self, *vectors):
        results = tuple(np.broadcast_to(v.mean(axis=0), v.shape) for v in vectors)
        return results[0] if len(vectors) == 1 else results

    def push_pull(self, pulled, pushed):
        return self.average(pulled, pushed)


class Scalars:
    def __init__(self, h):
        self.h = h

    def gradient(self, x):
        return self.h * x

    def dual_gradient(self, z):
        return z / self.h


@pytest.mark.parametrize("name", ["adom", "adom+", "acc-gt", "acc-dngd", "diging", "panda", "push-pull", "dnm"])
@pytest.mark.parametrize("chi", [2.0, 12.0])
def test_a_run_on_a_perfect_network_shrinks_at_the_perfect_rate(name, chi):
    method = method_class(name).unit(Constants(1.0, 10.0, 1 / chi, 1.0, 2))
    curvatures = np.array([1.0, 3.0, 10.0])
    start = np.array([[1.0], [-1.0]]) * np.ones(3)
    oracle, state = Scalars(curvatures), method.init(start, Scalars(curvatures))
    if method.oracle == "primal":  # the mean moves too; what sums to zero does not change
        state = state._replace(x=start + 0.5) if name == "adom+" else method.init(start + 0.5, oracle)
    (rate,) = perfect_rates([method], curvatures, 1.0)
    seen = []
    span = int(8 / rate)
    for k in range(3 * span):
        state, x = method.step(state, oracle, Perfect())
        if k >= span:
            seen.append(np.abs(x).max())
    first, last = max(seen[:span]), max(seen[span:])  # the same phases of a swing in both
    assert np.log(first / last) / span == pytest.approx(rate, rel=0.1)
