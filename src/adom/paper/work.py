"""One job: build the problem and the network of its panel, run it, write its file."""

import time
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .. import networks
from ..algorithms import Method, method_class
from ..errors import InputError
from ..networks import Network
from ..problems.linear_model import LogisticRegression
from ..run.calls.solve import solve
from ..run.calls.theory import verify
from ..run.calls.tuning import Stages, transferred, tune
from ..run.constants import make_method
from ..run.request import AUTO, Request, Stop
from ..study.execute import keep_data, keep_run
from ..util.checked_json import read_checked
from .runs import TUNE, VERIFY, PaperJob

SEARCHED = 200
"""Records of a search candidate, which give its rounds to half a percent of the budget."""
FULL = 0.4
"""The share of non-zero features above which a dense array is faster."""
KEPT = 6
"""Problems and networks cached for the next jobs."""


def do_job(job: PaperJob, folder: Path, *, stages: Stages, batch: int = 1) -> None:
    """Run a job and write its file; if its method or budget refuses the job, write the reason.

    Parameters
    ----------
    job : PaperJob
    folder : path
        Folder of the reproduction.
    stages : sequence of (int, float)
        Stages of a search.
    batch : int
        The most candidates of a search that run at the same time.
    """
    try:
        if job.variant == TUNE:
            keep_data(job, folder, _search(job, stages, batch))
        elif job.variant == VERIFY:
            keep_data(job, folder, _verification(job))
        else:
            _run(job, folder)
    except InputError as error:
        keep_data(job, folder, {"reason": str(error)})


def problem_of(job: PaperJob) -> LogisticRegression:
    """Return the problem of a job; the last few are cached."""
    settings = job.panel.settings
    split = "label" if job.variant == "split-label" else "shuffled"
    data = (settings["data"], settings.get("dim"), settings["samples"], settings["nodes"], job.seed, split)
    return _with_kappa(settings["kappa"], *data)


def network_of(job: PaperJob) -> Network:
    """Return the network of a job; the last few are cached."""
    settings = job.panel.settings
    return _network(*(settings.get(name) for name in ("network", "nodes", "graphs", "chi", "every")), seed=job.seed)


def _run(job: PaperJob, folder: Path) -> None:
    began = _clocks()
    problem, network = problem_of(job), network_of(job)
    method, search = _method(job, problem, network, folder / "results")
    found = job.protocol == AUTO  # parameters are found during the run
    result = solve(
        problem,
        network,
        job.method if found else method,
        AUTO if found else "theory",
        oracle=job.oracle or "auto",
        rounds=job.rounds,
        tol=Stop(None, job.accuracy).error(problem),
        record_every=1 if found and method.rounds_per_step is None else records_every(method, job),
        progress=False,
    )
    about = {"figure": job.panel.figure, "panel": job.panel.name, "seed": job.seed, "variant": job.variant}
    about |= {"key": job.key, "graphs": network.period, **_seconds_since(began)}
    keep_run(job, folder, result, job.records, {"protocol": job.protocol, "reproduction": about, **search})


def _method(
    job: PaperJob, problem: LogisticRegression, network: Network, results: Path
) -> tuple[Method, dict[str, Any]]:
    """Return a job's method with its parameters, and the origin of tuned ones."""
    if not job.tuning:
        protocol = "theory" if job.protocol == AUTO else job.protocol  # its steps are about as long as under auto
        return make_method(problem, network, job.method, protocol), {}
    try:
        search = read_checked(results / f"{job.tuning}.json")
    except (OSError, ValueError):
        raise InputError(f"the search {job.tuning} has no readable result file; run the reproduction again") from None
    if "reason" in search:
        raise InputError(f"no tuned parameters: {search['reason']}")
    account = {name: search[name] for name in ("rule", "candidates", "rounds", "target", "chosen")}
    transfer = "the multiples of mu, L and chi chosen there, applied to this problem's and network's constants"
    method = transferred(problem, network, method_class(job.method), search["chosen"])
    return method, {"tuning": {"key": job.tuning, **search["on"], **account, "transfer": transfer}}


def _search(job: PaperJob, stages: Stages, batch: int) -> dict[str, Any]:
    began = _clocks()
    problem, network = problem_of(job), network_of(job)
    request = Request(job.oracle or "auto", job.rounds, Stop(None, job.accuracy), 1, "local", "float64", False)
    _, oracle, account = tune(problem, network, method_class(job.method), request, stages, batch, SEARCHED)
    on = {"figure": job.panel.figure, "panel": job.panel.name, "seed": job.seed}
    return {"on": on, "method": job.method, "oracle": str(oracle), **_seconds_since(began), **account}


def _verification(job: PaperJob) -> dict[str, Any]:
    began = _clocks()
    problem, network = problem_of(job), network_of(job)
    checked = verify(problem, network, job.rounds, progress=False)
    rows = [row.to_json() for row in checked.rows]
    about = {"nodes": problem.nodes, "dim": problem.dim, "kappa": problem.kappa, "chi": network.chi}
    return {"holds": checked.holds, "rows": rows, **about, **_seconds_since(began)}


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _seconds_since(began: tuple[float, float]) -> dict[str, float]:
    wall, cpu = (now - before for now, before in zip(_clocks(), began, strict=True))
    return {"wall_seconds": round(wall, 3), "cpu_seconds": round(cpu, 3)}


@lru_cache(KEPT)
def _with_kappa(kappa: float, *data: Any) -> LogisticRegression:
    return _data(*data).with_kappa(kappa)


@lru_cache(1)
def _data(data: str, dim: int | None, samples: int | None, nodes: int, seed: int, split: str) -> LogisticRegression:
    """Return the problem on data drawn, or split over the nodes, with the seed; `_with_kappa` sets its kappa."""
    from ..data import split as deal

    if data == "synthetic":
        from ..data.synthetic import classification

        assert samples is not None
        assert dim is not None
        features, labels = classification(nodes * samples, dim, seed)
    else:
        features, labels = _read(data)
        if samples is not None and samples * nodes < len(labels):
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
            chosen = rng.choice(len(labels), samples * nodes, replace=False)
            features, labels = features[chosen], labels[chosen]
    return LogisticRegression.from_nodes(deal(features, labels, nodes, split, seed=seed), kappa=100.0)


@cache
def _read(name: str) -> tuple[Any, np.ndarray]:
    """Return the features and labels of a data set, read once; features with few zeros as a dense array."""
    from ..data import load

    features, labels = load(name)
    full = features.nnz > FULL * features.shape[0] * features.shape[1]
    return features.toarray() if full else features, labels


@lru_cache(KEPT)
def _network(kind: str, nodes: int, graphs: int, chi: float, every: int | None, *, seed: int) -> Network:
    if kind == "infectious":
        from ..data import infectious

        return infectious()
    if kind == "complete":
        return networks.complete(nodes)
    if kind == "ring-star":
        assert every is not None
        return networks.alternate([networks.ring(nodes), networks.star(nodes)], every=every)
    network = networks.geometric(nodes, chi=chi, graphs=graphs, seed=seed)
    return networks.slowed(network, every=every) if every is not None else network


def records_every(method: Method, job: PaperJob) -> int:
    """Return the number of steps between records that gives about `job.records` records."""
    lengths = np.broadcast_to(np.asarray(method.rounds_of_step(np.arange(job.records)), dtype=float), job.records)
    if lengths.sum() >= job.rounds:  # every step is recorded
        return 1
    rest = (job.rounds - lengths.sum()) / lengths[-1]
    return int(np.ceil((job.records + rest) / job.records))
