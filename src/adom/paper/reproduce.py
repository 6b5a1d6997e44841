"""`reproduce`: run every panel of the paper's figures, draw them, and hold the claims against what came out."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ..errors import InputError, nearest
from ..run.provenance import commit
from ..util.checks import check_whole
from .pages import pages, write_tables
from .plan import PROTOCOLS, SCALES, Scale, make_jobs, read_names
from .pool import Pool, Task
from .runs import Job, Outcome, Plan, outcome

if TYPE_CHECKING:
    from .ledger import Ledger

BATCH = 16
"""Candidates of a search that a GPU runs at the same time; a core runs them one after the other."""
TELL_SECONDS = 15.0
"""Time from one line of progress to the next where nobody watches a terminal."""
WIDTHS = {"a6a": (122, 90.0), "w6a": (300, 90.0), "ijcnn1": (22, 22.0)}
"""Features of the data sets, and of a sample as many as cost as much as it does, being sparse."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Reproduction:
    """What a reproduction has come to.

    Attributes
    ----------
    folder : Path
    plan : Plan
    outcomes : list of Outcome
        In the order of the plan's jobs.
    ledger : Ledger
    files : list of Path
        Figures, tables and the ledger.
    lost : dict
        Job -> how its worker died, for jobs that could not be done.
    seconds : float
    """

    folder: Path
    plan: Plan
    outcomes: list[Outcome]
    ledger: "Ledger"
    files: list[Path]
    lost: dict[str, str]
    seconds: float

    @property
    def done(self) -> int:
        """How many jobs have left something."""
        return sum(one.result is not None or one.data is not None for one in self.outcomes)


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
    """Reproduce figures of the paper: run what they show, draw them, and judge the claims.

    Every finished run is saved at once, so the same call goes on where it was ended or killed.

    Parameters
    ----------
    figures : sequence of str, optional
        Names of `adom.paper.panels.FIGURES`, or single panels such as "kappa/d40-kappa100"; all by default.
    quick : bool
        A miniature of everything instead of the paper's sizes.
    folder : path
    protocols : sequence of str
        Of "theory", "unit" and "tuned".
    seeds : int, optional
        Draws of data and network that each panel is run on; by default 3, for a miniature 1.
    workers : int, optional
        Processes of one thread each; by default one a core, or a single one with a GPU.
    progress : bool, optional
        A progress bar; by default on a terminal, and otherwise a line from time to time.
    scale : Scale, optional
        Sizes and lengths of your own.
    """
    began = time.perf_counter()
    names = read_names(figures)
    _check(protocols, seeds=seeds, workers=workers)
    target = Path(folder)
    scale = scale or SCALES["quick" if quick else "full"]
    jobs = make_jobs(names, scale, protocols, seeds)
    plan = Plan(quick, jobs, names, scale.stages, missing_data(jobs), commit())
    (target / "results").mkdir(parents=True, exist_ok=True)
    for left in (target / "results").glob(".*.tmp"):
        left.unlink(missing_ok=True)
    plan.save(target)

    outcomes = [outcome(job, target, plan.refused) for job in jobs]
    done = {place for place, one in enumerate(outcomes) if not todo(one)}
    able = [place for place in range(len(jobs)) if place not in done and not refused(jobs[place], plan)]
    settled = {place for place in range(len(jobs)) if place not in able}
    drawn = [Task(draw=page, needs=set(_jobs_of(jobs, page)) & set(able), cost=2.0) for page in pages(names, protocols)]
    costs = {place: cost(jobs[place]) for place in able}
    count = workers or default_workers()
    with Watch(costs, len(done), count, progress) as watch, Pool(target, count, _batch()) as pool:
        _tell_missing(plan, watch.say)
        for one in outcomes:
            if one.damaged:
                watch.say(f"made again: {one.damaged}")
        try:
            pool.run([*groups(jobs, able, costs), *drawn], set(settled), watch.tell)
        except KeyboardInterrupt:
            watch.say(f"{len(done) + watch.count} of {len(jobs)} runs are kept in {target}; the same command goes on")
            raise
        watch.say("tables and ledger")
    outcomes = [
        outcome(job, target, plan.refused) if place in costs else outcomes[place] for place, job in enumerate(jobs)
    ]
    files = [path for page in pages(names, protocols) for path in _pictures(target, page)]
    files += write_tables(target, outcomes)

    from . import findings
    from .ledger import write

    ledger = write(target, outcomes)
    findings.write(target, outcomes)
    files += [target / name for name in ("ledger.json", "ledger.md", "findings.md")]
    lost = {jobs[place].text: words for place, words in pool.lost.items()}
    return Reproduction(target, plan, outcomes, ledger, files, lost, time.perf_counter() - began)


def _check(protocols: Sequence[str], **numbers: int | None) -> None:
    """Refuse protocols that there are not, and numbers below 1."""
    for protocol in protocols:
        if protocol not in PROTOCOLS:
            raise InputError(
                f"protocols must be of {', '.join(PROTOCOLS)}, got {protocol!r}; {nearest(protocol, PROTOCOLS)}"
            )
    for name, value in numbers.items():
        if value is not None:
            check_whole(name, value)


def todo(one: Outcome) -> bool:
    """Return whether a job has left nothing yet: no run, no data, and no reason of its own."""
    return one.result is None and one.data is None and not one.refused


def refused(job: Job, plan: Plan) -> bool:
    """Return whether the data or the network of a job is missing."""
    return any(job.panel.settings.get(name) in plan.refused for name in ("data", "network"))


