"""`solve`: the door to the engines. It checks what it is given, makes the method, and runs it."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms import Constants, Method, method_class
from ..errors import InputError, InputTypeError, nearest
from ..networks import DirectedNetwork, Network
from ..problems.base import Problem, solutions
from ..problems.oracle_spec import OracleSpec, parse_oracle
from .checkpoints import Checkpoints
from .constants import check_pair, constants
from .endings import rounding
from .local import backend as local
from .progress import Progress
from .provenance import circumstances, method_described, problem_described
from .recorder import COLUMNS, Plan, Run
from .result import Result

if TYPE_CHECKING:
    from ..data.shards import Shards

PROTOCOLS = ("theory", "unit")
SEARCHED = "tuned"
"""The parameters that are found by running; the search lives above the engine and is loaded when it is asked for."""
ENGINES = ("local", "mpi")
DTYPES = ("float64", "float32")


def solve(
    problem: "Problem | Shards",
    network: Network | DirectedNetwork,
    method: str | Method = "adom",
    parameters: str | dict[str, float] = "theory",
    oracle: Any = "auto",
    rounds: int = 1000,
    tol: float | None = None,
    record_every: int = 1,
    engine: str = "local",
    *,
    dtype: str = "float64",
    progress: bool | None = None,
    checkpoints: Checkpoints | None = None,
    patience: float = 10.0,
    monitor: bool = True,
) -> Result:
    """Minimise the sum of the problem's f_i over the network.

    Parameters
    ----------
    problem, network
        With the same number of nodes. The problem may be `adom.Shards`, data that lie in one file a node.
    method : str or Method
        A name (`adom methods` lists them) or an instance such as ``adom.ADOM(alpha=..., ...)``.
    parameters : str or dict
        "theory" (what the method's theorem proves), "unit" (the same without absolute constants), "tuned" (the best
        of 96 candidates around unit's, found by running them), or a dict of values that replace some of theory's; a
        key "protocol" in it names another base.
    oracle : str or tuple
        How a dual method gets grad F*: "auto", "exact", ("gd", T) or ("agd", T).
    rounds : int
        The budget of communication rounds; a step that does not fit into it any more is not begun.
    tol : float, optional
        Stop at the first record whose error, the sum over nodes of the squared distance to x*, is at most this.
    record_every : int
        Iterations from one record to the next; the last one is always recorded.
    engine : str
        "local", or "mpi" in a program that mpirun has started: every rank holds a block of the nodes, and all get the
        same result. With `Shards` a rank opens its own nodes' files only; mu, L and when to stop are then agreed on
        over the links, in rounds that count, and the history has the gradient's norm at the mean row instead of the
        error, which nobody knows.
    dtype : str
        "float64", or "float32" for speed where a squared error of about 1e-6 of the start is enough (ADOM+ with kappa
        of 1000 and more ends nearer to 1e-4).
    progress : bool, optional
        Show progress; by default only on a terminal.
    checkpoints : Checkpoints, optional
        Where and how often ranks write what they would go on from (engine "mpi").
    patience : float
        Seconds without an answer after which a rank counts as hanging, and the job is ended (engine "mpi").
    monitor : bool
        False: with `Shards`, do without records of gradient and consensus, which rows travel to rank 0 for.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[1.0]], [[2.0]], [[3.0]]], [[1.0], [0.0], [0.0]])
    >>> result = adom.solve(problem, adom.networks.ring(3), parameters="unit", rounds=500, tol=1e-12)
    >>> result.status
    'converged'
    """
    request = Request(oracle, rounds, tol, record_every, engine, dtype, progress)
    if engine == "mpi":
        from .ranks.solve import solve_on_ranks

        extras = (checkpoints, patience, monitor)
        return solve_on_ranks(problem, network, method, parameters, request, *extras)
    if checkpoints is not None:
        raise InputError(f"checkpoints are written by engine 'mpi' alone, got engine={engine!r}; leave them out")
    problem = problem if isinstance(problem, Problem) else whole(problem)
    one = make_method(problem, network, method, "unit" if parameters == SEARCHED else parameters)
    if isinstance(method, Method):
        return _solve([one], [problem], network, "given", request)[0]
    if parameters != SEARCHED:
        return _solve([one], [problem], network, parameters, request)[0]
    best, way, found = import_module("adom.study.tuning").tune(problem, network, type(one), request)
    result = _solve([best], [problem], network, SEARCHED, replace(request, oracle=way))[0]
    return replace(result, provenance={**result.provenance, "tuning": found})


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
    """Run many settings of one method as one batched run: the data is read once for all of them.

    Each member gets the result that `solve` would give it; a member that diverges does not disturb the rest. With the
    `auto` oracle the settings run one after the other.

    Parameters
    ----------
    problem : Problem or sequence of Problem
        One for all, or one for each setting, of the same kind and shapes. Arrays that they share are held once:
        such problems are made by `LogisticRegression.with_kappa`.
    network, oracle, rounds, record_every, dtype, progress
        As in `adom.solve`, for all of them.
    methods : sequence of Method
        Instances of one class.
    tol : float or sequence of float, optional
        One for all, or one for each.
    finished : callable, optional
        Called with the number of a member and its result as soon as it has ended, before the others have.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[1.0]], [[2.0]]], [[1.0], [0.0]])
    >>> network = adom.networks.path(2)
    >>> base = adom.ADOM.theory(adom.constants(problem, network))
    >>> from dataclasses import dataclass, replace
    >>> settings = [replace(base, eta=base.eta * factor) for factor in (0.5, 1.0, 2.0)]
    >>> [r.status for r in adom.solve_many(problem, network, settings, rounds=10)]
    ['max_rounds', 'max_rounds', 'max_rounds']
    """
    if not methods or len({type(m) for m in methods}) != 1 or not isinstance(methods[0], Method):
        raise InputTypeError("solve_many takes one or more instances of one method class")
    problems = [problem] * len(methods) if isinstance(problem, Problem) else list(problem)
    tols = list(tol) if isinstance(tol, Sequence | np.ndarray) else [tol] * len(methods)
    for name, given in (("problem", problems), ("tol", tols)):
        if len(given) != len(methods):
            raise InputError(
                f"solve_many got {len(given)} values of {name} for {len(methods)} settings; give one, or one each"
            )
    request = Request(oracle, rounds, None, record_every, "local", dtype, progress)
    return _solve(list(methods), problems, network, "given", request, tols, finished)


def make_method(problem: Problem, network: Network | DirectedNetwork, method: Any, parameters: Any) -> Method:
    """Return the method that a name, a class or an instance asks for, with its parameters."""
    check_pair(problem, network, directed=True)
    return method_with(lambda: constants(problem, network), method, parameters)


def method_type(method: Any) -> type[Method]:
    """Return the class of the method that a name, a class or an instance asks for."""
    if isinstance(method, Method):
        return type(method)
    if isinstance(method, type) and issubclass(method, Method):
        return method
    if isinstance(method, str):
        return method_class(method)
    raise InputTypeError(f"method must be a name or a Method instance, got {type(method).__name__}; e.g. 'adom'")


def method_with(find_constants: Callable[[], Constants], method: Any, parameters: Any) -> Method:
    """Return the method that is asked for; `find_constants` is asked if they are needed."""
    if isinstance(method, Method):
        return method
    cls = method_type(method)
    overrides = dict(parameters) if isinstance(parameters, dict) else {}
    protocol = overrides.pop("protocol", "theory") if isinstance(parameters, dict) else parameters
    if protocol == SEARCHED:
        raise InputError(f"tuned parameters take no values beside them, got {parameters!r}; give parameters='tuned'")
    if protocol not in PROTOCOLS:
        known = (*PROTOCOLS, SEARCHED)
        raise InputError(
            f"parameters must be one of {', '.join(known)} or a dict of values, got {protocol!r}; "
            f"{nearest(protocol, known)}"
        )
    base: Method = getattr(cls, protocol)(find_constants())
    unknown = set(overrides) - set(base.parameters())
    if unknown:
        odd = min(unknown, key=str)
        raise InputError(f"{cls.title} has no parameter {odd!r}; {nearest(odd, base.parameters(), 'it has')}")
    for name, value in overrides.items():
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise InputTypeError(f"{name} must be a number, got {value!r}; leave it out for {protocol}'s value")
    return replace(base, **overrides)  # type: ignore[type-var]  # every method is a dataclass


@dataclass(frozen=True)
class Request:
    """What a run is asked for beside the problem, the network and the method, checked."""

    oracle: Any
    rounds: int
    tol: float | None
    record_every: int
    engine: str
    dtype: str
    progress: bool | None

    def __post_init__(self) -> None:
        check_whole("rounds", self.rounds)
        check_whole("record_every", self.record_every)
        if self.tol is not None and not (isinstance(self.tol, int | float | np.floating) and 0 < self.tol < np.inf):
            raise InputError(f"tol must be a positive number or None, got {self.tol!r}; it bounds the squared error")
        if self.engine not in ENGINES:
            raise InputError(f"unknown engine {self.engine!r}; {nearest(self.engine, ENGINES)}")
        if self.dtype not in DTYPES:
            raise InputError(f"dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}; give its name")
        parse_oracle(self.oracle)

    def oracle_for(self, method: type[Method]) -> OracleSpec:
        """Return the oracle for a method; a primal method has no use for one."""
        spec = parse_oracle(self.oracle)
        if method.oracle == "dual":
            return spec
        if spec.kind != "auto":
            raise InputError(f"{method.title} uses gradients, not a dual oracle; leave the oracle {str(spec)!r} out")
        return OracleSpec("none")


def _solve(
    methods: list[Method],
    problems: list[Problem],
    network: Network | DirectedNetwork,
    protocol: Any,
    request: Request,
    tols: Sequence[float | None] | None = None,
    finished: Callable[[int, Result], None] | None = None,
) -> list[Result]:
    import pandas as pd

    cls = type(methods[0])
    for problem in problems:
        check_pair(problem, network, directed=cls.directed, title=cls.title)
    spec = request.oracle_for(cls)
    for method in methods:
        check_budget(method, request.rounds)
    plans = []
    aims = tols or [request.tol] * len(methods)
    for problem, answer, tol in zip(problems, solutions(problems), aims, strict=True):
        request = replace(request, tol=tol)  # checks it
        if tol is not None:
            problem.warn_of_tol(tol)
        start_error = problem.nodes * float((answer**2).sum())
        floor = rounding(request.dtype, problem.kappa) ** 2
        plans.append(Plan(int(request.rounds), int(request.record_every), tol, request.dtype, start_error, floor))
    about = circumstances(network, cls, spec, protocol, request.engine)
    results: dict[int, Result] = {}

    def take(member: int, one: Run, rows: np.ndarray) -> None:
        history = pd.DataFrame(one.table, columns=COLUMNS)
        history = history.astype({"iteration": int, "round": int, "floats_sent": int})
        provenance = {
            "method": method_described(methods[member]),
            "problem": problem_described(problems[member]),
            **about,
            **asdict(plans[member]),
            "solution_error": problems[member].solution_error,
            "message": one.message,
        }
        results[member] = Result(rows, history, one.status, provenance)
        if finished is not None:
            finished(member, results[member])

    # With `auto`, nodes take Hessians when they need them: side by side, every setting would wait for all others'.
    alone = spec.kind == "auto" and not problems[0].closed_form
    size = 1 if alone else len(methods)
    for first in range(0, len(methods), size):
        some = slice(first, first + size)
        progress = Progress(plans[0].rounds, cls.title, request.progress)
        finish = partial(lambda first, member, *ended: take(first + member, *ended), first)
        local.run(problems[some], network, methods[some], spec, plans[some], progress, finish)
    return [results[member] for member in range(len(methods))]


def whole(problem: Any) -> Problem:
    """Return all nodes of data that lie in one file a node; what is a problem already stays as it is."""
    made = problem.whole() if hasattr(problem, "whole") else problem
    if not isinstance(made, Problem):
        check_pair(made, None)  # which refuses it
    assert isinstance(made, Problem)
    return made


def check_budget(method: Method, rounds: int) -> None:
    """Refuse a budget of rounds that does not cover the first step."""
    first = int(method.rounds_of_step(0))
    if rounds < first:
        raise InputError(
            f"rounds must be at least {first}, which one step of {method.title} takes here, got {rounds}; give more"
        )


def check_whole(name: str, value: Any) -> None:
    """Refuse what is no whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1, got {value!r}; e.g. {name}=100")
