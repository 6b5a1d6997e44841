"""l2-regularised logistic regression, the paper's problem (its equation for f_i in section 6)."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from ..errors import InputError, shown
from .base import Array, Problem
from .checks import as_number, check_room, check_whole
from .features import DenseFeatures, SparseFeatures, dense_features, largest_curvature, sparse_features
from .nodes import as_labels, check_features, check_longest, stack


class LogisticRegression(Problem):
    r"""Binary classification: each node holds samples a_ij with labels b_ij = -1 or +1.

    .. math:: f_i(x) = \frac{1}{m_i} \sum_j \log(1 + \exp(-b_{ij} a_{ij}^\top x)) + \frac{r}{2} \|x\|^2

    The curvature of the logistic loss lies in (0, 1/4], so mu_i = r and L_i = r + largest eigenvalue of
    A_i'A_i / (4 m_i), computed for every node.

    Parameters
    ----------
    features : array or scipy.sparse array of shape (samples, dim)
        Sparse features stay sparse.
    labels : array of shape (samples,)
        Any two values; the smaller one becomes -1.
    nodes : int
        The samples are handed out in order, as evenly as they go.
    l2, kappa : float
        Exactly one: the regulariser r itself, or the condition number L / mu that it is chosen to give.

    Examples
    --------
    >>> problem = LogisticRegression([[1.0], [2.0], [-1.0], [0.5]], [1, 1, 0, 0], nodes=2, kappa=10)
    >>> problem.nodes, problem.dim, round(problem.kappa, 9)
    (2, 1, 10.0)
    """

    array_fields = ("features", "l2", "curvature")
    static_fields = ()
    on_host = True
    features: DenseFeatures | SparseFeatures
    l2: float
    curvature: np.ndarray  # (nodes,): L_i - r, which r may be too large to get back from L_i

    def __init__(
        self,
        features: Any,
        labels: Any,
        nodes: int,
        *,
        l2: float | None = None,
        kappa: float | None = None,
    ) -> None:
        matrix = check_features(features)
        nodes = check_whole("nodes", nodes)
        if nodes > matrix.shape[0]:
            raise InputError(
                f"{nodes} nodes cannot share {matrix.shape[0]} samples: every node needs one at least; "
                f"use nodes={matrix.shape[0]} or fewer"
            )
        counts = np.full(nodes, matrix.shape[0] // nodes)
        counts[: matrix.shape[0] % nodes] += 1
        self._build(matrix, as_labels(labels), counts, l2, kappa)

    @classmethod
    def from_nodes(
        cls,
        data: Sequence[tuple[Any, Any]],
        *,
        l2: float | None = None,
        kappa: float | None = None,
        classes: tuple[float, float] | None = None,
        longest: int | None = None,
        weights: Sequence[Any] | None = None,
    ) -> Self:
        """Build from one (features, labels) pair per node; nodes may hold different numbers of samples.

        Parameters
        ----------
        data : sequence of (features, labels)
        l2, kappa : float
            Exactly one, as for the class.
        classes : (smaller, larger), optional
            The two values that labels may have, where some nodes of a whole are built by themselves: the data may
            then hold one of them only. By default the two that occur.
        longest : int, optional
            The samples of the largest node of the whole: dense nodes are filled up to so many rows, so that a node's
            sums are the same to the bit whichever nodes it is built with. By default those of the largest node given.
        weights : sequence of arrays, optional
            One array a node: what each of its samples' losses is multiplied by before they are added up, in place of
            the 1 / m_i of their mean.

        Examples
        --------
        >>> data = [([[1.0, 0.0]], [1]), ([[0.0, 1.0], [1.0, 1.0]], [-1, 1])]
        >>> LogisticRegression.from_nodes(data, l2=0.1).nodes
        2
        """
        stacked = stack(data, weights)
        self = object.__new__(cls)
        matrix, labels, counts, per_sample = stacked
        self._build(matrix, labels, counts, l2, kappa, classes, check_longest(longest, counts), per_sample)
        return self

    def _build(
        self,
        matrix: "np.ndarray | sp.csr_array",
        labels: np.ndarray,
        counts: np.ndarray,
        l2: float | None,
        kappa: float | None,
        classes: tuple[float, float] | None = None,
        longest: int | None = None,
        weights: np.ndarray | None = None,
    ) -> None:
        signs = _signs(labels, matrix.shape[0], classes)
        self.nodes, self.dim = int(counts.size), int(matrix.shape[1])
        check_room(self.nodes, self.dim, matrix)
        self.curvature = largest_curvature(matrix, counts, weights) / 4
        self.l2 = regulariser(float(self.curvature.max()), l2, kappa)
        self._set_constants(np.full(self.nodes, self.l2), self.l2 + self.curvature)
        if sp.issparse(matrix):
            self.features = sparse_features(matrix, signs, counts, weights)
        else:
            self.features = dense_features(matrix, signs, counts, longest, weights)

    def with_l2(self, l2: float) -> Self:
        """Return the same data, shared and not copied, with another regulariser."""
        return self._regularised(l2, None)

    def with_kappa(self, kappa: float) -> Self:
        """Return the same data, shared and not copied, with the regulariser that gives this condition number.

        Examples
        --------
        >>> problem = LogisticRegression([[1.0], [2.0], [-1.0], [0.5]], [1, 1, 0, 0], nodes=2, kappa=10)
        >>> other = problem.with_kappa(1000.0)
        >>> round(other.kappa, 6), other.features is problem.features
        (1000.0, True)
        """
        return self._regularised(None, kappa)

    def _regularised(self, l2: float | None, kappa: float | None) -> Self:
        arrays, static = self._flatten()
        other = type(self)._unflatten(static, arrays)
        other.l2 = regulariser(float(self.curvature.max()), l2, kappa)
        other._set_constants(np.full(self.nodes, other.l2), other.l2 + self.curvature)
        return other

    def _facts(self) -> dict[str, Any]:
        """Return what there is to know at a glance."""
        return {**super()._facts(), "l2": self.l2, "samples": self.features.described()}

    def value_rows(self, x: Array) -> Array:
        """Return f_i(x_i); log(1 + e^-t) is computed without overflow for any margin t."""
        losses = jnp.logaddexp(0.0, -self.features.margins(x))
        return self.features.mean(losses) + self.l2 / 2 * (x * x).sum(axis=-1)

    def gradient_rows(self, x: Array) -> Array:
        """Return grad f_i(x_i)."""
        return self.features.logistic_gradient(x) + self.l2 * x

    def _curvatures(self, x: Array) -> Array:
        margins = self.features.margins(x)
        return jax.nn.sigmoid(margins) * jax.nn.sigmoid(-margins)

    def hessian_product_rows(self, x: Array, v: Array) -> Array:
        """Return the Hessian of f_i at x_i times v_i."""
        return self.features.weighted_mean(self._curvatures(x) * self.features.margins(v)) + self.l2 * v

    def hessian_rows(self, x: Array) -> Array:
        """Return the Hessians, shape (nodes, dim, dim)."""
        if isinstance(self.features, SparseFeatures):
            return super().hessian_rows(x)
        return self.features.gram(self._curvatures(x)) + self.l2 * jnp.eye(self.dim, dtype=x.dtype)

    def mean_gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the mean of the gradients at one common x."""
        samples = self.features.samples()
        return samples.sums(-expit(-samples.margins(x))) + self.l2 * x

    def mean_hessian(self, x: np.ndarray) -> np.ndarray:
        """Return the mean of the Hessians at one common x."""
        samples = self.features.samples()
        return samples.gram(_curved(samples.margins(x))) + self.l2 * np.eye(self.dim)

    def mean_hessian_product(self, x: np.ndarray) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray | None]:
        """Return v -> H v for the mean H of the Hessians at x, and the diagonal of H."""
        samples = self.features.samples()
        curved = _curved(samples.margins(x))
        diagonal = samples.squares(curved) + self.l2
        return lambda v: samples.sums(curved * samples.margins(v)) + self.l2 * v, diagonal


