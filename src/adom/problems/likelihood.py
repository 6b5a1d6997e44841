"""How well a model fits, and the errors of its coefficients: from sums over samples, which nodes can add up.

With N samples in all, I the sum of their expected information, and phi the dispersion, the covariance of the
coefficients of a fit without a penalty is phi I^-1. With S the sum of a a' slope^2 it is I^-1 S I^-1, also where the
variance is not that of the family (the sandwich, HC0).
"""

from collections.abc import Callable
from math import log
from typing import Any, NamedTuple, Self

import numpy as np

from .losses import Loss
from .samples import dense, scaled_rows

Array = np.ndarray
PENALISED = "a penalty moves the coefficients, which errors do not count; fit without"


class Sums(NamedTuple):
    """Sums over samples at the answer."""

    deviance: Any
    squares: Any  # of the residuals over their variance
    information: Array
    scores: Array

    @classmethod
    def at(cls, loss: Loss, A: Any, t: Array, y: Array, weights: Array) -> Self:
        """Return the sums of some samples with margins t."""
        assert loss.expected is not None
        assert loss.deviance is not None
        assert loss.variance is not None
        expected = loss.expected(t)[:, 1] if loss.classes else loss.expected(t)
        residuals = ((y + 1) / 2 if loss.classes else y) - expected
        return cls(
            float(weights @ loss.deviance(t, y)),
            float(weights @ (residuals**2 / loss.variance(expected))),
            _gram(A, weights * loss.curvature(t, y if loss.classes else expected)),
            _gram(A, (weights * loss.slope(t, y)) ** 2),
        )


def no_likelihood(loss: Loss) -> str:
    """Return why a loss gives no errors; "" if it gives some."""
    if loss.coupled:
        return f"errors of a {loss.name} model are not computed; compare two classes at a time"
    if loss.variance is None or loss.deviance is None or loss.constant is None or loss.expected is None:
        return f"{loss.name} is not the loss of a likelihood, from which errors are computed"
    return ""


def log_likelihood(loss: Loss, t: Array, y: Array, weights: Array, scale: float) -> float:
    """Return the log-likelihood of some samples, given the dispersion."""
    assert loss.constant is not None
    each = loss.constant(y, scale / weights) if loss.dispersed else weights * loss.constant(y, 1.0)
    return float(each.sum() - weights @ loss.value(t, y) / scale)


def inference(
    loss: Loss,
    sums: Sums,
    likelihood: Callable[[float], float],
    about: dict[str, Any],
    *,
    refused: str = "",
    change: Array | None = None,
) -> dict[str, Any]:
    """Return what `Model.summary` shows.

    A dispersion that is not 1 is estimated by the sum of squared residuals over their variance, over the degrees of
    freedom left.

    Parameters
    ----------
    sums : Sums
        Of all samples.
    likelihood : callable
        From the dispersion to the log-likelihood of all samples.
    about : dict
        The number of samples, and other facts to return.
    refused : str
        Why there are no errors, if there are none for another reason.
    change : array, optional
        From the coefficients that the sums are about to those of the model.
    """
    dim, samples = len(sums.information), about["samples"]
    left, dispersion = samples - dim, 1.0
    if loss.dispersed and left > 0:
        dispersion = sums.squares / left
    # The likelihood of a gaussian is greatest at this dispersion; that of others is taken at the estimated one.
    value = likelihood(sums.deviance / samples if loss.centred else dispersion)
    facts: dict[str, Any] = {
        **about,
        "log_likelihood": value,
        "deviance": sums.deviance,
        "dispersion": dispersion,
        "aic": 2 * dim - 2 * value,
        "bic": log(samples) * dim - 2 * value,
        "left": left,
        "student": loss.centred,
    }
    if not refused and left <= 0:
        refused = f"{samples} samples leave nothing to estimate {dim} errors from; take more"
    if refused:
        return {**facts, "refused": refused}
    inverse = _inverse(sums.information)
    robust = inverse @ sums.scores @ inverse
    if change is not None:
        inverse, robust = (change @ each @ change.T for each in (inverse, robust))
    return {
        **facts,
        "std_error": np.sqrt(dispersion * np.diag(inverse)).tolist(),
        "robust_std_error": np.sqrt(np.diag(robust)).tolist(),
    }


def _inverse(information: Array) -> Array:
    """Return the inverse, accurate also where features are badly scaled."""
    scale = np.sqrt(np.diag(information))
    found: Array = np.linalg.inv(information / np.outer(scale, scale)) / np.outer(scale, scale)
    return found


def _gram(A: Any, weights: Array) -> Array:
    """Return the sum over samples of weight times a a'."""
    return dense(A.T @ scaled_rows(A, weights))
