"""`solve`: the door to the engines. It checks what it is given, makes the method, and runs it."""

import os
import platform
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..algorithms import Method, method_class
from ..errors import InputError, InputTypeError
from ..networks import DirectedNetwork, Network
from ..problems.base import Problem
from ..problems.oracles import OracleSpec, parse_oracle
from . import local
from .pair import check_pair, constants
from .progress import Progress
from .records import COLUMNS, Plan
from .result import Result

PROTOCOLS = ("theory", "unit")
ENGINES = ("local",)
DTYPES = ("float64", "float32")


def solve(
    problem: Problem,
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
) -> Result:
    """Minimise the sum of the problem's f_i over the network.

    Parameters
    ----------
    problem, network
        With the same number of nodes.
    method : str or Method
        A name (`adom methods` lists them) or an instance such as ``adom.ADOM(alpha=..., ...)``.
    parameters : str or dict
        "theory" (what the method's theorem proves), "unit" (the same without absolute constants), or a dict
        of values that replace some of theory's; a key "protocol" in it names another base.
    oracle : str or tuple
        How a dual method gets grad F*: "auto", "exact", ("gd", T) or ("agd", T).
    rounds : int
        The budget of communication rounds; a step that does not fit into it any more is not begun.
    tol : float, optional
        Stop at the first record whose error, the sum over nodes of the squared distance to x*, is at most this.
    record_every : int
        Iterations from one record to the next; the last one is always recorded.
    engine : str
        "local".
    dtype : str
        "float64", or "float32" for speed where accuracy to about 1e-6 is enough.
    progress : bool, optional
        Show progress; by default only on a terminal.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[1.0]], [[2.0]], [[3.0]]], [[1.0], [0.0], [0.0]])
    >>> result = adom.solve(problem, adom.networks.ring(3), parameters="unit", rounds=500, tol=1e-12)
    >>> result.status
    'converged'
    """
    one = make_method(problem, network, method, parameters)
    request = Request(oracle, rounds, tol, record_every, engine, dtype, progress)
    protocol = "given" if isinstance(method, Method) else parameters
    return _solve([one], problem, network, protocol, request)[0]


def solve_many(
    problem: Problem,
    network: Network | DirectedNetwork,
    methods: Sequence[Method],
    oracle: Any = "auto",
    rounds: int = 1000,
    tol: float | None = None,
    record_every: int = 1,
    *,
    dtype: str = "float64",
    progress: bool | None = None,
) -> list[Result]:
    """Run many settings of one method as one batched run: the data is read once for all of them.

    Each member gets the result that `solve` would give it; a member that diverges does not disturb the rest.

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
    request = Request(oracle, rounds, tol, record_every, "local", dtype, progress)
    return _solve(list(methods), problem, network, "given", request)


def make_method(problem: Problem, network: Network | DirectedNetwork, method: Any, parameters: Any) -> Method:
    """Return the method that a name, a class or an instance asks for, with its parameters."""
    check_pair(problem, network, directed=True)
    if isinstance(method, Method):
        return method
    if isinstance(method, type) and issubclass(method, Method):
        cls = method
    elif isinstance(method, str):
        cls = method_class(method)
    else:
        raise InputTypeError(f"method must be a name or a Method instance, got {type(method).__name__}")
    overrides = dict(parameters) if isinstance(parameters, dict) else {}
    protocol = overrides.pop("protocol", "theory") if isinstance(parameters, dict) else parameters
    if protocol not in PROTOCOLS:
        raise InputError(f"parameters must be one of {', '.join(PROTOCOLS)} or a dict of values, got {protocol!r}")
    base: Method = getattr(cls, protocol)(constants(problem, network))
    unknown = set(overrides) - set(base.parameters())
    if unknown:
        known = ", ".join(base.parameters())
        raise InputError(f"{cls.title} has no parameter {sorted(unknown)[0]!r}; it has {known}")
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
            raise InputError(f"unknown engine {self.engine!r}; known: {', '.join(ENGINES)}")
        if self.dtype not in DTYPES:
            raise InputError(f"dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}")
        parse_oracle(self.oracle)

    def oracle_for(self, method: type[Method]) -> OracleSpec:
        """Return the oracle for a method; a primal method has no use for one."""
        spec = parse_oracle(self.oracle)
        if method.oracle == "dual":
            return spec
        if spec.kind != "auto":
            raise InputError(f"{method.title} uses gradients, not a dual oracle; leave out oracle={self.oracle!r}")
        return OracleSpec("none")


def _solve(
    methods: list[Method], problem: Problem, network: Network | DirectedNetwork, protocol: Any, request: Request
) -> list[Result]:
    import pandas as pd

    cls = type(methods[0])
    check_pair(problem, network, directed=cls.directed, title=cls.title)
    spec = request.oracle_for(cls)
    for method in methods:
        check_budget(method, request.rounds)
    start_error = problem.nodes * float((problem.solution() ** 2).sum())
    plan = Plan(int(request.rounds), int(request.record_every), request.tol, request.dtype, start_error)
    runs = local.run(problem, network, methods, spec, plan, Progress(plan.rounds, cls.title, request.progress))

    common = {
        "problem": {
            "type": type(problem).__name__,
            "nodes": problem.nodes,
            "dim": problem.dim,
            "mu": problem.mu,
            "L": problem.L,
            "kappa": problem.kappa,
        },
        "network": {**network.recipe, "chi": network.chi},
        "oracle": str(spec) if cls.oracle == "dual" else None,
        "protocol": protocol,
        "rounds": plan.rounds,
        "tol": plan.tol,
        "record_every": plan.record_every,
        "engine": request.engine,
        "dtype": plan.dtype,
        "start_error": start_error,
        **_surroundings(),
    }
    results = []
    for method, (one, rows) in zip(methods, runs, strict=True):
        history = pd.DataFrame(one.table, columns=COLUMNS)
        history = history.astype({"iteration": int, "round": int, "floats_sent": int})
        values = {name: float(value) for name, value in method.parameters().items()}
        described = {"name": cls.name, "title": cls.title, "parameters": values}
        results.append(Result(rows, history, one.status, {"method": described, **common, "message": one.message}))
    return results


def check_budget(method: Method, rounds: int) -> None:
    """Refuse a budget of rounds that does not cover the first step."""
    first = int(method.rounds_of_step(0))
    if rounds < first:
        raise InputError(f"rounds must be at least {first}, which one step of {method.title} takes here, got {rounds}")


def check_whole(name: str, value: Any) -> None:
    """Refuse what is no whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1, got {value!r}")


def _surroundings() -> dict[str, Any]:
    """Return what else a run depends on: versions, device, commit, time."""
    import jax

    return {
        "versions": {
            "adom": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("jax", "jaxlib", "numpy", "scipy")},
        },
        "device": str(jax.devices()[0].device_kind),
        "platform": platform.platform(),
        "commit": _commit(),
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _commit() -> str | None:
    """Return the commit of the source tree that this code runs from, where there is one."""
    here = Path(__file__).resolve().parent
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=here,
            env=environment,
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
