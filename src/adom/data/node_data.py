"""Data that lie apart: every process opens the shards of its own nodes, and a model is fitted to all of them."""

import hashlib
import os
from pathlib import Path
from typing import Any

from ..errors import InputError, nearest, shown
from ..util.checks import check_real, check_whole
from ..util.files import content
from .node_shards import NAME, NodeShard, open_shard, shard_names

MEMORY = 2.0**28
MODELS = ("logistic", "ridge")


class Wanted:
    """The model that nodes want to fit together; the parameters are those of `NodeData`."""

    def __init__(
        self,
        *,
        model: str = "logistic",
        C: float | None = None,
        alpha: float | None = None,
        l2: float | None = None,
        kappa: float | None = None,
        scale: bool = False,
        intercept: bool = True,
        count: str = "samples",
        memory: float = MEMORY,
    ) -> None:
        if model not in MODELS:
            raise InputError(f"model must be one of {', '.join(MODELS)}, got {shown(model)}; {nearest(model, MODELS)}")
        self.model, self.scale, self.intercept, self.count = model, bool(scale), bool(intercept), count
        self.memory = check_real("memory", memory, 0.0, float("inf"), "e.g. memory=2**28")
        self.penalty = self._penalty({"C": C, "alpha": alpha, "l2": l2, "kappa": kappa})

    def _penalty(self, given: dict[str, float | None]) -> tuple[str, float]:
        """Return the penalty that was chosen: its name and value."""
        own, foreign = ("alpha", "C") if self.model == "ridge" else ("C", "alpha")
        chosen = {name: value for name, value in given.items() if value is not None}
        if foreign in chosen:
            raise InputError(f"{foreign}={chosen[foreign]} has no effect on a {self.model} model; give {own}")
        if len(chosen) > 1:
            raise InputError(f"give one of {', '.join(chosen)}; the others follow from it")
        if own in chosen and self.count != "samples":
            raise InputError(f"{own}={chosen[own]} is for samples that count alike, and here nodes do; give l2")
        if not chosen and self.count != "samples":
            raise InputError("count='nodes' needs l2 or kappa: C and alpha are for samples that count alike; give l2")
        name, value = next(iter(chosen.items()), (own, 1.0))
        least = 1.0 if name == "kappa" else 0.0
        return name, check_real(name, value, least, float("inf"), f"e.g. {name}=1", strict=True)


class NodeData(Wanted):
    """A model to be fitted to shards that `adom shard` made on each machine.

    Creating one reads no samples. `adom.solve` lets the nodes compare their columns, agree on classes, counts, means
    and scales over their links, and fit the model; ``result.model()`` is then the same on every rank.

    Parameters
    ----------
    folder : path
        The shards of this machine, or of all nodes where they are on one.
    nodes : int, optional
        How many nodes there are on all machines; by default as many as there are shards in the folder.
    model : str
        "logistic" for classes, two or more; "ridge" for numbers.
    C, alpha, l2, kappa : float, optional
        The penalty, one of them at most: scikit-learn's C (logistic) or alpha (ridge), 1 by default; the regulariser
        of the f_i itself; or the condition number that it is chosen to give.
    scale : bool
        Whether features are divided by their standard deviation, and dense ones centred, over the samples of all nodes.
    intercept : bool
        Whether there is an intercept, which is not penalised.
    count : str
        "samples" count alike, as in a fit to the pooled data, or "nodes".
    memory : float
        Bytes that the samples of a node may take. If those of any node take more, samples stay on the disk, on all
        nodes, and every gradient reads them in blocks.

    Attributes
    ----------
    names : list of str
        The shards in the folder.
    reading : Path
        The file that was opened last.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        nodes: int | None = None,
        model: str = "logistic",
        C: float | None = None,
        alpha: float | None = None,
        l2: float | None = None,
        kappa: float | None = None,
        scale: bool = False,
        intercept: bool = True,
        count: str = "samples",
        memory: float = MEMORY,
    ) -> None:
        self.folder = self.reading = Path(folder)
        self.names = shard_names(self.folder)
        if not self.names:
            raise InputError(f"{folder} holds no shard; make one with `adom shard DATA --node NAME --out {folder}`")
        if nodes is not None:
            check_whole("nodes", nodes, len(self.names), f"{folder} alone holds {len(self.names)}")
        self.nodes = nodes or len(self.names)
        super().__init__(
            model=model,
            C=C,
            alpha=alpha,
            l2=l2,
            kappa=kappa,
            scale=scale,
            intercept=intercept,
            count=count,
            memory=memory,
        )

    def seen(self) -> dict[str, str]:
        """Return the checksums of what the shards in the folder say of themselves, by name."""
        return {
            name: hashlib.sha256(content(self.folder / name / NAME, "make it again")).hexdigest()[:32]
            for name in self.names
        }

    def open(self, names: list[str]) -> list[NodeShard]:
        """Open some of the shards in the folder."""

        def note(path: Path) -> None:
            self.reading = path

        return [open_shard(self.folder / name, note) for name in names]

    def __repr__(self) -> str:
        name, value = self.penalty
        words = f"NodeData({str(self.folder)!r}, nodes={self.nodes}, model={self.model!r}, {name}={value:g}"
        return f"{words}{', scale=True' if self.scale else ''}{'' if self.intercept else ', intercept=False'})"


def regulariser(penalty: tuple[str, float], samples: int, curvature: float) -> float:
    """Return l2 from a penalty, the number of all samples and the greatest curvature of a node.

    Examples
    --------
    >>> regulariser(("C", 0.5), 100, 3.0), regulariser(("alpha", 2.0), 100, 3.0), regulariser(("kappa", 4.0), 100, 3.0)
    (0.02, 0.02, 1.0)
    """
    name, value = penalty
    if name == "kappa":
        if curvature == 0:
            raise InputError("kappa cannot be chosen when every feature is zero; give l2 instead")
        return curvature / (value - 1)
    return {"C": 1 / (value * samples), "alpha": value / samples, "l2": value}[name]


def describe_penalty(model: str, count: str, l2: float, samples: int) -> dict[str, Any]:
    """Return the penalty in force, also as scikit-learn counts it where samples count alike."""
    if count != "samples":
        return {"l2": l2}
    return {"l2": l2, **({"alpha": l2 * samples} if model == "ridge" else {"C": 1 / (l2 * samples)})}
