"""What the tests start on several ranks: `mpirun -n N python mpi_program.py TASK FOLDER [ARGUMENT ...]`."""

import json
import os
import signal
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import adom
from adom.algorithms import COMPARED, METHODS, method_class
from adom.run.local import jitted
from adom.run.ranks import rank_rounds

NODES = 13  # of which no number of ranks from 2 to 4 holds equal parts


def world():
    from adom.run.ranks.world import MPI

    return MPI.COMM_WORLD


def data(nodes=NODES, dim=6, seed=0):
    """Samples that differ from node to node, in number, in spread and in labels."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(dim)
    for node in range(nodes):
        features = (1 + node / nodes) * rng.standard_normal((5 + node % 4, dim))
        labels = np.where(features @ truth + rng.standard_normal(len(features)) > 0, 1, -1)
        labels[:2] = -1, 1
        yield features, labels


@cache
def problems():
    import scipy.sparse as sp

    dense = list(data())
    sparse = [(sp.csr_array(np.where(np.abs(A) > 0.5, A, 0.0)), b) for A, b in dense]
    return {
        "dense": adom.LogisticRegression.from_nodes(dense, kappa=20.0),
        "sparse": adom.LogisticRegression.from_nodes(sparse, kappa=20.0),
        "quadratic": quadratic(),
        "loss": adom.from_loss(soft, np.random.default_rng(2).standard_normal((NODES, 3)), mu=0.5, L=2.0),
    }


def quadratic():
    rng = np.random.default_rng(1)
    bases = rng.standard_normal((NODES, 4, 4))
    return adom.Quadratic(bases @ bases.transpose(0, 2, 1) + 0.5 * np.eye(4), rng.standard_normal((NODES, 4)))


def soft(x, centre):
    import jax.numpy as jnp

    return 0.25 * ((x - centre) ** 2).sum() + jnp.sqrt(1 + (x - centre) ** 2).sum()


def runs():
    """Every method, every oracle, every kind of problem: (name, problem, network, method, oracle, parameters)."""
    known = problems()
    network = adom.networks.geometric(NODES, 0.45, graphs=12, seed=3)
    arrows = adom.networks.directed_geometric(NODES, 0.6, graphs=6, seed=2)
    fixed = adom.networks.geometric(NODES, 0.45, seed=3)
    for method in METHODS:
        dual = method_class(method).oracle == "dual"
        if method not in COMPARED:  # the cheapest gradients, and for some a network that stays as it is
            place = fixed if method_class(method).needs == "fixed" else network
            yield f"{method}-quadratic", known["quadratic"], place, method, "exact" if dual else "auto", "unit"
            continue
        every = ("auto", "exact", "gd:1", "agd:3") if method == "adom" else ("exact",)
        for oracle in every if dual else ("auto",):
            yield f"{method}-{oracle}", known["dense"], network, method, oracle, "unit"
    for kind in ("sparse", "quadratic", "loss"):
        yield f"adom-{kind}", known[kind], network, "adom", "agd:3", "unit"
    yield "push-pull-directed", known["dense"], arrows, "push-pull", "auto", "unit"
    yield "found-push-diging", known["quadratic"], arrows, "push-diging", "auto", "auto"
    yield "found-opapc", known["quadratic"], fixed, "opapc", "auto", "auto"
    for name in ("adom", "adom+", "push-pull"):
        yield f"found-{name}", known["dense"], network, name, "auto", "auto"


def methods(folder, rounds, *chosen):
    """Run everything, or what is chosen, on the ranks at hand; rank 0 keeps it."""
    for name, problem, network, method, oracle, parameters in runs():
        if chosen and name not in chosen:
            continue
        request = {"rounds": int(rounds), "engine": "mpi", "progress": False}
        result = adom.solve(problem, network, method, parameters, oracle, **request)
        if world().Get_rank() == 0:
            result.save(folder / f"{name}.npz")
    world().Barrier()


def losses(folder):
    """Runs on networks with imperfect links, on the ranks and, at rank 0, by the local engine."""
    network = adom.networks.geometric(NODES, 0.6, graphs=12, seed=3)
    lossy = adom.networks.lossy(network, 0.3, leaving={2: 40, 12: 50}, joining={7: 60})
    coarse = adom.networks.delayed(adom.networks.quantised(network, 5), 2, varying=True)
    request = {"rounds": 120, "progress": False}
    for name, imperfect in (("", lossy), ("-coarse", coarse)):
        result = adom.solve(quadratic(), imperfect, "adom", "unit", engine="mpi", **request)
        if world().Get_rank() == 0:
            result.save(folder / f"ranks{name}.npz")
            adom.solve(quadratic(), imperfect, "adom", "unit", **request).save(folder / f"local{name}.npz")
    world().Barrier()


def messages(folder):
    """Write down every message of rows: the round, the rank it goes to, and its rows."""
    seen = []
    plain = rank_rounds.RowTravel._swap

    def swap(self, clock, sends, receives):
        seen.extend((clock, rank, rows.shape[1], rows.shape[0] * rows.shape[2]) for rank, rows in sends)
        plain(self, clock, sends, receives)

    rank_rounds.RowTravel._swap = swap
    _, problem, network, method, *_ = next(runs())  # of which `methods` has the programs
    adom.solve(problem, network, method, "unit", "auto", rounds=30, engine="mpi", progress=False)
    mudag = len(seen)
    adom.solve(problem, network, "mudag", {"K": 3, "protocol": "unit"}, rounds=12, engine="mpi", progress=False)
    rank = world().Get_rank()
    (folder / f"rank{rank}.json").write_text(json.dumps({"adom": seen[:mudag], "mudag": seen[mudag:]}))
    world().Barrier()


def methods_and_messages(folder, rounds, *chosen):
    """Do both in one start of the ranks."""
    methods(folder, rounds, *chosen)
    messages(folder)


def in_every_step(work):
    """Let a step that is about to be compiled call a function whenever it is run."""
    from jax.experimental import io_callback

    io_callback(work, None)


def slow_down(pause):
    """Let every round take longer outside of the compiled program, which is then one that JAX's cache can keep."""
    swap, chunk = rank_rounds.RowTravel.neighbours, jitted.Session.chunk

    def swap_later(self, *given):
        time.sleep(pause)
        swap(self, *given)

    def alone(self, records, steps, budget):
        time.sleep(pause * records * steps)
        return chunk(self, records, steps, budget)

    if world().Get_size() > 1:
        rank_rounds.RowTravel.neighbours = swap_later
    else:
        jitted.Session.chunk = alone


