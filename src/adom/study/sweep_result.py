"""The result of a sweep: its members' results, a table of them, a ranking, a figure."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..run.endings import LOST
from ..run.provenance import recorded_chi
from ..run.result import Result
from ..util.cards import card, grid
from ..util.files import atomic
from .members import Member
from .metrics import COSTS, metrics, relative, smallest_target

if TYPE_CHECKING:
    import pandas as pd

    from ..plot.display import Figure

SHOWN = 5
"""Members that a notebook shows."""


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep.

    Attributes
    ----------
    members : tuple of Member
        All members, in order.
    results : dict
        Number of a member -> `Result`, for those that finished.
    tols : dict
        Number of a member -> the error to stop at, or None.
    interrupted : bool
        Whether it was ended by Ctrl-C.
    """

    members: tuple[Member, ...]
    results: dict[int, Result]
    tols: dict[int, float | None]
    interrupted: bool = False

    @property
    def refused(self) -> dict[int, str]:
        """Number of a member -> why it could not run."""
        return {member.number: member.refused for member in self.members if member.refused}

    @cached_property
    def table(self) -> "pd.DataFrame":
        """One row per member: its settings, how it ended, its costs, and its costs to reach the target.

        The columns are member, method, label, protocol (the base), oracle, kappa, chi, network (its index) and seed;
        every hyper-parameter by its name; ``factor_...`` and ``assume_...`` for factors; then status ("refused" and
        "interrupted" for members without a result), rounds, gradients (per node), floats_sent, seconds, error,
        relative_error, target, and rounds_to_target, gradients_to_target, floats_sent_to_target, seconds_to_target:
        those of the first record at the target. The target is the error to stop at, over that at the start; without
        one it is the smallest power of ten that at least one member reached.
        """
        import pandas as pd

        shared = np.nan
        if all(tol is None for tol in self.tols.values()):
            shared = smallest_target(self.results.values())
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
    def varied(self) -> list[str]:
        """The columns of the table that were varied, the parameters first."""
        axes: dict[str, None] = {}
        for member in self.members:
            axes |= dict.fromkeys([*member.values, *_factors(member)])
        axes |= dict.fromkeys(("kappa", "oracle", "protocol", "seed", "network", "label"))
        if all(member.kappa is None for member in self.members):
            del axes["kappa"]  # of problems that seeds draw
        counts = self.table[list(axes)].nunique()
        varied = [name for name in axes if counts[name] > 1]
        return [name for name in varied if name != "network" or "seed" not in varied]

    def best(self, each: str | Sequence[str] | None = None, by: str = "rounds_to_target") -> "pd.DataFrame":
        """Return the best row, or the best for each value of some columns, best first.

        Fewest rounds (or the cost `by`) to the target come first; ties, and members that did not reach it, are ranked
        by their last error. Runs that diverged or were growing come last, even if they met the target on their way.

        Parameters
        ----------
        each : str or list of str, optional
            Columns such as "label" or ["label", "kappa"].
        by : str
            A column of costs to reach the target.
        """
        ranked = self.ranking(by)
        columns = [each] if isinstance(each, str) else list(each or [])
        for name in columns:
            if name not in ranked:
                raise InputError(f"the table has no column {name!r}; it has {', '.join(ranked.columns)}")
        return ranked.groupby(columns, dropna=False, sort=False).head(1) if columns else ranked.head(1)

    def ranking(self, by: str = "rounds_to_target") -> "pd.DataFrame":
        """Return the rows of members with a result, best first."""
        known = [f"{cost}_to_target" for cost in COSTS]
        if by not in known:
            raise InputError(f"by must be one of {', '.join(known)}, got {by!r}")
        done = self.table[self.table["member"].isin(list(self.results))]
        lost = done["status"].isin(LOST)
        finite = done["relative_error"].where(done["status"] != "diverged", np.inf)
        ranked = done.assign(_lost=lost, _last=finite).sort_values(["_lost", by, "_last", "member"])
        return ranked.drop(columns=["_lost", "_last"])

    def plot(
        self,
        x: str | None = None,
        y: str | None = None,
        value: str = "rounds_to_target",
        *,
        style: str | None = None,
    ) -> "Figure":
        """Draw a cost against one column of the table, or over two of them as a map for each method.

        Parameters
        ----------
        x, y : str, optional
            Columns; by default the first one or two that were varied for all methods, or else the methods themselves.
        value : str
            A column of costs to reach the target. Where other columns were varied too, the best of them is shown,
            and over seeds the median.
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
        return sweep_figure(self.table, x, y, value, style)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write table.csv, sweep.png and a file for each member in members/; return the folder.

        `adom report` reads it. Members that ``sweep(folder=)`` has saved there are not written again.
        """
        from ..plot.style import save

        target = Path(folder)
        for result in self.results.values():
            file = target / "members" / f"{result.provenance['sweep']['key']}.npz"
            if not file.exists():
                result.save(file)
        with atomic(target / "table.csv") as partial:
            self.table.to_csv(partial, index=False)
        save(self.plot(), target / "sweep.png")
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
        ranked = self.ranking()
        best = ranked.head(SHOWN)
        costs = [f"{cost}_to_target" for cost in COSTS]
        columns = ["member", "label", *(name for name in self.varied if name != "label"), "status", *costs]
        table = grid([name.replace("_", " ") for name in columns], best[columns].to_numpy(dtype=object).tolist())
        reached = int((ranked["rounds_to_target"].notna()).sum())
        facts = {
            "varied": ", ".join(self.varied) or "nothing",
            "target reached": f"by {reached}, at a relative error of {best['target'].iloc[0]:.3g}",
            "best by rounds": f"{len(best)} of {len(ranked)}",
        }
        facts |= {"weights": self._weighting} if self._weighting else {}
        return card("Sweep", self._states, facts, below=table)

    def __repr__(self) -> str:
        if not self.results:
            return f"Sweep({self._states})"
        first = self.best().iloc[0]
        rounds = first["rounds_to_target"]
        took = "target not reached" if np.isnan(rounds) else f"{int(rounds)} rounds to {first['target']:.3g}"
        extra = f"; {self._weighting}" if self._weighting else ""
        return f"Sweep({self._states}; best {self.members[int(first['member'])].text}: {took}{extra})"


def _about(member: Member) -> dict[str, Any]:
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
        "network": member.place,
        "seed": network.recipe.get("seed") if member.seed is None else member.seed,
    }


def _settings(member: Member) -> dict[str, float]:
    """Return a member's hyper-parameters and the factors that led to them."""
    parameters = member.values if member.method is None else member.method.parameters()
    return {name: float(value) for name, value in parameters.items()} | _factors(member)


def _factors(member: Member) -> dict[str, float]:
    scaled = {f"factor_{name}": value for name, value in member.factors.items()}
    return scaled | {f"assume_{name}": value for name, value in member.assume.items()}
