"""Parameters by search: the same number of candidates, the same rounds and the same rule for every method.

A method's parameters are formulas in mu, L and chi. Candidates are what the method's own ``unit`` gives when it is told
other values of these three constants, so whatever a theorem ties together stays tied, and every method is searched in
the same three dimensions, whether it has one parameter or twelve. The true constants are worst cases (the worst node's
L, the worst graph's chi); the best parameters are often those of easier ones.

The first stage spreads its candidates over factors from 1/16 to 16 of each constant; each later one spreads the same
number more closely around the best so far. Where a dual method is to run with the oracle `auto`, the search and the run
that follows take a fixed number of accelerated inner steps that is nearly exact. A rehearsal is of the worst case that
mu and L allow, where parameters as bold as tuned ones fail: it says nothing about them, and takes longer than they do.
"""

from dataclasses import dataclass, replace
from math import ceil, log, sqrt
from typing import Any

import numpy as np

from ..algorithms import Constants, Method
from ..engine.pair import constants
from ..engine.solve import Request, check_budget
from ..errors import InputError
from ..networks import DirectedNetwork, Network
from ..problems.base import Problem
from .members import ASSUMED, assumed
from .sweep import sweep

STAGES = ((16, 16.0), (16, 6.0), (16, 4.0), (16, 3.0), (16, 2.0), (16, 1.5))
"""How many candidates each stage has, and their factors: from 1/spread to spread, around the best of those before."""
RTOL = 1e-10
"""The target where no tolerance is given: this error, relative to the start."""
SEED = 0
MOST_STEPS = 64
"""The most inner steps a round of a search in place of `auto`."""
RULE = "fewest rounds to the target error; ties, and candidates that do not reach it, by the last error"


@dataclass(frozen=True)
class Candidate:
    """One setting that was tried, and how it did."""

    name: str  # "unit", "theory", or "" for one that was drawn
    factors: tuple[float, ...]
    method: Method | None
    rounds: float = np.inf  # to the target
    error: float = np.inf  # relative, at the end
    status: str = "refused"

    @property
    def score(self) -> tuple[float, float]:
        """The less, the better."""
        return self.rounds, self.error


def tune(
    problem: Problem, network: Network | DirectedNetwork, cls: type[Method], request: Request
) -> tuple[Method, Any, dict[str, Any]]:
    """Return a method with the best parameters found, its oracle, and how they were found, for the provenance.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[1.0]], [[2.0]], [[9.0]]], [[1.0], [0.0], [0.0]])
    >>> network = adom.networks.ring(3)
    >>> unit, tuned = (adom.solve(problem, network, "diging", way, rounds=500, tol=1e-9) for way in ("unit", "tuned"))
    >>> tuned.provenance["tuning"]["candidates"]
    96
    >>> bool(tuned.history["round"].iloc[-1] < unit.history["round"].iloc[-1])
    True
    """
    true = constants(problem, network)
    start = problem.nodes * float((problem.solution() ** 2).sum())
    tol = request.tol if request.tol is not None else RTOL * start
    oracle = _oracle(cls, request, true.kappa)
    tried: list[Candidate] = []
    best: Candidate | None = None
    rounds = request.rounds
    check_budget(cls.unit(true), rounds)
    for stage in range(len(STAGES)):
        drawn = _drawn(cls, true, best.factors if best else (1.0,) * len(ASSUMED), stage)
        if best is None:
            ones = (1.0,) * len(ASSUMED)
            drawn[:2] = [Candidate("unit", ones, cls.unit(true)), Candidate("theory", ones, cls.theory(true))]
        ran = _run(drawn, problem, network, replace(request, oracle=oracle, rounds=rounds, tol=tol or None), start)
        tried += ran
        best = min([*([best] if best else []), *ran], key=lambda one: one.score)
        if np.isfinite(best.rounds):
            rounds = int(best.rounds)  # what takes more cannot win
    assert best is not None
    assert best.method is not None
    account = _account(best, tried)
    return best.method, oracle, {"rounds": int(request.rounds), "target": tol / start if start > 0 else None, **account}


