"""Newton by gossip on many settings: its rounds beside those of plain averaging on the same graphs.

Run: ``make bench-newton`` or ``python benchmarks/newton.py [--settings 300] [--seed 0] [--faults] [--table]``. A random
setting is a problem (logistic, least squares or Poisson; 2 to 80 nodes, 1 to 60 features, kappa 10 to 1e6 or no
penalty; split evenly, by label or unevenly, also with fewer samples than features at every node) and a network (11
families). Counted are rounds to a squared error of 1e-10 of the start, and the rounds in which plain averaging brings
random rows to 1e-10. A setting fails that does not converge within three times these rounds and 300; a failure ends the
program with 1. With ``--faults``, a fifth of all messages is lost in one direction. With ``--table``, fixed settings
are run instead, with other methods beside them where ``--others`` names them.
"""

import argparse
import json
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

ONE_THREAD = dict.fromkeys(("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
TARGET = 1e-10
MOST = 20_000
"""The most rounds of plain averaging that are counted."""
TABLE = [
    *[("geo20", {"kappa": kappa}) for kappa in (50, 1e3, 1e4, 1e6)],
    *[("geo20", {"kappa": 1e3, "how": "label"}), ("geo20", {"kappa": 1e4, "how": "dirichlet"})],
    *[("geo20", {"kappa": 1e4, "how": "uneven"})],
    *[("geo100", {"kappa": 50}), ("geo100", {"kappa": 1e4}), ("geo100", {"kappa": 1e6, "how": "label"})],
    *[("ring", {"kappa": kappa}) for kappa in (50, 1e3, 1e4)],
    *[("ring", {"kappa": 1e3, "how": "label"}), ("path", {"kappa": 1e3, "d": 10})],
    *[("star", {"kappa": 1e3}), ("star", {"kappa": 1e4, "how": "label"})],
    *[("ringstar", {"kappa": 1e3}), ("ringstar", {"kappa": 1e4, "how": "dirichlet"})],
    *[("fail", {"kappa": 1e3}), ("failgeo", {"kappa": 1e4, "how": "label"})],
    *[("waypoint", {"kappa": 1e3}), ("waypoint", {"kappa": 1e4, "how": "label"}), ("fixgeo", {"kappa": 1e3})],
    *[("ring", {"n": 5, "d": 5, "kappa": 1e3}), ("geo20", {"n": 5, "d": 5, "kappa": 1e6})],
    *[("geo100", {"n": 100, "d": 20, "kappa": 1e3}), ("geo20", {"d": 100, "m": 50, "kappa": 1e3})],
    *[("geo20", {"n": 100, "m": 40, "kappa": 1e4, "how": "label"})],
    *[("geo20", {"kind": "squares", "kappa": 1e4}), ("ring", {"kind": "squares", "kappa": 1e6})],
    *[("geo20", {"kind": "poisson", "l2": 1e-3}), ("geo100", {"kind": "poisson", "l2": 1e-4, "how": "label"})],
    *[("ring", {"kind": "poisson", "l2": 1e-3, "how": "label"})],
    *[("waypoint", {"n": 100, "d": 20, "kappa": 1e4, "how": "label"})],
    *[("geo20", {"n": 100, "d": 100, "m": 60, "kappa": 1e4}), ("ring", {"n": 100, "d": 5, "kappa": 1e3})],
    *[("complete", {"kappa": 1e4})],
]


def samples(n, m, d, kind, how, seed):
    """Return one (features, targets) pair for each node."""
    import numpy as np

    from adom.data.splits import split
    from adom.data.synthetic import classification

    rng = np.random.default_rng(seed + 7)
    if kind == "logistic" and seed == 0:  # those of the table
        features, labels = classification(n * m, d, seed)
        targets = 2.0 * labels - 1
    elif kind == "logistic":
        features = rng.standard_normal((n * m, d)) * 10 ** rng.uniform(-0.5, 0.5, d)
        margins = features @ rng.standard_normal(d)
        targets = np.where(margins + 2 * margins.std() * rng.standard_normal(n * m) > 0, 1.0, -1.0)
    else:
        features = rng.standard_normal((n * m, d)) * np.logspace(0, -1.5, d)
        truth = rng.standard_normal(d)
        if kind == "poisson":
            features = features / 2
            targets = rng.poisson(np.exp(np.clip(features @ truth, -20, 6))).astype(float)
        else:
            targets = features @ truth + 0.3 * rng.standard_normal(n * m)
    if how == "uneven":
        cuts = np.sort(rng.choice(np.arange(min(5, m), n * m - min(5, m)), n - 1, replace=False))
        order = rng.permutation(n * m)
        return [(features[rows], targets[rows]) for rows in np.split(order, cuts)]
    if how == "label" and kind != "logistic":
        order = np.argsort(targets, kind="stable")
        return [(features[rows], targets[rows]) for rows in np.array_split(order, n)]
    return split(features, targets, n, how, seed=seed)


def problem(n=20, m=100, d=40, kind="logistic", how="contiguous", kappa=None, l2=None, seed=0):
    """Return a problem; without kappa and l2, one without a penalty."""
    import numpy as np

    import adom

    data = samples(n, m, d, kind, how, seed)
    if kind == "poisson" or (kappa is None and l2 is None):
        family = {"logistic": "logistic", "squares": "gaussian", "poisson": "poisson"}[kind]
        return adom.GLM.from_nodes(data, family=family, l2=l2 or 0.0, intercept=False)
    if kind == "logistic":
        return adom.LogisticRegression.from_nodes(data, kappa=kappa, l2=l2)
    steepest = max(np.linalg.eigvalsh(a.T @ a / len(a)).max() for a, _ in data)
    return adom.LeastSquares(data, l2=l2 or float(steepest / (kappa - 1)))


def network(name, n=20, seed=0):
    """Return a network by its name in the table."""
    from adom import networks as of

    return {
        "geo20": lambda: of.geometric(n, chi=20, graphs=100, seed=seed),
        "geo100": lambda: of.geometric(n, chi=100, graphs=100, seed=seed),
        "fixgeo": lambda: of.geometric(n, chi=30, graphs=1, seed=seed),
        "ring": lambda: of.ring(n) if n > 2 else of.path(n),
        "path": lambda: of.path(n),
        "star": lambda: of.star(n),
        "complete": lambda: of.complete(n),
        "ringstar": lambda: of.alternate([of.ring(n) if n > 2 else of.path(n), of.star(n)], every=20),
        "fail": lambda: of.failing(of.ring(n) if n > 2 else of.path(n), 0.3, graphs=500, seed=seed),
        "failgeo": lambda: of.failing(of.geometric(n, chi=20, graphs=100, seed=seed), 0.7, graphs=500, seed=seed),
        "waypoint": lambda: of.waypoint(n, 0.3 if n <= 20 else 0.18, graphs=1000, speed=0.02, seed=seed + 1),
    }[name]()


NETWORKS = ("geo20", "geo100", "fixgeo", "ring", "path", "star", "complete", "ringstar", "fail", "failgeo", "waypoint")


def averaging(on):
    """Return the rounds in which plain averaging, weighted as Newton's, brings random rows to the target."""
    import numpy as np

    rows = np.random.default_rng(0).standard_normal((on.nodes, 30))
    rows -= rows.mean(axis=0)
    start = (rows**2).sum()
    for k in range(MOST):
        rows = rows - (1.6 if k % 3 else 1.0) / on.lambda_max * (on.matrix(k) @ rows)
        if (rows**2).sum() <= TARGET * start:
            return k + 1
    return None


def rounds(given, on, method="newton", most=MOST):
    """Return the rounds of a method to the target, or None, and its status."""
    import adom

    result = adom.solve(given, on, method, rounds=most, rtol=TARGET, progress=False)
    return (int(result.last["round"]) if result.status == "converged" else None), result


def random_setting(seed):
    """Return the words of a random setting."""
    import numpy as np

    rng = np.random.default_rng([29, seed])
    n, d = int(rng.choice([2, 3, 5, 8, 12, 20, 40, 80])), int(rng.choice([1, 2, 3, 5, 10, 20, 40, 60]))
    kind = str(rng.choice(["logistic", "logistic", "squares", "poisson"]))
    how = str(rng.choice(["contiguous", "label", "uneven"]))
    m = max(2, int(rng.choice([d // 3, d, 2 * d, 100])))
    kappa = float(10 ** rng.uniform(1, 6))
    free = rng.random() < 0.25 and n * m > 10 * d
    penalty = (
        {"l2": None} if free else {"l2": float(10 ** rng.uniform(-5, -1))} if kind == "poisson" else {"kappa": kappa}
    )
    small = ("ring", "path", "star", "complete", "ringstar", "fail")  # others do not exist for few nodes
    name = str(rng.choice(NETWORKS if n > 8 else small))
    return name, {"n": n, "d": d, "m": m, "kind": kind, "how": how, **penalty, "seed": seed + 1}


def measure(name, words, faults=False, others=()):
    """Return the rounds of one setting."""
    import jax
    import numpy as np

    import adom

    jax.clear_caches()
    warnings.simplefilter("ignore")
    words = dict(words)
    row = {"network": name, **words}
    try:
        on, given = network(name, words.get("n", 20), words.get("seed", 0)), problem(**words)
        given.solution()
    except adom.InputError as error:  # no connected graph, or no answer: nothing to measure
        return {**row, "left_out": str(error)}
    row["averaging"] = averaging(on)
    budget = min(MOST, 3 * (row["averaging"] or MOST) + 300)
    if faults:
        on = adom.networks.lossy(on, one_way=0.2, seed=words.get("seed", 0))
        budget = min(MOST, 3 * budget)
    row["newton"], result = rounds(given, on, most=budget)
    row["status"] = result.status
    row["gradients"] = float(result.last["gradients"]) / float(result.last["round"])
    for other in others:
        row[other] = rounds(given, on, other, 5000)[0] if given.mu > 0 and np.isfinite(given.L) else None
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="of the first setting; the others follow")
    parser.add_argument("--faults", action="store_true", help="lose a fifth of all messages in one direction")
    parser.add_argument("--table", action="store_true", help="fixed settings in place of random ones")
    parser.add_argument("--others", nargs="*", default=[], metavar="METHOD", help="methods to run beside it")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("out/newton.json"))
    given = parser.parse_args()
    from rich.progress import track

    os.environ.update(ONE_THREAD)
    settings = TABLE if given.table else [random_setting(given.seed + i) for i in range(given.settings)]
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        tasks = [pool.submit(measure, *setting, given.faults, given.others) for setting in settings]
        for _ in track(as_completed(tasks), "settings", total=len(tasks)):
            pass
        rows = [task.result() for task in tasks]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    if given.table:
        for row in rows:
            print(json.dumps(row))
    sys.exit(summary(rows))


def summary(rows) -> bool:
    """Print what the rows say; return whether a setting failed."""
    import numpy as np

    run = [row for row in rows if "left_out" not in row]
    failed = [row for row in run if row["newton"] is None]
    for row in failed:
        print(json.dumps(row))
    pairs = [(row["newton"], row["averaging"]) for row in run if row["newton"] and row["averaging"]]
    newton, plain = np.array(pairs, dtype=float).T
    within = newton <= 1.5 * plain + 60
    print(f"{len(run)} settings, {len(rows) - len(run)} without an answer or a network; {len(failed)} failed")
    print(f"rounds less averaging's: median {np.median(newton - plain):.0f}, most {np.max(newton - plain):.0f}")
    print(f"at most 1.5 times averaging's + 60 in {within.mean():.1%}; others: {np.flatnonzero(~within).tolist()}")
    print(f"gradients a round, a Hessian counted as its columns: median {np.median([r['gradients'] for r in run]):.1f}")
    return bool(failed)


if __name__ == "__main__":
    main()
