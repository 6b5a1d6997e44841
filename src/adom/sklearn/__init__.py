"""Estimators for scikit-learn whose `fit` runs a decentralized method over a simulated, changing network.

========================================  ===========================================================
`DecentralizedLogisticRegression`         the objective of `sklearn.linear_model.LogisticRegression`:
                                          l2, and for two classes also l1, both, or no penalty
`DecentralizedRidge`                      the objective of `sklearn.linear_model.Ridge`
`DecentralizedElasticNet`                 the objective of `sklearn.linear_model.ElasticNet`
`DecentralizedPoissonRegressor`           the objective of `sklearn.linear_model.PoissonRegressor`
`DecentralizedGammaRegressor`             the objective of `sklearn.linear_model.GammaRegressor`
========================================  ===========================================================

The samples are split over nodes, which talk only to their current neighbours and agree on scikit-learn's answer.
`docs/sklearn.md` says how rounds are counted.
"""

from adom.sklearn.estimators import DecentralizedLogisticRegression
from adom.sklearn.regressors import (
    DecentralizedElasticNet,
    DecentralizedGammaRegressor,
    DecentralizedPoissonRegressor,
    DecentralizedRidge,
)

__all__ = [
    "DecentralizedElasticNet",
    "DecentralizedGammaRegressor",
    "DecentralizedLogisticRegression",
    "DecentralizedPoissonRegressor",
    "DecentralizedRidge",
]
