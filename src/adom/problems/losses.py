"""The losses of linear models, each described once: its functions, bounds, targets and predictions.

A loss is a function of a sample's margin t = a'x and its target y. The problems in memory and on disk, the functions of
agents, models, data that lie apart, and the choices of settings read this table: a new kind of model is its `Loss` here
and a line in `LOSSES`. The functions take arrays of NumPy and of JAX alike; this module loads neither.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, pi
from typing import Any

from ..errors import InputError

Array = Any  # of NumPy or JAX; inside a compiled loop, a tracer
Along = Callable[[Array], Array]
MANY = 3
"""As a loss's number of classes: this many or more."""
FAR = 1.35
"""The residual beyond which Huber's loss grows linearly, as scikit-learn's `HuberRegressor` has it at scale 1."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """One loss.

    Margins and targets have the same shape; with a vector of coefficients for each class, the last axis of the margins
    is the class, and targets lack it.

    Attributes
    ----------
    name, words : str
        The kind of model, and what it is for.
    value, slope, curvature : callable
        The loss and its derivatives in t, functions of t and y. With a vector for each class, `curvature` is only the
        diagonal of the second derivative; `coupled` gives the function that `bends` returns.
    expected : callable, optional
        From t to the expected target; for classes, their probabilities along the last axis, None if there are none.
    steepest, twist : float
        The largest eigenvalue of the second derivative, and a bound of the third derivative over the second, along a
        change of the coefficients of length 1 for features of length 1.
    penalty, sklearn : str
        scikit-learn's name of the penalty, "C" or "alpha", and the estimator that predicts the same, with its module
        if that is not `sklearn.linear_model`.
    as_counted : callable, optional
        From l2 and the number of samples to that penalty; by default 1 / (l2 N) for "C", l2 N for "alpha".
    classes : int
        0 if targets are numbers, 2 for two classes, which are -1 and 1, or `MANY` for classes numbered from 0 on.
    more : Loss, optional
        The loss that takes the place of one for two classes if there are more.
    allowed, target : callable, str
        If targets are numbers, but not any: which are possible, and the same in words.
    variance : callable, optional
        For inference: from the expected target to its variance at dispersion 1; None if the loss is no likelihood.
    dispersed : bool
        Whether the dispersion is not 1 but estimated.
    deviance : callable, optional
        Twice the loss at t less its least for the target y, if the loss is a likelihood.
    constant : callable, optional
        What the log-likelihood of a target y has besides minus the loss over the dispersion: of y and the dispersion.
    centred : bool
        Whether targets may be shifted and scaled: shifted by their mean, the model of centred features needs no
        intercept.
    """

    name: str
    words: str
    value: Callable[[Array, Array], Array]
    slope: Callable[[Array, Array], Array]
    curvature: Callable[[Array, Array], Array]
    expected: Callable[[Array], Array] | None
    steepest: float
    twist: float
    penalty: str
    sklearn: str
    classes: int = 0
    more: "Loss | None" = None
    allowed: Callable[[Array], Array] | None = None
    target: str = "numbers"
    variance: Callable[[Array], Array] | None = None
    dispersed: bool = False
    deviance: Callable[[Array, Array], Array] | None = None
    constant: Callable[[Array, Array], Array] | None = None
    as_counted: Callable[[float, int], float] | None = None
    centred: bool = False
    coupled: Callable[[Array, Array], Along] | None = None

    def bends(self, t: Array, y: Array) -> Along:
        """Return the function from a change of the margins to the change of the slopes."""
        if self.coupled is not None:
            return self.coupled(t, y)
        curvature = self.curvature(t, y)
        return lambda along: curvature * along

    def vectors(self, classes: int) -> int:
        """Return the number of vectors of coefficients for this many classes."""
        return classes if self.coupled else 1

    def fits(self, classes: int) -> bool:
        """Return whether the loss is for this many classes (0 for numbers)."""
        return classes == self.classes or classes > self.classes == MANY

    def of(self, classes: int) -> "Loss":
        """Return the loss for this many classes: this one, or the one for more.

        Examples
        --------
        >>> LOGISTIC.of(2).name, LOGISTIC.of(5).name
        ('logistic', 'softmax')
        """
        for loss in (self, self.more):
            if loss is not None and loss.fits(classes):
                return loss
        raise InputError(f"a {self.name} model is for {self.words}, got {classes} classes; take another model")

    def coded(self, numbers: Array) -> Array:
        """Return the targets y of classes numbered from 0 on; targets that are numbers stay as they are."""
        return 2.0 * numbers - 1 if self.classes == 2 else numbers

    def flaw(self, y: Array, whose: str = "targets") -> str:
        """Describe the first target that the loss cannot have; "" if there is none."""
        if self.allowed is None or (possible := self.allowed(y)).all():
            return ""
        return (
            f"{whose} must be {self.target} for a {self.name} model, got {y[~possible][0]:g}; "
            "correct or leave out such samples, or take another model"
        )

    def predicted(self, scores: Array) -> Array:
        """Return the expected targets, or the numbers of the most likely classes from 0 on."""
        if self.coupled:
            return scores.argmax(axis=-1)
        if self.classes:
            return (scores > 0).astype(int)
        assert self.expected is not None
        return self.expected(scores)

    def l2_of(self, penalty: float, samples: int) -> float:
        """Return l2 for a penalty that scikit-learn counts.

        Examples
        --------
        >>> LOGISTIC.l2_of(0.5, 20), LOGISTIC.l2_of(inf, 20), RIDGE.l2_of(2.0, 20)
        (0.1, 0.0, 0.1)
        """
        of_one = self.penalties(1.0, samples)[self.penalty]
        return of_one / penalty if self.penalty == "C" else penalty / of_one

    def penalties(self, l2: float, samples: int) -> dict[str, float]:
        """Return a penalty as l2, and as scikit-learn counts it if all samples weigh the same.

        Examples
        --------
        >>> LOGISTIC.penalties(0.1, 20), RIDGE.penalties(0.1, 20)
        ({'l2': 0.1, 'C': 0.5}, {'l2': 0.1, 'alpha': 2.0})
        """
        if not l2:
            return {"l2": 0.0}
        if self.as_counted is not None:
            return {"l2": l2, self.penalty: self.as_counted(l2, samples)}
        return {"l2": l2, self.penalty: 1 / (l2 * samples) if self.penalty == "C" else l2 * samples}


def _numpy_of(t: Array) -> Any:
    """Return the module of an array's functions: NumPy, or JAX's."""
    return t.__array_namespace__()


def _sigmoid(t: Array) -> Array:
    import numpy as np  # late, because the command line reads the names of models

    with np.errstate(over="ignore"):  # 1 / inf is the right answer
        return 1 / (1 + _numpy_of(t).exp(-t))


def _softmax(t: Array) -> Array:
    powers = _numpy_of(t).exp(t - t.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _logarithm_of_sum(t: Array) -> Array:
    top = t.max(axis=-1, keepdims=True)
    return _numpy_of(t).log(_numpy_of(t).exp(t - top).sum(axis=-1)) + top[..., 0]


def _huber(r: Array) -> Array:
    size = abs(r)
    return _numpy_of(r).where(size <= FAR, r * r / 2, FAR * (size - FAR / 2))


def _hit(t: Array, y: Array) -> Array:
    """Return whether each class is the target; none is for y = -1."""
    return _numpy_of(t).asarray(y)[..., None] == _numpy_of(t).arange(t.shape[-1])


def _softmax_bends(t: Array, y: Array) -> Along:
    p = _softmax(t)
    return lambda along: p * (along - (p * along).sum(axis=-1, keepdims=True))


def _nothing(y: Array, dispersion: Array) -> Array:
    return 0.0 * y


def _twice(value: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda t, y: 2 * value(t, y)


def _log_gamma(v: Array) -> Array:
    from scipy.special import gammaln

    return gammaln(v)


def _log_ratio(y: Array, expected: Array) -> Array:
    """Return y log(y / expected), 0 for y = 0."""
    numpy = _numpy_of(y)
    return numpy.where(y > 0, y * numpy.log(numpy.where(y > 0, y, 1.0) / expected), 0.0)


def _gaussian_constant(y: Array, dispersion: Array) -> Array:
    return 0 * y - _numpy_of(y).log(2 * pi * dispersion) / 2


def _gamma_constant(y: Array, dispersion: Array) -> Array:
    log = _numpy_of(y).log
    return log(y / dispersion) / dispersion - log(y) - _log_gamma(1 / dispersion)


SOFTMAX = Loss(
    name="softmax",
    words="three classes or more",
    value=lambda t, y: _logarithm_of_sum(t) - _numpy_of(t).where(_hit(t, y), t, 0).sum(axis=-1),
    slope=lambda t, y: _softmax(t) - _hit(t, y),
    curvature=lambda t, y: (p := _softmax(t)) * (1 - p),
    coupled=_softmax_bends,
    expected=_softmax,
    steepest=0.5,
    twist=2.0**0.5,  # two scores differ by at most that times their vector's length
    penalty="C",
    sklearn="LogisticRegression",
    classes=MANY,
)
LOGISTIC = Loss(
    name="logistic",
    words="two classes or more",
    value=lambda t, y: _numpy_of(t).logaddexp(0.0, -y * t),
    slope=lambda t, y: -y * _sigmoid(-y * t),
    curvature=lambda t, y: _sigmoid(t) * _sigmoid(-t),
    expected=lambda t: _numpy_of(t).stack([_sigmoid(-t), _sigmoid(t)], axis=-1),
    steepest=0.25,
    twist=1.0,
    penalty="C",
    sklearn="LogisticRegression",
    classes=2,
    more=SOFTMAX,
    variance=lambda p: p * (1 - p),
    deviance=_twice(lambda t, y: _numpy_of(t).logaddexp(0.0, -y * t)),
    constant=_nothing,
)
RIDGE = Loss(
    name="ridge",
    words="numbers",
    value=lambda t, y: (t - y) ** 2 / 2,
    slope=lambda t, y: t - y,
    curvature=lambda t, y: _numpy_of(t).ones_like(t),
    expected=lambda t: t,
    steepest=1.0,
    twist=0.0,
    penalty="alpha",
    sklearn="Ridge",
    variance=lambda expected: 0 * expected + 1,
    dispersed=True,
    deviance=lambda t, y: (t - y) ** 2,
    constant=_gaussian_constant,
    centred=True,
)
POISSON = Loss(
    name="poisson",
    words="counts",
    value=lambda t, y: _numpy_of(t).exp(t) - y * t,
    slope=lambda t, y: _numpy_of(t).exp(t) - y,
    curvature=lambda t, y: _numpy_of(t).exp(t),
    expected=lambda t: _numpy_of(t).exp(t),
    steepest=inf,
    twist=1.0,
    penalty="alpha",
    sklearn="PoissonRegressor",
    as_counted=lambda l2, samples: l2,
    allowed=lambda y: y >= 0,
    target="counts of at least 0",
    variance=lambda expected: expected,
    deviance=lambda t, y: 2 * (_log_ratio(y, _numpy_of(t).exp(t)) - y + _numpy_of(t).exp(t)),
    constant=lambda y, dispersion: -_log_gamma(y + 1),
)
GAMMA = Loss(
    name="gamma",
    words="positive numbers",
    value=lambda t, y: y * _numpy_of(t).exp(-t) + t,
    slope=lambda t, y: 1 - y * _numpy_of(t).exp(-t),
    curvature=lambda t, y: y * _numpy_of(t).exp(-t),
    expected=lambda t: _numpy_of(t).exp(t),
    steepest=inf,
    twist=1.0,
    penalty="alpha",
    sklearn="GammaRegressor",
    as_counted=lambda l2, samples: l2,
    allowed=lambda y: y > 0,
    target="positive numbers",
    variance=lambda expected: expected**2,
    dispersed=True,
    deviance=lambda t, y: 2 * (y * _numpy_of(t).exp(-t) - 1 - _numpy_of(y).log(y) + t),
    constant=_gamma_constant,
)
HUBER = Loss(
    name="huber",
    words="numbers",
    value=lambda t, y: _huber(t - y),
    slope=lambda t, y: _numpy_of(t).clip(t - y, -FAR, FAR),
    curvature=lambda t, y: 1.0 * (abs(t - y) <= FAR),
    expected=lambda t: t,
    steepest=1.0,
    twist=inf,
    penalty="alpha",
    sklearn="HuberRegressor",
)
SQUARED_HINGE = Loss(
    name="squared-hinge",
    words="two classes",
    value=lambda t, y: _numpy_of(t).maximum(0.0, 1 - y * t) ** 2 / 2,
    slope=lambda t, y: -y * _numpy_of(t).maximum(0.0, 1 - y * t),
    curvature=lambda t, y: 1.0 * (y * t < 1),
    expected=None,
    steepest=1.0,
    twist=inf,
    penalty="C",
    sklearn="svm.LinearSVC",
    as_counted=lambda l2, samples: 1 / (2 * l2 * samples),
    classes=2,
)
LOSSES: dict[str, Loss] = {loss.name: loss for loss in (LOGISTIC, SOFTMAX, RIDGE, POISSON, GAMMA, HUBER, SQUARED_HINGE)}
"""All losses, by the kind of model."""
USUAL_MODEL = LOGISTIC.name
"""The model that is fitted if none is named."""


def models(*, bounded: bool = True) -> Mapping[str, Loss]:
    """Return the losses to choose from, without those for more classes of another.

    `bounded` leaves out those without a greatest curvature, which only `method="newton"` takes.
    """
    rest = [loss.more for loss in LOSSES.values()]
    return {name: loss for name, loss in LOSSES.items() if loss not in rest and (loss.steepest < inf or not bounded)}


FAMILIES = {"gaussian": RIDGE} | {name: loss for name, loss in LOSSES.items() if loss is not RIDGE}
"""The losses of `adom.GLM`, by its names."""
