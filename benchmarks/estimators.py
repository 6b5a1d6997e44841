"""Fits of the estimators with their defaults, by several methods, on networks that change and that do not.

Run: ``make bench-estimators`` or ``python benchmarks/estimators.py [--methods acc-gt,adom+,adom]``. Nine models, of
data sets that scikit-learn brings and one that it draws, on seven networks. Prints for each method how many of the fits
converged, and its rounds over those of the best method; ``--all`` prints every fit.
"""

import argparse
import warnings

import numpy as np
from rich.progress import track
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine, make_classification
from sklearn.preprocessing import StandardScaler

import adom
from adom.sklearn import DecentralizedLogisticRegression, DecentralizedRidge


def scaled(data):
    """Return standardised features, and labels."""
    return StandardScaler().fit_transform(data[0]), data[1]


def models():
    """Return name -> estimator, its options, features and targets."""
    cancer, drawn = scaled(load_breast_cancer(return_X_y=True)), make_classification(2000, 20, random_state=1)
    diabetes = load_diabetes(return_X_y=True)
    logistic, ridge = DecentralizedLogisticRegression, DecentralizedRidge
    return {
        "breast cancer, C = 0.01": (logistic, {"C": 0.01}, cancer),
        "breast cancer, C = 1": (logistic, {}, cancer),
        "breast cancer, C = 100": (logistic, {"C": 100.0}, cancer),
        "wine": (logistic, {}, scaled(load_wine(return_X_y=True))),
        "iris": (logistic, {}, scaled(load_iris(return_X_y=True))),
        "drawn": (logistic, {}, drawn),
        "ridge, diabetes": (ridge, {}, diabetes),
        "ridge, diabetes, alpha = 0.01": (ridge, {"alpha": 0.01}, diabetes),
        "ridge, drawn": (ridge, {}, drawn),
    }


def networks():
    """Return name -> nodes and network."""
    n = adom.networks
    ring = n.ring(16)
    return {
        "expander": (None, "expander"),
        "ring": (20, "ring"),
        "path": (10, "path"),
        "star": (15, "star"),
        "geometric": (30, n.geometric(30, chi=60, graphs=50, seed=0)),
        "ring and star": (16, n.alternate([ring, n.star(16)], every=10)),
        "failing ring": (16, n.failing(ring, 0.2, graphs=50, seed=0)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--methods", default="acc-gt,adom+,adom")
    parser.add_argument("--all", action="store_true", help="print every fit")
    given = parser.parse_args()
    methods = given.methods.split(",")
    rounds = {}
    places = [(name, on) for name in models() for on in networks()]
    for name, on in track(places, "fits"):
        estimator, options, (features, targets) = models()[name]
        nodes, network = networks()[on]
        found = []
        for method in methods:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = estimator(nodes=nodes, network=network, method=method, **options).fit(features, targets)
            found.append(model.n_iter_ if model.result_.status == "converged" else np.inf)
        rounds[name, on] = found
        if given.all:
            kappa = model.result_.provenance["problem"]["kappa"]
            print(f"| {name} | {on} | {kappa:,.0f} | {' | '.join(f'{n:,.0f}' for n in found)} |", flush=True)
    table = np.array(list(rounds.values()))
    best = table.min(axis=1)
    print("\n| method | fits that converged | rounds over the best method's, in the middle | at most |")
    print("| --- | --: | --: | --: |")
    for method, column in zip(methods, table.T, strict=True):
        done = np.isfinite(column)
        over = column[done] / best[done]
        print(f"| `{method}` | {done.sum()} of {len(column)} | {np.median(over):.2f} | {over.max():.1f} |")


if __name__ == "__main__":
    main()
