"""Several comparisons: the same methods over seeds, problems and networks."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dynamics.endings import LOST
from ..errors import InputError
from ..run.result import Result
from ..util.columns import METRICS, metric_of
from ..util.files import atomic
from ..util.text import format_count
from .comparison import INTERRUPTED, Comparison, check_axes, title
from .instances import Instance
from .metrics import metrics, relative, smallest_target, start_error
from .profiles import performance_profile, rank_table
from .saved import FILE, MEMBERS, file_names, replaced

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ..plot.display import Figure

Place = tuple[str, str]
"""Names of a problem and a network."""


@dataclass(frozen=True)
class Comparisons:
    """Several methods on several instances: what `adom.compare` returns with seeds, splits or several networks.

    Attributes
    ----------
    parts : dict
        (problem, network, seed) -> `Comparison`.
    drawn : dict
        (problem, network) -> what a seed draws: "problem", "network" or both.
    tol : float, optional
        The error at which the runs stopped.
    rtol : float, optional
        The same, relative to the start.
    tuning_seed : int, optional
        The seed on which tuned parameters were searched; it is not among those compared.
    """

    parts: dict[Instance, Comparison]
    drawn: dict[Place, list[str]]
    tol: float | None = None
    rtol: float | None = None
    tuning_seed: int | None = None

    @property
    def interrupted(self) -> bool:
        """Whether the comparisons were ended by Ctrl-C."""
        return any(part.interrupted for part in self.parts.values())

    @property
    def skipped(self) -> dict[str, str]:
        """Label -> first reason, for the methods that cannot run on some instance."""
        reasons: dict[str, str] = {}
        for part in self.parts.values():
            for label, reason in part.skipped.items():
                if reason != INTERRUPTED:
                    reasons.setdefault(label, reason)
        return reasons

    @property
    def outside(self) -> str:
        """Conditions of the methods' proofs that some networks do not meet, in words; "" if there are none."""
        reasons: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
        for at, part in self.parts.items():
            for text, names in part.unproved.items():
                methods, networks = reasons.setdefault(text, ({}, {}))
                methods.update(dict.fromkeys(names))
                networks[at.network] = None
        every = {network for _, network in self.places}
        lines = []
        for text, (methods, networks) in reasons.items():
            where = "" if networks.keys() == every else f" (on {', '.join(networks)})"
            lines.append(f"{', '.join(methods)}: {text}{where}")
        return "; ".join(lines)

    @property
    def results(self) -> "dict[tuple[Instance, str], Result]":
        """(Instance, label) -> `Result`, of all runs."""
        return {(at, label): run for at, part in self.parts.items() for label, run in part.results.items()}

    @property
    def places(self) -> list[Place]:
        """The problems and networks, by name."""
        return list(dict.fromkeys((at.problem, at.network) for at in self.parts))

    @property
    def seeds(self) -> list[int | None]:
        """The seeds on which the methods are compared."""
        return list(dict.fromkeys(at.seed for at in self._judged))

    @cached_property
    def _judged(self) -> list[Instance]:
        """The instances on which the methods are compared: after Ctrl-C, those that all methods finished, if any.

        Medians over different seeds would not be comparable.
        """
        return [at for at, part in self.parts.items() if not part.interrupted] or list(self.parts)

    def runs(self, problem: str | None = None, network: str | None = None) -> dict[str, list[Result]]:
        """Return the runs of all seeds by method, on one problem and network; by default on the only pair."""
        return self._runs(self._place(problem, network), self.parts)

    def _runs(self, place: Place, instances: Iterable[Instance]) -> dict[str, list[Result]]:
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
        return {label: title(label, run) for (_, label), run in self.results.items()}

    def _place(self, problem: str | None, network: str | None) -> Place:
        fits = [place for place in self.places if problem in (None, place[0]) and network in (None, place[1])]
        if len(fits) != 1:
            known = "; ".join(f"{name!r} on {on!r}" for name, on in self.places)
            raise InputError(
                f"problem={problem!r} and network={network!r} must fit one comparison, but fit {len(fits)}; "
                f"known: {known}"
            )
        return fits[0]

    @cached_property
    def targets(self) -> dict[Place, float]:
        """(problem, network) -> the relative error by which the methods are compared there.

        It is the error at which runs stop. Without one, it is the smallest power of ten, not below the floor of
        rounding, that at least one method reached on every seed, or 0.1 if none did. Seeds whose start is the solution
        do not count.
        """
        found = {}
        for place in self.places:
            runs = self._runs(place, self._judged)
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
        """One row per run: method (its label), seed, problem, network, how it ran, and its costs.

        The other columns are those of `Comparison.table`. `adom.study.profiles` has functions for such tables.
        """
        import pandas as pd

        rows = []
        for (at, label), run in self.results.items():
            about: dict[str, Any] = {"method": label, "seed": at.seed, "problem": at.problem, "network": at.network}
            about |= {"oracle": run.provenance.get("oracle"), "protocol": run.protocol}
            target = self.targets[at.problem, at.network]
            tol = None if self.tol is None and self.rtol is None else run.provenance["tol"]
            rows.append(about | metrics(run, tol, target))
        return pd.DataFrame(rows)

    @property
    def _judged_table(self) -> "pd.DataFrame":
        """The rows of the table on which the methods are compared."""
        judged = set(self._judged)
        return self.table[[at in judged for at, _ in self.results]]

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
        import pandas as pd

        rows = []
        for names, runs in self._judged_table.groupby(["problem", "network", "method"], sort=False):
            lost, errors = runs["status"].isin(LOST), runs["relative_error"].fillna(np.inf).to_numpy(dtype=float)
            row: dict[str, Any] = dict(zip(("method", "problem", "network"), (names[2], *names[:2]), strict=True))
            row |= {"protocol": runs["protocol"].iloc[0], "status": runs["status"].mode().iloc[0]}
            row |= {"seeds": len(runs), "lost": int(lost.sum())}
            row |= {"error_low": errors.min(), "error_high": errors.max()}
            for cost, metric in reversed(METRICS.items()):  # rounds last: printing hides the middle columns
                values = runs[metric.to_target].mask(lost).fillna(np.inf).to_numpy(dtype=float)
                row |= {f"{cost}_low": values.min(), f"{cost}_high": values.max(), cost: float(np.median(values))}
            rows.append({**row, "reached": int(np.isfinite(values).sum()), "error": float(np.median(errors))})
        return pd.DataFrame(rows)

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
        axis: str = "round",
        *,
        problem: str | None = None,
        network: str | None = None,
        ax: "Axes | None" = None,
        style: str | None = None,
    ) -> "Figure":
        """Draw the methods' relative errors: the median over seeds, and a band from minimum to maximum.

        A run that has ended keeps its last value, so every median is over all seeds. The curve of a method that
        diverged or was growing on most seeds ends in a cross.

        Parameters
        ----------
        axis : str
            Horizontal axis: "round" or another cost in `Result.history`; "all" for a panel of each.
        problem, network : str, optional
            Names of those to draw; by default all, with a panel for each pair.
        ax : matplotlib axes, optional
            Axes to draw into, for one problem and network.
        style : str, optional
            "column", "page" or "slide": width and text size; see `adom.styles`.
        """
        from ..plot.medians import median_figure

        check_axes(ax)
        places = self.places
        if ax is not None or problem is not None or network is not None:
            places = [self._place(problem, network)]
        panels = {place: self._named(place) for place in places}
        return median_figure(panels, axis=axis, ax=ax, style=style)

    def _named(self, place: Place) -> dict[str, list[Result]]:
        """Return the runs of all seeds under the methods' names in figures."""
        return {self.titles[label]: runs for label, runs in self._runs(place, self._judged).items()}

    def plot_profile(self, cost: str = "rounds", *, ax: "Axes | None" = None, style: str | None = None) -> "Figure":
        """Draw the performance profile of all instances; see `profile`."""
        from ..plot.medians import profile_figure

        check_axes(ax)
        return profile_figure(
            self.profile(cost).rename(columns=self.titles), cost=metric_of(cost).words, ax=ax, style=style
        )

    def to_latex(
        self, cost: str = "rounds", *, ranks: bool = False, caption: str | None = None, label: str = ""
    ) -> str:
        r"""Return the medians, or the ranks over all instances, as a LaTeX table with the best in bold.

        Up to four pairs of problem and network have a block each, with one row per method. More pairs have one row
        each, with one column per method. The document needs ``\usepackage{booktabs}`` and nothing else.

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
        from .comparisons_text import as_latex

        return as_latex(self, cost, ranks, caption, label)

    def rows_by_place(self, cost: str) -> list[tuple[Place, list[dict[str, Any]]]]:
        """Return the rows of the summary for each problem and network; refuse an unknown cost."""
        metric_of(cost)
        rows: list[dict[str, Any]] = self.summary.to_dict("records")  # type: ignore[assignment]  # columns are named
        by_place: dict[Place, list[dict[str, Any]]] = {}
        for row in rows:
            by_place.setdefault((row["problem"], row["network"]), []).append(row)
        return list(by_place.items())

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the table of all runs, the summary, LaTeX, figures, and every run; return the folder.

        The files are table.csv, summary.csv, table.tex, comparison.png, profile.png (with several instances), and
        members/ with one file per run, named in the table's last column. `adom report` reads the folder. Files of an
        earlier `save` are removed; all others stay, including runs that ``compare(folder=)`` saved.
        """
        from ..plot.style import save

        target = Path(folder)
        names = file_names(" ".join(map(str, (label, *at))) for at, label in self.results)
        with replaced(target) as written:
            for name, run in zip(names.values(), self.results.values(), strict=True):
                kept = target / MEMBERS / f"{run.provenance['compare']['key']}.npz"
                written.append(kept if kept.exists() else run.save(target / MEMBERS / name))
            runs = self.table.assign(**{FILE: [path.name for path in written]})
            for name, table in (("table.csv", runs), ("summary.csv", self.summary)):
                with atomic(target / name) as partial:
                    table.to_csv(partial, index=False)
            with atomic(target / "table.tex") as partial:
                partial.write_text(self.to_latex() + "\n", encoding="utf-8")
            figures = {"comparison.png": self.plot()}
            figures |= {"profile.png": self.plot_profile()} if len(self.parts) > 1 else {}
            for name, figure in figures.items():
                save(figure, target / name)
            written += [target / name for name in ("summary.csv", "table.tex", *figures)]
        return target

    def __str__(self) -> str:
        from .comparisons_text import as_text

        return as_text(self)

    def __repr__(self) -> str:
        from .comparisons_text import unfinished

        size = f"{format_count(len(self.titles), 'method')} on {format_count(len(self._judged), 'instance')}"
        parts = [size, format_count(len(self.seeds), "seed"), unfinished(self)]
        return f"Comparisons({', '.join(filter(None, parts))})"

    def _repr_html_(self) -> str:
        from .comparisons_text import as_html

        return as_html(self)
