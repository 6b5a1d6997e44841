"""Windows: consecutive rounds whose graphs together connect the nodes, though single graphs may not.

With M(k) = I - W(k) / lambda_max, averaging over the window of B rounds from round k is the product
P = M(k + B - 1) ... M(k). P keeps the mean and never lengthens a vector. A vector of zero mean keeps its length only if
it is constant on the components of every graph of the window, which is impossible if their union is connected. The norm
of P on vectors of zero mean is 1 - 1 / chi; this defines the chi of the window. For B = 1, chi is the graph's
lambda_max / lambda_min_plus. W = I - P has the property of a gossip matrix that the methods' analyses need,
|W x - x|^2 <= (1 - 1 / chi) |x|^2, but is not symmetric.

Directed graphs count as connected if their arcs together lead from every node to every other (`strong` below).
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..errors import InputError
from ..util.process import one_thread
from . import spectra
from .edges import Floats, Ints, Longs, component_labels, distinct_pairs, name_components
from .pool import Pool

NO_PAIRS = np.zeros((0, 2), dtype=np.int32)
AT_ONCE = 2**22
"""The most nodes of all the graphs whose components are found together."""


def require_joined(pool: Pool, order: Ints, first: int = 0, rounds: int | None = None, *, strong: bool = False) -> None:
    """Refuse rounds (default: one period) whose links together do not connect the nodes; name the components."""
    count = len(order) if rounds is None else rounds
    used = np.unique(order[np.arange(first, first + count) % len(order)]).tolist()
    together = np.concatenate([NO_PAIRS, *(pool.graph(g).edges for g in used)])
    parts, labels = component_labels(pool.nodes, together, strong)
    if parts == 1:
        return
    named = name_components(parts, labels)
    if strong:
        which = f"the graph of round {first} is" if len(used) == 1 else f"the arcs of all {count} rounds together are"
        raise InputError(
            f"{which} not strongly connected: {named}; some nodes never hear of some others: add arcs between them"
        )
    whole = f"all links of rounds {first} to {first + count - 1} together leave"
    remedy = "no message ever gets from one to another: add edges or use repair=True"
    if rounds is not None:
        remedy = "take a longer window"
    elif len(used) == 1:
        whole = f"the graph of round {first} is disconnected:"
    raise InputError(f"{whole} {named}; {remedy}")


def smallest_window(pool: Pool, order: Ints, *, strong: bool = False) -> int:
    """Return the smallest B such that any B consecutive rounds together connect the nodes.

    What 2 b rounds connect follows from what their two halves connect. Lengths double until every stretch of rounds
    connects all nodes; then the longest length that does not is put together from the shorter ones. Stretches that
    connect the same nodes count as one, and two of them are merged once, however often a period repeats them.

    Examples
    --------
    >>> from adom.networks.pool import Batch, Pool
    >>> from adom.networks.edges import Links
    >>> halves = [np.array(pairs, dtype=np.int32) for pairs in ([[0, 1]], [[1, 2]])]
    >>> pool = Pool(Batch.laplacian(Links.of(3, halves), joined=False))
    >>> smallest_window(pool, np.array([0, 1])), smallest_window(pool, np.array([0, 0, 1]))
    (2, 3)
    """
    joins: Any = _Arcs(pool.nodes) if strong else _Parts(pool.nodes)
    used, names = np.unique(order, return_inverse=True)
    distinct, rows = joins.of([pool.graph(g).edges for g in used.tolist()])
    lengths = [(distinct, rows[names])]
    while not joins.whole(lengths[-1][0]) and 2 ** (len(lengths) - 1) < len(order):
        lengths.append(_longer(joins, lengths[-1], lengths[-1], 2 ** (len(lengths) - 1)))
    if len(lengths) == 1:
        return 1
    longest, length = lengths[-2], int(2 ** (len(lengths) - 2))
    for power in reversed(range(len(lengths) - 2)):
        longer = _longer(joins, longest, lengths[power], length)
        if not joins.whole(longer[0]):
            longest, length = longer, length + 2**power
    return length + 1


Stretches = tuple[Any, Longs]
"""What stretches of rounds connect: distinct sets of parts or of arcs, and which of them each first round has."""


def _longer(joins: Any, first: Stretches, then: Stretches, ahead: int) -> Stretches:
    """Return what every stretch of `first` connects with the stretch of `then` that begins `ahead` rounds later."""
    pairs, names = _pairs(first[1], np.roll(then[1], -ahead))
    distinct, rows = joins.merged(first[0], then[0], pairs)
    return distinct, rows[names]


def _pairs(one: Ints | Longs, other: Ints | Longs) -> tuple[Longs, Longs]:
    """Return the distinct pairs of whole numbers, shape (pairs, 2), and which of them stands at each position."""
    most = int(other.max()) + 1
    codes = one.astype(np.int64) * most + other
    size = (int(one.max()) + 1) * most
    if size <= 4 * len(codes):  # a table is much faster than sorting
        there = np.zeros(size, dtype=np.bool_)
        there[codes] = True
        distinct = np.flatnonzero(there)
        names = (np.cumsum(there) - 1)[codes]
    else:
        distinct, names = np.unique(codes, return_inverse=True)
    return np.stack([distinct // most, distinct % most], axis=1), names


class _Parts:
    """Components that links leave, as rows of each node's smallest fellow: shape (sets, nodes)."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes

    def of(self, graphs: list[Ints]) -> Stretches:
        """Return the distinct components of some graphs, and which of them each graph has."""
        return _alike(np.concatenate([_smallest(self.nodes, pairs)[None] for pairs in graphs]))

    def merged(self, one: Ints, other: Ints, pairs: Longs) -> Stretches:
        """Return the distinct components of pairs of sets, and which of them each pair has.

        Many pairs at once are a graph on as many copies of the nodes.
        """
        some, rows = max(1, AT_ONCE // self.nodes), [one[:0]]
        for start in range(0, len(pairs), some):
            left, right = (
                sets[chosen] for sets, chosen in zip((one, other), pairs[start : start + some].T, strict=True)
            )
            copies = np.arange(left.size, dtype=np.int32).reshape(left.shape)
            first = copies[:, :1]
            links = [np.stack([first + sets, copies], axis=-1).reshape(-1, 2) for sets in (left, right)]
            links = [each[each[:, 0] != each[:, 1]] for each in links]
            rows.append(_smallest(left.size, np.concatenate(links)).reshape(left.shape) - first)
        return _alike(np.concatenate(rows))

    def whole(self, distinct: Ints) -> bool:
        """Return whether every set is a single component."""
        return not distinct.any()


def _smallest(nodes: int, pairs: Ints) -> Ints:
    count, labels = component_labels(nodes, pairs)
    smallest = np.empty(count, dtype=np.int32)
    smallest[labels[::-1]] = np.arange(nodes, dtype=np.int32)[::-1]  # the last assignment stays
    return smallest[labels]


def _alike(rows: Ints) -> Stretches:
    """Return the distinct rows, and which of them each row is."""
    whole = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    _, first, names = np.unique(whole, return_index=True, return_inverse=True)
    return rows[first], names


class _Arcs:
    """Arcs without duplicates, or None where they strongly connect all nodes."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes

    def of(self, graphs: list[Ints]) -> Stretches:
        """Return the arcs of some graphs, and which of them each graph has."""
        return [self._kept(arcs) for arcs in graphs], np.arange(len(graphs))

    def merged(self, one: list[Ints | None], other: list[Ints | None], pairs: Longs) -> Stretches:
        """Return the arcs of pairs of sets, and which of them each pair has."""
        both = [(one[i], other[j]) for i, j in pairs.tolist()]
        unions = [None if a is None or b is None else self._kept(np.concatenate([a, b])) for a, b in both]
        return unions, np.arange(len(unions))

    def whole(self, distinct: list[Ints | None]) -> bool:
        """Return whether every set strongly connects all nodes."""
        return all(arcs is None for arcs in distinct)

    def _kept(self, arcs: Ints) -> Ints | None:
        if component_labels(self.nodes, arcs, strong=True)[0] == 1:
            return None
        return distinct_pairs(arcs, self.nodes)


def distinct_windows(order: Ints, window: int) -> tuple[Longs, Longs]:
    """Return the first round of each distinct window of `window` rounds, and which of them begins in each round.

    Windows are named by doubling: two are the same if both of their halves are.

    Examples
    --------
    >>> first, names = distinct_windows(np.array([0, 1, 0, 0, 1]), 2)  # 01, 10, 00, 01, 10
    >>> first.tolist(), names.tolist()
    ([2, 0, 1], [1, 2, 0, 1, 2])
    """
    names, length = order.astype(np.int64), 1
    for bit in bin(window)[3:]:
        names, length = _pairs(names, np.roll(names, -length))[1], 2 * length
        if bit == "1":
            names, length = _pairs(names, np.roll(order, -length))[1], length + 1
    return np.unique(names, return_index=True)[1], names


def window_chis(pool: Pool, order: Ints, window: int, starts: Longs, scale: float) -> Floats:
    """Return the chi of the window starting at each of the rounds `starts` (ascending); `scale` is lambda_max.

    Examples
    --------
    >>> from adom.networks import from_graphs
    >>> import networkx as nx
    >>> one, other = nx.empty_graph(3), nx.empty_graph(3)
    >>> one.add_edge(0, 1), other.add_edge(1, 2)
    (None, None)
    >>> network = from_graphs([one, other])
    >>> network.window, round(network.chi, 9)
    (2, 2.0)
    """
    wanted, names = starts, np.arange(len(starts))
    if len(starts) == len(order):
        wanted, names = distinct_windows(order, window)
    norms = _dense_norms if pool.nodes <= spectra.AT_ONCE else _sparse_norms
    ascending = np.argsort(wanted)
    chis = np.empty(len(wanted))
    with one_thread():
        found = np.fromiter(norms(pool, order, window, wanted[ascending], scale), np.float64, len(wanted))
    chis[ascending] = 1 / np.maximum(1 - found, 1e-15)
    return chis[names]


def _averaging(pool: Pool, g: int, scale: float) -> Callable[[Floats], Floats]:
    """Return v -> (I - W / lambda_max) v for one graph."""
    edges, weights, *_ = pool.graph(g)
    assert weights is not None
    product = spectra.laplacian_product(pool.nodes, edges, weights / scale)
    return lambda v: v - product(v)


def _dense_norms(pool: Pool, order: Ints, window: int, starts: Longs, scale: float) -> Iterator[float]:
    """Yield the norm of each window, by ascending starts, on vectors of zero mean.

    Rounds are split into blocks as long as a window, so every window is the end of one block and the beginning of the
    next. Its product combines two: from its first round to the end of that block, and from there to its last round.
    """
    n = pool.nodes
    steps = {g: _averaging(pool, g, scale) for g in np.unique(order).tolist()}
    still = np.eye(n) - 1 / n
    for block in np.unique(starts // window * window).tolist():
        some = starts[slice(*np.searchsorted(starts, [block, block + window]))]
        left = set((some - block).tolist())
        rounds = order[np.arange(block, block + window + max(left)) % len(order)].tolist()
        ends, product = {}, still
        for offset in reversed(range(min(left), window)):
            product = steps[rounds[offset]](product)  # transposed: the earliest round comes last
            if offset in left:
                ends[offset] = product
        product = still
        for offset in range(max(left) + 1):
            if offset in left:
                averaged = product @ ends[offset].T
                yield float(np.sqrt(max(np.linalg.eigvalsh(averaged.T @ averaged)[-1], 0.0)))
            if offset < max(left):
                product = steps[rounds[window + offset]](product)


def _sparse_norms(pool: Pool, order: Ints, window: int, starts: Longs, scale: float) -> Iterator[float]:
    """Yield the same without forming matrices."""
    for start in starts.tolist():
        rounds = order[np.arange(start, start + window) % len(order)].tolist()
        steps = [_averaging(pool, g, scale) for g in rounds]

        def there_and_back(v: Floats, steps: list[Callable[[Floats], Floats]] = steps) -> Floats:
            for step in (*steps, *reversed(steps)):
                v = step(v)
            return v

        yield float(np.sqrt(max(spectra.highest(there_and_back, pool.nodes), 0.0)))
