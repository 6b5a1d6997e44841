"""Engine mpi: time per round against the local engine, where it goes, bytes against need, memory per rank.

``python benchmarks/mpi.py`` starts itself on 1, 2 and 4 ranks; with ``--ranks 100`` also on so many, one small node
each. Times are compared in turn, and of each the best counts.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

HERE = Path(__file__).parent
ROUNDS, PIECES = 1500, 5
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
CALM = {
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "JAX_CPU_ENABLE_ASYNC_DISPATCH": "false",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


def start(ranks: int, *words: str) -> list[dict]:
    beside = Path(sys.executable).with_name("mpirun")
    command = [str(beside if beside.exists() else "mpirun"), "-n", str(ranks), "--oversubscribe", "--bind-to", "none"]
    done = subprocess.run(
        [*command, sys.executable, str(HERE / "mpi.py"), *words], env={**os.environ, **ROOT, **CALM},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{ranks} ranks failed:\n{done.stderr}")
    found: list[dict] = json.loads(done.stdout.splitlines()[-1])
    return found


def local(**environment: str) -> float:
    """Return the local engine's seconds per round in a process of its own."""
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import mpi; print(mpi.local_round())"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def local_round() -> float:
    import adom
    from common import paper_size

    problem, network, method = paper_size()
    return min(
        adom.solve(problem, network, method, oracle=("gd", 1), rounds=ROUNDS, record_every=ROUNDS)
        .history["seconds"].iloc[-1] / ROUNDS
        for _ in range(PIECES)
    )  # fmt: skip


def on_ranks(rounds: int, pieces: int) -> None:
    """Be one of the ranks; rank 0 prints what was measured."""
    import adom
    from adom.run.ranks import world as mpi
    from adom.run.ranks.rank_rounds import Partition, RowTravel
    from common import paper_size

    problem, network, method = paper_size()
    spent = {}

    def timed(cls, name):
        plain, spent[name] = getattr(cls, name), 0.0

        def wrapper(*given):
            began = perf_counter()
            found = plain(*given)
            spent[name] += perf_counter() - began
            return found

        setattr(cls, name, wrapper)

    def run():
        return adom.solve(
            problem, network, method, oracle=("gd", 1), rounds=rounds, record_every=rounds, engine="mpi",
            progress=False, patience=120,
        )  # fmt: skip

    results = [run() for _ in range(pieces)]
    best = min(one.history["seconds"].iloc[-1] for one in results) / rounds
    timed(RowTravel, "neighbours")
    timed(mpi.World, "exchange")
    split = run()
    whole = split.history["seconds"].iloc[-1]
    wire = split.provenance["wire"]
    partition = Partition(problem.nodes, wire["ranks"])
    rows = links = 0
    for k in range(rounds):
        g = network.order[k % network.period]
        edges = network.edges(int(g))
        ends = partition.owner(edges)
        cut = edges[ends[:, 0] != ends[:, 1]]
        links += 2 * len(cut)
        both = {(int(u), int(o)) for (u, v) in cut for u, o in ((u, partition.owner(v)), (v, partition.owner(u)))}
        rows += len(both)
        if k == network.period - 1:
            break
    scale = rounds / min(rounds, network.period)
    if mpi.MPI.COMM_WORLD.Get_rank() == 0:
        need = rows * scale * 2 * problem.dim * 8
        row = {
            "ranks": wire["ranks"],
            "us a round": best * 1e6,
            "packing": (spent["neighbours"] - spent["exchange"]) / whole,
            "exchange": spent["exchange"] / whole,
            "messages a round": wire["messages"] / rounds,
            "bytes a round": wire["bytes"] / rounds,
            "sent/needed": wire["bytes"] / need if need else 1.0,
            "bytes a link of the cut": wire["bytes"] / (links * scale) if links else 0.0,
        }
        print(json.dumps([row]))


