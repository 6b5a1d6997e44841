"""Agreement of nodes before they fit a model: on columns, classes, counts, means, scales and the penalty.

It needs only `Links.everyone`, which gathers numbers from all nodes over their links. Samples stay on their node. Nodes
send only names, classes, counts, and statistics such as sums over their samples.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..errors import InputError, shown
from ..problems.losses import LOGISTIC, LOSSES, RIDGE, SOFTMAX, USUAL_MODEL, Loss
from ..problems.samples import largest_curvature, sample_weight
from .node_data import ModelSettings
from .node_shards import MOST_LABELS, NodeShard

if TYPE_CHECKING:  # an agent prepares data without JAX
    from ..problems.linear_model import LinearModel
    from ..problems.streamed import Streamed

Array = np.ndarray
HELD = 100.0
"""Minimum ratio of the curvature along the intercept to l2, the curvature of its proximal term."""
RAREST = 1e-4
"""Lower bound on `_bend`, which is about the share of the rarest class."""


class Links(Protocol):
    """Communication among all nodes."""

    def everyone(self, values: Array) -> Array:
        """Take one row of numbers per own node; return the rows of all nodes, in the same order everywhere."""


def share(links: Links, words: Sequence[Any]) -> list[Any]:
    """Take one JSON-serialisable value per own node; return the values of all nodes."""
    texts = [json.dumps(each).encode() for each in words]
    longest = int(links.everyone(np.array([[float(len(text))] for text in texts])).max())
    rows = np.zeros((len(texts), longest))
    for row, text in zip(rows, texts, strict=True):
        row[: len(text)] = np.frombuffer(text, dtype=np.uint8)
    said = links.everyone(rows)
    return [json.loads(bytes(row.astype(np.uint8)).rstrip(b"\0")) for row in said]


@dataclass(frozen=True)
class Agreed:
    """What all nodes have agreed on.

    Attributes
    ----------
    kind : str
        Name of the loss.
    names : list of str
        Names of the nodes.
    features : list of str
    target : str
    classes : list
        Numbers or strings, sorted; empty if the targets are numbers.
    counts : array of shape (nodes,)
        Number of samples of each node.
    fingerprint : str
        Digest of the columns.
    sparse, scaled, intercept : bool
    count, penalty
        As in `NodeData`.
    means, scales : array of shape (features,)
        Features are scaled by subtracting the means, then dividing by the scales; 0 and 1 change nothing.
    middle, unit : float
        The same for targets that may be shifted and scaled.
    l2, column : float
        The regulariser, and the value of the intercept's constant column; 0 without such a column.
    streamed : bool
        Whether samples stay on the disk because those of some node exceed the allowed memory.
    """

    kind: str
    names: list[str]
    features: list[str]
    target: str
    classes: list[Any]
    counts: Array
    fingerprint: str
    sparse: bool
    scaled: bool
    intercept: bool
    count: str
    means: Array
    scales: Array
    middle: float = 0.0
    unit: float = 1.0
    l2: float = 0.0
    column: float = 0.0
    streamed: bool = False

    @property
    def samples(self) -> int:
        """The number of samples of all nodes."""
        return int(self.counts.sum())

    @property
    def loss(self) -> Loss:
        """The loss of this kind of model."""
        return LOSSES[self.kind]

    @property
    def vectors(self) -> int:
        """Number of coefficient vectors: one, or one per class."""
        return self.loss.vectors(len(self.classes))

    @property
    def width(self) -> int:
        """Number of coordinates of a vector."""
        return len(self.features) + bool(self.column)

    @property
    def free(self) -> Array:
        """1 for coordinates that are intercepts, 0 for all others."""
        return np.tile(np.arange(self.width) == len(self.features), self.vectors).astype(float)

    def check(self, shard: NodeShard) -> None:
        """Refuse a shard, such as one that came late, whose columns or classes are not those agreed on."""
        node, target = shard.facts.node, shard.facts.target
        if shard.facts.fingerprint != self.fingerprint:
            raise InputError(
                f"node {node} has other columns than {self.names[0]} and those who agreed with it; make its shard "
                "again with the same columns in the same order"
            )
        strange = [each for each in shard.classes() if each not in self.classes] if self.loss.classes else []
        if strange:
            raise InputError(
                f"node {node} has the class {shown(strange[0])} in {target}, which no node had when the classes "
                "were agreed; leave these rows out, or start all nodes anew"
            )

    def weight(self, samples: int) -> float:
        """Return the weight of each sample of a node with that number of samples."""
        each = sample_weight(self.counts, self.count)
        return 1.0 / samples if each is None else each

    def table(self, shard: NodeShard) -> Any:
        """Return a node's features as the methods use them: centred, scaled, with the intercept's column."""
        if not self.sparse:
            table, done = np.empty((shard.facts.samples, self.width)), 0
            for part, _ in shard.blocks():
                table[done : done + len(part), : len(self.features)] = (part - self.means) / self.scales
                done += len(part)
            table[:, len(self.features) :] = self.column
            return table
        import scipy.sparse as sp

        scaled = sp.csr_array(shard.features @ sp.diags_array(1 / self.scales))
        constant = sp.csr_array(np.full((shard.facts.samples, 1), self.column))
        return sp.csr_array(sp.hstack([scaled, constant], format="csr")) if self.column else scaled

    def numbers(self, shard: NodeShard, target: Array) -> Array:
        """Return targets that are numbers, centred and scaled, or the numbers of classes from 0 on."""
        if not self.loss.classes:
            return np.asarray((target - self.middle) / self.unit)
        if shard.facts.labels is None:
            return np.searchsorted(np.array(self.classes, dtype=float), target)
        position = {text: number for number, text in enumerate(self.classes)}
        numbers = np.array([position[text] for text in shard.facts.labels])
        return np.asarray(numbers[np.asarray(target, dtype=int)])

    def targets(self, shard: NodeShard, target: Array | None = None) -> Array:
        """Return a node's targets as the loss takes them."""
        return np.asarray(self.loss.coded(self.numbers(shard, shard.target if target is None else target)))

    def blocks(self, shard: NodeShard) -> Iterator[tuple[Any, Array]]:
        """Yield a node's features as they are stored, and its targets as the loss takes them, in blocks of samples."""
        for features, target in shard.blocks():
            yield features, self.targets(shard, target)

    def problem(self, shards: Sequence[NodeShard]) -> "LinearModel | Streamed":
        """Return the problem of some nodes, one f_i each."""
        if self.streamed:
            return self._on_disk(shards)
        from ..problems.linear_model import LeastSquares, LinearModel, LogisticRegression, SoftmaxRegression

        data = [(self.table(shard), self.targets(shard)) for shard in shards]
        weights = [np.full(len(targets), self.weight(len(targets))) for _, targets in data]
        faster: dict[Loss, Callable[..., LinearModel]] = {
            LOGISTIC: partial(LogisticRegression.from_nodes, classes=(-1, 1)),
            SOFTMAX: partial(SoftmaxRegression, classes=len(self.classes)),
            RIDGE: LeastSquares,
        }
        make = faster.get(self.loss, partial(LinearModel, self.loss, vectors=self.vectors))
        return make(data, l2=self.l2, weights=weights, longest=int(self.counts.max()))

    def _on_disk(self, shards: Sequence[NodeShard]) -> "Streamed":
        from ..problems.streamed import Streamed, top_curvature

        weights = np.array([self.weight(shard.facts.samples) for shard in shards])
        tops = np.array([top_curvature(shard.blocks, self.means, self.scales) for shard in shards])
        counts = np.array([shard.facts.samples for shard in shards])
        bound = tops + self.column**2 * counts  # on the top eigenvalue of A A' + c^2 1 1'
        return Streamed(
            self.loss,
            [partial(self.blocks, shard) for shard in shards],
            weights,
            self.loss.steepest * weights * bound,
            l2=self.l2,
            means=self.means,
            scales=self.scales,
            column=self.column,
            vectors=self.vectors,
        )

    def model_rows(self, x: Array) -> Array:
        """Return rows of x as rows of the model: each vector, followed by its intercept if there is one."""
        parts = self.unit * x.reshape(len(x), self.vectors, self.width)
        w, b = parts[..., : len(self.features)], np.zeros(parts.shape[:2]) + self.middle
        if self.column:
            b = b + self.column * parts[..., -1]
        if not self.scaled:
            b = b - w @ self.means
        if not self.intercept:
            return np.asarray(w.reshape(len(x), -1))
        return np.concatenate([w, b[..., None]], axis=-1).reshape(len(x), -1)

    @property
    def stretch(self) -> float:
        """The most that a step of length 1 in x moves a coefficient or an intercept of the model."""
        shift = 0.0 if self.scaled or not self.intercept else float(np.linalg.norm(self.means))
        return self.unit * max(1.0, float(np.hypot(self.column, shift)))

    def about(self) -> dict[str, Any]:
        """Return the description of the model without its coefficients."""
        centred = self.scaled and not self.sparse
        return {
            "kind": self.kind,
            "features": self.features,
            "target": self.target,
            "classes": self.classes,
            "intercept": self.intercept,
            "means": self.means.tolist() if centred else None,
            "scales": self.scales.tolist() if self.scaled else None,
            "penalty": self.loss.penalties(self.l2, self.samples) if self.count == "samples" else {"l2": self.l2},
            "nodes": self.names,
        }