def _oracle(cls: type[Method], request: Request, kappa: float) -> Any:
    """Return the oracle of the search: the one asked for, or what stands in for `auto`."""
    if cls.oracle != "dual" or request.oracle != "auto":
        return request.oracle if cls.oracle == "dual" else "auto"
    return f"agd:{min(MOST_STEPS, ceil(2 * sqrt(kappa)))}"


def _drawn(cls: type[Method], true: Constants, centre: tuple[float, ...], stage: int) -> list[Candidate]:
    """Return candidates whose factors are spread evenly, on a logarithmic scale, around a centre."""
    found = []
    spread = STAGES[stage][1]
    for point in _points(stage):
        mu, L, chi = (float(middle * spread ** (2 * u - 1)) for middle, u in zip(centre, point, strict=True))
        chi = max(chi, 1 / true.chi)  # constants that no problem has are moved to the nearest that one has
        mu = min(mu, 0.99 * true.kappa * L)
        try:
            method = cls.unit(assumed(true, mu, L, chi))
        except InputError:
            method = None
        found.append(Candidate("", (mu, L, chi), method))
    return found


def _points(stage: int) -> np.ndarray:
    """Return points of the unit cube: Sobol's, shifted at random, the same for every method."""
    from scipy.stats.qmc import Sobol

    shift = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(stage,))).random(len(ASSUMED))
    points: np.ndarray = (Sobol(len(ASSUMED), scramble=False).random_base2(int(log(STAGES[stage][0], 2))) + shift) % 1.0
    return points


def _run(
    drawn: list[Candidate],
    problem: Problem,
    network: Network | DirectedNetwork,
    request: Request,
    start: float,
) -> list[Candidate]:
    """Run candidates as one sweep; those whose first step does not fit into the rounds are not run."""
    able = {
        place: one.method
        for place, one in enumerate(drawn)
        if one.method is not None and int(one.method.rounds_of_step(0)) <= request.rounds
    }
    if not able:
        return drawn
    methods = [(str(place), method) for place, method in able.items()]
    done = sweep(
        problem,
        network,
        methods,
        oracles=request.oracle,
        rounds=request.rounds,
        tol=request.tol,
        dtype=request.dtype,
        progress=request.progress,
    )
    if done.interrupted:
        raise KeyboardInterrupt
    found = list(drawn)
    for row in done.table.to_dict("records"):
        one = drawn[int(row["label"])]
        to_target = float(row["rounds_to_target"])
        last = float(row["error"]) / start if start > 0 else float(row["error"])
        lost = row["status"] == "diverged" or not np.isfinite(last)
        found[int(row["label"])] = Candidate(
            one.name,
            one.factors,
            one.method,
            np.inf if np.isnan(to_target) else to_target,
            np.inf if lost else last,
            str(row["status"]),
        )
    return found


def _account(best: Candidate, tried: list[Candidate]) -> dict[str, Any]:
    """Return how the parameters were found, as JSON-able data."""
    return {
        "rule": RULE,
        "candidates": len(tried),
        "base": "unit",
        "space": "factors of mu, L and chi, the constants that unit's formulas are told; unit and theory too",
        "sampler": "Sobol, logarithmic, in stages around the best so far",
        "stages": [{"candidates": count, "spread": spread} for count, spread in STAGES],
        "seed": SEED,
        "chosen": {"name": best.name or None, **_short(best)},
        "outcomes": [_short(one) for one in tried],
    }


def _short(one: Candidate) -> dict[str, Any]:
    def plain(value: float) -> float | None:
        return float(f"{value:.6g}") if np.isfinite(value) else None

    factors = {name: plain(value) for name, value in zip(ASSUMED, one.factors, strict=True)}
    return {**factors, "rounds": plain(one.rounds), "relative_error": plain(one.error), "status": one.status}
