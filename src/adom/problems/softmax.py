"""l2-regularised multinomial logistic regression."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ..errors import InputError
from ..util.checks import check_whole
from .base import Array, Problem
from .checks import LARGEST_DIM
from .curvature import dense
from .linear_model import LinearModel
from .losses import SOFTMAX
from .nodes import stack


class SoftmaxRegression(LinearModel):
    r"""Classification into K classes: each node holds samples a_ij with labels b_ij = 0, ..., K - 1.

    Each class has its own vector of coefficients, x = (x_0, ..., x_{K-1}), and none is fixed (the symmetric form):

    .. math:: f_i(x) = \sum_j w_{ij} \left(\log \sum_k e^{a_{ij}^\top x_k} - a_{ij}^\top x_{b_{ij}}\right)
              + \frac{r}{2} \|x\|^2

    Here w_ij = 1 / m_i by default. A row of x concatenates these vectors, so dim is K times the number of features.
    The Hessian of the log-sum-exp, diag(p) - p p', has no eigenvalue above 1/2. So mu_i = r, and L_i = r + half the
    largest eigenvalue of the sum over j of w_ij a_ij a_ij', computed for every node.

    A label enters the loss linearly. So a node stores its labels as one vector, in which the block of class k is the
    sum of w_ij a_ij over its samples of class k, and its samples without labels.

    Parameters
    ----------
    data : sequence of (features, labels)
        One pair per node, dense or scipy.sparse; labels are 0, ..., K - 1. A node need not have every class.
    classes : int
        K, two or more.
    l2 : float
        The regulariser r.
    weights : sequence of arrays, optional
        The w_ij, one array per node.
    longest : int, optional
        Dense nodes are padded to this many rows; by default, to the size of the largest node.
    count : str
        Without `weights`: whether "nodes" or "samples" count equally, as for `LogisticRegression`.

    Examples
    --------
    >>> data = [([[1.0, 0.0], [0.0, 1.0]], [0, 1]), ([[1.0, 1.0]], [2])]
    >>> problem = SoftmaxRegression(data, classes=3, l2=0.5)
    >>> problem.nodes, problem.dim, problem.mu, problem.L
    (2, 6, 0.5, 1.5)
    """

    array_fields = ("features", "targets", "l2")
    static_fields = ("classes",)
    loss, folded = SOFTMAX, -1.0  # of no class: `targets` has the labels
    targets: np.ndarray  # (nodes, dim): in the block of class k, the sum of w_ij a_ij over its samples
    classes: int

    def __init__(
        self,
        data: Sequence[tuple[Any, Any]],
        *,
        classes: int,
        l2: float,
        weights: Sequence[Any] | None = None,
        longest: int | None = None,
        count: str = "nodes",
    ) -> None:
        stacked = stack(data, weights, count)
        _check_labels(stacked.labels, classes)
        self.classes = int(classes)
        self._build(stacked, l2, outputs=self.classes, longest=longest)
        self.labels = tuple(range(self.classes))
        sums = stacked.summing(stacked.sample_weights(), stacked.labels.astype(np.int64), self.classes)
        self.targets = dense(sums @ stacked.features).reshape(self.nodes, self.dim)

    def _linear(self) -> Array:
        return self.targets

    def _margins(self, x: Array) -> Array:
        """Return a_ij'x_k for every sample and class; classes are the last axis."""
        per_class = x.reshape(x.shape[0], self.classes, -1)
        return jax.vmap(self.features.margins, in_axes=1, out_axes=-1)(per_class)

    def _sums(self, per_sample: Array) -> Array:
        """Return the sum over each node's samples of w_ij per_sample_k a_ij, for every class k; shape (nodes, dim)."""
        sums = jax.vmap(self.features.weighted_mean, in_axes=-1, out_axes=1)(per_sample)
        return sums.reshape(sums.shape[0], -1)

    def _columns(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(self.classes, -1).T

    def _flat(self, sums: np.ndarray) -> np.ndarray:
        return sums.T.ravel()

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "classes": self.classes}

    def value_rows(self, x: Array) -> Array:
        """Return f_i(x_i)."""
        losses = self.features.mean(self.loss.value(self._margins(x), self.folded))
        return losses + ((self.l2 / 2 * x - self.targets) * x).sum(axis=-1)

    hessian_rows, own_hessians = Problem.hessian_rows, Problem.own_hessians  # the classes are coupled

    def mean_gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the mean of the gradients at one common x."""
        samples = self.features.samples()
        sums = samples.sums(self.loss.slope(samples.margins(self._columns(x)), self.folded)).T
        return _balanced(sums - np.asarray(self.targets).mean(axis=0).reshape(self.classes, -1)).ravel() + self.l2 * x

    def mean_hessian(self, x: np.ndarray) -> np.ndarray:
        """Return the mean of the Hessians at one common x, block by block."""
        samples = self.features.samples()
        bends = self.loss.bends(samples.margins(self._columns(x)), self.folded)
        width = self.dim // self.classes
        hessian = self.l2 * np.eye(self.dim)
        for k, unit in enumerate(np.eye(self.classes)):
            rows, bend = slice(k * width, (k + 1) * width), bends(unit)
            hessian[rows, rows] += samples.gram(bend[:, k])
            for other in range(k):
                columns = slice(other * width, (other + 1) * width)
                hessian[rows, columns] = samples.gram(bend[:, other])
                hessian[columns, rows] = hessian[rows, columns].T
        return hessian

    def rounding(self, rng: np.random.Generator) -> np.ndarray:
        """Return a random rounding error of the targets: plus or minus a bound of the sum of the |w_ij a_ij|."""
        samples = self.features.samples()
        most = np.sqrt(samples.weights.sum() * samples.squares(np.ones_like(samples.weights)))
        return _balanced(most * rng.choice([-1.0, 1.0], (self.classes, most.size))).ravel()


def _balanced(per_class: np.ndarray) -> np.ndarray:
    """Return the vectors of all classes minus their mean.

    In the gradient of the loss these vectors sum to 0. Along a common shift of all classes f_i has no curvature except
    r, so Newton's method would amplify a rounding error in this sum the most.
    """
    balanced: np.ndarray = per_class - per_class.mean(axis=0)
    return balanced


def _check_labels(labels: np.ndarray, classes: int) -> None:
    """Refuse labels other than whole numbers from 0 up to the number of classes."""
    check_whole("classes", classes, 2, "it is the number of classes", LARGEST_DIM)
    if labels.dtype.kind not in "iub" or labels.min() < 0 or labels.max() >= classes:
        strange = labels[0] if labels.dtype.kind not in "iub" else labels[np.argmax((labels < 0) | (labels >= classes))]
        raise InputError(
            f"labels must be whole numbers from 0 to {classes - 1}, got {strange!r}; "
            "number the classes first, e.g. by numpy.unique(labels, return_inverse=True)"
        )
