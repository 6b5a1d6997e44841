"""Base class of the estimators: parameters, checks, and the fit of a problem."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..dynamics.endings import LOST
from ..errors import InputError, shown
from ..problems.base import Problem
from ..problems.checks import LARGEST, as_array, as_number, as_numbers
from ..problems.samples import check_features
from ..util.checks import check_whole
from .coordinates import Coordinates
from .partition import Partition
from .proximal_loop import Costs, Fit, minimise, summary

AGREED = 0.01
"""Before the first run, nodes average shared numbers until this fraction of `tol` is left of their differences."""


@dataclass(kw_only=True, repr=False, eq=False)
class Decentralized(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A linear model on whose coefficients the nodes of a network agree."""

    nodes: int | None = None
    split: str = "shuffled"
    network: Any = "expander"
    method: Any = "acc-gt"
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

    def _check_regularisation(self, name: str) -> float:
        """Return C or alpha as a number."""
        given = getattr(self, name)
        value = as_number(name, given, 1.0)
        if not 0 < value < np.inf:
            raise InputError(
                f"{name} must be positive and finite, got {shown(given)}; it makes the f_i strongly convex"
            )
        if not 1 / LARGEST <= value <= LARGEST:
            raise InputError(
                f"{name} must lie between {1 / LARGEST:g} and {LARGEST:g}, got {value:g}; scale the features instead"
            )
        return value

    def _agree(
        self, problem: Problem, parts: Partition, coordinates: Coordinates, start: np.ndarray | None, averaged: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Run the method; return coefficients of shape (vectors, features) and intercepts.

        The problem's x holds one or more vectors in `coordinates`, one after the other. `averaged` is how many numbers
        the nodes average beforehand, such as the mean of the features.
        """
        if not (isinstance(self.tol, int | float | np.floating) and 0 < self.tol < 1):
            raise InputError(f"tol must lie between 0 and 1, got {shown(self.tol)}; it is relative, e.g. tol=1e-8")
        check_whole("max_rounds", self.max_rounds)
        costs = Costs(parts.network)
        if averaged:
            costs.average(averaged, AGREED * self.tol)
        width = self.n_features_in_ + bool(coordinates.column)
        free = np.tile(np.arange(width) == self.n_features_in_, problem.dim // width).astype(float)
        begin = np.zeros(problem.dim) if start is None else start.ravel()
        fit = minimise(problem, begin, free, self, costs)
        if fit.status != "converged":
            self._warn(fit, problem, costs)

        w, intercepts = coordinates.coefficients(fit.rows.reshape(problem.nodes, -1, width))
        rows = np.concatenate([w, intercepts[..., None]], axis=-1).reshape(problem.nodes, -1)
        self.network_ = parts.network
        self.result_ = summary(fit, problem, rows, costs)
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
        *first, last = remedies(fit)
        warnings.warn(
            f"{type(self).__name__} did not reach the tolerance {self.tol:g}: {why} (kappa {problem.kappa:.3g}, chi "
            f"{costs.network.chi:.3g}); {', '.join(first)}, or {last}",
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


def remedies(fit: Fit) -> list[str]:
    """Return remedies for a fit that missed its tolerance, except those that its last run already applied."""
    provenance, options = fit.last.provenance, ["scale the features", "regularise more"]
    if fit.status in LOST and provenance["protocol"] != "theory" and not fit.last.unproved:
        options.append("take parameters='theory', which is proved to converge")
    if fit.status in {*LOST, "stalled"} and provenance["oracle"] not in {None, "exact"}:
        options.append("take oracle='exact'")
    if fit.status in {"stalled", "stages", "inexact"}:
        options.append("choose a larger tol")
    return [*options, "allow more rounds"] if fit.status == "max_rounds" else options
