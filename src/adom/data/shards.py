"""Samples that were split: one shard per node, so that each process opens only the shards of its own nodes.

A folder has one shard per node, as `adom shard` makes them (`adom.data.node_shards`), and a manifest: JSON with a
checksum, checked completely when it is read, and the only file that every machine needs. It lists the shard of each
node, its size and its checksum. Samples are read by `Shards.open` for some nodes and `Shards.whole` for all; both
compute the same bits for a node.
"""

import hashlib
import os
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Damaged, InputError, nearest, shown
from ..problems.limits import LARGEST_DIM
from ..util.checked_json import made_from, read_checked, write_checked
from ..util.checks import check_whole
from ..util.files import content, kind, named, reason
from ..util.text import format_exact
from .model import unnamed
from .node_shards import NAME, NODE, open_shard, put_shard, shard_names, unfinished
from .paper_data import load
from .sample_files import Block, Table, read
from .sets import SETS
from .splits import CONCENTRATION, check_concentration, shares

if TYPE_CHECKING:
    from ..problems.linear_model import LogisticRegression

MANIFEST = "manifest.json"
FORMAT = "adom-shards-3"
LARGEST = 2**30
"""Most characters of a manifest, enough for several million nodes."""

BY = {"rows": "contiguous", "shuffled": "shuffled", "label": "label", "dirichlet": "dirichlet"}
"""The ways to split a file, and their names in `adom.data.split`."""
DENSE = 0.4
"""Share of non-zeros above which samples are stored as dense arrays; it is that of all nodes, and so they are alike."""
UNKNOWN_L2 = 2.0**-120
"""Placeholder for a regulariser that is not known yet. It is negligible beside any curvature, so L_nodes - l2, which
`with_l2` needs, is exactly the curvature; a placeholder of 1 would cost a small curvature its last digits."""
OWN_NAME = re.compile(r"node-[0-9]{5,}")
"""The names of the shards that a split writes."""


@dataclass(frozen=True)
class Listed:
    """The shard of one node; the checksum is that of its ``shard.json``, which has those of its arrays."""

    name: str
    samples: int
    sha256: str


