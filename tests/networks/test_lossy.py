"""Which messages are lost, and who is there."""

import numpy as np
import pytest

import adom
from adom.networks import alternate, bounded, directed_ring, geometric, lossy, ring, windowed


def test_each_direction_of_each_link_is_lost_by_itself():
    network, rounds = lossy(ring(30), one_way=0.3, seed=0), 1500
    heard = np.zeros((rounds, 30, 30), dtype=bool)
    for k in range(rounds):
        senders, receivers = network.heard(k).T
        heard[k, senders, receivers] = True
    links = np.concatenate([network.edges(0), network.edges(0)[:, ::-1]])
    table = heard[:, links[:, 0], links[:, 1]].astype(float)
    assert heard.sum() == table.sum()  # only links
    spread = np.sqrt(0.3 * 0.7 / rounds)
    assert np.abs(table.mean(axis=0) - 0.7).max() < 4.5 * spread
    correlations = np.corrcoef(table.T) - np.eye(len(links))
    assert np.abs(correlations).max() < 5.5 / np.sqrt(rounds)
    later = [np.corrcoef(table[1:, i], table[:-1, i])[0, 1] for i in range(len(links))]
    assert np.abs(later).max() < 4.5 / np.sqrt(rounds)


def test_losses_depend_on_seed_round_and_link_alone():
    one = lossy(geometric(20, 0.5, graphs=7, seed=1), 0.4, seed=3)
    same = lossy(geometric(20, 0.5, graphs=7, seed=1), 0.4, seed=3, healing=False)
    other = lossy(geometric(20, 0.5, graphs=7, seed=1), 0.4, seed=4)
    np.testing.assert_array_equal(one.heard(11), same.heard(11))
    assert one.heard(11).shape != other.heard(11).shape or (one.heard(11) != other.heard(11)).any()
    complete = {tuple(pair) for pair in lossy(adom.networks.complete(20), 0.4, seed=3).heard(11).tolist()}
    assert {tuple(pair) for pair in one.heard(11).tolist()} <= complete


def test_everything_arrives_without_loss_and_those_away_hear_nothing():
    network = lossy(ring(6), leaving={2: [4, 9]}, joining={2: 7, 5: 8})
    assert len(network.heard(100)) == 2 * 4
    present = np.array([network.present(k) for k in range(12)])
    assert present[:, 2].tolist() == [True] * 4 + [False] * 3 + [True] * 2 + [False] * 3
    assert present[:, 5].tolist() == [False] * 8 + [True] * 4
    assert present[:, [0, 1, 3, 4]].all()
    for k in range(12):
        assert present[k][np.unique(network.heard(k))].all()


def test_the_network_is_otherwise_the_same():
    base = windowed(geometric(12, 0.5, graphs=5), 2)
    network = lossy(base, 0.5)
    assert (network.window, network.period, network.nodes) == (2, 5, 12)
    assert network.chi == 2 * base.chi
    assert network.lambda_min_plus == pytest.approx(base.lambda_min_plus / 2)
    np.testing.assert_array_equal(network.matrix(3), base.matrix(3))
    assert lossy(bounded(ring(5), 9.0), 0.1).chi == pytest.approx(10.0)


def test_it_is_rebuilt_from_its_recipe():
    network = lossy(ring(6), 0.2, leaving={2: 4}, joining={3: [5]})
    assert network.reseeded(0).recipe == network.recipe
    np.testing.assert_array_equal(network.reseeded(0).heard(7), network.heard(7))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"one_way": 1.0}, "no message would ever arrive"),
        ({"one_way": -0.1}, "one_way must be a finite number at least 0"),
        ({"leaving": {9: 3}}, "a node in leaving must be at most 4"),
        ({"leaving": {1: -3}}, "a round in leaving"),
        ({"leaving": [3]}, "leaving must map nodes to rounds"),
        *(({"leaving": {node: 3}}, "a node in leaving must be") for node in (10**5000, "²", "9" * 5000, None)),
        ({"leaving": {1: [3, 5]}}, "node 1 cannot leave in round 5: it is away"),
        ({"leaving": {1: 3}, "joining": {1: 3}}, "in turn"),
        ({"leaving": dict.fromkeys(range(5), 3)}, "all nodes would be absent"),
        ({"healing": 1}, "healing must be True or False"),
    ],
)
def test_wrong_arguments(arguments, words):
    with pytest.raises((ValueError, TypeError), match=words):
        lossy(ring(5), **arguments)


def test_lossy_comes_last_and_takes_what_it_can():
    with pytest.raises(adom.InputError, match="make the schedule first"):
        alternate([lossy(ring(5), 0.1), ring(5)])
    with pytest.raises(adom.InputError, match="make the schedule first"):
        bounded(lossy(ring(5), 0.1), 3.0)
    for network, takes in ((lossy(ring(5), 0.1), "network without loss"), (directed_ring(5), "undirected network")):
        with pytest.raises(TypeError, match=takes):
            lossy(network, 0.1)