def missing_data(jobs: Iterable[Job]) -> dict[str, str]:
    """Return the data sets and networks that jobs need and that are not there, each with what to do."""
    wanted = {name: name for job in jobs if (name := job.panel.settings["data"]) != "synthetic"}
    if any(job.panel.settings["network"] == "infectious" for job in jobs):
        wanted["infectious"] = "infectious_ct1"
    found = {}
    for key, name in wanted.items():
        from ..data import folder, state

        known = state(name)
        if known.status != "present":
            remedy = f"`adom data {name} --download` fetches it, or set ADOM_DATA to a folder that has it"
            found[key] = known.message or f"{name} is not in {folder()}; {remedy}"
    return found


def _tell_missing(plan: Plan, say: Say) -> None:
    if not plan.refused:
        return
    left = {(job.panel.figure, job.panel.name) for job in plan.jobs if refused(job, plan)}
    figures = ", ".join(dict.fromkeys(figure for figure, _ in sorted(left)))
    names = ", ".join(plan.refused)
    say(
        f"{len(left)} panels of {figures} are left out, for they need {names}: `adom data --download` fetches them, "
        "or set ADOM_DATA to a folder that has them"
    )


def default_workers() -> int:
    """Return one a core that this process may use; one in all where there is a GPU."""
    if _gpu():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _batch() -> int:
    return BATCH if _gpu() else 1


def _gpu() -> bool:
    """Return whether JAX would run on a GPU, without starting it here."""
    if os.environ.get("JAX_PLATFORMS", "").startswith("cpu"):
        return False
    return Path("/dev/nvidiactl").exists() and any(find_spec(f"jax_cuda{n}_plugin") for n in (12, 13))


def groups(jobs: Sequence[Job], able: Sequence[int], costs: dict[int, float]) -> list[Task]:
    """Put jobs together that share data and network; searches come first, by method, then the longest."""
    keys = {job.key: place for place, job in enumerate(jobs)}
    found: dict[Any, Task] = {}
    for place in able:
        job = jobs[place]
        settings = job.panel.settings
        names = ("data", "dim", "samples", "nodes", "network", "graphs", "chi", "every")
        search = job.method if job.candidates else ""
        about = (search, job.seed, *(settings.get(name) for name in names))
        task = found.setdefault(about, Task())
        task.jobs.append(place)
        task.cost += costs[place]
        if job.tuning and keys.get(job.tuning) in costs:
            task.needs.add(keys[job.tuning])
    return sorted(found.values(), key=lambda task: (not jobs[task.jobs[0]].candidates, -task.cost))


def cost(job: Job) -> float:
    """Return about how many seconds a job takes on one core, by what rounds were measured to take."""
    settings = job.panel.settings
    nodes, dim = int(settings["nodes"]), int(settings.get("dim") or WIDTHS[settings["data"]][0])
    samples = float(settings["samples"] or 20_000 / nodes)
    entries = nodes * samples * (dim if settings["data"] == "synthetic" else WIDTHS[settings["data"]][1])
    vectors, gradient = 4e-6 + 5e-9 * nodes * dim, 1e-10 * entries
    kind, _, steps = job.oracle.partition(":")
    if kind == "exact":
        a_round = 8e-5 + 3e-10 * nodes * samples * dim**2
    elif job.method in ("mudag", "apm"):
        a_round = 0.3 * vectors + 0.05 * gradient
    else:
        a_round = vectors + gradient * float(steps or (2 if kind == "auto" else 1))
    each = 0.05 + 1e-4 * int(settings["graphs"])
    return 0.3 + max(1, job.candidates) * (each + (0.6 if job.candidates else 1.0) * job.rounds * a_round)


def _jobs_of(jobs: Sequence[Job], page: tuple[str, str]) -> list[int]:
    return [place for place, job in enumerate(jobs) if (job.panel.figure, job.protocol) == page]


def _pictures(folder: Path, page: tuple[str, str]) -> list[Path]:
    name = "-".join(part for part in page if part)
    return [path for kind in ("png", "pdf") if (path := folder / "figures" / f"{name}.{kind}").exists()]


class Watch:
    """Shows how many jobs are done and how much time is left: a bar on a terminal, elsewhere a line now and then."""

    def __init__(self, costs: dict[int, float], before: int, workers: int, show: bool | None) -> None:
        self.costs, self.before, self.workers = costs, before, workers
        self.total, self.paid, self.count = sum(costs.values()), 0.0, 0
        self.show = sys.stderr.isatty() if show is None else show
        self.began = self._told = time.perf_counter()
        self._bar: Any = None

    def __enter__(self) -> Self:
        if self.show:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            columns = (TextColumn("reproduce"), BarColumn(), TextColumn("{task.fields[note]}"))
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

    def tell(self, place: int) -> None:
        """Count a job that is done."""
        self.paid += self.costs.get(place, 0.0)
        self.count += 1
        if self._bar is not None:
            self._bar.update(self._task, completed=self.paid, note=self._note())
        elif time.perf_counter() - self._told > TELL_SECONDS:
            self._told = time.perf_counter()
            self.say(self._note())

    def _note(self) -> str:
        done, all_of_them = self.before + self.count, self.before + len(self.costs)
        return f"{done} of {all_of_them} runs, {_duration(self.left())} left"

    def left(self) -> float:
        """Return about how many seconds are left: by the estimates at first, then by how long things took."""
        elapsed = time.perf_counter() - self.began
        guess = self.total / self.workers
        pace = (elapsed + 0.1 * guess) / (self.paid + 0.1 * self.total) if self.total else 0.0
        return pace * (self.total - self.paid)


def _duration(seconds: float) -> str:
    """Return a duration for people to read.

    Examples
    --------
    >>> _duration(42), _duration(300), _duration(7000)
    ('42 s', '5 min', '1 h 57 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
