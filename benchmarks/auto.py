"""Compare the `auto` oracle with every fixed number of inner steps and with the exact oracle.

Run: ``make bench-auto`` or ``python benchmarks/auto.py [--quick]``. For each setting, a problem, a network and
parameters, every oracle runs ADOM until the error is 1e-8 of its start. Counted are the local gradients of a node,
which do not depend on the machine. The last column is what `auto` cost over what the best fixed oracle cost.

With ``--features 40,120,150,300`` it instead shows what a round costs with more features, on a geometric network:
gradients a round of a node, of the whole run and of its last half, and the time over that of NIDS, which takes one
gradient a round. Both are timed in turn, and the best of three counts. Then chi is not found: parameters are `unit`.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification

import adom
from common import best_times, classification

NODES, SAMPLES, DIM = 30, 30, 10
FIXED = [("gd", T) for T in (1, 2, 3, 5)] + [("agd", T) for T in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48)]
TARGET = 1e-8
net = adom.networks


def problem(kappa: float, split: str = "shuffled"):
    A, b = make_classification(NODES * SAMPLES, DIM, random_state=0)
    if split == "by label":
        order = np.argsort(b, kind="stable")
        A, b = A[order], b[order]
    return adom.LogisticRegression(A, b, nodes=NODES, kappa=kappa)


NETWORKS = {
    "geometric, chi 8, changing": lambda: net.geometric(NODES, 0.6, graphs=200, seed=1),
    "geometric, chi 200, changing": lambda: net.geometric(NODES, 0.35, graphs=200, seed=1),
    "geometric, fixed": lambda: net.geometric(NODES, 0.35, graphs=1, seed=1),
    "waypoint": lambda: net.waypoint(NODES, 0.45, graphs=300, seed=1, repair=True),
    "ring and star, every 10": lambda: net.alternate([net.ring(NODES), net.star(NODES)], every=10),
    "ring": lambda: net.ring(NODES),
    "star": lambda: net.star(NODES),
    "complete": lambda: net.complete(NODES),
}

# network, kappa, parameters, split over nodes, budget of rounds
SETTINGS = [
    ("geometric, chi 8, changing", 10, "theory", "shuffled", 3000),
    ("geometric, chi 8, changing", 100, "unit", "shuffled", 3000),
    ("geometric, chi 8, changing", 1000, "unit", "shuffled", 6000),
    ("geometric, chi 8, changing", 10000, "unit", "shuffled", 12000),
    ("geometric, chi 8, changing", 100, "unit", "by label", 3000),
    ("geometric, chi 200, changing", 100, "unit", "shuffled", 12000),
    ("waypoint", 100, "unit", "shuffled", 12000),
    ("waypoint", 1000, "theory", "by label", 30000),
    ("ring and star, every 10", 30, "unit", "shuffled", 12000),
    ("geometric, fixed", 100, "unit", "shuffled", 6000),
    ("geometric, fixed", 1000, "unit", "shuffled", 12000),
    ("ring", 10, "unit", "shuffled", 6000),
    ("ring", 100, "unit", "shuffled", 20000),
    ("star", 100, "unit", "shuffled", 15000),
    ("complete", 100, "theory", "shuffled", 1200),
    ("complete", 1000, "theory", "shuffled", 4000),
    ("complete", 100, "unit", "shuffled", 600),
]


def measure(network_name, kappa, parameters, split, rounds):
    f, network = problem(kappa, split), NETWORKS[network_name]()
    tol = TARGET * NODES * float((f.solution() ** 2).sum())
    costs = {}
    for oracle in [*FIXED, "auto", "exact"]:
        result = adom.solve(f, network, "adom", parameters, oracle, rounds, tol, record_every=5)
        last = result.history.iloc[-1]
        name = oracle if isinstance(oracle, str) else f"{oracle[0]}:{oracle[1]}"
        costs[name] = (result.status, int(last["round"]), float(last["gradients"]))
    converged = {k: v for k, v in costs.items() if v[0] == "converged"}
    fixed = {k: v[2] for k, v in converged.items() if ":" in k}
    best = min(fixed, key=fixed.get) if fixed else None
    return {
        "network": network_name,
        "chi": network.chi,
        "kappa": kappa,
        "parameters": parameters,
        "split": split,
        "one step": costs["gd:1"][0],
        "best": best,
        "best gradients": fixed.get(best),
        "auto": costs["auto"][0],
        "auto gradients": costs["auto"][2],
        "exact": costs["exact"][0],
        "rounds auto / exact": costs["auto"][1] / costs["exact"][1],
        "ratio": costs["auto"][2] / fixed[best] if best and costs["auto"][0] == "converged" else None,
        "all": costs,
    }


def many_features(dims, nodes, samples, rounds):
    """Print what rounds of ADOM cost by the default oracle, for each number of features."""
    network = net.geometric(nodes, chi=10, graphs=50, seed=0)
    print(f"{'d':>5} {'kappa':>6} {'gradients a round':>18} {'in the last half':>17} {'time / NIDS':>12}")
    for dim in dims:
        for kappa in (100, 1000):
            f = adom.LogisticRegression(*classification(nodes, samples, dim), nodes=nodes, kappa=kappa)
            given = {"adom": "unit", "nids": "theory"}

            def run(name, f=f, given=given):
                return adom.solve(
                    f, network, name, given[name], rounds=rounds, record_every=rounds // 2, progress=False
                )

            spent = run("adom").history["gradients"].to_numpy()
            times = best_times({name: (lambda name=name: run(name), rounds) for name in given}, repeats=3)
            cost = f"{spent[-1] / rounds:18.2f} {(spent[-1] - spent[-2]) / (rounds - rounds // 2):17.2f}"
            print(f"{dim:5} {kappa:6} {cost} {times['adom'] / times['nids']:12.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", metavar="D,D,...", help="show what a round costs with so many features instead")
    parser.add_argument("--nodes", type=int, default=20, help="with --features")
    parser.add_argument("--samples", type=int, default=100, help="of a node, with --features")
    parser.add_argument("--rounds", type=int, default=1000, help="with --features")
    parser.add_argument("--quick", action="store_true", help="a third of the settings")
    parser.add_argument("--json", metavar="FILE", help="also write everything there")
    options = parser.parse_args()
    if options.features:
        dims = [int(dim) for dim in options.features.split(",")]
        return many_features(dims, options.nodes, options.samples, options.rounds)
    rows = []
    heads = f"{'network':30} {'chi':>6} {'kappa':>6} {'param.':7} {'split':9} {'gd:1':>10}"
    print(f"{heads} {'best fixed':>17} {'auto':>9} ratio")
    for setting in SETTINGS[::3] if options.quick else SETTINGS:
        row = measure(*setting)
        rows.append(row)
        best = f"{row['best']} {row['best gradients']:.0f}" if row["best"] else "none"
        ratio = f"{row['ratio']:5.2f}" if row["ratio"] else "    -"
        print(
            f"{row['network']:30} {row['chi']:6.1f} {row['kappa']:6} {row['parameters']:7} {row['split']:9} "
            f"{row['one step']:>10} {best:>17} {row['auto gradients']:9.0f} {ratio}",
            flush=True,
        )
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))
    lost = [r for r in rows if r["exact"] == "converged" and r["auto"] != "converged"]
    over = [r for r in rows if r["ratio"] and r["ratio"] > 1.5]
    print(f"{len(rows)} settings; auto failed where exact converged: {len(lost)}; ratio above 1.5: {len(over)}")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
