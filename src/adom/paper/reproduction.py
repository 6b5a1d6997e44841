"""`reproduce`: run every panel of the paper's figures, draw them, and judge the claims by the results."""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..run.recorder import commit
from ..study.execute import Outcome, execute, gpu_wanted
from ..util.checks import check_whole
from . import ledger
from .evidence import write_tables
from .figures import draw, pages, pictures
from .plan import SCALES, Scale, make_jobs, read_names, read_protocols
from .runs import PROTOCOLS, VERIFY, PaperJob, ReproductionPlan, read_outcome
from .work import do_job

BATCH = 16
"""Candidates of a search that a GPU runs at the same time; a core runs them one after the other."""
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
    read_protocols(protocols)
    for name, value in {"seeds": seeds, "workers": workers}.items():
        if value is not None:
            check_whole(name, value)
    target = Path(folder)
    jobs = make_jobs(names, scale, protocols, seeds)
    plan = ReproductionPlan(quick, jobs, names, scale.stages, missing_data(jobs), commit())
    target.mkdir(parents=True, exist_ok=True)
    plan.save(target)
    shown = pages(names, protocols)
    able = [job for job in jobs if not plan.reason_against(job)]
    tried, lost = execute(
        able,
        target,
        partial(do_job, stages=scale.stages, batch=BATCH if gpu_wanted() else 1),
        partial(read_outcome, folder=target, plan=plan),
        shared=shared,
        seconds=seconds,
        needs=lambda job: {job.tuning},
        pages={page: {job.key for job in able if (job.panel.figure, job.protocol) == page} for page in shown},
        draw=draw,
        notes=_missing_notes(plan),
        workers=workers,
        progress=progress,
        name="reproduce",
    )
    by_key = {outcome.job.key: outcome for outcome in tried}
    outcomes = [by_key.get(job.key) or read_outcome(job, target, plan) for job in jobs]
    files = [path for page in shown for path in pictures(target, *page)]
    files += write_tables(target, outcomes)
    judged = ledger.write(target, outcomes)
    files += [target / name for name in ("ledger.json", "ledger.md", "findings.md")]
    died = {job.text: lost[job.key] for job in jobs if job.key in lost}
    return Reproduction(target, plan, outcomes, judged, files, died, time.perf_counter() - began)


def missing_data(jobs: Iterable[PaperJob]) -> dict[str, str]:
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


def _missing_notes(plan: ReproductionPlan) -> list[str]:
    """Return a line about the panels that are left out, if there are any."""
    left = {(job.panel.figure, job.panel.name) for job in plan.jobs if plan.reason_against(job)}
    figures = ", ".join(dict.fromkeys(figure for figure, _ in sorted(left)))
    line = (
        f"{len(left)} panels of {figures} are left out because they need {', '.join(plan.refused)}: "
        "`adom data --download` fetches them, or set ADOM_DATA to a folder that has them"
    )
    return [line] if left else []


def shared(job: PaperJob) -> tuple[Any, ...]:
    """Return what jobs that one process does together share: data and network, and of searches the method too."""
    names = ("data", "dim", "samples", "nodes", "network", "graphs", "chi", "every")
    return (job.method if job.candidates else "", job.seed, *(job.panel.settings.get(name) for name in names))


def seconds(job: PaperJob) -> float:
    """Return the estimated seconds of a job on one core, from its rounds and the numbers that a round touches."""
    settings = job.panel.settings
    nodes, dim = int(settings["nodes"]), settings.get("dim")
    width, dim = (dim, dim) if dim else SIZES[settings["data"]]
    entries = nodes * width * (settings["samples"] or 20_000 / nodes)
    kind, _, steps = job.oracle.partition(":")
    gradients = {"exact": 4.0 * dim, "auto": 2.0}.get(kind, float(steps or 1)) * (3 if job.variant == VERIFY else 1)
    round_seconds = 2e-5 + 4e-9 * nodes * dim + 1e-10 * entries * gradients
    return 0.5 + max(1, job.candidates) * job.rounds * round_seconds
