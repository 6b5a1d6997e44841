"""Networks from the caller's graphs and matrices, and from temporal contact lists: who met whom when."""

import math
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, InputTypeError, shown
from ..util import files
from ..util.checks import check_whole
from ..util.process import one_thread
from . import spectra
from .edges import Floats, Ints, Links, Longs, canonical, codes_of, component_labels, join_in_chain, name_components
from .network import Network
from .pool import Batch, Graph, Pool
from .recipes import node_count, truth

ROUNDING = 1e-8
"""Deviations up to this, relative to the largest entry, count as rounding in a caller's matrix."""
NOISE = 1e-14
"""Entries up to this, relative to the largest, are not links."""

WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
"""A whole number that fits in 64 bits."""


def from_graphs(graphs: Iterable[Any], repair: bool = False, *, weight: str | None = None) -> Network:
    """Return the network that cycles through the given graphs.

    W is the Laplacian divided by its own largest eigenvalue. Equal graphs are stored once. Graphs may be disconnected
    if all of them together connect the nodes: see `Network.window`.

    Parameters
    ----------
    graphs : iterable of networkx.Graph
        Undirected graphs with the same nodes. Node i of the network is the i-th label of the first graph, sorted if
        the labels can be sorted, otherwise in the graph's own order.
    repair : bool
        Join the components of a disconnected graph into a chain, by linking their smallest nodes in ascending order.
        Added links have weight 1; ``recipe["links_added"]`` counts them over one period.
    weight : str, optional
        The edge attribute with the positive weights of the Laplacian. By default all links have weight 1.

    Examples
    --------
    >>> import networkx as nx
    >>> network = from_graphs([nx.cycle_graph(5), nx.star_graph(4)])
    >>> network.nodes, network.period, round(network.chi, 6)
    (5, 2, 5.0)
    >>> halves = [nx.empty_graph(4), nx.empty_graph(4)]
    >>> for graph, links in zip(halves, ([(0, 1), (2, 3)], [(1, 2), (0, 3)])):
    ...     graph.add_edges_from(links)
    >>> from_graphs(halves).window, from_graphs(halves, repair=True).recipe["links_added"]
    (2, 2)
    """
    repair = truth("repair", repair)
    if weight is not None and not isinstance(weight, str):
        raise InputTypeError(f"weight must name an edge attribute, got {shown(weight)}; e.g. weight='weight'")
    members = [graphs] if hasattr(graphs, "is_directed") else as_list(graphs, "graphs", "networkx.Graph")
    index = label_index(members)
    parts = [
        _merged(len(index), *read_pairs(graph, k, index, weight), repair, node_positions(graph, index))
        for k, graph in enumerate(members)
    ]
    links, values, positions, order = distinct_graphs(len(index), parts)
    pool = Pool(Batch.laplacian(links, values, positions=positions, joined=repair))
    recipe = {"generator": "from_graphs", "nodes": len(index), "graphs": len(members), "repair": repair}
    if repair:
        recipe["links_added"] = sum(part.added for part in parts)
    return Network(pool, order, {**recipe, "weight": weight, "sha256": links.digest(values, order)})


