"""Every sample goes to one node, every node has one, and the nodes are as unlike as was asked for."""

import jax
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import adom
from adom.data import SPLITS, shares, split
from adom.errors import InputError


@given(
    labels=st.lists(st.sampled_from([-1, 1, 7]), min_size=1, max_size=60),
    how=st.sampled_from(SPLITS),
    seed=st.integers(0, 2**40),
    concentration=st.floats(1e-9, 1e6),
    data=st.data(),
)
def test_a_split_is_a_partition_without_empty_nodes(labels, how, seed, concentration, data):
    nodes = data.draw(st.integers(1, len(labels)))
    dealt = shares(labels, nodes, how, seed=seed, concentration=concentration)
    assert len(dealt) == nodes
    assert min(len(rows) for rows in dealt) >= 1
    assert np.sort(np.concatenate(dealt)).tolist() == list(range(len(labels)))
    assert all((np.diff(rows) > 0).all() for rows in dealt)
    if how != "dirichlet":
        assert np.ptp([len(rows) for rows in dealt]) <= 1
    again = shares(labels, nodes, how, seed=seed, concentration=concentration)
    assert all((a == b).all() for a, b in zip(dealt, again, strict=True))


def test_contiguous_is_what_the_problem_does_by_itself():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((23, 4)), np.sign(rng.standard_normal(23))
    own = adom.LogisticRegression(A, b, 5, l2=0.1)
    made = adom.LogisticRegression.from_nodes(split(A, b, 5, "contiguous"), l2=0.1)
    x = rng.standard_normal((5, 4))
    with jax.enable_x64(True):
        assert (np.asarray(own.gradient_rows(x)) == np.asarray(made.gradient_rows(x))).all()


def test_by_label_at_most_one_node_a_boundary_has_two_classes():
    labels = np.random.default_rng(1).choice([-1, 1], 1000, p=[0.7, 0.3])
    mixed = [len(np.unique(labels[rows])) > 1 for rows in shares(labels, 10, "label")]
    assert sum(mixed) <= 1
    shuffled = [labels[rows].mean() for rows in shares(labels, 10, "shuffled")]
    assert np.ptp(shuffled) < 0.5


def spread(concentration):
    """Return how much the nodes' shares of a class vary, in units of their mean, over seeds."""
    labels = np.repeat([-1, 1], 5000)
    counts = np.array(
        [
            [
                (labels[rows] == 1).sum()
                for rows in shares(labels, 20, "dirichlet", seed=seed, concentration=concentration)
            ]
            for seed in range(20)
        ]
    )
    assert (counts.sum(axis=1) == 5000).all()
    return float(counts.std() / counts.mean())


@pytest.mark.parametrize("concentration", [0.3, 1.0, 30.0])
def test_dirichlet_proportions_vary_as_they_should(concentration):
    # A share p of Dir(a, ..., a) over n nodes has mean 1/n and variance (n - 1) / (n^2 (n a + 1)).
    expected = np.sqrt(19 / (20 * concentration + 1))
    assert spread(concentration) == pytest.approx(expected, rel=0.2)


def test_the_seed_decides():
    labels = np.repeat([-1, 1], 50)
    for how, depends in {"contiguous": False, "label": False, "shuffled": True, "dirichlet": True}.items():
        first, second = (np.concatenate(shares(labels, 4, how, seed=seed)).tolist() for seed in (0, 1))
        assert (first != second) is depends


def test_samples_stay_with_their_labels_and_sparse_stays_sparse():
    A = sp.csr_array(np.arange(40.0).reshape(20, 2))
    b = np.tile([1, -1], 10)
    for how in SPLITS:
        for features, labels in split(A, b, 3, how):
            assert sp.issparse(features)
            assert (np.where(features.toarray()[:, 0] % 4 == 0, 1, -1) == labels).all()
    dense = split(A.toarray().tolist(), b.tolist(), 3)
    assert all(isinstance(features, np.ndarray) for features, _ in dense)
    assert adom.LogisticRegression.from_nodes(split(sp.coo_array(A), b, 3), l2=1.0).nodes == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"how": "sorted"}, "samples cannot be split 'sorted'; known: contiguous, shuffled, label, dirichlet"),
        ({"nodes": 5}, "5 nodes cannot share 4 samples: every node needs one at least; use nodes=4 or fewer"),
        ({"nodes": 0}, "nodes must be a whole number of at least 1, got 0"),
        ({"nodes": 1.5}, "nodes must be a whole number"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"how": "dirichlet", "concentration": 0.0}, "concentration must be positive and at most 1e"),
        ({"how": "dirichlet", "concentration": float("nan")}, "concentration must be positive"),
        ({"labels": [1, 2, 3]}, "do not match"),
        ({"features": [1.0, 2.0, 3.0, 4.0]}, "do not match"),
    ],
)
def test_refusals(arguments, message):
    usual = {"features": np.ones((4, 2)), "labels": [1, -1, 1, -1], "nodes": 2}
    with pytest.raises(InputError, match=message):
        split(**{**usual, **arguments})
