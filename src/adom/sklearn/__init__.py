"""Estimators for scikit-learn whose `fit` runs a decentralized method over a simulated, changing network.

========================================  ===========================================================
`DecentralizedLogisticRegression`         the objective of `sklearn.linear_model.LogisticRegression`
                                          (l2), two classes or many
`DecentralizedRidge`                      the objective of `sklearn.linear_model.Ridge`
========================================  ===========================================================

The samples are split over nodes, which talk only to their current neighbours and agree on scikit-learn's answer.
`docs/sklearn.md` says how rounds are counted.
"""

from adom.sklearn.estimators import DecentralizedLogisticRegression, DecentralizedRidge

__all__ = ["DecentralizedLogisticRegression", "DecentralizedRidge"]
