"""`reproduce`: run every panel of the paper's figures, draw them, and judge the claims by the results."""

import os
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ..errors import InputError, nearest
from ..run.provenance import commit
from ..util.checks import check_whole
from ..util.text import format_duration
from . import ledger
from .evidence import write_tables
from .figures import pages, pictures
from .plan import SCALES, Scale, make_jobs, read_names
from .runner import Runner, WorkUnit
from .runs import PROTOCOLS, VERIFY, Job, Outcome, ReproductionPlan, read_outcome

TELL_SECONDS = 15.0
"""Seconds between lines of progress if there is no terminal."""
SIZES = {"a6a": (14, 122), "w6a": (12, 300), "ijcnn1": (22, 22)}
"""Data set -> (non-zero features of a sample, all features)."""


@dataclass(frozen=True)
class Reproduction:
    """Result of `reproduce`.

    Attributes
    ----------
    folder : Path
    plan : ReproductionPlan
    outcomes : list of Outcome
        In the order of the plan's jobs.
    ledger : Ledger
    files : list of Path
        Figures, tables and the ledger.
    lost : dict
        Job -> how its process ended, for jobs that could not be done.
    seconds : float
    """

    folder: Path
    plan: ReproductionPlan
    outcomes: list[Outcome]
    ledger: ledger.Ledger
    files: list[Path]
    lost: dict[str, str]
    seconds: float

    @property
    def done(self) -> int:
        """Number of jobs with a result."""
        return sum(outcome.result is not None or outcome.data is not None for outcome in self.outcomes)


def reproduce(
    figures: Sequence[str] | None = None,
    *,
    quick: bool = False,
    folder: str | os.PathLike[str] = "out/reproduce",
    protocols: Sequence[str] = PROTOCOLS,
    seeds: int | None = None,
    workers: int | None = None,
    progress: bool | None = None,
    scale: Scale | None = None,
) -> Reproduction:
    """Reproduce figures of the paper: do their runs, draw them, and judge the claims.

    Every finished run is saved at once, so the same call resumes an interrupted reproduction.

    Parameters
    ----------
    figures : sequence of str, optional
        Names in `adom.paper.panels.FIGURES`, or single panels such as "kappa/d40-kappa100", in a miniature
        "kappa/d10-kappa100"; all figures by default.
    quick : bool
        Run a miniature of everything instead of the paper's sizes.
    folder : path
    protocols : sequence of str
        Any of "theory", "unit", "tuned" and "auto".
    seeds : int, optional
        Draws of data and network that each panel is run on; by default 3, for a miniature 1.
    workers : int, optional
        Processes of one thread each; by default one per core. A GPU is used only if the environment asks for it
        (``JAX_PLATFORMS=cuda``), and by a single process: these runs are small, and cores are faster.
    progress : bool, optional
        Show a progress bar, by default on a terminal; otherwise print a line from time to time.
    scale : Scale, optional
        Custom sizes and lengths.
    """
    began = time.perf_counter()
    scale = scale or SCALES["quick" if quick else "full"]
    names = read_names(figures, scale.size)
    _check(protocols, seeds=seeds, workers=workers)
    target = Path(folder)
    jobs = make_jobs(names, scale, protocols, seeds)
    plan = ReproductionPlan(quick, jobs, names, scale.stages, missing_data(jobs), commit())
    (target / "results").mkdir(parents=True, exist_ok=True)
    for partial in (target / "results").glob(".*.tmp"):
        partial.unlink(missing_ok=True)
    plan.save(target)

    outcomes = [read_outcome(job, target, plan) for job in jobs]
    pending = [outcome.job for outcome in outcomes if outcome.to_do and not plan.reason_against(outcome.job)]
    units = [*work_units(pending), *_drawing(names, protocols, pending)]
    runner = Runner(target, workers or default_workers(), scale.stages, gpu_wanted())
    before = len([outcome for outcome in outcomes if not outcome.to_do])
    with JobProgress({job.key: seconds(job) for job in pending}, before, runner.workers, progress) as bar:
        _tell_missing(plan, bar)
        for outcome in outcomes:
            if outcome.damaged:
                bar.say(f"redoing a damaged result: {outcome.damaged}")
                _remove(outcome.job, target)
        try:
            runner.run(units, bar.tell)
        except KeyboardInterrupt:
            bar.say(f"{before + bar.count} of {len(jobs)} runs are kept in {target}; the same command goes on")
            raise
        bar.say("tables and ledger")
    renewed = {job.key for job in pending}
    outcomes = [
        read_outcome(outcome.job, target, plan) if outcome.job.key in renewed else outcome for outcome in outcomes
    ]
    files = [path for page in pages(names, protocols) for path in pictures(target, *page)]
    files += write_tables(target, outcomes)
    judged = ledger.write(target, outcomes)
    files += [target / name for name in ("ledger.json", "ledger.md", "findings.md")]
    lost = {job.text: runner.lost[job.key] for job in jobs if job.key in runner.lost}
    return Reproduction(target, plan, outcomes, judged, files, lost, time.perf_counter() - began)


