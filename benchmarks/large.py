"""From a thousand to a hundred thousand nodes: time per node and round, and the peak of memory; streamed graphs too."""

import argparse
import resource
import subprocess
import sys
from json import loads
from pathlib import Path

from common import classification, finish, one_core

SAMPLES, DIM, GRAPHS = 10, 20, 5


def peak() -> int:
    """Return the most memory that this process has had, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def one(nodes: int, streamed: bool, local: bool) -> None:
    one_core()
    import jax

    import adom
    from adom.run.local import graph_layout as supply

    # What comes with the program itself, compiler included, is measured on a small run first.
    small = adom.networks.expander(300, 8, graphs=2, seed=0)
    method = adom.ADOM(alpha=0.1, eta=0.1, theta=0.01, sigma=1.0, tau=0.05)
    few = adom.LogisticRegression(*classification(300, SAMPLES, DIM), nodes=300, kappa=100.0)
    adom.solve(few, small, method, oracle=("gd", 1), rounds=3, progress=False)
    before = peak()

    problem = adom.LogisticRegression(*classification(nodes, SAMPLES, DIM), nodes=nodes, kappa=100.0)
    if streamed:
        from adom.networks import lazy

        lazy.HELD_BYTES, lazy.KEPT_BYTES, supply.WINDOW_BYTES = 0, 2**20, 2**25
    graphs = 60 if streamed else GRAPHS
    if local:  # links to the nodes next to one in a grid, a tenth of which fail in a round
        grid = adom.networks.torus(10, nodes // 10)
        network = adom.networks.failing(grid, 0.1, graphs=graphs, seed=0)
    else:
        network = adom.networks.expander(nodes, 8, graphs=graphs, seed=0)
    network = adom.networks.bounded(network, chi=5.0)
    rounds = max(20, 2_000_000 // nodes) if not streamed else 60
    result = adom.solve(problem, network, method, oracle=("gd", 1), rounds=rounds, record_every=rounds, progress=False)
    data = problem.features.signed.nbytes + problem.features.weights.nbytes
    pool = network.bytes
    taken = peak() - before

    with jax.enable_x64(True):
        from common import best_times, rounds_of, session

        if streamed:
            seconds = float(result.history["seconds"].iloc[-1]) / rounds
        else:
            running = session(problem, network, [method])
            seconds = best_times({"one": rounds_of(running, max(2, 100_000 // nodes))}, repeats=7)["one"]
    finish(
        [
            {
                "nodes": nodes,
                "network": "grid, a tenth of the links failing" if local else "expander of degree 8",
                "held": network.held,
                "nanoseconds_per_node": 1e9 * seconds / nodes,
                "data_megabytes": data / 1e6,
                "graphs_megabytes": pool / 1e6,
                "peak_megabytes": taken / 1e6,
                "peak_over_data_and_graphs": taken / (data + pool),
                "peak_over_data": taken / data,
            }
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--streamed", action="store_true")
    parser.add_argument("--local", action="store_true")
    options = parser.parse_args()
    if options.nodes:
        one(options.nodes, options.streamed, options.local)
        return
    rows = []
    sizes = (1_000, 10_000, 100_000)
    kinds = [(nodes, flags) for flags in (["--local"], []) for nodes in sizes] + [(100_000, ["--streamed"])]
    for nodes, flags in kinds:
        command = [sys.executable, str(Path(__file__)), "--nodes", str(nodes), *flags]
        rows += loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    finish(rows)


if __name__ == "__main__":
    main()
