"""Data that lie apart, for the tests: uneven files of four nodes, and scikit-learn's answer on all of them."""

import numpy as np
import scipy.sparse as sp

import adom
from adom.data.node_shards import write_shard

from .mpi_program import data

NODES = ("east", "north", "south", "west")
SHARES = (0.1, 0.35, 0.7)
LOADERS = {"cancer": "load_breast_cancer", "wine": "load_wine", "diabetes": "load_diabetes"}
SETTINGS = {
    "cancer": {"scale": True, "C": 0.02},
    "wine": {"scale": True, "C": 0.03},
    "diabetes": {"scale": True, "model": "ridge", "alpha": 50.0},
    "words": {"scale": True, "C": 0.0005},
}
TOL = 4 * 2e-7**2  # certainly; the error is less


class Alone:
    """The links of a process that has all nodes."""

    def everyone(self, values):
        return values


def frame(name):
    from sklearn import datasets  # here, since ranks read this file only for its settings

    table = getattr(datasets, LOADERS[name])(as_frame=True).frame.sample(frac=1, random_state=0)
    if name == "wine":
        table["target"] = table["target"].map({0: "barbera", 1: "nebbiolo", 2: "grignolino"})
    return table


def words(samples=100, features=20_000, each=30):
    """Sparse rows like those of texts: few words are frequent, most are rare, and more than a matrix is held for."""
    rng = np.random.default_rng(0)
    columns = np.minimum((3 * rng.pareto(0.6, (samples, each))).astype(np.int32), features - 1)
    rows = np.repeat(np.arange(samples, dtype=np.int32), each)
    A = sp.coo_array((np.ones(rows.size), (rows, columns.ravel())), shape=(samples, features)).tocsr()
    A.sum_duplicates()
    A.data = 1 + np.log(A.data)
    score = A[:, [2, 5, 9, 20]].toarray() @ [1.0, -1.0, 1.0, -1.0] + 0.3 * rng.standard_normal(samples)
    return A, np.where(score > 0, 1, -1)


def write(name, folders):
    """Write one file and one shard a node, each into a folder of its own (or all into the only one)."""
    from sklearn.datasets import dump_svmlight_file

    if name == "words":
        A, y = words()
    else:
        table = frame(name)
    samples = len(y) if name == "words" else len(table)
    parts = np.split(np.arange(samples), [int(share * samples) for share in SHARES])
    for number, (node, rows) in enumerate(zip(NODES, parts, strict=True)):
        folder = folders[number % len(folders)]
        folder.mkdir(parents=True, exist_ok=True)
        if name == "words":
            dump_svmlight_file(A[rows], y[rows], str(folder / f"{node}.svm"), zero_based=False)
            write_shard(folder / f"{node}.svm", node, folder / "shards", dim=A.shape[1])
        else:
            table.iloc[rows].to_csv(folder / f"{node}.csv", index=False)
            write_shard(folder / f"{node}.csv", node, folder / "shards", target="target")


def pooled(name):
    """Return the coefficients and the intercept of scikit-learn on the pooled, scaled data, as exactly as it gives."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.preprocessing import StandardScaler

    if name == "words":
        X, y = words()
    else:
        table = frame(name)
        X, y = table.drop(columns="target").to_numpy(), table["target"]
    penalty = {key: value for key, value in SETTINGS[name].items() if key in ("C", "alpha")}
    X = StandardScaler(with_mean=name != "words").fit_transform(X)
    if name == "diabetes":
        model = Ridge(**penalty).fit(X, y)
    else:
        solver = "newton-cg" if name == "words" else "newton-cholesky"
        model = LogisticRegression(**penalty, tol=1e-13, max_iter=10_000, solver=solver).fit(X, y)
    return np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)


def split(folder):
    """Write samples of mpi_program as one file, and split it over six nodes."""
    lines = [
        f"{label} " + " ".join(f"{column + 1}:{value:.4f}" for column, value in enumerate(row))
        for features, labels in data(nodes=12)
        for row, label in zip(features, labels, strict=True)
    ]
    (folder / "data.svm").write_text("\n".join(lines) + "\n")
    return adom.data.write_shards(folder / "data.svm", 6, folder / "shards", by="label")


def assert_is_the_pooled_one(model, name):
    coefficients, intercept = pooled(name)
    np.testing.assert_allclose(model.coefficients, coefficients, rtol=0, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(model.intercept, intercept, rtol=0, atol=1e-6, err_msg=name)
