"""Jobs of comparisons and sweeps: their runs are found in a folder, or made now and kept there.

There is one file per run, named by a digest of all that determines it. A run is reused only for exactly the same
problem, network, method, parameters, oracle and budget, in the same version of this package. Files are complete or
absent; nothing in them is unpickled.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .. import __version__
from ..algorithms import Method
from ..algorithms.base import made, plain
from ..dynamics.endings import FINISHED
from ..errors import InputError, without_remedy
from ..networks import DirectedNetwork, Network
from ..problems.base import Problem
from ..run.calls.solve import solve, solve_many
from ..run.constants import assumed, make_method, unspectral
from ..run.local.backend import batches
from ..run.progress import Progress
from ..run.request import AUTO, TUNED, Request, Stop
from ..run.result import Result, load
from ..run.user_code import try_steps, user_code
from ..util.files import make_folder
from ..util.programs import Program, array_digest
from .instances import Instance, Instances
from .methods import under_its_title

FORMAT = "adom-runs-1"
CHIS = (1.0, 30.0, 300.0)
"""Values of chi at which the formulas of a method that finds its parameters are evaluated, for its key."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of a comparison or a sweep: a method with its parameters, on one problem and network.

    Attributes
    ----------
    label : str
        Label of the method.
    cls : type of Method
    method : Method, optional
        The method with its parameters, or those from which "auto" and "tuned" start; None if they were refused.
    protocol : str or dict
        How its parameters are chosen, as `adom.solve` takes it; "given" for an instance.
    oracle : str, optional
        Oracle of a dual method.
    problem, network
        What it runs on.
    at : Instance
        Their names, and the seed that drew them.
    tol : float, optional
        The error at which it stops.
    tuning : dict
        Account of the search that chose the parameters on another seed.
    """

    label: str
    cls: type[Method]
    method: Method | None
    protocol: Any
    oracle: str | None
    problem: Problem
    network: Network | DirectedNetwork
    at: Instance
    tol: float | None = None
    tuning: Mapping[str, Any] = field(default_factory=dict)

    @property
    def finds(self) -> bool:
        """Whether the run finds its own parameters, so that it cannot be part of a batch."""
        return self.protocol in (AUTO, TUNED) and not self.tuning

    @property
    def place(self) -> dict[str, Any]:
        """Its place among the others, for the provenance of its result."""
        return {"label": self.label, **self.at._asdict()}

    @property
    def asked(self) -> Any:
        """The parameters that its result says were asked for."""
        return self.protocol


@dataclass
class Keys:
    """Keys of runs with the same budget; data that several runs share is read once."""

    rounds: int
    record_every: int
    dtype: str
    _hidden: str = ""  # why no digest can identify some code, in words
    _failed: tuple[Any, ...] = ()  # arguments of `try_steps` for a user's method whose step JAX cannot trace
    _digests: dict[int, tuple[Any, str]] = field(default_factory=dict)  # keeps the object, so that its id stays unique
    _methods: dict[type[Method], str] = field(default_factory=dict)

    def key(self, job: Job) -> str:
        """Return the digest of all that determines the result of a job."""
        assert job.method is not None
        found: list[Any] = []
        if job.finds:  # by formulas that may change
            base = unspectral(job.problem, job.network, job.cls)
            found = [made(job.cls, "unit", assumed(base, chi=chi)).parameters() for chi in CHIS] + [job.protocol]
        content = {
            "format": FORMAT,
            "version": __version__,
            "problem": self._once(job.problem, self._problem_digest),
            "network": self._once(job.network, _network_digest),
            "method": self._method_text(job.method, job.problem),
            "parameters": {name: float(value) for name, value in job.method.parameters().items()},
            "found": found,
            "oracle": job.oracle,
            "tol": job.tol,
            "rounds": self.rounds,
            "record_every": self.record_every,
            "dtype": self.dtype,
        }
        return hashlib.sha256(json.dumps(content, default=float, sort_keys=True).encode()).hexdigest()[:32]

    def check(self) -> None:
        """Refuse to save runs of code that no digest can identify; a user's method may raise its own error first."""
        if self._failed:
            try_steps(*self._failed)
        if self._hidden:
            raise InputError(f"a run's file is named by a digest of its code, and {self._hidden}; leave folder out")

    def _problem_digest(self, problem: Problem) -> str:
        leaves = [self._once(leaf, array_digest) for leaf in jax.tree.leaves(problem)]
        parts = [*_descriptions(problem), self._code_digest(problem.user_code(), "the problem"), *leaves]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def _method_text(self, method: Method, problem: Problem) -> str:
        """Return a text that identifies a method's class, and the computation of a user's own method."""
        cls = type(method)
        if cls not in self._methods:
            place = (problem.nodes, problem.dim, self.dtype)
            code = user_code(method, *place)
            self._failed = (type(plain(method)), *place) if code.failed else self._failed
            facts = (cls.oracle, cls.rounds_per_step, cls.vectors_per_round, cls.directed)
            self._methods[cls] = " ".join(map(str, (cls.__qualname__, *facts, self._code_digest(code, cls.title))))
        return self._methods[cls]

    def _code_digest(self, code: Program, owner: str) -> str:
        if code.hidden and not self._hidden:
            self._hidden = f"{owner} has code that no digest can hold ({code.hidden})"
        return code.digest

    def _once(self, data: Any, digest: Callable[[Any], str]) -> str:
        if id(data) not in self._digests:
            self._digests[id(data)] = (data, digest(data))
        return self._digests[id(data)][1]


