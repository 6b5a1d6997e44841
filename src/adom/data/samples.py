"""Labelled samples by name, and the paper's problem on them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from . import store
from .sample_files import parse_libsvm
from .sets import named
from .splits import split as deal

if TYPE_CHECKING:
    from ..problems.logistic import LogisticRegression


def load(name: str) -> tuple[Any, np.ndarray]:
    """Return the features and labels of a data set, downloading it where it is not there yet.

    Parameters
    ----------
    name : str
        "a6a", "w6a" or "ijcnn1".

    Returns
    -------
    features : scipy.sparse.csr_array of shape (samples, features)
        Float64.
    labels : array of shape (samples,)
        -1 and 1.

    See Also
    --------
    adom.data.fetch : only download it.
    adom.data.infectious : the network among the data sets.
    """
    chosen = named(name)
    if chosen.features is None:
        raise InputError(f"{name} is a network, not samples; adom.data.infectious() gives it")
    ((_, text),) = store.contents(chosen).items()
    return parse_libsvm(name, text, chosen.features)


def problem(
    name: str,
    nodes: int = 100,
    *,
    split: str = "contiguous",
    seed: int = 0,
    concentration: float = 0.5,
    l2: float | None = None,
    kappa: float | None = None,
) -> "LogisticRegression":
    """Return the paper's problem on a data set: regularised logistic regression, its samples dealt out to nodes.

    The paper has 100 nodes (50 on infectious_ct1) with equally many samples each, and does not say which sample
    goes where. No set divides evenly, so here some nodes have one sample more than others; none is left out.

    Parameters
    ----------
    name : str
        One of "a6a", "w6a" and "ijcnn1".
    nodes : int
    split : str
        "contiguous", "shuffled", "label" or "dirichlet": see `adom.data.split`.
    seed, concentration
        Of the split.
    l2, kappa : float
        Exactly one: the regulariser itself, or the condition number that it is chosen to give.
    """
    from ..problems.logistic import LogisticRegression

    features, labels = load(name)
    data = deal(features, labels, nodes, split, seed=seed, concentration=concentration)
    return LogisticRegression.from_nodes(data, l2=l2, kappa=kappa)
