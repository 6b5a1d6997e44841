"""What the benchmarks share: a problem of the paper's size, a plain NumPy loop, and timing that bears a busy machine.

Everything is reported as ratios within one run. What is compared is timed in turn, in short pieces, many times over;
of each the best time counts, since whatever else runs on the machine can only add to it.
"""

import json
import os
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


def one_core() -> None:
    """Keep this process on one core; to be called before JAX or NumPy is imported."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.environ.update(dict.fromkeys(THREADS, "1"))


def best_times(works: dict[str, tuple[Callable[[], Any], int]], repeats: int = 15) -> dict[str, float]:
    """Return the best seconds per unit of each work, a pair of a function and the units that a call does."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for work, _ in works.values():
        work()
    for _ in range(repeats):
        for name, (work, units) in works.items():
            began = perf_counter()
            work()
            times[name].append((perf_counter() - began) / units)
    return {name: min(values) for name, values in times.items()}


def classification(nodes: int, samples: int, dim: int, seed: int = 0):
    """Return features and labels of a synthetic problem, quickly also for millions of samples."""
    import numpy as np

    rng = np.random.default_rng(seed)
    features = rng.standard_normal((nodes * samples, dim))
    labels = np.where(features @ rng.standard_normal(dim) + rng.standard_normal(nodes * samples) > 0, 1, -1)
    return features, labels


def paper_size(dim: int = 40, samples: int = 100, nodes: int = 100, graphs: int = 100):
    """Return problem, network and ADOM with the theorem's parameters."""
    import adom

    problem = adom.LogisticRegression(*classification(nodes, samples, dim), nodes=nodes, kappa=100.0)
    network = adom.networks.geometric(nodes, 0.33, graphs=graphs, seed=0)
    return problem, network, adom.ADOM.theory(adom.constants(problem, network))


def session(problem: Any, network: Any, methods: Any, *, slots: int = 1, dtype: str = "float64"):
    """Return a session of the engine with one gradient a round; to be used inside ``jax.enable_x64(True)``."""
    from adom.run.local.backend import observe_iterate
    from adom.run.local.jitted import Session
    from adom.run.request import OracleSpec

    spec = OracleSpec("gd", 1)
    return Session(problem, network, methods, spec, slots=slots, dtype=dtype, observe=observe_iterate)


def rounds_of(running: Any, rounds: int) -> tuple[Callable[[], Any], int]:
    """Return a work that makes some rounds of a session, and their number."""
    running.prepare(1, rounds)
    return lambda: running.chunk(1, rounds, 10**12), rounds


def numpy_loop(problem: Any, network: Any, method: Any) -> Callable[[int], Any]:
    """Return a function that runs ADOM with one gradient step a round, as one would write it in NumPy."""
    import numpy as np

    S, L, r = problem.features.signed, problem.L, problem.l2
    W = [network.matrix(k) for k in range(network.period)]
    samples = S.shape[1]

    def run(rounds: int):
        z = z_f = m = x = np.zeros((problem.nodes, problem.dim))
        for k in range(rounds):
            z_g = method.tau * z + (1 - method.tau) * z_f
            margins = (S @ x[:, :, None])[:, :, 0]
            slopes = -1 / (1 + np.exp(margins)) / samples
            gradient = (slopes[:, None, :] @ S)[:, 0, :] + r * x
            x = x - (gradient - z_g) / L
            Wk = W[k % network.period]
            delta = method.sigma * (Wk @ (m - method.eta * x))
            m = m - method.eta * x - delta
            z = z + method.eta * method.alpha * (z_g - z) + delta
            z_f = z_g - method.theta * (Wk @ x)
        return x

    return run


def stream(problem: Any) -> tuple[Callable[[], Any], int]:
    """Return a work that reads the features once, as a float64 dot product with themselves, ten times over."""
    flat = problem.features.signed.ravel()
    return lambda: [flat @ flat for _ in range(10)], 10


def finish(rows: list[dict[str, Any]]) -> None:
    """Hand the rows of a benchmark over to whoever started it."""
    json.dump(rows, sys.stdout)
    print()
