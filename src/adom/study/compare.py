"""`compare`: several methods on the same problem and network, with the same budget of rounds."""

import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms import METHODS, Method, method_class
from ..errors import InputError, InputTypeError, nearest
from ..networks import Network
from ..problems.base import Problem
from ..problems.oracle_spec import parse_oracle
from ..run.constants import check_pair, make_method
from ..run.endings import LOST
from ..run.request import TUNED, Request, check_budget
from ..run.result import Result
from ..run.solve import solve
from ..util.cards import bold, bounds, card, curve, grid
from ..util.files import atomic
from . import metrics as outcomes

if TYPE_CHECKING:
    import pandas as pd

    from ..plot.display import Figure

INTERRUPTED = "interrupted before it began"


def compare(
    problem: Problem,
    network: Network,
    methods: Sequence[Any] | None = None,
    parameters: str | dict[str, Any] = "theory",
    oracle: Any = "auto",
    rounds: int = 1000,
    tol: float | None = None,
    record_every: int = 1,
    *,
    dtype: str = "float64",
    progress: bool | None = None,
) -> "Comparison":
    """Run several methods on the same problem and network, each as `adom.solve` does.

    Everything is checked before the first method runs. Ctrl-C ends the comparison; what was done is returned.

    Parameters
    ----------
    problem, network
        With the same number of nodes.
    methods : sequence, optional
        Names, `Method` instances, or pairs (label, name or instance). By default every method there is, but for
        those that cannot run on this network; `Comparison.skipped` says which and why.
    parameters : str or dict
        As in `adom.solve`, for all; or a dict from labels or names of methods to such values, "theory" being
        taken for those it leaves out. An instance brings its own.
    oracle : str, tuple or dict
        As in `adom.solve`, for all dual methods; or a dict from labels or names to such values, "auto" being
        taken for those it leaves out.
    rounds : int
        The budget of communication rounds of each method.
    tol, record_every, dtype, progress
        As in `adom.solve`.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[1.0]], [[2.0]], [[3.0]]], [[1.0], [0.0], [0.0]])
    >>> network = adom.networks.ring(3)
    >>> found = adom.compare(problem, network, ["adom", ("bold", "adom")], {"bold": "unit"}, rounds=100)
    >>> found.table[["label", "protocol", "status"]].values.tolist()
    [['adom', 'theory', 'max_rounds'], ['bold', 'unit', 'max_rounds']]
    """
    check_pair(problem, network, directed=True)
    members = with_settings(read_members(list(METHODS) if methods is None else methods), parameters, oracle)
    skipped: dict[str, str] = {}
    for one in members:
        Request(one.oracle, rounds, tol, record_every, "local", dtype, progress).oracle_for(one.cls)
        try:
            check_pair(problem, network, directed=one.cls.directed, title=one.cls.title)
            check_budget(make_method(problem, network, one.method, _protocol(one.parameters)), rounds)
        except InputError as error:
            if methods is not None:
                raise
            skipped[one.label] = str(error)
            continue
        make_method(problem, network, one.method, _before_search(one.parameters))
    if len(skipped) == len(members):
        raise InputError(next(iter(skipped.values())))

    budget: dict[str, Any] = {"rounds": rounds, "tol": tol, "record_every": record_every}
    results: dict[str, Result] = {}
    try:
        for one in members:
            if one.label not in skipped:
                results[one.label] = solve(
                    *(problem, network, one.method, one.parameters, one.oracle),
                    **budget,
                    dtype=dtype,
                    progress=progress,
                )
                if results[one.label].status == "interrupted":
                    break
    except KeyboardInterrupt:  # before or between rounds: the present method has nothing to show
        if not results:
            raise
    late = {one.label: INTERRUPTED for one in members if one.label not in {*results, *skipped}}
    return Comparison(results, tol, skipped | late)


