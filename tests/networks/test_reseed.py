"""A network drawn again is what its generator gives with another seed."""

import networkx as nx
import numpy as np
import pytest

from adom import networks
from adom.errors import InputError


def made(seed):
    ring, wild = networks.ring(6), networks.erdos_renyi(6, 0.4, graphs=3, seed=seed)
    return {
        "radius": networks.geometric(6, 0.4, graphs=3, seed=seed),
        "chi": networks.geometric(20, chi=10, graphs=3, seed=seed),
        "waypoint": networks.waypoint(6, 0.4, graphs=3, speed=0.1, pause=1, seed=seed),
        "erdos_renyi": wild,
        "static": networks.static(wild, k=2),
        "cyclic": networks.cyclic([ring, wild]),
        "alternate": networks.alternate([wild, networks.star(6), networks.path(6), networks.complete(6)], every=2),
        "redraw": networks.redraw(wild, rounds=20, seed=seed),
        "failing": networks.failing(networks.torus(3, 3), 0.3, graphs=4, seed=seed),
        "directed_geometric": networks.directed_geometric(6, 0.4, graphs=3, seed=seed),
        "directed_erdos_renyi": networks.directed_erdos_renyi(6, 0.4, graphs=3, seed=seed),
    }


@pytest.mark.parametrize("name", list(made(0)))
def test_drawn_again_is_the_generator_with_that_seed(name):
    first, other = made(0)[name], made(5)[name]
    again = first.reseeded(5)
    assert again.recipe == other.recipe
    edges = (lambda network, g: network.arcs(g)) if "directed" in name else (lambda network, g: network.edges(g))
    np.testing.assert_array_equal(again.order, other.order)
    for g in range(other.graphs):
        np.testing.assert_array_equal(edges(again, g), edges(other, g))
    assert again.recipe != first.recipe


def test_what_is_not_drawn_is_refused():
    with pytest.raises(InputError, match="nothing in it is random"):
        networks.alternate([networks.ring(5), networks.star(5)]).reseeded(1)
    given = networks.failing(networks.from_graphs([nx.cycle_graph(5)]), 0.1, graphs=3)
    with pytest.raises(InputError, match="a network made by from_graphs again"):
        given.reseeded(1)