def memory(folder: str) -> None:
    """Be one of the ranks on data that stay home; print the most memory that a rank took beyond what it began with."""
    import numpy as np

    import adom
    from adom.run.ranks import world as mpi

    network = adom.networks.ring(adom.Shards(folder, l2=1.0).nodes)
    problem = adom.Quadratic(np.ones((network.nodes, 1, 1)), np.ones((network.nodes, 1)))
    adom.solve(problem, network, "adom", "unit", ("gd", 1), rounds=5, engine="mpi", progress=False)  # loads everything
    before = resident()
    result = adom.solve(
        adom.Shards(folder, kappa=100.0), network, "adom", "unit", ("gd", 1), rounds=100, record_every=100,
        engine="mpi", progress=False, patience=60,
    )  # fmt: skip
    world = mpi.MPI.COMM_WORLD
    most = np.empty(world.Get_size())
    world.Allgather(np.array([(peak() - before) / 1e6]), most)
    if world.Get_rank() == 0:
        print(json.dumps([{"ranks": world.Get_size(), "MB a rank": float(most.max()), "status": result.status}]))


def many(rounds: int) -> None:
    """Be one of many ranks with one node each, of random graphs with ten neighbours or so; rank 0 prints two times."""
    import numpy as np

    import adom
    from adom.run.ranks import world as mpi

    nodes, rng = mpi.MPI.COMM_WORLD.Get_size(), np.random.default_rng(0)
    bases = rng.standard_normal((nodes, 40, 40)) / 6
    problem = adom.Quadratic(bases @ bases.transpose(0, 2, 1) + np.eye(40), rng.standard_normal((nodes, 40)))
    network = adom.networks.erdos_renyi(nodes, 0.1, graphs=10, seed=0)
    rows = []
    for _ in range(2):
        result = adom.solve(
            problem, network, "diging", "unit", rounds=rounds, record_every=rounds, engine="mpi", progress=False,
            patience=120,
        )  # fmt: skip
        wire, seconds = result.provenance["wire"], result.history["seconds"].iloc[-1]
        rows.append(
            {"ranks": nodes, "us a round": 1e6 * seconds / rounds, "messages a round": wire["messages"] / rounds}
        )
    if mpi.MPI.COMM_WORLD.Get_rank() == 0:
        print(json.dumps(rows))


def resident() -> float:
    return 4096.0 * int(Path("/proc/self/statm").read_text().split()[1])


def peak() -> float:
    import resource

    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, help="also on so many ranks, one small node each")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    times: dict[int, list[dict]] = {1: [], 2: [], 4: []}
    one_thread, all_cores = [], []
    for _ in range(asked.repeats):
        one_thread.append(local(**CALM))
        all_cores.append(local())
        for ranks, found in times.items():
            found.extend(start(ranks, "rounds", str(ROUNDS), str(PIECES)))
    rows = [min(found, key=lambda row: row["us a round"]) for found in times.values()]
    for row in rows:
        row["of local, one thread"] = row["us a round"] / (min(one_thread) * 1e6)
        row["of local, all cores"] = row["us a round"] / (min(all_cores) * 1e6)
    if asked.ranks:
        rows += start(asked.ranks, "many", "300")
    with tempfile.TemporaryDirectory() as folder:
        import numpy as np

        import adom
        from common import classification

        features, labels = classification(100, 1000, 80)
        np.savez(Path(folder) / "data.npz", features=features, labels=labels)
        shards = adom.data.write_shards(Path(folder) / "data.npz", 100, Path(folder) / "shards")
        size = features.nbytes / 1e6
        for ranks in (1, 2, 4):
            rows += [{**row, "data (MB)": size} for row in start(ranks, "memory", str(shards))]
    print(f"local engine, one thread: {min(one_thread) * 1e6:.4g} us a round", file=sys.stderr)
    print(json.dumps(rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["rounds"]:
        on_ranks(int(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1:2] == ["memory"]:
        memory(sys.argv[2])
    elif sys.argv[1:2] == ["many"]:
        many(int(sys.argv[2]))
    else:
        main()
