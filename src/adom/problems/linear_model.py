"""Linear models on samples: a loss of the margins a_ij'x, a linear term and an l2 penalty.

`LinearModel` takes any loss. The classes after it are for one loss each, and faster: targets are folded into the
features, or into a linear term of f_i.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from .. import native
from ..errors import InputError
from ..util.checks import check_whole
from .base import Array, HessianProduct, Problem
from .features import DenseFeatures, Samples, SparseFeatures, lay_out
from .limits import LARGEST_DIM, as_numbers, check_room
from .losses import LOGISTIC, RIDGE, SOFTMAX, Loss
from .oracles import HALVINGS, MAX_ITERATIONS, held
from .samples import (
    Stacked,
    check_longest,
    dealt,
    dense,
    largest_curvature,
    penalty_of,
    regulariser,
    ridge_of,
    sample_weight,
    stack,
    tie,
    weighting,
)


class LinearModel(Problem):
    """f_i(x) = sum_j w_ij loss(a_ij'x, b_ij) + r |x|^2 / 2, for any loss.

    If the loss couples a vector of coefficients for each of `vectors` classes, a row of x concatenates them. Rows of
    nodes are computed by JAX, means over nodes by NumPy. The other parameters are those of the subclasses.

    For methods that need no strong convexity the penalty may be `loose`: r may be 0, and L infinite. The common shift
    of all classes, which nothing else determines, is then held at 0. With `free`, the last coordinate of every vector
    is an intercept, which has no penalty.
    """

    array_fields: ClassVar[tuple[str, ...]] = ("features", "l2")
    static_fields: ClassVar[tuple[str, ...]] = ("loss", "vectors", "loose", "free")
    on_host = True
    loss: Loss
    folded: ClassVar[float]
    """The target in the loss if the true targets are folded into the features or a linear term."""
    features: DenseFeatures | SparseFeatures
    l2: float
    vectors: int = 1
    loose: bool = False
    free: bool = False
    labels: tuple[Any, ...] | None = None  # the classes, if known; not part of the pytree

    def __init__(
        self,
        loss: Loss,
        data: Sequence[tuple[Any, Any]],
        *,
        l2: float,
        vectors: int = 1,
        weights: Sequence[Any] | None = None,
        longest: int | None = None,
        count: str = "nodes",
        loose: bool = False,
        free: bool = False,
    ) -> None:
        self.loose, self.free = loose, free
        self.loss, self.vectors, stacked = loss, vectors, stack(data, weights, count)
        targets = as_numbers("targets", stacked.labels)
        if flaw := loss.flaw(targets):
            raise InputError(flaw)
        self.labels = tuple(range(vectors)) if loss.coupled else (-1, 1) if loss.classes else ()
        self._build(stacked, l2, longest=longest, targets=targets)

    @property
    def constants_claimed(self) -> bool:
        """False: mu and L are computed."""
        return False

    def _build(
        self,
        data: Stacked,
        l2: float | None,
        kappa: float | None = None,
        *,
        signs: np.ndarray | None = None,
        longest: int | None = None,
        targets: np.ndarray | None = None,
    ) -> np.ndarray:
        """Set everything but the linear term; return the L_i - r."""
        longest = check_longest(longest, data.counts)
        self.nodes, self.dim = int(data.counts.size), self.vectors * int(data.features.shape[1])
        check_room(self.nodes, self.dim, data.features)
        curvature = self.loss.steepest * largest_curvature(data.features, data.counts, data.weights)
        r = l2 if self.loose and l2 is not None else regulariser(float(curvature.max()), l2, kappa)
        self._regularise(r, curvature)
        self.features = lay_out(data.features, data.counts, data.sample_weights(), signs, longest, targets)
        return curvature

    def _regularise(self, l2: float, curvature: np.ndarray) -> None:
        self.l2 = l2
        self._set_constants(np.full(self.nodes, 0.0 if self.free else l2), l2 + curvature, bounded=not self.loose)

    def _ridge(self) -> Array:
        """Return the penalty r of every coordinate, or of all."""
        return ridge_of(self.l2, self.dim, self.vectors) if self.free else self.l2

    def _held(self, x: Array) -> Array:
        """Return the slope of the penalty at x."""
        return self._ridge() * x + (tie(x, self.vectors) if self.loose and self.loss.coupled else 0.0)

    def _linear(self) -> Array:
        """Return the t_i, one row per node."""
        return np.zeros((1, 1))

    def _targets(self, of: DenseFeatures | SparseFeatures | Samples) -> Array:
        return self.folded if of.targets is None else of.targets

    def _margins(self, x: Array) -> Array:
        """Return a_ij'x_i for every sample; with a vector for each class, classes are the last axis."""
        if not self.loss.coupled:
            return self.features.margins(x)
        per_class = x.reshape(x.shape[0], self.vectors, -1)
        return jax.vmap(self.features.margins, in_axes=1, out_axes=-1)(per_class)

    def _sums(self, per_sample: Array) -> Array:
        """Return the sum over each node's samples of w_ij per_sample a_ij, for every vector; shape (nodes, dim)."""
        if not self.loss.coupled:
            return self.features.weighted_mean(per_sample)
        sums = jax.vmap(self.features.weighted_mean, in_axes=-1, out_axes=1)(per_sample)
        return sums.reshape(sums.shape[0], -1)

    def weighting(self) -> dict[str, Any]:
        """Return the nodes' numbers of samples and how these are weighted."""
        return weighting(*self.features.weighed())

    def model(self) -> dict[str, Any] | None:
        """Return a description of the fitted model, without its coefficients."""
        if self.labels is None:
            return None
        counts, totals = self.features.weighed()
        width = self.dim // self.vectors
        penalty = penalty_of(self.loss, self.l2, weighting(counts, totals), int(counts.sum()))
        return {
            "kind": self.loss.name, "features": width, "classes": self.labels, "intercept": False, "penalty": penalty
        }  # fmt: skip

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "l2": self.l2, "samples": self.features.described()}

    def value_rows(self, x: Array) -> Array:
        """Return f_i(x_i)."""
        losses = self.loss.value(self._margins(x), self._targets(self.features))
        return self.features.mean(losses) + (self._held(x) * x).sum(axis=-1) / 2

    def gradient_rows(self, x: Array) -> Array:
        """Return grad f_i(x_i)."""
        slopes = self.loss.slope(self._margins(x), self._targets(self.features))
        return self._sums(slopes) - self._linear() + self._held(x)

    def hessian_product_rows(self, x: Array, v: Array) -> Array:
        """Return the Hessian of f_i at x_i times v_i."""
        bends = self.loss.bends(self._margins(x), self._targets(self.features))
        return self._sums(bends(self._margins(v))) + self._held(v)

    def hessian_rows(self, x: Array) -> Array:
        """Return the Hessians, shape (nodes, dim, dim)."""
        if isinstance(self.features, SparseFeatures) or self.loss.coupled:
            return super().hessian_rows(x)
        curvatures = self.loss.curvature(self._margins(x), self._targets(self.features))
        return self.features.gram(curvatures) + self._ridge() * jnp.eye(self.dim, dtype=x.dtype)

    def _columns_at_once(self) -> int:
        """One: many at a time take longer, and JAX 0.10's programs for sparse samples have hung on two cores."""
        return 1

    def hessians_at(self, x: np.ndarray) -> np.ndarray:
        """Return the Hessians on the host; dense features need no compiled program."""
        if isinstance(self.features, SparseFeatures) or self.loss.coupled:
            return super().hessians_at(x)
        signed, weights = (np.asarray(part, dtype=np.float64) for part in self.features[:2])
        bends = weights * self.loss.curvature((signed @ x[..., None])[..., 0], np.asarray(self._targets(self.features)))
        return np.asarray((signed * bends[..., None]).swapaxes(1, 2) @ signed + self._ridge() * np.eye(self.dim))

    def _columns(self, x: np.ndarray) -> np.ndarray:
        """Return one common x in the shape by which the sample matrix is multiplied."""
        return x.reshape(self.vectors, -1).T if self.loss.coupled else x

    def mean_gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the mean of the gradients at one common x."""
        samples = self.features.samples()
        slopes = self.loss.slope(samples.margins(self._columns(x)), self._targets(samples))
        sums = samples.sums(slopes).T.ravel() - np.asarray(self._linear()).mean(axis=0)
        return np.asarray(self._balanced(sums) + self._held(x[None])[0])

    def _balanced(self, sums: np.ndarray) -> np.ndarray:
        """Return the vectors of all classes minus their mean, if there are several.

        In the gradient of a coupled loss these vectors sum to 0. Along a common shift of all classes f_i has no
        curvature except r, so Newton's method would amplify a rounding error in this sum the most.
        """
        if not self.loss.coupled:
            return sums
        per_class = sums.reshape(self.vectors, -1)
        return np.asarray(per_class - per_class.mean(axis=0)).ravel()

    def mean_hessian(self, x: np.ndarray) -> np.ndarray:
        """Return the mean of the Hessians at one common x, block by block if there is a vector for each class."""
        samples = self.features.samples()
        bends = self.loss.bends(samples.margins(self._columns(x)), self._targets(samples))
        width = self.dim // self.vectors
        hessian: np.ndarray = self._held(np.eye(self.dim))
        for k, unit in enumerate(np.eye(self.vectors)):
            rows, bend = slice(k * width, (k + 1) * width), bends(unit).reshape(-1, self.vectors)
            hessian[rows, rows] += samples.gram(bend[:, k])
            for other in range(k):
                columns = slice(other * width, (other + 1) * width)
                hessian[rows, columns] += samples.gram(bend[:, other])
                hessian[columns, rows] = hessian[rows, columns].T
        return hessian

    def mean_hessian_product(self, x: np.ndarray) -> HessianProduct:
        """Return v -> H v for the mean H of the Hessians at x, and the diagonal of H."""
        samples = self.features.samples()
        margins, targets = samples.margins(self._columns(x)), self._targets(samples)
        bend = self.loss.bends(margins, targets)
        diagonal = [samples.squares(each) for each in np.atleast_2d(self.loss.curvature(margins, targets).T)]

        def product(v: np.ndarray) -> np.ndarray:
            sums = samples.sums(bend(samples.margins(self._columns(v)))).T.ravel()
            return np.asarray(sums + self._held(v[None])[0])

        return product, np.concatenate(diagonal) + self._ridge()


class LeastSquares(LinearModel):
    r"""Ridge regression: each node holds samples a_ij with targets b_ij.

    .. math:: f_i(x) = \frac{1}{2} \sum_j w_{ij} (a_{ij}^\top x - b_{ij})^2 + \frac{r}{2} \|x\|^2

    Here w_ij = 1 / m_i by default, mu_i = r and L_i = r + the largest eigenvalue of the sum of the w_ij a_ij a_ij'.
    A gradient costs two products with a node's samples. If nodes have more samples than features, `Quadratic` with
    that sum plus r I as H_i is cheaper and has a larger mu.

    Parameters
    ----------
    data : sequence of (features, targets)
        One pair per node, dense or scipy.sparse.
    l2 : float
        The regulariser r.
    weights : sequence of arrays, optional
        The w_ij, one array per node.
    longest : int, optional
        Dense nodes are padded to this many rows; by default, to the size of the largest node.
    count : str
        Without `weights`: whether "nodes" or "samples" count equally, as for `LogisticRegression`.

    Examples
    --------
    >>> problem = LeastSquares([([[1.0], [1.0]], [1.0, 3.0]), ([[2.0]], [0.0])], l2=0.5)
    >>> problem.mu, problem.L, problem.solution().round(9).tolist()
    (0.5, 4.5, [0.333333333])
    """

    array_fields = ("features", "moments", "squares", "l2")
    static_fields = ()
    loss, folded = RIDGE, 0.0  # `moments` and `squares` have the targets
    moments: np.ndarray  # (nodes, dim): the sum over j of w_ij b_ij a_ij
    squares: np.ndarray  # (nodes,): the sum over j of w_ij b_ij^2

    def __init__(
        self,
        data: Sequence[tuple[Any, Any]],
        *,
        l2: float,
        weights: Sequence[Any] | None = None,
        longest: int | None = None,
        count: str = "nodes",
    ) -> None:
        stacked = stack(data, weights, count)
        targets = as_numbers("targets", stacked.labels)
        self._build(stacked, l2, longest=longest)
        sums = stacked.summing(stacked.sample_weights() * targets)
        self.labels = ()
        self.moments, self.squares = dense(sums @ stacked.features), np.asarray(sums @ targets)

    def _linear(self) -> Array:
        return self.moments

    def value_rows(self, x: Array) -> Array:
        """Return f_i(x_i)."""
        fitted = self.features.mean(self.loss.value(self.features.margins(x), self.folded))
        return fitted + self.squares / 2 + ((self.l2 / 2 * x - self.moments) * x).sum(axis=-1)

    def rounding(self, rng: np.random.Generator) -> np.ndarray:
        """Return a random rounding error of the moments: plus or minus a bound of the sum of the |w_ij b_ij a_ij|."""
        samples = self.features.samples()
        most = np.sqrt(np.asarray(self.squares).mean() * samples.squares(np.ones_like(samples.weights)))
        return np.asarray(most * rng.choice([-1.0, 1.0], self.dim))


class SoftmaxRegression(LinearModel):
    r"""Classification into K classes: each node holds samples a_ij with labels b_ij = 0, ..., K - 1.

    Each class has its own vector of coefficients, x = (x_0, ..., x_{K-1}), and none is fixed (the symmetric form):

    .. math:: f_i(x) = \sum_j w_{ij} \left(\log \sum_k e^{a_{ij}^\top x_k} - a_{ij}^\top x_{b_{ij}}\right)
              + \frac{r}{2} \|x\|^2

    Here w_ij = 1 / m_i by default. A row of x concatenates these vectors, so dim is K times the number of features.
    The Hessian of the log-sum-exp, diag(p) - p p', has no eigenvalue above 1/2. So mu_i = r, and L_i = r + half the
    largest eigenvalue of the sum over j of w_ij a_ij a_ij', computed for every node.

    A label enters the loss linearly. So a node stores its labels as one vector, in which the block of class k is the
    sum of w_ij a_ij over its samples of class k, and its samples without labels.

    Parameters
    ----------
    data : sequence of (features, labels)
        One pair per node, dense or scipy.sparse; labels are 0, ..., K - 1. A node need not have every class.
    classes : int
        K, two or more.
    l2 : float
        The regulariser r.
    weights : sequence of arrays, optional
        The w_ij, one array per node.
    longest : int, optional
        Dense nodes are padded to this many rows; by default, to the size of the largest node.
    count : str
        Without `weights`: whether "nodes" or "samples" count equally, as for `LogisticRegression`.

    Examples
    --------
    >>> data = [([[1.0, 0.0], [0.0, 1.0]], [0, 1]), ([[1.0, 1.0]], [2])]
    >>> problem = SoftmaxRegression(data, classes=3, l2=0.5)
    >>> problem.nodes, problem.dim, problem.mu, problem.L
    (2, 6, 0.5, 1.5)
    """

    array_fields = ("features", "targets", "l2")
    static_fields = ("classes", "vectors")
    loss, folded = SOFTMAX, -1.0  # of no class: `targets` has the labels
    targets: np.ndarray  # (nodes, dim): in the block of class k, the sum of w_ij a_ij over its samples
    classes: int

    def __init__(
        self,
        data: Sequence[tuple[Any, Any]],
        *,
        classes: int,
        l2: float,
        weights: Sequence[Any] | None = None,
        longest: int | None = None,
        count: str = "nodes",
    ) -> None:
        stacked = stack(data, weights, count)
        _check_labels(stacked.labels, classes)
        self.classes = self.vectors = int(classes)
        self._build(stacked, l2, longest=longest)
        self.labels = tuple(range(self.classes))
        sums = stacked.summing(stacked.sample_weights(), stacked.labels.astype(np.int64), self.classes)
        self.targets = dense(sums @ stacked.features).reshape(self.nodes, self.dim)

    def _linear(self) -> Array:
        return self.targets

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "classes": self.classes}

    def value_rows(self, x: Array) -> Array:
        """Return f_i(x_i)."""
        losses = self.features.mean(self.loss.value(self._margins(x), self.folded))
        return losses + ((self.l2 / 2 * x - self.targets) * x).sum(axis=-1)

    def rounding(self, rng: np.random.Generator) -> np.ndarray:
        """Return a random rounding error of the targets: plus or minus a bound of the sum of the |w_ij a_ij|."""
        samples = self.features.samples()
        most = np.sqrt(samples.weights.sum() * samples.squares(np.ones_like(samples.weights)))
        return self._balanced((most * rng.choice([-1.0, 1.0], (self.classes, most.size))).ravel())


def _check_labels(labels: np.ndarray, classes: int) -> None:
    """Refuse labels other than whole numbers from 0 up to the number of classes."""
    check_whole("classes", classes, 2, "it is the number of classes", LARGEST_DIM)
    if labels.dtype.kind not in "iub" or labels.min() < 0 or labels.max() >= classes:
        strange = labels[0] if labels.dtype.kind not in "iub" else labels[np.argmax((labels < 0) | (labels >= classes))]
        raise InputError(
            f"labels must be whole numbers from 0 to {classes - 1}, got {strange!r}; "
            "number the classes first, e.g. by numpy.unique(labels, return_inverse=True)"
        )


class LogisticRegression(LinearModel):
    r"""Binary classification: each node holds samples a_ij with labels b_ij = -1 or +1.

    .. math:: f_i(x) = \frac{1}{m_i} \sum_j \log(1 + \exp(-b_{ij} a_{ij}^\top x)) + \frac{r}{2} \|x\|^2

    The curvature of the logistic loss lies in (0, 1/4], so mu_i = r and L_i = r + largest eigenvalue of
    A_i'A_i / (4 m_i), computed for every node.

    Parameters
    ----------
    features : array or scipy.sparse array of shape (samples, dim)
        Sparse features stay sparse.
    labels : array of shape (samples,)
        Any two values; the smaller one becomes -1.
    nodes : int
        The samples are dealt out in order, as evenly as possible.
    l2, kappa : float
        Give exactly one: the regulariser r, or the condition number L / mu that r is chosen to give.
    count : str
        What counts equally if nodes have different numbers of samples. "nodes" uses the formula above, which is the
        paper's. "samples" weighs losses by n / N instead of 1 / m_i, so the solution is that of the pooled data.

    Examples
    --------
    >>> problem = LogisticRegression([[1.0], [2.0], [-1.0], [0.5]], [1, 1, 0, 0], nodes=2, kappa=10)
    >>> problem.nodes, problem.dim, round(problem.kappa, 9)
    (2, 1, 10.0)
    """

    array_fields = ("features", "l2", "curvature")
    static_fields = ()
    loss, folded = LOGISTIC, 1.0  # samples are multiplied by their targets
    curvature: np.ndarray  # (nodes,): L_i - r, stored because a large r would swamp it in L_i

    def __init__(
        self,
        features: Any,
        labels: Any,
        nodes: int,
        *,
        l2: float | None = None,
        kappa: float | None = None,
        count: str = "nodes",
    ) -> None:
        data = dealt(features, labels, nodes)
        each = sample_weight(data.counts, count)
        data = data._replace(weights=None if each is None else np.full(int(data.counts.sum()), each))
        signs, self.labels = _signs(data)
        self.curvature = self._build(data, l2, kappa, signs=signs)

    @classmethod
    def from_nodes(
        cls,
        data: Sequence[tuple[Any, Any]],
        *,
        l2: float | None = None,
        kappa: float | None = None,
        classes: tuple[float, float] | None = None,
        longest: int | None = None,
        weights: Sequence[Any] | None = None,
        count: str = "nodes",
    ) -> Self:
        """Return the problem of one (features, labels) pair per node; numbers of samples may differ.

        Parameters
        ----------
        data : sequence of (features, labels)
        l2, kappa : float
            Give exactly one, as for the class.
        classes : (smaller, larger), optional
            The two label values; by default the two that occur. Give them if these nodes are built without the others
            and may hold only one of the values.
        longest : int, optional
            Dense nodes are padded to this many rows; by default, to the size of the largest node given. With the size
            of the largest of all nodes, a node's sums are the same to the bit whichever nodes it is built with.
        weights : sequence of arrays, optional
            One array per node: the weights of its samples' losses, instead of 1 / m_i.
        count : str
            As for the class, if there are no weights. The default "nodes" is the paper's f_i. Code that fits models to
            data (`Shards`, `NodeData`, the command line, the estimators) uses "samples".

        Examples
        --------
        >>> data = [([[1.0, 0.0]], [1]), ([[0.0, 1.0], [1.0, 1.0]], [-1, 1])]
        >>> LogisticRegression.from_nodes(data, l2=0.1).nodes
        2
        """
        stacked = stack(data, weights, count)
        self = object.__new__(cls)
        signs, self.labels = _signs(stacked, classes)
        self.curvature = self._build(stacked, l2, kappa, signs=signs, longest=longest)
        return self

    def with_l2(self, l2: float) -> Self:
        """Return the problem with another regulariser; the data are shared, not copied."""
        return self._regularised(l2, None)

    def with_kappa(self, kappa: float) -> Self:
        """Return the problem with the regulariser that gives this condition number; the data are shared, not copied.

        Examples
        --------
        >>> problem = LogisticRegression([[1.0], [2.0], [-1.0], [0.5]], [1, 1, 0, 0], nodes=2, kappa=10)
        >>> other = problem.with_kappa(1000.0)
        >>> round(other.kappa, 6), other.features is problem.features
        (1000.0, True)
        """
        return self._regularised(None, kappa)

    def _regularised(self, l2: float | None, kappa: float | None) -> Self:
        arrays, static = self._flatten()
        other = type(self)._unflatten(static, arrays)
        other.labels = self.labels
        other._regularise(regulariser(float(self.curvature.max()), l2, kappa), self.curvature)
        return other

    def gradient_rows(self, x: Array) -> Array:
        """Return grad f_i(x_i), by a compiled kernel if there is one."""
        return self.features.logistic_gradient(x) + self.l2 * x

    def newton_kernel(self, dtype: Any) -> Callable[..., Sequence[Array]] | None:
        """Return the compiled kernel of the oracle `auto`, with the data bound; None if there is none."""
        return self._kernel(native.logistic_newton, dtype)

    def exact_dual_gradient_rows(self, z: Array, x: Array) -> tuple[Array, Array]:
        """Solve grad f_i(x_i) = z_i for every row as the base class does, by a compiled kernel if there is one."""
        kernel = self._kernel(native.logistic_exact, z.dtype) if held(self.nodes, self.dim) else None
        if kernel is None:
            return super().exact_dual_gradient_rows(z, x)
        solution, gradients = kernel(z, x, iterations=MAX_ITERATIONS, halvings=HALVINGS)
        return solution, gradients

    def _kernel(self, kernel: Callable[..., Any], dtype: Any) -> Callable[..., Any] | None:
        """Return a kernel with the data bound; None if no kernel can be used."""
        samples = self.features.for_kernel()
        return partial(kernel, samples, self.l2, self.L) if samples[0].dtype == dtype and native.usable() else None


def _signs(data: Stacked, classes: tuple[float, float] | None = None) -> tuple[np.ndarray, tuple[Any, Any]]:
    """Return labels as -1 (smaller value) and +1, and the two values: the given ones or those that occur."""
    labels, samples = data.labels, data.features.shape[0]
    if labels.shape != (samples,):
        raise InputError(
            f"labels must have shape ({samples},), one for every sample, got {labels.shape}; "
            "check that features and labels are of the same samples"
        )
    if classes is not None:
        smaller, larger = _check_classes(classes)
        strange = (labels != smaller) & (labels != larger)
        if strange.any():
            sample = int(np.argmax(strange))
            raise InputError(
                f"labels must be {smaller} or {larger}, got {labels[sample]} for sample {sample}; "
                "correct the label, or give the classes that occur"
            )
        return np.where(labels == larger, 1.0, -1.0), (smaller, larger)
    values = np.unique(labels)
    if values.size != 2:
        shown = ", ".join(str(v) for v in values[:5]) + (", ..." if values.size > 5 else "")
        raise InputError(
            f"labels must be of exactly two classes, got {values.size}: {shown}; "
            "logistic regression here is binary: map or filter the classes first"
        )
    return np.where(labels == values[1], 1.0, -1.0), (values[0].item(), values[1].item())


def _check_classes(classes: tuple[float, float]) -> tuple[float, float]:
    """Return the two label values; refuse anything but two numbers in ascending order."""
    try:
        smaller, larger = classes
        ordered = -np.inf < smaller < larger < np.inf
    except (TypeError, ValueError):
        ordered = False
    if not ordered:
        raise InputError(f"classes must be two numbers, the smaller first, got {classes!r}; e.g. (-1, 1)")
    return smaller, larger