def long(folder, rounds, pause="0", resume="no"):
    """A run with checkpoints that takes its time: `pause` seconds more a step."""
    (folder / f"pid-{world().Get_rank()}").write_text(str(os.getpid()))
    problem, network = quadratic(), adom.networks.alternate([adom.networks.ring(NODES), adom.networks.star(NODES)])
    if float(pause):
        slow_down(float(pause))
    kept = adom.Checkpoints(folder / "checkpoints", every_rounds=20, resume=resume == "resume")
    result = adom.solve(
        problem, network, "adom", "unit", ("gd", 1), rounds=int(rounds), engine="mpi", checkpoints=kept, progress=False,
        patience=float(os.environ.get("PATIENCE", "5")),
    )  # fmt: skip
    if world().Get_rank() == 0:
        result.save(folder / "result.npz")


def trouble(folder, kind, rank):
    """One rank raises, hangs, or has a full disk, after the first checkpoint."""
    from adom.run.local.jitted import CountingOracle

    plain, calls = CountingOracle.dual_gradient, [0]

    def fail():
        calls[0] += 1
        if calls[0] == 50 and world().Get_rank() == int(rank):
            if kind == "raise":
                raise ZeroDivisionError("this node's data are broken")
            if kind == "hang":
                time.sleep(1000)
            if kind == "full":
                import errno

                def full(*_, **__):
                    raise OSError(errno.ENOSPC, "No space left on device")

                np.lib.format.write_array = full

    CountingOracle.dual_gradient = lambda self, z: (in_every_step(fail), plain(self, z))[1]
    long(folder, "2000", pause="0.001")


