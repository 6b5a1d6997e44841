"""The estimators of numbers: ridge, elastic net, Poisson and gamma regression."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_sample_weight

from ..errors import InputError
from ..problems.base import Problem
from ..problems.limits import as_numbers
from ..problems.linear_model import LeastSquares
from ..problems.losses import GAMMA, POISSON, RIDGE, Loss
from ..problems.quadratic import Quadratic
from .estimators import Decentralized, share
from .fitting import Coordinates, Partition, is_newton, partition, with_intercept

BINS = 10
"""Classes of the targets for the split "dirichlet"."""
ROUNDING = 1e-13


@dataclass(kw_only=True, repr=False, eq=False)
class Regressor(RegressorMixin, Decentralized):  # type: ignore[misc]  # scikit-learn is untyped
    """A generalised linear model of numbers, with a penalty of strength alpha or none."""

    _loss: ClassVar[Loss] = RIDGE
    _family: ClassVar[str] = "gaussian"

    alpha: float = 1.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = bool(self._loss.flaw(np.array([-1.0])))
        return tags

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
        y = as_numbers("y", y)
        if flaw := self._loss.flaw(y, "y"):
            raise InputError(flaw)
        if self._loss is POISSON and self.fit_intercept and not weights @ y:
            raise InputError("all y are 0, so the intercept would go to minus infinity; fit without an intercept")
        l2, l1, only = self._penalties(self._check_regularisation("alpha", 0.0), weights.sum())
        method = self._chosen_method(X.shape[1] + bool(self.fit_intercept), only)

        labels = y
        if self.split == "dirichlet":
            labels = np.searchsorted(np.quantile(y, np.arange(1, BINS) / BINS), y)
        parts = partition(labels, self.nodes, self.split, self.network, self.random_state)
        problem: Problem
        if is_newton(method):
            (problem, coordinates), mean, averaged = self._glm(X, y, weights, parts, self._family, (l2, l1)), 0.0, 0
        else:
            problem, coordinates, mean = _centred(X, y, weights / weights.sum(), parts, l2, bool(self.fit_intercept))
            averaged = X.shape[1] + 2 if self.fit_intercept else 0

        start = self._warm((1, X.shape[1]))
        start = None if start is None else (start[0], start[1] - mean)
        coefficients, intercepts = self._agree(problem, method, parts, coordinates, start, averaged)
        self.coef_ = coefficients[0]
        self.intercept_ = float(intercepts[0] + mean)
        return self

    def _penalties(self, alpha: float, total: float) -> tuple[float, float, str]:
        """Return l2 and l1 for samples that weigh `total`, and why only Newton's method will do, "" if others do."""
        return alpha, 0.0, f"a {self._loss.name} loss"

    def predict(self, X: Any) -> np.ndarray:
        """Return the prediction for every sample."""
        assert self._loss.expected is not None
        return np.asarray(self._loss.expected(self._decisions(X)))


@dataclass(kw_only=True, repr=False, eq=False)
class DecentralizedRidge(Regressor):
    r"""Ridge regression whose samples lie at the nodes of a changing network.

    Minimises the objective of `sklearn.linear_model.Ridge`,

    .. math:: \sum_j s_j (a_j^\top w + b - y_j)^2 + \alpha \|w\|^2,

    with an intercept b that is not penalised. Divided by twice the sum of the weights s_j, this objective is the mean
    over the n nodes of

    .. math:: f_i = \frac{n}{2 \sum_j s_j} \sum_{j \text{ at } i} s_j (a_j^\top w + b - y_j)^2 + \frac{r}{2} \|w\|^2,
              \qquad r = \frac{\alpha}{\sum_j s_j}.

    For methods that exchange gradients, targets and dense features are centred by their means, which the nodes average
    first. For dense features w then determines the intercept.

    Parameters
    ----------
    alpha : float
        0 or more. 0 is for no penalty, by the method "newton".
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

    def _penalties(self, alpha: float, total: float) -> tuple[float, float, str]:
        return alpha / total, 0.0, "" if alpha else "alpha=0"


@dataclass(kw_only=True, repr=False, eq=False)
class DecentralizedElasticNet(Regressor):
    r"""Linear regression with an l1 and an l2 penalty, whose samples lie at the nodes of a changing network.

    Minimises the objective of `sklearn.linear_model.ElasticNet`, where :math:`\rho` is `l1_ratio`,

    .. math:: \frac{1}{2 \sum_j s_j} \sum_j s_j (a_j^\top w + b - y_j)^2
              + \alpha \rho \|w\|_1 + \frac{\alpha (1 - \rho)}{2} \|w\|^2.

    The method is Newton's by gossip, whatever the number of features.

    Parameters
    ----------
    alpha : float
        0 or more; 0 is for no penalty.
    l1_ratio : float
        From 0, for l2 alone, to 1, for l1 alone.
    nodes, split, network, method, parameters, oracle, tol, max_rounds, fit_intercept, warm_start, random_state, verbose
        As in `DecentralizedRidge`.

    Attributes
    ----------
    coef_, intercept_, n_features_in_, feature_names_in_, n_iter_, history_, network_, result_
        As in `DecentralizedRidge`.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> X, y = make_regression(200, 8, n_informative=3, noise=1.0, random_state=0)
    >>> int((DecentralizedElasticNet(nodes=5, l1_ratio=1.0).fit(X, y).coef_ != 0).sum())
    3
    """

    l1_ratio: float = 0.5

    def _penalties(self, alpha: float, total: float) -> tuple[float, float, str]:
        ratio = share(self.l1_ratio)
        return (1 - ratio) * alpha, ratio * alpha, "an l1 penalty"


@dataclass(kw_only=True, repr=False, eq=False)
class LogLinear(Regressor):
    """A regressor whose predictions are exponentials, and whose score is the share of deviance explained."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return D^2: 1 less the deviance of the predictions over that of the mean of y."""
        y, margins, deviance = as_numbers("y", np.asarray(y)), self._decisions(X), self._loss.deviance
        if flaw := self._loss.flaw(y, "y"):
            raise InputError(flaw)
        assert deviance is not None
        weights = _check_sample_weight(sample_weight, y)
        constant = np.full(len(y), np.log(np.average(y, weights=weights)))
        return float(1 - weights @ deviance(margins, y) / (weights @ deviance(constant, y)))


