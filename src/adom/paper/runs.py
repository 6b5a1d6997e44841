"""The runs of a reproduction as data: panels of figures, jobs on them, and what became of each job.

A reproduction's folder holds ``plan.json`` (all jobs, with everything that determines them), ``results/KEY.npz`` (the
result of one run) and ``results/KEY.json`` (what a job leaves that is no run: a search or a verification). Files are
whole or not there, so a reproduction goes on where it was left.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from .. import __version__
from ..algorithms import method_class
from ..errors import InputError, shown
from ..run.result import Result, load
from ..util.checked_json import Damaged, read_checked, write_checked
from ..util.files import kind, reason

FORMAT = "adom-reproduction-1"
VERIFY, TUNE = "verify", "tune"
"""Variants of jobs that leave JSON instead of a run: Theorem 1 and its lemmas checked; a search for parameters."""


@dataclass(frozen=True)
class Panel:
    """One panel of one figure.

    Attributes
    ----------
    figure, name : str
        `name` is unique in its figure.
    row, column : int
        Its place in the paper's arrangement, from 0.
    title : str
    settings : mapping
        What it shows: data, dim, kappa, chi, network, nodes, graphs, ...
    """

    figure: str
    name: str
    row: int
    column: int
    title: str
    settings: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True)
class Job:
    """One run, or one search or verification.

    Attributes
    ----------
    panel : Panel
    protocol : str
        "theory", "unit" or "tuned".
    seed : int
        Draws the data (or its split over the nodes) and the network.
    method, oracle : str
        `oracle` is empty for a primal method.
    rounds : int
        The budget of communication rounds.
    rtol : float
        The squared error, relative to the start, at which the run stops.
    variant : str
        "" is the paper's own; "exact" and "auto" are ADOM with another oracle; "split-label" is the data split by
        label; "verify" checks the theorem and its lemmas, "tune" searches for parameters: these two leave data, not a
        run.
    records : int
        About how many records the run leaves at most.
    candidates : int
        How many a search tries.
    tuning : str
        The key of the search whose parameters the run takes.
    """

    panel: Panel
    protocol: str
    seed: int
    method: str
    oracle: str
    rounds: int
    rtol: float
    variant: str = ""
    records: int = 400
    candidates: int = 0
    tuning: str = ""

    @cached_property
    def key(self) -> str:
        """A digest of everything that determines the job; the name of its file."""
        text = json.dumps({"format": FORMAT, "version": __version__, **job_to_json(self)}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    @property
    def leaves_data(self) -> bool:
        """Whether it leaves JSON instead of a run."""
        return self.variant in (VERIFY, TUNE)

    @property
    def text(self) -> str:
        """What it is, in words."""
        parts = (f"{self.panel.figure} {self.panel.name}", self.method, self.protocol, self.oracle, self.variant)
        return ", ".join(part for part in (*parts, f"seed {self.seed}") if part)


@dataclass(frozen=True)
class Outcome:
    """What became of a job.

    Attributes
    ----------
    job : Job
    result : Result, optional
        None for a job that leaves data, and where there is a reason.
    reason : str
        Why there is nothing: a data set that is missing, not yet run, refused.
    data : mapping, optional
        What a "verify" or "tune" job left. "verify": {"holds", "rows": [{"name", "statement", "worst_ratio", ...}]};
        "tune": {"chosen": {"mu", "L", "chi"}, ...}, the multiples of the constants that `unit` is told.
    refused : bool
        Whether the job was tried, and its method or its budget refused it: there is nothing left to do.
    damaged : str
        What is wrong with the file that it left, which counts as not there.
    """

    job: Job
    result: Result | None
    reason: str = ""
    data: Mapping[str, Any] | None = None
    refused: bool = False
    damaged: str = ""


@dataclass(frozen=True)
class Plan:
    """All jobs of a reproduction.

    Attributes
    ----------
    quick : bool
        Whether it is the miniature.
    jobs : sequence of Job
    figures : sequence of str
        What was asked for; the picture of a network is a figure without jobs.
    stages : sequence of (int, float)
        Of the searches: candidates and spread.
    refused : mapping
        Data set or network -> why its jobs cannot run.
    commit : str, optional
    """

    quick: bool
    jobs: Sequence[Job]
    figures: Sequence[str] = ()
    stages: Sequence[tuple[int, float]] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write plan.json into a folder."""
        panels = list({(job.panel.figure, job.panel.name): job.panel for job in self.jobs}.values())
        place = {(panel.figure, panel.name): number for number, panel in enumerate(panels)}
        content = {
            "format": FORMAT,
            "version": __version__,
            "commit": self.commit,
            "quick": self.quick,
            "figures": list(self.figures),
            "stages": [list(stage) for stage in self.stages],
            "refused": dict(self.refused),
            "panels": [asdict(panel) for panel in panels],
            "jobs": [
                {**job_to_json(job), "panel": place[job.panel.figure, job.panel.name], "key": job.key}
                for job in self.jobs
            ],
        }
        return write_checked(Path(folder) / "plan.json", content)


