"""`compare`: several methods on the same problem and network, with the same budget of rounds."""

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms import COMPARED, METHODS
from ..errors import InputError
from ..networks import Network
from ..problems.base import Problem
from ..run.auto.choice import check_findable
from ..run.constants import check_pair, make_method
from ..run.endings import LOST
from ..run.lossy import as_run
from ..run.request import AUTO, Request, check_budget
from ..run.result import Result
from ..run.solve import solve
from ..util.cards import bold, bounds, card, curve, grid
from ..util.files import atomic
from .methods import read_methods, with_settings
from .metrics import COSTS, metrics, relative, smallest_target

if TYPE_CHECKING:
    import pandas as pd

    from ..plot.display import Figure

ALL = "all"
INTERRUPTED = "interrupted before it began"


def compare(
    problem: Problem,
    network: Network,
    methods: Sequence[Any] | str | None = None,
    parameters: str | dict[str, Any] = "auto",
    oracle: Any = "auto",
    rounds: int = 1000,
    tol: float | None = None,
    record_every: int = 1,
    *,
    dtype: str = "float64",
    progress: bool | None = None,
) -> "Comparison":
    """Run several methods on the same problem and network, each as `adom.solve` does.

    Everything is checked before the first method runs. Ctrl-C ends the comparison and returns the runs so far.

    Parameters
    ----------
    problem, network
        With the same number of nodes.
    methods : sequence, optional
        Names, `Method` instances, or pairs (label, name or instance); or "all". By default `adom.algorithms.COMPARED`.
        Of these two, those that cannot run on this network are left out; `Comparison.skipped` says which and why.
    parameters : str or dict
        As in `adom.solve`, for all; or a dict from labels or names of methods to such values, with "auto" for those
        it leaves out. An instance brings its own.
    oracle : str, tuple or dict
        As in `adom.solve`, for all dual methods; or a dict from labels or names to such values, with "auto" for those
        it leaves out.
    rounds : int
        The budget of communication rounds of each method.
    tol, record_every, dtype, progress
        As in `adom.solve`.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[1.0]], [[2.0]], [[3.0]]], [[1.0], [0.0], [0.0]])
    >>> network = adom.networks.ring(3)
    >>> comparison = adom.compare(problem, network, ["adom", ("bold", "adom")], {"bold": "unit"}, rounds=100)
    >>> comparison.table[["label", "protocol", "status"]].values.tolist()
    [['adom', 'auto', 'max_rounds'], ['bold', 'unit', 'max_rounds']]
    """
    check_pair(problem, network, directed=True)
    listed = not (methods is None or methods == ALL)
    names = methods if listed else METHODS if methods == ALL else COMPARED
    entries = with_settings(read_methods(names), parameters, oracle)
    skipped: dict[str, str] = {}
    for entry in entries:
        cls, own = entry.cls, entry.parameters
        Request(entry.oracle, rounds, tol, record_every, "local", dtype, progress).oracle_for(cls)
        try:
            check_pair(problem, network, directed=cls.directed, title=cls.title)
            protocol = own.get("protocol", "theory") if isinstance(own, dict) else own
            chosen = make_method(problem, network, entry.method, protocol)
            check_budget(chosen, rounds)
            as_run(chosen, network, problem.dim)  # refuses what a lossy network cannot carry
            if protocol == AUTO and not entry.is_instance:
                check_findable(cls, network)
        except InputError as error:
            if listed:
                raise
            skipped[entry.label] = str(error)
        else:
            make_method(problem, network, entry.method, own)
    if len(skipped) == len(entries):
        raise InputError(next(iter(skipped.values())))

    results: dict[str, Result] = {}
    try:
        for entry in entries:
            if entry.label not in skipped:
                setting = (problem, network, entry.method, entry.parameters, entry.oracle, rounds, tol, record_every)
                result = results[entry.label] = solve(*setting, dtype=dtype, progress=progress)
                if result.status == "interrupted":
                    break
    except KeyboardInterrupt:  # before or between rounds: the current method has nothing to show
        if not results:
            raise
    missing = {entry.label: INTERRUPTED for entry in entries if entry.label not in {*results, *skipped}}
    return Comparison(results, tol, skipped | missing)


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

        It is the error `tol` to stop at, over the error at the start; without a `tol` it is the smallest power of ten
        that at least one method reached, and NaN where all of them stayed above 1.
        """
        runs = list(self.results.values())
        return smallest_target(runs) if self.tol is None else relative(self.tol, runs[0])

    @cached_property
    def table(self) -> "pd.DataFrame":
        """One row per method: how it ran, what it cost in all, and what it cost to reach the target.

        The columns are label, oracle, protocol, status, rounds, gradients (per node), floats_sent, seconds,
        error, relative_error (the error over that of the rows at 0), target, and rounds_to_target,
        gradients_to_target, floats_sent_to_target, seconds_to_target: those of the first record whose relative
        error is at most the target, NaN where there is none.
        """
        import pandas as pd

        rows = [
            {"label": label, "oracle": result.provenance.get("oracle"), "protocol": result.protocol}
            | metrics(result, self.tol, self.target)
            for label, result in self.results.items()
        ]
        return pd.DataFrame(rows)

    def plot(self, axis: str | None = "round", *, style: str | None = None) -> "Figure":
        """Draw the errors of all methods.

        Parameters
        ----------
        axis : str
            Horizontal axis: "round", "gradients" (per node), "floats_sent", "seconds" or "all".
        style : str, optional
            "column", "page" or "slide": width and text size; see `adom.styles`.
        """
        from ..plot.curves import convergence

        titles = [
            result.label if label == result.provenance["method"]["name"] else label
            for label, result in self.results.items()
        ]
        return convergence(list(self.results.values()), axis=axis, consensus=False, labels=titles, style=style)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write a .npz file per method, table.csv and comparison.png into `folder`; return the folder.

        `file_names` names the files of the methods.
        """
        from ..plot.style import save

        target = Path(folder)
        for label, name in file_names(self.results).items():
            self.results[label].save(target / name)
        with atomic(target / "table.csv") as partial:
            self.table.to_csv(partial, index=False)
        save(self.plot("all"), target / "comparison.png")
        return target

    @property
    def _weighting(self) -> str:
        return next((result.weighting for result in self.results.values()), "")

    @property
    def outside(self) -> str:
        """What proofs ask of the network and this one lacks, in words; "" where nothing is lacking."""
        reasons: dict[str, list[str]] = {}
        for result in self.results.values():
            reasons.setdefault(result.outside, []).append(result.label)
        return "; ".join(f"{', '.join(dict.fromkeys(labels))}: {text}" for text, labels in reasons.items() if text)

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
        costs = {f"{cost}_to_target": cost.replace("_", " ") for cost in COSTS}
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
        about = f"cost to reach a relative error of {self.target:.3g}, the least in bold"
        return card("Comparison", about, notes, below=grid(heads, rows))


def file_names(labels: Iterable[str]) -> dict[str, str]:
    """Return a file name for each label: safe on every system, and no two the same even where case is ignored.

    Examples
    --------
    >>> file_names(["adom+", "ADOM, eta = 1/2", "../adom", "adom"])
    {'adom+': 'adom+.npz', 'ADOM, eta = 1/2': 'adom-eta-1-2.npz', '../adom': 'adom.npz', 'adom': 'adom-2.npz'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for label in labels:
        plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode().lower()
        stem = re.sub(r"[^a-z0-9+_]+", "-", plain).strip("-")[:60] or "method"
        name, number = stem, 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name)
        names[label] = f"{name}.npz"
    return names
