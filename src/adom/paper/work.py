"""One job at a time: build what a panel describes, run it, leave its file."""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .. import networks
from ..algorithms import Method, method_class
from ..errors import InputError
from ..networks import Network
from ..problems.logistic import LogisticRegression
from ..run.constants import make_method
from ..run.endings import FINISHED
from ..run.request import Request
from ..run.solve import solve
from ..run.theory import verify
from ..run.tuning import Stages, transferred, tune
from ..util.checked_json import read_checked, write_checked
from .runs import TUNE, VERIFY, Job

SEARCHED = 200
"""Records of a candidate: the rounds that it takes are known to half a percent of the budget."""
FULL = 0.4
"""The part of features that are not 0 from which on a dense array is faster."""
KEPT = 6
"""Problems and networks that a worker keeps for the next jobs."""
Settings = Mapping[str, Any]


class Workshop:
    """Builds problems and networks, each once while it is in use, and runs jobs on them.

    Parameters
    ----------
    folder : path
        Of the reproduction.
    stages : sequence of (int, float)
        Of a search.
    batch : int
        The most candidates of a search that run at the same time.
    """

    def __init__(self, folder: Path, stages: Stages, batch: int = 1) -> None:
        self.results = folder / "results"
        self.stages, self.batch = stages, batch
        self._problems, self._networks = Shelf(KEPT), Shelf(KEPT)
        self._data = Shelf(1)

    def do(self, job: Job) -> None:
        """Run a job and leave its file; what its method or its budget refuses leaves the reason."""
        try:
            if job.variant == TUNE:
                self._leave(job, self._tune(job))
            elif job.variant == VERIFY:
                self._leave(job, self._verify(job))
            else:
                self._run(job)
        except InputError as error:
            self._leave(job, {"reason": str(error)})

    def problem(self, job: Job) -> LogisticRegression:
        """Return the problem of a job."""
        settings = job.panel.settings
        split = "label" if job.variant == "split-label" else "shuffled"
        about = (settings["data"], settings.get("dim"), settings["samples"], settings["nodes"], job.seed, split)
        base = self._data.get(about, lambda: make_problem(settings, job.seed, split))
        made: LogisticRegression = self._problems.get(
            (*about, settings["kappa"]), lambda: base.with_kappa(settings["kappa"])
        )
        return made

    def network(self, job: Job) -> Network:
        """Return the network of a job."""
        settings = job.panel.settings
        about = tuple(settings.get(name) for name in ("network", "nodes", "graphs", "chi", "every"))
        made: Network = self._networks.get((*about, job.seed), lambda: make_network(settings, job.seed))
        return made

    def _leave(self, job: Job, data: Mapping[str, Any]) -> None:
        write_checked(self.results / f"{job.key}.json", dict(data))

    def _run(self, job: Job) -> None:
        began = Stopwatch()
        problem, network = self.problem(job), self.network(job)
        start = problem.nodes * float((problem.solution() ** 2).sum())
        method, search = self._method(job, problem, network)
        result = solve(
            problem,
            network,
            method,
            oracle=job.oracle or "auto",
            rounds=job.rounds,
            tol=job.rtol * start or None,
            record_every=records_every(method, job),
            progress=False,
        )
        if result.status not in FINISHED:
            raise KeyboardInterrupt
        about = {"figure": job.panel.figure, "panel": job.panel.name, "seed": job.seed, "variant": job.variant}
        about |= {"key": job.key, "graphs": network.period, **began.told()}
        provenance = {**result.provenance, "protocol": job.protocol, "reproduction": about, **search}
        replace(result, provenance=provenance).save(self.results / f"{job.key}.npz")

    def _method(self, job: Job, problem: LogisticRegression, network: Network) -> tuple[Method, dict[str, Any]]:
        """Return a job's method with its parameters, and where tuned ones come from."""
        if not job.tuning:
            return make_method(problem, network, job.method, job.protocol), {}
        try:
            account = read_checked(self.results / f"{job.tuning}.json")
        except (OSError, ValueError):
            raise InputError(f"the search {job.tuning} has left nothing; run the reproduction again") from None
        if "reason" in account:
            raise InputError(f"no tuned parameters: {account['reason']}")
        found = {name: account[name] for name in ("rule", "candidates", "rounds", "target", "chosen")}
        told = "the multiples of mu, L and chi chosen there, applied to this problem's and network's constants"
        method = transferred(problem, network, method_class(job.method), account["chosen"])
        return method, {"tuning": {"key": job.tuning, **account["on"], **found, "transfer": told}}

    def _tune(self, job: Job) -> dict[str, Any]:
        began = Stopwatch()
        problem, network = self.problem(job), self.network(job)
        start = problem.nodes * float((problem.solution() ** 2).sum())
        request = Request(job.oracle or "auto", job.rounds, job.rtol * start, 1, "local", "float64", False)
        cls = method_class(job.method)
        _, oracle, account = tune(problem, network, cls, request, self.stages, self.batch, SEARCHED)
        on = {"figure": job.panel.figure, "panel": job.panel.name, "seed": job.seed}
        return {"on": on, "method": job.method, "oracle": str(oracle), **began.told(), **account}

    def _verify(self, job: Job) -> dict[str, Any]:
        began = Stopwatch()
        problem, network = self.problem(job), self.network(job)
        checked = verify(problem, network, job.rounds, progress=False)
        rows = [row.to_json() for row in checked.rows]
        about = {"nodes": problem.nodes, "dim": problem.dim, "kappa": problem.kappa, "chi": network.chi}
        return {"holds": checked.holds, "rows": rows, **about, **began.told()}