def job_to_json(job: Job) -> dict[str, Any]:
    """Return a job as plain data."""
    return asdict(job)


def load_plan(folder: str | os.PathLike[str]) -> Plan:
    """Read plan.json of a reproduction's folder."""
    path = Path(folder) / "plan.json"
    try:
        content = read_checked(path)
        if content.get("format") != FORMAT:
            raise Damaged(f"its format is not {FORMAT}")
        panels = [_panel(one) for one in content["panels"]]
        jobs = [_job(one, panels) for one in content["jobs"]]
        stages = [(int(count), float(spread)) for count, spread in content["stages"]]
        about = [str(one) for one in content["figures"]], stages, _texts(content["refused"]), content.get("commit")
        return Plan(bool(content["quick"]), jobs, *about)
    except OSError as error:
        raise InputError(
            f"{path.parent} is no folder of a reproduction: cannot read {path}: {reason(error)}; "
            "`adom reproduce --quick --out DIR` fills one"
        ) from None
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise InputError(f"{path} is no plan of a reproduction ({error}); run `adom reproduce` again") from None


def _panel(given: dict[str, Any]) -> Panel:
    panel = Panel(**given)
    _check_kinds(given, {"figure": str, "name": str, "row": int, "column": int, "title": str, "settings": dict})
    _check_kinds(given["settings"], {"data": str, "network": str, "nodes": int, "kappa": int | float})
    return panel


def _job(given: dict[str, Any], panels: Sequence[Panel]) -> Job:
    _check_kinds(given, {"panel": int, "protocol": str, "seed": int, "method": str, "oracle": str, "rounds": int})
    _check_kinds(given, {"rtol": int | float, "variant": str, "records": int, "candidates": int, "tuning": str})
    job = Job(**{name: value for name, value in given.items() if name != "key"} | {"panel": panels[given["panel"]]})
    method_class(job.method)
    return job


def _check_kinds(given: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
    for name, wanted in kinds.items():
        if not isinstance(given[name], wanted) or isinstance(given[name], bool):
            raise Damaged(f"{name} is {shown(given[name])}")


def _texts(given: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in given.items()}


def load_outcomes(folder: str | os.PathLike[str]) -> list[Outcome]:
    """Read what became of every job of a reproduction's folder, in the order of its plan."""
    plan = load_plan(folder)
    return [outcome(job, folder, plan.refused) for job in plan.jobs]


def outcome(job: Job, folder: str | os.PathLike[str], refused: Mapping[str, str] | None = None) -> Outcome:
    """Return what became of one job; a damaged file counts as not there, and the outcome says so."""
    results, damaged = Path(folder) / "results", ""
    for path, read in ((results / f"{job.key}.json", _left), (results / f"{job.key}.npz", _ran)):
        if kind(path) != "nothing":
            try:
                return read(job, path)
            except InputError as error:
                damaged = damaged or str(error)
    if damaged:
        return Outcome(job, None, f"not whole: {damaged}", damaged=damaged)
    for needed in (str(job.panel.settings.get(name)) for name in ("data", "network")):
        if refused and needed in refused:
            return Outcome(job, None, refused[needed])
    return Outcome(job, None, "not run yet")


AGAIN = "`adom reproduce` makes it again"
NUMBER = (int, float, type(None))
ROW = {"name": str, "statement": str, "holds": (bool, type(None)), "worst_ratio": NUMBER}
CHOSEN = {"name": (str, type(None)), "status": str} | dict.fromkeys(
    ("mu", "L", "chi", "rounds", "relative_error"), NUMBER
)


def _left(job: Job, path: Path) -> Outcome:
    """Read what a job left that is no run: a search, a verification, or why there is none."""
    try:
        data = read_checked(path)
        if "reason" in data:
            return Outcome(job, None, str(data["reason"]), refused=True)
        if not job.leaves_data:
            raise Damaged("it holds no reason")
        if job.variant == VERIFY:
            fit = bool(data["rows"]) and all(_fits(row, ROW) for row in data["rows"])
        else:
            fit = _fits(data["chosen"], CHOSEN) and _fits(data, {"on": dict, "candidates": int})
            fit = fit and {"rule", "rounds", "target"} <= data.keys()
        if not fit:
            raise Damaged("it holds something else")
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason(error)}; {AGAIN}") from None
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(f"{path} is not what a job leaves ({error}); {AGAIN}") from None
    return Outcome(job, None, "", data)


def _fits(given: Mapping[str, Any], kinds: Mapping[str, Any]) -> bool:
    return all(isinstance(given[name], wanted) for name, wanted in kinds.items())


def _ran(job: Job, path: Path) -> Outcome:
    """Read the result of a job's run."""
    found = load(path)
    made = found.provenance
    key = (made.get("reproduction") or {}).get("key")
    whole = found.measure == "error" and len(found.history) and made.get("start_error") is not None
    if key != job.key or not whole:
        raise InputError(f"{path} is not the run that its name says; {AGAIN}")
    return Outcome(job, found)
