"""The paper's labelled samples, its problem on them, and its Table 2."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from . import download
from .sets import SAMPLES, find_set
from .splits import shares
from .splits import split as split_samples
from .text_files import parse_libsvm

if TYPE_CHECKING:
    import pandas as pd

    from ..problems.linear_model import LogisticRegression

TABLE_2 = {"a6a": (11220, 122), "w6a": (17188, 300), "ijcnn1": (49990, 22)}
"""The paper's Table 2: samples and dimension."""


def load(name: str) -> tuple[Any, np.ndarray]:
    """Return the features and labels of a data set, downloading it if it is missing.

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
    data_set = find_set(name)
    if data_set.features is None:
        raise InputError(f"{name} is a network, not samples; adom.data.infectious() gives it")
    (text,) = download.texts(data_set).values()
    return parse_libsvm(name, text, data_set.features)


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
    """Return the paper's problem on a data set: regularised logistic regression with samples split over nodes.

    The paper has 100 nodes (50 on infectious_ct1) with equally many samples each, and does not say which sample
    goes where. No set divides evenly, so here some nodes have more samples than others; no sample is left out.

    Parameters
    ----------
    name : str
        One of "a6a", "w6a" and "ijcnn1".
    nodes : int
    split : str
        "contiguous", "shuffled", "label" or "dirichlet": see `adom.data.split`.
    seed, concentration
        Passed on to `adom.data.split`.
    l2, kappa : float
        Exactly one: the regulariser itself, or the condition number from which it is computed.
    """
    from ..problems.linear_model import LogisticRegression

    features, labels = load(name)
    data = split_samples(features, labels, nodes, split, seed=seed, concentration=concentration)
    return LogisticRegression.from_nodes(data, l2=l2, kappa=kappa)


def table2() -> "pd.DataFrame":
    """Compare the files with the paper's Table 2.

    Returns
    -------
    pandas.DataFrame
        One row per data set: samples and dimension in the paper and in the file; whether they agree; the share of
        the label +1; the number of samples without any feature; the samples per node for 100 nodes (the paper's
        number) and for 50 (that of infectious_ct1); and how many of the 100 nodes have only one class under the
        split "contiguous".
    """
    import pandas as pd

    table = []
    for name in SAMPLES:
        (text,) = download.texts(find_set(name)).values()
        features, labels = parse_libsvm(name, text, None)  # None: count the features in the file
        samples, dim = features.shape
        table.append(
            {
                "dataset": name,
                "samples_paper": TABLE_2[name][0],
                "samples": samples,
                "dimension_paper": TABLE_2[name][1],
                "dimension": dim,
                "agrees": (samples, dim) == TABLE_2[name],
                "positive": float((labels == 1).mean()),
                "empty": int((np.diff(features.indptr) == 0).sum()),
                "each_of_100": _each(samples, 100),
                "each_of_50": _each(samples, 50),
                "one_class_of_100": sum(np.ptp(labels[rows]) == 0 for rows in shares(labels, 100, "contiguous")),
            }
        )
    return pd.DataFrame(table)


def _each(samples: int, nodes: int) -> str:
    """Return how many samples a node gets.

    Examples
    --------
    >>> _each(10, 5), _each(11, 5)
    ('2', '2 or 3')
    """
    least, more = divmod(samples, nodes)
    return f"{least} or {least + 1}" if more else str(least)
