"""Problems on samples: a loss of the margins a_ij'x, a linear term and an l2 penalty."""

from collections.abc import Sequence
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from ..errors import InputError, shown
from .base import Array, HessianProduct, Problem
from .checks import as_number, as_numbers, check_room
from .curvature import largest_curvature
from .features import DenseFeatures, Samples, SparseFeatures, lay_out
from .losses import Loss
from .nodes import Stacked, check_longest, stack
from .weighting import penalty_of, weighting


class LinearModel(Problem):
    """f_i(x) = sum_j w_ij loss(a_ij'x, b_ij) + r |x|^2 / 2, for any loss with one vector of coefficients.

    Rows of nodes are computed by JAX, means over nodes by NumPy. Subclasses are for one loss each, and faster: targets
    are folded into the features, or into a linear term of f_i. The parameters besides `loss` are theirs.
    """

    array_fields: ClassVar[tuple[str, ...]] = ("features", "l2")
    static_fields: ClassVar[tuple[str, ...]] = ("loss",)
    on_host = True
    loss: Loss
    folded: ClassVar[float]
    """The target in the loss if the true targets are folded into the features or a linear term."""
    features: DenseFeatures | SparseFeatures
    l2: float
    labels: tuple[Any, ...] | None = None  # the classes, if known; not part of the pytree

    def __init__(
        self,
        loss: Loss,
        data: Sequence[tuple[Any, Any]],
        *,
        l2: float,
        weights: Sequence[Any] | None = None,
        longest: int | None = None,
        count: str = "nodes",
    ) -> None:
        self.loss, stacked = loss, stack(data, weights, count)
        targets = as_numbers("targets", stacked.labels)
        if flaw := loss.flaw(targets):
            raise InputError(flaw)
        self.labels = (-1, 1) if loss.classes else ()
        self._build(stacked, l2, longest=longest, targets=targets)

    @property
    def constants_claimed(self) -> bool:
        """False: mu and L are computed."""
        return False

    def _build(
        self,
        data: Stacked,
        l2: float | None,
        kappa: float | None = None,
        *,
        outputs: int = 1,
        signs: np.ndarray | None = None,
        longest: int | None = None,
        targets: np.ndarray | None = None,
    ) -> np.ndarray:
        """Set everything but the linear term; return the L_i - r. Each feature has `outputs` coordinates in x."""
        longest = check_longest(longest, data.counts)
        self.nodes, self.dim = int(data.counts.size), outputs * int(data.features.shape[1])
        check_room(self.nodes, self.dim, data.features)
        curvature = self.loss.steepest * largest_curvature(data.features, data.counts, data.weights)
        self._regularise(regulariser(float(curvature.max()), l2, kappa), curvature)
        self.features = lay_out(data.features, data.counts, data.sample_weights(), signs, longest, targets)
        return curvature

    def _regularise(self, l2: float, curvature: np.ndarray) -> None:
        self.l2 = l2
        self._set_constants(np.full(self.nodes, l2), l2 + curvature)

    def _linear(self) -> Array:
        """Return the t_i, one row per node."""
        return np.zeros((1, 1))

    def _targets(self, of: DenseFeatures | SparseFeatures | Samples) -> Array:
        return self.folded if of.targets is None else of.targets

    def _margins(self, x: Array) -> Array:
        return self.features.margins(x)

    def _sums(self, per_sample: Array) -> Array:
        """Return the sum over each node's samples of w_ij per_sample a_ij."""
        return self.features.weighted_mean(per_sample)

    def weighting(self) -> dict[str, Any]:
        """Return the nodes' numbers of samples and how these are weighted."""
        return weighting(*self.features.weighed())

    def model(self) -> dict[str, Any] | None:
        """Return a description of the fitted model, without its coefficients."""
        if self.labels is None:
            return None
        counts, totals = self.features.weighed()
        width = self.dim // self.loss.vectors(len(self.labels))
        penalty = penalty_of(self.loss, self.l2, weighting(counts, totals), int(counts.sum()))
        return {
            "kind": self.loss.name, "features": width, "classes": self.labels, "intercept": False, "penalty": penalty
        }  # fmt: skip

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "l2": self.l2, "samples": self.features.described()}

    def value_rows(self, x: Array) -> Array:
        """Return f_i(x_i)."""
        losses = self.loss.value(self._margins(x), self._targets(self.features))
        return self.features.mean(losses) + self.l2 / 2 * (x * x).sum(axis=-1)

    def gradient_rows(self, x: Array) -> Array:
        """Return grad f_i(x_i)."""
        slopes = self.loss.slope(self._margins(x), self._targets(self.features))
        return self._sums(slopes) - self._linear() + self.l2 * x

    def hessian_product_rows(self, x: Array, v: Array) -> Array:
        """Return the Hessian of f_i at x_i times v_i."""
        bends = self.loss.bends(self._margins(x), self._targets(self.features))
        return self._sums(bends(self._margins(v))) + self.l2 * v

    def hessian_rows(self, x: Array) -> Array:
        """Return the Hessians, shape (nodes, dim, dim)."""
        if isinstance(self.features, SparseFeatures):
            return super().hessian_rows(x)
        curvatures = self.loss.curvature(self._margins(x), self._targets(self.features))
        return self.features.gram(curvatures) + self.l2 * jnp.eye(self.dim, dtype=x.dtype)

    def own_hessians(self, x: np.ndarray) -> np.ndarray:
        """Return the Hessians on the host; dense features need no compiled program."""
        if isinstance(self.features, SparseFeatures):
            return super().own_hessians(x)
        signed, weights = (np.asarray(part, dtype=np.float64) for part in self.features[:2])
        bends = weights * self.loss.curvature((signed @ x[..., None])[..., 0], np.asarray(self._targets(self.features)))
        return np.asarray((signed * bends[..., None]).swapaxes(1, 2) @ signed + self.l2 * np.eye(self.dim))

    def _columns(self, x: np.ndarray) -> np.ndarray:
        """Return one common x in the shape by which the sample matrix is multiplied."""
        return x

    def _flat(self, sums: np.ndarray) -> np.ndarray:
        """Return sums over the samples of all nodes in the shape of x."""
        return sums

    def mean_gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the mean of the gradients at one common x."""
        samples = self.features.samples()
        slopes = self.loss.slope(samples.margins(self._columns(x)), self._targets(samples))
        sums = self._flat(samples.sums(slopes))
        return np.asarray(sums - np.asarray(self._linear()).mean(axis=0) + self.l2 * x)

    def mean_hessian(self, x: np.ndarray) -> np.ndarray:
        """Return the mean of the Hessians at one common x."""
        samples = self.features.samples()
        curvatures = self.loss.curvature(samples.margins(x), self._targets(samples))
        return samples.gram(curvatures) + self.l2 * np.eye(self.dim)

    def mean_hessian_product(self, x: np.ndarray) -> HessianProduct:
        """Return v -> H v for the mean H of the Hessians at x, and the diagonal of H."""
        samples = self.features.samples()
        margins, targets = samples.margins(self._columns(x)), self._targets(samples)
        bend = self.loss.bends(margins, targets)
        diagonal = [samples.squares(each) for each in np.atleast_2d(self.loss.curvature(margins, targets).T)]

        def product(v: np.ndarray) -> np.ndarray:
            return self._flat(samples.sums(bend(samples.margins(self._columns(v))))) + self.l2 * v

        return product, np.concatenate(diagonal) + self.l2


MOST_KAPPA = 1e15
"""Beyond this, mu is lost beside L in rounding."""


def check_regulariser(l2: float | None, kappa: float | None) -> None:
    """Check that exactly one of l2 and kappa is given and within its range."""
    if (l2 is None) == (kappa is None):
        raise InputError(f"give exactly one of l2 and kappa, got l2={l2!r} and kappa={kappa!r}; e.g. kappa=100")
    if l2 is not None and not 0 < as_number("l2", l2, 1.0) < np.inf:
        raise InputError(f"l2 must be positive and finite, got {shown(l2)}; it makes every f_i strongly convex")
    if kappa is not None and not 1 < as_number("kappa", kappa, 100.0) < np.inf:
        raise InputError(f"kappa must be finite and greater than 1, got {shown(kappa)}; it is L / mu of the f_i")
    if kappa is not None and kappa > MOST_KAPPA:
        raise InputError(f"kappa must be at most {MOST_KAPPA:g}, got {shown(kappa)}; float64 allows no more")


def l2_of(C: float, samples: int, count: str = "samples") -> float:
    """Return the regulariser that corresponds to scikit-learn's C if all samples count equally.

    Examples
    --------
    >>> l2_of(0.5, 100)
    0.02
    """
    if not 0 < as_number("C", C, 1.0) < np.inf:
        raise InputError(f"C must be positive and finite, got {shown(C)}; it makes every f_i strongly convex")
    if count != "samples":
        raise InputError(
            f"C={C:g} weighs single samples, but here {count} count equally; give l2, or set count to samples"
        )
    return 1 / (float(C) * samples)


def regulariser(curvature: float, l2: float | None, kappa: float | None) -> float:
    """Return the regulariser r: `l2`, or the r with (curvature + r) / r = kappa."""
    check_regulariser(l2, kappa)
    if l2 is not None:
        if curvature / l2 >= MOST_KAPPA:
            raise InputError(
                f"l2 = {l2!r} makes kappa = {curvature / l2:.3g}, more than the {MOST_KAPPA:g} that float64 allows; "
                "take a larger l2, or give kappa"
            )
        return float(l2)
    assert kappa is not None
    if curvature == 0:
        raise InputError(
            "kappa cannot be chosen when every feature is zero, or so small that its square is: L = mu for any l2; "
            "give l2 instead, or scale the features"
        )
    return curvature / (float(kappa) - 1)
