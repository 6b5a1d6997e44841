"""The runs of a reproduction as data: panels of figures, jobs on them, and the outcome of each job.

A reproduction's folder holds ``plan.json`` (all jobs, with everything that determines them), ``results/KEY.npz`` (the
result of one run) and ``results/KEY.json`` (a search, a verification, or the reason why a job cannot run). Files are
written whole or not at all, so an interrupted reproduction resumes where it stopped.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from .. import __version__
from ..algorithms import method_class
from ..errors import Damaged, InputError, shown
from ..study.execute import Outcome
from ..study.execute import read_outcome as read_kept
from ..util.checked_json import read_checked, write_checked
from ..util.files import reason

FORMAT = "adom-reproduction-1"
PROTOCOLS = ("theory", "unit", "tuned", "auto")
"""Ways to choose parameters; "auto" also sets the oracle of dual methods to "auto"."""
VERIFY, TUNE = "verify", "tune"
"""Variants of jobs that leave JSON instead of a run: a check of Theorem 1 and its lemmas; a search for parameters."""


@dataclass(frozen=True)
class PaperPanel:
    """One panel of one figure."""

    figure: str
    name: str  # unique in its figure
    row: int  # in the paper's arrangement, from 0
    column: int
    title: str
    settings: Mapping[str, Any] = field(hash=False)  # data, dim, kappa, chi, network, nodes, graphs, ...


@dataclass(frozen=True)
class PaperJob:
    """One run, search or verification.

    Variants: "" is the paper's run; "exact" and "auto" are ADOM with that oracle; "split-label" has the data split
    by label; "others" is a method that the figure does not show; "verify" checks the theorem and its lemmas; "tune"
    searches for parameters. The last two leave data, not a run.
    """

    panel: PaperPanel
    protocol: str  # one of `PROTOCOLS`
    seed: int  # draws the data (or its split over the nodes) and the network
    method: str
    oracle: str  # empty for a primal method
    rounds: int  # the budget of communication rounds
    accuracy: float  # the squared error, relative to the start, at which the run stops
    variant: str = ""
    records: int = 400  # about the most that the run keeps
    candidates: int = 0  # how many a search tries
    tuning: str = ""  # key of the search whose parameters the run takes

    @cached_property
    def key(self) -> str:
        """A digest of everything that determines the job; the name of its file."""
        text = json.dumps({"format": FORMAT, "version": __version__, **asdict(self)}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    @property
    def leaves_data(self) -> bool:
        """Whether it leaves JSON instead of a run."""
        return self.variant in (VERIFY, TUNE)

    @property
    def text(self) -> str:
        """Figure, panel, method, protocol, oracle, variant and seed, in words."""
        parts = (f"{self.panel.figure} {self.panel.name}", self.method, self.protocol, self.oracle, self.variant)
        return ", ".join(part for part in (*parts, f"seed {self.seed}") if part)


@dataclass(frozen=True)
class ReproductionPlan:
    """All jobs of a reproduction."""

    quick: bool  # whether it is the miniature
    jobs: Sequence[PaperJob]
    figures: Sequence[str] = ()  # names; figure network has no jobs
    stages: Sequence[tuple[int, float]] = ()  # of the searches: candidates and spread
    refused: Mapping[str, str] = field(default_factory=dict)  # data set or network -> why its jobs cannot run
    commit: str | None = None

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write plan.json into a folder."""
        panels = list({(job.panel.figure, job.panel.name): job.panel for job in self.jobs}.values())
        position = {(panel.figure, panel.name): number for number, panel in enumerate(panels)}
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
                {**asdict(job), "panel": position[job.panel.figure, job.panel.name], "key": job.key}
                for job in self.jobs
            ],
        }
        return write_checked(Path(folder) / "plan.json", content)

    def reason_against(self, job: PaperJob) -> str:
        """Return why a job cannot run because its data or network is missing; empty if it can."""
        needed = (str(job.panel.settings.get(name)) for name in ("data", "network"))
        return next((self.refused[name] for name in needed if name in self.refused), "")