def _check(protocols: Sequence[str], **numbers: int | None) -> None:
    """Refuse unknown protocols, and numbers below 1."""
    for protocol in protocols:
        if protocol not in PROTOCOLS:
            raise InputError(
                f"protocols must be of {', '.join(PROTOCOLS)}, got {protocol!r}; {nearest(protocol, PROTOCOLS)}"
            )
    for name, value in numbers.items():
        if value is not None:
            check_whole(name, value)


def missing_data(jobs: Iterable[Job]) -> dict[str, str]:
    """Return the missing data sets and networks that jobs need, each with a remedy."""
    wanted = {name: name for job in jobs if (name := job.panel.settings["data"]) != "synthetic"}
    if any(job.panel.settings["network"] == "infectious" for job in jobs):
        wanted["infectious"] = "infectious_ct1"
    missing = {}
    for key, name in wanted.items():
        from ..data import state

        status = state(name).status
        if status != "present":  # the text goes into figures and tables, so it names no folder
            remedy = f"`adom data {name} --download` fetches it, or set ADOM_DATA to a folder that has it"
            wrong = f"the files of {name} differ from the published ones; `adom data {name}` says what is wrong"
            missing[key] = wrong if status == "wrong" else f"{name} is not there; {remedy}"
    return missing


def _tell_missing(plan: ReproductionPlan, bar: "JobProgress") -> None:
    left = {(job.panel.figure, job.panel.name) for job in plan.jobs if plan.reason_against(job)}
    if left:
        figures = ", ".join(dict.fromkeys(figure for figure, _ in sorted(left)))
        bar.say(
            f"{len(left)} panels of {figures} are left out because they need {', '.join(plan.refused)}: "
            "`adom data --download` fetches them, or set ADOM_DATA to a folder that has them"
        )


def _remove(job: Job, folder: Path) -> None:
    """Remove a damaged file, since a job with a file counts as done."""
    for suffix in ("json", "npz"):
        with suppress(OSError):
            (folder / "results" / f"{job.key}.{suffix}").unlink(missing_ok=True)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_workers() -> int:
    """Return the default number of processes: one per core, or one for a GPU."""
    return 1 if gpu_wanted() else _cores()


def gpu_wanted() -> bool:
    """Return whether the environment asks JAX for a platform other than the CPU."""
    platforms = os.environ.get("JAX_PLATFORMS", "")
    return bool(platforms) and not platforms.startswith("cpu")