def agree(data: ModelSettings, shards: Sequence[NodeShard], links: Links) -> Agreed:
    """Let the nodes agree on everything but the coefficients; an error that concerns all is the same on each node."""
    agreed = _meet(data, shards, links)
    agreed = _centre(agreed, data, shards, links)
    spread = float(links.everyone(np.array([[_curvature(agreed, shard)] for shard in shards])).max())
    agreed = replace(agreed, l2=data.regulariser(agreed.samples, agreed.loss.steepest * spread))
    if not data.intercept or (agreed.loss.centred and not agreed.sparse):
        return agreed  # for centred samples and targets the best intercept is 0
    curvature = max(_bend(agreed, shards, links), RAREST)
    return replace(agreed, column=float(np.sqrt(max(spread, HELD * agreed.l2 / curvature))))


def _meet(data: ModelSettings, shards: Sequence[NodeShard], links: Links) -> Agreed:
    """Compare columns, and collect names, counts and classes."""
    wanted, own = LOSSES[data.model], []
    for shard in shards:
        classes = shard.classes() if wanted.classes else []
        facts = shard.facts
        own.append([facts.node, facts.fingerprint, facts.samples, shard.bytes, classes[: MOST_LABELS + 1]])
    said = share(links, own)
    names = [name for name, *_ in said]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two nodes are named {twice!r}; make one of the shards again with another --node")
    if len({fingerprint for _, fingerprint, *_ in said}) > 1:
        _name_difference(shards, links)
    facts = shards[0].facts
    classes = sorted({label for *_, labels in said for label in labels})
    if not wanted.classes:
        if facts.labels is not None:
            raise InputError(
                f"a {wanted.name} model needs numbers, and {facts.target} holds text; take model={USUAL_MODEL!r}"
            )
        if wanted.allowed is not None:
            flaws = share(links, [wanted.flaw(each.target, f"{facts.target} of {each.facts.node}") for each in shards])
            if any(flaws):
                raise InputError(next(filter(None, flaws)))
    elif len(classes) < 2:
        raise InputError(
            f"all samples of all nodes have the class {shown(classes[0])} in {facts.target}; a model needs two or more"
        )
    elif len(classes) > MOST_LABELS:
        raise InputError(f"{facts.target} has more than {MOST_LABELS} values; for numbers take model={RIDGE.name!r}")
    fingerprint = said[0][1]
    whole = all(isinstance(label, float) and label.is_integer() for label in classes)
    agreed = Agreed(
        wanted.of(len(classes)).name,
        names,
        facts.features,
        facts.target,
        [int(label) for label in classes] if whole else classes,
        np.array([samples for _, _, samples, *_ in said]),
        fingerprint,
        facts.layout == "sparse",
        data.scale,
        data.intercept,
        data.count,
        np.zeros(len(facts.features)),
        np.ones(len(facts.features)),
        streamed=max(size for *_, size, _ in said) > data.memory,
    )
    for shard in shards:
        agreed.check(shard)  # a late one took no part in the agreement
    return agreed


