"""From a thousand to a million nodes: time per node and round, and the peak of memory; streamed graphs too."""

import argparse
import resource
import subprocess
import sys
from json import loads
from pathlib import Path

from common import classification, finish, one_core

SAMPLES, DIM, GRAPHS = 10, 20, 5
STREAMED = 60
"""Graphs of a streamed network; each is drawn whenever its round comes."""


def peak() -> int:
    """Return the most memory that this process has had, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def windows_of(running, rounds: int):
    """Return a work that makes some rounds, window by window, while the graphs of as many are drawn."""

    def work() -> None:
        end = int(running.carry.clock) + rounds
        while (left := end - int(running.carry.clock)) > 0:
            running.chunk(1, min(left, running.reach()), 10**12)

    return work, rounds


def one(nodes: int, streamed: bool, local: bool) -> None:
    one_core()
    import jax

    import adom
    from adom.networks import pool as pools

    # What comes with the program itself, compiler included, is measured on a small run first.
    small = adom.networks.expander(300, 8, graphs=2, seed=0)
    method = adom.ADOM(alpha=0.1, eta=0.1, theta=0.01, sigma=1.0, tau=0.05)
    few = adom.LogisticRegression(*classification(300, SAMPLES, DIM), nodes=300, kappa=100.0)
    adom.solve(few, small, method, oracle=("gd", 1), rounds=3, progress=False)
    before = peak()

    problem = adom.LogisticRegression(*classification(nodes, SAMPLES, DIM), nodes=nodes, kappa=100.0)

    def make(graphs, streamed=False):
        pools.HELD_BYTES, pools.KEPT_BYTES = (0 if streamed else 2**30), 2**20
        if local:  # links to the nodes next to one in a grid, a tenth of which fail in a round
            changing = adom.networks.failing(
                adom.networks.torus(10, nodes // 10), 0.1, graphs=graphs, seed=0, repair=True
            )
        else:
            changing = adom.networks.expander(nodes, 8, graphs=graphs, seed=0)
        return adom.networks.bounded(changing, chi=5.0)

    network = make(STREAMED if streamed else GRAPHS, streamed)
    rounds = max(20, 2_000_000 // nodes)
    adom.solve(problem, network, method, oracle=("gd", 1), rounds=rounds, record_every=rounds, progress=False)
    data = problem.features.signed.nbytes + problem.features.weights.nbytes
    pool = network.bytes
    taken = peak() - before

    with jax.enable_x64(True):
        from common import best_times, rounds_of, session

        held = session(problem, make(GRAPHS) if streamed else network, [method])
        some = max(4, 100_000 // nodes)
        works = {"held": rounds_of(held, some)}
        if streamed:
            works["streamed"] = windows_of(session(problem, network, [method]), some)
        times = best_times(works, repeats=7)
        seconds = times["streamed" if streamed else "held"]
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
                "over_held": seconds / times["held"],
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
    kinds = [(nodes, flags) for flags in (["--local"], []) for nodes in sizes]
    kinds += [(nodes, ["--streamed"]) for nodes in (100_000, 1_000_000)]
    for nodes, flags in kinds:
        command = [sys.executable, str(Path(__file__)), "--nodes", str(nodes), *flags]
        rows += loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    finish(rows)


if __name__ == "__main__":
    main()
