"""What nodes compute from their samples about an answer: how near it is, and how well it fits; never more than sums.

In NumPy, block by block, so samples may stay on the disk.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..problems.likelihood import PENALISED, Sums, inference, log_likelihood, no_likelihood
from ..problems.minimiser import ULP
from ..problems.nearness import (
    exact_sum,
    flat_direction,
    least_eigenvalues,
    least_hessian,
    lengths_of,
    named,
    slope_noise,
    squares_sum,
)
from ..problems.samples import dense, prepared, ridge_of, tie
from .node_shards import NodeShard
from .preparing import Agreed, Links

Array = np.ndarray


class Nearness(NamedTuple):
    """What all nodes know of a point."""

    distance: float  # to the minimiser, at most
    kappa: float | None  # the condition number of the mean Hessian
    floor: float  # what rounding alone leaves of the distance


NOWHERE = Nearness(np.inf, None, 0.0)
SAFE = 4.0
"""How many times its usual size rounding may have."""


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
        dim, upper, twist = self.dim, np.triu_indices(self.dim), self.agreed.loss.twist
        rows = links.everyone(np.stack([self._about(y, reach, shard) for shard in self._shards]))
        penalty = self._held(np.eye(dim))
        H = np.zeros((dim, dim))
        H[upper] = rows[:, 1 + 2 * dim :].mean(axis=0)
        H = H + np.triu(H, 1).T + penalty
        gradients, held = rows[:, 1 : 1 + dim], penalty @ y
        g = np.asarray(gradients.mean(axis=0, dtype=np.longdouble) + held, dtype=float)
        squares = (rows[:, 1 + dim : 1 + 2 * dim] + (ULP * gradients) ** 2).sum(axis=0) / len(rows) ** 2
        noise = SAFE * np.sqrt(squares + (ULP * held) ** 2)
        scale = np.sqrt(np.abs(np.diag(H)))
        if not (np.isfinite(scale).all() and scale.all()):
            return NOWHERE
        values = least_eigenvalues(H / np.outer(scale, scale))[0]  # relative, as features may be badly scaled
        if not 0 < values[0] < np.inf:
            return NOWHERE
        inverse = np.linalg.inv(H / np.outer(scale, scale)) / np.outer(scale, scale)
        top = 1 / np.linalg.eigvalsh(inverse)
        exact = 1 - min(0.5, 64 * ULP * dim / float(values[0]))  # the inverse is rounded too
        kappa, least = float(top.max() / top.min()), exact * float(top.min())
        length = np.sqrt(g @ inverse @ g) + np.sqrt(noise**2 @ np.diag(inverse))
        if not twist < np.inf:
            near, floor = float(length / np.sqrt(least)), float(np.sqrt(noise**2 @ np.diag(inverse) / least))
        else:
            changes = np.expm1(twist * rows[:, 0].max() * reach)
            floor = float(np.sqrt(noise**2 @ (inverse**2).sum(axis=0)))
            near = float((np.linalg.norm(inverse @ g) + floor) / exact + changes * length / np.sqrt(least))
        return Nearness(near if near <= reach else np.inf, kappa, floor)

    def _about(self, y: Array, reach: float, shard: NodeShard) -> Array:
        """Return what a node tells of y.

        That is the greatest length of a sample, the gradient, the square of its rounding, and the Hessian.
        """
        agreed, loss, dim = self.agreed, self.agreed.loss, self.dim
        longest, gradient, noise, H = 0.0, np.zeros(dim), np.zeros(dim), np.zeros((dim, dim))
        for A, targets in self._blocks(shard):
            t, lengths = self._margins(A, y), lengths_of(A)
            longest = max(longest, float(lengths.max()))
            x = y.reshape(agreed.vectors, -1).T if loss.coupled else y
            off = slope_noise(loss, A, t, targets, x).reshape(len(t), -1)
            total, rounding = exact_sum(A, np.asarray(loss.slope(t, targets)).reshape(len(t), -1))
            gradient += total
            noise += rounding + squares_sum(A, off)
            H += least_hessian(loss, A, t, targets, lengths * reach, agreed.vectors)
        weight = agreed.weight(shard.facts.samples)
        parts = [longest], weight * gradient, weight**2 * noise, weight * H[np.triu_indices(dim)]
        return np.concatenate(parts)

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
