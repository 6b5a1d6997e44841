"""Memory of ranks whose shards are larger than they may hold: 2 GB over four ranks, each under 600 MB.

`python benchmarks/apart.py` makes four shards of random samples in a temporary folder, starts four ranks on a ring, and
prints the peak memory of each and the time of a gradient. `--gigabytes` and `--rounds` say how much and how long.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import adom

RANKS, FEATURES, LIMIT = 4, 100, 600
KEEP_QUIET = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}


def peak() -> float:
    """Return the most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def make(folder: Path, gigabytes: float) -> None:
    """Make one shard a rank, each in its own folder, as four machines would have them."""
    from adom.data.node_shards import write_shard

    rows = int(gigabytes * 1e9 / (8 * FEATURES * RANKS))
    truth = np.random.default_rng(0).standard_normal(FEATURES)
    for rank in range(RANKS):
        rng = np.random.default_rng(rank + 1)
        X = rng.standard_normal((rows, FEATURES))
        y = np.where(X @ truth + 3 * rng.standard_normal(rows) > 0, 1, 0)
        np.savez(folder / "own.npz", X=X, y=y)
        write_shard(folder / "own.npz", f"node{rank}", folder / f"machine{rank}")
        (folder / "own.npz").unlink()


def work(folder: Path, rounds: int) -> None:
    """Fit as one of the ranks, and write down what it took."""
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    data = adom.NodeData(folder / f"machine{rank}", nodes=RANKS, scale=True, memory=64e6)
    before = peak()
    network = adom.networks.ring(RANKS)
    result = adom.solve(
        data, network, "adom+", "unit", rounds=rounds, record_every=20, engine="mpi", monitor=False, patience=120
    )
    size = sum(file.stat().st_size for file in data.folder.rglob("*.npy"))
    last = result.last
    about = {"shard": size / 1e6, "before": before, "peak": peak(), "seconds": last["seconds"] / last["gradients"]}
    (folder / f"rank{rank}.json").write_text(json.dumps(about))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.rounds)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = f"import apart, pathlib; apart.make(pathlib.Path({name!r}), {options.gigabytes})"
        subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parent, check=True)
        launcher = Path(sys.executable).with_name("mpirun")
        command = [str(launcher), "-n", str(RANKS), "--oversubscribe", "--bind-to", "none", sys.executable, __file__]
        command += ["--work", name, "--rounds", str(options.rounds)]
        subprocess.run(command, env={**os.environ, **KEEP_QUIET}, check=True)
        print("rank  shard MB  MB at the start  peak MB  seconds a gradient")
        for rank in range(RANKS):
            found = json.loads((folder / f"rank{rank}.json").read_text())
            row = f"{rank:4}  {found['shard']:8.0f}  {found['before']:15.0f}  {found['peak']:7.0f}"
            print(f"{row}  {found['seconds']:18.2f}")
            if found["peak"] > LIMIT:
                raise SystemExit(f"rank {rank} took {found['peak']:.0f} MB, more than {LIMIT}")


if __name__ == "__main__":
    main()
