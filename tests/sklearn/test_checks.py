"""scikit-learn's own suite for estimators, all with their defaults."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from adom import sklearn


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([getattr(sklearn, name)() for name in sklearn.__all__])
def test_scikit_learn(estimator, check):
    check(estimator)
