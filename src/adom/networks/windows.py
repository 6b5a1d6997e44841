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

import numpy as np

from ..errors import InputError
from ..util.threads import one_thread
from . import spectra
from .connect import component_labels, name_components
from .lazy import Pool
from .links import Floats, Ints, Longs, distinct_codes

NO_PAIRS = np.zeros((0, 2), dtype=np.int32)


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

    The sliding window is a queue made of two stacks. The stack of rounds that leave next stores, for each round, the
    union from that round to the end of the stack. The stack of newer rounds stores a single union. So each round is
    merged only a few times, however long the windows are.

    Examples
    --------
    >>> from adom.networks.lazy import Batch
    >>> from adom.networks.links import Links
    >>> halves = [np.array(pairs, dtype=np.int32) for pairs in ([[0, 1]], [[1, 2]])]
    >>> pool = Batch.laplacian(Links.of(3, halves), joined=False)
    >>> smallest_window(pool, np.array([0, 1])), smallest_window(pool, np.array([0, 0, 1]))
    (2, 3)
    """
    nodes, period = pool.nodes, len(order)
    reduced, spans = (_distinct, _strong) if strong else (_forest, _spans)
    parts = {g: reduced(nodes, pool.graph(g).edges) for g in np.unique(order).tolist()}
    leaving: list[Ints] = []
    arrived: list[int] = []
    union = NO_PAIRS
    longest, begin = 0, 0
    for end in range(2 * period):
        arrived.append(int(order[end % period]))
        union = reduced(nodes, np.concatenate([union, parts[arrived[-1]]]))
        while begin < period:
            if not leaving and spans(nodes, union):
                later = NO_PAIRS
                for g in reversed(arrived):
                    later = reduced(nodes, np.concatenate([later, parts[g]]))
                    leaving.append(later)
                arrived, union = [], NO_PAIRS
            if not leaving or not spans(nodes, reduced(nodes, np.concatenate([leaving[-1], union]))):
                break
            longest = max(longest, end - begin + 1)
            leaving.pop()
            begin += 1
    return longest


def _forest(nodes: int, pairs: Ints) -> Ints:
    """Return a spanning forest: the fewest links with the same components as the pairs."""
    if len(pairs) == 0:
        return NO_PAIRS
    _, labels = component_labels(nodes, pairs)
    first = np.unique(labels, return_index=True)[1].astype(np.int32)
    links: Ints = np.stack([first[labels], np.arange(nodes, dtype=np.int32)], axis=1)
    return np.compress(links[:, 0] != links[:, 1], links, axis=0)


def _spans(nodes: int, forest: Ints) -> bool:
    return len(forest) == nodes - 1


def _distinct(nodes: int, arcs: Ints) -> Ints:
    """Return the arcs without duplicates."""
    codes = distinct_codes(arcs[:, 0].astype(np.int64) * nodes + arcs[:, 1])
    return np.stack([codes // nodes, codes % nodes], axis=1, dtype=np.int32, casting="same_kind")


def _strong(nodes: int, arcs: Ints) -> bool:
    return component_labels(nodes, arcs, strong=True)[0] == 1


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
    known: dict[bytes, float] = {}
    keys = [order[np.arange(s, s + window) % len(order)].tobytes() for s in starts.tolist()]
    first = {key: int(starts[i]) for i, key in reversed(list(enumerate(keys)))}
    wanted = sorted(first.values())
    norms = _dense_norms if pool.nodes <= spectra.AT_ONCE else _sparse_norms
    with one_thread():
        for start, norm in norms(pool, order, window, wanted, scale):
            known[order[np.arange(start, start + window) % len(order)].tobytes()] = 1 / max(1 - norm, 1e-15)
    return np.array([known[key] for key in keys])


def _averaging(pool: Pool, g: int, scale: float) -> Callable[[Floats], Floats]:
    """Return v -> (I - W / lambda_max) v for one graph."""
    edges, weights, *_ = pool.graph(g)
    assert weights is not None
    product = spectra.laplacian_product(pool.nodes, edges, weights / scale)
    return lambda v: v - product(v)


def _dense_norms(pool: Pool, order: Ints, window: int, starts: list[int], scale: float) -> Iterator[tuple[int, float]]:
    """Yield the start of each window and its norm on vectors of zero mean.

    Rounds are split into blocks as long as a window, so every window is the end of one block and the beginning of the
    next. Its product combines two: from its first round to the end of that block, and from there to its last round.
    """
    n, left = pool.nodes, set(starts)
    steps = {g: _averaging(pool, g, scale) for g in np.unique(order).tolist()}
    still = np.eye(n) - 1 / n
    for block in range(0, max(starts) + 1, window):
        rounds = order[np.arange(block, block + 2 * window) % len(order)].tolist()
        ends, product = [], still
        for g in reversed(rounds[:window]):
            product = steps[g](product)  # transposed: the earliest round comes last
            ends.append(product)
        product = still
        for offset in range(window):
            if block + offset in left:
                averaged = product @ ends[window - 1 - offset].T
                yield block + offset, float(np.sqrt(max(np.linalg.eigvalsh(averaged.T @ averaged)[-1], 0.0)))
            product = steps[rounds[window + offset]](product)


def _sparse_norms(pool: Pool, order: Ints, window: int, starts: list[int], scale: float) -> Iterator[tuple[int, float]]:
    """Yield the same without forming matrices."""
    for start in starts:
        rounds = order[np.arange(start, start + window) % len(order)].tolist()
        steps = [_averaging(pool, g, scale) for g in rounds]

        def there_and_back(v: Floats, steps: list[Callable[[Floats], Floats]] = steps) -> Floats:
            for step in (*steps, *reversed(steps)):
                v = step(v)
            return v

        yield start, float(np.sqrt(max(spectra.highest(there_and_back, pool.nodes), 0.0)))
