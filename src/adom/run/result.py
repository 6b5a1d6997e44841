"""Result of a run: rows, table of records and provenance, saved in one open file.

The file is a NumPy archive (``.npz``): the final rows, one array per column of the table, and the provenance
as JSON text, with a checksum of the whole. It is written under another name and then moved into place, so it is never
incomplete. Nothing in it is ever unpickled.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms import NEEDS
from ..dynamics.endings import LOST
from ..errors import Damaged, InputError, InputTypeError, shown
from ..problems.samples import weighting_text
from ..util.cards import card, curve
from ..util.checked_npz import read_npz, write_npz
from ..util.columns import COLUMNS, MEASURES, METRICS, STATES
from ..util.files import atomic, named, reason
from ..util.text import format_number, json_ready

if TYPE_CHECKING:
    import pandas as pd

    from ..data.model import Model
    from ..plot.display import Figure

__all__ = ["FORMAT", "Result", "atomic", "load"]

FORMAT = "adom-result-1"
COLUMN = "history/"
"""Prefix of arrays that are columns of the table."""


@dataclass(frozen=True)
class Result:
    """The outcome of one run.

    Attributes
    ----------
    x : array of shape (nodes, dim)
        The rows at the last record.
    history : pandas.DataFrame
        One row per record: iteration, round, gradients (per node, on average), floats_sent (over all links),
        seconds (without compilation), error (sum over nodes of the squared distance to x*),
        consensus (sum over nodes of the squared distance to the mean row). If x* is unknown, gradient_norm (of the
        mean of the f_i at the mean row) takes the place of error.
    status : str
        "converged": the tolerance was met. "diverged": the error is not finite or grew by 1e12 (with auto parameters,
        which may mend it, by 1e200, or by 1e12 at the end). "interrupted": by Ctrl-C. The others mean that the rounds
        are used up. "growing": the error rises. "stalled": the error made no progress over the last half of the rounds,
        or ended above its start, or rounding keeps it above the tolerance. "max_rounds": more rounds may help, or the
        error is limited by rounding and no tolerance was given. The start is x = 0; for a dual method, the minimisers
        of the f_i.
    provenance : dict
        Method and parameters, problem, network, oracle, versions, commit and the other settings of the run.
    """

    x: np.ndarray
    history: "pd.DataFrame"
    status: str
    provenance: dict[str, Any]

    @property
    def message(self) -> str:
        """Remark on the status, such as when the run diverged or how many more rounds it needs."""
        return str(self.provenance.get("message", ""))

    @property
    def lost(self) -> bool:
        """Whether the run went the wrong way: diverged, or growing when its rounds were spent."""
        return self.status in LOST

    @property
    def label(self) -> str:
        """A short name for legends and tables."""
        return str(self.provenance["method"]["title"])

    @property
    def seed(self) -> int | None:
        """The random seed of the run's sweep, comparison or network; None without one."""
        compared, swept, network = (self.provenance.get(part) or {} for part in ("compare", "sweep", "network"))
        seed = (compared or network).get("seed") if swept.get("seed") is None else swept["seed"]
        return None if seed is None else int(seed)

    @property
    def measure(self) -> str:
        """The column that measures progress: "error", or "gradient_norm" if the solution is unknown.

        It is "" for a run without monitoring.
        """
        return next((name for name in MEASURES if name in self.columns), "")

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """The columns of `history` as arrays, without loading pandas."""
        table = vars(self)["history"]
        return table if isinstance(table, dict) else {name: column.to_numpy() for name, column in table.items()}

    @property
    def last(self) -> dict[str, float]:
        """The last record."""
        return {name: column[-1].item() for name, column in self.columns.items()}

    @property
    def protocol(self) -> str:
        """Name of the parameters, such as "unit" or "theory with eta=0.1"."""
        return protocol_text(self.provenance.get("protocol"))

    @property
    def settings(self) -> "pd.DataFrame":
        """Choices of ``parameters="auto"``: the round, the chi assumed from then on, and why."""
        import pandas as pd

        return pd.DataFrame(self.provenance.get("settings") or [], columns=["round", "chi", "why"])

    @property
    def weighting(self) -> str:
        """Weighting of nodes with different numbers of samples, in words; "" if all have the same."""
        return weighting_text(self.provenance.get("problem", {}).get("samples"))

    @property
    def outside(self) -> str:
        """The assumptions of the method's proof that the network violates, in words; "" if there are none."""
        return str(self.provenance.get("outside", ""))

    @property
    def unproved(self) -> bool:
        """Whether the method is proved only for networks that do not change, and this one does."""
        return NEEDS["fixed"] in self.outside

    def model(self, features: Sequence[str] | None = None) -> "Model":
        """Return the fitted model: the mean of the nodes' rows, with the names, scales and classes of the data.

        Parameters
        ----------
        features : sequence of str, optional
            Names of the features, if the data had none.
        """
        from ..data.model import model_from

        about = (self.provenance.get("problem") or {}).get("model")
        if about is None:
            raise InputError(
                f"a result of {self.provenance.get('problem', {}).get('type', 'this problem')} is not a linear model; "
                "fit LogisticRegression, SoftmaxRegression or LeastSquares, or data that lie apart (adom.NodeData)"
            )
        if features is not None:
            about = {**about, "features": list(features)}
        return model_from(self.x, about, {**self.provenance, "status": self.status})

    def to_sklearn(self) -> Any:
        """Return the fitted model as a scikit-learn estimator, or as a pipeline with its scaling."""
        return self.model().to_sklearn()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the result to `path` (a .npz file), whole or not at all; return the path."""
        target = _as_path(path)
        if target.suffix != ".npz":
            target = target.parent / f"{target.name}.npz"
        arrays = {"x": np.asarray(self.x)}
        arrays |= {f"{COLUMN}{name}": column for name, column in self.columns.items()}
        try:
            write_npz(target, arrays, {"format": FORMAT, "status": self.status, **json_ready(self.provenance)})
        except InputError:
            raise
        except (TypeError, ValueError) as error:  # the user has changed the result
            raise InputTypeError(
                f"cannot write {named(target)}: {error}; x and history must hold numbers, provenance only JSON values"
            ) from None
        return target

    def plot(self, *, axis: str = "round", style: str | None = None) -> "Figure":
        """Draw error and consensus against a cost.

        Parameters
        ----------
        axis : str
            A column of `history`: "round" or another cost; "all" for a panel of each.
        style : str, optional
            "column", "page" or "slide": width and text size; see `adom.styles`.
        """
        from ..plot.curves import convergence

        return convergence([self], axis=axis, style=style)

    def __repr__(self) -> str:
        last = self.last
        extra = f" ({self.message})" if self.message else ""
        near = f"{self.measure.replace('_', ' ')} {last[self.measure]:.3e} after " if self.measure else ""
        return (
            f"Result({self.label}, {self.status}{extra}: {near}"
            f"{int(last['round'])} rounds, {last['gradients']:.0f} gradients a node"
            f"{''.join(f'; {remark}' for remark in (self.outside, self.weighting) if remark)})"
        )

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {}
        if self.columns["round"].size:
            last = self.last
            facts |= {state.words: float(last[name]) for name, state in STATES.items() if name in last}
            for cost in METRICS.values():
                facts[cost.words + (" a node" if cost.per_node else "")] = cost.total(last)
            if budget := self.provenance.get("rounds"):
                facts["rounds"] = f"{format_number(facts['rounds'])} of {format_number(budget)}"
        problem, network = self.provenance.get("problem", {}), self.provenance.get("network", {})
        for name, facts_of, kind in (("problem", problem, "type"), ("network", network, "generator")):
            shown = [str(facts_of.get(kind, name))]
            shown += [f"{key} {format_number(facts_of[key])}" for key in FIGURES if facts_of.get(key)]
            facts |= {name: ", ".join(shown)} if facts_of else {}
        facts |= {"weights": self.weighting} if self.weighting else {}
        facts |= {"outside of its proof": self.outside} if self.outside else {}
        facts["parameters"] = self.protocol or "–"
        if self.provenance.get("oracle"):
            facts["dual oracle"] = self.provenance["oracle"]
        about = self.status + (f": {self.message}" if self.message else "")
        return card(self.label, about, facts, curve(*self._curve(), name=self.measure) if self.measure else "")

    def _curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rounds and errors of all records."""
        return self.columns["round"].astype(float), self.columns[self.measure].astype(float)


