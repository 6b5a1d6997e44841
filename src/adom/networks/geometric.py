"""Geometric graphs: nodes are random or moving points in the unit square, and close ones are linked."""

import math
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, shown
from ..util.checks import check_real, check_whole
from . import lazy
from .checks import graph_count, link_count, node_count, seed_number, truth
from .lazy import Batch, pool_of
from .links import Floats, Longs
from .near import Clouds, squares
from .network import Network
from .radius_search import radius_for
from .random import log_share, random_stream
from .recipes import generator, suited


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
    pool = Batch.laplacian(search.links, known=search.spectra, positions=clouds.points)
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
    if recipe.get("repair") and isinstance(pool, Batch):
        clouds = zip(pool.positions, pool.links.each(), strict=True)
        long = [squares(cloud, edges) >= radius**2 for cloud, edges in clouds if cloud is not None]
        recipe["links_added"] = int(np.concatenate(long).sum())
    return Network(pool, np.arange(graphs), recipe)


def _draw(radius: float, points: Callable[[int], Floats], repair: bool, *chosen: int) -> Batch:
    """Draw the chosen graphs."""
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
        self._spacing = max(16, -(-4 * rounds * size // lazy.HELD_BYTES))  # a quarter of the memory for graphs
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
        """Advance by one round."""
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