@dataclass(frozen=True)
class Source:
    """The file that was split."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The list of shards.

    Attributes
    ----------
    format : str
    dim, nonzeros : int
        Features, and values that are not 0, of all samples.
    classes : list of two numbers
        The two labels, the smaller first; it counts as -1.
    by : str
        How samples were split, with `seed`, and `alpha` if it is "dirichlet".
    source : Source
    files : list of Listed
        One for each node, in order.
    """

    format: str
    dim: int
    nonzeros: int
    classes: list[float]
    by: str
    seed: int
    alpha: float | None
    source: Source
    files: list[Listed]

    @property
    def density(self) -> float:
        """Share of the values that are not 0."""
        return self.nonzeros / (sum(file.samples for file in self.files) * self.dim)

    def flaw(self) -> str:
        """Describe what cannot be so; "" if all can."""
        names = {file.name for file in self.files}
        strange = next((name for name in sorted(names) if not NODE.fullmatch(name)), None)
        if self.format != FORMAT:
            return f"its format is {shown(self.format)}, not {FORMAT}"
        if strange is not None:
            return f"a shard must have a plain name inside the folder, got {shown(strange)}"
        if not self.files or len(names) < len(self.files):
            return "it must list one shard for each node"
        if not 1 <= self.dim <= LARGEST_DIM or any(file.samples < 1 for file in self.files):
            return "it must list features and samples"
        if len(self.classes) != 2 or not self.classes[0] < self.classes[1]:
            return f"its classes must be two labels, the smaller first, got {self.classes}"
        return ""


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a folder; nothing else is opened."""
    path = folder / MANIFEST
    if kind(path) == "nothing":
        raise InputError(
            f"{folder} holds no {MANIFEST}; give a folder that `adom split DATA --nodes N --out {folder}` wrote"
        )
    try:
        manifest = made_from(read_checked(path, LARGEST), Manifest)
        if flaw := manifest.flaw():
            raise Damaged(flaw)
    except Damaged as error:
        raise InputError(f"{path} is not a manifest of shards: {error}; split the data again") from None
    except OSError as error:
        raise InputError(f"cannot read {named(path)}: {reason(error)}; check the path and its permissions") from None
    return manifest


def write_shards(
    source: str | os.PathLike[str],
    nodes: int,
    out: str | os.PathLike[str],
    by: str = "rows",
    *,
    seed: int = 0,
    alpha: float | None = None,
    overwrite: bool = False,
) -> Path:
    r"""Split labelled samples into one shard per node, and write a manifest.

    Shards are written whole, the manifest last, so a folder with a manifest is complete. Labels keep their values.

    Parameters
    ----------
    source : path or str
        A LIBSVM, CSV or NPZ file with labels of two classes, also compressed, as for `adom solve --data`; or the name
        of a known data set, such as "a6a" ("./a6a" is a file).
    nodes : int
    out : path
        The folder; it is created if it is missing.
    by : str
        "rows": in the order of the file, as evenly as possible; "shuffled", "label" or "dirichlet": see
        `adom.data.split`.
    seed : int
        Seed of the shuffle and of the Dirichlet draw.
    alpha : float, optional
        Concentration of the Dirichlet distribution, 0.5 by default.
    overwrite : bool
        Whether shards in the folder may be replaced; those that are not in the new manifest are removed.

    Returns
    -------
    Path
        The folder, as `Shards` takes it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     file = Path(home, "four.svm")
    ...     _ = file.write_text("+1 1:0.5 3:2\n-1 2:1\n+1 1:1\n-1 3:4\n")
    ...     folder = write_shards(file, 2, Path(home, "shards"))
    ...     print(sorted(path.name for path in folder.iterdir()))
    ...     Shards(folder, l2=0.1).open(1, 2).nodes
    ['manifest.json', 'node-00000', 'node-00001']
    1
    """
    if by not in BY:
        raise InputError(f"samples cannot be split by {by!r}; {nearest(by, BY)}")
    if alpha is not None and by != "dirichlet":
        raise InputError(f"alpha={alpha!r} has no effect on a split by {by}; it belongs to dirichlet: leave it out")
    if by == "dirichlet":
        alpha = CONCENTRATION if alpha is None else alpha
        check_concentration("alpha", alpha)
    folder = Path(out)
    _check_folder(folder, overwrite)
    features, labels, origin = _read_source(source)
    classes = _two_classes(source, labels)
    split = shares(labels, nodes, BY[by], seed=seed, concentration=alpha or CONCENTRATION)
    dense = features.nnz > DENSE * features.shape[0] * features.shape[1]
    with unfinished(folder, ".split.") as partial:
        files = []
        for node, rows in enumerate(split):
            part = features[rows].toarray() if dense else features[rows]
            table = Table(unnamed(part.shape[1]), "label", iter([Block(part, labels[rows])]))
            facts = put_shard(Path(source), table, f"node-{node:05d}", partial) / NAME
            files.append(Listed(facts.parent.name, len(rows), hashlib.sha256(facts.read_bytes()).hexdigest()))
        (folder / MANIFEST).unlink(missing_ok=True)  # no manifest may list shards that are being replaced
        for old in _own_shards(folder):
            shutil.rmtree(old)
        for file in files:
            (partial / file.name).rename(folder / file.name)
    listing = Manifest(FORMAT, features.shape[1], int(features.nnz), classes, by, int(seed), alpha, origin, files)
    write_checked(folder / MANIFEST, asdict(listing))
    return folder


def _own_shards(folder: Path) -> list[Path]:
    """Return the shards in a folder whose names are those of a split."""
    return [folder / name for name in shard_names(folder) if OWN_NAME.fullmatch(name)]


def _check_folder(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that already holds shards which a split would replace."""
    found = next((path.name for path in (folder / MANIFEST, *_own_shards(folder)) if path.exists()), None)
    if found and not overwrite:
        raise InputError(
            f"{folder} holds a {found} already; take another folder, or overwrite=True (--overwrite) "
            "to replace its shards"
        )


