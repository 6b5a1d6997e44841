"""Every argument of every generator against what people, NumPy and pandas may put there."""

import decimal
import json
import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from adom import networks
from adom.errors import InputError, InputTypeError
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
    "windowed": {"network": RING, "window": 2},
    "alternate": {"networks": [RING, RING], "every": 2},
    "cyclic": {"networks": [RING]},
    "lossy": {"network": RING, "one_way": 0.1, "healing": False, "seed": 0, "leaving": {1: 3}, "joining": {1: 5}},
    "delayed": {"network": RING, "rounds": 2, "varying": True, "seed": 0},
    "quantised": {"network": RING, "bits": 8, "dither": True, "feedback": True, "seed": 0},
    "sparsified": {"network": RING, "keep": 0.5, "choice": "largest", "feedback": True, "seed": 0},
    "noisy": {"network": RING, "std": 0.1, "seed": 0},
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


LONG = networks.slowed(RING, every=15_000_000)
ARROWS = nx.DiGraph([("a", "b"), ("b", "b"), ("b", "a")])
SIGNED = np.array([[2.0, -3.0, 1.0], [-3.0, 6.0, -3.0], [1.0, -3.0, 2.0]])  # semi-definite, with a weight of -1
REFUSALS = {
    "ring": [
        ({"nodes": 2}, "nodes must be a whole number of at least 3, got 2"),
        ({"nodes": 10**9}, "nodes must be at most 200000000, got 1000000000; e.g. nodes=100"),
    ],
    "star": [({"nodes": 1}, "nodes must be a whole number of at least 2, got 1")],
    "torus": [
        ({"rows": 2}, "rows must be a whole number of at least 3, got 2"),
        ({"columns": 2}, "columns must be a whole number of at least 3, got 2"),
        ({"rows": 10**5, "columns": None}, r"a torus of 100000 x 100000 nodes would have about 2e\+10 links"),
    ],
    "complete": [({"nodes": 10**6}, "would have about 5e.11 links")],
    "expander": [
        ({"nodes": 2}, "nodes must be a whole number of at least 3, got 2"),
        ({"degree": 5}, "degree must be even and below nodes=9, got 5"),
        ({"nodes": 8, "degree": 8}, "degree must be even and below nodes=8, got 8"),
        ({"degree": 0}, "degree must be a whole number of at least 2, got 0"),
        ({"nodes": 10**8, "degree": 8}, "would have about 4e.08 links"),
    ],
    "erdos_renyi": [
        ({"p": 1.5}, "p must be a finite number at least 0 and at most 1, got 1.5"),
        ({"p": math.nan}, "got nan"),
        ({"nodes": 10**6}, "take a smaller p"),
        ({"graphs": 0}, "graphs must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
    ],
    "geometric": [
        ({"radius": None}, "exactly one of radius and chi, got neither"),
        ({"chi": 5}, "got both radius=0.9 and chi=5"),
        ({"radius": 0.0}, "radius must be a finite number above 0, got 0.0"),
        ({"radius": -1}, "radius must be a finite number above 0, got -1"),
        ({"radius": math.inf}, "got inf"),
        ({"radius": None, "chi": 0.5}, "chi must be a finite number at least 1, got 0.5"),
        ({"nodes": 10**6}, "take a smaller radius"),
    ],
    "waypoint": [
        ({"speed": 0}, "speed must be a finite number above 0, got 0"),
        ({"pause": -1}, "pause must be a whole number of at least 0, got -1"),
    ],
    "directed_ring": [({"nodes": 1}, "nodes must be a whole number of at least 2, got 1")],
    "directed_erdos_renyi": [({"nodes": 10**6}, "would have about 5e.11 links.*smaller p")],
    "directed_geometric": [
        ({"radius": 0.0}, "radius must be a finite number above 0, got 0.0"),
        ({"nodes": 10**6}, "would have about .*smaller radius"),
    ],
    "cyclic": [
        ({"networks": []}, "got no networks"),
        ({"networks": [RING, networks.ring(6)]}, "member 1 has 6 nodes and member 0 has 5"),
        ({"networks": [LONG, LONG]}, "cyclic would repeat itself only after 30000000 rounds"),
    ],
    "alternate": [
        ({"every": 0}, "every must be a whole number of at least 1, got 0"),
        ({"networks": [networks.redraw(RING, rounds=r) for r in (9973, 9967)], "every": 1}, r"only after \d+ rounds"),
    ],
    "static": [({"k": -2}, "k must be a whole number of at least 0, got -2")],
    "redraw": [({"rounds": 0}, "rounds must be a whole number of at least 1, got 0")],
    "slowed": [
        ({"every": 0}, "every must be a whole number of at least 1, got 0"),
        ({"network": networks.redraw(RING), "every": 10**6}, "slowed would repeat .* 10000000000 rounds.*; take"),
    ],
    "bounded": [
        ({"chi": 0.5}, r"chi must be a finite number at least 1 and at most 1e\+15, got 0.5; "),
        ({"chi": 1e300}, r"at most 1e\+15, got 1e\+300; "),
    ],
    "windowed": [({"window": 0}, "window must be a whole number of at least 1, got 0; ")],
    "failing": [
        ({"probability": 1.2}, "probability must be .* at most 1, got 1.2"),
        ({"network": networks.from_matrices([SIGNED])}, "links of positive weight, got -1"),
    ],
    "from_graphs": [
        ({"graphs": []}, "graphs is empty"),
        ({"graphs": [nx.path_graph(3), nx.DiGraph([(0, 1)])]}, "graph 1 is directed"),
        ({"graphs": [nx.path_graph(1)]}, "graph 0 has 1 nodes"),
        ({"graphs": [nx.path_graph(3), nx.path_graph(4)]}, "graph 1 and graph 0 differ in node 3"),
        ({"graphs": [nx.path_graph(4), nx.path_graph(3)]}, "graph 1 and graph 0 differ in node 3"),
        ({"graphs": [nx.Graph([(0, 1), (1, 1)])]}, "graph 0 has a self-loop at node 1"),
        ({"graphs": [nx.empty_graph(3)], "repair": False}, "3 components"),
        ({"graphs": [nx.path_graph(3)], "weight": "w"}, r"link \(0, 1\): w=None, but a weight"),
        ({"graphs": [nx.Graph([(0, 1, {"w": -1})])], "weight": "w"}, "w=-1, but a weight"),
    ],
    "from_digraphs": [
        ({"graphs": []}, "graphs is empty.*networkx.DiGraph"),
        ({"graphs": nx.empty_graph(1)}, "graph 0 has 1 nodes"),
        ({"graphs": [nx.complete_graph(3), nx.complete_graph(4, nx.DiGraph)]}, "graph 1 and graph 0 differ in node 3"),
        ({"graphs": ARROWS}, "graph 0 has a self-loop at node 'b'"),
        ({"graphs": nx.Graph([(0, 1), (1, 1)])}, "graph 0 has a self-loop at node 1"),
        ({"graphs": nx.empty_graph(3, nx.DiGraph)}, "round 0 .* 3 components"),
    ],
}
WRONG_KINDS = {
    "path": [({"nodes": value}, "nodes must be a whole number") for value in (10.0, "10", None, True)],
    "geometric": [({"radius": "0.3"}, "radius must be a finite number")],
    "directed_ring": [({"nodes": 5.0}, "nodes must be a whole number")],
    "directed_erdos_renyi": [({"p": "x"}, "p must be a finite number .* got 'x'")],
    "cyclic": [
        ({"networks": RING}, "expected a list of networks"),
        ({"networks": [RING, 3]}, "member 1 is a int"),
        ({"networks": [networks.directed_ring(3)]}, "member 0 is a DirectedNetwork, not a Network"),
    ],
    "bounded": [({"network": 3}, "expected a network, got int; ")],
    "from_graphs": [
        ({"graphs": 5}, "graphs must be a list, got int"),
        ({"graphs": [np.eye(3)]}, "graph 0 is a ndarray, not a networkx.Graph"),
    ],
    "from_digraphs": [
        ({"graphs": 5}, "graphs must be a list, got int"),
        ({"graphs": [np.eye(3)]}, "graph 0 is a ndarray, not a networkx.Graph"),
    ],
}


@pytest.mark.parametrize(
    ("name", "arguments", "message", "kind"),
    [(name, *case, InputError) for name, cases in REFUSALS.items() for case in cases]
    + [(name, *case, InputTypeError) for name, cases in WRONG_KINDS.items() for case in cases],
)
def test_bad_values_are_refused_with_value_rule_and_remedy(name, arguments, message, kind):
    with pytest.raises(kind, match=message) as caught:
        getattr(networks, name)(**GOOD[name] | arguments)
    assert "\n" not in str(caught.value)
    assert ";" in str(caught.value), "names a remedy"


@pytest.mark.parametrize(
    ("read", "kind", "message"),
    [
        (lambda: RING.matrix(-1), InputError, "k must be a whole number of at least 0, got -1"),
        (lambda: RING.matrix(1.5), InputTypeError, "k must be a whole number"),
        (lambda: RING.graph("0"), InputTypeError, "k must be a whole number"),
        (lambda: RING.matrix(True), InputTypeError, "k must be a whole number"),
        (lambda: RING.edges(1), InputError, "no graph g=1: g must be below graphs=1"),
        (lambda: RING.positions(-1), InputError, "g must be a whole number"),
        (lambda: networks.directed_ring(3).row_stochastic(-1), InputError, "k must be a whole number"),
        (lambda: networks.directed_ring(3).column_stochastic(0.5), InputTypeError, "k must be a whole number"),
        (lambda: networks.directed_ring(3).arcs(1), InputError, "no graph g=1"),
    ],
)
def test_rounds_and_graphs_are_whole_numbers_that_exist(read, kind, message):
    with pytest.raises(kind, match=message):
        read()
