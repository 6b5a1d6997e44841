"""Synthetic data: the samples of scikit-learn's `make_classification`, without loading scikit-learn."""

import numpy as np

from ..errors import InputError
from ..util.checks import check_whole

CLUSTERS = 4
INFORMATIVE = 2
REDUNDANT = 2
FLIPPED = 0.01
"""Share of labels that are redrawn at random."""
MOST_NUMBERS = 2**31
"""Limit on the size of the features (16 GB)."""


def check_classification(samples: int, dim: int, seed: int) -> None:
    """Refuse what `classification` cannot make, before anything else is made."""
    check_whole("dim", dim, INFORMATIVE + REDUNDANT, "two features of synthetic data inform, two repeat; e.g. dim=40")
    check_whole("seed", seed, 0, "e.g. seed=0", 2**32 - 1)
    if samples * dim > MOST_NUMBERS:
        raise InputError(
            f"{samples} samples x {dim} features take {samples * dim * 8 // 10**9} GB; take fewer nodes, samples or "
            "features"
        )


def classification(samples: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the features and labels of ``make_classification(samples, dim, random_state=seed)``.

    Two of at least four features are informative: they form clusters around the corners of a square, and the two upper
    clusters have label 1. Two more features are linear combinations of these; the others are noise. Finally a few
    labels are redrawn, and samples and features are shuffled.

    Examples
    --------
    >>> features, labels = classification(100, 5, seed=0)
    >>> features.shape, np.unique(labels).tolist()
    ((100, 5), [0, 1])
    """
    check_classification(samples, dim, seed)
    rng = np.random.RandomState(seed)
    features, labels = np.zeros((samples, dim)), np.zeros(samples, dtype=int)
    informative = features[:, :INFORMATIVE]
    informative[...] = rng.standard_normal(size=informative.shape)
    ends = np.cumsum([samples // CLUSTERS + (cluster < samples % CLUSTERS) for cluster in range(CLUSTERS)])
    for cluster, members in enumerate(np.split(np.arange(samples), ends[:-1])):
        corner = np.array([2.0 * (cluster // 2) - 1, 2.0 * (cluster % 2) - 1])
        covariance = 2 * rng.uniform(size=(INFORMATIVE, INFORMATIVE)) - 1
        informative[members] = np.dot(informative[members], covariance) + corner
        labels[members] = cluster % 2
    mixture = 2 * rng.uniform(size=(INFORMATIVE, REDUNDANT)) - 1
    noise = INFORMATIVE + REDUNDANT
    features[:, INFORMATIVE:noise] = np.dot(informative, mixture)
    features[:, noise:] = rng.standard_normal(size=(samples, dim - noise))
    flipped = rng.uniform(size=samples) < FLIPPED
    labels[flipped] = rng.randint(2, size=flipped.sum())
    for axis in (0, 1):
        order = np.arange(features.shape[axis])
        rng.shuffle(order)
        features = features.take(order, axis=axis)
        labels = labels[order] if axis == 0 else labels
    return features, labels
