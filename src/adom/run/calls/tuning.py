"""Search for parameters, with the same number of candidates, the same rounds and the same rule for every method.

A method's parameters are formulas in mu, L and chi. Candidates come from the method's own ``unit`` with other values
of these three constants. So parameters keep the relations that a theorem needs, and every method is searched in the
same three dimensions, whether it has one parameter or twelve. The true constants are worst cases (the worst node's L,
the worst graph's chi); the best parameters are often those of easier constants.

The first stage spreads its candidates over factors from 1/16 to 16 of each constant; each later one spreads the same
number more closely around the best so far. For a dual method with the oracle `auto`, the search and the final run use
a fixed number of accelerated inner steps that is nearly exact, so that candidates can run as one batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, log, sqrt
from typing import Any

import numpy as np

from ...algorithms import Constants, Method
from ...algorithms.base import made
from ...errors import InputError
from ...networks import DirectedNetwork, Network
from ...problems.base import Problem
from ..constants import ASSUMED, assumed, constants, in_windows
from ..local.backend import batches, run_settings
from ..request import TUNED, Request, Stop, check_budget, start_error

Stages = Sequence[tuple[int, float]]
STAGES: Stages = ((16, 16.0), (16, 6.0), (16, 4.0), (16, 3.0), (16, 2.0), (16, 1.5))
"""Number of candidates of each stage, and the spread of their factors around the best so far."""
RTOL = 1e-10
"""The target error relative to the start, if no tolerance is given."""
SEED = 0
BATCH = 64
"""Most candidates that run at the same time."""
SHORTEST = 512
"""Rounds below which the budget is not cut: a new program to compile would cost more than that saves."""
MOST_STEPS = 64
"""Most inner steps per round that a search uses in place of `auto`."""
RULE = "fewest rounds to the target error; ties, and candidates that do not reach it, by the last error"


@dataclass(frozen=True)
class Candidate:
    """One setting and how well it did."""

    name: str  # "unit", "theory", or "" for a sampled candidate
    factors: tuple[float, ...]
    method: Method | None
    rounds: float = np.inf  # to the target
    error: float = np.inf  # relative, at the end
    status: str = "refused"

    @property
    def score(self) -> tuple[float, float]:
        """Lower is better."""
        return self.rounds, self.error


def tune(
    problem: Problem,
    network: Network | DirectedNetwork,
    cls: type[Method],
    request: Request,
    stages: Stages = STAGES,
    batch: int = BATCH,
    records: int | None = None,
) -> tuple[Method, Any, dict[str, Any]]:
    """Return the method with the best parameters found, its oracle, and an account of the search for the provenance.

    The number of candidates per stage is a power of two; at most `batch` run at the same time. With `records`, a
    candidate whose steps take one round has that many records instead of one per round.

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
    start = start_error(problem)
    tol = request.stop.error(problem)
    tol = RTOL * start if tol is None else tol
    oracle = _oracle(cls, request, true.kappa)
    tried: list[Candidate] = []
    best: Candidate | None = None
    rounds = request.rounds
    check_budget(in_windows(made(cls, "unit", true), network), rounds)
    ones = (1.0,) * len(ASSUMED)
    for stage, (count, spread) in enumerate(stages):
        candidates = _candidates(cls, true, best.factors if best else ones, _points(stage, count), spread)
        if best is None:
            candidates[:2] = [Candidate(name, ones, made(cls, name, true)) for name in ("unit", "theory")]
        every = 1
        if records and cls.rounds_per_step == 1:
            every = ceil(rounds / records)
            rounds = min(request.rounds, every * records)  # always the same number of records, so one program
        limited = replace(request, oracle=oracle, rounds=rounds, stop=Stop(tol or None), record_every=every)
        outcomes = _run(candidates, problem, network, limited, start, batch)
        tried += outcomes
        best = min([*([best] if best else []), *outcomes], key=lambda candidate: candidate.score)
        if np.isfinite(best.rounds):
            rounds = min(rounds, max(int(best.rounds), SHORTEST))  # slower candidates cannot win
    assert best is not None
    assert best.method is not None
    account = _account(best, tried, stages)
    return best.method, oracle, {"rounds": int(request.rounds), "target": tol / start if start > 0 else None, **account}


def _oracle(cls: type[Method], request: Request, kappa: float) -> Any:
    """Return the oracle of the search: the requested one, or the stand-in for `auto`."""
    if cls.oracle != "dual" or request.oracle != "auto":
        return request.oracle if cls.oracle == "dual" else "auto"
    return f"agd:{min(MOST_STEPS, ceil(2 * sqrt(kappa)))}"