@dataclass(frozen=True)
class Comparison:
    """The outcome of several runs on the same problem and network.

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
        """Whether the comparison was ended before its time."""
        return INTERRUPTED in self.skipped.values() or any(one.status == "interrupted" for one in self.results.values())

    @cached_property
    def target(self) -> float:
        """The relative error by which the methods are compared.

        It is the error `tol` that they were to stop at, over the error at the start; without a `tol` it is the
        smallest power of ten that at least one of them reached, and NaN where all of them stayed above 1.
        """
        runs = list(self.results.values())
        return outcomes.reached_by_one(runs) if self.tol is None else outcomes.relative(self.tol, runs[0])

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
            {"label": label, "oracle": one.provenance.get("oracle"), "protocol": one.protocol}
            | outcomes.outcome(one, self.tol, self.target)
            for label, one in self.results.items()
        ]
        return pd.DataFrame(rows)

    def plot(self, axis: str | None = "round", *, style: str | None = None) -> "Figure":
        """Draw the errors of all methods.

        Parameters
        ----------
        axis : str
            What against: "round", "gradients" (per node), "floats_sent", "seconds" or "all".
        style : str, optional
            "column", "page" or "slide": how wide, and how large its text; see `adom.styles`.
        """
        from ..plot.curves import convergence

        titles = [one.label if label == _name(one) else label for label, one in self.results.items()]
        return convergence(list(self.results.values()), axis=axis, consensus=False, labels=titles, style=style)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write a .npz file per method, table.csv and comparison.png into `folder`; return the folder.

        The files of the methods are called by `file_names`.
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
        return next((one.weighting for one in self.results.values()), "")

    def __repr__(self) -> str:
        reached = []
        for row in self.table.to_dict("records"):
            rounds = row["rounds_to_target"]
            reached.append(f"{row['label']} {'not reached' if np.isnan(rounds) else int(rounds)} ({row['status']})")
        extra = f"; skipped: {', '.join(self.skipped)}" if self.skipped else ""
        extra += f"; {self._weighting}" if self._weighting else ""
        return f"Comparison(rounds to relative error {self.target:.3g}: {', '.join(reached)}{extra})"

    def _repr_html_(self) -> str:
        box = bounds(one._curve() for one in self.results.values())
        costs = {f"{cost}_to_target": cost.replace("_", " ") for cost in outcomes.COSTS}
        least = self.table.loc[~self.table["status"].isin(LOST), list(costs)].min()
        rows: list[list[object]] = []
        for row, one in zip(self.table.to_dict("records"), self.results.values(), strict=True):
            made = [row["label"], row["protocol"], row["oracle"] or "–", row["status"]]
            spent = [bold(row[name]) if row[name] == least[name] else row[name] for name in costs]
            rows.append([*made, curve(*one._curve(), box=box, labels=False), row["relative_error"], *spent])
        heads = ["method", "parameters", "dual oracle", "status", "error", "relative error at the end", *costs.values()]
        notes = {f"{label} skipped": reason for label, reason in self.skipped.items()}
        notes |= {"weights": self._weighting} if self._weighting else {}
        about = f"what reaching a relative error of {self.target:.3g} took, the least in bold"
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


@dataclass(frozen=True)
class Member:
    """One method of a comparison and how it is to be run."""

    label: str
    method: Any  # a name, an instance or a class
    cls: type[Method]
    parameters: Any = "theory"
    oracle: Any = "auto"


def read_members(methods: Any) -> list[Member]:
    """Read the methods that `compare` is given, each under its label."""
    if isinstance(methods, str | Method):
        methods = [methods]
    if not isinstance(methods, Iterable):
        raise InputTypeError(f"methods must be a list of names or instances, got {methods!r}; e.g. ['adom', 'pngd']")
    members: dict[str, Member] = {}
    for entry in methods:
        pair = isinstance(entry, tuple | list) and len(entry) == 2
        label, method = entry if pair else (None, entry)
        if isinstance(method, Method):
            cls = type(method)
        elif isinstance(method, type) and issubclass(method, Method):
            cls = method
        elif isinstance(method, str):
            cls = method_class(method)
        else:
            raise InputTypeError(
                f"a method must be a name, an instance or a pair (label, method), got {entry!r}; e.g. 'adom'"
            )
        label = label if pair else cls.name
        if not isinstance(label, str) or not label.strip():
            raise InputTypeError(f"a label must be some text, got {label!r}; e.g. ('my {cls.name}', '{cls.name}')")
        if label in members:
            raise InputError(
                f"the label {label!r} occurs twice; leave one out, or tell the two apart by pairs (label, method) "
                f"such as ('{label} 2', '{cls.name}')"
            )
        members[label] = Member(label, method, cls)
    if not members:
        raise InputError(f"got no methods to compare; name some of {', '.join(METHODS)}, or leave methods out for all")
    return list(members.values())


def with_settings(members: list[Member], parameters: Any, oracle: Any) -> list[Member]:
    """Give each member its parameters and its oracle."""
    known = {one.label for one in members} | {one.cls.name for one in members}
    by_method = isinstance(parameters, dict) and any(
        name in known or (name != "protocol" and isinstance(value, str | dict)) for name, value in parameters.items()
    )
    if by_method:
        _check_names("parameters", parameters, members)
        for one in members:
            if isinstance(one.method, Method) and one.label in parameters:
                raise InputError(
                    f"parameters names {one.label!r}, an instance that has its own; leave it out there, "
                    f"or compare ('{one.label}', '{one.cls.name}')"
                )
    if isinstance(oracle, dict):
        _check_names("oracle", oracle, members)
    else:
        parse_oracle(oracle)
    found = []
    for one in members:
        chosen = _pick(parameters, one, "theory") if by_method else parameters
        once = oracle if one.cls.oracle == "dual" else "auto"
        way = _pick(oracle, one, "auto") if isinstance(oracle, dict) else once
        found.append(replace(one, parameters=chosen, oracle=way))
    return found


def _pick(given: Mapping[str, Any], one: Member, default: Any) -> Any:
    return given.get(one.label, given.get(one.cls.name, default))


def _check_names(what: str, given: Mapping[Any, Any], members: list[Member]) -> None:
    known = list(dict.fromkeys(name for one in members for name in (one.label, one.cls.name)))
    for name in given:
        if name not in known:
            raise InputError(f"{what} names {name!r}, which is not compared; {nearest(name, known, 'compared:')}")


def _protocol(parameters: Any) -> Any:
    """Return the protocol alone, without values that replace some of it."""
    return _before_search(parameters.get("protocol", "theory") if isinstance(parameters, dict) else parameters)


def _before_search(parameters: Any) -> Any:
    """Return the parameters, in place of tuned ones those that the search starts from."""
    return "unit" if parameters == TUNED else parameters


def _name(result: Result) -> str:
    return str(result.provenance["method"]["name"])
