"""l2-regularised logistic regression: the paper's problem (equation for f_i in section 6)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from .. import native
from ..errors import InputError
from ..util.checks import check_whole
from .base import Array
from .checks import LARGEST_DIM
from .linear_model import LinearModel, regulariser
from .losses import LOGISTIC
from .nodes import Stacked, as_labels, check_features, stack
from .oracles import HALVINGS, MAX_ITERATIONS, held
from .weighting import sample_weight


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
        matrix = check_features(features)
        nodes = check_whole("nodes", nodes, most=LARGEST_DIM)
        if nodes > matrix.shape[0]:
            raise InputError(
                f"{nodes} nodes cannot share {matrix.shape[0]} samples: every node needs one at least; "
                f"use nodes={matrix.shape[0]} or fewer"
            )
        counts = np.full(nodes, matrix.shape[0] // nodes)
        counts[: matrix.shape[0] % nodes] += 1
        each = sample_weight(counts, count)
        weights = None if each is None else np.full(matrix.shape[0], each)
        data = Stacked(matrix, as_labels(labels), counts, weights)
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
