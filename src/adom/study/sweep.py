"""`sweep`: run many settings in batches that share the data, and resume after an interruption."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..run.recorder import recorded_chi
from ..run.request import Request, Stop
from ..run.result import Result
from ..util.cards import card, grid
from ..util.checks import check_whole
from ..util.columns import TO_TARGET, metric_of
from ..util.files import atomic
from .expand import SweepMember, SweepSpec, expand
from .jobs import JobRunner
from .metrics import metrics, relative, smallest_target
from .over_seeds import ranked
from .saved import FILE, MEMBERS, replaced

if TYPE_CHECKING:
    import pandas as pd

    from ..plot.display import Figure

SHOWN = 5
"""Number of settings that a notebook shows."""


def sweep(
    problem: Any,
    network: Any,
    methods: Any = "adom",
    parameters: Any = "unit",
    *,
    grid: Any = None,
    factors: Any = None,
    assume: Any = None,
    settings: Any = None,
    oracles: Any = "auto",
    kappas: Any = None,
    seeds: Any = None,
    rounds: int = 1000,
    tol: float | None = None,
    rtol: float | None = None,
    record_every: int = 1,
    dtype: str = "float64",
    batch: int = 64,
    folder: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> "Sweep":
    """Run every combination of the settings given in lists, many at a time.

    Each member gets the result that `adom.solve` would give it. A member that diverges does not disturb the others. A
    member whose parameters are refused by the method's own rules is left out and listed in `Sweep.refused`. Everything
    else is checked before the first member runs. Ctrl-C ends the sweep and returns the members finished so far.

    Parameters
    ----------
    problem : Problem or function
        A function is called with each seed and returns the problem for it.
    network : Network, function, or list of them
        A function is called in the same way.
    methods : str, Method or list
        Names, `Method` instances, or pairs (label, name or instance).
    parameters : str, dict or list
        The base: "theory", "unit" or a dict as in `adom.solve`, or a dict from methods to such values. A list of bases
        runs all of them. An instance is its own base.
    grid : dict, optional
        Parameter -> values that replace the base's: ``{"eta": [0.1, 0.2], "tau": [0.01, 0.02]}`` is four combinations.
        It applies to those methods that have the parameter. ``{"adom": {...}, "mudag": {...}}`` gives each method its
        own.
    factors : dict, optional
        In the same way, parameter -> multiples of the base's value.
    assume : dict, optional
        "mu", "L" or "chi" -> multiples of the true constant from which to compute the base. They apply to all methods,
        whatever their parameters are called.
    settings : list of dict, optional
        Explicit combinations, each a dict of values that replace the base's.
    oracles : str, tuple or list
        Dual oracles as in `adom.solve`, for dual methods.
    kappas : list of float, optional
        The same data with the regulariser that gives each condition number.
    seeds : int or list of int, optional
        The number of seeds, counted from 0, or the seeds; every setting runs with each. A seed redraws networks that
        adom drew, and is passed to functions. Give a function of the seed if the problem should change too.
    rounds, tol, record_every, dtype
        As in `adom.solve`, for every member.
    rtol : float, optional
        Instead of `tol`: stop at this error relative to the start, which differs from kappa to kappa.
    batch : int
        Maximum number of members that run at the same time.
    folder : path, optional
        Every member is saved there as soon as it has finished; members found there are not run again. A loss or method
        of your own counts as the same if it computes the same; one for which this cannot be decided is refused.
    progress : bool, optional
        Show members done: True a bar, False nothing; by default a bar on a terminal, and a line now and then elsewhere.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[1.0]], [[2.0]], [[3.0]]], [[1.0], [0.0], [0.0]])
    >>> network = adom.networks.ring(3)
    >>> sweep = adom.sweep(problem, network, factors={"eta": [0.5, 1, 50]}, rounds=300, tol=1e-9)
    >>> sweep.table[["factor_eta", "status"]].values.tolist()
    [[0.5, 'converged'], [1.0, 'converged'], [50.0, 'diverged']]
    >>> sweep.best()["factor_eta"].tolist()
    [1.0]
    """
    stop = Stop(tol, rtol)
    request = Request("auto", rounds, stop, record_every, "local", dtype, progress)
    check_whole("batch", batch)
    spec = SweepSpec(methods, parameters, grid, factors, assume, settings, oracles, kappas, seeds)
    members = expand(problem, network, spec, rounds, stop)
    runnable = [member for member in members if not member.refused]
    if not runnable:
        raise InputError(members[0].refused)
    found, interrupted = JobRunner(request, folder, batch, "sweep").results(runnable, "members")
    results = {runnable[number].number: found[number] for number in sorted(found)}
    return Sweep(tuple(members), results, {member.number: member.tol for member in members}, interrupted)


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep.

    Attributes
    ----------
    members : tuple of SweepMember
        All members, in order.
    results : dict
        Number of a member -> `Result`, for those that finished.
    tols : dict
        Number of a member -> the error to stop at, or None.
    interrupted : bool
        Whether it was ended by Ctrl-C.
    """

    members: tuple[SweepMember, ...]
    results: dict[int, Result]
    tols: dict[int, float | None]
    interrupted: bool = False

    @property
    def refused(self) -> dict[int, str]:
        """Number of a member -> why it could not run."""
        return {member.number: member.refused for member in self.members if member.refused}

    def reached(self) -> "Sweep":
        """Return the same runs, compared at an error that one setting reached, if none reached the one asked for."""
        missed = self.table["rounds_to_target"].isna().all()
        return replace(self, tols=dict.fromkeys(self.tols)) if missed else self

    @cached_property
    def table(self) -> "pd.DataFrame":
        """One row per member: its settings, how it ended, its costs, and its costs to reach the target.

        The columns are member, method, label, protocol (the base), oracle, kappa, chi, network (its index) and seed;
        every hyper-parameter by its name; ``factor_...`` and ``assume_...`` for factors; then status ("refused" and
        "interrupted" for members without a result), rounds and all other costs in `Result.history`, error,
        relative_error, target, and the costs of the first record at the target, such as rounds_to_target. The target
        is the error to stop at, relative to the start; without one it is the smallest power of ten that at least one
        setting reached on every seed.
        """
        import pandas as pd

        shared = self._shared_target if all(tol is None for tol in self.tols.values()) else np.nan
        about = pd.DataFrame([_about(member) for member in self.members])
        settings = pd.DataFrame([_settings(member) for member in self.members], index=about.index)
        rows: list[dict[str, Any]] = []
        for member in self.members:
            result, tol = self.results.get(member.number), self.tols[member.number]
            if result is None:
                rows.append({"status": "refused" if member.refused else "interrupted"})
            else:
                rows.append(metrics(result, tol, shared if tol is None else relative(tol, result)))
        ends = pd.DataFrame(rows, index=about.index)
        clashing = {name: f"parameter_{name}" for name in settings if name in about or name in ends}
        return pd.concat([about, settings.rename(columns=clashing), ends], axis=1)

    @property
    def _shared_target(self) -> float:
        """The smallest power of ten that at least one setting reached on every seed."""
        runs: dict[str, list[Result]] = {}
        for number, result in self.results.items():
            runs.setdefault(_setting(self.members[number]), []).append(result)
        return smallest_target(runs.values())

    @property
    def varied(self) -> list[str]:
        """The columns of the table that were varied, the parameters first."""
        axes: dict[str, None] = {}
        for member in self.members:
            axes |= dict.fromkeys([*member.values, *_factors(member)])
        axes |= dict.fromkeys(("kappa", "oracle", "protocol", "seed", "network", "label"))
        if all(member.kappa is None for member in self.members):
            del axes["kappa"]  # it differs only because seeds draw problems
        counts = self.table[list(axes)].nunique()
        varied = [name for name in axes if counts[name] > 1]
        return [name for name in varied if name != "network" or "seed" not in varied]

    @property
    def axes(self) -> list[str]:
        """The columns besides the label in which settings differ."""
        axes = [name for name in self.varied if name not in ("label", "seed")]
        several = len({member.given for member in self.members}) > 1
        return [*axes, *(["network"] if several and "network" not in axes else [])]

    def best(self, each: str | Sequence[str] | None = None, by: str = "rounds") -> "pd.DataFrame":
        """Return the best setting, or the best for each value of some columns, best first; see `ranking`.

        Parameters
        ----------
        each : str or list of str, optional
            Columns such as "label" or ["label", "kappa"]; with "seed", each seed is judged by itself.
        by : str
            The cost to reach the target: "rounds" or another.
        """
        columns = [each] if isinstance(each, str) else list(each or [])
        for name in columns:
            if name not in self.table:
                raise InputError(f"the table has no column {name!r}; it has {', '.join(self.table.columns)}")
        found = self._ranked(by, columns)
        return found.groupby(columns, dropna=False, sort=False).head(1) if columns else found.head(1)

    def ranking(self, by: str = "rounds") -> "pd.DataFrame":
        """Return one row per setting, best first, with the columns of the table as medians over the seeds.

        The setting with the fewest rounds (or the least cost `by`) to the target comes first. Ties, and settings that
        did not reach it, are ranked by their last error. Settings that diverged or were growing on most seeds come
        last. A seed on which a setting missed the target, diverged, was growing or was refused counts as an infinite
        cost, so a setting has a median cost only if most seeds have one.

        ``seeds`` is the number of seeds of a setting, and ``reached`` the number on which it met the target.
        ``rounds_to_target_low`` and ``rounds_to_target_high`` (likewise for all costs) are the minimum and maximum,
        NaN if the target was missed. ``member`` is the first of its members that ran, and ``seed`` is NaN if there
        were several seeds.
        """
        return self._ranked(by, [])

    def _ranked(self, by: str, apart: list[str]) -> "pd.DataFrame":
        """Return the settings, best first; members that differ in the columns `apart` are not combined."""
        column = metric_of(by.removesuffix("_to_target"), "by").to_target
        keys = [_setting(member) for member in self.members]
        return ranked(self.table, [keys, *(self.table[name] for name in apart)], column)

    def plot(
        self,
        x: str | None = None,
        y: str | None = None,
        value: str = "rounds_to_target",
        *,
        style: str | None = None,
    ) -> "Figure":
        """Draw a cost against one column of the table, or against two columns as a map for each method.

        Parameters
        ----------
        x, y : str, optional
            Columns; by default the first one or two that were varied for all methods, or else the methods themselves.
        value : str
            A column of costs to reach the target. If other columns were varied too, the setting with the best median
            over seeds is shown.
        style : str, optional
            "column", "page" or "slide": width and text size; see `adom.styles`.
        """
        from ..plot.sweeps import sweep_figure

        axes = [name for name in self.varied if name not in {"seed", "network", "label"}]
        common = [name for name in axes if self.table[name].notna().all()]
        numbers = [name for name in common if self.table[name].dtype.kind in "if"]
        if x is None:
            x = next((name for name in [*numbers, *common] if name != y), "label")
            y = y or next((name for name in numbers if name != x and x in numbers), None)
        table = self.table.assign(setting=[_setting(member) for member in self.members])
        return sweep_figure(table, x, y, value, style)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write table.csv, sweep.png and a file for each member in members/; return the folder.

        `adom report` reads the members named in the last column of the table. Members that ``sweep(folder=)`` saved
        there are not written again, and those of other sweeps stay.
        """
        from ..plot.style import save

        target = Path(folder)
        with replaced(target) as written:
            files = {number: f"{run.provenance['sweep']['key']}.npz" for number, run in self.results.items()}
            for number, name in files.items():
                file = target / MEMBERS / name
                written.append(file if file.exists() else self.results[number].save(file))
            with atomic(target / "table.csv") as partial:
                self.table.assign(**{FILE: self.table["member"].map(files)}).to_csv(partial, index=False)
            save(self.plot(), target / "sweep.png")
            written.append(target / "sweep.png")
        return target

    @property
    def _states(self) -> str:
        """Number of members, and how they ended."""
        counts = self.table["status"].value_counts()
        return f"{len(self.members)} members: " + ", ".join(f"{count} {status}" for status, count in counts.items())

    @property
    def _weighting(self) -> str:
        return next((result.weighting for result in self.results.values()), "")

    def _repr_html_(self) -> str:
        if not self.results:
            return card("Sweep", self._states, {})
        settings = self.ranking()
        best = settings.head(SHOWN)
        costs = list(TO_TARGET)
        columns = ["member", "label", *self.axes, "status", *costs]
        rows = grid([name.replace("_", " ") for name in columns], best[columns].to_numpy(dtype=object).tolist())
        reached = int((settings["rounds_to_target"].notna()).sum())
        facts = {
            "varied": ", ".join(self.varied) or "nothing",
            "target reached": f"by {reached}, at a relative error of {best['target'].iloc[0]:.3g}",
            "best by rounds": f"{len(best)} of {len(settings)}",
        }
        facts |= {"weights": self._weighting} if self._weighting else {}
        return card("Sweep", self._states, facts, below=rows)

    def __repr__(self) -> str:
        if not self.results:
            return f"Sweep({self._states})"
        first = self.best().iloc[0]
        rounds = first["rounds_to_target"]
        several = first["seeds"] > 1
        if np.isnan(rounds):
            on = " on most seeds" if several else ""
            took = f"last error {first['relative_error']:.2g}, and none reached {first['target']:.3g}{on}"
        else:
            over = f", the median of {first['seeds']} seeds" if several else ""
            took = f"{rounds:g} rounds to {first['target']:.3g}{over}"
        extra = f"; {self._weighting}" if self._weighting else ""
        return f"Sweep({self._states}; best {self.members[int(first['member'])].text}: {took}{extra})"


def _setting(member: SweepMember) -> str:
    """Return a key that members share if they differ only in the seed; a member without a seed has its own."""
    alone = member.number if member.seed is None else None
    scaled = (member.values, member.factors, member.assume)
    return repr((alone, member.label, member.base, *scaled, member.oracle, member.given, member.kappa))


def _about(member: SweepMember) -> dict[str, Any]:
    """Return the first columns of the table."""
    network = member.network
    return {
        "member": member.number,
        "method": member.cls.name,
        "label": member.label,
        "protocol": member.base,
        "oracle": member.oracle,
        "kappa": member.problem.kappa if member.kappa is None else member.kappa,
        "chi": recorded_chi(network),
        "network": member.drawn,
        "seed": network.recipe.get("seed") if member.seed is None else member.seed,
    }


def _settings(member: SweepMember) -> dict[str, float]:
    """Return a member's hyper-parameters and the factors that led to them."""
    parameters = member.values if member.method is None else member.method.parameters()
    return {name: float(value) for name, value in parameters.items()} | _factors(member)


def _factors(member: SweepMember) -> dict[str, float]:
    scaled = {f"factor_{name}": value for name, value in member.factors.items()}
    return scaled | {f"assume_{name}": value for name, value in member.assume.items()}
