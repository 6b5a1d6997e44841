"""Graph functions in C++: sorted links, components, CSR rows, links of points, and eigenvalues of small graphs.

`adom.networks` calls them with NumPy arrays, without JAX. If they are not `usable`, it uses NumPy and SciPy, slower.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from . import BuildError, address, library, switched_off, whole

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@cache
def _loaded() -> Any:
    """Load the functions, building them if needed; return None if that fails."""
    if switched_off():
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
    count = _loaded().adom_labels(address(pairs), whole(len(pairs)), whole(nodes), address(out))
    return int(count), out


def canonical(pairs: Any, nodes: int) -> Ints:
    """Return node pairs with u < v, each once, sorted lexicographically."""
    pairs = _as(pairs, np.int32).reshape(-1, 2)
    out = np.empty((len(pairs), 2), dtype=np.int32)
    count = _loaded().adom_canonical(address(pairs), whole(len(pairs)), whole(nodes), address(out))
    return out[:count]


def rows(links: Ints, weights: Floats, start: Ints, sender: Ints, share: Floats) -> None:
    """Write sorted links as CSR rows: (nodes + 1,) starts, and two senders and two shares, -weight, per link."""
    links, weights = _as(links, np.int32), _as(weights, np.float64)
    count, nodes = whole(len(links)), whole(len(start) - 1)
    _loaded().adom_rows(address(links), count, address(weights), nodes, address(start), address(sender), address(share))


def trees(points: Floats) -> Ints:
    """Return the shortest spanning tree of each cloud (graphs, nodes, 2) as sorted links (graphs, nodes - 1, 2)."""
    graphs, nodes, _ = points.shape
    points, out = _as(points, np.float64), np.empty((graphs, nodes - 1, 2), dtype=np.int32)
    _loaded().adom_trees(address(points), whole(graphs), whole(nodes), address(out))
    return out


def near(points: Floats, radius: float, joined: Ints) -> tuple[Ints, Longs]:
    """Return each cloud's pairs closer than a radius or in its given tree, cloud after cloud, and their numbers."""
    graphs, nodes, _ = points.shape
    points, joined, sizes = _as(points, np.float64), _as(joined, np.int32), np.empty(graphs, dtype=np.int64)
    arguments = (address(points), whole(graphs), whole(nodes), ctypes.c_double(radius**2), address(joined))
    _loaded().adom_near(*arguments, address(sizes), None)
    links = np.empty((int(sizes.sum()), 2), dtype=np.int32)
    _loaded().adom_near(*arguments, None, address(links))
    return links, sizes


def extremes(nodes: int, links: Ints, offsets: Longs, weights: Floats) -> Floats:
    """Return the second smallest and the largest eigenvalue of the Laplacian of every graph, (graphs, 2)."""
    links, offsets, weights = _as(links, np.int32), _as(offsets, np.int64), _as(weights, np.float64)
    graphs = len(offsets) - 1
    out = np.empty((graphs, 2))
    arguments = (address(links), address(offsets), whole(graphs), address(weights), whole(nodes))
    _loaded().adom_extremes(*arguments, address(out))
    return out


def _as(array: Any, dtype: Any) -> Any:
    """Return the array contiguous and of a type, without a copy if possible."""
    return np.ascontiguousarray(array, dtype=dtype)
