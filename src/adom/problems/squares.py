"""l2-regularised least squares on samples that are kept as they are: wide or sparse data."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from .base import Array, Problem
from .checks import as_numbers, check_room
from .features import DenseFeatures, SparseFeatures, dense_features, largest_curvature, sparse_features
from .logistic import check_regulariser
from .nodes import check_longest, stack


class LeastSquares(Problem):
    r"""Ridge regression: each node holds samples a_ij with targets b_ij.

    .. math:: f_i(x) = \frac{1}{2} \sum_j w_{ij} (a_{ij}^\top x - b_{ij})^2 + \frac{r}{2} \|x\|^2

    with w_ij = 1 / m_i unless given, mu_i = r and L_i = r + the largest eigenvalue of the sum of the w_ij a_ij a_ij'.
    A gradient costs two products with a node's samples. Where a node has more samples than there are features,
    `Quadratic` with that sum as H_i is cheaper, and knows a larger mu.

    Parameters
    ----------
    data : sequence of (features, targets)
        One pair a node, dense or scipy.sparse.
    l2 : float
        The regulariser r.
    weights : sequence of arrays, optional
        The w_ij, one array a node.
    longest : int, optional
        Dense nodes are filled up to so many rows; by default to those of the largest.

    Examples
    --------
    >>> problem = LeastSquares([([[1.0], [1.0]], [1.0, 3.0]), ([[2.0]], [0.0])], l2=0.5)
    >>> problem.mu, problem.L, problem.solution().round(9).tolist()
    (0.5, 4.5, [0.333333333])
    """

    array_fields = ("features", "moments", "squares", "l2")
    static_fields = ()
    on_host = True
    features: DenseFeatures | SparseFeatures
    moments: np.ndarray  # (nodes, dim): the sum over j of w_ij b_ij a_ij
    squares: np.ndarray  # (nodes,): the sum over j of w_ij b_ij^2
    l2: float

    def __init__(
        self,
        data: Sequence[tuple[Any, Any]],
        *,
        l2: float,
        weights: Sequence[Any] | None = None,
        longest: int | None = None,
    ) -> None:
        matrix, labels, counts, per_sample = stack(data, weights)
        check_regulariser(l2, None)
        targets = as_numbers("targets", labels)
        longest = check_longest(longest, counts)
        check_room(int(counts.size), int(matrix.shape[1]), matrix)
        self.nodes, self.dim, self.l2 = int(counts.size), int(matrix.shape[1]), float(l2)
        curvature = largest_curvature(matrix, counts, per_sample)
        self._set_constants(np.full(self.nodes, self.l2), self.l2 + curvature)
        unsigned = np.ones(targets.size)
        if sp.issparse(matrix):
            self.features = sparse_features(matrix, unsigned, counts, per_sample)
        else:
            self.features = dense_features(matrix, unsigned, counts, longest, per_sample)
        one = np.repeat(1.0 / counts, counts) if per_sample is None else per_sample
        starts = np.concatenate([[0], np.cumsum(counts)])
        nodes = sp.csr_array((one * targets, np.arange(targets.size), starts), shape=(self.nodes, targets.size))
        sums = nodes @ matrix
        self.moments = np.asarray(sums.toarray() if sp.issparse(sums) else sums)
        self.squares = np.asarray(nodes @ targets)

    def _facts(self) -> dict[str, Any]:
        """Return what there is to know at a glance."""
        return {**super()._facts(), "l2": self.l2, "samples": self.features.described()}

    def value_rows(self, x: Array) -> Array:
        """Return f_i(x_i)."""
        fitted = self.features.mean(self.features.margins(x) ** 2)
        return (fitted + self.squares) / 2 + ((self.l2 / 2 * x - self.moments) * x).sum(axis=-1)

    def gradient_rows(self, x: Array) -> Array:
        """Return grad f_i(x_i)."""
        return self.features.weighted_mean(self.features.margins(x)) - self.moments + self.l2 * x

    def hessian_product_rows(self, x: Array, v: Array) -> Array:
        """Return the Hessian of f_i times v_i."""
        return self.features.weighted_mean(self.features.margins(v)) + self.l2 * v

    def hessian_rows(self, x: Array) -> Array:
        """Return the Hessians, shape (nodes, dim, dim)."""
        if isinstance(self.features, SparseFeatures):
            return super().hessian_rows(x)
        eye = jnp.eye(self.dim, dtype=x.dtype)
        return self.features.gram(jnp.ones_like(self.features.weights)) + self.l2 * eye

    def mean_gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the mean of the gradients at one common x."""
        samples = self.features.samples()
        moments = np.asarray(self.moments).mean(axis=0)
        return np.asarray(samples.sums(samples.margins(x)) - moments + self.l2 * x)

    def mean_hessian(self, x: np.ndarray) -> np.ndarray:
        """Return the mean of the Hessians."""
        samples = self.features.samples()
        return samples.gram(np.ones_like(samples.weights)) + self.l2 * np.eye(self.dim)

    def mean_hessian_product(self, x: np.ndarray) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray | None]:
        """Return v -> H v for the mean H of the Hessians, and the diagonal of H."""
        samples = self.features.samples()
        diagonal = samples.squares(np.ones_like(samples.weights)) + self.l2
        return lambda v: samples.sums(samples.margins(v)) + self.l2 * v, diagonal

    def rounding(self, rng: np.random.Generator) -> np.ndarray:
        """Draw what rounding may have added to the moments: up to a bound of the sum of the |w_ij b_ij a_ij|."""
        samples = self.features.samples()
        most = np.sqrt(np.asarray(self.squares).mean() * samples.squares(np.ones_like(samples.weights)))
        return np.asarray(most * rng.choice([-1.0, 1.0], self.dim))
