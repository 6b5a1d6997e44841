"""Schedules: networks made of other networks by choosing which graph each round uses."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ..errors import InputError, InputTypeError
from ..util.checks import check_real, check_whole
from .classic import random_stream
from .directed import DirectedNetwork
from .edges import Bools, Floats, Ints, component_labels, joining_rows
from .from_data import from_graphs, iterable
from .lossy import LossyNetwork
from .network import Network
from .pool import Graph, Pool, gather, pool_of
from .recipes import LONGEST, generator, graph_count, seed_number, truth

LONGEST_STEP = 100_000
"""The most rounds of a window that is given: after chi rounds, more change little."""

LARGEST_CHI = 1e15
"""The largest chi that is given: float64 cannot tell 1 - 1 / chi from 1 beyond, and powers of it overflow."""

AnyNetwork = TypeVar("AnyNetwork", Network, DirectedNetwork)


@generator
def static(network: Network, k: int = 0) -> Network:
    """Return the network that always uses the graph of round k of `network`.

    Examples
    --------
    >>> from adom.networks import geometric
    >>> changing = geometric(20, 0.3, graphs=5)
    >>> frozen = static(changing, k=3)
    >>> bool((frozen.matrix(100) == changing.matrix(3)).all())
    True
    """
    network = _networks([network])[0]
    k = check_whole("k", k, 0, "rounds are counted from 0")
    pool = Pool(network._pool.single(int(network.order[k % network.period])))
    return Network(pool, [0], {"generator": "static", "k": k, "network": network.recipe})


@generator
def cyclic(networks: Sequence[Any]) -> Network:
    """Return the network that goes through one period of each member in turn, again and again.

    Parameters
    ----------
    networks : sequence of Network or networkx.Graph
        Members on the same number of nodes.

    Examples
    --------
    >>> from adom.networks import ring, star
    >>> cyclic([ring(5), star(5)]).order.tolist()
    [0, 1]
    """
    members = _networks(networks)
    period = sum(member.period for member in members)
    if period > LONGEST:
        raise InputError(
            f"cyclic would repeat itself only after {period} rounds, more than {LONGEST}; take fewer members, "
            "or members with shorter periods"
        )
    pool, orders = _join(members)
    return Network(pool, np.concatenate(orders), _recipe("cyclic", members))


@generator
def alternate(networks: Sequence[Any], every: int = 20) -> Network:
    """Return the network that uses each member for `every` rounds, in turn.

    A member that changes continues its own sequence in its next turn.

    Parameters
    ----------
    networks : sequence of Network or networkx.Graph
        Members on the same number of nodes.
    every : int
        Rounds before the next member takes over.

    Examples
    --------
    >>> from adom.networks import ring, star
    >>> alternate([ring(5), star(5)], every=2).order.tolist()
    [0, 0, 1, 1]
    """
    members = _networks(networks)
    every = check_whole("every", every, 1, "it counts the rounds before the next network takes over", LONGEST)
    turns = math.lcm(*(member.period // math.gcd(member.period, every) for member in members))
    period = turns * every * len(members)
    if period > LONGEST:
        raise InputError(
            f"alternate would repeat itself only after {period} rounds, more than {LONGEST}; choose members "
            "whose periods share more factors, or another `every`"
        )
    pool, orders = _join(members)
    rounds = np.arange(turns * every)
    stretches = [order[rounds % len(order)].reshape(turns, every) for order in orders]
    return Network(pool, np.stack(stretches, axis=1).ravel(), _recipe("alternate", members, every=every))


@generator
def slowed(network: Network, every: int = 20) -> Network:
    """Return the network with the same graphs in the same order, but each for `every` rounds.

    Examples
    --------
    >>> from adom.networks import geometric
    >>> slowed(geometric(20, 0.3, graphs=3), every=2).order.tolist()
    [0, 0, 1, 1, 2, 2]
    """
    network = _networks([network])[0]
    every = check_whole("every", every, 1, "it counts the rounds before the next graph takes over", LONGEST)
    if every * network.period > LONGEST:
        raise InputError(
            f"slowed would repeat itself only after {every * network.period} rounds, more than {LONGEST}; "
            "take a smaller `every` or fewer graphs"
        )
    recipe = {"generator": "slowed", "every": every, "network": network.recipe}
    return Network(network._pool, np.repeat(network.order, every), recipe)


@generator
def redraw(network: Network, rounds: int = 10_000, seed: int = 0) -> Network:
    """Return the network that draws a graph of the pool uniformly and independently in every round.

    Graphs are drawn once for `rounds` rounds, which then repeat, so W(k) stays a pure function of k.

    Examples
    --------
    >>> from adom.networks import cyclic, ring, star
    >>> drawn = redraw(cyclic([ring(5), star(5)]), rounds=1000)
    >>> 400 < int((drawn.order == 0).sum()) < 600
    True
    """
    network = _networks([network])[0]
    rounds = check_whole("rounds", rounds, 1, "e.g. rounds=10_000", LONGEST)
    seed = seed_number(seed)
    order = random_stream(seed).integers(0, network.graphs, size=rounds)
    recipe = {"generator": "redraw", "rounds": rounds, "seed": seed, "network": network.recipe}
    return Network(network._pool, order, recipe)


@generator
def failing(
    network: Network, probability: float, *, graphs: int = 1000, seed: int = 0, repair: bool = False
) -> Network:
    """Return a network whose links fail at random, in both directions together and independently in every round.

    In round k each link of ``network.graph(k)`` fails with the given probability. The remaining graphs may be
    disconnected if all rounds together connect the nodes: see `Network.window`. W is the Laplacian of the remaining
    links divided by its own largest eigenvalue; links keep their relative weights.

    Parameters
    ----------
    network : Network
    probability : float
        In [0, 1].
    graphs : int
        How many rounds are drawn before failures repeat; their graphs may be more than fit in memory.
    seed : int
        Round k has its own stream of random numbers.
    repair : bool
        If the remaining links leave c components, restore c - 1 failed links, chosen by Kruskal's method in random
        order. With probability 1 a random spanning tree is left. If the graphs are held, ``recipe["links_added"]``
        counts the restored links over one period.

    Examples
    --------
    >>> from adom.networks import complete, ring
    >>> failing(complete(10), 0.5, graphs=100)
    Network(failing(complete, probability=0.5), nodes=10, graphs=100, period=100, edges=...)
    >>> failing(ring(10), 0.3, graphs=100).window, failing(ring(10), 0.3, graphs=100, repair=True).window
    (6, 1)
    """
    network = _networks([network])[0]
    probability = check_real("probability", probability, 0, 1, "it is the chance of a link to fail in a round")
    graphs, seed, repair = graph_count(graphs), seed_number(seed), truth("repair", repair)
    base = network._pool
    if base.least_weight < 0:
        raise InputError(
            f"failing needs links of positive weight, got {base.least_weight:g}: W could lose its sign; "
            "pass matrices without positive entries off the diagonal"
        )
    chosen = network.order[np.arange(graphs) % network.period]
    recipe = {"generator": "failing", "probability": probability, "graphs": graphs, "seed": seed, "repair": repair}
    if repair and not base.connected:
        raise InputError(
            "repair=True restores links that have failed, but some graphs fall apart as they are; repair the network "
            "whose links fail, or leave repair out"
        )
    draw = partial(
        gather, network.nodes, partial(_failed, base, chosen, probability, seed, repair), None, joined=repair
    )
    # A share of the links remains; with repair, at least a spanning tree.
    links = max((1 - probability) * base.mean_links, network.nodes - 1 if repair else 0)
    pool = pool_of(network.nodes, graphs, draw, links, lazy=not base.held, connected=repair)
    if repair and pool.held:
        recipe["links_added"] = pool.added
    return Network(pool, np.arange(graphs), {**recipe, "network": network.recipe})


def _failed(base: Pool, chosen: Ints, probability: float, seed: int, repair: bool, k: int) -> Graph:
    """Draw the links of graph chosen[k] that remain in round k."""
    edges, weights, positions, _ = base.graph(int(chosen[k]))
    assert weights is not None
    draws = random_stream(seed, k).random((2, len(edges)))
    kept: Bools = draws[0] >= probability
    restored = _restored(base.nodes, edges, kept, draws[1]) if repair else []
    kept[restored] = True
    return Graph(edges[kept], weights[kept] / weights[kept].max(initial=0.0), positions, len(restored))


def _restored(nodes: int, edges: Ints, kept: Bools, draws: Floats) -> Sequence[int]:
    """Return the rows of failed links, taken in random order, that join the components of the others."""
    count, labels = component_labels(nodes, edges[kept])
    if count == 1:
        return []
    failed = np.flatnonzero(~kept)
    failed = failed[labels[edges[failed, 0]] != labels[edges[failed, 1]]]
    order = failed[np.argsort(draws[failed], kind="stable")]
    rows: list[int] = joining_rows(labels, edges, order).tolist()
    return rows


@generator
def windowed(network: Network, window: int) -> Network:
    """Return the same network with windows of `window` rounds, each one step of a method (see `Network.window`).

    Its chi becomes that of such windows. The default window is the smallest that connects the nodes. A longer one has a
    smaller chi; since a run takes rounds in proportion to ``window * chi``, compare this product. If graphs are neither
    held nor all connected, the window must be given; chi is then an estimate from 8 windows spread over the period. A
    schedule of the returned network computes its own window again, so apply `windowed` last, or just before `bounded`.

    Examples
    --------
    >>> from adom.networks import failing, ring
    >>> network = failing(ring(10), 0.5, graphs=200)
    >>> for window in (network.window, 2 * network.window):
    ...     print(window, round(window * windowed(network, window).chi))
    8 62
    16 41
    """
    network = _networks([network])[0]
    window = check_whole("window", window, 1, "it counts the rounds of a step: take fewer", LONGEST_STEP)
    least = Network(network._pool, network.order, {}).window if network.held else 1
    if window < least:
        raise InputError(
            f"window must be at least {least}, got {window}: some shorter windows do not connect all nodes; "
            f"omit windowed to use {least}"
        )
    recipe = {"generator": "windowed", "window": window, "network": network.recipe}
    return Network(network._pool, network.order, recipe, window=window)


@generator
def bounded(network: AnyNetwork, chi: float) -> AnyNetwork:
    """Return the same network with a given condition number, which is used without checking.

    Use it if computing chi takes long, or if the graphs are not held and chi would be an estimate from a few of them.
    Methods use ``lambda_min_plus = lambda_max / chi``; their theorems hold if no graph's chi is larger. `recipe` says
    that chi was given. A schedule of the returned network computes its own chi again, so apply `bounded` last.

    Examples
    --------
    >>> from adom.networks import expander
    >>> network = bounded(expander(100_000, degree=8, graphs=2), chi=5.5)
    >>> network.chi, network.lambda_max, network.examined.tolist()
    (5.5, 1.0, [])
    """
    if not isinstance(network, Network | DirectedNetwork):
        raise InputTypeError(f"expected a network, got {type(network).__name__}; e.g. bounded(ring(5), chi=3)")
    _refuse_lossy(network)
    chi = check_real("chi", chi, 1, LARGEST_CHI, "the complete graph has chi=1")
    recipe = {"generator": "bounded", "chi": chi, "network": network.recipe}
    return network._bounded(recipe, chi)


def _networks(members: Sequence[Any]) -> list[Network]:
    """Return the members as networks on the same number of nodes."""
    if isinstance(members, Network | str | bytes | dict) or not iterable(members):
        raise InputTypeError(f"expected a list of networks, got {type(members).__name__}; e.g. [ring(5), star(5)]")
    networks: list[Network] = []
    for index, member in enumerate(members):
        if not isinstance(member, Network) and not hasattr(member, "is_directed"):
            raise InputTypeError(
                f"member {index} is a {type(member).__name__}, not a Network or networkx.Graph; e.g. ring(5)"
            )
        _refuse_lossy(member)
        networks.append(member if isinstance(member, Network) else from_graphs([member]))
        if networks[index].nodes != networks[0].nodes:
            raise InputError(
                f"member {index} has {networks[index].nodes} nodes and member 0 has {networks[0].nodes}, "
                "but all need the same nodes; make them alike"
            )
    if not networks:
        raise InputError("got no networks, needs one or more; e.g. [ring(5), star(5)]")
    return networks


def _refuse_lossy(network: Any) -> None:
    """Refuse a network with imperfect links, because the result would lose them."""
    if isinstance(network, LossyNetwork):
        made = network.recipe["generator"]
        raise InputError(f"a {made} network cannot be part of another one; make the schedule first, then {made}(...)")


def _join(members: list[Network]) -> tuple[Pool, list[Ints]]:
    """Return one pool and each member's order in it; members with the same pool share its graphs."""
    pools = list(dict.fromkeys(member._pool for member in members))
    starts = np.cumsum([0, *(pool.graphs for pool in pools)], dtype=np.int32)
    orders = [member.order + starts[pools.index(member._pool)] for member in members]
    return Pool(*(source for pool in pools for source in pool.sources)), orders


def _recipe(generator: str, members: list[Network], **arguments: int) -> dict[str, Any]:
    return {"generator": generator, **arguments, "networks": [member.recipe for member in members]}