def work_units(jobs: Sequence[Job]) -> list[WorkUnit]:
    """Group jobs that share data and network (searches: method too); searches come first, then the longest."""
    keys = {job.key for job in jobs}
    units: dict[Any, WorkUnit] = {}
    for job in jobs:
        names = ("data", "dim", "samples", "nodes", "network", "graphs", "chi", "every")
        search = job.method if job.candidates else ""
        shared = (search, job.seed, *(job.panel.settings.get(name) for name in names))
        unit = units.setdefault(shared, WorkUnit())
        unit.jobs.append(job)
        unit.cost += seconds(job)
        unit.needs |= {job.tuning} & keys
    return sorted(units.values(), key=lambda unit: (not unit.jobs[0].candidates, -unit.cost))


def _drawing(names: Sequence[str], protocols: Sequence[str], pending: Sequence[Job]) -> list[WorkUnit]:
    """Return a unit for each page to draw, which needs the page's pending jobs."""
    return [
        WorkUnit(page=page, needs={job.key for job in pending if (job.panel.figure, job.protocol) == page})
        for page in pages(names, protocols)
    ]


def seconds(job: Job) -> float:
    """Return the estimated seconds of a job on one core, from its rounds and the numbers that a round touches."""
    settings = job.panel.settings
    nodes, dim = int(settings["nodes"]), settings.get("dim")
    width, dim = (dim, dim) if dim else SIZES[settings["data"]]
    entries = nodes * width * (settings["samples"] or 20_000 / nodes)
    kind, _, steps = job.oracle.partition(":")
    gradients = {"exact": 4.0 * dim, "auto": 2.0}.get(kind, float(steps or 1)) * (3 if job.variant == VERIFY else 1)
    round_seconds = 2e-5 + 4e-9 * nodes * dim + 1e-10 * entries * gradients
    return 0.5 + max(1, job.candidates) * job.rounds * round_seconds


class JobProgress:
    """Shows how many jobs are done and how much time is left: a bar on a terminal, elsewhere a line now and then.

    `costs` maps the keys of pending jobs to estimated seconds; `before` is the number of jobs done already.
    """

    def __init__(
        self, costs: dict[str, float], before: int, workers: int, show: bool | None, name: str = "reproduce"
    ) -> None:
        self.name = name
        self.costs, self.before, self.workers = costs, before, workers
        self.total, self.paid, self.count = sum(costs.values()), 0.0, 0
        self.show = sys.stderr.isatty() if show is None else show
        self.began = self._printed = time.perf_counter()
        self._bar: Any = None

    def __enter__(self) -> Self:
        if self.show:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            columns = (TextColumn(self.name), BarColumn(), TextColumn("{task.fields[note]}"))
            self._bar = Progress(*columns, console=Console(stderr=True, force_terminal=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=self.total or 1.0, note=self._note())
        elif self.costs:
            self.say(self._note())
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def say(self, text: str) -> None:
        """Print a line on stderr, above the bar if there is one."""
        if self._bar is not None:
            self._bar.console.print(f"adom: {text}", markup=False, highlight=False)
        else:
            print(f"adom: {text}", file=sys.stderr, flush=True)

    def tell(self, done: set[str]) -> None:
        """Show the jobs that are done, by their keys."""
        now = self.costs.keys() & done
        self.count, self.paid = len(now), sum(self.costs[key] for key in now)
        if self._bar is not None:
            self._bar.update(self._task, completed=self.paid, note=self._note())
        elif time.perf_counter() - self._printed > TELL_SECONDS:
            self._printed = time.perf_counter()
            self.say(self._note())

    def _note(self) -> str:
        done, of = self.before + self.count, self.before + len(self.costs)
        return f"{done} of {of} runs, {format_duration(self.left())} left"

    def left(self) -> float:
        """Return the estimated seconds left: from the estimates at first, then from the pace."""
        elapsed = time.perf_counter() - self.began
        guess = self.total / self.workers
        pace = (elapsed + 0.1 * guess) / (self.paid + 0.1 * self.total) if self.total else 0.0
        return max(0.0, pace * (self.total - self.paid))
