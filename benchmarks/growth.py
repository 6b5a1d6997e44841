"""How the cost of a round grows with nodes, samples, features, links and settings, one at a time, on one core."""

from dataclasses import replace

from common import best_times, classification, finish, one_core, rounds_of, session

USUAL = {"nodes": 100, "samples": 100, "dim": 40, "degree": 8, "settings": 1}
GROWN = {
    "nodes": (25, 50, 100, 200, 400, 800),
    "samples": (12, 25, 50, 100, 200, 400, 800),
    "dim": (5, 10, 20, 40, 80, 160, 320),
    "degree": (4, 8, 16, 32, 64),
    "settings": (1, 2, 4, 8, 16, 32, 64),
}


def cost(nodes: int, samples: int, dim: int, degree: int, settings: int) -> float:
    import jax
    import numpy as np

    import adom

    problem = adom.LogisticRegression(*classification(nodes, samples, dim), nodes=nodes, kappa=100.0)
    network = adom.networks.expander(nodes, degree, graphs=10, seed=0)
    method = adom.ADOM.theory(adom.constants(problem, network))
    many = [replace(method, eta=method.eta * factor) for factor in np.geomspace(0.9, 1.1, settings)]
    rounds = max(2, int(2e7 / (nodes * samples * dim * settings + 1e5)))
    with jax.enable_x64(True):
        return best_times({"one": rounds_of(session(problem, network, many), rounds)}, repeats=7)["one"]


def main() -> None:
    one_core()
    rows = []
    for what, values in GROWN.items():
        for value in values:
            rows.append({"what": what, "value": value, "us": 1e6 * cost(**{**USUAL, what: value})})
    finish(rows)


if __name__ == "__main__":
    main()
