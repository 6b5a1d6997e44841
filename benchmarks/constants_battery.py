"""Run `parameters="auto"` on random settings against `theory`, `unit` and the best assumed chi found in hindsight.

Run: ``make bench-constants`` or ``python benchmarks/constants_battery.py [--settings 300] [--seed 0]``. A setting is a
problem (logistic or ridge regression, or quadratics; kappa 1.1 to 100,000; split evenly, by label or unevenly) and a
network of 2 to 200 nodes (one family, or two by turns every 1 to 100 rounds; fixed, changing, in motion, from contacts,
with failing links). Counted are the rounds of ADOM to 1e-8 of the starting error: `theory` with the exact oracle, the
others with the default one. The best assumed chi comes from `unit`'s formulas with 1.5 chi, chi, chi / 1.5, and so on.
A setting fails where `theory` gets there and `auto` does not, or takes more rounds; a failure ends the program with 1.
With ``--cases``, every method is run on four networks instead.
"""

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

ONE_THREAD = dict.fromkeys(("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
BUDGET = 15_000
"""Rounds of `theory`, `unit` and every assumed chi."""
TARGET = 1e-8
NODES = (2, 3, 5, 8, 12, 16, 20, 30, 50, 100, 200)
EVERY = (1, 2, 5, 10, 20, 50, 100)
FIXED = ("ring", "star", "path", "complete", "torus", "tree", "barbell")
CHANGING = ("trees", "erdos_renyi", "geometric", "waypoint", "failing", "contacts")


def fixed(rng, nodes, name):
    """Return a network of one graph."""
    import networkx as nx

    from adom import networks

    side = round(nodes**0.5)
    if name == "tree":
        return networks.from_graphs([nx.random_labeled_tree(nodes, seed=int(rng.integers(10**6)))])
    if name == "barbell" and nodes >= 6:
        graph = nx.barbell_graph(nodes // 2, nodes - 2 * (nodes // 2))
        return networks.from_graphs([nx.convert_node_labels_to_integers(graph)])
    if name == "torus" and side * side == nodes and side > 2:
        return networks.torus(side, side)
    if (name == "ring" and nodes == 2) or name in ("torus", "barbell"):
        name = "path"
    return getattr(networks, name)(nodes)


def family(rng, nodes, name):
    """Return a network of one kind."""
    import networkx as nx
    import numpy as np

    from adom import networks

    seed, graphs = int(rng.integers(10**6)), int(rng.choice([1, 20, 100]))
    near = float(np.sqrt(np.log(nodes + 2) / nodes))
    if name in FIXED:
        return fixed(rng, nodes, name)
    if name == "trees":
        return networks.from_graphs([nx.random_labeled_tree(nodes, seed=seed + i) for i in range(20)])
    if name == "erdos_renyi":
        return networks.erdos_renyi(nodes, min(1.0, 2.5 * near**2 + 0.1), graphs=graphs, seed=seed)
    if name == "geometric":
        return networks.geometric(nodes, float(rng.choice([1.2, 1.8])) * near, graphs=graphs, seed=seed)
    if name == "waypoint":
        return networks.waypoint(nodes, 1.5 * near, graphs=100, seed=seed)
    if name == "failing":
        whole = family(rng, nodes, str(rng.choice(["complete", "erdos_renyi", "geometric"])))
        return networks.failing(whole, float(rng.choice([0.1, 0.3])), graphs=50, seed=seed)
    pairs = np.random.default_rng(seed).integers(nodes, size=(40, max(2, nodes), 2))
    rows = [(t, int(u), int(v)) for t, some in enumerate(pairs) for u, v in some if u != v]
    return networks.from_contacts(rows, nodes=nodes)


def network(rng, nodes):
    """Return a random network and a name for it."""
    from adom import InputError, networks

    names = (*FIXED, *CHANGING)
    for _ in range(20):
        first, second = (str(name) for name in rng.choice(names, size=2))
        try:
            if rng.random() < 0.5:
                return family(rng, nodes, first), first
            every = int(rng.choice(EVERY))
            both = [family(rng, nodes, first), family(rng, nodes, second)]
            return networks.alternate(both, every=every), f"{first}+{second}/{every}"
        except InputError:  # a radius at which no connected graph was found
            continue
    return networks.complete(nodes), "complete"


def problem(rng, nodes):
    """Return a random problem and a name for it."""
    import numpy as np

    import adom
    from adom.problems.linear_model import LeastSquares

    kind, split = (
        str(rng.choice(["logistic", "logistic", "ridge", "quadratic"])),
        str(rng.choice(["even", "label", "uneven"])),
    )
    dim, samples, kappa = (
        int(rng.choice([2, 5, 10])),
        int(rng.choice([3, 10])),
        float(10 ** rng.uniform(np.log10(1.1), 5)),
    )
    if kind == "quadratic":
        bases = [np.linalg.qr(rng.standard_normal((dim, dim)))[0] for _ in range(nodes)]
        hessians = [(q * kappa ** rng.uniform(0, 1, dim)) @ q.T for q in bases]
        if split == "even":
            hessians = [hessians[0]] * nodes
        hessians[0], hessians[-1] = np.eye(dim), kappa * np.eye(dim)
        c = rng.standard_normal((nodes, dim)) * 10 ** rng.uniform(-1, 1)
        return adom.Quadratic(hessians, c), f"{kind}, {split}"
    count = nodes * samples
    features = rng.standard_normal((count, dim)) * 10 ** rng.uniform(-0.5, 0.5, dim)
    targets = features @ rng.standard_normal(dim) + 0.5 * rng.standard_normal(count)
    if split == "label":
        order = np.argsort(targets, kind="stable")
        features, targets = features[order], targets[order]
    cuts = np.arange(1, nodes) * samples
    if split == "uneven":
        cuts = np.sort(rng.choice(np.arange(1, count), nodes - 1, replace=False))
    labels = (targets > np.median(targets)).astype(int)
    parts = list(zip(np.split(features, cuts), np.split(labels if kind == "logistic" else targets, cuts), strict=True))
    if kind == "logistic":
        return adom.LogisticRegression.from_nodes(parts, kappa=kappa), f"{kind}, {split}"
    steepest = max(np.linalg.eigvalsh(a.T @ a / len(a)).max() for a, _ in parts)
    return LeastSquares(parts, l2=float(steepest / (kappa - 1))), f"{kind}, {split}"


def rounds_to_target(given, on, method, budget, parameters="theory", oracle="auto"):
    """Return the rounds to the target, None if they are not enough, and the result."""
    import adom

    tol = TARGET * given.nodes * float((given.solution() ** 2).sum())
    result = adom.solve(given, on, method, parameters, oracle, int(budget), tol, progress=False)
    return (int(result.columns["round"][-1]) if result.status == "converged" else None), result


def best_assumed(given, on):
    """Return the rounds of the best assumed chi, and that chi."""
    import adom
    from adom.algorithms import Constants

    best, at, worse, chi = None, None, 0, max(1.5 * on.chi, 2.0)
    while chi > 1.2 and worse < 4:
        method = adom.ADOM.unit(Constants(given.mu, given.L, on.lambda_max / chi, on.lambda_max, given.nodes))
        rounds, _ = rounds_to_target(given, on, method, BUDGET if best is None else min(BUDGET, 1.5 * best + 50))
        if rounds is not None and (best is None or rounds < best):
            best, at, worse = rounds, chi, 0
        elif best is not None:
            worse += 1
        chi /= 1.5
    return best, at


def measure(seed, known=None):
    """Return the rounds of all ways on one random setting; those that do not depend on `auto` may be known."""
    import warnings

    import jax
    import numpy as np

    jax.clear_caches()  # every setting has shapes of its own
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([16, seed])
    nodes = int(rng.choice(NODES))
    on, kind = network(rng, nodes)
    given, name = problem(rng, nodes)
    row = {"seed": seed, "nodes": nodes, "network": kind, "graphs": on.graphs, "chi": on.chi}
    row |= {"problem": name, "kappa": given.kappa}
    if known is None:
        row["theory"], _ = rounds_to_target(given, on, "adom", BUDGET, "theory", "exact")
        row["unit"], _ = rounds_to_target(given, on, "adom", BUDGET, "unit")
        row["best"], row["best_chi"] = best_assumed(given, on)
    elif {name: known[name] for name in row} != row:
        raise SystemExit(f"error: the known rows are of other settings than seed {seed}; leave --known out")
    else:
        row |= {name: known[name] for name in ("theory", "unit", "best", "best_chi")}
    budget = max(4 * (row["best"] or BUDGET // 4) + 400, row["theory"] or 0, row["unit"] or 0)
    row["auto"], result = rounds_to_target(given, on, "adom", budget, "auto")
    row["chis"] = [setting["chi"] for setting in result.provenance["settings"]][:20]
    row["gradients"] = result.last["gradients"] / result.last["round"]
    row["failed"] = bool(row["theory"] is not None and not (row["auto"] or np.inf) <= row["theory"])
    return row


def summary(rows):
    """Print what the rows say."""
    import numpy as np

    def ratios(name, some=rows):
        return np.array([(row["auto"] or np.inf) / row[name] for row in some if row[name] is not None])

    for row in rows:
        auto = row["auto"] or np.inf
        if row["failed"] or auto > 3 * (row["best"] or np.inf) or auto > 1.3 * (row["unit"] or np.inf):
            print(json.dumps(row))
    best, unit, theory = ratios("best"), ratios("unit"), ratios("theory")
    changing = ratios("unit", [row for row in rows if row["graphs"] > 1])
    print(f"{len(rows)} settings; theory gets there in {len(theory)}, auto in no more rounds in {(theory <= 1).sum()}")
    print(f"auto over the best chi ({len(best)}): median {np.median(best):.2f}, worst {best.max():.2f}, ", end="")
    print(f"above 3 in {(best > 3).sum()}")
    print(
        f"auto over unit ({len(unit)}): median {np.median(unit):.2f}, on changing networks {np.median(changing):.2f}, ",
        end="",
    )
    print(f"above 1.3 in {(unit > 1.3).sum()}, worst {unit.max():.2f}")


def cases(names: list[str]) -> None:
    """Print the rounds to 1e-10 of some methods, or of all, on four networks, by three protocols."""
    from sklearn.datasets import make_classification

    import adom
    from adom.algorithms import METHODS, method_class

    features, labels = make_classification(2000, 20, random_state=0)
    of = adom.networks
    made = {
        "geometric, new every round, chi 32.5": of.geometric(20, chi=30, graphs=200, seed=0),
        "geometric, new every round, chi 158.6": of.geometric(20, chi=150, graphs=200, seed=0),
        "geometric, fixed, chi 29": of.geometric(20, chi=30, graphs=1, seed=0),
        "ring and star, every 20, chi 40.9": of.alternate([of.ring(20), of.star(20)], every=20),
    }
    for name in names or METHODS:
        for title, on in made.items():
            for kappa in (30, 300):
                given, row = adom.LogisticRegression(features, labels, nodes=20, kappa=kappa), []
                tol = 1e-10 * given.nodes * float((given.solution() ** 2).sum())
                for parameters in ("theory", "unit", "auto"):
                    result = adom.solve(given, on, name, parameters, rounds=20_000, tol=tol, progress=False)
                    row.append(f"{result.last['round']:,}" if result.status == "converged" else "-")
                print(f"| {method_class(name).title} | {title} | {kappa} | {' | '.join(row)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="of the first setting; the others follow")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("out/constants_battery.json"))
    parser.add_argument("--known", type=Path, help="an earlier run's --out: all but auto is taken from there")
    parser.add_argument("--cases", nargs="*", metavar="METHOD", help="every method, or some, on four networks instead")
    given = parser.parse_args()
    if given.cases is not None:
        cases(given.cases)
        return
    from rich.progress import track

    os.environ.update(ONE_THREAD)
    seeds = range(given.seed, given.seed + given.settings)
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        earlier = json.loads(given.known.read_text(encoding="utf-8")) if given.known else []
        known = {row["seed"]: row for row in earlier}
        tasks = [pool.submit(measure, seed, known.get(seed)) for seed in seeds]
        rows = [task.result() for task in track(as_completed(tasks), "settings", total=len(tasks))]
    rows.sort(key=lambda row: row["seed"])
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    summary(rows)
    print(f"rows in {given.out}")
    sys.exit(any(row["failed"] for row in rows))


if __name__ == "__main__":
    main()
