"""scikit-learn's logistic regression over a network."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from ..errors import InputError, shown
from ..problems.base import Problem
from ..problems.checks import LARGEST, as_number
from ..problems.linear_model import LogisticRegression, SoftmaxRegression
from .base import Decentralized
from .coordinates import Coordinates, with_intercept
from .partition import partition


@dataclass(kw_only=True, repr=False, eq=False)
class DecentralizedLogisticRegression(ClassifierMixin, Decentralized):  # type: ignore[misc]  # scikit-learn is untyped
    r"""Logistic regression whose samples lie at the nodes of a changing network.

    Minimises the objective of `sklearn.linear_model.LogisticRegression` with its l2 penalty,

    .. math:: C \sum_j s_j \, \mathrm{loss}(y_j, a_j^\top w + b) + \tfrac{1}{2} \|w\|^2,

    with the logistic loss for two classes and the symmetric softmax loss for more, and an intercept b that is not
    penalised. Divided by C times the sum of the weights s_j, this objective is the mean over the n nodes of

    .. math:: f_i = \frac{n}{\sum_j s_j} \sum_{j \text{ at } i} s_j \, \mathrm{loss}_j + \frac{r}{2} \|w\|^2,
              \qquad r = \frac{1}{C \sum_j s_j}.

    Nodes may hold different numbers of samples, even of one class only.

    Parameters
    ----------
    nodes : int, optional
        At least 2; by default the network's, or 10. With fewer samples there are as many nodes as samples, unless the
        network is given as an object.
    split : str
        How samples are split over nodes: "shuffled", "contiguous", "label" or "dirichlet"; see `adom.data.split`.
    network : str, network or callable
        "expander" (changing random graphs of degree 8), "geometric", "erdos_renyi", "complete", "ring", "star", "path",
        an adom network, or a function of the number of nodes that returns one.
    method : str or Method
        As in `adom.solve`.
    parameters : str or dict
        As in `adom.solve`.
    oracle : str or tuple
        As in `adom.solve`, for dual methods.
    C : float
        Positive and finite, scikit-learn's inverse of the regularisation.
    tol : float
        Largest root mean square distance of the nodes to the minimiser, relative to its length. The simulation can
        measure this distance.
    max_rounds : int
        The budget of communication rounds.
    fit_intercept : bool
        Whether to fit an intercept.
    class_weight : dict or "balanced", optional
        Weights of the classes, as in scikit-learn.
    warm_start : bool
        Start from the coefficients of the last fit.
    random_state : int, numpy generator or None
        Seed of the split and of networks given by name; None draws a new one each time.
    verbose : bool
        Show progress: a bar on a terminal, a line now and then elsewhere.

    Attributes
    ----------
    classes_, coef_, intercept_, n_features_in_, feature_names_in_
        As in scikit-learn. The coefficients are the mean over the nodes.
    n_iter_ : int
        All communication rounds: those of the runs, including diverged ones, and of averaging (`docs/sklearn.md`).
    history_ : pandas.DataFrame
        One row per record: the columns of `adom.Result.history`, and `stage`, the number of the run.
    network_ : Network
        The network that was used.
    result_ : Result
        ``result_.x`` has one row per node: the node's own coefficients, each vector followed by its intercept.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(200, 5, random_state=0)
    >>> model = DecentralizedLogisticRegression(nodes=5).fit(X, y)
    >>> model.coef_.shape, model.score(X, y) > 0.9, model.n_iter_ > 100
    ((1, 5), True, True)
    """

    C: float = 1.0
    class_weight: Any = None

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
        X, y, weights = self._check_data(X, y, sample_weight)
        check_classification_targets(y)
        C = self._check_regularisation("C")
        before = getattr(self, "classes_", None)
        self.classes_, labels = np.unique(y, return_inverse=True)
        classes = self.classes_.size
        if classes < 2:
            raise InputError(f"y has one class only, {self.classes_[0]!s}; logistic regression needs two or more")
        if self.class_weight is not None:
            weights = weights * self._class_weights(y, weights)[labels]
        total = weights.sum()
        l2, weights = 1 / (C * total), weights / total

        parts = partition(labels, self.nodes, self.split, self.network, self.random_state)
        coordinates = Coordinates()
        if self.fit_intercept:
            prior = np.bincount(labels, weights, classes)
            if not prior.all():
                raise InputError(
                    f"no sample of class {self.classes_[prior == 0][0]!s} has a positive weight, so its intercept "
                    "would go to minus infinity; leave these samples out, or fit without an intercept"
                )
            curvature = float(prior[0] * prior[1] if classes == 2 else prior.min())
            coordinates = with_intercept(X, parts, weights, l2, curvature)
        data = parts.split(coordinates.features(X), labels)
        options = {"l2": l2, "weights": parts.split(len(data) * weights), "longest": parts.padded}
        problem: Problem
        if classes == 2:
            problem = LogisticRegression.from_nodes(data, classes=(0, 1), **options)
        else:
            problem = SoftmaxRegression(data, classes=classes, **options)

        same = before is not None and np.array_equal(before, self.classes_)
        start = self._warm((1 if classes == 2 else classes, X.shape[1])) if same else None
        begin = None if start is None else coordinates.point(*start)
        averaged = X.shape[1] + classes if coordinates.mean is not None else 0
        self.coef_, self.intercept_ = self._agree(problem, parts, coordinates, begin, averaged)
        return self

    def _class_weights(self, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        if isinstance(self.class_weight, dict):
            for name, weight in self.class_weight.items():
                if not 0 <= as_number(f"class_weight[{name!r}]", weight, 1.0) <= LARGEST:
                    raise InputError(
                        f"class_weight[{name!r}] must lie between 0 and {LARGEST:g}, got {shown(weight)}; e.g. 1"
                    )
        if self.class_weight != "balanced":
            return np.asarray(compute_class_weight(self.class_weight, classes=self.classes_, y=y))
        counts = np.bincount(np.searchsorted(self.classes_, y), weights, self.classes_.size)
        balanced: np.ndarray = weights.sum() / (self.classes_.size * np.maximum(counts, 1e-300))
        return balanced

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores, of shape (samples,) for two classes and (samples, classes) for more."""
        scores = self._decisions(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely class of every sample."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        predicted: np.ndarray = self.classes_[chosen]
        return predicted

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every class, shape (samples, classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.stack([expit(-scores), expit(scores)], axis=1)
        return np.asarray(softmax(scores, axis=1))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`, finite even where the probabilities underflow."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.stack([log_expit(-scores), log_expit(scores)], axis=1)
        return np.asarray(log_softmax(scores, axis=1))