def _name_difference(shards: Sequence[NodeShard], links: Links) -> None:
    """Raise an error that names two nodes and a difference in their columns."""
    columns = [
        [facts.node, facts.target, "numbers" if facts.labels is None else "text", facts.layout, facts.features]
        for facts in (shard.facts for shard in shards)
    ]
    said = share(links, columns)
    first = said[0]
    other = next(each for each in said if each[1:] != first[1:])
    remedy = "make the shards again with the same columns in the same order"
    for place, what in ((1, "target"), (2, "kind of target"), (3, "layout")):
        if other[place] != first[place]:
            raise InputError(
                f"node {other[0]} has the {what} {other[place]!r} and node {first[0]} {first[place]!r}; {remedy}"
            )
    for one, another in ((first, other), (other, first)):
        missing = [name for name in one[4] if name not in set(another[4])]
        if missing:
            raise InputError(f"node {another[0]} has no column {missing[0]!r}, which node {one[0]} has; {remedy}")
    raise InputError(f"nodes {first[0]} and {other[0]} have the same columns in another order; {remedy}")


def _centre(agreed: Agreed, data: ModelSettings, shards: Sequence[NodeShard], links: Links) -> Agreed:
    """Agree on means and scales of the features, and on the mean of the targets if they may be shifted."""
    if agreed.loss.centred:
        agreed = _centre_target(agreed, data, shards, links)
    centred = not agreed.sparse and (data.intercept or data.scale)
    if not (centred or data.scale):
        return agreed
    local = [_moments(shard) for shard in shards]
    counts = agreed.counts[:, None]
    means = (counts * links.everyone(np.stack([mean for mean, _ in local]))).sum(axis=0) / agreed.samples
    scales = np.ones_like(means)
    if data.scale:
        own = [
            squares + shard.facts.samples * (mean - means) ** 2
            for shard, (mean, squares) in zip(shards, local, strict=True)
        ]
        scales = _scales(links.everyone(np.stack(own)).sum(axis=0) / agreed.samples, means, agreed.samples)
    return replace(agreed, means=means if centred else np.zeros_like(means), scales=scales)


