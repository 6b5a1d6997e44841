"""Graphs in C++: links sorted, components numbered, rows laid out, points linked, and eigenvalues of small graphs.

For `adom.networks`, without JAX. Where `usable` says no, NumPy and SciPy do the same, slower. Arrays are NumPy's.
"""

import ctypes
import os
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .build import BuildError, library

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@cache
def _loaded() -> Any:
    """Load the functions, building them if need be; None where that is impossible."""
    if os.environ.get("ADOM_NATIVE", "1") == "0":
        return None
    try:
        loaded = ctypes.CDLL(str(library("graphs")))
    except (BuildError, OSError):
        return None
    loaded.adom_labels.restype = loaded.adom_canonical.restype = ctypes.c_int64
    return loaded


def usable() -> bool:
    """Return whether the functions of this module can be called."""
    return _loaded() is not None


def labels(nodes: int, pairs: Any) -> tuple[int, Ints]:
    """Return the number of components, and for each node its component, numbered by their smallest nodes."""
    pairs, out = _as(pairs, np.int32), np.empty(nodes, dtype=np.int32)
    count = _loaded().adom_labels(_at(pairs), _whole(len(pairs)), _whole(nodes), _at(out))
    return int(count), out


def canonical(pairs: Any, nodes: int) -> Ints:
    """Return node pairs with u < v, each once, sorted lexicographically."""
    pairs = _as(pairs, np.int32).reshape(-1, 2)
    out = np.empty((len(pairs), 2), dtype=np.int32)
    count = _loaded().adom_canonical(_at(pairs), _whole(len(pairs)), _whole(nodes), _at(out))
    return out[:count]


def rows(links: Ints, weights: Floats, start: Ints, sender: Ints, share: Floats) -> None:
    """Write -weight of sorted links row by row, (nodes + 1,) starts and twice as many senders and shares as links."""
    links, weights = _as(links, np.int32), _as(weights, np.float64)
    count, nodes = _whole(len(links)), _whole(len(start) - 1)
    _loaded().adom_rows(_at(links), count, _at(weights), nodes, _at(start), _at(sender), _at(share))


def trees(points: Floats) -> Ints:
    """Return the shortest spanning trees of clouds (graphs, nodes, 2), their links sorted: (graphs, nodes - 1, 2)."""
    graphs, nodes, _ = points.shape
    points, out = _as(points, np.float64), np.empty((graphs, nodes - 1, 2), dtype=np.int32)
    _loaded().adom_trees(_at(points), _whole(graphs), _whole(nodes), _at(out))
    return out


def near(points: Floats, radius: float, joined: Ints) -> tuple[Ints, Longs]:
    """Return the pairs of clouds closer than a radius and those of given trees, graph after graph, and how many."""
    graphs, nodes, _ = points.shape
    points, joined, sizes = _as(points, np.float64), _as(joined, np.int32), np.empty(graphs, dtype=np.int64)
    arguments = (_at(points), _whole(graphs), _whole(nodes), ctypes.c_double(radius**2), _at(joined))
    _loaded().adom_near(*arguments, _at(sizes), None)
    links = np.empty((int(sizes.sum()), 2), dtype=np.int32)
    _loaded().adom_near(*arguments, None, _at(links))
    return links, sizes


def extremes(nodes: int, links: Ints, offsets: Longs, weights: Floats) -> Floats:
    """Return the second smallest and the largest eigenvalue of the Laplacian of every graph, (graphs, 2)."""
    links, offsets, weights = _as(links, np.int32), _as(offsets, np.int64), _as(weights, np.float64)
    graphs = len(offsets) - 1
    out = np.empty((graphs, 2))
    arguments = (_at(links), _at(offsets), _whole(graphs), _at(weights), _whole(nodes))
    _loaded().adom_extremes(*arguments, _at(out))
    return out


def _as(array: Any, dtype: Any) -> Any:
    """Return the array as the functions read it, the same one if it can be."""
    return np.ascontiguousarray(array, dtype=dtype)


def _at(array: npt.NDArray[Any]) -> Any:
    return ctypes.c_void_p(array.ctypes.data)


def _whole(number: int) -> Any:
    return ctypes.c_int64(number)
