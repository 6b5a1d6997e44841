"""Changing networks: generators, schedules and imports.

Every function returns a `Network` (the directed ones a `DirectedNetwork`): a finite pool of graphs and the order in
which rounds use them. The gossip matrix ``W(k)`` is a pure function of the round k. All randomness comes from `seed`.

===============================  =====================================================================
random or moving points          `geometric`, `waypoint`
classic graphs                   `ring`, `star`, `path`, `complete`, `torus`
random links without geometry    `erdos_renyi`, `expander`
which graph in which round       `static`, `cyclic`, `alternate`, `slowed`, `redraw`, `failing`
chi or window given              `bounded`, `windowed`
lost messages and nodes          `lossy`
late, coarse, partial, noisy     `delayed`, `quantised`, `sparsified`, `noisy`
yours: graphs, matrices, lists   `from_graphs`, `from_matrices`, `from_contacts`
directed graphs, for Push-Pull   `directed_ring`, `directed_geometric`, `directed_erdos_renyi`,
                                 `from_digraphs`; they have R(k) and C(k) in place of W(k)
===============================  =====================================================================
"""

from .classic import complete, erdos_renyi, expander, path, ring, star, torus
from .directed import (
    DirectedNetwork,
    directed_erdos_renyi,
    directed_geometric,
    directed_ring,
    from_digraphs,
)
from .from_data import from_contacts, from_graphs, from_matrices
from .geometric import geometric, waypoint
from .imperfect import delayed, noisy, quantised, sparsified
from .lossy import LossyNetwork, lossy
from .network import Network
from .schedules import alternate, bounded, cyclic, failing, redraw, slowed, static, windowed

__all__ = [
    "DirectedNetwork",
    "LossyNetwork",
    "Network",
    "alternate",
    "bounded",
    "complete",
    "cyclic",
    "delayed",
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
    "lossy",
    "noisy",
    "path",
    "quantised",
    "redraw",
    "ring",
    "slowed",
    "sparsified",
    "star",
    "static",
    "torus",
    "waypoint",
    "windowed",
]
