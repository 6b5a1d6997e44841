"""Data that stay home: one file a node, of which each process opens only those of its own nodes.

A folder of shards has one LIBSVM file a node and a manifest. Whoever knows the manifest knows how many nodes and
features there are, and how large the largest node is; the samples themselves are read by `Shards.open` alone. What it
builds computes, node by node and to the bit, what the whole would.
"""

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError, nearest
from ..util.files import open_regular
from . import manifest
from .manifest import Manifest, Shard, Source
from .sample_files import parse_libsvm, read
from .samples import load
from .sets import SETS
from .splits import MOST_CONCENTRATED, shares

if TYPE_CHECKING:
    from ..problems.logistic import LogisticRegression

BY = {"rows": "contiguous", "shuffled": "shuffled", "label": "label", "dirichlet": "dirichlet"}
"""The ways to split a file, and what `adom.data.split` calls them."""
ALPHA = 0.5
"""The usual concentration of a Dirichlet split."""
DENSE = 0.4
"""The share of non-zeros above which samples are held densely."""
UNKNOWN_L2 = 2.0**-120
"""Stands for a regulariser that is not known yet. Next to any curvature it vanishes, so that L_nodes - l2, by which
`with_l2` replaces it, is the curvature to the bit; 1 would cost a small curvature its last digits."""
OURS = re.compile(r"node-[0-9]{5,}\.svm")


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
    r"""Split labelled samples into one LIBSVM file a node, and write a manifest of them.

    Every file is written under another name and moved into place, the manifest last: a folder with a manifest is whole.
    Numbers are written so that they read back to the bit; labels keep their values.

    Parameters
    ----------
    source : path or str
        A LIBSVM, CSV or NPZ file with labels of two classes, packed or not, as `adom solve --data` takes it; or the
        name of a known data set, such as "a6a". "./a6a" is a file.
    nodes : int
    out : path
        The folder; it is made if need be.
    by : str
        "rows": in the order of the file, as evenly as it goes; "shuffled", "label" or "dirichlet": see
        `adom.data.split`.
    seed : int
        Of the shuffle and of the Dirichlet draw.
    alpha : float, optional
        Concentration of the Dirichlet distribution, 0.5 by default.
    overwrite : bool
        Whether shards that the folder holds may be replaced. Their files that are no longer listed are removed.

    Returns
    -------
    Path
        The folder, as `Shards` takes it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     file = Path(place, "four.svm")
    ...     _ = file.write_text("+1 1:0.5 3:2\n-1 2:1\n+1 1:1\n-1 3:4\n")
    ...     folder = write_shards(file, 2, Path(place, "shards"))
    ...     print(sorted(path.name for path in folder.iterdir()))
    ...     Shards(folder, l2=0.1).open(1, 2).nodes
    ['manifest.json', 'node-00000.svm', 'node-00001.svm']
    1
    """
    if by not in BY:
        raise InputError(f"samples cannot be split by {by!r}; {nearest(by, BY)}")
    if alpha is not None and by != "dirichlet":
        raise InputError(f"alpha={alpha!r} has no effect on a split by {by}; it belongs to dirichlet: leave it out")
    alpha = ALPHA if alpha is None and by == "dirichlet" else alpha
    if alpha is not None and not (isinstance(alpha, float | int) and 0 < alpha <= MOST_CONCENTRATED):
        raise InputError(
            f"alpha must be positive and at most {MOST_CONCENTRATED:g}, got {alpha!r}; "
            "0.5 makes nodes fairly unlike, 100 nearly alike"
        )
    folder = Path(out)
    _check_room(source, folder, overwrite)
    given = _read_source(source)
    dealt = shares(given.labels, nodes, BY[by], seed=seed, concentration=ALPHA if alpha is None else alpha)
    _forget(folder)
    files = tuple(_write_node(folder, node, given, rows) for node, rows in enumerate(dealt))
    made = Manifest(
        format=manifest.FORMAT,
        nodes=len(dealt),
        dim=given.features.shape[1],
        classes=given.classes,
        by=by,
        seed=int(seed),
        alpha=alpha,
        source=given.source,
        files=files,
    )
    _write(folder / manifest.NAME, made.model_dump_json(indent=1).encode() + b"\n")
    if overwrite:
        listed = {file.name for file in files}
        for path in folder.iterdir():
            if OURS.fullmatch(path.name) and path.name not in listed:
                path.unlink(missing_ok=True)
    return folder


class _Given(NamedTuple):
    """What is to be split."""

    features: Any
    labels: np.ndarray
    classes: tuple[int | float, int | float]
    source: Source


