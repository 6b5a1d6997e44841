"""`bench`: run the suite, or what remains of it, and write the file of results and the page."""

import hashlib
import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from .. import __version__, page
from ..algorithms import METHODS, Constants, Method, method_class
from ..algorithms.base import check_class, check_made
from ..errors import InputError
from ..run.calls.solve import solve
from ..run.request import AUTO, Stop
from ..run.user_code import code_of_class, try_steps
from ..study.execute import Outcome, execute, gpu_wanted, keep_data, keep_run, read_outcome
from ..study.metrics import metrics
from ..util.own_code import files_of, in_words, place
from ..util.text import format_count
from . import suite
from .page import content, ranks
from .records import COSTS, RESULTS, Record, Submission, called, check_alike, read, together, write

if TYPE_CHECKING:
    import pandas as pd

PROTOCOLS = (AUTO, "theory")
"""Ways to choose parameters that run by default."""
PAGE = "bench.html"
"""Name of the page beside the file of results."""
SECONDS = 1.0
"""About how long a run takes on one core."""
RECORDS = 200
"""Maximum number of records that are saved of a run."""
CHIS = tuple(10 ** (exponent / 4) for exponent in range(17))
KAPPAS = (1.5, 10.0, 79.0, 1000.0, 10000.0)
"""Condition numbers of networks and functions at which formulas for parameters are compared."""


@dataclass(frozen=True)
class SuiteRun:
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

    @property
    def title(self) -> str:
        """What its method is called."""
        return loaded(self.method).title


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


def do_job(job: SuiteRun, folder: Path) -> None:
    """Run a job and save its result, or the reason why it cannot run."""
    try:
        problem, network = suite.problem(job.problem), suite.network(job.network)
        method: Any = loaded(job.method)
        tol = Stop(None, job.target).error(problem)
        result = solve(problem, network, method, job.protocol, rounds=job.rounds, tol=tol, progress=False)
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


@dataclass(frozen=True)
class Benchmark:
    """The result of `bench`.

    Attributes
    ----------
    folder : Path
    outcomes : list of Outcome
    ranks : dict
        Protocol -> table of ranks, by rounds.
    files : list of Path
        The file of results and the page.
    notes : list of str
        What was run, left out and added.
    lost : dict
        Key of a job that could not be done -> how its process ended.
    seconds : float
    """

    folder: Path
    outcomes: list[Outcome]
    ranks: dict[str, "pd.DataFrame"]
    files: list[Path]
    notes: list[str]
    lost: dict[str, str]
    seconds: float


def suite_methods() -> list[str]:
    """Return the methods that run by default: all that gossip over undirected links."""
    return [name for name in METHODS if not method_class(name).directed and method_class(name).needs != "complete"]


def bench(
    methods: Sequence[str] | None = None,
    *,
    quick: bool = False,
    folder: str | os.PathLike[str] = "out/bench",
    protocols: Sequence[str] = PROTOCOLS,
    add: Sequence[Path] = (),
    fresh: bool = False,
    workers: int | None = None,
    progress: bool | None = None,
) -> Benchmark:
    """Run methods on the suite; every run is saved at once, and the same call again runs only what is missing.

    Parameters
    ----------
    methods : sequence of str, optional
        Names, or module:Class; by default all that gossip over undirected links.
    quick : bool
        Whether to run only three pairs with a smaller budget.
    folder : path
    protocols : sequence of str
        One or more of "auto", "theory" and "unit".
    add : sequence of paths
        Files of results of others to compare with.
    fresh : bool
        Whether to remove an earlier benchmark from the folder. Otherwise a folder with results that this benchmark
        does not include is refused.
    workers : int, optional
        Number of processes, of one thread each; by default one per core. A GPU is used if the environment asks for it
        (``JAX_PLATFORMS=cuda``), then with one process by default.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal. Without it, a line is printed from time to time.
    """
    began = time.perf_counter()
    page.check()
    target, scale = Path(folder), suite.SCALES["quick" if quick else "full"]
    others = [(called(path), read(path)) for path in add]
    check_alike(quick, others)
    absent = suite.missing()
    pairs = [pair for pair in scale.pairs if pair[0] not in absent]
    chosen = suite_methods() if methods is None else list(methods)
    _check_distinct(chosen, protocols)
    for method in chosen:
        check_own(method, protocols)
    gpu, codes = gpu_wanted(), {method: code_of(method) for method in chosen}
    jobs = [
        SuiteRun(*pair, method, protocol, scale.rounds, scale.target, codes[method], "gpu" if gpu else "cpu")
        for protocol in protocols
        for method in chosen
        for pair in pairs
    ]
    if not jobs:
        raise InputError("got no methods or no protocols to run; leave both out for all")
    if fresh:
        _clear(target)
    _check_contains(target, jobs, quick)
    outcomes, lost = execute(
        jobs,
        target,
        do_job,
        partial(read_outcome, folder=target, place="bench"),
        shared=lambda job: (job.method, job.protocol),  # these share compiled programs
        seconds=lambda job: SECONDS,
        workers=workers,
        progress=progress,
        name="bench",
    )
    submission = _submission(outcomes, scale, quick, lost)
    records = together(submission, others)
    notes = _notes(scale, pairs, absent, chosen, others)
    written = page.write(content(records, outcomes, scale, notes), target / PAGE)
    files = [write(submission, target / RESULTS), written]
    return Benchmark(target, outcomes, ranks(records), files, notes, lost, time.perf_counter() - began)


