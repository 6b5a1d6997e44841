"""Time one round of ADOM against a plain NumPy loop and against streaming the data once.

Run: ``make bench`` or ``python benchmarks/round.py``. All three are timed in turn, several times over, in one
process on one thread, and compared as ratios of their medians: absolute times mean little on a shared machine.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import argparse
import json
from time import perf_counter

import jax
import numpy as np
from sklearn.datasets import make_classification

import adom
from adom.engine.compiled import Session
from adom.engine.local import observe_iterate
from adom.problems.oracles import OracleSpec

NODES, SAMPLES = 100, 100


def numpy_loop(problem, network, method):
    """Return a function that runs ADOM with one gradient step per round, as one would write it in NumPy."""
    S, L, r = problem.features.signed, problem.L, problem.l2
    W = [network.matrix(k) for k in range(network.period)]
    shape = (problem.nodes, problem.dim)

    def run(rounds: int):
        z = z_f = m = x = np.zeros(shape)
        for k in range(rounds):
            z_g = method.tau * z + (1 - method.tau) * z_f
            margins = (S @ x[:, :, None])[:, :, 0]
            slopes = -1 / (1 + np.exp(margins)) / SAMPLES
            gradient = (slopes[:, None, :] @ S)[:, 0, :] + r * x
            x = x - (gradient - z_g) / L
            Wk = W[k % network.period]
            delta = method.sigma * (Wk @ (m - method.eta * x))
            m = m - method.eta * x - delta
            z = z + method.eta * method.alpha * (z_g - z) + delta
            z_f = z_g - method.theta * (Wk @ x)
        return x

    return run


def measure(dim: int, rounds: int, repeats: int) -> dict[str, float]:
    A, b = make_classification(NODES * SAMPLES, dim, random_state=0)
    problem = adom.LogisticRegression(A, b, nodes=NODES, kappa=100.0)
    network = adom.networks.geometric(NODES, 0.33, graphs=100, seed=0)
    method = adom.ADOM.theory(adom.constants(problem, network))
    plain = numpy_loop(problem, network, method)
    flat = np.ascontiguousarray(problem.features.signed).ravel()
    with jax.enable_x64(True):
        session = Session(problem, network, [method], OracleSpec("gd", 1), slots=1, observe=observe_iterate)
        seen = session.chunk(1, rounds, rounds)
        assert np.allclose(np.asarray(seen[-1])[0], plain(rounds), rtol=1e-9, atol=1e-12)
        times: dict[str, list[float]] = {"adom": [], "numpy": [], "stream": []}
        for _ in range(repeats):
            for name, work in (
                ("adom", lambda: session.chunk(1, rounds, 10**9)),
                ("numpy", lambda: plain(rounds)),
                ("stream", lambda: [flat @ flat for _ in range(rounds)]),  # reads the features once
            ):
                began = perf_counter()
                work()
                times[name].append((perf_counter() - began) / rounds)
    median = {name: float(np.median(values)) for name, values in times.items()}
    return {
        "dim": dim,
        "microseconds_adom": 1e6 * median["adom"],
        "adom_over_numpy": median["adom"] / median["numpy"],
        "adom_over_stream": median["adom"] / median["stream"],
        "numpy_over_stream": median["numpy"] / median["stream"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measure(dim, options.rounds, options.repeats) for dim in (40, 100)]
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"one round at n = {NODES}, m = {SAMPLES}, one gradient a round, one thread, float64; ratios of medians")
    print(f"{'d':>4} {'adom / numpy':>13} {'adom / stream':>14} {'numpy / stream':>15}")
    for row in rows:
        ratios = (row["adom_over_numpy"], row["adom_over_stream"], row["numpy_over_stream"])
        print(f"{row['dim']:4} {ratios[0]:13.2f} {ratios[1]:14.2f} {ratios[2]:15.2f}")


if __name__ == "__main__":
    main()
