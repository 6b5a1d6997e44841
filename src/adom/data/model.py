"""Fitted linear models: coefficients with their feature names, scales and classes, saved in an open format.

A model file is JSON with a checksum. It is written atomically and checked completely when it is read; nothing is
unpickled. Scores are ((a - means) / scales)'w + b for one or several pairs of w and b.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Damaged, InputError, InputTypeError, shown
from ..problems.limits import as_numbers
from ..problems.losses import LOSSES, Loss
from ..problems.samples import as_labels, check_features
from ..util.arrays import is_sparse
from ..util.checked_json import made_from, read_checked, write_checked
from ..util.checks import check_real
from ..util.files import named, reason

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "adom-model-1"
SOME = 5
"""Maximum number of names in a message."""


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted linear model, which predicts.

    Attributes
    ----------
    kind : str
        "logistic" for two classes, "softmax" for more, "ridge" for numbers: the name of a loss.
    coefficients : array of shape (vectors, features)
        One vector, or one per class if there are more than two. They multiply the scaled features if there are
        `scales`.
    intercept : array of shape (vectors,)
    features : tuple of str
        Names of the columns, in the order of the coefficients.
    classes : tuple
        Labels in the order of the scores; empty if targets are numbers.
    means, scales : array of shape (features,), optional
        Features are scaled by subtracting the means, then dividing by the scales.
    target : str
        Name of the predicted column.
    penalty : dict
        Penalty of the fit: "l2", and scikit-learn's "C" or "alpha" where one is equivalent.
    provenance : dict
        Record of the run that fitted the model.
    inference : dict
        How well it fits, and the errors of its coefficients or why there are none; empty if nothing was computed.

    Examples
    --------
    >>> model = Model("logistic", [[1.0, -2.0]], [0.5], ("height", "weight"), ("no", "yes"))
    >>> model.predict([[3.0, 1.0], [0.0, 1.0]]).tolist()
    ['yes', 'no']
    >>> model.decision_function([[3.0, 1.0]]).tolist()
    [1.5]
    """

    kind: str
    coefficients: np.ndarray
    intercept: np.ndarray
    features: tuple[str, ...]
    classes: tuple[Any, ...] = ()
    means: np.ndarray | None = None
    scales: np.ndarray | None = None
    target: str = ""
    penalty: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    inference: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("coefficients", "intercept", "means", "scales"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_numbers(name, getattr(self, name)))
        object.__setattr__(self, "features", tuple(map(str, self.features)))
        object.__setattr__(
            self, "classes", tuple(getattr(each, "item", lambda each=each: each)() for each in self.classes)
        )
        if flaw := self._flaw():
            raise InputError(f"a model must fit together, but {flaw}; correct it, or fit again")

    @property
    def loss(self) -> Loss:
        """The loss of this kind of model."""
        return LOSSES[self.kind]

    def _flaw(self) -> str:
        """Describe the first invalid or inconsistent field; "" if there is none."""
        width, count = len(self.features), len(self.classes)
        if self.kind not in LOSSES:
            return f"its kind is {shown(self.kind)}, not one of {', '.join(LOSSES)}"
        if len(set(self.features)) < width:
            return "a feature is named twice"
        if not self.loss.fits(count) or len(set(self.classes)) < count:
            return f"{self.kind} has {count} classes, {len(set(self.classes))} of them different"
        vectors = self.loss.vectors(count)
        if self.coefficients.shape != (vectors, width) or self.intercept.shape != (vectors,):
            shapes = f"{self.coefficients.shape} and {self.intercept.shape}"
            return f"coefficients and intercept have shapes {shapes}, not ({vectors}, {width}) and ({vectors},)"
        for name in ("means", "scales"):
            if getattr(self, name) is not None and getattr(self, name).shape != (width,):
                return f"{name} has shape {getattr(self, name).shape}, not ({width},)"
        if self.scales is not None and not (self.scales > 0).all():
            return "a scale is not positive"
        return ""

    # Use

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores, shape (samples,), or (samples, classes) for more than two classes.

        Parameters
        ----------
        X : array, scipy.sparse array or pandas.DataFrame of shape (samples, features)
            Columns of a data frame are selected by name, in any order; additional ones are ignored.
        """
        A = self._table(X)
        w = self.coefficients if self.scales is None else self.coefficients / self.scales
        offset = self.intercept if self.means is None else self.intercept - w @ self.means
        scores: np.ndarray = np.asarray(A @ w.T) + offset
        return scores if self.loss.coupled else scores[:, 0]

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely class of every sample, or the predicted number."""
        predicted = self.loss.predicted(self.decision_function(X))
        return np.asarray(np.array(self.classes)[predicted]) if self.loss.classes else predicted

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every class, shape (samples, classes)."""
        if not self.loss.classes or self.loss.expected is None:
            what = "probabilities" if self.loss.classes else "classes, and so no probabilities of them"
            raise InputError(f"a {self.kind} model has no {what}; take predict")
        return np.asarray(self.loss.expected(self.decision_function(X)))

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy, or R^2 for numbers, as scikit-learn defines them."""
        return score_of(self.sums(X, y))

    def sums(self, X: Any, y: Any) -> np.ndarray:
        """Return the sums from which `score_of` computes the score; sums of several parts of the data can be added.

        For classes: the numbers of samples and of correct predictions. For numbers: the number of samples, and the
        sums of squared errors, of targets and of squared targets.
        """
        predicted, labels = self.predict(X), as_labels(y, "y")
        if labels.shape != predicted.shape:
            raise InputError(
                f"y has shape {labels.shape} for {len(predicted)} samples; give one label for every sample"
            )
        if not self.loss.classes:
            y = as_numbers("y", labels)
            return np.array([len(y), ((y - predicted) ** 2).sum(), y.sum(), (y**2).sum()])
        known = np.array(self.classes)
        if (labels.dtype.kind in "US") != (known.dtype.kind in "US"):
            raise InputError(
                f"y is of {labels.dtype}, and the classes of the model are {self._shown_classes()}; give the same kind"
            )
        return np.array([len(labels), float((labels == predicted).sum())])

    def summary(self, *, level: float = 0.95, robust: bool = False) -> "pd.DataFrame":
        """Return a table of the coefficients with their errors, as statistics packages print it.

        Columns are estimate, std_error, z (Student's t for a gaussian family), p_value, lower and upper; without
        errors, the estimates alone. ``summary().attrs`` has the log-likelihood, deviance, dispersion, AIC, BIC, numbers
        of samples and nodes, and in "refused" why there are no errors, if there are none.

        Parameters
        ----------
        level : float
            Of the confidence intervals.
        robust : bool
            Whether errors hold also if the variance is not that of the family (the sandwich, HC0).
        """
        import pandas as pd
        from scipy import stats

        check_real("level", level, 0.0, 1.0, "e.g. level=0.95", strict=True)
        rows = [*self.features, *(["intercept"] if self.inference.get("intercept", True) else [])]
        estimates = np.append(self.coefficients, self.intercept[:, None], axis=1).ravel()[: len(rows)]
        table = pd.DataFrame({"estimate": estimates}, index=pd.Index(rows, name="column"))
        errors = self.inference.get("robust_std_error" if robust else "std_error")
        about: dict[Any, Any] = {k: v for k, v in self.inference.items() if not k.endswith("std_error")}
        if errors is None:
            table.attrs = {"refused": "this fit computed no errors; fit adom.GLM without a penalty", **about}
            return table
        error = np.array(errors)
        law = stats.t(about["left"]) if about["student"] else stats.norm()
        ratio, reach = estimates / error, law.ppf((1 + level) / 2) * error
        table["std_error"], table["z"], table["p_value"] = error, ratio, 2 * law.sf(np.abs(ratio))
        table["lower"], table["upper"] = estimates - reach, estimates + reach
        table.attrs = about
        return table

    def _shown_classes(self) -> str:
        return ", ".join(map(shown, self.classes[:SOME])) + (", ..." if len(self.classes) > SOME else "")

    def _table(self, X: Any) -> Any:
        """Return the features in the order of the coefficients."""
        if hasattr(X, "columns") and hasattr(X, "loc"):
            X = X[self.columns(list(X.columns))].to_numpy()
        table = check_features(X if is_sparse(X) or hasattr(X, "dtype") else np.asarray(X), "X")
        if table.shape[1] != len(self.features):
            raise InputError(
                f"X has {table.shape[1]} features, and the model {len(self.features)}: {_some(self.features)}; "
                "give these columns, in this order"
            )
        return table

    def columns(self, names: Sequence[Any]) -> list[Any]:
        """Return the model's features among these column names, in its order; refuse missing and repeated ones."""
        known = {str(name): name for name in names}
        missing = [name for name in self.features if name not in known]
        if missing:
            raise InputError(
                f"{len(missing)} of the {len(self.features)} columns that the model needs "
                f"{'is' if len(missing) == 1 else 'are'} missing: {_some(missing)}; add them, or fit without them"
            )
        twice = [name for name in self.features if [str(other) for other in names].count(name) > 1]
        if twice:
            raise InputError(f"the table has several columns named {shown(twice[0])}; keep one of them")
        return [known[name] for name in self.features]

    # Files and other libraries

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model atomically as JSON; return the path."""
        try:
            return write_checked(path, {"format": FORMAT, **vars(self)})
        except (TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputTypeError(f"{path} is not written: {error}; a model holds numbers, names and text") from None

    def to_sklearn(self) -> Any:
        """Return a fitted scikit-learn estimator, in a pipeline after a `StandardScaler` if features are scaled.

        As usual in scikit-learn, the columns of its input must be in the model's order.
        """
        from sklearn.pipeline import make_pipeline

        penalty, (module, _, name) = self.loss.penalty, self.loss.sklearn.rpartition(".")
        cls = getattr(import_module(f"sklearn.{module or 'linear_model'}"), name)
        estimator = cls(**{penalty: self.penalty.get(penalty, 1.0)})
        if hasattr(estimator, "_get_loss"):  # scikit-learn's generalised linear models predict by it
            estimator._base_loss = estimator._get_loss()
        if self.loss.classes:
            estimator.coef_, estimator.intercept_ = self.coefficients.copy(), self.intercept.copy()
            estimator.classes_, estimator.n_iter_ = np.array(self.classes), np.array([0])
        else:
            estimator.coef_, estimator.intercept_ = self.coefficients[0].copy(), float(self.intercept[0])
        if self.scales is None:
            self._name(estimator)
            return estimator
        estimator.n_features_in_ = len(self.features)  # no feature names: it gets arrays from the scaler
        return make_pipeline(self._scaler(), estimator)

    def _scaler(self) -> Any:
        from sklearn.preprocessing import StandardScaler

        assert self.scales is not None
        scaler = StandardScaler(with_mean=self.means is not None)
        scaler.scale_, scaler.var_ = self.scales.copy(), self.scales**2
        scaler.mean_ = np.zeros(len(self.features)) if self.means is None else self.means.copy()
        scaler.n_samples_seen_ = self.provenance.get("samples", 0)
        self._name(scaler)
        return scaler

    def _name(self, estimator: Any) -> None:
        estimator.n_features_in_ = len(self.features)
        if self.features != tuple(unnamed(len(self.features))):  # else scikit-learn would require x1, x2, ...
            estimator.feature_names_in_ = np.array(self.features, dtype=object)

    def __repr__(self) -> str:
        classes = f", classes {self._shown_classes()}" if self.classes else ""
        return f"Model({self.kind} of {len(self.features)} features{classes})"


def score_of(sums: np.ndarray) -> float:
    """Return the score for the sums of `Model.sums`: accuracy for classes, R^2 for numbers.

    Examples
    --------
    >>> score_of(np.array([10.0, 9.0])), score_of(np.array([2.0, 0.5, 3.0, 5.0]))
    (0.9, 0.0)
    """
    if len(sums) == 2:
        return float(sums[1] / sums[0])
    samples, errors, total, squares = map(float, sums)
    spread = squares - total**2 / samples
    return 1 - errors / spread if spread > 0 else float(errors == 0)


def unnamed(count: int) -> list[str]:
    """Return default names for features without names.

    Examples
    --------
    >>> unnamed(3)
    ['x1', 'x2', 'x3']
    """
    return [f"x{i}" for i in range(1, count + 1)]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:SOME]) + (f", ... ({len(names)} in all)" if len(names) > SOME else "")


@dataclass
class _Stored:
    """The content of a model file."""

    format: str
    kind: str
    coefficients: list[list[float]]
    intercept: list[float]
    features: list[str]
    classes: list[str | bool | float] = field(default_factory=list)
    means: list[float] | None = None
    scales: list[float] | None = None
    target: str = ""
    penalty: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    inference: dict[str, Any] = field(default_factory=dict)


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model file; refuse a damaged file and one that holds no model.

    Examples
    --------
    >>> import tempfile
    >>> model = Model("ridge", [[2.0]], [1.0], ("x",), target="y")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_model(model.save(Path(folder, "model.json"))).predict([[3.0]]).tolist()
    [7.0]
    """
    try:
        file = Path(path)
    except TypeError:
        raise InputTypeError(f"path must be a path, got {shown(path)}; e.g. 'out/model.json'") from None
    try:
        stored = made_from(read_checked(file), _Stored)
        if len({len(vector) for vector in stored.coefficients}) > 1:
            raise Damaged("its coefficients have different lengths")
        if stored.format != FORMAT:
            raise Damaged(f"its format is {shown(stored.format)}, not {FORMAT}")
        return Model(**{name: value for name, value in vars(stored).items() if name != "format"})
    except (Damaged, InputError) as error:
        raise InputError(
            f"{named(file)} is not a whole model file ({error}); it was cut short, changed or made by something else: "
            "fit and save again"
        ) from None
    except (OSError, ValueError) as error:
        remedy = "give a model.json that `adom solve` or Model.save wrote"
        raise InputError(f"cannot read {named(file)}: {reason(error)}; {remedy}") from None


def model_from(rows: np.ndarray, about: Mapping[str, Any], provenance: dict[str, Any]) -> Model:
    """Return the model whose coefficients are the mean of all nodes' rows.

    A row holds one or more vectors in sequence, each followed by its intercept if `about["intercept"]` is true.
    If `about["features"]` is a number, the features get default names.
    """
    features = about["features"]
    names = unnamed(features) if isinstance(features, int) else list(features)
    count, intercept = len(names), bool(about["intercept"])
    vectors = rows.mean(axis=0).reshape(-1, count + intercept)
    return Model(
        about["kind"],
        vectors[:, :count],
        vectors[:, count] if intercept else np.zeros(len(vectors)),
        tuple(names),
        tuple(about["classes"]),
        means=about.get("means"),
        scales=about.get("scales"),
        target=about.get("target", ""),
        penalty=dict(about["penalty"]),
        provenance={**provenance, "problem": {k: v for k, v in provenance.get("problem", {}).items() if k != "model"}},
        inference=dict(about.get("inference") or {}),
    )