def from_matrices(matrices: Iterable[Any]) -> Network:
    """Return the network that cycles through the given gossip matrices.

    The matrices are not rescaled; chi is the largest of all their eigenvalues over the smallest positive one.

    Parameters
    ----------
    matrices : iterable of (n, n) arrays or scipy.sparse matrices
        Real, symmetric and positive semi-definite; the kernel must be exactly the consensus vectors, so rows sum to
        zero and the graph is connected. Deviations up to 1e-8 of the largest entry count as rounding;
        off-diagonal entries up to 1e-14 of it are not links.

    Examples
    --------
    >>> network = from_matrices([np.array([[2.0, -2.0], [-2.0, 2.0]])])
    >>> network.lambda_max, network.weights(0).tolist()
    (4.0, [2.0])
    """
    single = getattr(matrices, "ndim", None) == 2
    members = [matrices] if single else as_list(matrices, "matrices", "matrix W with W 1 = 0")
    parts: list[Graph] = []
    nodes = 0
    for k, matrix in enumerate(members):
        size, pairs, values = _read_matrix(matrix, k)
        nodes = nodes or size
        if size != nodes:
            raise InputError(f"matrix {k} is {size} x {size} and matrix 0 is {nodes} x {nodes}; make them alike")
        _check_kernel(nodes, pairs, values, k)
        parts.append(Graph(pairs, values))
    links, weights, _, order = distinct_graphs(nodes, parts)
    recipe = {"generator": "from_matrices", "nodes": nodes, "matrices": len(members)}
    return Network(Pool(Batch(links, weights)), order, {**recipe, "sha256": links.digest(weights, order)})


def distinct_graphs(nodes: int, graphs: Iterable[Graph]) -> tuple[Links, Floats, list[Floats | None], Ints]:
    """Return links, weights (default 1) and positions of the distinct graphs, and which of them each graph is."""
    numbers: dict[bytes, int] = {}
    kept: list[Graph] = []
    order = []
    for graph in graphs:
        key = b"".join(array.tobytes() for array in graph[:3] if array is not None)
        if key not in numbers:
            numbers[key] = len(kept)
            kept.append(graph)
        order.append(numbers[key])
    weights = [np.ones(len(graph.edges)) if graph.weights is None else graph.weights for graph in kept]
    links = Links.of(nodes, [graph.edges for graph in kept])
    return links, np.concatenate(weights), [graph.positions for graph in kept], np.array(order, dtype=np.int32)


def iterable(items: Any) -> bool:
    """Return whether items can be iterated over; NumPy arrays without axes cannot, though they have `__iter__`."""
    return hasattr(items, "__iter__") and getattr(items, "ndim", 1) != 0


def as_list(items: Any, name: str, kind: str) -> list[Any]:
    """Return the items as a list; refuse an empty one."""
    if isinstance(items, str | bytes | dict | Network) or not iterable(items):
        raise InputTypeError(f"{name} must be a list, got {type(items).__name__}; pass [{kind}, ...]")
    listed = list(items)
    if not listed:
        raise InputError(f"{name} is empty, but needs one or more; pass [{kind}, ...]")
    return listed


def label_index(graphs: list[Any]) -> dict[Any, int]:
    """Check that the graphs are undirected and have the same nodes; return each label's node number."""
    for k, graph in enumerate(graphs):
        if not hasattr(graph, "is_directed"):
            raise InputTypeError(f"graph {k} is a {type(graph).__name__}, not a networkx.Graph; convert it first")
        if graph.is_directed():
            raise InputError(
                f"graph {k} is directed, but W must be symmetric; pass graph.to_undirected() if that is meant"
            )
    names = list(graphs[0].nodes)
    if len(names) < 2:
        raise InputError(f"graph 0 has {len(names)} nodes, but a network needs 2 or more; add nodes")
    try:
        names.sort()
    except TypeError:
        names = list(graphs[0].nodes)
    index = {name: i for i, name in enumerate(names)}
    for k, graph in enumerate(graphs):
        odd = [name for name in graph.nodes if name not in index] or [n for n in names if n not in graph]
        if odd:
            raise InputError(
                f"graph {k} and graph 0 differ in node {odd[0]!r}, but all graphs need the same nodes; "
                "add the missing ones with add_nodes_from"
            )
    return index


def read_pairs(graph: Any, k: int, index: dict[Any, int], weight: str | None = None) -> tuple[Ints, Floats | None]:
    """Return the links of graph k as pairs of node numbers, in its own order, and their weights if they have any."""
    rows = list(graph.edges(data=weight) if weight is not None else graph.edges())
    pairs = np.array([(index[a], index[b]) for a, b, *_ in rows], dtype=np.int32).reshape(-1, 2)
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if loops.size:
        raise InputError(
            f"graph {k} has a self-loop at node {rows[int(loops[0])][0]!r}, but a link joins two nodes; "
            "graph.remove_edges_from(nx.selfloop_edges(graph)) drops them"
        )
    if weight is None:
        return pairs, None
    return pairs, np.array([_positive(value, f"graph {k}, link ({a!r}, {b!r})", weight) for a, b, value in rows])


