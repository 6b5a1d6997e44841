"""The result of a comparison: its runs, a table of them, a figure, and files."""

import os
import textwrap
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..dynamics.endings import LOST
from ..errors import InputTypeError
from ..run.result import Result
from ..util.cards import bold, bounds, card, curve, grid
from ..util.columns import HEADS, METRICS, TO_TARGET
from ..util.files import atomic
from ..util.text import format_short
from .metrics import aim, metrics, relative, smallest_target
from .saved import file_names, replaced
from .tables import SPARE, WIDTH, error_text, latex_number, latex_table, latex_text, text_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ..plot.display import Figure

INTERRUPTED = "the comparison was interrupted"
"""Reason for a method that did not run, or did not finish."""
ERROR_HEAD = "last error"
"""Head of the column of relative errors at the end of a run."""


@dataclass(frozen=True)
class Comparison:
    """Several runs on the same problem and network.

    Attributes
    ----------
    results : dict
        Label -> `Result`, in the order in which they ran.
    tol : float, optional
        The error at which the runs stopped, if one was given.
    skipped : dict
        Label -> reason, for the methods that did not run.
    """

    results: dict[str, Result]
    tol: float | None = None
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def interrupted(self) -> bool:
        """Whether the comparison was ended by Ctrl-C."""
        statuses = [result.status for result in self.results.values()]
        return INTERRUPTED in self.skipped.values() or "interrupted" in statuses

    @cached_property
    def target(self) -> float:
        """The relative error by which the methods are compared.

        It is `tol` divided by the error at the start; without a `tol`, the smallest power of ten that at least one
        method reached, or 0.1 if none did. It is NaN if the start is the solution.
        """
        runs = list(self.results.values())
        return smallest_target([run] for run in runs) if self.tol is None else relative(self.tol, runs[0])

    @cached_property
    def table(self) -> "pd.DataFrame":
        """One row per method: how it ran, its total costs, and its costs to reach the target.

        The columns are label, status, oracle, protocol; rounds and all other costs in `Result.history`; error, target;
        the costs of the first record at the target, from seconds_to_target to rounds_to_target, NaN if there is none,
        and 0 if the start is at the target or is the solution; and relative_error, the last error divided by the one
        at the start.
        """
        import pandas as pd

        rows = []
        for label, result in self.results.items():
            found = metrics(result, self.tol, self.target)
            how = {"oracle": result.provenance.get("oracle"), "protocol": result.protocol}
            rows.append({"label": label, "status": found.pop("status"), **how, **found})
        return pd.DataFrame(rows)

    def plot(self, axis: str | None = "round", *, ax: "Axes | None" = None, style: str | None = None) -> "Figure":
        """Draw the errors of all methods.

        Parameters
        ----------
        axis : str
            Horizontal axis: "round" or another cost in `Result.history`; "all" for a panel of each.
        ax : matplotlib axes, optional
            Axes to draw into, for one horizontal axis; by default a new figure.
        style : str, optional
            "column", "page" or "slide": width and text size; see `adom.styles`.
        """
        from ..plot.curves import convergence

        check_axes(ax)
        runs = list(self.results.values())
        return convergence(runs, axis=axis, consensus=False, labels=self._titles, ax=ax, style=style)

    @property
    def _titles(self) -> list[str]:
        """The names of the methods in figures and tables."""
        return [title(label, result) for label, result in self.results.items()]

    def to_latex(self, *, caption: str | None = None, label: str = "") -> str:
        r"""Return the costs to reach the target as a LaTeX table with the least in bold.

        The document needs ``\usepackage{booktabs}`` and nothing else.

        Parameters
        ----------
        caption : str, optional
            Caption in LaTeX, "" for none; by default it says what the table shows.
        label : str
            Label for references to the table.
        """
        costs = list(TO_TARGET)
        least = self.table.loc[~self.table["status"].isin(LOST), costs].min()
        rows = []
        for name, row in zip(self._titles, self.table.to_dict("records"), strict=True):
            numbers = [latex_number(row[cost], bold=row[cost] == least[cost]) for cost in costs]
            rows.append([latex_text(name), *numbers, latex_number(row["relative_error"])])
        if caption is None:
            caption = f"Cost to reach a relative error of {latex_number(self.target)}."
        heads = ["method", *(latex_text(metric.words) for metric in METRICS.values()), ERROR_HEAD]
        return latex_table(heads, [("", rows)], caption, label)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write a .npz file per method, table.csv and comparison.png into `folder`; return the folder.

        Files that an earlier comparison or sweep saved there are removed; other files stay.
        """
        from ..plot.style import save

        target = Path(folder)
        with replaced(target) as written:
            for label, name in file_names(self.results).items():
                written.append(self.results[label].save(target / name))
            with atomic(target / "table.csv") as partial:
                self.table.to_csv(partial, index=False)
            save(self.plot("all"), target / "comparison.png")
            written.append(target / "comparison.png")
        return target

    @property
    def aim(self) -> str:
        """The target in words."""
        return aim(self.target, bool(self.table["rounds_to_target"].notna().any()))

    @property
    def _weighting(self) -> str:
        return next((result.weighting for result in self.results.values()), "")

    @property
    def outside(self) -> str:
        """Conditions of the methods' proofs that the network does not meet, in words; "" if there are none."""
        return "; ".join(f"{', '.join(names)}: {text}" for text, names in self.unproved.items())

    @property
    def unproved(self) -> dict[str, list[str]]:
        """Condition that the network does not meet -> the methods whose proofs require it."""
        reasons: dict[str, list[str]] = {}
        for label, result in self.results.items():
            if result.outside:
                reasons.setdefault(result.outside, []).append(title(label, result))
        return reasons

    def __str__(self) -> str:
        rows = []
        for name, row in zip(self._titles, self.table.to_dict("records"), strict=True):
            costs = [format_short(row[cost]) for cost in TO_TARGET]
            rows.append([name, row["status"], *costs, error_text(row["relative_error"])])
        heads = ["method", "status", *HEADS, ERROR_HEAD]
        notes = [f"{label} did not run: {reason}" for label, reason in self.skipped.items()]
        notes += [f"outside of their proofs: {self.outside}"] if self.outside else []
        notes += [self._weighting] if self._weighting else []
        notes = [textwrap.fill(note, WIDTH) for note in notes]
        return "\n".join([f"cost to reach {self.aim}", text_table(heads, rows, SPARE), *notes])

    def __repr__(self) -> str:
        reached = []
        for row in self.table.to_dict("records"):
            rounds = row["rounds_to_target"]
            reached.append(f"{row['label']} {'not reached' if np.isnan(rounds) else int(rounds)} ({row['status']})")
        extra = f"; skipped: {', '.join(self.skipped)}" if self.skipped else ""
        extra += "".join(f"; {remark}" for remark in (self.outside, self._weighting) if remark)
        return f"Comparison(rounds to relative error {self.target:.3g}: {', '.join(reached)}{extra})"

    def _repr_html_(self) -> str:
        box = bounds(result._curve() for result in self.results.values())
        costs = {metric.to_target: metric.words for metric in METRICS.values()}
        least = self.table.loc[~self.table["status"].isin(LOST), list(costs)].min()
        rows: list[list[object]] = []
        for row, result in zip(self.table.to_dict("records"), self.results.values(), strict=True):
            settings = [row["label"], row["protocol"], row["oracle"] or "–", row["status"]]
            spent = [bold(row[name]) if row[name] == least[name] else row[name] for name in costs]
            picture = curve(*result._curve(), box=box, labels=False)
            rows.append([*settings, picture, row["relative_error"], *spent])
        heads = ["method", "parameters", "dual oracle", "status", "error", "relative error at the end", *costs.values()]
        notes = {f"{label} skipped": reason for label, reason in self.skipped.items()}
        notes |= {"outside of their proofs": self.outside} if self.outside else {}
        notes |= {"weights": self._weighting} if self._weighting else {}
        about = f"cost to reach {self.aim}; the least in bold"
        return card("Comparison", about, notes, below=grid(heads, rows))


def check_axes(ax: "Axes | None") -> None:
    """Refuse to draw into anything but the axes of one panel."""
    if ax is not None:
        from matplotlib.axes import Axes

        if not isinstance(ax, Axes):
            raise InputTypeError(
                f"ax must be the axes of one panel, got {type(ax).__name__}; e.g. ax=axes[0] of plt.subplots(1, 2)"
            )


def title(label: str, result: Result) -> str:
    """Return the name of a method in figures and tables: its label, or its title if the label is its name."""
    return result.label if label == result.provenance["method"]["name"] else label
