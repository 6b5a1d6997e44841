"""What the estimators share: the parameters' meaning, and the way from a problem to fitted attributes."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..errors import InputError, shown
from ..problems.base import Problem
from ..problems.checks import LARGEST, as_array, as_number, as_numbers
from ..problems.nodes import check_features
from ..run.endings import LOST
from .partition import Frame, Share
from .proximal_loop import Books, Fit, Settings, minimise, summary

AGREED = 0.01
"""Quantities that all nodes must know alike are averaged until this part of the tolerance is left of differences."""


class Decentralized(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A linear model whose coefficients nodes agree on over a network."""

    coef_: np.ndarray
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _checked(self, X: Any, y: Any, sample_weight: Any, **rules: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return float64 features, dense or CSR, labels, and weights of the samples."""
        for name, given in (("X", X), ("y", y)):
            if np.ma.isMaskedArray(given):
                as_array(name, given)  # which refuses gaps
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2, **rules)
        X = check_features(X, "X")
        if sample_weight is not None:
            sample_weight = as_numbers("sample_weight", sample_weight)
            sample_weight = float(sample_weight) if sample_weight.ndim == 0 else sample_weight
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if (weights < 0).any() or not weights.sum() >= 1 / LARGEST:
            raise InputError(
                "sample_weight must be 0 or more, and positive for some sample, got a smallest of "
                f"{weights.min():g} and a sum of {weights.sum():g}; leave out samples that shall not count"
            )
        return X, y, weights

    def _regularisation(self, name: str, example: float = 1.0) -> float:
        """Return C or alpha as a number, if one can compute with it."""
        given = getattr(self, name)
        value = as_number(name, given, example)
        if not 0 < value < np.inf:
            raise InputError(
                f"{name} must be positive and finite, got {shown(given)}; it makes the f_i strongly convex"
            )
        if not 1 / LARGEST <= value <= LARGEST:
            raise InputError(
                f"{name} must lie between {1 / LARGEST:g} and {LARGEST:g}, got {value:g}; scale the features instead"
            )
        return value

    def _settings(self) -> Settings:
        return Settings(self.method, self.parameters, self.oracle, self.tol, self.max_rounds, bool(self.verbose))

    def _agree(
        self, problem: Problem, share: Share, frame: Frame, start: np.ndarray | None, averaged: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Run; set what all estimators have; return coefficients of shape (vectors, features) and intercepts.

        Parameters
        ----------
        problem : Problem
            Its x is one vector or several, one after the other, in the coordinates of `frame`.
        share : Share
        frame : Frame
        start : array of shape (vectors, features of the frame), optional
        averaged : int
            How many numbers the nodes had to average beforehand, such as the features' mean.
        """
        settings, books = self._settings(), Books(share.network)
        if averaged:
            books.average(averaged, AGREED * settings.tol)
        width = self.n_features_in_ + bool(frame.column)
        free = np.tile(np.arange(width) == self.n_features_in_, problem.dim // width).astype(float)
        begin = np.zeros(problem.dim) if start is None else start.ravel()
        fit = minimise(problem, begin, free, settings, books)
        if fit.status != "converged":
            self._warn(fit, problem, books)

        coefficients, intercepts = frame.coefficients(fit.x.reshape(-1, width))
        own = frame.coefficients(fit.rows.reshape(problem.nodes, -1, width))
        rows = np.concatenate([own[0], own[1][..., None]], axis=-1).reshape(problem.nodes, -1)
        self.network_ = share.network
        self.result_ = summary(fit, problem, rows, books)
        self.history_ = self.result_.history
        self.n_iter_ = books.rounds
        return coefficients, intercepts

    def _warn(self, fit: Fit, problem: Problem, books: Books) -> None:
        spent = f"max_rounds={self.max_rounds} was reached"
        why = {
            "max_rounds": spent,
            "growing": f"{spent}, and the error was growing with parameters={self.parameters!r}",
            "stalled": f"{spent}, and the error had stalled",
            "diverged": f"the method diverged with parameters={self.parameters!r}",
            "stages": f"the intercept had not settled after {len(books.tables)} runs",
            "inexact": "the minimiser itself is not known as exactly in float64",
        }[fit.status]
        *first, last = _remedies(fit)
        warnings.warn(
            f"{type(self).__name__} is not at the tolerance {self.tol:g}: {why} (kappa {problem.kappa:.3g}, chi "
            f"{books.network.chi:.3g}); {', '.join(first)}, or {last}",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _warm(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray] | None:
        """Return coefficients and intercepts of the last fit, if they are to be started from and fit."""
        if not self.warm_start or getattr(self, "coef_", None) is None or np.atleast_2d(self.coef_).shape != shape:
            return None
        return np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)

    def _decisions(self, X: Any) -> np.ndarray:
        """Return X coef_' + intercept_."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        decisions: np.ndarray = np.asarray(X @ self.coef_.T) + self.intercept_
        return decisions


def _remedies(fit: Fit) -> list[str]:
    """Return what may help a fit that missed its tolerance: nothing that was tried in its last run."""
    made, found = fit.last.provenance, ["scale the features", "regularise more"]
    if fit.status in LOST and made["protocol"] != "theory":
        found.append("take parameters='theory', which is proved to converge")
    if fit.status in {*LOST, "stalled"} and made["oracle"] not in {None, "exact"}:
        found.append("take oracle='exact'")
    if fit.status in {"stalled", "stages", "inexact"}:
        found.append("ask for less by a larger tol")
    return [*found, "allow more rounds"] if fit.status == "max_rounds" else found
