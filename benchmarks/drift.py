"""Run ADOM and ADOM+ for a million rounds and see whether they stay at their floor of rounding.

Run: ``make bench-drift`` or ``python benchmarks/drift.py [--rounds 1000000]``. Errors are squared distances to the
solution over those of the start: the least of the first tenth of the records, and the largest of the last half.
"""

import argparse

import numpy as np

import adom

NODES, DIM = 8, 5
NETWORKS = {
    "ring": lambda: adom.networks.ring(NODES),
    "erdos_renyi": lambda: adom.networks.erdos_renyi(NODES, 0.4, graphs=50, seed=1),
    "complete": lambda: adom.networks.complete(NODES),
}


def quadratics(kappa):
    """Return a problem whose every f_i has eigenvalues from 1 to kappa in directions of its own."""
    rng = np.random.default_rng(0)
    bases = np.linalg.qr(rng.standard_normal((NODES, DIM, DIM)))[0]
    H = bases * np.geomspace(1, kappa, DIM) @ bases.transpose(0, 2, 1)
    return adom.Quadratic((H + H.transpose(0, 2, 1)) / 2, kappa * rng.standard_normal((NODES, DIM)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1_000_000)
    rounds = parser.parse_args().rounds
    print("| network | kappa | method | parameters | precision | least in the first tenth | largest in the last half |")
    print("| --- | --: | --- | --- | --- | --: | --: |")
    for name, network in NETWORKS.items():
        for kappa in (10, 100, 1000):
            problem = quadratics(kappa)
            start = NODES * float((problem.solution() ** 2).sum())
            for method, protocol in (("adom", "theory"), ("adom", "unit"), ("adom+", "theory")):
                for dtype in ("float64", "float32"):
                    run = {"rounds": rounds, "record_every": max(1, rounds // 200), "dtype": dtype, "progress": False}
                    result = adom.solve(problem, network(), method, protocol, **run)
                    errors = result.history["error"].to_numpy() / start
                    floor, later = errors[:20].min(), errors[100:].max()
                    print(
                        f"| {name} | {kappa} | {method} | {protocol} | {dtype} | {floor:.1e} | {later:.1e} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