def _network_digest(network: Network | DirectedNetwork) -> str:
    """Return the digest of a network's recipe and order; the recipe has a digest of any graphs that were given."""
    content = hashlib.sha256(json.dumps([type(network).__name__, network.recipe], sort_keys=True).encode())
    content.update(network.order.tobytes())
    return content.hexdigest()


def _descriptions(problem: Problem) -> list[str]:
    """Return the types and settings of a problem and of the problem inside it, without arrays and code."""
    settings = [value for name in problem.static_fields if not callable(value := getattr(problem, name))]
    texts = [f"{type(problem).__qualname__} {problem.nodes} {problem.dim} {settings!r}"]
    for name in problem.array_fields:
        value = getattr(problem, name)
        texts += _descriptions(value) if isinstance(value, Problem) else [f"{name} {type(value).__qualname__}"]
    return texts


class JobRunner:
    """Makes the runs of jobs, and keeps those that have finished.

    Parameters
    ----------
    request : Request
        What the jobs share: budget, precision, and how progress is shown.
    folder : path, optional
        Where runs are kept and found.
    batch : int
        The most jobs of one method that run at the same time.
    home : str
        Entry of the provenance that holds a run's key and its place; "" for runs that are not kept.
    """

    def __init__(
        self, request: Request, folder: str | os.PathLike[str] | None = None, batch: int = 1, home: str = ""
    ) -> None:
        self.request, self.batch, self.home = request, batch, home
        self.keys = Keys(int(request.rounds), int(request.record_every), request.dtype)
        self.folder = None if folder is None else Path(folder)

    def results(
        self, jobs: Sequence[Job], unit: str = "", *, unfinished: bool = False
    ) -> tuple[dict[int, Result], bool]:
        """Return the results of jobs by their numbers, and whether Ctrl-C ended them before all had one.

        A run that Ctrl-C ended is kept nowhere, and is returned only with `unfinished`. With a `unit`, the progress
        shown is that of the jobs. Without any result Ctrl-C raises KeyboardInterrupt.
        """
        keys = [self._key(job) if self.home else "" for job in jobs]
        self._make_folder()
        results: dict[int, Result] = {}
        for number, (job, key) in enumerate(zip(jobs, keys, strict=True)):
            if (stored := self._find(key)) is not None:
                results[number] = self._described(job, key, under_its_title(stored, job.cls))
                if any(results[number].provenance[name] != stored.provenance[name] for name in (self.home, "method")):
                    self._keep(key, results[number])  # a label or a title has changed

        request, bar = self.request, Progress(len(jobs), self.home, self.request.progress, unit) if unit else None
        with bar or nullcontext():
            if bar:
                bar.update(len(results))
                request = replace(request, progress=False) if bar.bar else request  # there is room for one bar

            def take(part: list[int], index: int, result: Result) -> None:
                number = part[index]
                if result.status in FINISHED or unfinished:
                    results[number] = self._described(jobs[number], keys[number], result)
                if result.status in FINISHED:
                    self._keep(keys[number], results[number])
                    if bar:
                        bar.update(len(results))

            try:
                for part in self._parts(jobs, [number for number in range(len(jobs)) if number not in results]):
                    ended = self._made([jobs[number] for number in part], request, partial(take, part))
                    if any(result.status not in FINISHED for result in ended):
                        return results, True
            except KeyboardInterrupt:  # before or between rounds
                if not results:
                    raise
                return results, True
        return results, False

    def tuned(self, jobs: Sequence[Job], instances: Instances, seed: int, stop: Stop) -> list[Job]:
        """Return the jobs, with "tuned" parameters replaced by what a search finds on a seed of its own."""
        from ..run.calls.tuning import transferred

        pairs: dict[tuple[str, str], Any] = {}
        tuned = []
        for job in jobs:
            chosen = job
            if job.protocol == TUNED:
                names = job.at[:2]
                if names not in pairs:
                    pairs[names] = instances.at(*names, seed)
                problem, network = pairs[names]
                method = make_method(problem, network, job.cls, TUNED)
                drawn = {"problem": problem, "network": network, "method": method, "tol": stop.error(problem)}
                searched = self._searched(replace(job, at=Instance(*names, seed), **drawn)).provenance
                account = {**searched["tuning"], "seed": seed}
                method = transferred(job.problem, job.network, job.cls, account["chosen"])
                chosen = replace(job, method=method, oracle=searched["oracle"], tuning=account)
            tuned.append(chosen)
        return tuned

    def _searched(self, job: Job) -> Result:
        """Return the run of a job that searches for parameters."""
        key = self._key(job)
        self._make_folder()
        found = self._find(key)
        if found is None:
            (result,) = self._made([job], self.request)
            if result.status not in FINISHED:
                raise KeyboardInterrupt
            found = self._described(job, key, result)
            found.provenance[self.home]["search"] = True
            self._keep(key, found)
        return found

    def _key(self, job: Job) -> str:
        """Return a job's key; refuse to keep runs of code that no digest can identify."""
        key = self.keys.key(job)
        if self.folder is not None:
            self.keys.check()
        return key

    def _parts(self, jobs: Sequence[Job], numbers: Sequence[int]) -> Iterator[list[int]]:
        """Yield the numbers of jobs that can form one batch: same method and network, problems of the same shape."""
        groups: dict[Any, list[int]] = {}
        for number in numbers:
            job, key = jobs[number], (number,)
            if self.batch > 1 and not job.finds:
                leaves, structure = jax.tree.flatten(job.problem)
                key = (job.cls, job.oracle, id(job.network), structure, tuple(map(np.shape, leaves)))  # type: ignore[assignment]
            groups.setdefault(key, []).append(number)
        for group in groups.values():
            methods = [method for number in group if (method := jobs[number].method) is not None]
            yield from ([group[index] for index in part] for part in batches(methods, self.batch))

    def _made(
        self, part: list[Job], request: Request, finished: Callable[[int, Result], None] = lambda *_: None
    ) -> list[Result]:
        """Run jobs as one batch; pass each result to `finished` as soon as there is one."""
        job, oracle = part[0], part[0].oracle or "auto"
        cls: Any = job.cls
        how: dict[str, Any] = {"dtype": request.dtype, "progress": request.progress}
        if job.finds:
            setting = (cls, job.protocol, oracle, request.rounds, job.tol, request.record_every)
            result = solve(job.problem, job.network, *setting, **how)
            finished(0, result)
            return [result]
        tols = [tol for each in part if (tol := each.tol) is not None]
        return solve_many(
            [each.problem for each in part],
            job.network,
            [method for each in part if (method := each.method) is not None],
            oracle,
            request.rounds,
            tols if len(tols) == len(part) else None,
            request.record_every,
            **how,
            finished=finished,
        )

    def _described(self, job: Job, key: str, result: Result) -> Result:
        """Return the result with its key and its place among the others added to the provenance."""
        place = {self.home: {"key": key, **job.place}} if self.home else {}
        more = {"tuning": job.tuning} if job.tuning else {}
        return replace(result, provenance={**result.provenance, "protocol": job.asked, **place, **more})

    def _find(self, key: str) -> Result | None:
        """Return the finished run with that key, or None; warn about a file that is damaged or holds another run."""
        if self.folder is None or not (path := self.folder / f"{key}.npz").exists():
            return None
        try:
            result = load(path)
        except InputError as error:
            warnings.warn(f"{without_remedy(error)}; the run is made again", stacklevel=4)
            return None
        if (result.provenance.get(self.home) or {}).get("key") != key or result.status not in FINISHED:
            warnings.warn(f"{path} does not hold the run named in its file name; the run is made again", stacklevel=4)
            return None
        return result

    def _make_folder(self) -> None:
        if self.folder is not None:
            make_folder(self.folder, "choose another")

    def _keep(self, key: str, result: Result) -> None:
        if self.folder is not None:
            result.save(self.folder / f"{key}.npz")
