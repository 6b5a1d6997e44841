"""Generalised linear models: a family, an intercept that is not penalised, any penalty or none, and inference.

The mean of the f_i is (1 / N) sum of the losses of all N samples + (l2 / 2) |w|^2, without the intercept in w. Without
a penalty the f_i are convex but not strongly so, and Poisson's and gamma's have no greatest curvature:
`method="newton"` needs neither. What it needs is a single answer, which `solution` checks: it names aliased columns,
and the direction in which separable data have no best answer.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import jax
import numpy as np

from ..errors import InputError, nearest
from ..util.arrays import is_sparse
from ..util.checks import check_real
from .base import Array
from .features import lay_out
from .likelihood import PENALISED, Sums, inference, log_likelihood, no_likelihood
from .limits import as_numbers
from .linear_model import LinearModel
from .losses import FAMILIES
from .minimiser import SHORTEST, STEPS, ULP, Minimum, minimum
from .nearness import flat_direction, named
from .penalties import sparse_minimum, sparse_minimum_of_one
from .samples import Stacked, check_longest, dealt, largest_curvature, stack, weighting

NEAR, TINY = 1e-6, 1e-13
"""Relative length of a step that is taken without a check of the objective; what is added to a singular Hessian."""
OFFSETS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "gaussian": (lambda y, offset: y - offset, np.ones_like),
    "poisson": (lambda y, offset: y * np.exp(-offset), np.exp),
    "gamma": (lambda y, offset: y * np.exp(-offset), np.ones_like),
}
"""For families where an offset is the same as other targets and weights: these targets, and factors of the weights."""


class GLM(LinearModel):
    r"""A generalised linear model: each node holds samples a_ij with targets b_ij.

    .. math:: f_i(w, c) = \sum_j w_{ij}\, \mathrm{loss}(a_{ij}^\top w + c, b_{ij}) + \frac{r}{2} \|w\|^2

    An l1 penalty s adds s times the sum of the absolute coefficients to the mean of the f_i. The weights w_ij are such
    that all samples of all nodes count alike, so that the answer is that of the pooled data.

    Parameters
    ----------
    features : array, scipy.sparse array or pandas.DataFrame of shape (samples, features)
        The column names of a data frame go into the model.
    targets : array of shape (samples,)
    nodes : int
        The samples are dealt out in order, as evenly as possible.
    family : str
        "gaussian", "logistic" (two classes), "poisson", "gamma" (with the logarithm as link), "huber" (residuals beyond
        1.35 count linearly) or "squared-hinge" (two classes).
    l2, l1 : float
        The penalties r and s of the coefficients, 0 for none.
    intercept : bool
        Whether there is an intercept c, which is not penalised.
    offset : array of shape (samples,), optional
        Known parts of the margins, such as the logarithm of an exposure; for gaussian, poisson and gamma.
    weights : array of shape (samples,), optional
        How much each sample counts, in place of 1.

    Examples
    --------
    >>> problem = GLM([[0.0], [1.0], [2.0], [3.0]], [1, 2, 6, 11], nodes=2, family="poisson")
    >>> problem.solution().round(6).tolist()
    [0.794825, 0.052903]
    >>> problem.mu
    0.0
    """

    array_fields: ClassVar[tuple[str, ...]] = ("features", "l2", "l1")
    static_fields: ClassVar[tuple[str, ...]] = ("loss", "vectors", "intercept", "composite")
    intercept: bool
    l1: float
    names: tuple[str, ...] | None
    _given: tuple[np.ndarray, np.ndarray, np.ndarray]  # targets, offsets and weights of all samples
    _counts: np.ndarray  # samples of each node

    def __init__(
        self,
        features: Any,
        targets: Any,
        nodes: int,
        *,
        family: str = "gaussian",
        l2: float = 0.0,
        l1: float = 0.0,
        intercept: bool = True,
        offset: Any = None,
        weights: Any = None,
    ) -> None:
        names = _names(features)
        data = dealt(features, targets, nodes)
        if data.labels.shape != (int(data.counts.sum()),):
            raise InputError(f"targets must be one for every sample, got shape {data.labels.shape}; give one for each")
        ends = np.cumsum(data.counts)[:-1]
        each = {"offset": offset, "weights": weights}
        for name, values in each.items():
            if values is not None:
                each[name] = np.split(_one_each(name, values, data.labels.size), ends)
        self._fit_to(data, family, (l2, l1), intercept, each["offset"], each["weights"], None, names)

    @classmethod
    def from_nodes(
        cls,
        data: Sequence[tuple[Any, Any]],
        *,
        family: str = "gaussian",
        l2: float = 0.0,
        l1: float = 0.0,
        intercept: bool = True,
        offset: Sequence[Any] | None = None,
        weights: Sequence[Any] | None = None,
        classes: tuple[Any, Any] | None = None,
        longest: int | None = None,
    ) -> Self:
        """Return the problem of one (features, targets) pair per node; numbers of samples may differ.

        Offsets and weights are one array per node; `classes` are the two labels, by default those that occur. Dense
        nodes are filled up to `longest` samples, so that problems of similar sizes share a compiled program.
        """
        data = list(data)
        self = object.__new__(cls)
        names = _names(data[0][0]) if data and isinstance(data[0], tuple | list) and data[0] else None
        self._fit_to(stack(data), family, (l2, l1), intercept, offset, weights, classes, names, longest)
        return self

    def _fit_to(
        self,
        data: Stacked,
        family: str,
        penalties: tuple[float, float],
        intercept: bool,
        offset: Sequence[Any] | None,
        weights: Sequence[Any] | None,
        classes: tuple[Any, Any] | None,
        names: tuple[str, ...] | None,
        longest: int | None = None,
    ) -> None:
        if family not in FAMILIES or FAMILIES[family].coupled:
            usual = [name for name, loss in FAMILIES.items() if not loss.coupled]
            raise InputError(
                f"unknown family {family!r}; {nearest(family, usual)}; for three classes or more take "
                "SoftmaxRegression with l2"
            )
        l2, l1 = (
            check_real(n, v, 0.0, np.inf, "0 is for no penalty") for n, v in zip(("l2", "l1"), penalties, strict=True)
        )
        self.loss, self.vectors, self.intercept, self.names = FAMILIES[family], 1, bool(intercept), names
        targets = self._targets_of(data, classes)
        if flaw := self.loss.flaw(targets):
            raise InputError(flaw)
        counting, known = _for_nodes("weights", weights, data, 1.0), _for_nodes("offset", offset, data, 0.0)
        if (counting < 0).any() or not counting.any():
            raise InputError(f"weights must be at least 0, and not all 0, got {counting.min():g}; correct them")
        self._given, self._counts = (targets, known, counting), data.counts
        counted = counting
        if offset is not None:
            if family not in OFFSETS:
                raise InputError(f"an offset is for {', '.join(OFFSETS)}, got family {family!r}; leave it out")
            change_targets, change_weights = OFFSETS[family]
            targets, counted = change_targets(targets, known), counting * change_weights(known)
        matrix = _with_ones(data.features) if self.intercept else data.features
        self.nodes, self.dim, self.l2 = int(data.counts.size), int(matrix.shape[1]), l2
        self.l1, self.composite = l1, l1 > 0
        shares = counted * (self.nodes / counting.sum())
        self.features = lay_out(
            matrix, data.counts, shares, longest=check_longest(longest, data.counts), targets=targets
        )
        self.curvature = self._steepest(matrix, data.counts, shares)
        least = 0.0 if self.intercept else self.l2
        self.mu_nodes, self.L_nodes = np.full(self.nodes, least), self.l2 + self.curvature
        self.mu, self.L = least, float(self.L_nodes.max())

    def _targets_of(self, data: Stacked, classes: tuple[Any, Any] | None) -> np.ndarray:
        if not self.loss.classes:
            self.labels = ()
            return as_numbers("targets", data.labels)
        values = np.unique(data.labels) if classes is None else np.asarray(classes)
        if values.size != 2 or not np.isin(data.labels, values).all():
            raise InputError(
                f"targets of a {self.loss.name} model must be of two classes, "
                f"got {np.unique(data.labels)[:5].tolist()}; map or filter them first"
            )
        self.labels = tuple(value.item() for value in values)
        return np.where(data.labels == values[1], 1.0, -1.0)

    def _steepest(self, matrix: Any, counts: np.ndarray, shares: np.ndarray) -> np.ndarray:
        if not np.isfinite(self.loss.steepest):
            return np.full(self.nodes, np.inf)
        return self.loss.steepest * largest_curvature(matrix, counts, shares)

    # The functions

    def _ridge(self) -> Array:
        if not self.intercept:
            return self.l2
        return self.l2 * np.append(np.ones(self.dim - 1), 0.0)

    def __repr__(self) -> str:
        return f"GLM({self.loss.name}, nodes={self.nodes}, dim={self.dim}, l2={self.l2:g}, l1={self.l1:g})"

    def _weights_of_l1(self) -> np.ndarray:
        return np.append(np.ones(self.dim - self.intercept), np.zeros(int(self.intercept)))

    def model_minimum_rows(self, H: Array, b: Array, start: Array) -> Array:
        """Return the x that minimise x'Hx / 2 - b'x plus the l1 penalty, one for each row."""
        if not self.composite:
            return super().model_minimum_rows(H, b, start)
        l1 = self.l1 * self._weights_of_l1()

        def one(row: tuple[Array, Array, Array]) -> Array:
            return sparse_minimum(row[0][None], row[1][None], l1, row[2][None])[0]

        return jax.lax.map(one, (H, b, start))

    # The answer

    @property
    def kappa(self) -> float:
        """The condition number of the mean of the f_i at the solution; L / mu is infinite without a penalty."""
        if 0 < self.mu <= self.L < np.inf:
            return self.L / self.mu
        values = np.linalg.eigvalsh(self.mean_hessian(self.solution()))
        return float(values[-1] / values[0]) if values[0] > 0 else np.inf

    def _minimum(self) -> Minimum:
        if self._solution is None:
            self._check_columns()
            known = self._sparse_minimum() if self.composite else minimum(self)
            self._check_answer(known.x)
            self._warn_of_inexact(known)
            self._remember(known)
        assert self._solution is not None
        return self._solution[0]

    def _sparse_minimum(self) -> Minimum:
        """Return the minimiser with the l1 penalty, by Newton's method with halved steps."""
        l1 = self.l1 * self._weights_of_l1()

        def value(x: np.ndarray) -> float:
            return self.objective(x) / self.nodes + float(l1 @ np.abs(x))

        x, step = np.zeros(self.dim), np.inf
        for _ in range(STEPS):
            H, g = self.mean_hessian(x), self.mean_gradient(x)
            H = H + TINY * np.diag(np.abs(np.diag(H)))
            best, t, at = sparse_minimum_of_one(H, H @ x - g, l1, x), 1.0, value(x)
            near = np.linalg.norm(best - x) <= NEAR * np.linalg.norm(best)
            while not near and t > SHORTEST and not value(x + t * (best - x)) <= at:
                t /= 2
            before, step = step, float(np.linalg.norm(t * (best - x)))
            x = best if t == 1.0 else x + t * (best - x)  # whole, so that zeros stay zeros
            if near and step >= before / 2:
                break
        return Minimum(x, max(step, ULP * float(np.linalg.norm(x))))

    def _check_columns(self) -> None:
        """Refuse columns that others determine, unless a penalty chooses between them."""
        if self.l1:
            return
        samples = self.features.samples()
        penalty = np.diag(np.broadcast_to(self._ridge(), self.dim))
        direction = flat_direction(samples.gram(np.ones(len(samples.weights))) + penalty)
        if direction is not None:
            raise InputError(
                f"columns are aliased, so infinitely many answers fit alike: {self._named(direction)}; leave one of "
                "them out, or give l2"
            )

    def _check_answer(self, x: np.ndarray) -> None:
        """Refuse data whose fit gets ever better in a direction."""
        direction = None if self.l1 else flat_direction(self.mean_hessian(x))
        if direction is None and (not np.isfinite(x).all() or self._separates(x)):
            direction = x
        if direction is not None:
            raise InputError(
                f"the data have no best answer: the fit gets ever better in the direction of {self._named(direction)}, "
                "as where classes are separable; leave such columns out, or give l2"
            )

    def _separates(self, x: np.ndarray) -> bool:
        """Return whether all samples are on their class's side of x, so that a longer x fits better."""
        if not self.loss.classes or self.l2 or self.l1:
            return False
        A, y, _, _ = self._observed()
        return bool((A @ x * y > 0).all())

    def _named(self, direction: np.ndarray) -> str:
        names = [*self.column_names(), *(["intercept"] if self.intercept else [])]
        return ", ".join(named(direction, names))

    def column_names(self) -> list[str]:
        """Return the names of the features, default ones if they have none."""
        count = self.dim - self.intercept
        return list(self.names) if self.names else [f"x{i}" for i in range(1, count + 1)]

    # The model

    def model(self) -> dict[str, Any]:
        """Return a description of the fitted model, without its coefficients."""
        features = list(self.names) if self.names else self.dim - self.intercept
        return {**(super().model() or {}), "features": features, "intercept": self.intercept}

    def weighting(self) -> dict[str, Any]:
        """Return the nodes' numbers of samples; all samples count alike."""
        return {**weighting(*self.features.weighed()), "alike": "samples"}

    def inference(self, x: np.ndarray) -> dict[str, Any]:
        """Return what `Model.summary` shows of a fit that ended at x: errors of coefficients, and how well it fits."""
        (A, y, offset, weights), loss = self._observed(), self.loss
        about = {"samples": len(y), "nodes": self.nodes, "intercept": self.intercept}
        if refused := no_likelihood(loss):
            return {**about, "refused": refused}
        t = A @ x + offset
        return inference(
            loss,
            Sums.at(loss, A, t, y, weights),
            lambda scale: log_likelihood(loss, t, y, weights, scale),
            about,
            refused=PENALISED if self.l2 or self.l1 else "",
        )

    def _observed(self) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """Return features, targets, offsets and weights of all samples that count, as they were given."""
        matrix, used = self.features.samples().matrix, self._given[2] > 0
        if not is_sparse(matrix):  # without padding
            counts = self._counts
            matrix = matrix[(np.arange(matrix.shape[0] // counts.size) < counts[:, None]).ravel()]
        return matrix[used], *(part[used] for part in self._given)


def _names(features: Any) -> tuple[str, ...] | None:
    return tuple(map(str, features.columns)) if hasattr(features, "columns") and hasattr(features, "loc") else None


def _one_each(name: str, values: Any, count: int) -> np.ndarray:
    array = as_numbers(name, values)
    if array.shape != (count,):
        raise InputError(f"{name} must have shape ({count},), one for every sample, got {array.shape}; give these")
    return array


def _for_nodes(name: str, values: Sequence[Any] | None, data: Stacked, usual: float) -> np.ndarray:
    """Return one number for every sample, from one array for each node."""
    if values is None:
        return np.full(data.labels.size, usual)
    values = list(values)
    if len(values) != data.counts.size:
        raise InputError(f"{name} must be one array for each of the {data.counts.size} nodes, got {len(values)}")
    pairs = enumerate(zip(values, data.counts, strict=True))
    return np.concatenate([_one_each(f"node {i}'s {name}", value, int(count)) for i, (value, count) in pairs])


def _with_ones(features: Any) -> Any:
    """Return features with a column of ones at the end."""
    ones = np.ones((features.shape[0], 1))
    if not is_sparse(features):
        return np.hstack([features, ones])
    import scipy.sparse as sp

    return sp.csr_array(sp.hstack([features, sp.csr_array(ones)]))