def _curved(margins: np.ndarray) -> np.ndarray:
    """Return the second derivative of the logistic loss."""
    curved: np.ndarray = expit(margins) * expit(-margins)
    return curved


def _signs(labels: np.ndarray, samples: int, classes: tuple[float, float] | None) -> np.ndarray:
    """Map two label values, those given or those that occur, to -1 and +1, the smaller one to -1."""
    if labels.shape != (samples,):
        raise InputError(
            f"labels must have shape ({samples},), one for every sample, got {labels.shape}; "
            "check that features and labels are of the same samples"
        )
    if classes is not None:
        smaller, larger = _check_classes(classes)
        strange = (labels != smaller) & (labels != larger)
        if strange.any():
            place = int(np.argmax(strange))
            raise InputError(
                f"labels must be {smaller} or {larger}, got {labels[place]} for sample {place}; "
                "mend the label, or give the classes that there are"
            )
        return np.where(labels == larger, 1.0, -1.0)
    values = np.unique(labels)
    if values.size != 2:
        shown = ", ".join(str(v) for v in values[:5]) + (", ..." if values.size > 5 else "")
        raise InputError(
            f"labels must be of exactly two classes, got {values.size}: {shown}; "
            "logistic regression here is binary: map or filter the classes first"
        )
    return np.where(labels == values[1], 1.0, -1.0)


def _check_classes(classes: tuple[float, float]) -> tuple[float, float]:
    """Return the two label values; refuse others than two numbers in ascending order."""
    try:
        smaller, larger = classes
        ordered = -np.inf < smaller < larger < np.inf
    except (TypeError, ValueError):
        ordered = False
    if not ordered:
        raise InputError(f"classes must be two numbers, the smaller first, got {classes!r}; e.g. (-1, 1)")
    return smaller, larger


def check_regulariser(l2: float | None, kappa: float | None) -> None:
    """Refuse all but exactly one of l2 and kappa, within its range."""
    if (l2 is None) == (kappa is None):
        raise InputError(f"give exactly one of l2 and kappa, got l2={l2!r} and kappa={kappa!r}; e.g. kappa=100")
    if l2 is not None and not 0 < as_number("l2", l2, 1.0) < np.inf:
        raise InputError(f"l2 must be positive and finite, got {shown(l2)}; it makes every f_i strongly convex")
    if kappa is not None and not 1 < as_number("kappa", kappa, 100.0) < np.inf:
        raise InputError(f"kappa must be finite and greater than 1, got {shown(kappa)}; it is L / mu of the f_i")


def regulariser(curvature: float, l2: float | None, kappa: float | None) -> float:
    """Return r: given, or such that (curvature + r) / r = kappa."""
    check_regulariser(l2, kappa)
    if l2 is not None:
        return float(l2)
    assert kappa is not None
    if curvature == 0:
        raise InputError(
            "kappa cannot be chosen when every feature is zero, or so small that its square is: L = mu for any l2; "
            "give l2 instead, or scale the features"
        )
    return curvature / (float(kappa) - 1)