def starting(folder, kind):
    """Rank 1 is stopped before MPI starts, or stopped or blocked while it opens its shards."""
    from adom.run.ranks import watch

    watch.START_PATIENCE, watch.ARRIVAL = 5.0, 5.0 if kind == "unborn" else 120.0
    if kind == "unborn" and os.environ["OMPI_COMM_WORLD_RANK"] == "1":
        os.kill(os.getpid(), signal.SIGSTOP)
    rank = world().Get_rank()
    plain = adom.Shards._read

    def read(self, node):
        found = plain(self, node)
        if rank == 1 and kind == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        if rank == 1 and kind == "blocked":
            os.read(os.pipe()[0], 1)  # as from a file system that does not respond
        return found

    adom.Shards._read = read
    shards = adom.Shards(folder / "shards", kappa=20.0)
    adom.solve(shards, adom.networks.ring(4), "adom", "unit", "gd:1", rounds=50, engine="mpi", patience=5.0)


def apart(folder):
    """Every rank has a folder of its own with the shard of one node, and writes its model there; then the refusals."""
    import pandas as pd

    from adom.data.model import score_of
    from adom.run.ranks.world import sums_of_ranks
    from support.apart import SETTINGS, TOL

    rank = world().Get_rank()
    network = adom.networks.complete(4)
    for name, settings in SETTINGS.items():
        home = folder / f"machine{rank}" / name
        data = adom.NodeData(home / "shards", nodes=4, **settings)
        request = {"rounds": 100_000, "record_every": 50, "tol": TOL, "engine": "mpi", "progress": False}
        result = adom.solve(data, network, "adom+", "unit", **request)
        assert result.status == "converged", result
        model = result.model()
        model.save(home / "model.json")
        if name == "diabetes":  # the score of all rows, though each rank has its own only
            own, every = pd.read_csv(next(home.glob("*.csv"))), folder.glob(f"machine*/{name}/*.csv")
            every = pd.concat(map(pd.read_csv, every))
            sums = sums_of_ranks(model.sums(own.drop(columns="target"), own["target"]))
            assert np.isclose(score_of(sums), model.score(every.drop(columns="target"), every["target"]))
    said = []
    home = folder / f"machine{rank}" / "cancer"
    data = adom.NodeData(home / "shards", nodes=4, **SETTINGS["cancer"])
    for rounds, resume in ((700, False), (100_000, True)):
        kept = adom.Checkpoints(folder / "checkpoints", every_rounds=100, resume=resume)
        result = adom.solve(data, network, "adom+", "unit", checkpoints=kept, **{**request, "rounds": rounds})
        assert (result.status == "converged") == resume, result
    same = adom.load_model(home / "model.json").coefficients
    np.testing.assert_array_equal(result.model().coefficients, same)  # as without a break
    for name, settings in REFUSED.items():
        try:
            data = adom.NodeData(folder / f"machine{rank}" / name / "shards", nodes=4, **settings)
            adom.solve(data, network, "adom+", "unit", rounds=500, engine="mpi", progress=False)
        except adom.InputError as error:
            said.append(str(error))
    (folder / f"said{rank}.json").write_text(json.dumps(said))
    world().Barrier()
    changed = adom.NodeData(folder / f"machine{rank}" / "changed" / "shards", nodes=4)
    adom.solve(changed, network, "adom+", "unit", rounds=500, engine="mpi", progress=False)


NEWTON = {
    "counts": {"model": "poisson", "l2": 0.0},
    "classes": {"model": "logistic", "C": 1.0, "scale": True},
    "disk": {"model": "gamma", "alpha": 0.0, "memory": 500.0},
}


def newton(folder):
    """Fits by Newton to shards that all ranks see; the first one is cut short, and goes on from its checkpoints."""
    ranks = world().Get_size()
    for name, settings in NEWTON.items():
        data = adom.NodeData(folder / name / "shards", **settings)
        request = {"record_every": 10, "engine": "mpi", "progress": False}
        if name == "counts":
            for rounds, resume in ((22, False), (1000, True)):
                kept = adom.Checkpoints(folder / f"checkpoints-{ranks}", every_rounds=3, resume=resume)
                more = {"checkpoints": kept, "rounds": rounds, **request}
                result = adom.solve(data, adom.networks.ring(4), "newton", **more)
                assert (result.status == "converged") == resume, result
        else:
            result = adom.solve(data, adom.networks.ring(4), "newton", **request)
        if world().Get_rank() == 0:
            result.save(folder / f"{name}-{ranks}.npz")
    world().Barrier()


REFUSED = {"columns": {}, "order": {}, "one-class": {}, "twice": {}, "text": {"model": "ridge"}}


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
