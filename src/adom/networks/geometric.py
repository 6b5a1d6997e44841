"""Geometric graphs: nodes are random or moving points in the unit square, and close ones are linked."""

import math
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, shown
from ..util.checks import check_real, check_whole
from . import pool as pools
from . import spectra
from .classic import log_share, random_stream
from .edges import PAIRWISE, Clouds, Floats, Links, Longs, squares
from .network import Network
from .pool import Batch, Pool, pool_of
from .recipes import generator, graph_count, link_count, node_count, seed_number, suited, truth

TOLERANCE = 0.10
"""The largest accepted relative difference between the chi found and the target."""
AIM = 0.01
"""Bisection stops when the logarithms of chi and target differ by at most this."""
FIRST_FEW = 24
"""The number of graphs that the search starts with, and the most that it adds after evaluating all."""
EFFORT = 3_000_000_000
"""The approximate number of operations, n^3 per graph, for trying single distances."""
NEAR = 1.5
"""Distances within this factor of the best radius are tried."""
REDRAWS = 20
"""How often points may be redrawn, over all graphs."""
LONGEST = 1.5
"""A radius that links every pair of the unit square."""


def _usual_chi(nodes: int) -> dict[str, Any]:
    """Return the condition number of the paper's experiments, or one that few nodes can reach."""
    return {"chi": min(30.0, float(nodes)) if nodes > 2 else 1.0}


def _joining_radius(nodes: int) -> dict[str, Any]:
    """Return a radius at which graphs are connected more often than not."""
    return {"radius": round(2 * math.sqrt(log_share(nodes) / math.pi), 6), "speed": 0.02}


@generator
@suited(_usual_chi)
def geometric(
    nodes: int,
    radius: float | None = None,
    *,
    chi: float | None = None,
    graphs: int = 1,
    seed: int = 0,
    repair: bool = True,
) -> Network:
    """Return random geometric graphs: the networks of the paper's experiments (section 6).

    Each graph draws new points uniformly in [0, 1]^2 and links every pair closer than `radius`. If that leaves c
    components, the c - 1 shortest links that join them are added, as in the paper. The rounds cycle through the
    graphs.

    Parameters
    ----------
    nodes : int
    radius : float, optional
        Pairs closer than this are linked. Give either radius or chi.
    chi : float, optional
        The target condition number. The points stay fixed while the radius is searched, until the worst graph's
        chi is within 10 % of the target; `recipe` has the radius. If no radius works because the chi of one graph
        jumps over the target, new points are drawn for that graph. ``recipe["redrawn"]`` then says how often, for
        each such graph.
    graphs : int
        How many graphs to draw. With `radius`, they may be more than fit in memory: see `Network`.
    seed : int
        Graph g has its own stream of random numbers, so its points do not depend on `graphs`.
    repair : bool
        If False, no links are added: graphs may be disconnected if all of them together connect the nodes (see
        `Network.window`). Not allowed with `chi`.

    Examples
    --------
    >>> network = geometric(100, chi=30, graphs=5, seed=1)
    >>> 27 <= network.chi <= 33
    True
    >>> 0.1 < network.recipe["radius"] < 0.5
    True
    """
    nodes, graphs, seed = node_count(nodes), graph_count(graphs), seed_number(seed)
    if (radius is None) == (chi is None):
        given = "neither" if radius is None else f"both radius={shown(radius)} and chi={shown(chi)}"
        raise InputError(f"geometric takes exactly one of radius and chi, got {given}; e.g. radius=0.3")
    recipe: dict[str, Any] = {"generator": "geometric", "nodes": nodes, "graphs": graphs, "seed": seed}
    if not truth("repair", repair):
        recipe["repair"] = False
    if radius is not None:
        recipe["radius"] = radius = check_real("radius", radius, 0, math.inf, "e.g. radius=0.3", strict=True)
        return _linked(nodes, min(radius, 2.0), graphs, partial(uniform_points, nodes, seed), recipe, repair)
    if not repair:
        raise InputError("chi needs graphs that are all connected, got repair=False; give a radius instead")

    recipe["chi"] = wanted = check_real("chi", chi, 1, math.inf, "the complete graph has chi=1")
    most = nodes**3 / 4  # lambda_max is at most n, and lambda_2 more than 4 / n^2 (Mohar 1991)
    if wanted > most:
        raise InputError(
            f"chi must be at most {most:g}, which no graph of {nodes} nodes exceeds, got {wanted:g}; e.g. 30"
        )
    _room(nodes, 1.5 / math.sqrt(wanted), graphs, graphs)
    clouds = Clouds(np.stack([uniform_points(nodes, seed, g) for g in range(graphs)]))
    search = radius_for(wanted, clouds, partial(uniform_points, nodes, seed))
    recipe["radius"] = search.radius
    if search.redrawn:
        recipe["redrawn"] = {str(g): attempts for g, attempts in sorted(search.redrawn.items())}
    pool = Pool(Batch.laplacian(search.links, known=search.values, positions=clouds.points))
    return Network(pool, np.arange(graphs), recipe)


