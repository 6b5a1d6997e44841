"""scikit-learn's own suite for estimators, both with their defaults."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from adom.sklearn import DecentralizedLogisticRegression, DecentralizedRidge

ESTIMATORS = [DecentralizedLogisticRegression(), DecentralizedRidge()]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_the_suite_is_whole(estimator):
    names = {check.func.__name__ for _, check in estimator_checks_generator(estimator)}
    assert len(names) > 40
    assert {"check_sample_weight_equivalence_on_sparse_data", "check_fit2d_1sample", "check_set_params"} <= names
