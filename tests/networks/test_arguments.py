"""Every argument of every generator against what people, NumPy and pandas may put there."""

import decimal
import json

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from adom import networks
from adom.errors import InputError
from support.damage import attempt

RING = networks.ring(5)
GOOD = {
    "ring": {"nodes": 5},
    "star": {"nodes": 5},
    "path": {"nodes": 5},
    "complete": {"nodes": 5},
    "torus": {"rows": 3, "columns": 4},
    "directed_ring": {"nodes": 5},
    "directed_erdos_renyi": {"nodes": 5, "p": 0.5, "graphs": 2, "seed": 0},
    "directed_geometric": {"nodes": 5, "radius": 0.9, "graphs": 2, "seed": 0},
    "erdos_renyi": {"nodes": 5, "p": 0.5, "graphs": 2, "seed": 0},
    "expander": {"nodes": 9, "degree": 4, "graphs": 2, "seed": 0},
    "geometric": {"nodes": 5, "radius": 0.9, "graphs": 2, "seed": 0},
    "waypoint": {"nodes": 5, "radius": 0.9, "graphs": 2, "speed": 0.02, "pause": 0, "seed": 0},
    "failing": {"network": RING, "probability": 0.1, "graphs": 3, "seed": 0},
    "redraw": {"network": RING, "rounds": 10, "seed": 0},
    "slowed": {"network": RING, "every": 3},
    "static": {"network": RING, "k": 0},
    "bounded": {"network": RING, "chi": 5.0},
    "alternate": {"networks": [RING, RING], "every": 2},
    "cyclic": {"networks": [RING]},
    "from_contacts": {"path_or_rows": [(0, 1, 2), (1, 2, 1)], "window": 1, "nodes": 3, "repair": True},
    "from_graphs": {"graphs": [nx.cycle_graph(4)], "repair": True, "weight": None},
    "from_matrices": {"matrices": [np.array([[1.0, -1.0], [-1.0, 1.0]])]},
    "from_digraphs": {"graphs": [nx.cycle_graph(3, create_using=nx.DiGraph)]},
}
"""A call of every generator that works."""

HUGE = (2**31, 2**63, 10**19, 10**30, 10**400, 10**5000, -(10**5000), 1e300, np.uint64(2**63))
ODD = (
    *(-1, 0, 0.5, 5e-324, -0.0, True, np.True_, None, "5", "5\nx", b"5", 1j, np.complex128(1), object),
    *(float("nan"), float("inf"), -float("inf"), np.float64("nan"), np.float32(0.5), np.int8(3)),
    *(np.array(3), np.array([3]), np.array([3, 4]), np.array(["a"]), np.datetime64("2020"), [], {}, "x" * 10_000),
    *(decimal.Decimal("sNaN"), pd.NA, pd.NaT, pd.Series([3]), pd.DataFrame({"t": [0], "u": [1], "v": [2]}), RING),
)


@pytest.mark.parametrize("name", GOOD)
def test_odd_values_are_taken_or_refused_in_one_line(name):
    make, given = getattr(networks, name), GOOD[name]
    refused = 0
    for argument in given:
        for value in (*HUGE, *ODD):
            made, refusal = attempt(lambda: make(**given | {argument: value}))  # noqa: B023  # called at once
            assert "\n" not in refusal
            assert len(refusal) < 600
            refused += bool(refusal)
            assert refusal or json.dumps(made.recipe, allow_nan=False)
    assert refused > 20 * len(given)


def test_a_network_that_repeats_itself_too_late_is_refused():
    long = networks.slowed(RING, every=15_000_000)
    with pytest.raises(InputError, match="cyclic would repeat itself only after 30000000 rounds"):
        networks.cyclic([long, long])
    with pytest.raises(InputError, match=r"a torus of 100000 x 100000 nodes would have about 2e\+10 links"):
        networks.torus(100_000)