def _check_distinct(methods: Sequence[str], protocols: Sequence[str]) -> None:
    """Refuse methods and protocols that no table could tell apart."""
    if twice := next((name for name in protocols if list(protocols).count(name) > 1), None):
        raise InputError(f"the protocols name {twice!r} twice; leave one out")
    called: dict[str, str] = {}
    for method in methods:
        if (label := label_of(method)) in called:
            raise InputError(
                f"{called[label]} and {method} are both called {label!r}; leave one out, or rename the class"
            )
        called[label] = method


def _clear(target: Path) -> None:
    """Remove the files of a benchmark from a folder."""
    runs = [path for path in (target / "results").glob("*--*--*") if path.suffix in (".npz", ".json")]
    for path in (*runs, target / RESULTS, target / PAGE):
        path.unlink(missing_ok=True)


def _check_contains(target: Path, jobs: Sequence[SuiteRun], quick: bool) -> None:
    """Refuse to replace results of runs that are not among these jobs; the full suite may replace a quick one."""
    try:
        earlier = read(target / RESULTS)
    except InputError:  # there is none, or it is of another version, or damaged
        return
    if earlier.quick and not quick:
        return
    asked = {(job.problem, job.network, job.label, job.protocol) for job in jobs} if earlier.quick == quick else set()
    left = [run for run in earlier.runs if (run.problem, run.network, run.method, run.protocol) not in asked]
    if left:
        first = left[0]
        raise InputError(
            f"{target} holds results of {format_count(len(left), 'run')} that are not among these, e.g. {first.method} "
            f"with {first.protocol} on {first.problem} on {first.network}; name those too, take another --out, or "
            "--fresh to remove them"
        )


def _submission(
    outcomes: Sequence[Outcome], scale: suite.SuiteSize, quick: bool, lost: Mapping[str, str]
) -> Submission:
    done = [o for o in outcomes if not o.to_do]
    if not done:
        key, reason = next(iter(lost.items()))
        raise InputError(f"no run could be made; the first, {key}: {reason}")
    device = next((str(o.result.provenance.get("device")) for o in done if o.result is not None), "")
    return Submission(
        suite=suite.VERSION,
        quick=quick,
        rounds=scale.rounds,
        target=scale.target,
        software=f"adom {__version__}",
        device=device,
        runs=[record(o) for o in done],
    )


def _notes(
    scale: suite.SuiteSize,
    pairs: Sequence[tuple[str, str]],
    absent: dict[str, str],
    methods: Sequence[str],
    others: Sequence[tuple[str, Submission]],
) -> list[str]:
    """Return what was run, and what was left out, in words."""
    notes = [
        f"{format_count(len(methods), 'method')} on {len(pairs)} of {len(scale.pairs)} pairs of a problem and a "
        f"network, at most {scale.rounds} rounds."
    ]
    if left := {name: why for name, why in absent.items() if any(name == problem for problem, _ in scale.pairs)}:
        notes.append(f"Left out: {'; '.join(left.values())}.")
    notes += [f"Added: {source}, made by {submission.software}." for source, submission in others]
    return notes