def _merged(nodes: int, pairs: Ints, weights: Floats | None, repair: bool, positions: Floats | None = None) -> Graph:
    """Return a graph of some links; weights of parallel ones add up, and links that a repair adds weigh 1."""
    added = join_in_chain(nodes, pairs) if repair else pairs[:0]
    pairs = np.concatenate([pairs, added])
    links = canonical(pairs, nodes)
    if weights is not None:
        rows = np.searchsorted(codes_of(links, nodes), codes_of(np.sort(pairs, axis=1), nodes))
        sums = np.bincount(rows, np.concatenate([weights, np.ones(len(added))]), len(links))
        weights = sums.astype(np.float64, copy=False)  # counts, if there is no link at all
    return Graph(links, weights, positions, len(added))


def _positive(value: Any, where: str, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 < number < math.inf:
        raise InputError(
            f"{where}: {name}={shown(value)}, but a weight must be a positive finite number; "
            "set it, or leave `weight` out to weigh all links alike"
        )
    return number


def node_positions(graph: Any, index: dict[Any, int]) -> Floats | None:
    """Return the nodes' attribute `pos` if all have one in the plane, otherwise None."""
    known = dict(graph.nodes(data="pos"))
    try:
        points = np.array([known[name] for name in index], dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return points if points.shape == (len(index), 2) else None


def _read_matrix(matrix: Any, k: int) -> tuple[int, Ints, Floats]:
    """Return the size, links and weights of a matrix; refuse it unless finite and symmetric with zero row sums."""
    from scipy.sparse import coo_array, issparse

    try:
        given = matrix if issparse(matrix) or np.iscomplexobj(matrix) else np.asarray(matrix, dtype=float)
        if given.ndim != 2 or given.shape[0] != given.shape[1] or given.shape[0] < 2:
            raise InputError(f"matrix {k} has shape {given.shape}, but W is square with 2 or more rows; reshape it")
        if np.iscomplexobj(given):
            raise TypeError
        entries = coo_array(given).tocsr().astype(np.float64)
    except InputError:
        raise
    except (TypeError, ValueError):
        raise InputTypeError(
            f"matrix {k} is not a real matrix (a {type(matrix).__name__}); pass arrays or scipy.sparse matrices"
        ) from None
    if not np.isfinite(entries.data).all():
        bad = entries.data[~np.isfinite(entries.data)][0]
        raise InputError(f"matrix {k} has an entry {bad}, but W must be finite; clean it first")
    scale = float(np.abs(entries.data).max(initial=0.0))
    skew = abs(entries - entries.T).tocoo()
    if skew.nnz and skew.data.max() > ROUNDING * scale:
        at = int(skew.data.argmax())
        raise InputError(
            f"matrix {k} is not symmetric: W[{skew.row[at]}, {skew.col[at]}] and its mirror image differ by "
            f"{skew.data[at]:.3g}; pass (W + W.T) / 2 if that is meant"
        )
    sums = np.asarray(entries.sum(axis=1)).ravel()
    at = int(np.abs(sums).argmax())
    if abs(sums[at]) > ROUNDING * scale:
        raise InputError(
            f"matrix {k}: row {at} sums to {sums[at]:.3g}, but every row of W must sum to 0 (W 1 = 0); "
            "a mixing matrix M of row sums 1 becomes W = I - M"
        )
    upper = ((entries + entries.T) / 2).tocoo()
    take = (upper.row < upper.col) & (np.abs(upper.data) > NOISE * scale)
    pairs = np.stack([upper.row[take], upper.col[take]], axis=1)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return entries.shape[0], pairs[order].astype(np.int32), -upper.data[take][order]


def _check_kernel(nodes: int, pairs: Ints, values: Floats, k: int) -> None:
    """Check that W is positive semi-definite and vanishes on consensus only.

    With positive weights x'Wx is the sum of weight * (x_u - x_v)^2, so a connected graph is enough. With negative
    ones, the second smallest eigenvalue must be positive.
    """
    count, labels = component_labels(nodes, pairs)
    if count > 1:
        raise InputError(
            f"matrix {k} is disconnected: {name_components(count, labels)}; "
            "the kernel of W must be consensus alone: add links between them"
        )
    if (values > 0).all():
        return
    low = _lowest(nodes, pairs, values)
    high = float(spectra.largest(Links.of(nodes, [pairs]), values)[0])
    if low < -ROUNDING * high:
        raise InputError(
            f"matrix {k} is not positive semi-definite: it has the eigenvalue {low:.3g}; "
            "W must not be negative in any direction: e.g. take a graph Laplacian"
        )
    if low <= ROUNDING * high:
        raise InputError(
            f"matrix {k}: a second eigenvalue is {low:.3g}, zero to rounding, but the kernel of W must be "
            "consensus alone; take out the weights that cancel"
        )


def _lowest(nodes: int, pairs: Ints, values: Floats) -> float:
    """Return the smallest eigenvalue on the complement of consensus, whatever its sign."""
    matrix = spectra.gossip_matrix(nodes, pairs, values)
    if nodes > spectra.DENSE:
        return spectra.lowest(matrix)
    # Move the eigenvalue of consensus above all others, so that the smallest one is that of the complement.
    lift = 2 * float(np.abs(matrix).sum(axis=1).max())
    with one_thread():
        return float(np.linalg.eigvalsh(matrix + lift / nodes)[0])


def from_contacts(path_or_rows: Any, *, window: int = 1, nodes: int | None = None, repair: bool = False) -> Network:
    """Return the network of a temporal contact list: each window of time is a round.

    A file has one contact per line, ``t u v``: a time and two node ids, all whole numbers, separated by whitespace or
    commas. Empty lines, comments after ``#`` and one header line are skipped. Contacts with the same
    ``(t - t_min) // window`` form one graph; windows without contacts are skipped. Most of these graphs are not
    connected. It is enough that all of them together are (see `Network.window`, which counts rounds).

    Parameters
    ----------
    path_or_rows : path, iterable of (t, u, v), or pandas.DataFrame with columns t, u and v
    window : int
        The length of a round, in the unit of t.
    nodes : int, optional
        The number of nodes; their ids are then 0, ..., nodes - 1. By default the ids that occur are renumbered in
        ascending order.
    repair : bool
        Join the components of each graph into a chain by linking their smallest nodes in ascending order.
        ``recipe["links_added"]`` counts the added links over one period.

    Examples
    --------
    >>> network = from_contacts([(0, 7, 8), (0, 8, 9), (20, 9, 7), (21, 7, 8)], window=20)
    >>> [network.edges(g).tolist() for g in network.order]
    [[[0, 1], [1, 2]], [[0, 1], [0, 2]]]
    """
    window = check_whole("window", window, 1, "it is a length of time in the unit of t")
    repair = truth("repair", repair)
    rows, where = _contacts(path_or_rows)
    if not len(rows):
        raise InputError(
            f"{where} holds no contacts, but a network needs one or more; expected lines `t u v` of whole numbers"
        )
    times = (rows[:, 0] - rows[:, 0].min()) // window
    count, ends = _numbered(rows[:, 1:], nodes, where)
    by_time = np.argsort(times, kind="stable")
    cuts = np.flatnonzero(np.diff(times[by_time])) + 1
    parts = [_merged(count, pairs, None, repair) for pairs in np.split(ends[by_time], cuts)]
    links, ones, _, order = distinct_graphs(count, parts)
    recipe = {"generator": "from_contacts", "nodes": count, "window": window, "repair": repair}
    if repair:
        recipe["links_added"] = sum(part.added for part in parts)
    recipe |= {"contacts": len(rows), "sha256": links.digest(ones, order)}
    return Network(Pool(Batch.laplacian(links, joined=repair)), order, recipe)


def _contacts(source: Any) -> tuple[Longs, str]:
    """Return the contacts as an (m, 3) array, and the name of their source for error messages."""
    if isinstance(source, str | os.PathLike):
        return _read_file(Path(source))
    if hasattr(source, "columns") and hasattr(source, "__getitem__"):
        source = _rows_of_frame(source)
    if isinstance(source, bytes | dict | Network) or not iterable(source):
        raise InputTypeError(
            f"contacts must be a path or rows (t, u, v), got {type(source).__name__}; e.g. [(0, 1, 2)]"
        )
    table = []
    for number, row in enumerate(source):
        try:
            fields = [str(_integer(value)) for value in row]
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"row {number}: expected three whole numbers (t, u, v), got {shown(row)}; e.g. (0, 1, 2)"
            ) from None
        table.append(_contact(fields, f"row {number}"))
    return np.array(table, dtype=np.int64).reshape(-1, 3), "the list of contacts"


def _rows_of_frame(frame: Any) -> Iterable[Any]:
    """Return the rows (t, u, v) of a data frame."""
    columns = list(frame.columns)
    if any(columns.count(name) != 1 for name in "tuv"):
        raise InputError(
            f"a data frame of contacts needs the columns t, u and v, once each, got {shown(columns)}; "
            "frame.rename(columns={...}) names them"
        )
    return zip(*(frame[name] for name in "tuv"), strict=True)


def _integer(value: Any) -> int:
    """Return a whole number of any numeric type as an int; raise ValueError for anything else."""
    number = int(value)
    if isinstance(value, str | bytes | bool | np.bool_) or number != value:
        raise ValueError(value)
    return number


def _read_file(path: Path) -> tuple[Longs, str]:
    lines = enumerate(files.text(path, "expected a file of lines `t u v`").splitlines(), start=1)
    split = [(number, line.partition("#")[0].replace(",", " ").split()) for number, line in lines]
    rows = [(number, fields) for number, fields in split if fields]
    if rows and not any(WHOLE.fullmatch(field) for field in rows[0][1]):
        del rows[0]  # a header
    table = [_contact(fields, f"{path}, line {number}") for number, fields in rows]
    return np.array(table, dtype=np.int64).reshape(-1, 3), str(path)


def _contact(fields: list[str], where: str) -> tuple[int, int, int]:
    """Return one contact; refuse anything but three whole numbers with two different nodes."""
    if len(fields) != 3:
        raise InputError(f"{where}: expected 3 columns `t u v`, got {len(fields)}; keep time and the two node ids only")
    for field in fields:
        if not WHOLE.fullmatch(field):
            raise InputError(f"{where}: expected whole numbers `t u v`, got {shown(field)}; round or renumber first")
    t, u, v = (int(field) for field in fields)
    if u == v:
        raise InputError(f"{where}: node {u} meets itself, but a contact joins two nodes; remove the line")
    return t, u, v


def _numbered(ids: Longs, nodes: int | None, where: str) -> tuple[int, Ints]:
    """Return the number of nodes, and the contacts with nodes numbered 0, 1, ..."""
    if nodes is None:
        names, ends = np.unique(ids, return_inverse=True)
        return len(names), ends.reshape(-1, 2).astype(np.int32)
    count = node_count(nodes)
    outside = ids[(ids < 0) | (ids >= count)]
    if outside.size:
        raise InputError(
            f"{where} names node {outside[0]}, but nodes={count} allows 0 to {count - 1}; "
            "leave `nodes` out to number the ids that occur"
        )
    return count, ids.astype(np.int32)
