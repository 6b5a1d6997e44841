"""l2-regularised least squares that keeps the samples themselves, for wide or sparse data."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import Array
from .checks import as_numbers
from .curvature import dense
from .linear_model import LinearModel
from .losses import RIDGE
from .nodes import stack


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