def _candidates(
    cls: type[Method], true: Constants, centre: tuple[float, ...], points: np.ndarray, spread: float
) -> list[Candidate]:
    """Return candidates whose factors are spread evenly, on a logarithmic scale, around a centre."""
    candidates = []
    for point in points:
        factors = _nearest(
            true, *(float(middle * spread ** (2 * u - 1)) for middle, u in zip(centre, point, strict=True))
        )
        try:
            method = made(cls, "unit", assumed(true, *factors))
        except InputError:
            method = None
        candidates.append(Candidate("", factors, method))
    return candidates


def _nearest(true: Constants, mu: float, L: float, chi: float) -> tuple[float, float, float]:
    """Clip factors to constants that a problem can have: mu < L and chi >= 1."""
    return min(mu, 0.99 * true.kappa * L), L, max(chi, 1 / true.chi)


def transferred(
    problem: Problem, network: Network | DirectedNetwork, cls: type[Method], chosen: dict[str, Any]
) -> Method:
    """Return the method that a search on another problem or network chose, with the same multiples of constants.

    Parameters
    ----------
    problem, network
        Their constants are multiplied.
    cls : type of Method
    chosen : dict
        The entry "chosen" of a search's account: its name, mu, L and chi.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[1.0]], [[4.0]]], [[1.0], [0.0]])
    >>> chosen = {"name": None, "mu": 1.0, "L": 2.0, "chi": 1.0}
    >>> transferred(problem, adom.networks.path(2), adom.DIGing, chosen).a
    0.125
    """
    true = constants(problem, network)
    if chosen.get("name") == "theory":
        return made(cls, "theory", true)
    return made(cls, "unit", assumed(true, *_nearest(true, *(float(chosen[name]) for name in ASSUMED))))


def _points(stage: int, count: int) -> np.ndarray:
    """Return randomly shifted Sobol points of the unit cube, the same for every method."""
    from scipy.stats.qmc import Sobol

    shift = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(stage,))).random(len(ASSUMED))
    points: np.ndarray = (Sobol(len(ASSUMED), scramble=False).random_base2(int(log(count, 2))) + shift) % 1.0
    return points


def _run(
    candidates: list[Candidate],
    problem: Problem,
    network: Network | DirectedNetwork,
    request: Request,
    start: float,
    batch: int,
) -> list[Candidate]:
    """Run candidates, at most `batch` at the same time; skip those whose first step exceeds the budget."""
    done = list(candidates)
    able = [
        (index, method)
        for index, candidate in enumerate(candidates)
        if (method := candidate.method) is not None
        and int(in_windows(method, network).rounds_of_step(0)) <= request.rounds
    ]
    for part in batches([method for _, method in able], batch):
        some, methods = [able[number][0] for number in part], [able[number][1] for number in part]
        results = run_settings(methods, [problem] * len(some), network, TUNED, request)
        for index, result in zip(some, results, strict=True):
            if result.status == "interrupted":
                raise KeyboardInterrupt
            last = result.last
            error = float(last["error"]) / start if start > 0 else float(last["error"])
            lost = result.status == "diverged" or not np.isfinite(error)  # a growing run is ranked by its last error
            done[index] = replace(
                candidates[index],
                rounds=float(last["round"]) if result.status == "converged" else np.inf,
                error=np.inf if lost else error,
                status=result.status,
            )
    return done


def _account(best: Candidate, tried: list[Candidate], stages: Stages) -> dict[str, Any]:
    """Return how the parameters were found, as JSON-able data."""
    return {
        "rule": RULE,
        "candidates": len(tried),
        "base": "unit",
        "space": "factors of mu, L and chi, the constants that unit's formulas are told; unit and theory too",
        "sampler": "Sobol, logarithmic, in stages around the best so far",
        "stages": [{"candidates": count, "spread": spread} for count, spread in stages],
        "seed": SEED,
        "chosen": {"name": best.name or None, **_short(best)},
        "outcomes": [_short(candidate) for candidate in tried],
    }


def _short(candidate: Candidate) -> dict[str, Any]:
    def plain(value: float) -> float | None:
        return float(f"{value:.6g}") if np.isfinite(value) else None

    factors = {name: plain(value) for name, value in zip(ASSUMED, candidate.factors, strict=True)}
    return {
        **factors,
        "rounds": plain(candidate.rounds),
        "relative_error": plain(candidate.error),
        "status": candidate.status,
    }
