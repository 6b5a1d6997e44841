"""A round on a CPU against reading the data once, and against a plain NumPy loop.

Run by ``make bench``. One core, but for the row that asks what the second one gives. With ``ADOM_NATIVE=0`` the same is
measured without the native kernels.
"""

import argparse

from common import best_times, finish, numpy_loop, one_core, paper_size, rounds_of, session, stream


def measure(dim: int, samples: int, cores: int) -> dict[str, float]:
    import jax
    import numpy as np

    from adom import native

    problem, network, method = paper_size(dim, samples)
    plain = numpy_loop(problem, network, method)
    with jax.enable_x64(True):
        running = session(problem, network, [method])
        assert np.allclose(np.asarray(running.chunk(1, 60, 60)[-1])[0], plain(60), rtol=1e-9, atol=1e-12)
        few = max(3, 4_000_000 // (100 * samples * dim))
        works = {"adom": rounds_of(running, 10 * few), "numpy": (lambda: plain(few), few), "stream": stream(problem)}
        best = best_times(works)
    return {
        "dim": dim,
        "samples": samples,
        "megabytes": problem.features.signed.nbytes / 1e6,
        "cores": cores,
        "native": native.usable(),
        "adom_us": 1e6 * best["adom"],
        "adom_over_stream": best["adom"] / best["stream"],
        "adom_over_numpy": best["adom"] / best["numpy"],
        "numpy_over_stream": best["numpy"] / best["stream"],
        "stream_gigabytes_per_second": problem.features.signed.nbytes / best["stream"] / 1e9,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", type=int, default=1)
    options = parser.parse_args()
    if options.cores == 1:
        one_core()
    finish([measure(dim, samples, options.cores) for dim, samples in ((40, 100), (100, 100), (40, 2500))])


if __name__ == "__main__":
    main()
