"""l2-regularised multinomial logistic regression."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from ..errors import InputError
from .base import Array, Problem
from .checks import check_room, check_whole
from .features import DenseFeatures, Samples, SparseFeatures, dense_features, largest_curvature, sparse_features
from .logistic import check_regulariser
from .nodes import check_longest, stack


class SoftmaxRegression(Problem):
    r"""Classification into K classes: each node holds samples a_ij with labels b_ij = 0, ..., K - 1.

    One vector of coefficients a class, x = (x_0, ..., x_{K-1}), all of them free (the symmetric form):

    .. math:: f_i(x) = \sum_j w_{ij} \left(\log \sum_k e^{a_{ij}^\top x_k} - a_{ij}^\top x_{b_{ij}}\right)
              + \frac{r}{2} \|x\|^2

    with w_ij = 1 / m_i unless given. A row of x is these vectors one after the other, so dim = K times the features.
    The Hessian of the log-sum-exp, diag(p) - p p', has no eigenvalue above 1/2, so mu_i = r and L_i = r + half the
    largest eigenvalue of the sum over j of w_ij a_ij a_ij', computed for every node.

    A sample's label enters its loss linearly, so a node keeps its labels as one vector, the sum of w_ij a_ij in the
    place of class b_ij, and the samples without them.

    Parameters
    ----------
    data : sequence of (features, labels)
        One pair a node, dense or scipy.sparse; labels are whole numbers from 0 on. A node need not have every class.
    classes : int
        K, two or more.
    l2 : float
        The regulariser r.
    weights : sequence of arrays, optional
        The w_ij, one array a node.
    longest : int, optional
        Dense nodes are filled up to so many rows; by default to those of the largest.

    Examples
    --------
    >>> data = [([[1.0, 0.0], [0.0, 1.0]], [0, 1]), ([[1.0, 1.0]], [2])]
    >>> problem = SoftmaxRegression(data, classes=3, l2=0.5)
    >>> problem.nodes, problem.dim, problem.mu, problem.L
    (2, 6, 0.5, 1.5)
    """

    array_fields = ("features", "targets", "l2")
    static_fields = ("classes",)
    on_host = True
    features: DenseFeatures | SparseFeatures
    targets: np.ndarray  # (nodes, dim): the sum over j of w_ij a_ij in the place of class b_ij
    l2: float
    classes: int

    def __init__(
        self,
        data: Sequence[tuple[Any, Any]],
        *,
        classes: int,
        l2: float,
        weights: Sequence[Any] | None = None,
        longest: int | None = None,
    ) -> None:
        matrix, labels, counts, per_sample = stack(data, weights)
        check_regulariser(l2, None)
        _check_labels(labels, classes)
        longest = check_longest(longest, counts)
        check_room(int(counts.size), int(classes) * int(matrix.shape[1]), matrix)
        curvature = largest_curvature(matrix, counts, per_sample) / 2
        self.nodes, self.classes, self.l2 = int(counts.size), int(classes), float(l2)
        self.dim = self.classes * int(matrix.shape[1])
        self._set_constants(np.full(self.nodes, self.l2), self.l2 + curvature)
        unsigned = np.ones(matrix.shape[0])
        if sp.issparse(matrix):
            self.features = sparse_features(matrix, unsigned, counts, per_sample)
        else:
            self.features = dense_features(matrix, unsigned, counts, longest, per_sample)
        node = np.repeat(np.arange(self.nodes), counts)
        one = np.repeat(1.0 / counts, counts) if per_sample is None else per_sample
        places = (node * self.classes + labels.astype(np.int64), np.arange(labels.size))
        sums = sp.csr_array((one, places), shape=(self.nodes * self.classes, labels.size)) @ matrix
        self.targets = np.asarray(sums.toarray() if sp.issparse(sums) else sums).reshape(self.nodes, self.dim)

    def _margins(self, x: Array) -> Array:
        """Return a_ij'x_k for every sample and class, the classes last."""
        apart = x.reshape(x.shape[0], self.classes, -1)
        return jax.vmap(self.features.margins, in_axes=1, out_axes=-1)(apart)

    def _sums(self, per_sample: Array) -> Array:
        """Return the sum over each node's samples of w_ij per_sample_k a_ij, for every class k; shape (nodes, dim)."""
        sums = jax.vmap(self.features.weighted_mean, in_axes=-1, out_axes=1)(per_sample)
        return sums.reshape(sums.shape[0], -1)

    def _facts(self) -> dict[str, Any]:
        """Return what there is to know at a glance."""
        return {**super()._facts(), "classes": self.classes, "l2": self.l2, "samples": self.features.described()}

    def value_rows(self, x: Array) -> Array:
        """Return f_i(x_i)."""
        losses = self.features.mean(jax.nn.logsumexp(self._margins(x), axis=-1))
        return losses + ((self.l2 / 2 * x - self.targets) * x).sum(axis=-1)

    def gradient_rows(self, x: Array) -> Array:
        """Return grad f_i(x_i)."""
        return self._sums(jax.nn.softmax(self._margins(x))) - self.targets + self.l2 * x

    def hessian_product_rows(self, x: Array, v: Array) -> Array:
        """Return the Hessian of f_i at x_i times v_i."""
        p, along = jax.nn.softmax(self._margins(x)), self._margins(v)
        return self._sums(p * (along - (p * along).sum(axis=-1, keepdims=True))) + self.l2 * v

    def mean_gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the mean of the gradients at one common x."""
        samples, p = self._likely(x)
        loss = samples.sums(p).T - np.asarray(self.targets).mean(axis=0).reshape(self.classes, -1)
        return _balanced(loss).ravel() + self.l2 * x

    def mean_hessian(self, x: np.ndarray) -> np.ndarray:
        """Return the mean of the Hessians at one common x, block after block."""
        samples, p = self._likely(x)
        width = self.dim // self.classes
        hessian = self.l2 * np.eye(self.dim)
        for k in range(self.classes):
            rows = slice(k * width, (k + 1) * width)
            hessian[rows, rows] += samples.gram(p[:, k] * (1 - p[:, k]))
            for other in range(k):
                columns = slice(other * width, (other + 1) * width)
                hessian[rows, columns] = samples.gram(-p[:, k] * p[:, other])
                hessian[columns, rows] = hessian[rows, columns].T
        return hessian

    def mean_hessian_product(self, x: np.ndarray) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray | None]:
        """Return v -> H v for the mean H of the Hessians at x, and the diagonal of H."""
        samples, p = self._likely(x)

        def product(v: np.ndarray) -> np.ndarray:
            along = samples.margins(v.reshape(self.classes, -1).T)
            return samples.sums(p * (along - (p * along).sum(axis=1, keepdims=True))).T.ravel() + self.l2 * v

        return product, np.concatenate([samples.squares(one * (1 - one)) for one in p.T]) + self.l2

    def rounding(self, rng: np.random.Generator) -> np.ndarray:
        """Draw what rounding may have added to the targets: up to a bound of the sum of the |w_ij a_ij|."""
        samples = self.features.samples()
        most = np.sqrt(samples.weights.sum() * samples.squares(np.ones_like(samples.weights)))
        return _balanced(most * rng.choice([-1.0, 1.0], (self.classes, most.size))).ravel()

    def _likely(self, x: np.ndarray) -> tuple[Samples, np.ndarray]:
        """Return the samples, and the probability of every class for each of them at one common x."""
        samples = self.features.samples()
        return samples, softmax(samples.margins(x.reshape(self.classes, -1).T), axis=1)


def _balanced(per_class: np.ndarray) -> np.ndarray:
    """Return vectors, one a class, less their mean.

    Those of the loss's gradient sum to 0. Along such a common shift f_i has no curvature but r, so what rounding leaves
    of that sum would be magnified the most.
    """
    balanced: np.ndarray = per_class - per_class.mean(axis=0)
    return balanced


def _check_labels(labels: np.ndarray, classes: int) -> None:
    """Refuse labels that are no whole numbers from 0 up to the number of classes."""
    check_whole("classes", classes, 2, "it is how many there are")
    if labels.dtype.kind not in "iub" or labels.min() < 0 or labels.max() >= classes:
        strange = labels[0] if labels.dtype.kind not in "iub" else labels[np.argmax((labels < 0) | (labels >= classes))]
        raise InputError(
            f"labels must be whole numbers from 0 to {classes - 1}, got {strange!r}; "
            "number the classes first, e.g. by numpy.unique(labels, return_inverse=True)"
        )
