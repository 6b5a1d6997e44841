"""What a sweep leaves: its members' results, one tidy table, the best of it, a picture."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..run.endings import LOST
from ..run.provenance import CHI_NODES
from ..run.result import Result
from ..util.cards import card, grid
from ..util.files import atomic
from . import metrics as outcomes
from .members import Member

if TYPE_CHECKING:
    import pandas as pd

    from ..plot.display import Figure

SHOWN = 5
"""Members of a sweep that a notebook shows."""


@dataclass(frozen=True)
class Sweep:
    """The outcome of a sweep.

    Attributes
    ----------
    members : tuple of Member
        All that the sweep consists of, in order.
    results : dict
        Number of a member -> `Result`, for those that came to their end.
    tols : dict
        Number of a member -> the error it was to stop at, or None.
    interrupted : bool
        Whether it was ended before its time.
    """

    members: tuple[Member, ...]
    results: dict[int, Result]
    tols: dict[int, float | None]
    interrupted: bool = False

    @property
    def refused(self) -> dict[int, str]:
        """Number of a member -> why it could not run."""
        return {one.number: one.refused for one in self.members if one.refused}

    @cached_property
    def table(self) -> "pd.DataFrame":
        """One row a member: what it is, how it ran, what it cost in all, and what it cost to reach the target.

        The columns are member, method, label, protocol (the base), oracle, kappa, chi, network (its place) and seed;
        every hyper-parameter by its name; ``factor_...`` and ``assume_...`` for what was multiplied; then status
        ("refused" and "interrupted" for members without a result), rounds, gradients (per node), floats_sent, seconds,
        error, relative_error, target, and rounds_to_target, gradients_to_target, floats_sent_to_target,
        seconds_to_target: those of the first record at the target. The target is the error to stop at, over that at
        the start; without one it is the smallest power of ten that at least one member reached.
        """
        import pandas as pd

        without = all(tol is None for tol in self.tols.values())
        shared = outcomes.reached_by_one(self.results.values()) if without else float("nan")
        about = pd.DataFrame([_about(one) for one in self.members])
        settings = pd.DataFrame([_settings(one) for one in self.members], index=about.index)
        ends = []
        for one in self.members:
            result, tol = self.results.get(one.number), self.tols[one.number]
            if result is None:
                ends.append({"status": "refused" if one.refused else "interrupted"})
            else:
                target = shared if tol is None else outcomes.relative(tol, result)
                ends.append(outcomes.outcome(result, tol, target))
        outcome = pd.DataFrame(ends, index=about.index)
        clashing = {name: f"parameter_{name}" for name in settings if name in about or name in outcome}
        return pd.concat([about, settings.rename(columns=clashing), outcome], axis=1)

    @property
    def varied(self) -> list[str]:
        """The columns of the table in which members were made to differ, the parameters first."""
        axes: dict[str, None] = {}
        for one in self.members:
            names = [f"factor_{name}" for name in one.factors] + [f"assume_{name}" for name in one.assume]
            axes |= dict.fromkeys([*one.values, *names])
        axes |= dict.fromkeys(("kappa", "oracle", "protocol", "seed", "network", "label"))
        counts = self.table[list(axes)].nunique()
        found = [name for name in axes if counts[name] > 1]
        return [name for name in found if name != "network" or "seed" not in found]

    def best(self, each: str | Sequence[str] | None = None, by: str = "rounds_to_target") -> "pd.DataFrame":
        """Return the rows that did best, best first: all in all, or one for each value of some columns.

        Fewest rounds (or what `by` names) to the target come first; ties, and those that did not reach it, are
        ranked by their last error. Runs that diverged or were growing come last, also where they met the target on
        their way.

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
        """Return the table of those that ran, best first."""
        known = [f"{cost}_to_target" for cost in outcomes.COSTS]
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
            Columns; by default the first that were varied for all methods, two where there are two, or else the
            methods themselves.
        value : str
            A column of costs to reach the target. Where other columns were varied too, the best of them is shown,
            and over seeds the median.
        style : str, optional
            "column", "page" or "slide": how wide, and how large its text; see `adom.styles`.
        """
        from ..plot.sweeps import sweep_figure

        axes = [name for name in self.varied if name not in {"seed", "network", "label"}]
        common = [name for name in axes if self.table[name].notna().all()]
        numbers = [name for name in common if _numeric(self.table, name)]
        if x is None:
            x = next((name for name in [*numbers, *common] if name != y), "label")
            y = y or next((name for name in numbers if name != x and x in numbers), None)
        return sweep_figure(self.table, x, y, value, style)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write table.csv and sweep.png into `folder`; return the folder. Members are saved by ``sweep(folder=)``."""
        from ..plot.style import save

        target = Path(folder)
        with atomic(target / "table.csv") as partial:
            self.table.to_csv(partial, index=False)
        save(self.plot(), target / "sweep.png")
        return target

    @property
    def _states(self) -> str:
        """How many members there are, and how they ended."""
        counts = self.table["status"].value_counts()
        return f"{len(self.members)} members: " + ", ".join(f"{count} {status}" for status, count in counts.items())

    @property
    def _weighting(self) -> str:
        return next((one.weighting for one in self.results.values()), "")

    def _repr_html_(self) -> str:
        if not self.results:
            return card("Sweep", self._states, {})
        ranked = self.ranking()
        best = ranked.head(SHOWN)
        costs = [f"{cost}_to_target" for cost in outcomes.COSTS]
        columns = ["member", "label", *(name for name in self.varied if name != "label"), "status", *costs]
        table = grid([name.replace("_", " ") for name in columns], best[columns].to_numpy(dtype=object).tolist())
        reached = int((ranked["rounds_to_target"].notna()).sum())
        facts = {
            "varied": ", ".join(self.varied) or "nothing",
            "target reached": f"by {reached}, at a relative error of {best['target'].iloc[0]:.3g}",
            "best by rounds": f"{len(best)} of {len(ranked)}",
        }
        facts |= {"weights": words} if (words := self._weighting) else {}
        return card("Sweep", self._states, facts, below=table)

    def __repr__(self) -> str:
        if not self.results:
            return f"Sweep({self._states})"
        first = self.best().iloc[0]
        rounds = first["rounds_to_target"]
        took = "target not reached" if np.isnan(rounds) else f"{int(rounds)} rounds to {first['target']:.3g}"
        extra = f"; {self._weighting}" if self._weighting else ""
        return f"Sweep({self._states}; best {self.members[int(first['member'])].text}: {took}{extra})"


def _about(one: Member) -> dict[str, Any]:
    """Return what a member is, for the table."""
    return {
        "member": one.number,
        "method": one.cls.name,
        "label": one.label,
        "protocol": one.base,
        "oracle": one.oracle,
        "kappa": one.problem.kappa,
        "chi": one.network.chi if one.network.chi_known or one.network.nodes <= CHI_NODES else None,
        "network": one.place,
        "seed": one.network.recipe.get("seed"),
    }


def _settings(one: Member) -> dict[str, float]:
    """Return a member's hyper-parameters, and what was multiplied on the way to them."""
    parameters = one.values if one.method is None else one.method.parameters()
    found = {name: float(value) for name, value in parameters.items()}
    found |= {f"factor_{name}": value for name, value in one.factors.items()}
    return found | {f"assume_{name}": value for name, value in one.assume.items()}


def _numeric(table: "pd.DataFrame", name: str) -> bool:
    return name in table and table[name].dtype.kind in "if"