@generator
@suited(_joining_radius)
def waypoint(
    nodes: int,
    radius: float,
    *,
    graphs: int = 1000,
    speed: float = 0.02,
    pause: int = 0,
    seed: int = 0,
    repair: bool = False,
) -> Network:
    """Return the geometric graphs of moving nodes, one graph per round (the random waypoint model).

    Every node starts at a uniformly drawn point of the unit square and walks straight towards a uniformly drawn
    target, by `speed` per round. At the target it rests for `pause` rounds, then draws the next one. Pairs closer
    than `radius` are linked. Graphs may be disconnected if all rounds together connect the nodes: see
    `Network.window`. After `graphs` rounds the motion repeats from the start.

    Parameters
    ----------
    nodes : int
    radius : float
    graphs : int
        The number of rounds of motion.
    speed : float
        The distance walked in one round.
    pause : int
        Rounds of rest at each target.
    seed : int
        Each node has its own stream of random numbers.
    repair : bool
        Join components by the shortest links, as in `geometric`. If the graphs are held,
        ``recipe["links_added"]`` counts these links over one period.

    Examples
    --------
    >>> network = waypoint(20, 0.3, graphs=50, speed=0.05, seed=3)
    >>> steps = np.linalg.norm(network.positions(1) - network.positions(0), axis=1)
    >>> bool((steps <= 0.05 + 1e-12).all())
    True
    """
    nodes, graphs, seed = node_count(nodes), graph_count(graphs), seed_number(seed)
    radius = check_real("radius", radius, 0, math.inf, "e.g. radius=0.3", strict=True)
    speed = check_real("speed", speed, 0, math.inf, "the unit square has side 1, e.g. speed=0.02", strict=True)
    pause = check_whole("pause", pause, 0, "it counts rounds of rest")
    recipe = {"generator": "waypoint", "nodes": nodes, "radius": radius, "graphs": graphs}
    recipe |= {"speed": speed, "pause": pause, "seed": seed, "repair": truth("repair", repair)}
    reach = min(radius, 2.0)  # the square's diagonal is shorter
    _room(nodes, reach, graphs)  # before the walk allocates memory
    return _linked(nodes, reach, graphs, Walk(nodes, graphs, speed, pause, seed).points, recipe, repair)


def _linked(
    nodes: int, radius: float, graphs: int, points: Callable[[int], Floats], recipe: dict[str, Any], repair: bool
) -> Network:
    """Return the network of the graphs with the given points."""
    links = _room(nodes, radius, graphs)
    pool = pool_of(nodes, graphs, partial(_draw, radius, points, repair), links, positions=True, connected=repair)
    if recipe.get("repair") and pool.held:
        drawn = map(pool.graph, range(graphs))
        long = [squares(g.positions, g.edges) >= radius**2 for g in drawn if g.positions is not None]
        recipe["links_added"] = int(np.concatenate(long).sum())
    return Network(pool, np.arange(graphs), recipe)


def _draw(radius: float, points: Callable[[int], Floats], repair: bool, *chosen: int) -> Batch:
    clouds = np.stack([points(g) for g in chosen])
    return Batch.laplacian(Clouds(clouds, repair).links(radius), positions=clouds, joined=repair)


def uniform_points(nodes: int, seed: int, g: int, attempt: int = 0) -> Floats:
    """Draw the points of graph g; each attempt has its own random stream."""
    key = (g, attempt) if attempt else (g,)
    return random_stream(seed, *key).random((nodes, 2))