def _centre_target(agreed: Agreed, data: ModelSettings, shards: Sequence[NodeShard], links: Links) -> Agreed:
    """Agree on the mean of the targets (0 without an intercept) and on its spread around it."""
    middle = 0.0
    if data.intercept:
        sums = links.everyone(np.array([[float(shard.target.sum())] for shard in shards]))
        middle = float(sums[:, 0].sum() / agreed.samples)
    squares = links.everyone(np.array([[float(((shard.target - middle) ** 2).sum())] for shard in shards]))
    return replace(agreed, middle=middle, unit=float(np.sqrt(squares.sum() / agreed.samples)) or 1.0)


def _scales(variances: Array, means: Array, samples: int) -> Array:
    """Return standard deviations, but 1 for features that are constant up to rounding, as in scikit-learn."""
    eps = np.finfo(float).eps
    constant = variances <= samples * eps * variances + (samples * means * eps) ** 2
    return np.where(constant, 1.0, np.sqrt(variances))


def _moments(shard: NodeShard) -> tuple[Array, Array]:
    """Return the means of a node's features, and the sums of squared deviations from them."""
    samples = shard.facts.samples
    if shard.facts.layout == "sparse":
        A = shard.features
        mean = np.asarray(A.sum(axis=0)).ravel() / samples
        counts = np.bincount(A.indices, minlength=A.shape[1])
        squares = np.bincount(A.indices, (A.data - mean[A.indices]) ** 2, A.shape[1])
        return mean, squares + (samples - counts) * mean**2
    mean = np.asarray(sum(part.sum(axis=0) for part, _ in shard.blocks())) / samples
    return mean, np.asarray(sum(((part - mean) ** 2).sum(axis=0) for part, _ in shard.blocks()))


def _curvature(agreed: Agreed, shard: NodeShard) -> float:
    """Return the largest eigenvalue of the sum over a node's samples of w a a', for prepared features."""
    samples = shard.facts.samples
    if agreed.streamed:
        from ..problems.streamed import top_curvature

        return top_curvature(shard.blocks, agreed.means, agreed.scales) * agreed.weight(samples)
    table = agreed.table(shard)
    return float(largest_curvature(table, np.array([samples]))[0]) * samples * agreed.weight(samples)


def _bend(agreed: Agreed, shards: Sequence[NodeShard], links: Links) -> float:
    """Estimate the curvature of the mean of the f_i along the intercept, for a constant column of 1."""
    loss = agreed.loss
    if loss.classes:
        numbers = [agreed.numbers(shard, shard.target) for shard in shards]
        counts = [np.bincount(each, minlength=len(agreed.classes)).astype(float) for each in numbers]
        prior = links.everyone(np.stack(counts)).sum(axis=0) / agreed.samples
        return float(prior[0] * prior[1] if loss.classes == 2 else prior.min())
    if loss.centred:
        return 1.0  # of the squared error
    targets = [agreed.targets(shard) for shard in shards]
    sums = links.everyone(np.array([[float(loss.curvature(np.zeros_like(y), y).sum())] for y in targets]))
    return float(sums.sum() / agreed.samples)