def _read_source(source: str | os.PathLike[str]) -> _Given:
    """Read a data set or a file, and refuse what is no binary classification."""
    from scipy.sparse import csr_array

    if isinstance(source, str) and source in SETS:
        features, labels = load(source)
        origin = Source(name=source, sha256=SETS[source].pieces[0].sha256)
    else:
        features, labels = read(source)
        with Path(source).open("rb") as file:
            origin = Source(name=Path(source).name, sha256=hashlib.file_digest(file, "sha256").hexdigest())
    matrix = csr_array(features, dtype=np.float64)
    matrix.sum_duplicates()  # an archive may list a feature twice, or out of order
    if labels.dtype.kind not in "fiub" or not (np.isfinite(labels).all() and np.isfinite(matrix.data).all()):
        raise InputError(f"features and labels in {source} must be finite numbers; drop the samples that are not")
    values = np.unique(labels.astype(np.float64))
    if values.size != 2:
        shown = ", ".join(_text(value) for value in values[:5].tolist()) + (", ..." if values.size > 5 else "")
        raise InputError(
            f"labels in {source} must be of exactly two classes, got {values.size}: {shown}; "
            "logistic regression here is binary: map or filter the classes first"
        )
    smaller, larger = (int(value) if abs(value) < 2**53 and value.is_integer() else value for value in values.tolist())
    return _Given(matrix, labels.astype(np.float64), (smaller, larger), origin)


def _check_room(source: str | os.PathLike[str], folder: Path, overwrite: bool) -> None:
    """Refuse a folder that holds shards already, and one whose files are what is to be split."""
    if (folder / manifest.NAME).exists() and not overwrite:
        raise InputError(
            f"{folder} holds a {manifest.NAME} already; take another folder, or overwrite=True (--overwrite) "
            "to replace its shards"
        )
    path = Path(source)
    if OURS.fullmatch(path.name) and path.parent.resolve() == folder.resolve():
        raise InputError(f"{path} would be overwritten by its own split; take another folder than {folder}")


def _forget(folder: Path) -> None:
    """Remove the manifest of older shards: none may list files that are being replaced."""
    try:
        (folder / manifest.NAME).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}; choose another place") from None


def _write_node(folder: Path, node: int, given: _Given, rows: np.ndarray) -> Shard:
    """Write the samples of a node; return what the manifest says of them."""
    name, features = f"node-{node:05d}.svm", given.features[rows]
    content = _libsvm(features, given.labels[rows])
    _write(folder / name, content)
    digest = hashlib.sha256(content).hexdigest()
    return Shard(name=name, samples=len(rows), nonzeros=int(features.nnz), sha256=digest)


def _write(path: Path, content: bytes) -> None:
    from ..util.files import atomic

    with atomic(path) as partial:
        partial.write_bytes(content)


def _libsvm(features: Any, labels: np.ndarray) -> bytes:
    r"""Return samples as LIBSVM text.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> _libsvm(csr_array([[0.1, 0.0], [0.0, 0.0]]), np.array([1.0, -1.0]))
    b'1 1:0.1\n-1\n'
    """
    values = map(_text, features.data.tolist())
    pairs = [f"{index + 1}:{value}" for index, value in zip(features.indices.tolist(), values, strict=True)]
    starts = features.indptr.tolist()
    samples = zip(labels.tolist(), starts[:-1], starts[1:], strict=True)
    return "".join(f"{' '.join([_text(label), *pairs[start:end]])}\n" for label, start, end in samples).encode()


def _text(value: float) -> str:
    """Return the shortest text that reads back as the same number.

    Examples
    --------
    >>> _text(1.0), _text(0.1), _text(-2.5e-300), _text(1 / 3)
    ('1', '0.1', '-2.5e-300', '0.3333333333333333')
    """
    return repr(value).removesuffix(".0")


