"""What a run leaves: the rows, the table of records, and where they came from; saved in one open file.

The file is a NumPy archive (``.npz``): the final rows, one array per column of the table, and the provenance
as JSON text. It is written under another name first and moved into place, so it is whole or not there;
nothing in it is ever unpickled.
"""

import json
import os
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, InputTypeError
from ..html import card, curve, number
from ..problems.weighting import told

if TYPE_CHECKING:
    import pandas as pd

    from ..report.display import Figure

FORMAT = "adom-result-1"


@dataclass(frozen=True)
class Result:
    """The outcome of one run.

    Attributes
    ----------
    x : array of shape (nodes, dim)
        The rows reported at the last record.
    history : pandas.DataFrame
        One row per record: iteration, round, gradients (per node, on average), floats_sent (over all links),
        seconds (without compilation and metrics), error (sum over nodes of the squared distance to x*),
        consensus (sum over nodes of the squared distance to the mean row). Where nobody knows x*, gradient_norm (of
        the mean of the f_i at the mean row) stands in the place of error.
    status : str
        "converged": the tolerance was met. "max_rounds": the rounds are spent, and more may help, or the error is at
        the floor of rounding and no tolerance was given. "growing": they are spent, and the error rises. "stalled":
        they are spent, and the error has gone nowhere over the last half of them. "diverged": it grew by 1e12 or is
        not finite. "interrupted": by Ctrl-C.
    provenance : dict
        Method and parameters, problem, network, oracle, versions, commit, and what else made the run.
    """

    x: np.ndarray
    history: "pd.DataFrame"
    status: str
    provenance: dict[str, Any]

    @property
    def message(self) -> str:
        """What there is to say beyond the status, such as when the run diverged, or how far the tolerance still is."""
        return str(self.provenance.get("message", ""))

    @property
    def label(self) -> str:
        """A short name for legends and tables."""
        return str(self.provenance["method"]["title"])

    @property
    def measure(self) -> str:
        """The column that says how near a run came: "error", or "gradient_norm" where nobody knows the solution.

        A run without monitoring has neither; then it is "".
        """
        return next((name for name in ("error", "gradient_norm") if name in self.history), "")

    @property
    def protocol(self) -> str:
        """What the parameters are called, such as "unit" or "theory with eta=0.1".

        Examples
        --------
        >>> Result(np.zeros((1, 1)), None, "", {"protocol": {"protocol": "unit", "eta": 0.1}}).protocol
        'unit with eta=0.1'
        """
        protocol = self.provenance.get("protocol")
        if not isinstance(protocol, dict):
            return str(protocol or "")
        base = str(protocol.get("protocol", "theory"))
        changed = ", ".join(f"{name}={value:.3g}" for name, value in protocol.items() if name != "protocol")
        return f"{base} with {changed}" if changed else base

    @property
    def weighting(self) -> str:
        """How nodes of different numbers of samples are weighted, in words; "" where all have as many."""
        return told(self.provenance.get("problem", {}).get("samples"))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the result to `path` (a .npz file), whole or not at all; return the path."""
        target = Path(path)
        if target.suffix != ".npz":
            target = target.with_name(target.name + ".npz")
        columns = {f"history/{name}": column.to_numpy() for name, column in self.history.items()}
        text = json.dumps({"format": FORMAT, "status": self.status, **self.provenance}, allow_nan=False)
        with atomic(target) as partial, partial.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, x=self.x, provenance=np.array(text), **columns)
        return target

    def plot(self, *, axis: str = "round", style: str | None = None) -> "Figure":
        """Draw error and consensus against rounds, gradients, floats_sent or seconds.

        Parameters
        ----------
        axis : str
            "round", "gradients" (per node), "floats_sent", "seconds" or "all".
        style : str, optional
            "column", "page" or "slide": how wide, and how large its text; see `adom.styles`.
        """
        from ..report.figures import convergence

        return convergence([self], axis=axis, style=style)

    def __repr__(self) -> str:
        last = self.history.iloc[-1]
        extra = f" ({self.message})" if self.message else ""
        near = f"{self.measure.replace('_', ' ')} {last[self.measure]:.3e} after " if self.measure else ""
        return (
            f"Result({self.label}, {self.status}{extra}: {near}"
            f"{int(last['round'])} rounds, {last['gradients']:.0f} gradients a node"
            f"{f'; {self.weighting}' if self.weighting else ''})"
        )

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {}
        if len(self.history):
            last = self.history.iloc[-1]
            if self.measure:
                facts |= {n.replace("_", " "): float(last[n]) for n in (self.measure, "consensus") if n in last}
            budget = self.provenance.get("rounds")
            facts["rounds"] = number(int(last["round"])) + (f" of {number(budget)}" if budget else "")
            facts |= {"gradients a node": float(last["gradients"]), "floats sent": int(last["floats_sent"])}
            facts["seconds"] = float(last["seconds"])
        problem, network = self.provenance.get("problem", {}), self.provenance.get("network", {})
        for name, made, kind in (("problem", problem, "type"), ("network", network, "generator")):
            shown = [str(made.get(kind, name))]
            shown += [f"{key} {number(made[key])}" for key in ("nodes", "dim", "kappa", "chi") if made.get(key)]
            facts |= {name: ", ".join(shown)} if made else {}
        facts |= {"weights": self.weighting} if self.weighting else {}
        facts["parameters"] = self.protocol or "–"
        if self.provenance.get("oracle"):
            facts["dual oracle"] = self.provenance["oracle"]
        about = self.status + (f": {self.message}" if self.message else "")
        return card(self.label, about, facts, curve(*self._curve(), name=self.measure) if self.measure else "")

    def _curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Return rounds, and how near the run was after them."""
        return self.history["round"].to_numpy(dtype=float), self.history[self.measure].to_numpy(dtype=float)


def load(path: str | os.PathLike[str]) -> Result:
    """Read a result that `Result.save` wrote."""
    import pandas as pd

    try:
        path = Path(path)
    except TypeError:
        raise InputTypeError(f"path must be a path, got {path!r}; e.g. 'run.npz', which Result.save wrote") from None
    try:
        if path.is_file() and not zipfile.is_zipfile(path):
            raise ValueError("it is no NumPy archive")
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            provenance = json.loads(str(archive["provenance"]))
            if provenance.pop("format", None) != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            history = {
                name.removeprefix("history/"): archive[name] for name in archive.files if name.startswith("history/")
            }
            return Result(archive["x"], pd.DataFrame(history), str(provenance.pop("status")), provenance)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; give a file that Result.save wrote") from None
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(
            f"{path} is not a whole result file ({error}); it was cut short or made by something else: "
            "run and save again"
        ) from None


class atomic:  # noqa: N801  # reads as a verb in a with-statement
    """A temporary path beside `target` that replaces it when the block ends well, and vanishes otherwise."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __enter__(self) -> Path:
        try:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.target.parent, prefix=f".{self.target.name}.", suffix=".tmp")
        except OSError as error:
            raise InputError(f"cannot write {self.target}: {error.strerror}; choose another place") from None
        os.close(handle)
        self.partial = Path(name)
        return self.partial

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if kind is None:
            mode = 0o666 & ~_umask()
            self.partial.chmod(mode)
            with self.partial.open("rb") as file:
                os.fsync(file.fileno())
            self.partial.replace(self.target)
        else:
            self.partial.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise InputError(f"cannot write {self.target}: {error.strerror}; nothing was changed") from None


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
