"""Several comparisons: the same methods over seeds, problems and networks."""

import os
import textwrap
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..run.endings import LOST
from ..run.result import Result
from ..util.cards import card, grid
from ..util.files import atomic
from ..util.text import format_count, format_short
from .comparison import INTERRUPTED, Comparison, check_axes, title
from .instances import Instance
from .metrics import COSTS, aim, least_error, metrics, relative, smallest_of, start_error
from .profiles import performance_profile, rank_table
from .saved import FILE, MEMBERS, file_names, replaced
from .tables import WIDTH, latex_number, latex_spread, latex_table, latex_text, spread, text_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ..plot.display import Figure

Place = tuple[str, str]
"""Names of a problem and a network."""
MOST_ACROSS = 4
"""Networks whose panels fit side by side."""


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
        The seed on which tuned parameters were searched, which is none of those that are judged.
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
        """Label -> reason, for the methods that cannot run on some instance; the first reason."""
        reasons: dict[str, str] = {}
        for part in self.parts.values():
            for label, reason in part.skipped.items():
                if reason != INTERRUPTED:
                    reasons.setdefault(label, reason)
        return reasons

    @property
    def outside(self) -> str:
        """What proofs ask of the networks and some of these lack, in words; "" where nothing is lacking."""
        return "; ".join(dict.fromkeys(part.outside for part in self.parts.values() if part.outside))

    @property
    def results(self) -> "dict[tuple[Instance, str], Result]":
        """(Instance, label) -> `Result`, of all runs."""
        return {(at, label): run for at, part in self.parts.items() for label, run in part.results.items()}

    @property
    def places(self) -> list[Place]:
        """The problems and networks, by name."""
        return list(dict.fromkeys((at.problem, at.network) for at in self.parts))

    def runs(self, problem: str | None = None, network: str | None = None) -> dict[str, list[Result]]:
        """Return the runs of all seeds by method, on one problem and network; by default on the only ones."""
        place = self._place(problem, network)
        found: dict[str, list[Result]] = {}
        for at, part in self.parts.items():
            if (at.problem, at.network) == place:
                for label, run in part.results.items():
                    found.setdefault(label, []).append(run)
        return found

    @cached_property
    def _titles(self) -> dict[str, str]:
        """The names of the methods in figures and tables, by label."""
        return {label: title(label, run) for (_, label), run in self.results.items()}

    def _place(self, problem: str | None, network: str | None) -> Place:
        fits = [place for place in self.places if problem in (None, place[0]) and network in (None, place[1])]
        if len(fits) != 1:
            known = "; ".join(f"{name!r} on {on!r}" for name, on in self.places)
            raise InputError(
                f"problem={problem!r} and network={network!r} name {len(fits)} of the comparisons; there are {known}"
            )
        return fits[0]

    @cached_property
    def targets(self) -> dict[Place, float]:
        """(problem, network) -> the relative error by which the methods are compared there.

        It is that at which runs stop; without one, the smallest power of ten that one method at least reached on every
        seed, and 0.1 where none did. Seeds whose start is the solution do not count.
        """
        found = {}
        for place in self.places:
            runs = [[run for run in many if start_error(run)] for many in self.runs(*place).values()]
            if self.rtol is not None:
                found[place] = self.rtol
            elif self.tol is not None:
                starts = [relative(self.tol, run) for many in runs for run in many]
                found[place] = float(np.median(starts)) if starts else np.nan
            else:
                found[place] = smallest_of(max(map(least_error, many)) for many in runs if many)
        return found

    @cached_property
    def table(self) -> "pd.DataFrame":
        """One row a run: problem, network, seed, method (its label), how it ran, and its costs.

        The other columns are those of `Comparison.table`. `adom.study.profiles` has functions on such tables.
        """
        import pandas as pd

        rows = []
        for (at, label), run in self.results.items():
            about: dict[str, Any] = {**at._asdict(), "method": label}
            about |= {"oracle": run.provenance.get("oracle"), "protocol": run.protocol}
            target = self.targets[at.problem, at.network]
            tol = None if self.tol is None and self.rtol is None else run.provenance["tol"]
            rows.append(about | metrics(run, tol, target))
        return pd.DataFrame(rows)

    @cached_property
    def summary(self) -> "pd.DataFrame":
        """One row for each problem, network and method: medians over seeds.

        The columns are problem, network, method, protocol, reached and seeds (how many reached the target, and of how
        many), lost (how many diverged or were growing), for every cost to the target its median, and the least and the
        greatest as ``rounds_low`` and ``rounds_high``, infinite where a run did not reach it; and the median of the
        last relative errors, with its least and greatest.
        """
        import pandas as pd

        keys = ["problem", "network", "method"]
        rows = []
        for names, runs in self.table.groupby(keys, sort=False):
            lost = runs["status"].isin(LOST)
            row: dict[str, Any] = {**dict(zip(keys, names, strict=True)), "protocol": runs["protocol"].iloc[0]}
            for cost in COSTS:
                values = runs[f"{cost}_to_target"].mask(lost).fillna(np.inf).to_numpy(dtype=float)
                row |= {cost: float(np.median(values)), f"{cost}_low": values.min(), f"{cost}_high": values.max()}
                row |= {"reached": int(np.isfinite(values).sum()), "seeds": len(values), "lost": int(lost.sum())}
            errors = runs["relative_error"].fillna(np.inf).to_numpy(dtype=float)
            row |= {"error": float(np.median(errors)), "error_low": errors.min(), "error_high": errors.max()}
            rows.append(row)
        return pd.DataFrame(rows)

    @cached_property
    def _ranked(self) -> "pd.DataFrame":
        """The rows of the table by which methods are ranked: of instances on which all are done, if there are any."""
        done = self.table[[not self.parts[at].interrupted for at, _ in self.results]]
        return self.table if done.empty else done

    def ranks(self, cost: str = "rounds") -> "pd.DataFrame":
        """Return how the methods rank over all instances, best first; see `adom.study.profiles.rank_table`.

        After Ctrl-C, over those on which all methods are done; so do profiles.

        Parameters
        ----------
        cost : str
            "rounds", "gradients", "floats_sent" or "seconds" to the target.
        """
        return rank_table(self._ranked, _column(cost))

    def profile(self, cost: str = "rounds") -> "pd.DataFrame":
        """Return the performance profile over all instances; see `adom.study.profiles.performance_profile`."""
        return performance_profile(self._ranked, _column(cost))

    def plot(
        self,
        axis: str = "round",
        *,
        problem: str | None = None,
        network: str | None = None,
        ax: "Axes | None" = None,
        style: str | None = None,
    ) -> "Figure":
        """Draw the methods' relative errors: the median over seeds, and a band from the least to the greatest.

        A run that has ended keeps its last value, so the median of five seeds stays one of five. A method that
        diverged or was growing on most seeds ends in a cross.

        Parameters
        ----------
        axis : str
            Horizontal axis: "round", "gradients" (per node), "floats_sent" or "seconds".
        problem, network : str, optional
            Names of those to draw; by default all, in a panel each.
        ax : matplotlib axes, optional
            To draw into; then one problem and network are drawn.
        style : str, optional
            "column", "page" or "slide": width and text size; see `adom.styles`.
        """
        from ..plot.medians import ACROSS, median_figure

        check_axes(ax)
        if ax is not None or problem is not None or network is not None:
            place = self._place(problem, network)
            panels = {"": self._named(place)}
        else:
            alone = len(self.places) == 1
            panels = {"" if alone else " on ".join(place): self._named(place) for place in self.places}
        networks = len({place[1] for place in self.places})  # one row of panels for each problem
        across = networks if 1 < networks <= MOST_ACROSS else ACROSS
        return median_figure(panels, axis=axis, across=across, ax=ax, style=style)

    def _named(self, place: Place) -> dict[str, list[Result]]:
        """Return the runs of all seeds under the methods' names in figures."""
        return {self._titles[label]: runs for label, runs in self.runs(*place).items()}

    def plot_profile(self, cost: str = "rounds", *, ax: "Axes | None" = None, style: str | None = None) -> "Figure":
        """Draw the performance profile of all instances; see `profile`."""
        from ..plot.profiles import profile_figure

        check_axes(ax)
        return profile_figure(
            self.profile(cost).rename(columns=self._titles), cost=cost.replace("_", " "), ax=ax, style=style
        )

    def to_latex(
        self, cost: str = "rounds", *, ranks: bool = False, caption: str | None = None, label: str = ""
    ) -> str:
        r"""Return the medians, or the ranks over all instances, as a table in LaTeX; the best in bold.

        The document needs ``\usepackage{booktabs}`` and nothing else.

        Parameters
        ----------
        cost : str
            "rounds", "gradients", "floats_sent" or "seconds" to the target.
        ranks : bool
            Ranks over all problems, networks and seeds, instead of the medians on each.
        caption : str, optional
            LaTeX; by default what the table shows, and "" for none.
        label : str
            To refer to it.
        """
        words = latex_text(cost.replace("_", " "))
        if ranks:
            usual, (heads, ranked) = f"Ranks by {words} over {self._instances}.", self._rank_rows(cost)
            cells = [
                [latex_text(name), *("--" if n == "-" else f"${n}$" for n in numbers)] for name, *numbers in ranked
            ]
            heads = [latex_text(head) for head in heads]
            return latex_table(heads, [("", cells)], usual if caption is None else caption, label)
        blocks = []
        for place, rows in self._rows_by_place(cost):
            best = min((row[cost] for row in rows), default=np.inf)
            lines = []
            for row in rows:
                middle = latex_spread(row[cost], row[f"{cost}_low"], row[f"{cost}_high"], bold=row[cost] == best)
                reached, error = f"${row['reached']}/{row['seeds']}$", latex_number(row["error"])
                lines.append([latex_text(self._titles[row["method"]]), middle, reached, error])
            blocks.append(("" if len(self.places) == 1 else latex_text(" on ".join(place)), lines))
        targets = set(self.targets.values())
        target = latex_number(targets.pop()) if len(targets) == 1 else "the target"
        usual = f"{words.capitalize()} to a relative error of {target}: median [least, greatest] over {self._seeds}."
        heads = ["method", f"{words} to the target", "reached", "last error"]
        return latex_table(heads, blocks, usual if caption is None else caption, label)

    def _rows_by_place(self, cost: str = "rounds") -> list[tuple[Place, list[dict[str, Any]]]]:
        """Return the rows of the summary for each problem and network."""
        _column(cost)
        rows: list[dict[str, Any]] = self.summary.to_dict("records")  # type: ignore[assignment]  # columns are named
        by_place: dict[Place, list[dict[str, Any]]] = {}
        for row in rows:
            by_place.setdefault((row["problem"], row["network"]), []).append(row)
        return list(by_place.items())

    def _rank_rows(self, cost: str = "rounds") -> tuple[list[str], list[list[str]]]:
        """Return the heads and the rows of the table of ranks."""
        rows = []
        for row in self.ranks(cost).to_dict("records"):
            ranked = [f"{row['mean_rank']:.2f}", f"{row['first']}", f"{row['reached']}/{row['instances']}"]
            rows.append([self._titles[row["method"]], *ranked, format_short(row["over_best"])])
        return ["method", "mean rank", "first", "reached", f"{cost.replace('_', ' ')} over the best's"], rows

    @property
    def _instances(self) -> str:
        """How many instances the methods are ranked over."""
        return format_count(int(self.ranks()["instances"].iloc[0]), "instance")

    @property
    def _seeds(self) -> str:
        return format_count(len({at.seed for at in self.parts}), "seed")

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the table of all runs, the summary, LaTeX, figures, and every run; return the folder.

        The files are table.csv, summary.csv, table.tex, comparison.png, with several instances profile.png, and
        members/ with a file for each run, which the table's last column names. `adom report` reads the folder. What an
        earlier `save` wrote there goes; all else stays, runs that ``compare(folder=)`` keeps among it.
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
        parts = [self._about, *(self._text(*part) for part in self._rows_by_place())]
        if len(self.places) > 1:
            parts.append(f"all {self._instances}\n{text_table(*self._rank_rows())}")
        return "\n\n".join(parts)

    @property
    def _about(self) -> str:
        kinds = {kind: None for kinds in self.drawn.values() for kind in kinds}
        parts = [self._seeds + (f", which draw the {' and the '.join(kinds)}" if kinds else "")]
        if self.tuning_seed is not None:
            parts.append(f"tuned on seed {self.tuning_seed}, which is not among them")
        parts.append("medians, and [least, greatest] rounds")
        parts += [textwrap.fill(f"outside of their proofs: {self.outside}", WIDTH)] if self.outside else []
        if self.interrupted:
            left = sum(reason == INTERRUPTED for part in self.parts.values() for reason in part.skipped.values())
            done = len(self.results)
            parts.append(f"interrupted: {done} of {format_count(done + left, 'run')} are done")
        parts += [textwrap.fill(f"{label} did not run: {reason}", WIDTH) for label, reason in self.skipped.items()]
        return "\n".join(parts)

    def _text(self, place: Place, rows: list[dict[str, Any]]) -> str:
        """Return the medians on one problem and network, as text."""
        reached = any(row["reached"] for row in rows)
        heads = ["method", "rounds", "reached", "gradients", "numbers", "seconds", "last error"]
        heading = textwrap.fill(f"{' on '.join(place)}, to {aim(self.targets[place], reached)}", WIDTH)
        return f"{heading}\n{text_table(heads, self._cells(rows))}"

    def _cells(self, rows: list[dict[str, Any]]) -> list[list[str]]:
        """Return the medians of methods as the cells of a table."""
        cells = []
        for row in rows:
            rounds = spread(row["rounds"], row["rounds_low"], row["rounds_high"])
            costs = [format_short(row[cost]) for cost in COSTS if cost != "rounds"]
            reached = f"{row['reached']}/{row['seeds']}"
            cells.append([self._titles[row["method"]], rounds, reached, *costs, format_short(row["error"])])
        return cells

    def __repr__(self) -> str:
        methods = format_count(len(self._titles), "method")
        return f"Comparisons({methods} on {format_count(len(self.parts), 'instance')}, {self._seeds})"

    def _repr_html_(self) -> str:
        heads = ["rounds", "reached", "gradients", "floats sent", "seconds", "last error"]
        tables = [grid([" on ".join(place), *heads], self._cells(rows)) for place, rows in self._rows_by_place()]
        return card("Comparisons", self._about, {}, below="".join(tables))


def _column(cost: str) -> str:
    if cost not in COSTS:
        raise InputError(f"cost must be one of {', '.join(COSTS)}, got {cost!r}")
    return f"{cost}_to_target"