@dataclass(kw_only=True, repr=False, eq=False)
class DecentralizedPoissonRegressor(LogLinear):
    r"""Poisson regression of counts, whose samples lie at the nodes of a changing network.

    Minimises the objective of `sklearn.linear_model.PoissonRegressor`, with the prediction
    :math:`\mu_j = \exp(a_j^\top w + b)`,

    .. math:: \frac{1}{\sum_j s_j} \sum_j s_j (\mu_j - y_j \log \mu_j) + \frac{\alpha}{2} \|w\|^2.

    The method is Newton's by gossip, whatever the number of features: the loss has no greatest curvature.

    Parameters
    ----------
    alpha : float
        0 or more; 0 is for no penalty.
    nodes, split, network, method, parameters, oracle, tol, max_rounds, fit_intercept, warm_start, random_state, verbose
        As in `DecentralizedRidge`.

    Attributes
    ----------
    coef_, intercept_, n_features_in_, feature_names_in_, n_iter_, history_, network_, result_
        As in `DecentralizedRidge`.

    Examples
    --------
    >>> X = np.linspace(-1.0, 1.0, 60)[:, None]
    >>> y = np.round(np.exp(1.0 + X[:, 0]))
    >>> model = DecentralizedPoissonRegressor(nodes=5, alpha=0.0).fit(X, y)
    >>> model.coef_.round(1).tolist(), model.score(X, y) > 0.9
    ([1.0], True)
    """

    _loss: ClassVar[Loss] = POISSON
    _family: ClassVar[str] = "poisson"


@dataclass(kw_only=True, repr=False, eq=False)
class DecentralizedGammaRegressor(LogLinear):
    r"""Regression of positive numbers by the gamma distribution, with the logarithm as link, over a changing network.

    Minimises the objective of `sklearn.linear_model.GammaRegressor`, with the prediction
    :math:`\mu_j = \exp(a_j^\top w + b)`,

    .. math:: \frac{1}{\sum_j s_j} \sum_j s_j (y_j / \mu_j + \log \mu_j) + \frac{\alpha}{2} \|w\|^2.

    The method is Newton's by gossip, whatever the number of features: the loss has no greatest curvature.

    Parameters
    ----------
    alpha : float
        0 or more; 0 is for no penalty.
    nodes, split, network, method, parameters, oracle, tol, max_rounds, fit_intercept, warm_start, random_state, verbose
        As in `DecentralizedRidge`.

    Attributes
    ----------
    coef_, intercept_, n_features_in_, feature_names_in_, n_iter_, history_, network_, result_
        As in `DecentralizedRidge`.

    Examples
    --------
    >>> X = np.linspace(-1.0, 1.0, 60)[:, None]
    >>> model = DecentralizedGammaRegressor(nodes=5, alpha=0.0).fit(X, np.exp(1.0 + X[:, 0]))
    >>> model.coef_.round(6).tolist(), round(model.intercept_, 6)
    ([1.0], 1.0)
    """

    _loss: ClassVar[Loss] = GAMMA
    _family: ClassVar[str] = "gamma"


def _centred(
    X: Any, y: np.ndarray, weights: np.ndarray, parts: Partition, l2: float, fit_intercept: bool
) -> tuple[Problem, Coordinates, float]:
    """Return the f_i of a ridge regression for methods that need l2 for every coordinate, and the mean taken off y."""
    coordinates, mean = Coordinates(), 0.0
    if fit_intercept:
        mean = float(weights @ y)
        coordinates = with_intercept(X, parts, weights, l2, 1.0)
        if coordinates.mean is not None:
            coordinates = coordinates._replace(column=0.0)  # for centred samples the best intercept is 0
    centred = y - mean
    if np.abs(centred).max() <= ROUNDING * np.abs(y).max():
        centred[:] = 0.0  # equal targets: only rounding is left, on which nodes could not agree
    return _quadratics(coordinates.features(X), centred, weights, parts, l2), coordinates, mean


def _quadratics(X: Any, y: np.ndarray, weights: np.ndarray, parts: Partition, l2: float) -> Problem:
    """Return the f_i; they are quadratics for dense data if some node has at least as many samples as features."""
    data = parts.split(X, y)
    node_weights = parts.split(len(data) * weights)
    if sp.issparse(X) or X.shape[1] > max(rows.size for rows in parts.rows):
        return LeastSquares(data, l2=l2, weights=node_weights, longest=parts.padded)
    penalty = l2 * np.eye(X.shape[1])
    H = np.stack([(A * w[:, None]).T @ A + penalty for (A, _), w in zip(data, node_weights, strict=True)])
    c = np.stack([A.T @ (w * b) for (A, b), w in zip(data, node_weights, strict=True)])
    return Quadratic((H + H.transpose(0, 2, 1)) / 2, c)
