"""`solve` and `solve_many`: check the arguments, then call an engine."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...algorithms import Method
from ...algorithms.base import check_numbers
from ...errors import InputError, InputTypeError
from ...networks import DirectedNetwork, Network
from ...problems.base import Problem
from ..auto.pilots import resolve
from ..constants import check_pair
from ..local.backend import run_settings
from ..request import TUNED, Request, Stop, method_type
from ..result import Result
from ..user_code import explained

if TYPE_CHECKING:
    from ...data.node_data import NodeData
    from ...data.shards import Shards
    from ..ranks.checkpoints import Checkpoints


def solve(
    problem: "Problem | Shards | NodeData",
    network: Network | DirectedNetwork,
    method: str | Method = "adom",
    parameters: str | dict[str, float] = "auto",
    oracle: Any = "auto",
    rounds: int = 1000,
    tol: float | None = None,
    record_every: int = 1,
    engine: str = "local",
    *,
    rtol: float | None = None,
    dtype: str = "float64",
    progress: bool | None = None,
    checkpoints: "Checkpoints | None" = None,
    patience: float = 10.0,
    monitor: bool = True,
    follow: str | os.PathLike[str] | None = None,
) -> Result:
    """Minimise the sum of the problem's f_i over the network.

    Parameters
    ----------
    problem, network
        With the same number of nodes. The problem may be `adom.Shards`, data stored in one file per node, or
        `adom.NodeData`, a model to fit to data that stays on its nodes.
    method : str or Method
        A name (`adom methods` lists them) or an instance such as ``adom.ADOM(alpha=..., ...)``.
    parameters : str or dict
        "auto" (adapted during the run from mu and L alone, so chi need not be known; `Result.settings` lists the
        choices), "theory" (from the method's theorem, for the worst graph's chi), "unit" (the same formulas with their
        absolute constants set to 1), "tuned" (the best of 96 candidates around unit's, found by running them), or a
        dict of values that replace some of theory's; a key "protocol" in it names another base.
    oracle : str or tuple
        How a dual method computes grad F*: "auto", "exact", ("gd", T) or ("agd", T).
    rounds : int
        Budget of communication rounds; a step that would exceed it is not started.
    tol : float, optional
        Stop at the first record whose error, the sum over nodes of the squared distance to x*, is at most this.
    rtol : float, optional
        In place of `tol`: stop at this share of the error at x = 0.
    record_every : int
        Iterations between records; the last one is always recorded.
    engine : str
        "local", or "mpi" in a program started by mpirun: every rank holds a block of the nodes, and all return the same
        result. With `Shards` a rank opens its own nodes' files only. The nodes then agree on mu, L and when to stop
        over the links, in rounds that count, and the history has the gradient norm at the mean row instead of the
        error, which no rank can know.
    dtype : str
        "float64", or "float32" for speed if a squared error of about 1e-6 of the start is enough (ADOM+ with kappa
        of 1000 and more ends nearer to 1e-4).
    progress : bool, optional
        True: a bar. False: nothing. By default a bar on a terminal; elsewhere a line after five seconds, and then less
        and less often.
    checkpoints : Checkpoints, optional
        Where and how often the ranks save their state for resuming (engine "mpi").
    patience : float
        Seconds without an answer after which a rank counts as hanging and the job is aborted (engine "mpi").
    monitor : bool
        With `Shards`, False skips the records of gradient norm and consensus, for which all rows are sent to rank 0.
    follow : path, optional
        Folder where a run of more than two seconds writes its records as it goes, at most about 200 a second:
        ``history.csv`` and ``history.jsonl``.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[1.0]], [[2.0]], [[3.0]]], [[1.0], [0.0], [0.0]])
    >>> result = adom.solve(problem, adom.networks.ring(3), parameters="unit", rounds=500, tol=1e-12)
    >>> result.status
    'converged'
    """
    stop = Stop(tol, rtol)
    request = Request(oracle, rounds, stop, record_every, engine, dtype, progress, patience, monitor, follow)
    with explained(method, problem, dtype):
        request = replace(request, stop=Stop(stop.error(problem)))
        return _solve(problem, network, method, parameters, request, checkpoints)


def _solve(
    problem: Any, network: Any, method: Any, parameters: Any, request: Request, checkpoints: "Checkpoints | None"
) -> Result:
    """Solve; only the request has been checked yet."""
    cls = method_type(method)
    check_pair(problem, network, cls, apart=True)
    if request.engine == "mpi":
        from ..ranks.on_ranks import solve_on_ranks

        return solve_on_ranks(problem, network, method, parameters, request, checkpoints)
    if checkpoints is not None:
        raise InputError(
            f"checkpoints are written by engine 'mpi' alone, got engine={request.engine!r}; leave them out"
        )
    if _lies_apart(problem):
        from ..ranks.on_ranks import on_one_rank

        return on_one_rank(problem, network, method, parameters, request)
    whole = (problem if isinstance(problem, Problem) else problem.whole()).as_it_is()
    if parameters != TUNED or isinstance(method, Method):
        chosen, pilot, protocol = resolve(whole, network, method, parameters)
        return run_settings([chosen], [whole], network, protocol, request, pilot=pilot)[0]
    from .tuning import tune

    best, chosen_oracle, search = tune(whole, network, cls, request)
    result = run_settings([best], [whole], network, TUNED, replace(request, oracle=chosen_oracle))[0]
    return replace(result, provenance={**result.provenance, "tuning": search})


def _lies_apart(problem: Any) -> bool:
    """Return whether the problem is an `adom.NodeData`, without importing its code."""
    return hasattr(problem, "seen")


def solve_many(
    problem: Problem | Sequence[Problem],
    network: Network | DirectedNetwork,
    methods: Sequence[Method],
    oracle: Any = "auto",
    rounds: int = 1000,
    tol: float | Sequence[float] | None = None,
    record_every: int = 1,
    *,
    dtype: str = "float64",
    progress: bool | None = None,
    finished: Callable[[int, Result], None] | None = None,
) -> list[Result]:
    """Run many settings of one method as one batch, which reads the data once for all of them.

    Each setting gets the result that `solve` would give it; one that diverges does not affect the others. With the
    `auto` oracle the settings run one after the other.

    Parameters
    ----------
    problem : Problem or sequence of Problem
        One for all settings, or one each, of the same kind and shapes. Arrays that they share are held once, as in
        problems made by `LogisticRegression.with_kappa`.
    network, oracle, rounds, record_every, dtype, progress
        As in `adom.solve`, for all settings.
    methods : sequence of Method
        Instances of one class.
    tol : float or sequence of float, optional
        One for all settings, or one each.
    finished : callable, optional
        Called with the index of a setting and its result as soon as it has ended.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[1.0]], [[2.0]]], [[1.0], [0.0]])
    >>> network = adom.networks.path(2)
    >>> base = adom.ADOM.theory(adom.constants(problem, network))
    >>> from dataclasses import replace
    >>> settings = [replace(base, eta=base.eta * factor) for factor in (0.5, 1.0, 2.0)]
    >>> [r.status for r in adom.solve_many(problem, network, settings, rounds=10)]
    ['max_rounds', 'max_rounds', 'max_rounds']
    """
    if not methods or len({type(m) for m in methods}) != 1 or not isinstance(methods[0], Method):
        raise InputTypeError("solve_many takes one or more instances of one method class")
    for method in methods:
        check_numbers(method)
    problems = [problem] * len(methods) if isinstance(problem, Problem) else list(problem)
    tols = list(tol) if isinstance(tol, Sequence | np.ndarray) else [tol] * len(methods)
    for name, values in (("problem", problems), ("tol", tols)):
        if len(values) != len(methods):
            raise InputError(
                f"solve_many got {len(values)} values of {name} for {len(methods)} settings; give one, or one each"
            )
    for one in problems:
        check_pair(one, network, type(methods[0]))
    request = Request(oracle, rounds, Stop(), record_every, "local", dtype, progress)
    with explained(methods[0], problems[0], dtype):
        return run_settings(methods, problems, network, "given", request, tols, finished)