class _Table:
    """The field `history`: if given as columns, it becomes a DataFrame when first read."""

    def __get__(self, result: Result | None, owner: type) -> Any:
        if result is None:  # read from the class
            return self
        table: Any = vars(result)["history"]
        if isinstance(table, dict):
            import pandas as pd

            table = vars(result)["history"] = pd.DataFrame(table)
        return table

    def __set__(self, result: Result, table: Any) -> None:
        vars(result)["history"] = table


Result.history = _Table()  # type: ignore[assignment]  # a descriptor gives the table


def protocol_text(protocol: Any) -> str:
    """Return a protocol as text, with the values that replace some of its own.

    Examples
    --------
    >>> protocol_text({"protocol": "unit", "eta": 0.1}), protocol_text("unit")
    ('unit with eta=0.1', 'unit')
    """
    if not isinstance(protocol, dict):
        return str(protocol or "")
    base = str(protocol.get("protocol", "theory"))
    values = {name: f"{v:.3g}" if isinstance(v, int | float) else v for name, v in protocol.items()}
    changed = ", ".join(f"{name}={value}" for name, value in values.items() if name != "protocol")
    return f"{base} with {changed}" if changed else base


def load(path: str | os.PathLike[str]) -> Result:
    """Read a result that `Result.save` wrote; refuse a file that is damaged or holds something else."""
    file = _as_path(path)
    try:
        arrays, provenance = read_npz(file)
        _check(arrays, provenance)
    except Damaged as error:
        raise InputError(
            f"{named(file)} is not a whole result file ({error}); it was cut short, changed or made by something "
            "else: run and save again"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {named(file)}: {reason(error)}; give a file that Result.save wrote") from None
    columns: Any = {name.removeprefix(COLUMN): a for name, a in arrays.items() if name.startswith(COLUMN)}
    return Result(arrays["x"], columns, provenance.pop("status"), provenance)


def _as_path(path: Any) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise InputTypeError(
            f"path must be a path, got {shown(path)}; e.g. 'run.npz', which Result.save wrote"
        ) from None


NEEDED = tuple(name for name in COLUMNS if name not in STATES)
MEASURED = (*(STATES.keys() - {*MEASURES} | {measure} for measure in MEASURES), set[str]())
"""Columns that measure progress: with a known solution, without one, and without monitoring."""
NUMBER, NOTHING = (int, float), type(None)
KINDS: dict[str, Any] = {
    "status": str,
    "method": dict,
    "problem": (dict, NOTHING),
    "network": (dict, NOTHING),
    "versions": (dict, NOTHING),
    "sweep": (dict, NOTHING),
    "reproduction": (dict, NOTHING),
    "protocol": (str, dict, NOTHING),
    "oracle": (str, NOTHING),
    "message": (str, NOTHING),
    "start_error": (*NUMBER, NOTHING),
    "rounds": (int, NOTHING),
}
"""Types of the provenance entries that code relies on; the first two are required."""
FIGURES = ("nodes", "dim", "kappa", "chi")


def _check(arrays: dict[str, np.ndarray], provenance: dict[str, Any]) -> None:
    """Refuse arrays and provenance that are not a result's; remove the format from the provenance."""
    if provenance.pop("format", None) != FORMAT:
        raise Damaged(f"its format is not {FORMAT}")
    _check_arrays(arrays)
    for name, kind in KINDS.items():
        if (name in provenance or name in ("status", "method")) and not isinstance(provenance.get(name), kind):
            raise Damaged(f"its {name} is {shown(provenance.get(name))}")
    method = provenance["method"]
    if not isinstance(method.get("name"), str) or not isinstance(method.get("title"), str):
        raise Damaged("its method has no name")
    for about in (provenance.get("problem") or {}, provenance.get("network") or {}):
        for name in FIGURES:
            if not isinstance(about.get(name), (*NUMBER, NOTHING)):
                raise Damaged(f"its {name} is {shown(about[name])}")


def _check_arrays(arrays: dict[str, np.ndarray]) -> None:
    """Refuse arrays that are not the rows and the table of a run."""
    columns = {name.removeprefix(COLUMN): array for name, array in arrays.items() if name.startswith(COLUMN)}
    missing = [name for name in NEEDED if name not in columns]
    odd = [name for name in arrays if name != "x" and not name.startswith(COLUMN)]
    if missing or odd or "x" not in arrays:
        raise Damaged(
            f"it holds {odd[0]}, which no result has" if odd else f"it lacks {missing[0] if missing else 'x'}"
        )
    if columns.keys() & STATES.keys() not in MEASURED:
        raise Damaged("some of its columns are missing")
    if arrays["x"].ndim != 2 or {array.shape for array in columns.values()} != {(len(columns["round"]),)}:
        raise Damaged("its arrays do not fit together")
    if not len(columns["round"]):
        raise Damaged("its table is empty")
    if any(array.dtype.kind not in "fiub" for array in arrays.values()):
        raise Damaged("its arrays are not numbers")
    if any(columns[name].dtype.kind not in "iu" for name in NEEDED if COLUMNS[name].whole):
        raise Damaged("its counts are not whole numbers numbers")
