"""scikit-learn's ridge regression over a network."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin

from ..problems.base import Problem
from ..problems.checks import as_numbers
from ..problems.linear_model import LeastSquares
from ..problems.quadratic import Quadratic
from .base import Decentralized
from .coordinates import Coordinates, with_intercept
from .partition import Partition, partition

BINS = 10
ROUNDING = 1e-13


@dataclass(kw_only=True, repr=False, eq=False)
class DecentralizedRidge(RegressorMixin, Decentralized):  # type: ignore[misc]  # scikit-learn is untyped
    r"""Ridge regression whose samples lie at the nodes of a changing network.

    Minimises the objective of `sklearn.linear_model.Ridge`,

    .. math:: \sum_j s_j (a_j^\top w + b - y_j)^2 + \alpha \|w\|^2,

    with an intercept b that is not penalised. Divided by twice the sum of the weights s_j, this objective is the mean
    over the n nodes of

    .. math:: f_i = \frac{n}{2 \sum_j s_j} \sum_{j \text{ at } i} s_j (a_j^\top w + b - y_j)^2 + \frac{r}{2} \|w\|^2,
              \qquad r = \frac{\alpha}{\sum_j s_j}.

    Targets and dense features are centred by their means, which the nodes average first. For dense features w then
    determines the intercept.

    Parameters
    ----------
    alpha : float
        Positive.
    nodes, network, method, parameters, oracle, tol, max_rounds, fit_intercept, warm_start, random_state, verbose
        As in `DecentralizedLogisticRegression`.
    split : str
        How samples are split over nodes: "shuffled", "contiguous", "label" (sorted by target), or "dirichlet" (with
        the deciles of the targets as classes).

    Attributes
    ----------
    coef_, intercept_, n_features_in_, feature_names_in_
        As in scikit-learn. The coefficients are the mean over the nodes.
    n_iter_, history_, network_, result_
        As in `DecentralizedLogisticRegression`.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> X, y = make_regression(200, 5, noise=1.0, random_state=0)
    >>> model = DecentralizedRidge(nodes=5).fit(X, y)
    >>> model.coef_.shape, model.score(X, y) > 0.99
    ((5,), True)
    """

    alpha: float = 1.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Split the samples over the nodes and let the nodes agree on the model.

        Parameters
        ----------
        X : array or scipy.sparse array of shape (samples, features)
            Sparse features stay sparse.
        y : array of shape (samples,)
        sample_weight : array of shape (samples,), optional
            The s_j, 0 or more.
        """
        X, y, weights = self._check_data(X, y, sample_weight, y_numeric=True)
        alpha, y = self._check_regularisation("alpha"), as_numbers("y", y)
        total = weights.sum()
        l2, weights = alpha / total, weights / total

        labels = y
        if self.split == "dirichlet":
            labels = np.searchsorted(np.quantile(y, np.arange(1, BINS) / BINS), y)
        parts = partition(labels, self.nodes, self.split, self.network, self.random_state)
        coordinates, mean = Coordinates(), 0.0
        if self.fit_intercept:
            mean = float(weights @ y)
            coordinates = with_intercept(X, parts, weights, l2, 1.0)
            if coordinates.mean is not None:
                coordinates = coordinates._replace(column=0.0)  # for centred samples the best intercept is 0
        centred = y - mean
        if np.abs(centred).max() <= ROUNDING * np.abs(y).max():
            centred[:] = 0.0  # equal targets: only rounding is left, on which nodes could not agree
        problem = _problem(coordinates.features(X), centred, weights, parts, l2)

        start = self._warm((1, X.shape[1]))
        begin = None if start is None else coordinates.point(start[0], start[1] - mean)
        averaged = X.shape[1] + 2 if self.fit_intercept else 0
        coefficients, intercepts = self._agree(problem, parts, coordinates, begin, averaged)
        self.coef_ = coefficients[0]
        self.intercept_ = float(intercepts[0] + mean)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the prediction for every sample."""
        return self._decisions(X)


def _problem(X: Any, y: np.ndarray, weights: np.ndarray, parts: Partition, l2: float) -> Problem:
    """Return the f_i; they are quadratics for dense data if some node has at least as many samples as features."""
    data = parts.split(X, y)
    node_weights = parts.split(len(data) * weights)
    if sp.issparse(X) or X.shape[1] > max(rows.size for rows in parts.rows):
        return LeastSquares(data, l2=l2, weights=node_weights, longest=parts.padded)
    penalty = l2 * np.eye(X.shape[1])
    H = np.stack([(A * w[:, None]).T @ A + penalty for (A, _), w in zip(data, node_weights, strict=True)])
    c = np.stack([A.T @ (w * b) for (A, b), w in zip(data, node_weights, strict=True)])
    return Quadratic((H + H.transpose(0, 2, 1)) / 2, c)
