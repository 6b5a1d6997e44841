"""One run of a benchmark: the job as data, and the functions that run it and read its outcome."""

import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any
from uuid import uuid4

from .. import __version__
from ..algorithms import Constants, Method, method_class
from ..algorithms.base import check_class, check_made
from ..errors import InputError
from ..run.calls.solve import solve
from ..run.user_code import code_of_class, try_steps
from ..study.execute import Outcome, keep_data, keep_run
from ..study.metrics import metrics
from ..util.own_code import files_of, in_words, place
from . import suite
from .records import COSTS, Record

RECORDS = 200
"""Maximum number of records that are saved of a run."""
CHIS = tuple(10 ** (exponent / 4) for exponent in range(17))
KAPPAS = (1.5, 10.0, 79.0, 1000.0, 10000.0)
"""Condition numbers of networks and functions at which formulas for parameters are compared."""


@dataclass(frozen=True)
class Job:
    """One method, with parameters chosen in one way, on one pair."""

    problem: str
    network: str
    method: str  # a name, or module:Class
    protocol: str
    rounds: int
    target: float
    code: str = field(default="", repr=False)  # digest of a user's own method, see `code_of`
    on: str = "cpu"

    @cached_property
    def key(self) -> str:
        """The name of its file, with a digest of everything that determines the run."""
        content = {**asdict(self), "suite": suite.VERSION, "version": __version__}
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
        return f"{self.problem}--{self.network}--{self.label}--{self.protocol}--{digest}"

    @property
    def label(self) -> str:
        """The method's name."""
        return label_of(self.method)


def label_of(method: str) -> str:
    """Return what a method is called in tables: its name, or that of its class."""
    return method.rpartition(":")[2]


def loaded(method: str) -> type[Method]:
    """Return the class of a method given by name or as module:Class."""
    module, _, name = method.rpartition(":")
    found: type[Method] = getattr(import_module(module), name) if module else method_class(method)
    return found


def check_own(method: str, protocols: Sequence[str]) -> None:
    """Refuse a user's own method that cannot run anywhere; errors in its code propagate."""
    if ":" not in method:
        return
    cls = loaded(method)
    check_class(cls)
    try_steps(cls)
    for protocol in protocols:
        formula = "unit" if protocol == "unit" else "theory"
        try:
            method = getattr(cls, formula)(Constants(1.0, 100.0, 0.1, 1.0, suite.NODES))
        except InputError:  # possibly for these constants only
            continue
        check_made(cls, formula, method)


def code_of(method: str) -> str:
    """Return a digest of what a user's own method computes; "" for other methods.

    It covers the program of a step, whatever files its code is in; the parameters that its formulas give; and the
    source of its module, for everything else. If no digest can identify its code, its runs are never reused.
    """
    if ":" not in method:
        return ""
    cls = loaded(method)
    program = code_of_class(cls, suite.NODES, 2)
    held = uuid4().hex if program.hidden else program.digest
    source = inspect.getsource(sys.modules[cls.__module__])
    formulas = [_parameters(make, chi, kappa) for make in (cls.theory, cls.unit) for chi in CHIS for kappa in KAPPAS]
    return hashlib.sha256(json.dumps([held, source, formulas], default=float).encode()).hexdigest()


def _parameters(make: Callable[[Constants], Method], chi: float, kappa: float) -> dict[str, float] | str:
    """Return the parameters that a formula gives, or the error that it raises."""
    try:
        return make(Constants(1.0, kappa, 1 / chi, 1.0, suite.NODES)).parameters()
    except Exception as error:
        return in_words(error)


def do_job(job: Job, folder: Path) -> None:
    """Run a job and save its result, or the reason why it cannot run."""
    try:
        problem, network = suite.problem(job.problem), suite.network(job.network)
        method: Any = loaded(job.method)
        result = solve(problem, network, method, job.protocol, rounds=job.rounds, rtol=job.target, progress=False)
    except Exception as error:
        reason = str(error) if isinstance(error, InputError) else _own_fault(error, job.method)
        if not reason:
            raise
        keep_data(job, folder, {"reason": reason})
    else:
        about = {"key": job.key, "problem": job.problem, "network": job.network}
        keep_run(job, folder, result, RECORDS, {"bench": about})


def _own_fault(error: Exception, method: str) -> str:
    """Describe an error in the code of a user's own method; "" if it arose elsewhere."""
    at = place(error, files_of(loaded(method))) if ":" in method else ""
    return f"{method} fails: {in_words(error, at)}" if at else ""


def record(outcome: Outcome) -> Record:
    """Return the row of a job that was done or refused, for the file of results."""
    job = outcome.job
    about: dict[str, Any] = {"problem": job.problem, "network": job.network, "method": job.label}
    about["protocol"] = job.protocol
    if outcome.result is None:
        costs: dict[str, Any] = dict.fromkeys(COSTS)
        return Record(**about, status="refused", rounds=0, relative_error=None, reason=outcome.reason, **costs)
    found = metrics(outcome.result, None, job.target)
    costs = {name: known(found[name]) for name in COSTS}
    error = known(found["relative_error"])
    return Record(**about, status=found["status"], rounds=found["rounds"], relative_error=error, **costs)


def known(value: float) -> float | None:
    """Return a number; None if it is NaN or infinite."""
    return float(value) if isfinite(value) else None
