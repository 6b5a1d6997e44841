"""Runs of a comparison over many instances: read from a folder, or made now and saved there."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from ..algorithms import Method
from ..algorithms.base import made
from ..dynamics.endings import FINISHED
from ..networks import DirectedNetwork, Network
from ..problems.base import Problem
from ..problems.oracle_spec import parse_oracle
from ..run.calls.solve import solve, solve_many
from ..run.calls.tuning import transferred
from ..run.constants import assumed, make_method, unspectral
from ..run.local.backend import batches
from ..run.request import AUTO, TUNED, Request
from ..run.result import Result
from .instances import Instance
from .methods import LabelledMethod, under_its_title
from .store import Keys, Store

AnyNetwork = Network | DirectedNetwork
CHIS = (1.0, 30.0, 300.0)
"""Values of chi at which a method's formulas are evaluated, to notice that they have changed."""
BATCH = 64
"""Maximum number of seeds in a batch on an accelerator."""


@dataclass(frozen=True)
class Run:
    """One method on one instance; `method` has its parameters, or those from which "auto" and "tuned" start."""

    entry: LabelledMethod
    instance: Instance
    problem: Problem
    network: AnyNetwork
    method: Method
    oracle: str | None
    protocol: Any
    tol: float | None
    tuning: dict[str, Any] = field(default_factory=dict)

    @property
    def cls(self) -> type[Method]:
        """The class of the method."""
        return self.entry.cls

    @property
    def found(self) -> bool:
        """Whether the run finds its own parameters, so that it cannot be part of a batch."""
        return self.protocol in (AUTO, TUNED) and not self.tuning


def read_run(
    entry: LabelledMethod, instance: Instance, problem: Problem, network: AnyNetwork, tol: float | None
) -> Run:
    """Return a run with the requested parameters."""
    method = make_method(problem, network, entry.method, entry.parameters)
    oracle = str(parse_oracle(entry.oracle)) if entry.cls.oracle == "dual" else None
    protocol = "given" if entry.is_instance else entry.parameters
    return Run(entry, instance, problem, network, method, oracle, protocol, tol)


@dataclass
class Runner:
    """Make runs, and save those that have finished."""

    request: Request
    store: Store
    batch: int | None = None
    keys: Keys = field(init=False)

    def __post_init__(self) -> None:
        self.keys = Keys(int(self.request.rounds), int(self.request.record_every), self.request.dtype)
        if self.batch is None:  # on a CPU a batch is no faster, and single runs have the bits of `adom.solve`
            self.batch = 1 if jax.default_backend() == "cpu" else BATCH

    def key(self, run: Run) -> str:
        """Return the digest of all that determines a run; refuse to save runs of code that no digest can identify."""
        formulas: list[Any] = []
        if run.found:
            base = unspectral(run.problem, run.network)
            formulas = [made(run.cls, "unit", assumed(base, chi=chi)).parameters() for chi in CHIS]
        text = json.dumps([run.protocol, formulas], default=float, sort_keys=True)
        key = self.keys.key(run, run.tol, comparison=text)
        if self.store.folder is not None:
            self.keys.check()
        return key

    def tuned(self, run: Run, at: Run) -> Run:
        """Return a run with the parameters that a search chose on `at`, the same method's run on another seed."""
        key = self.key(at)
        searched = self.store.find(key)
        if searched is None:
            (searched,) = self._made([at])
            if searched.status not in FINISHED:
                raise KeyboardInterrupt
            searched = _described(at, key, searched, search=True)
            self.store.keep(key, searched)
        account = {**searched.provenance["tuning"], "seed": at.instance.seed}
        method = transferred(run.problem, run.network, run.cls, account["chosen"])
        return replace(run, method=method, oracle=searched.provenance["oracle"], tuning=account)

    def results(self, runs: Sequence[Run]) -> Iterator[tuple[Run, Result]]:
        """Yield every finished run and its result, those found in the folder first.

        An interrupted run raises KeyboardInterrupt and is not saved.
        """
        keys = {id(run): self.key(run) for run in runs}
        pending = []
        for run in runs:
            stored = self.store.find(keys[id(run)])
            if stored is None:
                pending.append(run)
            else:
                described = _described(run, keys[id(run)], under_its_title(stored, run.cls))
                names = ("compare", "method")
                if any(described.provenance[name] != stored.provenance[name] for name in names):  # a name has changed
                    self.store.keep(keys[id(run)], described)
                yield run, described
        for part in self._parts(pending):
            made = self._made(part)
            for run, result in zip(part, made, strict=True):
                if result.status in FINISHED:
                    described = _described(run, keys[id(run)], result)
                    self.store.keep(keys[id(run)], described)
                    yield run, described
            if any(result.status not in FINISHED for result in made):
                raise KeyboardInterrupt

    def _parts(self, runs: Sequence[Run]) -> Iterator[list[Run]]:
        """Yield runs that can form one batch: same method and network, problems of the same shape."""
        assert self.batch is not None
        groups: dict[Any, list[Run]] = {}
        for number, run in enumerate(runs):
            key: Any = number
            if self.batch > 1 and not run.found:
                leaves, structure = jax.tree.flatten(run.problem)
                key = (run.entry.label, run.oracle, id(run.network), structure, tuple(map(np.shape, leaves)))
            groups.setdefault(key, []).append(run)
        for group in groups.values():
            for part in batches([run.method for run in group], self.batch):
                yield [group[number] for number in part]

    def _made(self, part: list[Run]) -> list[Result]:
        run, request = part[0], self.request
        how: dict[str, Any] = {"dtype": request.dtype, "progress": request.progress}
        if run.found:
            setting = (run.entry.method, run.protocol, run.oracle or "auto", request.rounds, run.tol)
            return [solve(run.problem, run.network, *setting, request.record_every, **how)]
        tols = [tol for each in part if (tol := each.tol) is not None]
        return solve_many(
            [each.problem for each in part],
            run.network,
            [each.method for each in part],
            run.oracle or "auto",
            request.rounds,
            tols if len(tols) == len(part) else None,
            request.record_every,
            **how,
        )


def _described(run: Run, key: str, result: Result, **more_of_it: bool) -> Result:
    """Return the result with its place in the comparison added to the provenance."""
    place = {"key": key, "label": run.entry.label, **run.instance._asdict(), **more_of_it}
    more = {"tuning": run.tuning} if run.tuning else {}
    return replace(result, provenance={**result.provenance, "protocol": run.protocol, "compare": place, **more})
