"""Seeds: graph g depends on the seed and on g alone, and a network can be drawn again with another seed."""

import networkx as nx
import numpy as np
import pytest

from adom import networks
from adom.errors import InputError


def links(network, g):
    return network.arcs(g) if isinstance(network, networks.DirectedNetwork) else network.edges(g)


def wild(seed):
    return networks.erdos_renyi(6, 0.4, graphs=3, seed=seed)


MAKERS = {
    "geometric": lambda seed, graphs: networks.geometric(20, 0.2, graphs=graphs, seed=seed),
    "waypoint": lambda seed, graphs: networks.waypoint(
        20, 0.2, graphs=graphs, speed=0.1, pause=1, seed=seed, repair=True
    ),
    "erdos_renyi": lambda seed, graphs: networks.erdos_renyi(20, 0.2, graphs=graphs, seed=seed),
    "expander": lambda seed, graphs: networks.expander(20, 4, graphs=graphs, seed=seed),
    "failing": lambda seed, graphs: networks.failing(networks.torus(3, 3), 0.3, graphs=graphs, seed=seed),
    "directed_geometric": lambda seed, graphs: networks.directed_geometric(20, 0.2, graphs=graphs, seed=seed),
    "directed_erdos_renyi": lambda seed, graphs: networks.directed_erdos_renyi(20, 0.2, graphs=graphs, seed=seed),
}
COMPOSED = {
    "chi": lambda seed: networks.geometric(20, chi=10, graphs=3, seed=seed),
    "static": lambda seed: networks.static(wild(seed), k=2),
    "slowed": lambda seed: networks.slowed(wild(seed), every=2),
    "cyclic": lambda seed: networks.cyclic([networks.ring(6), wild(seed)]),
    "alternate": lambda seed: networks.alternate(
        [wild(seed), networks.star(6), networks.path(6), networks.complete(6)], every=2
    ),
    "redraw": lambda seed: networks.redraw(wild(seed), rounds=20, seed=seed),
    "bounded": lambda seed: networks.bounded(wild(seed), 30.0),
    "bounded directed": lambda seed: networks.bounded(networks.directed_erdos_renyi(6, 0.4, seed=seed), 30.0),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_graph_g_does_not_depend_on_how_many_there_are(make):
    few, many = make(4, 2), make(4, 9)
    assert many.order.tolist() == list(range(9))
    for g in range(2):
        np.testing.assert_array_equal(links(few, g), links(many, g))
        np.testing.assert_array_equal(few.positions(g), many.positions(g))
    assert not np.array_equal(links(few, 0), links(few, 1))
    assert not np.array_equal(links(few, 0), links(make(5, 2), 0))


@pytest.mark.parametrize("name", [*MAKERS, *COMPOSED])
def test_a_reseeded_network_is_what_its_generator_gives_with_that_seed(name):
    make = COMPOSED[name] if name in COMPOSED else lambda seed: MAKERS[name](seed, 3)
    first, other = make(0), make(5)
    again = first.reseeded(5)
    assert again.recipe == other.recipe != first.recipe
    assert (type(again), again.chi) == (type(other), other.chi)
    np.testing.assert_array_equal(again.order, other.order)
    for g in range(other.graphs):
        np.testing.assert_array_equal(links(again, g), links(other, g))


def test_a_network_that_is_not_drawn_cannot_be_reseeded():
    with pytest.raises(InputError, match="nothing in it is random"):
        networks.alternate([networks.ring(5), networks.star(5)]).reseeded(1)
    given = networks.failing(networks.from_graphs([nx.cycle_graph(5)]), 0.1, graphs=3)
    with pytest.raises(InputError, match="a network made by from_graphs again"):
        given.reseeded(1)
