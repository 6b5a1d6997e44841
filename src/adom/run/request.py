"""Settings of a run and where it stops, checked in one place for `adom.solve`, the command line and settings files.

Nothing here loads JAX or NumPy.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from math import inf
from typing import Any

from ..algorithms import Constants, Method, method_class
from ..algorithms.base import check_class, check_numbers, made, plain
from ..errors import InputError, InputTypeError, nearest
from ..util.checks import check_real, check_whole, is_number

PROTOCOLS = ("theory", "unit")
AUTO = "auto"
"""The protocol that adapts parameters during the run, from mu and L alone."""
TUNED = "tuned"
"""The protocol that finds parameters by running candidates."""
ENGINES = ("local", "mpi")
DTYPES = ("float64", "float32")


@dataclass(frozen=True)
class Stop:
    """Where a run stops: at the squared error `tol`, or at `rtol` times that of starting at 0; neither for no limit.

    `adom.solve`, `compare`, `sweep` and settings files make one of what they were given, and pass it on whole.
    """

    tol: float | None = None
    rtol: float | None = None

    def __post_init__(self) -> None:
        if self.tol is not None and not (is_number(self.tol) and 0 < self.tol < inf):
            raise InputError(f"tol must be a positive number or None, got {self.tol!r}; it bounds the squared error")
        if self.rtol is None:
            return
        check_real("rtol", self.rtol, 0.0, 1.0, "e.g. rtol=1e-6", strict=True)
        if self.tol is not None:
            raise InputError(f"rtol={self.rtol!r} and tol={self.tol!r} exclude each other; give one")

    def error(self, problem: Any) -> float | None:
        """Return the squared error at which a run on this problem stops, or None."""
        if self.rtol is None:
            return self.tol
        if not hasattr(problem, "solution"):
            raise InputError(
                f"rtol={self.rtol!r} needs a problem that knows its solution, got {type(problem).__name__}; give tol"
            )
        return float(self.rtol) * start_error(problem) or None


def start_error(problem: Any) -> float:
    """Return the squared distance from 0 to the solution, summed over nodes."""
    return float(problem.nodes * (problem.solution() ** 2).sum())


@dataclass(frozen=True)
class OracleSpec:
    """The kind of oracle and its number of inner steps, 0 if the oracle decides itself."""

    kind: str
    steps: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.steps}" if self.steps else self.kind


def parse_oracle(oracle: Any) -> OracleSpec:
    """Read "exact", "auto", ("gd", T), ("agd", T) or the text forms "gd:T", "agd:T".

    Examples
    --------
    >>> parse_oracle(("gd", 1)), str(parse_oracle("agd:3"))
    (OracleSpec(kind='gd', steps=1), 'agd:3')
    """
    if isinstance(oracle, OracleSpec):
        return oracle
    kind, steps = oracle, None
    if isinstance(oracle, str) and ":" in oracle:
        kind, _, text = oracle.partition(":")
        steps = int(text) if text.isdecimal() and len(text) < 10 else text
    elif isinstance(oracle, tuple | list) and len(oracle) == 2:
        kind, steps = oracle
    if kind in ("exact", "auto") and steps is None:
        return OracleSpec(kind)
    if kind in ("gd", "agd") and isinstance(steps, int) and not isinstance(steps, bool) and steps >= 1:
        return OracleSpec(kind, steps)
    raise InputError(
        f"unknown oracle {oracle!r}; use 'exact', 'auto', ('gd', T) or ('agd', T) with a whole number T >= 1; "
        "on the command line exact, auto, gd:T or agd:T"
    )


NO_STOP = Stop()


@dataclass(frozen=True)
class Request:
    """Settings of a run besides its problem, network and method."""

    oracle: Any = "auto"
    rounds: int = 1000
    stop: Stop = NO_STOP
    record_every: int = 1
    engine: str = "local"
    dtype: str = "float64"
    progress: bool | None = None
    patience: float = 10.0
    monitor: bool = True
    follow: Any = None  # a folder for records written during the run

    def __post_init__(self) -> None:
        check_whole("rounds", self.rounds)
        check_whole("record_every", self.record_every)
        if self.engine not in ENGINES:
            raise InputError(f"unknown engine {self.engine!r}; {nearest(self.engine, ENGINES)}")
        if self.dtype not in DTYPES:
            raise InputError(f"dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}; give its name")
        if not 0 < self.patience < inf:
            raise InputError(f"patience must be a positive number of seconds, got {self.patience!r}")
        parse_oracle(self.oracle)

    def oracle_for(self, method: type[Method]) -> OracleSpec:
        """Return the oracle for a method; a primal method takes none."""
        spec = parse_oracle(self.oracle)
        if method.oracle == "dual":
            return spec
        if spec.kind != "auto":
            raise InputError(f"{method.title} uses gradients, not a dual oracle; leave the oracle {str(spec)!r} out")
        return OracleSpec("none")


def method_type(method: Any) -> type[Method]:
    """Return the class of a method given by name, class or instance."""
    cls = type(method) if isinstance(method, Method) else method
    if isinstance(cls, type) and issubclass(cls, Method):
        check_class(cls)
        return cls
    if isinstance(method, str):
        return method_class(method)
    raise InputTypeError(f"method must be a name or a Method instance, got {type(method).__name__}; e.g. 'adom'")


def read_parameters(method: type[Method], parameters: Any) -> tuple[str, dict[str, float]]:
    """Return the protocol that `parameters` names, and the values that replace some of its own."""
    values = dict(parameters) if isinstance(parameters, dict) else {}
    protocol = values.pop("protocol", "theory") if isinstance(parameters, dict) else parameters
    if protocol in (TUNED, AUTO) and isinstance(parameters, dict):
        raise InputError(
            f"{protocol} parameters cannot be combined with values, got {parameters!r}; give parameters={protocol!r}"
        )
    known = (*PROTOCOLS, AUTO, TUNED)
    if protocol not in known:
        raise InputError(
            f"parameters must be one of {', '.join(known)} or a dict of values, got {protocol!r}; "
            f"{nearest(protocol, known)}"
        )
    names = [field.name for field in fields(method)]  # type: ignore[arg-type]  # every method is a dataclass
    for name, value in values.items():
        if name not in names:
            raise InputError(f"{method.title} has no parameter {name!r}; {nearest(name, names, 'it has')}")
        if not is_number(value):
            raise InputTypeError(f"{name} must be a number, got {value!r}; leave it out for {protocol}'s value")
    return protocol, values


def method_from(method: Any, parameters: Any, constants: Callable[[], Constants]) -> Method:
    """Return the requested method with the parameters of its protocol; "tuned" starts from those of "unit".

    "auto" starts from those of "theory", and keeps them if they do not depend on chi. `constants` is called only if
    `method` is not an instance.
    """
    cls = method_type(method)
    if isinstance(method, Method):
        check_numbers(method)
        return method
    protocol, values = read_parameters(cls, parameters)
    named = {TUNED: "unit", AUTO: "theory"}.get(protocol, protocol)
    return replace(made(cls, named, constants()), **values)  # type: ignore[type-var]  # every method is a dataclass


def check_budget(method: Method, rounds: int, agreeing: int = 0) -> None:
    """Refuse a budget too small for the rounds of agreeing on the constants and for the first step."""
    step, title = int(method.rounds_of_step(0)), plain(method).title
    if rounds >= agreeing + step:
        return
    if agreeing:
        raise InputError(
            f"rounds must be at least {agreeing + step} here, got {rounds}: agreeing on mu and L takes {agreeing} of "
            f"them, and one step of {title} the others; give more"
        )
    raise InputError(f"rounds must be at least {step}, which one step of {title} takes here, got {rounds}; give more")
