"""Changing networks: generators, schedules and imports.

Every function returns a `Network` (the directed ones a `DirectedNetwork`): a finite pool of connected graphs and
an order, so that the gossip matrix ``W(k)`` is a pure function of the round k. Randomness comes from `seed` alone.

========================================  ==========================================================
`geometric`, `waypoint`                   points in the unit square, at random or in motion
`ring`, `star`, `path`, `complete`,       classic graphs
`torus`
`erdos_renyi`, `expander`                 random links without geometry
`static`, `cyclic`, `alternate`,          which graph in which round
`slowed`, `redraw`, `failing`
`bounded`                                 the same network, chi given instead of computed
`from_graphs`, `from_matrices`,           graphs, matrices and contact data of your own
`from_contacts`
`directed_ring`, `directed_geometric`,    directed graphs for Push-Pull: a `DirectedNetwork` with a
`directed_erdos_renyi`, `from_digraphs`   row-stochastic R(k) and a column-stochastic C(k)
========================================  ==========================================================
"""

from adom.networks.contacts import from_contacts
from adom.networks.directed import (
    DirectedNetwork,
    directed_erdos_renyi,
    directed_geometric,
    directed_ring,
    from_digraphs,
)
from adom.networks.families import complete, erdos_renyi, expander, path, ring, star, torus
from adom.networks.imports import from_graphs, from_matrices
from adom.networks.network import Network
from adom.networks.points import geometric, waypoint
from adom.networks.schedules import alternate, bounded, cyclic, failing, redraw, slowed, static

__all__ = [
    "DirectedNetwork",
    "Network",
    "alternate",
    "bounded",
    "complete",
    "cyclic",
    "directed_erdos_renyi",
    "directed_geometric",
    "directed_ring",
    "erdos_renyi",
    "expander",
    "failing",
    "from_contacts",
    "from_digraphs",
    "from_graphs",
    "from_matrices",
    "geometric",
    "path",
    "redraw",
    "ring",
    "slowed",
    "star",
    "static",
    "torus",
    "waypoint",
]
