"""Samples count alike: what nodes of different sizes agree on is the fit to the pooled data."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import adom

SIZES = (3, 20, 8, 1)


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((sum(SIZES), 3)) + 0.3
    score = X @ [1.0, -2.0, 0.5] + rng.standard_normal(len(X))
    return X, score, np.split(np.arange(len(X)), np.cumsum(SIZES)[:-1])


def test_the_solution_is_that_of_the_pooled_data(parts):
    X, score, rows = parts
    two, three = (score > 0).astype(int), np.digitize(score, [-0.7, 0.7])
    N, options = len(X), {"count": "samples", "l2": 1 / (len(X) * 0.3)}
    pooled = LogisticRegression(C=0.3, fit_intercept=False, tol=1e-12)
    binary = adom.LogisticRegression.from_nodes([(X[r], two[r]) for r in rows], classes=(0, 1), **options)
    np.testing.assert_allclose(binary.solution(), pooled.fit(X, two).coef_[0], atol=1e-6)
    contiguous = adom.LogisticRegression(X, two, nodes=5, **options)
    np.testing.assert_allclose(contiguous.solution(), pooled.coef_[0], atol=1e-6)
    many = adom.SoftmaxRegression([(X[r], three[r]) for r in rows], classes=3, **options)
    np.testing.assert_allclose(many.solution().reshape(3, 3), pooled.fit(X, three).coef_, atol=1e-5)
    ridge = adom.LeastSquares([(X[r], score[r]) for r in rows], count="samples", l2=0.3 / N)
    np.testing.assert_allclose(ridge.solution(), Ridge(alpha=0.3, fit_intercept=False).fit(X, score).coef_, 1e-9)
    assert binary.weighting() == {"fewest": 1, "most": 20, "alike": "samples"}
    assert binary.model()["penalty"] == {"l2": binary.l2, "C": pytest.approx(0.3)}
    assert ridge.model()["penalty"] == {"l2": ridge.l2, "alpha": pytest.approx(0.3)}


def test_nodes_count_alike_in_the_papers_problem(parts):
    X, score, rows = parts
    pairs = [(X[r], (score[r] > 0).astype(int)) for r in rows]
    plain = adom.LogisticRegression.from_nodes(pairs, l2=0.1, classes=(0, 1))
    alike = adom.LogisticRegression.from_nodes(pairs, l2=0.1, classes=(0, 1), count="samples")
    assert plain.weighting()["alike"] == "nodes"
    assert plain.model()["penalty"] == {"l2": 0.1}  # C would mean another thing at every node
    assert np.abs(plain.solution() - alike.solution()).max() > 0.05
    with pytest.raises(adom.InputError, match=r"count must be .*, got 'sample'; did you mean 'samples'"):
        adom.LogisticRegression.from_nodes(pairs, l2=0.1, count="sample")


def test_equal_nodes_have_the_same_bits_either_way(parts):
    X, score, _ = parts
    one, other = (adom.LogisticRegression(X, score > 0, nodes=8, kappa=9.0, count=c) for c in ("nodes", "samples"))
    assert one.features.weights.tobytes() == other.features.weights.tobytes()
    assert one.l2 == other.l2


def test_shards_count_samples_and_take_c(parts, tmp_path):
    X, score, _ = parts
    labels = (score > 0).astype(int)
    np.savez(tmp_path / "all.npz", X=X, y=labels)
    folder = adom.data.write_shards(tmp_path / "all.npz", 4, tmp_path / "shards", by="dirichlet", alpha=0.4)
    shards = adom.Shards(folder, C=0.3)
    assert shards.samples.min() < shards.samples.max()
    pooled = LogisticRegression(C=0.3, fit_intercept=False, tol=1e-12).fit(X, labels)
    np.testing.assert_allclose(shards.whole().solution(), pooled.coef_[0], atol=1e-6)
    assert shards.open(1, 3).weighting()["alike"] == shards.weighting()["alike"] == "samples"
    assert shards.whole().l2 == shards.l2
    assert adom.Shards(folder, l2=0.3, count="nodes").weighting()["alike"] == "nodes"
    for wrong in ({"C": 0.3, "l2": 0.1}, {"C": 0.3, "kappa": 5.0}, {"C": 0.3, "count": "nodes"}, {"C": -1.0}, {}):
        with pytest.raises(adom.InputError):
            adom.Shards(folder, **wrong)
