"""What nodes compute from their samples about an answer: how near it is, and how well it fits; never more than sums.

In NumPy, block by block, so samples may stay on the disk.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..problems.likelihood import PENALISED, Sums, inference, log_likelihood, no_likelihood
from ..problems.nearness import (
    flat_direction,
    least_eigenvalues,
    least_hessian,
    lengths_of,
    named,
    noise_of,
    terms,
    within,
)
from ..problems.samples import dense, prepared, ridge_of, tie
from .node_shards import NodeShard
from .preparing import Agreed, Links

Array = np.ndarray


class Nearness(NamedTuple):
    """What all nodes know of a point."""

    distance: float  # to the minimiser, at most
    kappa: float  # the condition number of the mean Hessian


class NodeSums:
    """Sums over the samples of some nodes."""

    def __init__(self, agreed: Agreed, shards: Sequence[NodeShard]) -> None:
        self.agreed, self._shards = agreed, list(shards)
        self.dim = agreed.vectors * agreed.width

    def _blocks(self, shard: NodeShard) -> Iterator[tuple[Any, Array]]:
        for features, targets in self.agreed.blocks(shard):
            yield self.agreed.prepared(features), targets

    def _margins(self, A: Any, x: Array) -> Array:
        return np.asarray(A @ (x.reshape(self.agreed.vectors, -1).T if self.agreed.loss.coupled else x))

    # How near a point is to the minimiser

    def nearness(self, y: Array, reach: float, links: Links) -> Nearness:
        """Return a bound on the distance from y to the minimiser, infinity beyond `reach`; the same everywhere."""
        dim, upper = self.dim, np.triu_indices(self.dim)
        rows = links.everyone(np.stack([self._about(y, reach, shard) for shard in self._shards]))
        penalty = self._held(np.eye(dim))
        mean = rows.mean(axis=0)
        H = np.zeros((dim, dim))
        H[upper] = mean[1 + dim :]
        H = H + np.triu(H, 1).T + penalty
        g = mean[1 : 1 + dim] + penalty @ y
        noise = mean[0] + noise_of(float(np.linalg.norm(penalty @ y)), len(rows), dim)
        values, vectors = least_eigenvalues(H)
        distance = within(g, noise, 0.0, values, vectors)
        kappa = float(values.max() / values.min()) if values.min() > 0 else np.inf
        return Nearness(distance if distance <= reach else np.inf, kappa)

    def _about(self, y: Array, reach: float, shard: NodeShard) -> Array:
        """Return the rounding of a node's gradient at y, the gradient, and a lower bound on the Hessian around y."""
        agreed, loss, samples = self.agreed, self.agreed.loss, shard.facts.samples
        size, gradient, sizes, H = float(np.linalg.norm(y)), np.zeros(self.dim), 0.0, np.zeros((self.dim, self.dim))
        for A, targets in self._blocks(shard):
            t, lengths = self._margins(A, y), lengths_of(A)
            gradient += np.asarray(A.T @ loss.slope(t, targets)).T.ravel()
            sizes += terms(loss, t, targets, lengths, size)
            H += least_hessian(loss, A, t, targets, lengths * reach, agreed.vectors)
        weight = agreed.weight(samples)
        noise = noise_of(weight * sizes, samples, self.dim)
        return np.concatenate([[noise], weight * gradient, weight * H[np.triu_indices(self.dim)]])

    def _held(self, x: Array) -> Array:
        """Return the slope of the penalty, as the problem has it."""
        agreed = self.agreed
        ridge = ridge_of(agreed.l2, self.dim, agreed.vectors) if agreed.column else agreed.l2
        return np.asarray(ridge * x + (tie(x, agreed.vectors) if agreed.loss.coupled else 0.0))

    # Whether there is one answer

    def check_columns(self, links: Links) -> None:
        """Refuse columns that others determine, unless a penalty chooses between the answers that fit alike."""
        agreed, width = self.agreed, self.agreed.width
        if agreed.l2:
            return
        upper, own = np.triu_indices(width), []
        for shard in self._shards:
            own.append(sum(dense(A.T @ A)[upper] for A, _ in self._blocks(shard)))
        gram = np.zeros((width, width))
        gram[upper] = links.everyone(np.stack(own)).sum(axis=0)
        direction = flat_direction(gram + np.triu(gram, 1).T)
        if direction is not None:
            raise InputError(
                f"columns are aliased, so infinitely many answers fit alike: "
                f"{', '.join(named(direction, [*agreed.features, 'intercept']))}; leave one of them out, or give a "
                "penalty"
            )

    def check_separable(self, y: Array, links: Links) -> None:
        """Refuse classes that y tells apart without an error, where a longer y fits ever better."""
        agreed = self.agreed
        if agreed.l2 or not agreed.loss.classes:
            return
        wrong = [[sum(self._wrong(A, targets, y) for A, targets in self._blocks(shard))] for shard in self._shards]
        if not links.everyone(np.array(wrong, dtype=float)).any():
            raise InputError(
                f"{agreed.target} has no best answer without a penalty: its classes can be told apart without an "
                "error, so the coefficients grow for ever; give a penalty, such as C=1"
            )

    def _wrong(self, A: Any, targets: Array, y: Array) -> int:
        t = self._margins(A, y)
        if not self.agreed.loss.coupled:
            return int((t * targets <= 0).sum())
        own = t[np.arange(len(t)), targets.astype(int)]
        return int((t >= own[:, None]).sum() - len(t))

    # How well a model fits

    def inference(self, row: Array, links: Links) -> dict[str, Any]:
        """Return what `Model.summary` shows of a model with these coefficients, the same at all nodes."""
        agreed, loss = self.agreed, self.agreed.loss
        about = {"samples": agreed.samples, "nodes": len(agreed.names), "intercept": agreed.intercept}
        refused = PENALISED if agreed.l2 else no_likelihood(loss)
        if not refused and agreed.count != "samples":
            refused = "errors are for samples that count alike, and here nodes do; fit with count='samples'"
        if refused:
            return {**about, "refused": refused}
        d = len(agreed.features)
        shift = np.zeros(d) if agreed.scaled else agreed.means
        change = np.eye(d + agreed.intercept)  # from the coefficients of centred features
        if agreed.intercept:
            change[d, :d] = -shift
            row = np.append(row[:d], row[d] + row[:d] @ shift)

        def sums(part: Any, targets: Array) -> Array:
            A = self._design(part)
            found = Sums.at(loss, A, A @ row, targets, np.ones(len(targets)))
            return np.concatenate([np.ravel(each) for each in found])

        def likelihood(scale: float) -> float:
            def of(part: Any, targets: Array) -> Array:
                return np.array([log_likelihood(loss, self._design(part) @ row, targets, np.ones(len(targets)), scale)])

            return float(self._total(of, links)[0])

        total = self._total(sums, links)
        information, scores = total[2:].reshape(2, len(row), len(row))
        return inference(
            loss,
            Sums(float(total[0]), float(total[1]), information, scores),
            likelihood,
            about,
            change=change,
        )

    def _design(self, features: Any) -> Any:
        """Return features as the model takes them, but centred, with a column of ones if it has an intercept."""
        agreed = self.agreed
        return prepared(features, agreed.means, agreed.scales, float(agreed.intercept))

    def _total(self, of: Callable[[Any, Array], Array], links: Links) -> Array:
        """Return the sum over the samples of all nodes; targets are as the loss takes them, numbers as they are."""
        agreed, own = self.agreed, []
        for shard in self._shards:
            blocks = shard.blocks()
            classes = bool(agreed.loss.classes)
            own.append(sum(of(A, agreed.targets(shard, y) if classes else y) for A, y in blocks))
        total: Array = links.everyone(np.stack(own)).sum(axis=0)
        return total
