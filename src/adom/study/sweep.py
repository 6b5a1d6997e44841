"""`sweep`: run many settings in batches that share the data, and resume after an interruption."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..dynamics.endings import FINISHED
from ..dynamics.tolerance import check_rtol, tolerance
from ..errors import InputError
from ..run.calls.solve import solve_many
from ..run.local.backend import batches
from ..run.progress import Progress
from ..run.request import Request
from ..run.result import Result
from ..util.checks import check_whole
from .members import Member, SweepSpec, expand
from .methods import under_its_title
from .store import Keys, Store
from .sweep_result import Sweep


def sweep(
    problem: Any,
    network: Any,
    methods: Any = "adom",
    parameters: Any = "unit",
    *,
    grid: Any = None,
    factors: Any = None,
    assume: Any = None,
    settings: Any = None,
    oracles: Any = "auto",
    kappas: Any = None,
    seeds: Any = None,
    rounds: int = 1000,
    tol: float | None = None,
    rtol: float | None = None,
    record_every: int = 1,
    dtype: str = "float64",
    batch: int = 64,
    folder: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Sweep:
    """Run every combination of the settings given in lists, many at a time.

    Each member gets the result that `adom.solve` would give it. A member that diverges does not disturb the others. A
    member whose parameters are refused by the method's own rules is left out and listed in `Sweep.refused`. Everything
    else is checked before the first member runs. Ctrl-C ends the sweep and returns the members finished so far.

    Parameters
    ----------
    problem : Problem or function
        A function is called with each seed and returns the problem for it.
    network : Network, function, or list of them
        A function is called in the same way.
    methods : str, Method or list
        Names, `Method` instances, or pairs (label, name or instance).
    parameters : str, dict or list
        The base: "theory", "unit" or a dict as in `adom.solve`, or a dict from methods to such values. A list of bases
        runs all of them. An instance is its own base.
    grid : dict, optional
        Parameter -> values that replace the base's: ``{"eta": [0.1, 0.2], "tau": [0.01, 0.02]}`` is four combinations.
        It applies to those methods that have the parameter. ``{"adom": {...}, "mudag": {...}}`` gives each method its
        own.
    factors : dict, optional
        In the same way, parameter -> multiples of the base's value.
    assume : dict, optional
        "mu", "L" or "chi" -> multiples of the true constant from which to compute the base. They apply to all methods,
        whatever their parameters are called.
    settings : list of dict, optional
        Explicit combinations, each a dict of values that replace the base's.
    oracles : str, tuple or list
        Dual oracles as in `adom.solve`, for dual methods.
    kappas : list of float, optional
        The same data with the regulariser that gives each condition number.
    seeds : int or list of int, optional
        The number of seeds, counted from 0, or the seeds; every setting runs with each. A seed redraws networks that
        adom drew, and is passed to functions. Give a function of the seed if the problem should change too.
    rounds, tol, record_every, dtype
        As in `adom.solve`, for every member.
    rtol : float, optional
        Instead of `tol`: stop at this error relative to the start, which differs from kappa to kappa.
    batch : int
        Maximum number of members that run at the same time.
    folder : path, optional
        Every member is saved there as soon as it has finished; members found there are not run again. A loss or method
        of your own counts as the same if it computes the same; one for which this cannot be decided is refused.
    progress : bool, optional
        Show members done: True a bar, False nothing; by default a bar on a terminal, and a line now and then elsewhere.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[1.0]], [[2.0]], [[3.0]]], [[1.0], [0.0], [0.0]])
    >>> network = adom.networks.ring(3)
    >>> sweep = adom.sweep(problem, network, factors={"eta": [0.5, 1, 50]}, rounds=300, tol=1e-9)
    >>> sweep.table[["factor_eta", "status"]].values.tolist()
    [[0.5, 'converged'], [1.0, 'converged'], [50.0, 'diverged']]
    >>> sweep.best()["factor_eta"].tolist()
    [1.0]
    """
    request = Request("auto", rounds, tol, record_every, "local", dtype, progress)
    check_whole("batch", batch)
    check_rtol(rtol, tol)
    spec = SweepSpec(methods, parameters, grid, factors, assume, settings, oracles, kappas, seeds)
    members = expand(problem, network, spec, rounds)
    runnable = [member for member in members if not member.refused]
    if not runnable:
        raise InputError(members[0].refused)
    tols = {member.number: tolerance(member.problem, tol, rtol) for member in members}
    keys = Keys(int(rounds), int(record_every), dtype)
    names = {member.number: keys.key(member, tol if rtol is None else {"rtol": rtol}) for member in runnable}
    if folder is not None:
        keys.check()
    results, interrupted = _run(runnable, names, Store.at(folder), tols, request, batch)
    return Sweep(tuple(members), dict(sorted(results.items())), tols, interrupted)


def _run(
    members: Sequence[Member],
    keys: dict[int, str],
    store: Store,
    tols: dict[int, float | None],
    request: Request,
    batch: int,
) -> tuple[dict[int, Result], bool]:
    """Return the results of members, stored or run now, by number; and whether Ctrl-C ended the sweep."""
    results = {}
    for member in members:
        if (stored := store.find(keys[member.number])) is not None:
            results[member.number] = under_its_title(stored, member.cls)
            if results[member.number] is not stored:
                store.keep(keys[member.number], results[member.number])
    with Progress(len(members), "sweep", request.progress, "members") as bar:
        bar.update(len(results))

        def keep(member: Member, result: Result) -> None:
            if result.status in FINISHED:
                key = keys[member.number]
                results[member.number] = _described(member, key, result)
                store.keep(key, results[member.number])
                bar.update(len(results))

        try:
            for group in _batches([member for member in members if member.number not in results], batch):
                aims = [tol for member in group if (tol := tols[member.number]) is not None]
                ended = solve_many(
                    [member.problem for member in group],
                    group[0].network,
                    [member.method for member in group if member.method is not None],
                    group[0].oracle or "auto",
                    request.rounds,
                    aims if len(aims) == len(group) else None,
                    request.record_every,
                    dtype=request.dtype,
                    progress=False if bar.bar else request.progress,  # there is room for one bar, and for many lines
                    finished=partial(lambda group, index, result: keep(group[index], result), group),
                )
                if any(result.status not in FINISHED for result in ended):
                    return results, True
        except KeyboardInterrupt:  # before or between rounds
            if not results:
                raise
            return results, True
    return results, False


def _batches(members: Sequence[Member], most: int) -> Iterator[list[Member]]:
    """Yield groups of members that can run as one batch: same method, oracle and network."""
    groups: dict[Any, list[Member]] = {}
    for member in members:
        groups.setdefault((member.cls, member.oracle, member.place), []).append(member)
    for group in groups.values():
        methods = [method for member in group if (method := member.method) is not None]
        yield from ([group[number] for number in part] for part in batches(methods, most))


def _described(member: Member, key: str, result: Result) -> Result:
    """Return the result with its base, settings and key added to the provenance."""
    protocol = member.protocol
    if protocol != "given" and (member.values or member.factors or member.assume):
        assert member.method is not None
        changed = {name: float(value) for name, value in member.method.parameters().items()}
        if not member.assume:
            changed = {name: changed[name] for name in {**member.values, **member.factors}}
        protocol = {**(protocol if isinstance(protocol, dict) else {"protocol": protocol}), **changed}
    settings = {"values": member.values, "factors": member.factors, "assume": member.assume}
    sweep = {"key": key, "label": member.label, "base": member.protocol, "network": member.given, **settings}
    sweep |= {"seed": member.seed, "kappa": member.kappa}
    return replace(result, provenance={**result.provenance, "protocol": protocol, "sweep": sweep})