def _read_source(source: str | os.PathLike[str]) -> tuple[Any, np.ndarray, Source]:
    """Read a data set or a file: its features, labels and origin."""
    from scipy.sparse import csr_array

    if isinstance(source, str) and source in SETS:
        features, labels = load(source)
        origin = Source(source, SETS[source].pieces[0].sha256)
    else:
        features, labels = read(source)
        with Path(source).open("rb") as file:
            origin = Source(Path(source).name, hashlib.file_digest(file, "sha256").hexdigest())
    matrix = csr_array(features, dtype=np.float64)
    matrix.sum_duplicates()  # an archive may list a feature twice, or out of order
    if labels.dtype.kind != "f":
        raise InputError(f"labels in {source} must be numbers, got {shown(str(labels[0]))}; map the classes to numbers")
    return matrix, labels, origin


def _two_classes(source: str | os.PathLike[str], labels: np.ndarray) -> list[float]:
    """Return the two labels, the smaller first, as integers if they are whole."""
    values = np.unique(labels).tolist()
    if len(values) != 2:
        some = ", ".join(map(format_exact, values[:5])) + (", ..." if len(values) > 5 else "")
        raise InputError(
            f"labels in {source} must be of exactly two classes, got {len(values)}: {some}; "
            "logistic regression here is binary: map or filter the classes first"
        )
    return [int(value) if abs(value) < 2**53 and value.is_integer() else value for value in values]


