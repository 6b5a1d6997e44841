"""Lost messages and nodes: every method as printed and healing, the table of docs/loss.md, and its picture.

Run: ``make bench-loss`` or ``python benchmarks/loss.py [--picture FILE | --cost]``. Twenty nodes walk about; f_i are
quadratics with kappa 30. Each run goes on until its error is 1e-12 of its start, or its rounds are spent.
"""

import argparse
from pathlib import Path

import numpy as np

import adom
from adom.algorithms import method_class
from common import classification

NODES, DIM, KAPPA = 20, 5, 30.0
TARGET = 1e-12
LOSSES = (0.0, 0.1, 0.3, 0.5)
ROUNDS = {
    "adom": 5_000, "adom+": 10_000, "diging": 100_000, "acc-gt": 20_000, "acc-dngd": 50_000, "panda": 200_000,
    "dnm": 5_000, "mudag": 20_000, "apm": 20_000,
}  # fmt: skip
DEATHS = 4_000


def quadratic():
    """Return f_i with the same eigenvalues from 1 to kappa and axes of their own."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((NODES, DIM, DIM)))[0]
    H = axes @ (np.linspace(1, KAPPA, DIM)[:, None] * axes.transpose(0, 2, 1))
    return adom.Quadratic(H, rng.standard_normal((NODES, DIM)))


def walking():
    return adom.networks.waypoint(NODES, 0.7, graphs=1000, seed=1, repair=True)


def relative(result):
    return result.history["error"].to_numpy() / result.provenance["start_error"]


def rounds_to_target(problem, network, method):
    """Return the rounds to the target, or the error and the status at the end."""
    tol = TARGET * NODES * float((problem.solution() ** 2).sum())
    result = adom.solve(problem, network, method, "unit", rounds=ROUNDS[method], tol=tol, record_every=10)
    if result.status == "converged":
        return f"{int(result.history['round'].iloc[-1]):,}"
    return f"{relative(result)[-1]:.0e} ({result.status})"


def stays_at(problem, network, method):
    """Return the error at which a run as printed ends."""
    errors = relative(adom.solve(problem, network, method, "unit", rounds=ROUNDS[method] // 2, record_every=10))
    return f"{errors[-1]:.0e}"


def table(problem, network):
    lossy = adom.networks.lossy
    print("| method | " + " | ".join(f"{p:.0%}" for p in LOSSES) + " | as printed, 10% | as printed, 50% |")
    print("| --- |" + " --: |" * (len(LOSSES) + 2))
    for method in ROUNDS:
        healing = [rounds_to_target(problem, lossy(network, p, seed=1), method) for p in LOSSES]
        printed = [stays_at(problem, lossy(network, p, healing=False, seed=1), method) for p in (0.1, 0.5)]
        print(f"| {method_class(method).title} | " + " | ".join(healing + printed) + " |", flush=True)


def with_deaths(problem, network, healing, parameters="unit"):
    """Run ADOM while two nodes die and one joins, with a tenth of the messages lost."""
    coming = {"leaving": {5: 800, 7: 1200}, "joining": {3: 2000}}
    lossy = adom.networks.lossy(network, 0.1, healing, seed=1, **coming)
    return adom.solve(problem, lossy, "adom", parameters, rounds=DEATHS)


def deaths(problem, network):
    print("\n| ADOM, round | 800 | 1,200 | 2,000 | 4,000 |\n| --- | --: | --: | --: | --: |")
    for healing, parameters in ((True, "unit"), (True, "auto"), (False, "unit")):
        errors = relative(with_deaths(problem, network, healing, parameters))
        name = f"{'healing' if healing else 'as printed'}, `{parameters}`"
        print(f"| {name} | " + " | ".join(f"{errors[k - 1]:.0e}" for k in (800, 1200, 2000, 4000)) + " |", flush=True)


def cost(repeats=4, rounds=400):
    """Print how long a round of ADOM takes, relative to one on the network without loss; the best of some runs."""
    for nodes, dim, radius in ((20, 20, 0.6), (100, 40, 0.33)):
        f = adom.LogisticRegression(*classification(nodes, 50, dim), nodes=nodes, kappa=100.0)
        plain = adom.networks.geometric(nodes, radius, graphs=100, seed=0)
        method = method_class("adom").unit(adom.constants(f, plain))
        networks = [plain, adom.networks.lossy(plain, 0.1, healing=False), adom.networks.lossy(plain, 0.1)]
        times = np.full(len(networks), np.inf)
        for _ in range(repeats):
            for i, network in enumerate(networks):
                run = adom.solve(f, network, method, oracle=("gd", 1), rounds=rounds, record_every=100)
                times[i] = min(times[i], run.history["seconds"].iloc[-1])
        printed, healing = times[1:] / times[0]
        print(f"{nodes} nodes, {len(networks[2].linked_pairs)} pairs: as printed {printed:.0f}, healing {healing:.0f}")


def picture(problem, network, path):
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
    for colour, one_way in zip(("C0", "C1", "C2", "C3"), LOSSES, strict=True):
        for healing, style in ((True, "-"), (False, ":")):
            if one_way or healing:
                lossy = adom.networks.lossy(network, one_way, healing, seed=1)
                errors = relative(adom.solve(problem, lossy, "adom", "unit", rounds=3000))
                left.semilogy(errors, style, color=colour, label=f"{one_way:.0%} lost" if healing else None)
    for healing, style in ((True, "-"), (False, ":")):
        errors = relative(with_deaths(problem, network, healing))
        right.semilogy(errors, style, color="C1", label="healing" if healing else "as printed")
    for k, words in ((800, "one leaves"), (1200, "another leaves"), (2000, "one joins")):
        right.axvline(k, color="0.8", zorder=0)
        right.text(k + 40, 3e-26, words, rotation=90, fontsize=7, color="0.4", va="bottom")
    left.set(xlabel="rounds", ylabel="error, relative to the start", ylim=(1e-27, 10), title="messages lost one way")
    right.set(xlabel="rounds", title="10% lost, and nodes come and go")
    left.legend(fontsize=8)
    right.legend(fontsize=8)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, help="write the picture to this file, and no table")
    parser.add_argument("--cost", action="store_true", help="compare times of rounds, and no table")
    arguments = parser.parse_args()
    if arguments.cost:
        cost()
        raise SystemExit
    setting = quadratic(), walking()
    print(f"chi {setting[1].chi:.1f}, window {setting[1].window}, {adom.__version__}")
    if arguments.picture:
        picture(*setting, arguments.picture)
    else:
        table(*setting)
        deaths(*setting)
