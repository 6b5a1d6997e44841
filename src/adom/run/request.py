"""Settings of a run, checked in one place for `adom.solve`, the command line and settings files.

Nothing here loads JAX or NumPy.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from math import inf
from typing import Any

from ..algorithms import Constants, Method, method_class
from ..algorithms.base import check_class, check_numbers, made, plain
from ..dynamics.stop import Stop
from ..errors import InputError, InputTypeError, nearest
from ..problems.oracle_spec import OracleSpec, parse_oracle
from ..util.checks import check_whole, is_number

PROTOCOLS = ("theory", "unit")
AUTO = "auto"
"""The protocol that adapts parameters during the run, from mu and L alone."""
TUNED = "tuned"
"""The protocol that finds parameters by running candidates."""
ENGINES = ("local", "mpi")
DTYPES = ("float64", "float32")
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
