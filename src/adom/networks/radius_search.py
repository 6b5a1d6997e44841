"""The radius at which the worst of several geometric graphs has a wanted condition number.

With the points held fixed, the worst graph's chi is a step function of the radius: it changes only where
the radius passes the distance of a pair. It falls from about the spanning trees' chi to 1, but not
monotonically, since a link inside a cluster raises the largest eigenvalue. The search

1. looks at few graphs, brackets the wanted value from the side of large radii, and halves the bracket on a
   logarithmic scale; looks at all graphs at that radius; adds the worst ones to the few and starts
   again, until the worst of all is among them;
2. where the step function jumps over the wanted value, tries the distances of pairs near the jump, each one
   if there is time;
3. where no radius will do, draws the points of the one graph that jumps afresh, and starts again. (The
   worst of a thousand graphs is an outlier: one more link may halve its chi, and then no radius gives the
   values between.)
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
"""The largest relative difference between the chi reached and the chi asked for."""
AIM = 0.01
"""The difference, as a logarithm, at which halving stops."""
FEW = 24
"""Graphs that the search starts with, and the most that it adds after each look at all of them."""
EFFORT = 3_000_000_000
"""About how many n^3 operations the trial of single distances may take."""
NEAR = 1.5
"""Distances up to this factor beside a jump are tried."""
REDRAWS = 20
"""How often points may be drawn afresh."""
LONGEST = 1.5
"""A radius that links every pair of the unit square."""


class Search(NamedTuple):
    """Result of a search: the radius, its graphs and the extreme eigenvalues of their Laplacians."""

    radius: float
    links: Links
    spectra: Floats
    redrawn: dict[int, int]  # how often the points of a graph were drawn afresh


def radius_for(chi: float, clouds: Clouds, draw: Callable[[int, int], Floats]) -> Search:
    """Return the radius whose worst graph has `chi` to within 10 %, and the graphs of that radius.

    ``draw(g, attempt)`` draws the points of graph g afresh; they replace those of `clouds`.
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
    """Return the graphs of a radius, the extreme eigenvalues of their Laplacians, and their chis."""
    links = clouds.links(radius, chosen)
    values = spectra.extremes(links, np.ones(len(links.edges)))
    return links, values, values[:, 1] / values[:, 0]


def _miss(chi: float, wanted: float) -> float:
    """Return the distance of two condition numbers, as the logarithm of their ratio."""
    return abs(math.log(chi / wanted))


def _search(chi: float, clouds: Clouds, few: Longs, start: float, thorough: bool) -> tuple[float, float | None]:
    """Return the radius at which the worst of these graphs comes nearest to chi.

    Also return the largest radius seen at which the worst lies above chi while it falls below it later.
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
    """Bracket chi from the side of large radii, then halve the bracket on a logarithmic scale."""
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
    """Return radii just above the distances of pairs, as many as `EFFORT` allows, spread evenly."""
    graphs, nodes, _ = points.shape
    count = max(20, int(EFFORT / (graphs * nodes**3)))
    if nodes > PAIRWISE:
        return [float(radius) for radius in np.geomspace(shortest, longest, min(count, 100))]
    u, v = np.triu_indices(nodes, 1)
    length = np.unique(np.sqrt(((points[:, u] - points[:, v]) ** 2).sum(axis=2)))
    length = length[(length > shortest) & (length < longest)]
    spread = length[np.linspace(0, len(length) - 1, min(count, len(length))).astype(np.int64)]
    return [float(radius) for radius in np.nextafter(spread, np.inf)]
