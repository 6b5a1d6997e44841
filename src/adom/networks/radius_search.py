"""Find the radius at which the worst of several geometric graphs has a given condition number.

For fixed points, the worst graph's chi is a step function of the radius: it changes only where the radius passes the
distance of a pair. It falls from about the chi of the spanning trees to 1, but not monotonically, because a link inside
a cluster raises the largest eigenvalue. The search has three stages:

1. Take a few graphs, bracket the target from the side of large radii, and bisect on a logarithmic scale. Then evaluate
   all graphs at that radius, add the worst ones to the few, and repeat until the worst of all is among them.
2. If the step function jumps over the target, try the distances of pairs near the jump, all of them if time allows.
3. If no radius works, draw new points for the graph that jumps, and start again. (The worst of a thousand graphs is an
   outlier: one more link may halve its chi, and no radius gives the values in between.)
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from . import spectra
from .links import Floats, Links, Longs
from .near import PAIRWISE, Clouds

TOLERANCE = 0.10
"""The largest accepted relative difference between the chi found and the target."""
AIM = 0.01
"""Bisection stops when the logarithms of chi and target differ by at most this."""
FEW = 24
"""The number of graphs that the search starts with, and the most that it adds after evaluating all."""
EFFORT = 3_000_000_000
"""The approximate number of operations, n^3 per graph, for trying single distances."""
NEAR = 1.5
"""Distances within this factor of the best radius are tried."""
REDRAWS = 20
"""How often points may be redrawn, over all graphs."""
LONGEST = 1.5
"""A radius that links every pair of the unit square."""


class Search(NamedTuple):
    """Result of a search: the radius, its graphs and the extreme eigenvalues of their Laplacians."""

    radius: float
    links: Links
    spectra: Floats
    redrawn: dict[int, int]  # how often the points of each graph were redrawn


def radius_for(chi: float, clouds: Clouds, draw: Callable[[int, int], Floats]) -> Search:
    """Return the radius at which the worst graph's chi is within 10 % of `chi`, and the graphs at that radius.

    ``draw(g, attempt)`` draws new points for graph g, which replace those in `clouds`.
    """
    redrawn: dict[int, int] = {}
    radius = min(LONGEST, max(0.1 / clouds.nodes, 1.5 / math.sqrt(chi)))
    few: Longs = np.argsort(-_look(clouds, radius)[2])[:FEW]
    thorough = False
    while True:
        radius, jump = _search(chi, clouds, few, radius, thorough)
        links, values, chis = _look(clouds, radius)
        if abs(chis.max() / chi - 1) <= TOLERANCE:
            return Search(radius, links, values, redrawn)
        if int(np.argmax(chis)) not in few:
            few = np.union1d(few, np.argsort(-chis)[:FEW])
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