def _room(nodes: int, radius: float, graphs: int, together: int = 1) -> float:
    """Return the expected number of links of a graph; refuse if `together` such graphs do not fit in memory."""
    share = min(1.0, math.pi * radius**2)
    expected = max(nodes, share * nodes * (nodes - 1) / 2)
    what = f"{graphs} geometric graph(s) of {nodes} nodes with radius {radius:.3g}"
    remedy = "take a smaller radius or a larger chi"
    link_count(together * expected, what, f"{remedy}, or fewer graphs" if together > 1 else remedy)
    return expected


class State(NamedTuple):
    """State of all nodes in one round."""

    here: Floats
    target: Floats
    rest: Longs  # rounds left at the target
    targets: Longs  # points that the node has drawn: its start and its targets so far

    def copy(self) -> "State":
        """Return an independent copy."""
        return State(self.here.copy(), self.target.copy(), self.rest.copy(), self.targets.copy())


class Walk:
    """The random waypoint model, round by round; safe to use from several threads.

    Each step depends on the previous one, so reaching round k takes all steps before it. A walk therefore keeps the
    state of the last requested round and checkpoints at regular intervals, and resumes from the nearest state not
    after k. Rounds requested in order cost one step each.
    """

    def __init__(self, nodes: int, rounds: int, speed: float, pause: int, seed: int) -> None:
        self._speed, self._pause, self._seed = speed, pause, seed
        points = np.stack([self._stream(i).random((2, 2)) for i in range(nodes)])
        zeros = np.zeros(nodes, dtype=np.int64)
        state = State(points[:, 0].copy(), points[:, 1].copy(), zeros, zeros + 2)
        self._round, self._state = 0, state
        size = sum(array.nbytes for array in state)
        self._spacing = max(16, -(-4 * rounds * size // pools.HELD_BYTES))  # a quarter of the memory for graphs
        self._saved = {0: state.copy()}
        self._lock = threading.Lock()

    def points(self, k: int) -> Floats:
        """Return the points of round k."""
        with self._lock:
            start = max(saved for saved in self._saved if saved <= k)
            if not start <= self._round <= k:
                self._round, self._state = start, self._saved[start].copy()
            while self._round < k:
                self._step()
            return self._state.here.copy()

    def _stream(self, i: int, targets: int = 0) -> np.random.Generator:
        """Return the random stream of node i, advanced past its first `targets` points of two numbers each."""
        bits = np.random.PCG64(np.random.SeedSequence(self._seed, spawn_key=(i,)))
        return np.random.Generator(bits.advance(2 * targets) if targets else bits)

    def _step(self) -> None:
        here, target, rest, targets = self._state
        way = target - here
        left = np.hypot(way[:, 0], way[:, 1])
        moving = rest == 0
        arrive = moving & (left <= self._speed)
        walk = moving & ~arrive
        here[walk] += way[walk] * (self._speed / left[walk])[:, None]
        here[arrive] = target[arrive]
        rest[~moving] -= 1
        rest[arrive] = self._pause
        for i in np.flatnonzero(arrive).tolist():
            target[i] = self._stream(i, int(targets[i])).random(2)
        targets[arrive] += 1
        self._round += 1
        if self._round % self._spacing == 0 and self._round not in self._saved:
            self._saved[self._round] = self._state.copy()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock, which belongs to this process."""
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())


class Search(NamedTuple):
    """Result of a search: the radius, its graphs and the extreme eigenvalues of their Laplacians."""

    radius: float
    links: Links
    values: Floats
    redrawn: dict[int, int]  # how often the points of each graph were redrawn


def radius_for(chi: float, clouds: Clouds, draw: Callable[[int, int], Floats]) -> Search:
    """Return the radius at which the worst graph's chi is within 10 % of `chi`, and the graphs at that radius.

    ``draw(g, attempt)`` draws new points for graph g, which replace those in `clouds`.

    For fixed points, the worst graph's chi is a step function of the radius: it changes only where the radius passes
    the distance of a pair. It falls from about the chi of the spanning trees to 1, but not monotonically, because a
    link inside a cluster raises the largest eigenvalue. The search has three stages:

    1. Take a few graphs, bracket the target from the side of large radii, and bisect on a logarithmic scale. Then
       evaluate all graphs at that radius, add the worst ones to the few, and repeat until the worst is among them.
    2. If the step function jumps over the target, try the distances of pairs near the jump, all if time allows.
    3. If no radius works, draw new points for the graph that jumps, and start again. (The worst of a thousand graphs
       is an outlier: one more link may halve its chi, and no radius gives the values in between.)
    """
    redrawn: dict[int, int] = {}
    radius = min(LONGEST, max(0.1 / clouds.nodes, 1.5 / math.sqrt(chi)))
    few: Longs = np.argsort(-_look(clouds, radius)[2])[:FIRST_FEW]
    thorough = False
    while True:
        radius, jump = _search(chi, clouds, few, radius, thorough)
        links, values, chis = _look(clouds, radius)
        if abs(chis.max() / chi - 1) <= TOLERANCE:
            return Search(radius, links, values, redrawn)
        if int(np.argmax(chis)) not in few:
            few = np.union1d(few, np.argsort(-chis)[:FIRST_FEW])
        elif not thorough:
            thorough = True
        elif jump is not None and sum(redrawn.values()) < REDRAWS:
            g = int(few[np.argmax(_look(clouds, jump, few)[2])])
            redrawn[g] = redrawn.get(g, 0) + 1
            clouds.redraw(g, draw(g, redrawn[g]))
            thorough = False
        else:
            raise InputError(
                f"chi={chi:g} cannot be reached within 10 % by {clouds.graphs} geometric graph(s) of "
                f"{clouds.nodes} nodes: the nearest is chi={chis.max():.4g} at radius={radius:.4g}; "
                "ask for that chi, or change nodes, graphs or seed"
            )


def _look(clouds: Clouds, radius: float, chosen: Longs | None = None) -> tuple[Links, Floats, Floats]:
    """Return the graphs at a radius, the extreme eigenvalues of their Laplacians, and their chis."""
    links = clouds.links(radius, chosen)
    values = spectra.extremes(links, np.ones(len(links.edges)))
    return links, values, values[:, 1] / values[:, 0]


def _miss(chi: float, wanted: float) -> float:
    """Return the absolute logarithm of the ratio of two condition numbers."""
    return abs(math.log(chi / wanted))


def _search(chi: float, clouds: Clouds, few: Longs, start: float, thorough: bool) -> tuple[float, float | None]:
    """Return the radius at which the worst of the graphs `few` comes nearest to chi, and the place of a jump.

    The latter is the largest radius tried, except for the largest of all, at which the worst graph is above chi.
    """
    tried: dict[float, float] = {}

    def worst(radius: float) -> float:
        if radius not in tried:
            tried[radius] = float(_look(clouds, radius, few)[2].max())
        return tried[radius]

    def best() -> float:
        return min(tried, key=lambda radius: _miss(tried[radius], chi))

    _halve(worst, chi, clouds.nodes, start)
    if thorough:
        for radius in _distances(clouds.points[few], best() / NEAR, best() * NEAR):
            if _miss(worst(radius), chi) <= AIM:
                break
    above = [radius for radius in tried if tried[radius] > chi and radius < max(tried)]
    return best(), max(above, default=None)


def _halve(worst: Callable[[float], float], chi: float, nodes: int, start: float) -> None:
    """Bracket chi from the side of large radii, then bisect on a logarithmic scale."""
    least = 0.1 / nodes
    radius = start
    while worst(radius) > chi and radius < LONGEST:
        radius = min(LONGEST, 1.1 * radius)
    above = radius
    while worst(radius) < chi and radius > least:
        above, radius = radius, radius / 1.1
    below = radius
    while above / below > 1 + 1e-4 and _miss(worst(below), chi) > AIM and _miss(worst(above), chi) > AIM:
        middle = math.sqrt(above * below)
        if worst(middle) > chi:
            below = middle
        else:
            above = middle


def _distances(points: Floats, shortest: float, longest: float) -> list[float]:
    """Return radii just above pair distances, spread evenly, as many as `EFFORT` allows."""
    graphs, nodes, _ = points.shape
    count = max(20, int(EFFORT / (graphs * nodes**3)))
    if nodes > PAIRWISE:
        return [float(radius) for radius in np.geomspace(shortest, longest, min(count, 100))]
    u, v = np.triu_indices(nodes, 1)
    length = np.unique(np.sqrt(((points[:, u] - points[:, v]) ** 2).sum(axis=2)))
    length = length[(length > shortest) & (length < longest)]
    spread = length[np.linspace(0, len(length) - 1, min(count, len(length))).astype(np.int64)]
    return [float(radius) for radius in np.nextafter(spread, np.inf)]
