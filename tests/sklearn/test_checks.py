"""scikit-learn's own suite for estimators, both with their defaults."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from adom.sklearn import DecentralizedLogisticRegression, DecentralizedRidge


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([DecentralizedLogisticRegression(), DecentralizedRidge()])
def test_scikit_learn(estimator, check):
    check(estimator)
