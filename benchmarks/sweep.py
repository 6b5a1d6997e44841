"""Many settings at once against one: the round alone, and a whole sweep against a whole run."""

from dataclasses import replace
from time import perf_counter

from common import best_times, finish, one_core, paper_size, rounds_of, session

MANY = 64
ROUNDS = 2000


def main() -> None:
    one_core()
    import jax
    import numpy as np

    import adom

    rows = []
    for dim, samples in ((40, 100), (40, 2500)):
        problem, network, method = paper_size(dim, samples)
        settings = [replace(method, eta=method.eta * factor) for factor in np.geomspace(0.5, 2.0, MANY)]
        few = max(1, 10_000 // (100 * samples)) * 2
        with jax.enable_x64(True):
            works = {
                "one": rounds_of(session(problem, network, [method]), 20 * few),
                "many": rounds_of(session(problem, network, settings), few),
            }
            best = best_times(works, repeats=9)
        flops = 4.0 * problem.features.signed.size
        a = np.random.default_rng(0).standard_normal((800, 800))
        peak = 2 * 800**3 / best_times({"product": (lambda a=a: a @ a, 1)})["product"]
        row = {"what": "round", "dim": dim, "samples": samples, "settings": MANY}
        row |= {"many_over_one": best["many"] / best["one"], "one_us": 1e6 * best["one"], "many_us": 1e6 * best["many"]}
        row |= {
            "arithmetic_limit_over_one": MANY * flops / peak / best["one"],
            "share_of_peak": MANY * flops / best["many"] / peak,
        }
        rows.append(row)
    problem, network, method = paper_size()
    settings = [replace(method, eta=method.eta * factor) for factor in np.geomspace(0.5, 2.0, MANY)]
    problem.solution()

    def whole(work) -> float:
        began = perf_counter()
        work()
        return perf_counter() - began

    options = {"oracle": ("gd", 1), "rounds": ROUNDS, "record_every": 10, "progress": False}
    one = whole(lambda: adom.solve(problem, network, method, **options))
    many = whole(lambda: adom.solve_many(problem, network, settings, **options))
    rows.append(
        {
            "what": f"whole runs of {ROUNDS} rounds, compilation included",
            "dim": 40,
            "samples": 100,
            "settings": MANY,
            "many_over_one": many / one,
        }
    )
    finish(rows)


if __name__ == "__main__":
    main()
