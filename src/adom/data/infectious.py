"""The network of infectious_ct1: who met whom at a museum, 200 graphs on 50 nodes."""

from typing import TYPE_CHECKING

import numpy as np

from . import store
from .sets import named

if TYPE_CHECKING:
    from ..networks import Network

NAME = "infectious_ct1"
LINKS, MEMBERS, TIMES = (f"{NAME}_{part}.txt" for part in ("A", "graph_indicator", "edge_attributes"))
NODES = 50
"""Nodes of every graph."""


def infectious() -> "Network":
    """Return the paper's real network, downloading it where it is not there yet.

    Round k has the k-th graph of the file. Two people are linked in it if they met at any time; when and how often
    they met does not count. W is the Laplacian divided by its own largest eigenvalue. All graphs are connected as
    they are. This is the reading that has the paper's chi of about 232: it is 232.645; `adom.data.readings` has
    the others.

    Returns
    -------
    Network
        50 nodes, a period of 200 rounds, 198 distinct graphs.
    """
    from ..networks import from_contacts

    return from_contacts(meetings(), window=1, nodes=NODES)


def meetings() -> np.ndarray:
    """Return each link of each graph once: rows (graph, u, v) with u < v, counted from 0."""
    texts = store.contents(named(NAME), (LINKS, MEMBERS))
    return np.unique(rows(texts[LINKS], texts[MEMBERS]), axis=0)


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