NUMBER = (int, float)
PANEL = {"figure": str, "name": str, "row": int, "column": int, "title": str, "settings": dict}
SETTINGS = {"data": str, "network": str, "nodes": int, "kappa": NUMBER}
JOB = {
    **dict.fromkeys(("protocol", "method", "oracle", "variant", "tuning"), str),
    **dict.fromkeys(("panel", "seed", "rounds", "records", "candidates"), int),
    "accuracy": NUMBER,
}
ROW = {"name": str, "statement": str, "holds": (bool, type(None)), "worst_ratio": (*NUMBER, type(None))}
CHOSEN = {
    **dict.fromkeys(("mu", "L", "chi", "rounds", "relative_error"), (*NUMBER, type(None))),
    "name": (str, type(None)),
    "status": str,
}
SEARCH = {"chosen": dict, "on": dict, "candidates": int, "rule": object, "rounds": object, "target": object}
"""Types of the values in files."""


def _check_types(given: Mapping[str, Any], types: Mapping[str, Any]) -> None:
    for name, wanted in types.items():
        truth = isinstance(given[name], bool) and bool not in (wanted if isinstance(wanted, tuple) else (wanted,))
        if truth or not isinstance(given[name], wanted):
            raise Damaged(f"{name} is {shown(given[name])}")


def load_plan(folder: str | os.PathLike[str]) -> ReproductionPlan:
    """Read plan.json of a reproduction's folder."""
    path = Path(folder) / "plan.json"
    try:
        content = read_checked(path)
        if content.get("format") != FORMAT:
            raise Damaged(f"its format is not {FORMAT}")
        panels = [_panel(given) for given in content["panels"]]
        return ReproductionPlan(
            bool(content["quick"]),
            [_job(given, panels) for given in content["jobs"]],
            [str(name) for name in content["figures"]],
            [(int(count), float(spread)) for count, spread in content["stages"]],
            {name: str(why) for name, why in content["refused"].items()},
            content.get("commit"),
        )
    except OSError as error:
        raise InputError(
            f"{path.parent} is not a folder of a reproduction: cannot read {path}: {reason(error)}; "
            "`adom reproduce --quick --out DIR` fills one"
        ) from None
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise InputError(f"{path} is not a plan of a reproduction ({error}); run `adom reproduce` again") from None


def _panel(given: dict[str, Any]) -> PaperPanel:
    panel = PaperPanel(**given)
    _check_types(given, PANEL)
    _check_types(given["settings"], SETTINGS)
    return panel


def _job(given: dict[str, Any], panels: Sequence[PaperPanel]) -> PaperJob:
    _check_types(given, JOB)
    job = PaperJob(
        **{name: value for name, value in given.items() if name != "key"} | {"panel": panels[given["panel"]]}
    )
    method_class(job.method)
    return job


def load_outcomes(folder: str | os.PathLike[str]) -> list[Outcome]:
    """Read the outcome of every job of a reproduction's folder, in the order of its plan."""
    plan = load_plan(folder)
    return [read_outcome(job, folder, plan) for job in plan.jobs]


def read_outcome(job: PaperJob, folder: str | os.PathLike[str], plan: ReproductionPlan | None = None) -> Outcome:
    """Return the outcome of a job; a damaged file counts as missing, and the outcome says so."""
    found = read_kept(job, folder, "reproduction", _check_data)
    against = plan.reason_against(job) if plan and found.to_do and not found.damaged else ""
    return replace(found, reason=against) if against else found


def _check_data(job: PaperJob, data: Any) -> None:
    """Refuse data that are not those of a search or a verification."""
    if not job.leaves_data:
        raise Damaged("it holds no reason")
    if job.variant == VERIFY:
        for row in data["rows"]:
            _check_types(row, ROW)
        if not data["rows"]:
            raise Damaged("it has no rows")
    else:
        _check_types(data, SEARCH)
        _check_types(data["chosen"], CHOSEN)
