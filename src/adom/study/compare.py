"""`compare`: several methods on the same problem and network, with the same budget of rounds; also over seeds."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ..algorithms import COMPARED, METHODS
from ..errors import InputError
from ..networks import DirectedNetwork, Network
from ..problems.base import Problem
from ..run.auto.pilots import check_findable
from ..run.constants import check_pair, make_method
from ..run.links import as_run
from ..run.request import AUTO, TUNED, Request, Stop, check_budget, parse_oracle
from ..run.result import Result
from ..run.user_code import try_own
from ..util.checks import check_whole
from ..util.columns import metric_of
from ..util.files import atomic
from .instances import Instance, Instances, read_instances
from .jobs import Job, JobRunner
from .methods import LabelledMethod, read_methods, title, with_settings
from .metrics import aim, metrics, relative, smallest_target, start_error
from .over_seeds import medians
from .profiles import performance_profile, rank_table
from .saved import FILE, MEMBERS, file_names, replaced

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ..plot.display import Figure

ALL = "all"
BATCH = 64
"""Maximum number of seeds in a batch on an accelerator."""
TUNING_SEED = 10**6
"""The seed on which parameters are tuned, unless it is compared itself. Adding seeds then changes no run."""
INTERRUPTED = "the comparison was interrupted"
"""Reason for a method that did not run, or did not finish."""
ALONE = Instance("problem", "network")
"""The only instance of a comparison without seeds, splits or names."""
Place = tuple[str, str]
"""Names of a problem and a network."""


def compare(
    problem: Any,
    network: Any = None,
    methods: Sequence[Any] | str | None = None,
    parameters: str | dict[str, Any] = "auto",
    oracle: Any = "auto",
    rounds: int = 1000,
    tol: float | None = None,
    record_every: int = 1,
    *,
    rtol: float | None = None,
    seeds: Any = None,
    splits: Any = None,
    networks: Any = None,
    dtype: str = "float64",
    batch: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> "Comparison":
    """Run several methods on the same problem and network, each as `adom.solve` does; also over seeds.

    Everything is checked before the first method runs. Ctrl-C ends the comparison and returns the runs so far.

    Parameters
    ----------
    problem, network
        Problem and network must have the same number of nodes. With `seeds`, each may be a function of the seed. Dicts
        from names to problems or networks compare the methods on every pair.
    methods : sequence, optional
        Names, `Method` instances, or pairs (label, name or instance); or "all". By default `adom.algorithms.COMPARED`.
        With "all" or by default, methods that cannot run on this network are left out; `Comparison.skipped` says why.
    parameters : str or dict
        As in `adom.solve`, for all methods; or a dict from their labels or names to such values, with "auto" for those
        it leaves out. An instance has its own parameters. With `seeds`, "tuned" searches on a separate seed, 1,000,000;
        the compared runs apply the multiples that it finds to their own constants.
    oracle : str, tuple or dict
        As in `adom.solve`, for all dual methods; or a dict from labels or names to such values, with "auto" for those
        it leaves out.
    rounds : int
        The budget of communication rounds of each method.
    tol, record_every, dtype, progress
        As in `adom.solve`.
    rtol : float, optional
        Instead of `tol`: stop at this error relative to the start, which differs from seed to seed.
    seeds : int or list of int, optional
        The number of seeds, counted from 0, or the seeds. A problem or network that is a function is called with each
        seed, a network that `adom.networks` drew is drawn again, and everything else is the same for all seeds. Seeds
        that would change nothing are refused.
    splits : str or list, optional
        Ways to split the samples, such as those of ``adom.data.split``. `problem` is then a function that is called as
        ``problem(seed, split)``. Without `seeds`, the seed is 0.
    networks : dict or list, optional
        Further networks to compare on, or all of them if `network` is left out; each may be a function of the seed.
    batch : int, optional
        Maximum number of seeds that run at the same time, if only the problem depends on the seed. By default 1 on a
        CPU, where more are no faster, and 64 on an accelerator.
    folder : path, optional
        With seeds, splits or networks: every run is saved there as soon as it has finished, and the same call again
        runs only what is missing.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[1.0]], [[2.0]], [[3.0]]], [[1.0], [0.0], [0.0]])
    >>> network = adom.networks.ring(3)
    >>> comparison = adom.compare(problem, network, ["adom", ("bold", "adom")], {"bold": "unit"}, rounds=100)
    >>> comparison.table[["label", "protocol", "status"]].values.tolist()
    [['adom', 'auto', 'max_rounds'], ['bold', 'unit', 'max_rounds']]
    """
    listed = not (methods is None or methods == ALL)
    names = methods if listed else METHODS if methods == ALL else COMPARED
    entries, stop = with_settings(read_methods(names), parameters, oracle), Stop(tol, rtol)
    for entry in entries:
        Request(entry.oracle, rounds, stop, record_every, "local", dtype, progress).oracle_for(entry.cls)
    request = Request("auto", rounds, stop, record_every, "local", dtype, progress)
    several = isinstance(problem, dict) or isinstance(network, dict | list | tuple) or callable(problem)
    if several or callable(network) or any(given is not None for given in (seeds, splits, networks)):
        instances = read_instances(problem, network, seeds, splits, networks)
        if batch is None:  # on a CPU a batch is no faster, and single runs have the bits of `adom.solve`
            batch = 1 if jax.default_backend() == "cpu" else BATCH
        runs = JobRunner(request, folder, check_whole("batch", batch), "compare")
        built, drawn = instances.build()
    elif folder is not None:
        raise InputError(f"folder={folder!r} keeps the runs of several seeds; give seeds, or save the comparison there")
    else:
        check_pair(problem, network)
        instances, runs, built, drawn = None, JobRunner(request), {ALONE: (problem, network)}, {}
    for entry in entries:
        try_own(entry.cls, next(iter(built.values()))[0], dtype)
    jobs: list[Job] = []
    reasons: dict[Any, str] = {}
    for at, pair in built.items():
        some, refused = _jobs(entries, at, *pair, stop, int(rounds), listed=listed)
        jobs += some
        reasons |= {(at, label): reason for label, reason in refused.items()}
    return _compared(jobs, reasons, instances, runs, Comparison({}, tol, {}, rtol, drawn))


def _jobs(
    entries: list[LabelledMethod],
    at: Instance,
    problem: Problem,
    network: Network | DirectedNetwork,
    stop: Stop,
    rounds: int,
    *,
    listed: bool,
) -> tuple[list[Job], dict[str, str]]:
    """Return the runs of all methods on an instance, and by label why the others cannot run there.

    Raise if the caller listed the methods, or if none can run.
    """
    jobs: list[Job] = []
    refused: dict[str, str] = {}
    tol = stop.error(problem)
    for entry in entries:
        cls, own = entry.cls, entry.parameters
        try:
            check_pair(problem, network, cls)
            protocol = own.get("protocol", "theory") if isinstance(own, dict) else own
            method = make_method(problem, network, entry.method, protocol)
            check_budget(method, rounds)
            as_run(method, network, problem.dim)  # refuses what a lossy network cannot carry
            if protocol == AUTO and not entry.is_instance:
                check_findable(cls, network)
        except InputError as error:
            if listed:
                raise
            refused[entry.label] = str(error)
        else:
            method = make_method(problem, network, entry.method, own) if isinstance(own, dict) else method
            oracle = str(parse_oracle(entry.oracle)) if cls.oracle == "dual" else None
            protocol = "given" if entry.is_instance else own
            job = Job(
                label=entry.label,
                cls=cls,
                method=method,
                protocol=protocol,
                oracle=oracle,
                problem=problem,
                network=network,
                at=at,
                tol=tol,
            )
            jobs.append(job)
    if not jobs:
        raise InputError(next(iter(refused.values())))
    return jobs, refused


def _compared(
    jobs: list[Job], reasons: dict[Any, str], instances: Instances | None, runs: JobRunner, asked: "Comparison"
) -> "Comparison":
    """Make the runs; with seeds, search for tuned parameters first, on a seed of their own."""
    seed = None
    if instances is not None and instances.seeds is not None and any(job.protocol == TUNED for job in jobs):
        seed = next(seed for seed in count(TUNING_SEED) if seed not in instances.seeds)
        jobs = runs.tuned(jobs, instances, seed, Stop(asked.tol, asked.rtol))
    found, _ = runs.results(jobs, unfinished=instances is None)
    results: dict[Any, Result] = {(job.at, job.label): found[n] for n, job in enumerate(jobs) if n in found}
    reasons |= {(job.at, job.label): INTERRUPTED for n, job in enumerate(jobs) if n not in found}
    if instances is None:
        results = {label: run for (_, label), run in results.items()}
        reasons = {label: reason for (_, label), reason in reasons.items()}
    return replace(asked, results=results, reasons=reasons, tuning_seed=seed)


@dataclass(frozen=True)
class Comparison:
    """Runs of several methods: on one problem and network, or also over seeds, splits, problems and networks.

    An instance is a problem, a network and a seed, by name.

    Attributes
    ----------
    results : dict
        Label -> `Result`, in the order in which they ran; with seeds, splits, or several problems or networks,
        (instance, label) -> `Result`.
    tol : float, optional
        The error at which the runs stopped, if one was given.
    reasons : dict
        In the same way, label -> why the method did not run.
    rtol : float, optional
        The error at which the runs stopped, relative to the start.
    drawn : dict
        (problem, network) -> what a seed draws: "problem", "network" or both.
    tuning_seed : int, optional
        The seed on which tuned parameters were searched; it is not among those compared.
    """

    results: dict[Any, Result]
    tol: float | None = None
    reasons: dict[Any, str] = field(default_factory=dict)
    rtol: float | None = None
    drawn: dict[Place, list[str]] = field(default_factory=dict)
    tuning_seed: int | None = None

    @property
    def single(self) -> bool:
        """Whether it is on one problem and network, without seeds."""
        return not any(isinstance(key, tuple) for key in (*self.results, *self.reasons))

    def reached(self) -> "Comparison":
        """Return the same runs, compared at an error that one of them reached, if none reached the one asked for."""
        missed = self._table["rounds_to_target"].isna().all()
        return replace(self, tol=None, rtol=None) if missed else self

    @cached_property
    def parts(self) -> "dict[Instance, Comparison]":
        """(problem, network, seed) -> the comparison on that instance alone."""
        if self.single:
            return {ALONE: self}
        found: dict[Instance, Comparison] = {}
        for at, _ in (*self.results, *self.reasons):
            found.setdefault(at, replace(self, results={}, reasons={}))
        for (at, label), run in self.results.items():
            found[at].results[label] = run
        for (at, label), reason in self.reasons.items():
            found[at].reasons[label] = reason
        return found

    @cached_property
    def _runs(self) -> dict[tuple[Instance, str], Result]:
        return {(at, label): run for at, part in self.parts.items() for label, run in part.results.items()}

    @property
    def interrupted(self) -> bool:
        """Whether the comparison was ended by Ctrl-C."""
        return self.left > 0 or any(result.status == "interrupted" for result in self.results.values())

    @property
    def left(self) -> int:
        """The number of runs that were not made because the comparison was interrupted."""
        return sum(reason == INTERRUPTED for reason in self.reasons.values())

    @property
    def skipped(self) -> dict[str, str]:
        """Label -> first reason, for the methods that cannot run on some instance."""
        if self.single:
            return self.reasons
        reasons: dict[str, str] = {}
        for (_, label), why in self.reasons.items():
            if why != INTERRUPTED:
                reasons.setdefault(label, why)
        return reasons

    @property
    def outside(self) -> str:
        """Conditions of the methods' proofs that some networks do not meet, in words; "" if there are none."""
        reasons: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
        for (at, label), run in self._runs.items():
            if run.outside:
                methods, networks = reasons.setdefault(run.outside, ({}, {}))
                methods[self.titles[label]] = networks[at.network] = None
        every = {network for _, network in self.places}
        lines = []
        for text, (methods, networks) in reasons.items():
            where = "" if networks.keys() == every else f" (on {', '.join(networks)})"
            lines.append(f"{', '.join(methods)}: {text}{where}")
        return "; ".join(lines)

    @property
    def places(self) -> list[Place]:
        """The problems and networks, by name."""
        return list(dict.fromkeys((at.problem, at.network) for at in self.parts))

    @property
    def seeds(self) -> list[int | None]:
        """The seeds on which the methods are compared."""
        return list(dict.fromkeys(at.seed for at in self.judged))

    @cached_property
    def judged(self) -> list[Instance]:
        """The instances on which the methods are compared: after Ctrl-C, those that all methods finished, if any.

        Medians over different seeds would not be comparable.
        """
        return [at for at, part in self.parts.items() if not part.interrupted] or list(self.parts)

    def runs(self, problem: str | None = None, network: str | None = None) -> dict[str, list[Result]]:
        """Return the runs of all seeds by method, on one problem and network; by default on the only pair."""
        return self._runs_at(self._place(problem, network), list(self.parts))

    def _runs_at(self, place: Place, instances: Sequence[Instance]) -> dict[str, list[Result]]:
        """Return the runs by method, on one problem and network, of some instances."""
        found: dict[str, list[Result]] = {}
        for at in instances:
            if (at.problem, at.network) == place:
                for label, run in self.parts[at].results.items():
                    found.setdefault(label, []).append(run)
        return found

    @cached_property
    def titles(self) -> dict[str, str]:
        """Label -> the name of the method in figures and tables."""
        return {label: title(label, run) for (_, label), run in self._runs.items()}

    def _place(self, problem: str | None, network: str | None) -> Place:
        fits = [place for place in self.places if problem in (None, place[0]) and network in (None, place[1])]
        if len(fits) != 1:
            known = "; ".join(f"{name!r} on {on!r}" for name, on in self.places)
            raise InputError(
                f"problem={problem!r} and network={network!r} must fit one comparison, but fit {len(fits)}; "
                f"known: {known}"
            )
        return fits[0]

    @property
    def target(self) -> float:
        """The relative error by which the methods are compared; see `targets` for several problems or networks."""
        return self.targets[self._place(None, None)]

    @cached_property
    def targets(self) -> dict[Place, float]:
        """(problem, network) -> the relative error by which the methods are compared there.

        It is the error at which runs stop. Without one, it is the smallest power of ten, not below the floor of
        rounding, that at least one method reached on every seed, or 0.1 if none did. Seeds whose start is the solution
        do not count.
        """
        found = {}
        for place in self.places:
            runs = self._runs_at(place, self.judged)
            if self.rtol is not None:
                found[place] = self.rtol
            elif self.tol is not None:
                starts = [relative(self.tol, run) for many in runs.values() for run in many if start_error(run)]
                found[place] = float(np.median(starts)) if starts else np.nan
            else:
                found[place] = smallest_target(runs.values())
        return found

    @cached_property
    def table(self) -> "pd.DataFrame":
        """One row per run: its method, what it ran on, how, its total costs, and its costs to reach the target.

        The columns are label or, with seeds, splits or several networks, method (its label), seed, problem and network;
        then oracle, protocol, status; rounds and all other costs in `Result.history`; error, target; the costs of the
        first record at the target, from seconds_to_target to rounds_to_target, NaN if there is none, and 0 if the start
        is at the target or is the solution; and relative_error, the last error divided by the one at the start.
        `adom.study.profiles` has functions for such tables.
        """
        whole = self._table
        return whole.rename(columns={"method": "label"}).drop(columns=[*ALONE._fields]) if self.single else whole

    @cached_property
    def _table(self) -> "pd.DataFrame":
        import pandas as pd

        rows = []
        for (at, label), run in self._runs.items():
            about: dict[str, Any] = {"method": label, "seed": at.seed, "problem": at.problem, "network": at.network}
            about |= {"oracle": run.provenance.get("oracle"), "protocol": run.protocol}
            tol = self.tol if self.rtol is None else run.provenance["tol"]
            rows.append(about | metrics(run, tol, self.targets[at.problem, at.network]))
        return pd.DataFrame(rows)

    @property
    def _judged_table(self) -> "pd.DataFrame":
        """The rows of the table on which the methods are compared."""
        judged = set(self.judged)
        return self._table[[at in judged for at, _ in self._runs]]

    @cached_property
    def summary(self) -> "pd.DataFrame":
        """One row for each problem, network and method: medians over seeds.

        The columns are problem, network, method, protocol, status (the most common), seeds (the number of runs),
        reached (how many reached the target), and lost (how many diverged or were growing). ``rounds``,
        ``rounds_low`` and ``rounds_high`` are the median, minimum and maximum of the rounds to the target, infinite
        for a run that did not reach it; so for every cost. ``error``, ``error_low`` and ``error_high`` are those of the
        last relative errors. After Ctrl-C, only seeds that all methods finished count, if there are any, here and in
        ranks, profiles and figures.
        """
        judged, names = self._judged_table, ["problem", "network", "method"]
        over = judged.groupby(names, sort=False)
        errors = judged.assign(error=judged["relative_error"].fillna(np.inf)).groupby(names, sort=False)["error"]
        found = medians(judged, names).rename(columns=lambda name: name.replace("_to_target", ""))
        found = found.assign(error=errors.median(), error_low=errors.min(), error_high=errors.max())
        found.insert(0, "status", over["status"].agg(lambda statuses: statuses.mode().iloc[0]))
        found.insert(0, "protocol", over["protocol"].first())
        return found.reset_index()

    def ranks(self, cost: str = "rounds") -> "pd.DataFrame":
        """Return how the methods rank over all instances, best first; see `adom.study.profiles.rank_table`.

        Parameters
        ----------
        cost : str
            "rounds" or another cost to the target.
        """
        return rank_table(self._judged_table, metric_of(cost).to_target)

    def profile(self, cost: str = "rounds") -> "pd.DataFrame":
        """Return the performance profile over all instances; see `adom.study.profiles.performance_profile`."""
        return performance_profile(self._judged_table, metric_of(cost).to_target)

    def plot(
        self,
        axis: str | None = "round",
        *,
        problem: str | None = None,
        network: str | None = None,
        ax: "Axes | None" = None,
        style: str | None = None,
    ) -> "Figure":
        """Draw the methods' errors; with seeds the medians over them, with bands from minimum to maximum.

        A run that has ended keeps its last value, so every median is over all seeds. The curve of a method that
        diverged or was growing on most seeds ends in a cross.

        Parameters
        ----------
        axis : str
            Horizontal axis: "round" or another cost in `Result.history`; "all" for a panel of each.
        problem, network : str, optional
            Names of those to draw; by default all, with a panel for each pair.
        ax : matplotlib axes, optional
            Axes to draw into, for one problem and network; by default a new figure.
        style : str, optional
            "column", "page" or "slide": width and text size; see `adom.styles`.
        """
        if self.single:
            from ..plot.curves import convergence

            runs, labels = list(self.results.values()), list(self.titles.values())
            return convergence(runs, axis=axis, consensus=False, labels=labels, ax=ax, style=style)
        from ..plot.medians import median_figure

        places = self.places
        if ax is not None or problem is not None or network is not None:
            places = [self._place(problem, network)]
        panels = {
            place: {self.titles[label]: runs for label, runs in self._runs_at(place, self.judged).items()}
            for place in places
        }
        return median_figure(panels, axis=axis or "all", ax=ax, style=style)

    def plot_profile(self, cost: str = "rounds", *, ax: "Axes | None" = None, style: str | None = None) -> "Figure":
        """Draw the performance profile of all instances; see `profile`."""
        from ..plot.medians import profile_figure

        return profile_figure(
            self.profile(cost).rename(columns=self.titles), cost=metric_of(cost).words, ax=ax, style=style
        )

    def to_latex(
        self, cost: str = "rounds", *, ranks: bool = False, caption: str | None = None, label: str = ""
    ) -> str:
        r"""Return the medians, or the ranks over all instances, as a LaTeX table with the best in bold.

        Without seeds the table has all costs. With them, up to four pairs of problem and network have a block each,
        with one row per method; more pairs have one row each, with one column per method. The document
        needs ``\usepackage{booktabs}`` and nothing else.

        Parameters
        ----------
        cost : str
            "rounds" or another cost to the target.
        ranks : bool
            Whether to return ranks over all problems, networks and seeds instead of medians.
        caption : str, optional
            Caption in LaTeX, "" for none; by default it says what the table shows.
        label : str
            Label for references to the table.
        """
        from .comparison_text import as_latex

        return as_latex(self, cost, ranks, caption, label)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the table, the figures and every run into a folder, which `adom report` reads; return the folder.

        Without seeds the files are table.csv, comparison.png and one .npz file per method. With seeds, runs are in
        members/, each named in the table's last column, and there are summary.csv, table.tex and, with several
        instances, profile.png. Files of an earlier `save` are removed; all others stay, including runs that
        ``compare(folder=)`` saved.
        """
        from ..plot.style import save

        target = Path(folder)
        texts = {key: key if self.single else " ".join(map(str, (key[1], *key[0]))) for key in self.results}
        names, figures = file_names(texts.values()), {"comparison.png": self.plot("all" if self.single else "round")}
        if len(self.parts) > 1:
            figures["profile.png"] = self.plot_profile()
        with replaced(target) as written:
            for key, run in self.results.items():
                if self.single:
                    written.append(run.save(target / names[texts[key]]))
                else:
                    kept = target / MEMBERS / f"{run.provenance['compare']['key']}.npz"
                    written.append(kept if kept.exists() else run.save(target / MEMBERS / names[texts[key]]))
            if self.single:
                tables = {"table.csv": self.table}
            else:
                runs = self.table.assign(**{FILE: [path.name for path in written]})
                tables = {"table.csv": runs, "summary.csv": self.summary}
                with atomic(target / "table.tex") as partial:
                    partial.write_text(self.to_latex() + "\n", encoding="utf-8")
                written.append(target / "table.tex")
            for name, table in tables.items():
                with atomic(target / name) as partial:
                    table.to_csv(partial, index=False)
            for name, figure in figures.items():
                save(figure, target / name)
            written += [target / name for name in (*tables, *figures)]
        return target

    @property
    def aim(self) -> str:
        """The target in words."""
        return aim(self.target, bool(self.table["rounds_to_target"].notna().any()))

    @property
    def weighting(self) -> str:
        """How the samples are weighted, in words; "" if they all count alike."""
        return next((result.weighting for result in self.results.values()), "")

    def __str__(self) -> str:
        from .comparison_text import as_text

        return as_text(self)

    def __repr__(self) -> str:
        from .comparison_text import in_short

        return in_short(self)

    def _repr_html_(self) -> str:
        from .comparison_text import as_html

        return as_html(self)


Comparisons = Comparison
"""The name of a comparison over seeds, splits or several networks."""
