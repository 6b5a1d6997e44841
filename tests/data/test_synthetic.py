import numpy as np
import pytest
from sklearn.datasets import make_classification

from adom.data.synthetic import classification


@pytest.mark.parametrize(("samples", "dim", "seed"), [(10_000, 40, 0), (1, 4, 0), (17, 4, 3), (999, 100, 2**31)])
def test_the_numbers_are_those_of_scikit_learn(samples, dim, seed):
    ours, theirs = classification(samples, dim, seed), make_classification(samples, dim, random_state=seed)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.dtype == other.dtype
        assert np.array_equal(mine, other)
