"""`compare`: several methods on the same problem and network, with the same budget of rounds; also over seeds."""

import os
from collections.abc import Sequence
from itertools import count
from typing import Any

from ..algorithms import COMPARED, METHODS
from ..dynamics.tolerance import check_rtol, tolerance
from ..errors import InputError
from ..networks import DirectedNetwork, Network
from ..problems.base import Problem
from ..run.auto.choice import check_findable
from ..run.calls.solve import solve
from ..run.constants import check_pair, make_method
from ..run.links import as_run
from ..run.request import AUTO, TUNED, Request, check_budget
from ..run.result import Result
from ..run.user_code import try_own
from ..util.checks import check_whole
from .comparison import INTERRUPTED, Comparison
from .comparison_runs import Run, Runner, read_run
from .comparisons import Comparisons
from .instances import Instance, Instances, read_instances
from .methods import LabelledMethod, read_methods, with_settings
from .store import Store

ALL = "all"
TUNING_SEED = 10**6
"""The seed on which parameters are tuned, unless it is compared itself. Adding seeds then changes no run."""
__all__ = ["INTERRUPTED", "Comparison", "compare"]


def compare(
    problem: Any,
    network: Any = None,
    methods: Sequence[Any] | str | None = None,
    parameters: str | dict[str, Any] = "auto",
    oracle: Any = "auto",
    rounds: int = 1000,
    tol: float | None = None,
    record_every: int = 1,
    *,
    rtol: float | None = None,
    seeds: Any = None,
    splits: Any = None,
    networks: Any = None,
    dtype: str = "float64",
    batch: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> "Comparison | Comparisons":
    """Run several methods on the same problem and network, each as `adom.solve` does; also over seeds.

    Everything is checked before the first method runs. Ctrl-C ends the comparison and returns the runs so far.

    Parameters
    ----------
    problem, network
        Problem and network must have the same number of nodes. With `seeds`, each may be a function of the seed. Dicts
        from names to problems or networks compare the methods on every pair.
    methods : sequence, optional
        Names, `Method` instances, or pairs (label, name or instance); or "all". By default `adom.algorithms.COMPARED`.
        With "all" or by default, methods that cannot run on this network are left out; `Comparison.skipped` says why.
    parameters : str or dict
        As in `adom.solve`, for all methods; or a dict from their labels or names to such values, with "auto" for those
        it leaves out. An instance has its own parameters. With `seeds`, "tuned" searches on a separate seed, 1,000,000;
        the compared runs apply the multiples that it finds to their own constants.
    oracle : str, tuple or dict
        As in `adom.solve`, for all dual methods; or a dict from labels or names to such values, with "auto" for those
        it leaves out.
    rounds : int
        The budget of communication rounds of each method.
    tol, record_every, dtype, progress
        As in `adom.solve`.
    rtol : float, optional
        Instead of `tol`: stop at this error relative to the start, which differs from seed to seed.
    seeds : int or list of int, optional
        The number of seeds, counted from 0, or the seeds. A problem or network that is a function is called with each
        seed, a network that `adom.networks` drew is drawn again, and everything else is the same for all seeds. Seeds
        that would change nothing are refused.
    splits : str or list, optional
        Ways to split the samples, such as those of ``adom.data.split``. `problem` is then a function that is called as
        ``problem(seed, split)``. Without `seeds`, the seed is 0.
    networks : dict or list, optional
        Further networks to compare on, or all of them if `network` is left out; each may be a function of the seed.
    batch : int, optional
        Maximum number of seeds that run at the same time, if only the problem depends on the seed. By default 1 on a
        CPU, where more are no faster, and 64 on an accelerator.
    folder : path, optional
        With seeds, splits or networks: every run is saved there as soon as it has finished, and the same call again
        runs only what is missing.

    Returns
    -------
    Comparison or Comparisons
        `Comparisons` with seeds, splits, or several problems or networks.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[1.0]], [[2.0]], [[3.0]]], [[1.0], [0.0], [0.0]])
    >>> network = adom.networks.ring(3)
    >>> comparison = adom.compare(problem, network, ["adom", ("bold", "adom")], {"bold": "unit"}, rounds=100)
    >>> comparison.table[["label", "protocol", "status"]].values.tolist()
    [['adom', 'auto', 'max_rounds'], ['bold', 'unit', 'max_rounds']]
    """
    listed = not (methods is None or methods == ALL)
    names = methods if listed else METHODS if methods == ALL else COMPARED
    entries = with_settings(read_methods(names), parameters, oracle)
    for entry in entries:
        Request(entry.oracle, rounds, tol, record_every, "local", dtype, progress).oracle_for(entry.cls)
    request = Request("auto", rounds, tol, record_every, "local", dtype, progress)
    check_rtol(rtol, tol)
    several = isinstance(problem, dict) or isinstance(network, dict | list | tuple) or callable(problem)
    if several or callable(network) or any(given is not None for given in (seeds, splits, networks)):
        instances = read_instances(problem, network, seeds, splits, networks)
        if batch is not None:
            check_whole("batch", batch)
        runner = Runner(request, Store.at(folder, "compare"), batch)
        return _compare_instances(instances, entries, runner, rtol, listed=listed)
    if folder is not None:
        raise InputError(f"folder={folder!r} keeps the runs of several seeds; give seeds, or save the comparison there")
    return _compare_one(problem, network, entries, request, rtol, listed=listed)


def _compare_one(
    problem: Problem,
    network: Network | DirectedNetwork,
    entries: list[LabelledMethod],
    request: Request,
    rtol: float | None,
    *,
    listed: bool,
) -> Comparison:
    """Run the methods one after the other."""
    check_pair(problem, network, directed=True)
    for entry in entries:
        try_own(entry.cls, problem, request.dtype)
    skipped = _refused(entries, problem, network, int(request.rounds), listed=listed)
    tol = tolerance(problem, request.tol, rtol)
    budget = (request.rounds, tol, request.record_every)
    results: dict[str, Result] = {}
    try:
        for entry in entries:
            if entry.label not in skipped:
                setting = (problem, network, entry.method, entry.parameters, entry.oracle, *budget)
                result = solve(*setting, dtype=request.dtype, progress=request.progress)
                results[entry.label] = result
                if result.status == "interrupted":
                    break
    except KeyboardInterrupt:  # before or between rounds: the current method has no result
        if not results:
            raise
    return Comparison(results, tol, skipped | _missing(entries, results, skipped))


def _refused(
    entries: list[LabelledMethod],
    problem: Problem,
    network: Network | DirectedNetwork,
    rounds: int,
    *,
    listed: bool,
) -> dict[str, str]:
    """Return why some methods cannot run; raise if the caller listed them or if none can run."""
    refused: dict[str, str] = {}
    for entry in entries:
        cls, own = entry.cls, entry.parameters
        try:
            check_pair(problem, network, directed=cls.directed, title=cls.title)
            protocol = own.get("protocol", "theory") if isinstance(own, dict) else own
            chosen = make_method(problem, network, entry.method, protocol)
            check_budget(chosen, rounds)
            as_run(chosen, network, problem.dim)  # refuses what a lossy network cannot carry
            if protocol == AUTO and not entry.is_instance:
                check_findable(cls, network)
        except InputError as error:
            if listed:
                raise
            refused[entry.label] = str(error)
        else:
            make_method(problem, network, entry.method, own)
    if len(refused) == len(entries):
        raise InputError(next(iter(refused.values())))
    return refused


def _missing(entries: list[LabelledMethod], results: Any, skipped: Any) -> dict[str, str]:
    """Return the methods that an interrupted comparison did not reach."""
    return {entry.label: INTERRUPTED for entry in entries if entry.label not in {*results, *skipped}}


def _compare_instances(
    instances: Instances, entries: list[LabelledMethod], runner: Runner, rtol: float | None, *, listed: bool
) -> Comparisons:
    """Run the methods on every instance, seed by seed."""
    (built, drawn), request = instances.build(), runner.request
    skipped: dict[Instance, dict[str, str]] = {}
    for at, pair in built.items():
        skipped[at] = _refused(entries, *pair, int(request.rounds), listed=listed)
    searching = instances.seeds is not None and any(e.parameters == TUNED and not e.is_instance for e in entries)
    tuning_seed = (
        next(seed for seed in count(TUNING_SEED) if seed not in (instances.seeds or [])) if searching else None
    )
    runs = [
        read_run(entry, at, *pair, tolerance(pair[0], request.tol, rtol))
        for at, pair in built.items()
        for entry in entries
        if entry.label not in skipped[at]
    ]
    results: dict[Instance, dict[str, Result]] = {at: {} for at in built}
    try:
        if tuning_seed is not None:
            runs = _tuned(runs, instances, tuning_seed, runner, rtol)
        for run, result in runner.results(runs):
            results[run.instance][run.entry.label] = result
    except KeyboardInterrupt:  # before or between rounds
        if not any(results.values()):
            raise
    order = [entry.label for entry in entries]
    parts = {}
    for at, some in results.items():
        kept = {label: some[label] for label in order if label in some}
        tol = tolerance(built[at][0], request.tol, rtol)
        parts[at] = Comparison(kept, tol, skipped[at] | _missing(entries, kept, skipped[at]))
    return Comparisons(parts, drawn, request.tol, rtol, tuning_seed)


def _tuned(runs: list[Run], instances: Instances, seed: int, runner: Runner, rtol: float | None) -> list[Run]:
    """Return the runs, with "tuned" parameters replaced by what a search finds on the separate seed."""
    pairs: dict[tuple[str, str], Any] = {}
    tuned = []
    for run in runs:
        if run.protocol == TUNED:
            place = run.instance[:2]
            if place not in pairs:
                pairs[place] = instances.at(*place, seed)
            problem, network = pairs[place]
            tol = tolerance(problem, runner.request.tol, rtol)
            at = read_run(run.entry, Instance(*place, seed), problem, network, tol)
            tuned.append(runner.tuned(run, at))
        else:
            tuned.append(run)
    return tuned
