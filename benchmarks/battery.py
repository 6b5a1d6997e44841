"""Run the default oracle against the exact one on random settings, and all methods where nodes are never all connected.

Run: ``make bench-battery`` or ``python benchmarks/battery.py [--settings 500] [--apart 40] [--seed 0]``. A setting
is a logistic regression (even or by label, few or many samples, features of any scale), a network (one family, or two
by turns every 1 to 100 rounds, or nodes in motion, or failing links), a dual method, and `theory` or `unit`. Both
oracles get the same budget of rounds, and are judged by the largest error over its last quarter, since some methods
swing for ever on some networks. The default fails where the exact oracle stays below its start, and the default is more
than ten times above it (rounding aside). A failure ends the program with 1. Gradients are a node's.

In ``--apart`` more settings, single rounds do not connect the nodes: the links of a ring one a round or each for 20
rounds, one random link a round, or a ring most of whose links fail. All methods run with `theory`, `unit` and `auto`.
A run that ends above its own start (x = 0, or for a dual method its first iterate) must say so. `auto` must not end
more than ten times above the safe step, which needs no chi: gradient descent on the dual for ADOM, DNM and MSDA, and no
step at all for the others with chi in their formulas.
"""

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

ONE_THREAD = dict.fromkeys(("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
FLOOR = 1e-18
"""The error, over its start, below which oracles differ by rounding alone."""


def network(rng, nodes):
    """Return a random network and a name for it."""
    from adom import networks

    seed = int(rng.integers(10**6))
    families = {
        "ring": lambda: networks.ring(nodes),
        "star": lambda: networks.star(nodes),
        "path": lambda: networks.path(nodes),
        "complete": lambda: networks.complete(nodes),
        "erdos_renyi": lambda: networks.erdos_renyi(nodes, 0.5, graphs=int(rng.integers(1, 40)), seed=seed),
        "geometric": lambda: networks.geometric(nodes, 0.7, graphs=int(rng.integers(1, 40)), seed=seed),
        "waypoint": lambda: networks.waypoint(nodes, 0.7, graphs=60, seed=seed, repair=True),
        "failing": lambda: networks.failing(networks.complete(nodes), 0.2, graphs=40, seed=seed, repair=True),
    }
    first, second = rng.choice(list(families), size=2)
    if rng.random() < 0.4:
        return families[first](), str(first)
    every = int(rng.choice([1, 2, 3, 5, 8, 10, 15, 18, 20, 25, 30, 40, 50, 60, 80, 100]))
    return networks.alternate([families[first](), families[second]()], every=every), f"{first}+{second}/{every}"


def measure(seed, rounds):
    """Return what both oracles make of one random setting."""
    import jax
    import numpy as np
    from sklearn.datasets import make_classification

    import adom

    jax.clear_caches()  # every setting has shapes of its own
    rng = np.random.default_rng(seed)
    nodes, dim = int(rng.choice([4, 6, 10, 20, 30])), int(rng.choice([2, 5, 10]))
    samples, kappa = int(rng.choice([5, 30])), float(10 ** rng.uniform(0.5, 5))
    features, labels = make_classification(
        nodes * samples, dim, n_informative=dim, n_redundant=0, n_clusters_per_class=1, random_state=seed
    )
    if rng.random() < 0.3:
        order = np.argsort(labels, kind="stable")
        features, labels = features[order], labels[order]
    problem = adom.LogisticRegression(features * 10 ** rng.uniform(-1, 1), labels, nodes=nodes, kappa=kappa)
    chosen, name = network(rng, nodes)
    method = str(rng.choice(["adom", "adom", "adom", "pngd", "dnm"]))
    protocol = str(rng.choice(["theory", "unit"]))
    start = nodes * float((problem.solution() ** 2).sum())
    row = {"seed": seed, "nodes": nodes, "dim": dim, "kappa": kappa, "network": name, "chi": chosen.chi}
    row |= {"method": method, "protocol": protocol}
    for oracle in ("exact", "auto"):
        result = adom.solve(problem, chosen, method, protocol, oracle, rounds, record_every=20, progress=False)
        last, errors = result.history.iloc[-1], result.history["error"].to_numpy()
        row[oracle] = float(errors[-len(errors) // 4 :].max()) / start
        row[f"{oracle}_gradients"] = float(last["gradients"] / last["round"])
        row[f"{oracle}_status"] = result.status
    good = row["exact"] < 1
    row["failed"] = bool(good and not row["auto"] <= 10 * max(row["exact"], FLOOR))
    return row


def apart(rng, nodes):
    """Return a random network none of whose rounds connects all nodes, and a name for it."""
    import networkx as nx

    from adom import networks

    kind = str(rng.choice(["one a round", "20 rounds each", "random", "failing"]))
    if kind == "failing":
        return networks.failing(networks.ring(nodes), 0.7, graphs=50, seed=int(rng.integers(10**6))), kind
    pairs = [(i, (i + 1) % nodes) for i in range(nodes) for _ in range(20 if kind.startswith("20") else 1)]
    if kind == "random":
        pairs = [tuple(rng.choice(nodes, 2, replace=False).tolist()) for _ in range(10 * nodes)]
    graphs = [nx.empty_graph(nodes) for _ in pairs]
    for graph, pair in zip(graphs, pairs, strict=True):
        graph.add_edge(*pair)
    return networks.from_graphs(graphs), kind


def quadratics(rng, nodes, kappa):
    """Return a problem of random curvatures, or with one flat node, and a name for it."""
    import numpy as np

    import adom

    flat = rng.random() < 0.5
    hessians = [kappa * np.eye(3)] * nodes
    if not flat:
        bases = [np.linalg.qr(rng.standard_normal((3, 3)))[0] for _ in range(nodes)]
        hessians = [(q * kappa ** rng.uniform(0, 1, 3)) @ q.T for q in bases]
    hessians[0] = np.eye(3)
    return adom.Quadratic(hessians, rng.standard_normal((nodes, 3))), "one flat node" if flat else "random"


def says_so(result, above):
    """Return whether a run's status tells that it ended so many times above its start."""
    if above <= 1.1 or result.lost or "floor of rounding" in result.message or len(result.columns["round"]) < 4:
        return True
    near = result.status == "max_rounds" and above <= 10 and "times its start" in result.message
    return near or (result.status == "stalled" and "its start" in result.message)


def measure_apart(seed, rounds):
    """Return how every method ends, with every kind of parameters, in one random setting."""
    import jax
    import numpy as np

    import adom
    from adom.algorithms import METHODS, method_class

    jax.clear_caches()
    rng = np.random.default_rng([26, seed])
    nodes, kappa = int(rng.choice([4, 6, 8, 12])), float(10 ** rng.uniform(0.5, 3.5))
    on, kind = apart(rng, nodes)
    given, name = quadratics(rng, nodes, kappa)
    start = nodes * float((given.solution() ** 2).sum())
    about = {"seed": seed, "nodes": nodes, "kappa": kappa, "network": kind, "window": on.window, "problem": name}
    descent = adom.DNM(theta=given.mu / on.lambda_max, beta=0.0)
    safe = adom.solve(given, on, descent, rounds=rounds, progress=False).last["error"]
    rows = []
    for method in METHODS:
        for parameters in ("theory", "unit", "auto"):
            row = {**about, "method": method, "parameters": parameters}
            try:
                result = adom.solve(given, on, method, parameters, rounds=rounds, progress=False)
            except adom.InputError as error:  # a step has more rounds than the budget
                rows.append(row | {"status": "refused", "message": str(error), "silent": False, "worse": False})
                continue
            errors, dual = result.columns["error"], method_class(method).oracle == "dual"
            last = float(errors[-1])
            above = last / (errors[0] if dual else start)
            row |= {"status": result.status, "message": result.message, "last": last / start, "above": above}
            least = safe if method in ("adom", "dnm", "msda") else errors[0] if dual else start
            found = parameters == "auto" and "settings" in result.provenance
            row["worse"] = bool(found and not last <= 10 * max(least, FLOOR * start))
            rows.append(row | {"silent": not says_so(result, above)})
    return rows


def count_apart(rows):
    """Print what the rows of the settings apart say; return whether one of them failed."""
    ran = [row for row in rows if row["status"] != "refused"]
    silent, worse = ([row for row in ran if row[name]] for name in ("silent", "worse"))
    for row in [*silent, *worse]:
        print(json.dumps(row))
    high = sum(row["above"] > 1.1 for row in ran)
    print(f"apart: {len(ran)} runs, {len(rows) - len(ran)} refused; {high} end above their start, ", end="")
    print(f"{len(silent)} of these without saying so; auto ends above the safe step in {len(worse)}")
    return bool(silent or worse)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", type=int, default=500)
    parser.add_argument(
        "--rounds", type=int, default=2000, help="of the settings; those apart take three times as many"
    )
    parser.add_argument(
        "--apart", type=int, default=40, help="settings in which single rounds do not connect the nodes"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first setting; the others follow")
    parser.add_argument("--out", type=Path, default=Path("out/battery.json"))
    given = parser.parse_args()
    import numpy as np
    from rich.progress import track

    os.environ.update(ONE_THREAD)
    seeds = range(given.seed, given.seed + given.settings)
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        tasks = [pool.submit(measure, seed, given.rounds) for seed in seeds]
        more = [pool.submit(measure_apart, given.seed + i, 3 * given.rounds) for i in range(given.apart)]
        rows = [task.result() for task in track(as_completed(tasks), "settings", total=len(tasks))]
        others = [row for task in track(as_completed(more), "apart", total=len(more)) for row in task.result()]
    others.sort(key=lambda row: row["seed"])
    rows.sort(key=lambda row: row["seed"])
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps([*rows, *others], indent=1), encoding="utf-8")
    bad = count_apart(others)
    if not rows:
        sys.exit(bad)

    failed = [row for row in rows if row["failed"]]
    good = [row for row in rows if row["exact"] < 1]
    spent = np.array([row["auto_gradients"] for row in good])
    ratios = spent / [row["exact_gradients"] for row in good]
    for row in failed:
        print(json.dumps(row))
    print(f"{len(rows)} settings; exact oracle stays below its start in {len(good)}; default fails in {len(failed)}")
    print(f"gradients a round, default: median {np.median(spent):.2f}, largest {spent.max():.2f}")
    print(f"over the exact oracle's: median {np.median(ratios):.2f}, largest {ratios.max():.2f}; rows in {given.out}")
    sys.exit(bool(failed) or bad)


if __name__ == "__main__":
    main()
