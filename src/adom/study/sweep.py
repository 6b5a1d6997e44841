"""`sweep`: many settings, batched so that the data is read once for many of them, and resumed where it was left."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..errors import InputError
from ..problems.base import Problem, solutions
from ..run.endings import FINISHED
from ..run.progress import Progress
from ..run.request import Request
from ..run.result import Result
from ..run.solve import solve_many
from ..util.checks import check_whole
from .members import Asked, Member, expand, number
from .store import Budget, Keys, Store
from .sweep_result import Sweep

UNEVEN = 2.0
"""How many times longer one member's steps may be than another's in a batch, where steps take several rounds."""


def sweep(
    problem: Problem,
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
    """Run every combination of what is given in lists, many at a time.

    Each member gets the result that `adom.solve` would give it; one that diverges does not disturb the rest, and one
    whose parameters the method's own rules refuse is left out and listed in `Sweep.refused`. Everything else is checked
    before the first member runs. Ctrl-C ends the sweep; what was done is returned.

    Parameters
    ----------
    problem
    network : Network or list of Network
    methods : str, Method or list
        Names, `Method` instances, or pairs (label, name or instance).
    parameters : str, dict or list
        The base: "theory", "unit" or a dict as in `adom.solve`, or a dict from methods to such; a list of bases runs
        all of them. An instance is its own base.
    grid : dict, optional
        Parameter -> values to take in place of the base's: ``{"eta": [0.1, 0.2], "tau": [0.01, 0.02]}`` is four
        combinations. It applies to those methods that have the parameter. ``{"adom": {...}, "mudag": {...}}`` gives
        each method its own.
    factors : dict, optional
        Likewise, parameter -> multiples of the base's value.
    assume : dict, optional
        "mu", "L" or "chi" -> multiples of the true constant to compute the base from: common to all methods, whatever
        their parameters are called.
    settings : list of dict, optional
        Explicit combinations, each a dict of values that replace the base's.
    oracles : str, tuple or list
        Ways to get grad F*, for dual methods.
    kappas : list of float, optional
        The same data with the regulariser that gives each condition number.
    seeds : list of int, optional
        The network, and nothing else, drawn again with each seed.
    rounds, tol, record_every, dtype
        As in `adom.solve`, for every member.
    rtol : float, optional
        Instead of `tol`: stop at this error relative to the start, which differs from kappa to kappa.
    batch : int
        The most members that run at the same time.
    folder : path, optional
        Every member is saved there as soon as it has finished; those that are there already are not run again. A loss
        or method of your own counts as the same if it computes the same; one for which this cannot be told is refused.
    progress : bool, optional
        Show members done and time left; by default only on a terminal.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[1.0]], [[2.0]], [[3.0]]], [[1.0], [0.0], [0.0]])
    >>> network = adom.networks.ring(3)
    >>> found = adom.sweep(problem, network, factors={"eta": [0.5, 1, 50]}, rounds=300, tol=1e-9)
    >>> found.table[["factor_eta", "status"]].values.tolist()
    [[0.5, 'converged'], [1.0, 'converged'], [50.0, 'diverged']]
    >>> found.best()["factor_eta"].tolist()
    [1.0]
    """
    request = Request("auto", rounds, tol, record_every, "local", dtype, progress)
    check_whole("batch", batch)
    if rtol is not None and (tol is not None or not 0 < number("rtol", rtol) <= 1):
        raise InputError(f"rtol must lie in (0, 1] and leaves no place for tol, got {rtol!r} and tol={tol!r}; give one")
    members = expand(
        problem, network, Asked(methods, parameters, grid, factors, assume, settings, oracles, kappas, seeds), rounds
    )
    if all(one.refused for one in members):
        raise InputError(members[0].refused)

    tols = _tolerances(members, tol, rtol)
    keys = Keys(Budget(int(rounds), int(record_every), dtype))
    able = [one for one in members if not one.refused]
    names = {one.number: keys.key(one, tol if rtol is None else {"rtol": rtol}) for one in able}
    if folder is not None and keys.hidden:
        raise InputError(f"results are kept in a folder by what gave them, and {keys.hidden}; leave folder out")
    store = Store.at(folder)
    results = {one.number: found for one in able if (found := store.find(names[one.number])) is not None}
    interrupted = False
    with Progress(len(able), "sweep", progress, "members") as bar:
        bar.update(len(results))

        def finished(member: Member, result: Result) -> None:
            if result.status not in FINISHED:
                return
            made = _described(member, names[member.number], result)
            results[member.number] = made
            store.keep(names[member.number], made)
            bar.update(len(results))

        try:
            for group in _batches([one for one in able if one.number not in results], batch):
                if not _run(group, tols, request, finished):
                    interrupted = True
                    break
        except KeyboardInterrupt:  # before or between rounds
            interrupted = True
            if not results:
                raise
    return Sweep(tuple(members), dict(sorted(results.items())), tols, interrupted)


def _tolerances(members: Sequence[Member], tol: float | None, rtol: float | None) -> dict[int, float | None]:
    """Return the error at which each member may stop: the one given, or a part of the error at its start."""
    if rtol is None:
        return {one.number: tol for one in members}
    problems = [one.problem for one in members]
    starts = [p.nodes * float((x**2).sum()) for p, x in zip(problems, solutions(problems), strict=True)]
    return {one.number: rtol * start or None for one, start in zip(members, starts, strict=True)}


def _run(
    group: Sequence[Member],
    tols: dict[int, float | None],
    request: Request,
    finished: Callable[[Member, Result], None],
) -> bool:
    """Run members of one batch; return whether all of them came to their end."""
    first = group[0]
    methods = [one.method for one in group if one.method is not None]
    aims = [tol for one in group if (tol := tols[one.number]) is not None]
    results = solve_many(
        [one.problem for one in group],
        first.network,
        methods,
        first.oracle or "auto",
        request.rounds,
        aims if len(aims) == len(group) else None,
        request.record_every,
        dtype=request.dtype,
        progress=False,
        finished=lambda place, result: finished(group[place], result),
    )
    return all(one.status in FINISHED for one in results)


def _batches(members: Sequence[Member], most: int) -> Iterator[list[Member]]:
    """Put members together that can run as one: the same method, oracle and network."""
    groups: dict[Any, list[Member]] = {}
    for one in members:
        groups.setdefault((one.cls, one.oracle, one.place), []).append(one)
    for group in groups.values():
        for part in _even(group):
            count = math.ceil(len(part) / most)
            for place in range(count):
                yield part[place * len(part) // count : (place + 1) * len(part) // count]


def _even(group: list[Member]) -> Iterator[list[Member]]:
    """Keep members apart whose steps differ much in length: a batch waits for the longest in every step."""
    if group[0].cls.rounds_per_step is not None:
        yield group
        return
    lengths = {one.number: float(one.method.rounds_of_step(16)) for one in group if one.method is not None}
    part: list[Member] = []
    for one in sorted(group, key=lambda one: lengths[one.number]):
        if part and lengths[one.number] > UNEVEN * lengths[part[0].number]:
            yield part
            part = []
        part.append(one)
    yield part


def _described(member: Member, key: str, result: Result) -> Result:
    """Return the result with what the sweep knows about it: its base, what was varied, and its key."""
    protocol = member.protocol
    if protocol != "given" and (member.values or member.factors or member.assume):
        assert member.method is not None
        changed = {name: float(value) for name, value in member.method.parameters().items()}
        if not member.assume:
            changed = {name: changed[name] for name in {**member.values, **member.factors}}
        base = protocol if isinstance(protocol, dict) else {"protocol": protocol}
        protocol = {**base, **changed}
    varied = {"values": member.values, "factors": member.factors, "assume": member.assume}
    told = {"key": key, "label": member.label, "base": member.protocol, **varied}
    return replace(result, provenance={**result.provenance, "protocol": protocol, "sweep": told})