class Shards:
    """Logistic regression on one shard of samples per node, opened only by the process that runs the node.

    Creating one reads the manifest and no samples. With engine "mpi" every rank opens the shards of its own nodes;
    the ranks then agree on mu and L over the network.

    Parameters
    ----------
    folder : path
        Written by `write_shards` or `adom split`. Each machine needs the manifest and the shards of its own nodes.
    l2, kappa, C : float
        Exactly one: the regulariser itself, the condition number from which it is computed, or scikit-learn's C,
        which is 1 / (l2 N) for N samples.
    count : str
        What has equal weight: "samples", as in a fit to the pooled data, or "nodes".

    Attributes
    ----------
    folder : Path
    nodes, dim : int
    samples : array of shape (nodes,)
        Number of samples of each node.
    l2, kappa : float or None
        As given; l2 also if C was given.
    weight : float or None
        Weight of each sample; None if it is 1 over the number of samples of its node.
    manifest : Manifest
        The list of shards.
    reading : Path
        The shard that was opened last.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        l2: float | None = None,
        kappa: float | None = None,
        C: float | None = None,
        count: str = "samples",
    ) -> None:
        from ..problems.samples import check_regulariser, l2_of, sample_weight

        self.folder, self.kappa, self.count = Path(folder), kappa, count
        self.manifest = read_manifest(self.folder)
        self.nodes, self.dim = len(self.manifest.files), self.manifest.dim
        self.samples = np.array([file.samples for file in self.manifest.files])
        self.weight = sample_weight(self.samples, count)
        if C is not None and l2 is not None:
            raise InputError(f"give exactly one of l2, kappa and C, got l2={l2!r} and C={C!r}; e.g. C=1.0")
        self.l2 = l2 if C is None else l2_of(C, int(self.samples.sum()), count)
        check_regulariser(self.l2, kappa)
        self.reading = self.folder

    def open(self, first: int, end: int) -> "LogisticRegression":
        """Return the problem of the nodes ``range(first, end)``, opening only their shards.

        It computes the same bits for a node as `whole`.

        If kappa was given, l2 depends on all nodes and is only a placeholder here. Replace it by
        ``with_l2(shards.regulariser(c))``, where c is the maximum of ``block.L_nodes - block.l2`` over the nodes of
        all blocks.
        """
        first = check_whole("first", first, 0, "nodes count from 0")
        end = check_whole("end", end, 1, "nodes count from 0")
        if not first < end <= self.nodes:
            raise InputError(
                f"nodes {first} up to {end} cannot be opened: {self.folder} has nodes 0 up to {self.nodes}; "
                "choose at least one of them"
            )
        return self._build(first, end, UNKNOWN_L2 if self.l2 is None else self.l2, None)

    def listed(self) -> list[str]:
        """Return the checksums of all shards, which are the same on all machines."""
        return [file.sha256 for file in self.manifest.files]

    def whole(self) -> "LogisticRegression":
        """Return the problem of all nodes with the given l2 or kappa; all shards must be present."""
        return self._build(0, self.nodes, self.l2, self.kappa)

    def weighting(self) -> dict[str, Any]:
        """Return the sizes of nodes and how samples are weighted; see `adom.problems.samples`."""
        from ..problems.samples import weighting

        return weighting(self.samples, np.ones(self.nodes) if self.weight is None else self.weight * self.samples)

    def model(self, l2: float) -> dict[str, Any]:
        """Return the description of a model with this regulariser, without its coefficients."""
        from ..problems.losses import LOGISTIC
        from ..problems.samples import penalty_of

        penalty = penalty_of(LOGISTIC, l2, self.weighting(), int(self.samples.sum()))
        classes = tuple(self.manifest.classes)
        return {
            "kind": LOGISTIC.name, "features": self.dim, "classes": classes, "intercept": False, "penalty": penalty
        }  # fmt: skip

    def regulariser(self, curvature: float) -> float:
        """Return l2: the one given, or the one that gives kappa.

        Parameters
        ----------
        curvature : float
            The largest L_i - l2 of all nodes.
        """
        from ..problems.samples import regulariser

        return regulariser(curvature, self.l2, self.kappa)

    def _build(self, first: int, end: int, l2: float | None, kappa: float | None) -> "LogisticRegression":
        from ..problems.linear_model import LogisticRegression

        data = [self._read(node) for node in range(first, end)]
        longest, (smaller, larger) = int(self.samples.max()), self.manifest.classes
        weights = None if self.weight is None else [np.full(len(labels), self.weight) for _, labels in data]
        return LogisticRegression.from_nodes(
            data, l2=l2, kappa=kappa, classes=(smaller, larger), longest=longest, weights=weights
        )

    def _read(self, node: int) -> tuple[Any, np.ndarray]:
        """Read and check the samples of a node."""
        listed = self.manifest.files[node]
        path = self.reading = self.folder / listed.name
        remedy = f"it holds the samples of node {node}: copy it to this machine, or let another one run the node"
        got = hashlib.sha256(content(path / NAME, remedy)).hexdigest()
        if got != listed.sha256:
            raise InputError(
                f"{path} is not the shard of node {node} in the manifest: the sha256 of its {NAME} must be "
                f"{listed.sha256}, got {got}; copy it again, or split the data again"
            )
        shard = open_shard(path)
        facts, labels = shard.facts, np.array(shard.target)
        if (facts.samples, facts.width, facts.labels) != (listed.samples, self.dim, None):
            raise InputError(
                f"{path} has {facts.samples} samples of {facts.width} features, and the manifest lists "
                f"{listed.samples} of {self.dim} for node {node}; split the data again"
            )
        smaller, larger = self.manifest.classes
        other = labels[(labels != smaller) & (labels != larger)]
        if other.size:
            raise InputError(
                f"{path}, the samples of node {node}, has the label {format_exact(float(other[0]))}, and the "
                f"manifest's classes are {smaller} and {larger}; split the data again"
            )
        return shard.features.copy(), labels

    def __repr__(self) -> str:
        given = f"l2={self.l2:g}" if self.kappa is None else f"kappa={self.kappa:g}"
        samples = int(self.samples.sum())
        return f"Shards({str(self.folder)!r}, nodes={self.nodes}, dim={self.dim}, samples={samples}, {given})"
