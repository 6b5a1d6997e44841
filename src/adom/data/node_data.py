"""Distributed data: every process opens the shards of its own nodes, and one model is fitted to all shards."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError, nearest, shown
from ..problems.losses import LOSSES, USUAL_MODEL, models
from ..problems.samples import regulariser
from ..util.checks import check_real, check_whole
from ..util.files import content
from .node_shards import NAME, NodeShard, open_shard, shard_names

MEMORY = 2.0**28


@dataclass(kw_only=True, eq=False, repr=False)
class ModelSettings:
    """Settings of the model to fit; see `NodeData` for the parameters."""

    model: str = USUAL_MODEL
    C: float | None = None
    alpha: float | None = None
    l2: float | None = None
    kappa: float | None = None
    scale: bool = False
    intercept: bool = True
    count: str = "samples"
    memory: float = MEMORY

    def __post_init__(self) -> None:
        known = models()
        if self.model not in known:
            words = f"model must be one of {', '.join(known)}, got {shown(self.model)}"
            raise InputError(f"{words}; {nearest(self.model, known)}")
        self.scale, self.intercept = bool(self.scale), bool(self.intercept)
        check_real("memory", self.memory, 0.0, float("inf"), "e.g. memory=2**28")
        self.penalty = self._penalty()

    def _penalty(self) -> tuple[str, float]:
        """Return the name and value of the penalty."""
        own = LOSSES[self.model].penalty
        foreign = "C" if own == "alpha" else "alpha"
        given = {"C": self.C, "alpha": self.alpha, "l2": self.l2, "kappa": self.kappa}
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

    def regulariser(self, samples: int, curvature: float) -> float:
        """Return l2 for the penalty, given the number of all samples and the largest curvature of a node.

        Examples
        --------
        >>> [ModelSettings(**given).regulariser(100, 3.0) for given in ({"C": 0.5}, {"kappa": 4.0})]
        [0.02, 1.0]
        >>> ModelSettings(model="ridge", alpha=2.0).regulariser(100, 3.0)
        0.02
        """
        name, value = self.penalty
        known = {"C": 1 / (value * samples), "alpha": value / samples, "l2": value}
        return regulariser(curvature, known.get(name), value if name == "kappa" else None)


class NodeData(ModelSettings):
    """A model to fit to the shards that `adom shard` made on each machine.

    Creating one reads no samples. `adom.solve` lets the nodes compare their columns, agree on classes, counts, means
    and scales over their links, and fit the model; ``result.model()`` is then the same on every rank.

    Parameters
    ----------
    folder : path
        Folder with the shards of this machine, or of all nodes if they run on one machine.
    nodes : int, optional
        Number of nodes on all machines; by default the number of shards in the folder.
    model : str
        "logistic" for classes, two or more; "ridge" for numbers.
    C, alpha, l2, kappa : float, optional
        The penalty, at most one of: scikit-learn's C (logistic) or alpha (ridge), 1 by default; the regulariser l2 of
        the f_i; or the condition number kappa from which l2 is computed.
    scale : bool
        Whether to divide features by their standard deviation over the samples of all nodes, and centre dense ones.
    intercept : bool
        Whether to fit an intercept, which is not penalised.
    count : str
        What has equal weight: "samples", as in a fit to the pooled data, or "nodes".
    memory : float
        Bytes that the samples of a node may take. If any node needs more, all nodes keep their samples on the disk
        and read them in blocks for every gradient.

    Attributes
    ----------
    names : list of str
        Names of the shards in the folder.
    reading : Path
        The file that was opened last.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        nodes: int | None = None,
        model: str = USUAL_MODEL,
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
        penalty = {"C": C, "alpha": alpha, "l2": l2, "kappa": kappa}
        super().__init__(model=model, scale=scale, intercept=intercept, count=count, memory=memory, **penalty)

    def seen(self) -> dict[str, str]:
        """Return the checksum of each shard's ``shard.json``, by name of the shard."""
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
