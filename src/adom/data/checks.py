"""The files against the paper: its Table 2, and its chi of infectious_ct1."""

from typing import TYPE_CHECKING

import numpy as np

from . import store
from .infectious import LINKS, MEMBERS, NAME, NODES, TIMES, rows
from .sets import SAMPLES, named
from .splits import shares

if TYPE_CHECKING:
    import pandas as pd

TABLE_2 = {"a6a": (11220, 122), "w6a": (17188, 300), "ijcnn1": (49990, 22)}
"""The paper's Table 2: samples and dimension."""
PAPER_CHI = 232
"""What the paper says chi of infectious_ct1 is, about."""


def table2() -> "pd.DataFrame":
    """Hold the files against the paper's Table 2.

    Returns
    -------
    pandas.DataFrame
        One row a data set: what the table says and what the file has; whether they agree; the share of the label
        +1; samples without any feature; how many samples each of 100 nodes gets, the paper's number of nodes, and
        each of 50, that of infectious_ct1; and how many of the 100 have one class only if the samples are dealt out
        in the order of the file.
    """
    import pandas as pd

    from .sample_files import parse_libsvm

    table = []
    for name in SAMPLES:
        ((_, text),) = store.contents(named(name)).items()
        features, labels = parse_libsvm(name, text, None)  # the width is counted, not given
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
                "one_class_of_100": sum(np.ptp(labels[share]) == 0 for share in shares(labels, 100, "contiguous")),
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


def readings() -> "pd.DataFrame":
    """Return the chi that infectious_ct1 has under each plausible reading of its files.

    Every reading but the last two takes the 200 graphs as the file has them. "Its own" means that each matrix is
    divided by its own largest eigenvalue, the paper's words; otherwise the matrices stay as they are. The
    eigenvalues are computed here, by LAPACK, not by `adom.networks`.

    Returns
    -------
    pandas.DataFrame
        One row a reading: its name, the number of graphs, how many of them are not connected (chains of links then
        join their parts), the network's chi, and the median chi of its graphs.
    """
    import pandas as pd

    texts = store.contents(named(NAME), (LINKS, MEMBERS, TIMES))
    meetings = rows(texts[LINKS], texts[MEMBERS])
    times = np.array(texts[TIMES].split(), dtype=np.int64)
    often = _counts(meetings)
    once = np.minimum(often, 1.0)
    degrees = once.sum(axis=2)
    larger = np.maximum(degrees[:, :, None], degrees[:, None, :])
    root = np.sqrt(degrees[:, :, None] * degrees[:, None, :])
    moments, apart = _repaired(_counts(np.column_stack([meetings[:, 0] * 1000 + times, meetings[:, 1:]])))
    everybody = np.minimum(once.sum(axis=0, keepdims=True), 1.0)
    normalised = np.eye(NODES) - once / root
    table = [
        _row("links weigh 1, its own", _laplacians(once), own=True),
        _row("links weigh 1, as they are", _laplacians(once)),
        _row("links weigh how often they occur, its own", _laplacians(often), own=True),
        _row("links weigh how often they occur, as they are", _laplacians(often)),
        _row("Metropolis weights, its own", _laplacians(once / (1 + larger)), own=True),
        _row("Metropolis weights, as they are", _laplacians(once / (1 + larger))),
        _row("normalised Laplacian, its own", normalised, own=True),
        _row("a graph a time stamp, joined, its own", _laplacians(moments), own=True, apart=apart),
        _row("all graphs as one", _laplacians(everybody)),
    ]
    return pd.DataFrame(table)


def _counts(meetings: np.ndarray) -> np.ndarray:
    """Return the symmetric matrices that count the rows (graph, u, v); each meeting is listed from both sides."""
    names, graph = np.unique(meetings[:, 0], return_inverse=True)
    counts = np.zeros((len(names), NODES, NODES))
    np.add.at(counts, (graph, meetings[:, 1], meetings[:, 2]), 0.5)
    return counts + counts.transpose(0, 2, 1)


def _laplacians(weights: np.ndarray) -> np.ndarray:
    laplacians = -weights
    diagonal = np.arange(NODES)
    laplacians[:, diagonal, diagonal] = weights.sum(axis=2)
    return laplacians


def _repaired(weights: np.ndarray) -> tuple[np.ndarray, int]:
    """Link 1 for every pair that met, and a chain through the parts of graphs that fall apart; count the latter."""
    from ..networks.connect import join_in_chain

    linked = np.minimum(weights, 1.0)
    apart = 0
    for matrix in linked:
        extra = join_in_chain(NODES, np.argwhere(np.triu(matrix)).astype(np.int32))
        matrix[extra[:, 0], extra[:, 1]] = matrix[extra[:, 1], extra[:, 0]] = 1.0
        apart += bool(len(extra))
    return linked, apart


def _row(reading: str, matrices: np.ndarray, *, own: bool = False, apart: int | None = None) -> dict[str, object]:
    values = np.linalg.eigvalsh(matrices)
    low, high = values[:, 1], values[:, -1]
    if apart is None:
        apart = int((low < 1e-9 * high).sum())
    chis = high / low
    return {
        "reading": reading,
        "graphs": len(matrices),
        "not_connected": apart,
        "chi": float(chis.max() if own else high.max() / low.min()),
        "median": float(np.median(chis)),
    }