class Shards:
    """Logistic regression on data that lie in one file a node, and are opened only where a node lives.

    Making one reads the manifest and no samples. With engine "mpi" every rank opens the files of its own nodes;
    mu and L are then agreed on over the network.

    Parameters
    ----------
    folder : path
        What `write_shards` or `adom split` wrote. On each machine it has to hold the manifest, and the files of the
        nodes that are opened there.
    l2, kappa : float
        Exactly one, as for `LogisticRegression`: the regulariser itself, or the condition number that it is chosen to
        give.

    Attributes
    ----------
    folder : Path
    nodes, dim : int
    samples : array of shape (nodes,)
        How many samples each node has.
    dense : bool
        Whether samples are held densely: it is decided over all nodes, so the same for each of them.
    l2, kappa : float or None
        As given.
    manifest : Manifest
        All that the folder says of its files.
    reading : Path
        The file that was opened last.
    """

    def __init__(self, folder: str | os.PathLike[str], *, l2: float | None = None, kappa: float | None = None) -> None:
        from ..problems.linear_model import check_regulariser

        check_regulariser(l2, kappa)
        self.folder, self.l2, self.kappa = Path(folder), l2, kappa
        self.manifest = manifest.read_manifest(self.folder)
        self.nodes, self.dim = self.manifest.nodes, self.manifest.dim
        self.samples = np.array([file.samples for file in self.manifest.files])
        nonzeros = sum(file.nonzeros for file in self.manifest.files)
        self.reading = self.folder
        self.dense = nonzeros > DENSE * int(self.samples.sum()) * self.dim

    def open(self, first: int, end: int) -> "LogisticRegression":
        """Return the problem of the nodes from `first` up to `end`, opening their files and no others.

        What it computes for a node is, to the bit, what `whole` computes for it.

        Its l2 is the one given. Where kappa was given that is not known before all nodes have been asked, and l2 is
        a placeholder: replace it by ``with_l2(shards.regulariser(c))``, where c is the greatest of
        ``block.L_nodes - block.l2`` over the nodes of all blocks.
        """
        for name, place in (("first", first), ("end", end)):
            if isinstance(place, bool) or not isinstance(place, int | np.integer):
                raise InputError(f"{name} must be a whole number, got {place!r}; nodes count from 0")
        if not 0 <= first < end <= self.nodes:
            raise InputError(
                f"nodes {first} up to {end} cannot be opened: {self.folder} has nodes 0 up to {self.nodes}, "
                "and at least one must be asked for"
            )
        return self._built(int(first), int(end), UNKNOWN_L2 if self.l2 is None else self.l2, None)

    def whole(self) -> "LogisticRegression":
        """Return the problem of all nodes, with the l2 or kappa given; all files must be there."""
        return self._built(0, self.nodes, self.l2, self.kappa)

    def weighting(self) -> dict[str, Any]:
        """Return how many samples the nodes have and what counts alike."""
        from ..problems.weighting import weighting

        return weighting(self.samples, np.ones(self.nodes))

    def regulariser(self, curvature: float) -> float:
        """Return l2: the one given, or the one that gives kappa.

        Parameters
        ----------
        curvature : float
            The greatest L_i - l2 of all nodes.
        """
        from ..problems.linear_model import regulariser

        return regulariser(curvature, self.l2, self.kappa)

    def _built(self, first: int, end: int, l2: float | None, kappa: float | None) -> "LogisticRegression":
        from ..problems.logistic import LogisticRegression

        data = [self._read(node) for node in range(first, end)]
        longest = int(self.samples.max())
        return LogisticRegression.from_nodes(data, l2=l2, kappa=kappa, classes=self.manifest.classes, longest=longest)

    def _read(self, node: int) -> tuple[Any, np.ndarray]:
        """Return the samples of a node, if its file is the one that the manifest means."""
        listed = self.manifest.files[node]
        path = self.reading = self.folder / listed.name
        try:
            with open_regular(path) as file:
                content = file.read()
        except OSError as error:
            raise InputError(
                f"cannot read {path}, the samples of node {node}: {error.strerror or error}; "
                "copy it to this machine, or let another one hold the node"
            ) from None
        got = hashlib.sha256(content).hexdigest()
        if got != listed.sha256:
            raise InputError(
                f"{path} is not the file of node {node} that the manifest lists: its sha256 must be {listed.sha256}, "
                f"got {got}; copy it again, or split the data again"
            )
        features, labels = parse_libsvm(path, content, self.dim)
        found = (len(labels), int(features.nnz))
        if found != (listed.samples, listed.nonzeros):
            raise InputError(
                f"{path} has {found[0]} samples and {found[1]} non-zeros, and the manifest says {listed.samples} and "
                f"{listed.nonzeros} for node {node}; mend the manifest, or split the data again"
            )
        smaller, larger = self.manifest.classes
        strange = labels[(labels != smaller) & (labels != larger)]
        if strange.size:
            raise InputError(
                f"{path}, the samples of node {node}, has the label {_text(float(strange[0]))}, and the manifest's "
                f"classes are {smaller} and {larger}; mend the file or the manifest"
            )
        return (features.toarray() if self.dense else features), labels

    def __repr__(self) -> str:
        given = f"l2={self.l2:g}" if self.kappa is None else f"kappa={self.kappa:g}"
        samples = int(self.samples.sum())
        return f"Shards({str(self.folder)!r}, nodes={self.nodes}, dim={self.dim}, samples={samples}, {given})"
