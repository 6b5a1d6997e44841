"""What all estimators share, and logistic regression: parameters, checks, problems, predictions."""

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..dynamics.endings import LOST
from ..errors import InputError, shown
from ..problems.base import Problem
from ..problems.glm import GLM
from ..problems.limits import LARGEST, as_array, as_numbers
from ..problems.linear_model import LogisticRegression, SoftmaxRegression
from ..problems.losses import LOGISTIC, Loss
from ..problems.samples import check_features
from ..run.request import AUTO
from ..util.checks import check_real, check_whole
from .fitting import (
    NEWTON,
    Coordinates,
    Costs,
    Fit,
    Partition,
    is_newton,
    minimise,
    partition,
    summary,
    with_intercept,
)

MANY = 500
"""Up to this many coordinates, the method "auto" is Newton's by gossip."""
FIRST_ORDER = "acc-gt"
"""The method "auto" beyond."""
AGREED = 0.01
"""Before the first run, nodes average shared numbers until this fraction of `tol` is left of their differences."""


@dataclass(kw_only=True, repr=False, eq=False)
class Decentralized(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A linear model on whose coefficients the nodes of a network agree."""

    nodes: int | None = None
    split: str = "shuffled"
    network: Any = "expander"
    method: Any = "auto"
    parameters: Any = "auto"
    oracle: Any = "auto"
    tol: float = 1e-10
    max_rounds: int = 100_000
    fit_intercept: bool = True
    warm_start: bool = False
    random_state: Any = 0
    verbose: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_data(self, X: Any, y: Any, sample_weight: Any, **rules: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return float64 features (dense or CSR), labels and sample weights."""
        for name, values in (("X", X), ("y", y)):
            if np.ma.isMaskedArray(values):
                as_array(name, values)  # raises an error for masked entries
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2, **rules)
        X = check_features(X, "X")
        if sample_weight is not None:
            sample_weight = as_numbers("sample_weight", sample_weight)
            sample_weight = float(sample_weight) if sample_weight.ndim == 0 else sample_weight
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if (weights < 0).any() or not weights.sum() >= 1 / LARGEST:
            raise InputError(
                "sample_weight must be 0 or more, and positive for some sample, got a smallest of "
                f"{weights.min():g} and a sum of {weights.sum():g}; leave out samples that should not count"
            )
        return X, y, weights

    def _check_regularisation(self, name: str, none: float) -> float:
        """Return C or alpha as a number; `none` is for no penalty."""
        value = getattr(self, name)
        if isinstance(value, int | float | np.number) and not isinstance(value, bool) and value == none:
            return none
        remedy = f"or {none:g} for no penalty; to regularise more or less than that, scale the features"
        return check_real(name, value, 1 / LARGEST, LARGEST, remedy)

    def _chosen_method(self, coordinates: int, only: str) -> Any:
        """Return the method; `only` says what in the objective leaves none but Newton's, "" if there are others."""
        if isinstance(self.method, str) and self.method == AUTO:
            return NEWTON if only or coordinates <= MANY else FIRST_ORDER
        if only and not is_newton(self.method):
            raise InputError(
                f"{type(self).__name__} with {only} is fitted by method 'newton' alone, got {shown(self.method)}; "
                "leave method out"
            )
        return self.method

    def _glm(
        self, X: Any, y: np.ndarray, weights: np.ndarray, parts: Partition, family: str, penalties: tuple[float, float]
    ) -> tuple[GLM, Coordinates]:
        """Return the f_i with penalties l2 and l1, and an intercept that is not penalised."""
        problem = GLM.from_nodes(
            parts.split(X, y),
            family=family,
            l2=penalties[0],
            l1=penalties[1],
            intercept=bool(self.fit_intercept),
            weights=parts.split(weights),
            classes=(0, 1) if family == LOGISTIC.name else None,
            longest=None if sp.issparse(X) else parts.padded,
        )
        names = getattr(self, "feature_names_in_", None)
        problem.names = None if names is None else tuple(names)
        return problem, Coordinates(column=float(problem.intercept))

    def _agree(
        self,
        problem: Problem,
        method: Any,
        parts: Partition,
        coordinates: Coordinates,
        start: tuple[np.ndarray, np.ndarray] | None,
        averaged: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Run the method; return coefficients of shape (vectors, features) and intercepts.

        The problem's x holds one or more vectors in `coordinates`, one after the other. `start` has coefficients and
        intercepts. `averaged` is how many numbers the nodes average beforehand, such as the mean of the features.
        """
        if not (isinstance(self.tol, int | float | np.floating) and 0 < self.tol < 1):
            raise InputError(f"tol must lie between 0 and 1, got {shown(self.tol)}; it is relative, e.g. tol=1e-8")
        check_whole("max_rounds", self.max_rounds)
        costs = Costs(parts.network)
        if averaged:
            costs.average(averaged, AGREED * self.tol)
        width = self.n_features_in_ + bool(coordinates.column)
        free = np.tile(np.arange(width) == self.n_features_in_, problem.dim // width).astype(float)
        begin = np.zeros(problem.dim) if start is None else coordinates.point(*start).ravel()
        fit = minimise(problem, begin, free, method, self, costs)
        if fit.status != "converged":
            self._warn(fit, problem, costs)

        w, intercepts = coordinates.coefficients(fit.rows.reshape(problem.nodes, -1, width))
        rows = np.concatenate([w, intercepts[..., None]], axis=-1).reshape(problem.nodes, -1)
        self.network_ = parts.network
        known = {"features": list(getattr(self, "feature_names_in_", [])) or self.n_features_in_}
        if hasattr(self, "classes_"):
            known["classes"] = tuple(self.classes_.tolist())
        self.result_ = summary(fit, problem, rows, costs, known)
        self.history_ = self.result_.history
        self.n_iter_ = costs.rounds
        return coordinates.coefficients(fit.x.reshape(-1, width))

    def _warn(self, fit: Fit, problem: Problem, costs: Costs) -> None:
        spent = f"max_rounds={self.max_rounds} was reached"
        why = {
            "max_rounds": spent,
            "growing": f"{spent}, and the error was growing with parameters={self.parameters!r}",
            "stalled": f"{spent}, and the error had stalled",
            "diverged": f"the method diverged with parameters={self.parameters!r}",
            "stages": f"the intercept had not settled after {len(costs.tables)} runs",
            "inexact": "float64 cannot give the minimiser to this tolerance",
        }[fit.status]
        warnings.warn(
            f"{type(self).__name__} did not reach the tolerance {self.tol:g}: {why} (kappa {problem.kappa:.3g}, chi "
            f"{costs.network.chi:.3g}); {', or '.join(remedies(fit))}",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _warm(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray] | None:
        """Return coefficients and intercepts for a warm start, or None if it is off or no fit has this shape."""
        if not self.warm_start or getattr(self, "coef_", None) is None or np.atleast_2d(self.coef_).shape != shape:
            return None
        return np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)

    def _decisions(self, X: Any) -> np.ndarray:
        """Return X coef_' + intercept_."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        decisions: np.ndarray = np.asarray(X @ self.coef_.T) + self.intercept_
        return decisions


def share(l1_ratio: Any) -> float:
    """Return l1_ratio as a number."""
    return check_real("l1_ratio", l1_ratio, 0, 1, "it is the share of the l1 penalty")


def remedies(fit: Fit) -> list[str]:
    """Return remedies for a fit that missed its tolerance, except those that its last run already applied."""
    provenance = fit.last.provenance
    options = [] if provenance["method"]["name"] == NEWTON else ["scale the features", "regularise more"]
    if fit.status in LOST and provenance["protocol"] != "theory" and not fit.last.unproved:
        options.append("take parameters='theory', which is proved to converge")
    if fit.status in {*LOST, "stalled"} and provenance["oracle"] not in {None, "exact"}:
        options.append("take oracle='exact'")
    if fit.status in {"stalled", "stages", "inexact"} or not (options or fit.status == "max_rounds"):
        options.append("choose a larger tol")
    return [*options, "allow more rounds"] if fit.status == "max_rounds" else options


@dataclass(kw_only=True, repr=False, eq=False)
class DecentralizedLogisticRegression(ClassifierMixin, Decentralized):  # type: ignore[misc]  # scikit-learn is untyped
    r"""Logistic regression whose samples lie at the nodes of a changing network.

    Minimises the objective of `sklearn.linear_model.LogisticRegression`, where :math:`\rho` is `l1_ratio`,

    .. math:: C \sum_j s_j \, \mathrm{loss}(y_j, a_j^\top w + b)
              + \tfrac{1 - \rho}{2} \|w\|^2 + \rho \|w\|_1,

    with the logistic loss for two classes and the symmetric softmax loss for more, and an intercept b that is not
    penalised. Divided by C times the sum of the weights s_j, and without l1, this objective is the mean over the n
    nodes of

    .. math:: f_i = \frac{n}{\sum_j s_j} \sum_{j \text{ at } i} s_j \, \mathrm{loss}_j + \frac{r}{2} \|w\|^2,
              \qquad r = \frac{1 - \rho}{C \sum_j s_j}.

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
        As in `adom.solve`. "auto" is Newton's method by gossip ("newton") up to 500 coordinates and wherever no other
        can do, and "acc-gt" beyond. Two classes are one run of "newton"; for more classes, and for other methods, a fit
        is several runs.
    parameters : str or dict
        As in `adom.solve`.
    oracle : str or tuple
        As in `adom.solve`, for dual methods.
    C : float
        Positive, scikit-learn's inverse of the regularisation. Infinite for no penalty, by "newton" and for two
        classes; there is no such fit if the classes are separable, or columns determine each other.
    l1_ratio : float
        From 0, for the l2 penalty alone, to 1, for l1 alone; above 0 by "newton" and for two classes.
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
        Start from the coefficients of the last fit. This saves rounds where gradients are exchanged; those of "newton"
        are the rounds of averaging from any start.
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
    >>> model.coef_.shape, model.score(X, y) > 0.9, model.n_iter_ < 100
    ((1, 5), True, True)
    """

    C: float = 1.0
    l1_ratio: float = 0.0
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
        C, l1_ratio = self._check_regularisation("C", np.inf), share(self.l1_ratio)
        before = getattr(self, "classes_", None)
        self.classes_, labels = np.unique(y, return_inverse=True)
        classes = self.classes_.size
        if classes < 2:
            raise InputError(f"y has one class only, {self.classes_[0]!s}; logistic regression needs two or more")
        if self.class_weight is not None:
            weights = weights * self._class_weights(y, weights)[labels]
        total = weights.sum()
        penalty, weights, vectors = 1 / (C * total), weights / total, classes if classes > 2 else 1
        only = "C=inf" if np.isinf(C) else f"l1_ratio={l1_ratio:g}" if l1_ratio else ""
        if only and classes > 2:
            raise InputError(f"{only} is for two classes, got {classes}; leave it out, or fit class against class")
        method = self._chosen_method(vectors * (X.shape[1] + bool(self.fit_intercept)), only)

        parts = partition(labels, self.nodes, self.split, self.network, self.random_state)
        single = classes == 2 and is_newton(method)  # one run
        coordinates = Coordinates()
        if self.fit_intercept:
            prior = np.bincount(labels, weights, classes)
            if not prior.all():
                raise InputError(
                    f"no sample of class {self.classes_[prior == 0][0]!s} has a positive weight, so its intercept "
                    "would go to minus infinity; leave these samples out, or fit without an intercept"
                )
            if not single:
                curvature = float(prior[0] * prior[1] if classes == 2 else prior.min())
                coordinates = with_intercept(X, parts, weights, penalty, curvature)
        problem: Problem
        if single:
            penalties = ((1 - l1_ratio) * penalty, l1_ratio * penalty)
            problem, coordinates = self._glm(X, labels, weights * total, parts, LOGISTIC.name, penalties)
        else:
            data = parts.split(coordinates.features(X), labels)
            options = {"l2": penalty, "weights": parts.split(len(data) * weights), "longest": parts.padded}
            if classes == 2:
                problem = LogisticRegression.from_nodes(data, classes=(0, 1), **options)
            else:
                problem = SoftmaxRegression(data, classes=classes, **options)

        same = before is not None and np.array_equal(before, self.classes_)
        start = self._warm((vectors, X.shape[1])) if same else None
        averaged = X.shape[1] + classes if coordinates.mean is not None else 0
        self.coef_, self.intercept_ = self._agree(problem, method, parts, coordinates, start, averaged)
        return self

    def _class_weights(self, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        if isinstance(self.class_weight, dict):
            for name, weight in self.class_weight.items():
                check_real(f"class_weight[{name!r}]", weight, 0, LARGEST, "e.g. 1")
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
        predicted: np.ndarray = self.classes_[self._loss().predicted(scores)]
        return predicted

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every class, shape (samples, classes)."""
        scores, expected = self.decision_function(X), self._loss().expected
        assert expected is not None
        return np.asarray(expected(scores))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`, finite even where the probabilities underflow."""
        scores, loss = self.decision_function(X), self._loss()
        targets = loss.coded(np.arange(self.classes_.size))
        return np.stack([-loss.value(scores, np.full(len(scores), target)) for target in targets], axis=-1)

    def _loss(self) -> Loss:
        return LOGISTIC.of(self.classes_.size)