class Stopwatch:
    """What a job takes: time on the clock, and on the processor."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def told(self) -> dict[str, float]:
        """Return the seconds since the start."""
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        return {"wall_seconds": round(wall, 3), "cpu_seconds": round(cpu, 3)}


class Shelf:
    """Keeps the last few things made, by name."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._things: OrderedDict[Any, Any] = OrderedDict()

    def get(self, name: Any, make: Callable[[], Any]) -> Any:
        """Return the thing of that name, making it if it is not there."""
        if name not in self._things:
            self._things[name] = make()
            if len(self._things) > self.most:
                self._things.popitem(last=False)
        self._things.move_to_end(name)
        return self._things[name]


def make_problem(settings: Settings, seed: int, split: str) -> LogisticRegression:
    """Return the problem that a panel describes, with some kappa: data drawn, or dealt out, by the seed."""
    from ..data import split as deal

    nodes, samples = settings["nodes"], settings["samples"]
    if settings["data"] == "synthetic":
        from sklearn.datasets import make_classification

        count = nodes * samples
        features, labels = make_classification(n_samples=count, n_features=settings["dim"], random_state=seed)
    else:
        features, labels = read(settings["data"])
        if samples is not None and samples * nodes < len(labels):
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
            chosen = rng.choice(len(labels), samples * nodes, replace=False)
            features, labels = features[chosen], labels[chosen]
    data = deal(features, labels, nodes, split, seed=seed)
    return LogisticRegression.from_nodes(data, kappa=settings["kappa"])


@cache
def read(name: str) -> tuple[Any, np.ndarray]:
    """Return the features and labels of a data set, read once; features that are nearly full as a dense array."""
    from ..data import load

    features, labels = load(name)
    full = features.nnz > FULL * features.shape[0] * features.shape[1]
    return features.toarray() if full else features, labels


def make_network(settings: Settings, seed: int) -> Network:
    """Return the network that a panel describes."""
    kind, nodes = settings["network"], settings["nodes"]
    if kind == "infectious":
        from ..data import infectious

        return infectious()
    if kind == "complete":
        return networks.complete(nodes)
    if kind == "ring-star":
        return networks.alternate([networks.ring(nodes), networks.star(nodes)], every=settings["every"])
    drawn = networks.geometric(nodes, chi=settings["chi"], graphs=settings["graphs"], seed=seed)
    return networks.slowed(drawn, every=settings["every"]) if "every" in settings else drawn


def records_every(method: Method, job: Job) -> int:
    """Return the steps from one record to the next that leave about as many records as the job wants."""
    lengths = np.broadcast_to(np.asarray(method.rounds_of_step(np.arange(job.records)), dtype=float), job.records)
    if lengths.sum() >= job.rounds:  # every step is recorded
        return 1
    rest = (job.rounds - lengths.sum()) / lengths[-1]
    return int(np.ceil((job.records + rest) / job.records))
