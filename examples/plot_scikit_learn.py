"""
In a scikit-learn pipeline
==========================

``adom.sklearn`` has estimators whose samples lie at the nodes of a changing network.
They go into pipelines, searches and cross-validation like any other, and find what
scikit-learn finds with all samples in one place.
"""

# %%
# The breast cancer data: 569 patients, 30 features, two classes. ``split="label"`` is
# the hard case: patients are dealt out sorted by class, so that hardly any clinic has
# both kinds, and most could learn nothing by themselves.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from adom.sklearn import DecentralizedLogisticRegression

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

clinics = DecentralizedLogisticRegression(nodes=10, split="label", C=0.1, tol=1e-6)
together = make_pipeline(StandardScaler(), clinics).fit(X_train, y_train)

# %%
# The same pipeline with all samples in one place.

central = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, tol=1e-8)).fit(
    X_train, y_train
)
for name, model in {"over the network": together, "in one place": central}.items():
    print(f"accuracy {name}: {model.score(X_test, y_test):.4f}")

# %%
# What the run was like: one row of ``result_.x`` for each clinic, all alike at the end.

clinics.result_

# %%
# Coefficient by coefficient they agree, and the clinics have come to agree among
# themselves.

ours, theirs = clinics.coef_.ravel(), central[-1].coef_.ravel()
history = clinics.history_.set_index("round")
with plt.style.context("adom.styles.page"):
    figure, (left, right) = plt.subplots(1, 2, width_ratios=(1, 1.6))
    left.plot(theirs, theirs, color="0.7")
    left.plot(theirs, ours, "o")
    left.set(xlabel="coefficient, samples in one place", aspect="equal")
    left.set(ylabel="coefficient, over the network")
    right.semilogy(history["error"], label="distance to the minimiser")
    right.semilogy(history["consensus"], label="distance to one another")
    right.set(
        xlabel="communication rounds", ylabel="squared distance, sum over clinics"
    )
    right.legend()
plt.show()
