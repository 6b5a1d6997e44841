"""The same code on a GPU: the paper's size, a batch of settings, a million nodes; and the same numbers as on the CPU.

Run by ``make bench`` where JAX finds a GPU. Times are of rounds alone, in microseconds: the best of some repeats.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from common import best_times, classification, finish, paper_size, rounds_of, session

METHODS = ("adom", "pngd", "dnm", "mudag", "acc-dngd", "apm", "diging", "panda", "push-pull", "adom+", "acc-gt")


def curves(file: str) -> None:
    """Write the error curves of all methods, of a batch and of many nodes over 500 rounds."""
    import numpy as np

    import adom

    problem, network, method = paper_size(graphs=20)
    options = {"rounds": 500, "progress": False}
    found = {}
    for name in METHODS:
        oracle = {"oracle": ("gd", 2)} if adom.algorithms.method_class(name).oracle == "dual" else {}
        parameters = {"K": 5} if name == "mudag" else "theory"
        result = adom.solve(problem, network, name, parameters, **oracle, **options)
        found[name] = result.history["error"].to_numpy()
    settings = [replace(method, eta=method.eta * factor) for factor in (0.5, 1.0, 2.0)]
    batch = adom.solve_many(problem, network, settings, ("gd", 2), **options)
    found["batch"] = np.concatenate([one.history["error"].to_numpy() for one in batch])
    many = adom.LogisticRegression(*classification(50_000, 20, 20), nodes=50_000, kappa=100.0)
    wide = adom.networks.bounded(adom.networks.expander(50_000, 8, graphs=3, seed=0), chi=5.0)
    found["50,000 nodes"] = adom.solve(many, wide, "adom", "theory", ("gd", 1), **options).history["error"].to_numpy()
    np.savez(file, **found)


def same_numbers() -> list[dict]:
    """Compare the curves of this device with those of the CPU."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        here, there = Path(folder, "here.npz"), Path(folder, "cpu.npz")
        curves(str(here))
        environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
        subprocess.run([sys.executable, __file__, "--curves", str(there)], check=True, env=environment)
        one, other = np.load(here), np.load(there)
        worst = {}
        for name in one.files:
            above = other[name] > 1e-20 * other[name][0]  # below, an error is rounding itself
            worst[name] = float(np.max(np.abs(one[name][above] / other[name][above] - 1)))
    return [{"what": "largest relative difference from the CPU's error curve, 500 rounds", **worst}]


def million(local: bool):
    """Return a million nodes with 8 links each that change every round: near by name, or anywhere."""
    import numpy as np

    import adom

    nodes = 1_000_000
    if not local:
        return adom.networks.bounded(adom.networks.expander(nodes, 8, graphs=4, seed=0), chi=5.0)
    from adom.networks.edges import Links
    from adom.networks.network import Network
    from adom.networks.pool import Batch, Pool

    rng, one = np.random.default_rng(0), np.arange(nodes)
    graphs = []
    for _ in range(4):
        steps = [1, *rng.choice(np.arange(2, 2000), size=3, replace=False)]
        pairs = np.concatenate([np.sort(np.stack([one, (one + step) % nodes], axis=1), axis=1) for step in steps])
        graphs.append(pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].astype(np.int32))
    links = Links.of(nodes, graphs)
    pool = Pool(Batch(links, np.full(len(links.edges), 1 / 16), low=np.full(4, 1e-3), high=np.ones(4)))
    return Network(pool, np.arange(4), {"generator": "circulant"})


def measure() -> list[dict]:
    import jax
    import numpy as np

    import adom

    rows = []
    problem, network, method = paper_size()
    settings = [replace(method, eta=method.eta * factor) for factor in np.geomspace(0.5, 2.0, 256)]
    with jax.enable_x64(True):
        for dtype in ("float64", "float32"):
            one = session(problem, network, [method], dtype=dtype)
            each = session(problem, network, [method], slots=512, dtype=dtype)
            each.prepare(512, 1)
            batch = session(problem, network, settings, dtype=dtype)
            works = {
                "one": rounds_of(one, 512),
                "recorded": (lambda each=each: each.chunk(512, 1, 10**12), 512),
                "batch": rounds_of(batch, 512),
            }
            best = best_times(works, repeats=7)
            rows.append({"what": "paper's size, a round", "dtype": dtype, "us": 1e6 * best["one"]})
            rows.append({"what": "the same, every round recorded", "dtype": dtype, "us": 1e6 * best["recorded"]})
            rows.append({"what": "256 settings, per run and round", "dtype": dtype, "us": 1e6 * best["batch"] / 256})
        del one, each, batch, works
        nodes = 1_000_000
        wide = adom.LogisticRegression(*classification(nodes, 10, 20), nodes=nodes, kappa=100.0)
        setting = adom.ADOM(alpha=0.1, eta=0.1, theta=0.01, sigma=1.0, tau=0.05)
        for name, local in (("links near by", True), ("links anywhere", False)):
            network = million(local)
            for dtype in ("float64", "float32"):
                running = session(wide, network, [setting], dtype=dtype)
                best = best_times({"one": rounds_of(running, 512)}, repeats=4)["one"]
                rows.append({"what": f"1,000,000 nodes, {name}, a round", "dtype": dtype, "us": 1e6 * best})
                del running
        data = jax.device_put(wide.features.signed)
        total = jax.jit(lambda a: (a * a).sum())
        seconds = best_times({"stream": (lambda: total(data).block_until_ready(), 1)}, repeats=9)["stream"]
        rows.append({"what": "reading the million nodes' features once", "dtype": "float64", "us": 1e6 * seconds})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--curves")
    options = parser.parse_args()
    if options.curves:
        curves(options.curves)
        return
    import jax

    from adom import native

    device = jax.devices()[0].device_kind
    if jax.default_backend() != "gpu":
        finish([{"what": "no GPU here", "device": device}])
        return
    about = {"what": "device", "device": device, "jax": jax.__version__, "native": native.problem("gpu") or "yes"}
    finish([about, *measure(), *same_numbers()])


if __name__ == "__main__":
    main()
