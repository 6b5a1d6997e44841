"""The paper's samples and problem, and its Table 2; its real network, infectious_ct1, and the readings of its chi."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .sets import SAMPLES, find_set, texts
from .splits import shares
from .splits import split as split_samples
from .text_files import parse_libsvm

if TYPE_CHECKING:
    import pandas as pd

    from ..networks import Network
    from ..problems.linear_model import LogisticRegression

TABLE_2 = {"a6a": (11220, 122), "w6a": (17188, 300), "ijcnn1": (49990, 22)}
"""The paper's Table 2: samples and dimension."""
NAME = "infectious_ct1"
LINKS, MEMBERS, TIMES = (f"{NAME}_{part}.txt" for part in ("A", "graph_indicator", "edge_attributes"))
NODES = 50
"""Nodes of every graph."""
PAPER_CHI = 232
"""The paper's chi of infectious_ct1, rounded."""


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
    (text,) = texts(data_set).values()
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
        (text,) = texts(find_set(name)).values()
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


def infectious() -> "Network":
    """Return the paper's real network, downloading it if it is missing.

    Round k has the k-th graph of the file. It links two people if they met at any time; when and how often they met
    does not count. W is the Laplacian divided by its own largest eigenvalue. All graphs are connected. This reading
    of the files has chi 232.645, and the paper's is about 232; `adom.data.readings` compares other readings.

    Returns
    -------
    Network
        50 nodes, a period of 200 rounds, 198 distinct graphs.
    """
    from ..networks import from_contacts

    files = texts(find_set(NAME), (LINKS, MEMBERS))
    meetings = np.unique(rows(files[LINKS], files[MEMBERS]), axis=0)  # one row per pair that met
    return from_contacts(meetings, window=1, nodes=NODES)


def rows(links: bytes, members: bytes) -> np.ndarray:
    r"""Return each line of the file of links as (graph, u, v) with u < v.

    Parameters
    ----------
    links : bytes
        Lines `u, v`; nodes are counted from 1 over all graphs.
    members : bytes
        The graph of each node, counted from 1, in ascending order.

    Examples
    --------
    >>> rows(b"1, 2\n2, 1\n4, 3\n", b"1\n1\n2\n2\n").tolist()
    [[0, 0, 1], [0, 0, 1], [1, 0, 1]]
    """
    ends = np.array(links.replace(b",", b" ").split(), dtype=np.int64).reshape(-1, 2) - 1
    graph = np.array(members.split(), dtype=np.int64) - 1
    owner = graph[ends[:, 0]]
    first = np.searchsorted(graph, owner)
    return np.column_stack([owner, np.sort(ends, axis=1) - first[:, None]])


def readings() -> "pd.DataFrame":
    """Return chi of infectious_ct1 for each plausible reading of its files.

    All readings but the last two use the 200 graphs of the file. "Its own" means that each matrix is divided by its
    own largest eigenvalue, as in the paper; otherwise matrices are not scaled. LAPACK computes the eigenvalues here,
    independently of `adom.networks`.

    Returns
    -------
    pandas.DataFrame
        One row per reading: its name, the number of graphs, how many of them are not connected (chains of links then
        join their parts), the network's chi, and the median chi of its graphs.
    """
    import pandas as pd

    files = texts(find_set(NAME), (LINKS, MEMBERS, TIMES))
    meetings = rows(files[LINKS], files[MEMBERS])
    times = np.array(files[TIMES].split(), dtype=np.int64)
    counts = _counts(meetings)
    links = np.minimum(counts, 1.0)
    degrees = links.sum(axis=2)
    metropolis = links / (1 + np.maximum(degrees[:, :, None], degrees[:, None, :]))
    normalised = np.eye(NODES) - links / np.sqrt(degrees[:, :, None] * degrees[:, None, :])
    moments, apart = _joined(_counts(np.column_stack([meetings[:, 0] * 1000 + times, meetings[:, 1:]])))
    everybody = np.minimum(links.sum(axis=0, keepdims=True), 1.0)
    table = [
        _row("links weigh 1, its own", _laplacians(links), own=True),
        _row("links weigh 1, as they are", _laplacians(links)),
        _row("links weigh how often they occur, its own", _laplacians(counts), own=True),
        _row("links weigh how often they occur, as they are", _laplacians(counts)),
        _row("Metropolis weights, its own", _laplacians(metropolis), own=True),
        _row("Metropolis weights, as they are", _laplacians(metropolis)),
        _row("normalised Laplacian, its own", normalised, own=True),
        {**_row("a graph a time stamp, joined, its own", _laplacians(moments), own=True), "not_connected": apart},
        _row("all graphs as one", _laplacians(everybody)),
    ]
    return pd.DataFrame(table)


def _counts(meetings: np.ndarray) -> np.ndarray:
    """Return a symmetric matrix per graph that counts meetings; each meeting is listed in both directions."""
    names, graph = np.unique(meetings[:, 0], return_inverse=True)
    counts = np.zeros((len(names), NODES, NODES))
    np.add.at(counts, (graph, meetings[:, 1], meetings[:, 2]), 0.5)
    return counts + counts.transpose(0, 2, 1)


def _laplacians(weights: np.ndarray) -> np.ndarray:
    laplacians: np.ndarray = np.eye(NODES) * weights.sum(axis=2)[:, None] - weights
    return laplacians


def _joined(counts: np.ndarray) -> tuple[np.ndarray, int]:
    """Link every pair that met, join the parts of each graph by a chain, and count the graphs that needed one."""
    from ..networks.edges import join_in_chain

    links = np.minimum(counts, 1.0)
    apart = 0
    for matrix in links:
        chain = join_in_chain(NODES, np.argwhere(np.triu(matrix)).astype(np.int32))
        matrix[chain[:, 0], chain[:, 1]] = matrix[chain[:, 1], chain[:, 0]] = 1.0
        apart += bool(len(chain))
    return links, apart


def _row(reading: str, matrices: np.ndarray, *, own: bool = False) -> dict[str, object]:
    values = np.linalg.eigvalsh(matrices)
    low, high = values[:, 1], values[:, -1]
    chis = high / low
    return {
        "reading": reading,
        "graphs": len(matrices),
        "not_connected": int((low < 1e-9 * high).sum()),
        "chi": float(chis.max() if own else high.max() / low.min()),
        "median": float(np.median(chis)),
    }
