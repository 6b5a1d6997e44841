"""Input of problems: everything given can be computed with, or is refused in one line."""

import warnings
from fractions import Fraction
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import adom
from adom.problems import limits
from adom.problems.samples import largest_curvature
from adom.problems.shifted import Shifted

A = np.array([[-2.0, 0.0], [2.0, -1.0], [1.0, -2.0], [0.0, 2.0], [-1.0, 1.0], [-2.0, 1.0]])
b = np.array([0, 1, 0, 1, 1, 0])
HUGE = 10**400

MAKERS = {
    "logistic": lambda A, b: adom.LogisticRegression(A, b, nodes=2, l2=0.1),
    "nodes": lambda A, b: adom.LogisticRegression.from_nodes([(A, b), (A, b)], l2=0.1),
    "squares": lambda A, b: adom.LeastSquares([(A, b)], l2=0.1),
    "softmax": lambda A, b: adom.SoftmaxRegression([(A, b)], classes=2, l2=0.1),
}
FEATURES = {
    "1e80": A * 1e80,
    "1e150": A * 1e150,
    "1e200": A * 1e200,
    "sparse 1e200": sp.csr_array(A * 1e200),
    "beyond float64": A.astype(np.longdouble) * np.longdouble("1e400"),
    "whole numbers beyond float64": [[HUGE, 1]] * 6,
    "nan": np.where(A == 2, np.nan, A),
    "none in objects": np.where(A == 2, None, A.astype(object)),
    "text": A.astype(str),
    "complex": A + 0j,
    "sparse complex": sp.csr_array(A * 1j),
    "records": np.array([(1.0, 2.0)] * 6, dtype=[("a", "f8"), ("b", "f8")]),
    "times": A.astype("datetime64[s]"),
    "masked": np.ma.masked_equal(A, 2),
    "gaps of pandas": pd.DataFrame(A).mask(A == 2).convert_dtypes(),
    "words of pandas": pd.DataFrame({"a": list("abcdef")}),
    "none": None,
    "a generator": (row for row in A),
    "rows of unlike lengths": [[1, 2], [3]] * 3,
    "no features": np.zeros((6, 0)),
    "sparse no features": sp.csr_array((6, 0)),
    "one axis": A[:, 0],
    "sparse of one axis": sp.coo_array(np.ones(6)),
    "three axes": A[None],
}
LABELS = {
    "none among them": np.array([0, 1, None, 1, 0, 1], dtype=object),
    "words and numbers": np.array([0, "a", 0, 1, "a", 0], dtype=object),
    "complex": b * 1j,
    "times": b.astype("datetime64[s]"),
    "records": np.array([(1,)] * 6, dtype=[("a", int)]),
    "masked": np.ma.masked_equal(b, 1),
    "gaps of pandas": pd.Series([0, 1, None, 1, 0, 1], dtype="Int64"),
    "sparse": sp.csr_array(b[:, None]),
    "rows": [[1], [1, 2]] * 3,
    "too large": [0, HUGE] * 3,
    "two axes": b[:, None],
    "one number": 1,
    "none": None,
}


def refused(make: Any, *given: Any, match: str | None = None) -> None:
    """Assert that this is refused in one line, and that nothing else is said."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(adom.InputError, match=match) as caught:
            make(*given)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
def test_features_that_cannot_be_computed_with(make: Any, features: Any) -> None:
    refused(make, features, b)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_that_cannot_be_computed_with(make: Any, labels: Any) -> None:
    refused(make, A, labels)


def test_large_numbers_say_value_rule_and_remedy() -> None:
    rule = r"\[0, 0\] is -2e\+200; numbers must be at most 1e\+75 in size, .*: scale them down"
    refused(MAKERS["logistic"], A * 1e200, b, match="features" + rule)
    refused(MAKERS["nodes"], sp.csr_array(A * 1e200), b, match="node 0's features" + rule)
    refused(MAKERS["squares"], A, b * 1e200, match=r"targets\[1\] is 1e\+200")
    refused(adom.Quadratic, [np.eye(2) * 1e200], [[1.0, 1.0]], match=r"H\[0, 0, 0\] is 1e\+200")
    refused(adom.Quadratic, [np.eye(2)], [[1.0, 1e200]], match=r"c\[0, 1\] is 1e\+200")
    refused(adom.Quadratic, [np.eye(2) * 1e-200], [[1.0, 1.0]], match="mu of node 0 is 1e-200; it must lie between")


@pytest.mark.parametrize("scale", [1e-200, 1e-80, 1e70])
def test_what_is_within_the_rule_is_computed_with(scale: float) -> None:
    problem = adom.LogisticRegression(A * scale, b, nodes=2, l2=max(1e-3, scale) ** 2)
    assert np.isfinite([problem.mu, problem.L, *problem.solution()]).all()


@pytest.mark.parametrize(
    "features",
    [
        A.tolist(),
        np.asfortranarray(A),
        np.repeat(A, 2, axis=1)[:, ::2],
        A.astype(object),
        A.astype(np.float16),
        A.astype(np.longdouble),
        A.astype(int),
        np.ma.masked_greater(A, 5),
        pd.DataFrame(A),
        sp.csc_array(A),
        sp.coo_matrix(A),
        sp.csr_array(A.astype(np.int8)),
    ],
)
def test_all_ways_to_write_the_same_numbers(features: Any) -> None:
    expected = MAKERS["logistic"](A, b)
    found = adom.LogisticRegression(features, pd.Series(b, dtype="category"), nodes=2, l2=0.1)
    np.testing.assert_allclose(found.solution(), expected.solution(), rtol=1e-9)
    np.testing.assert_allclose(found.L_nodes, expected.L_nodes, rtol=1e-12)


NUMBERS = ["a", "1", True, np.bool_(True), float("nan"), -1.0, 0, 1j, np.complex128(2), [1.0], np.ones(3), HUGE, np.inf]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: str(number)[:20])
def test_numbers_that_are_none_or_out_of_range(number: Any) -> None:
    refused(lambda: adom.LogisticRegression(A, b, nodes=2, l2=number), match="l2 must be")
    refused(lambda: adom.LogisticRegression(A, b, nodes=2, kappa=number), match="kappa must be")
    refused(lambda: MAKERS["logistic"](A, b).with_l2(number), match="l2 must be")
    refused(lambda: adom.LogisticRegression(A, b, nodes=number, l2=1.0), match="nodes must be")
    refused(lambda: adom.SoftmaxRegression([(A, b)], classes=number, l2=1.0), match="classes must be")
    refused(lambda: adom.LogisticRegression.from_nodes([(A, b)], longest=number, l2=1.0), match="longest must be")
    for given in ({"mu": number, "L": 1.0}, {"mu": 1e-3, "L": number}):
        refused(lambda given=given: from_loss(**given), match="must be a positive number, or 2 of them")
    refused(lambda: from_loss(mu=1.0, L=1.0, dim=number), match="dim must be")


def half_square(x: Any, centre: Any) -> Any:
    return 0.5 * ((x - centre.sum()) ** 2).sum()


def from_loss(loss: Any = half_square, data: Any = None, **given: Any) -> Any:
    return adom.from_loss(loss, np.ones((2, 3)) if data is None else data, **{"mu": 1.0, "L": 1.0, "dim": 3, **given})


class Unhashable:
    __hash__ = None  # type: ignore[assignment]  # as Python does for a class with __eq__

    def __call__(self, x: Any, centre: Any) -> Any:
        return half_square(x, centre)


def logistic(features: Any = A, labels: Any = b, **given: Any) -> Any:
    return adom.LogisticRegression(features, labels, **{"nodes": 2, **(given or {"l2": 1.0})})


def from_nodes(*data: Any, **given: Any) -> Any:
    return adom.LogisticRegression.from_nodes(list(data) or [(A, b - 1), (A[:4], b[:4] - 1)], **{"l2": 1.0, **given})


def softmax(*data: Any, **given: Any) -> Any:
    return adom.SoftmaxRegression(list(data) or [(A, b), (A[:4], b[:4])], **{"classes": 2, "l2": 1.0, **given})


def shifted(centre: Any, tilt: Any) -> Any:
    return Shifted(adom.Quadratic([np.eye(3)] * 4, np.ones((4, 3))), centre, tilt)


def square(x: Any, centre: Any) -> Any:
    return ((x - centre) ** 2).sum() / 2


E, PAIR = np.eye(2), (np.ones((2, 2)), [0, 1])
REFUSED = [
    (lambda: logistic(labels=[0, 1, 2, 1, 0, 1], l2=1.0), "two classes, got 3: 0, 1, 2"),
    (lambda: logistic(labels=np.ones(6), l2=1.0), "two classes, got 1"),
    (lambda: logistic(labels=b[:5], l2=1.0), r"labels must have shape \(6,\).*got \(5,\)"),
    (lambda: logistic(labels=np.where(A[:, 0] == 1, np.nan, b), l2=1.0), r"labels\[2\] is nan"),
    (lambda: logistic(np.where(A == -1, np.inf, A), l2=1.0), r"features\[1, 1\] is inf"),
    (lambda: logistic(sp.csr_array(np.where(A == -1, np.nan, A)), l2=1.0), r"features\[1, 1\] is nan"),
    (lambda: logistic(A[:, 0], l2=1.0), r"shape \(samples, features\), got \(6,\)"),
    (lambda: logistic(A.astype(str), l2=1.0), "features must be real numbers"),
    (lambda: logistic(kappa=1.0), r"kappa must be a finite number above 1 and at most 1e\+15, got 1.0; it is L / mu"),
    (lambda: logistic(kappa=2e15), r"kappa must be .* at most 1e\+15, got 2000000000000000.0; .*float64 sees no more"),
    (lambda: logistic(l2=1.0).with_kappa(1), "kappa must be a finite number above 1 .*, got 1"),
    (lambda: logistic(l2=1.0).with_l2(0.0), "l2 must be a finite number above 0, got 0.0; it makes every f_i strongly"),
    (lambda: logistic(l2=1.0, kappa=2.0), "exactly one of l2 and kappa"),
    (lambda: logistic(l2=None), "exactly one of l2 and kappa"),
    (lambda: logistic(0 * A, kappa=3.0), "every feature is zero"),
    (lambda: logistic(l2=1.0, nodes=7), "7 nodes cannot share 6 samples"),
    (lambda: logistic(l2=1.0, nodes=2.0), "nodes must be a whole number"),
    (lambda: adom.LogisticRegression.from_nodes([], l2=1.0), "no nodes"),
    (lambda: adom.LogisticRegression.from_nodes(None, l2=1.0), "data must be one .* pair for each node, got NoneType"),
    (lambda: from_nodes(*np.ones((2, 2))), "node 0 must be a pair"),
    (lambda: from_nodes(PAIR, (np.ones((0, 2)), [])), "node 1 is empty"),
    (lambda: from_nodes(PAIR, (np.ones((2, 3)), [0, 1])), "node 1 has 3 features but node 0 has 2"),
    (lambda: from_nodes(PAIR, (E, [0])), "node 1 has 2 samples but labels"),
    (lambda: from_nodes(PAIR, (np.full((2, 2), np.nan), [0, 1])), r"node 1's features\[0, 0\] is nan"),
    (lambda: from_nodes((A, b), (A, np.where(b, "yes", "no"))), "node 1's labels are <U3, node 0's int64"),
    (lambda: from_nodes(classes=(0, 1)), "labels must be 0 or 1, got -1.* for sample"),
    (lambda: from_nodes(classes=(1, -1)), r"classes must be two numbers, the smaller first, got \(1, -1\)"),
    (lambda: from_nodes(classes=(-1, 0, 2)), "classes must be two numbers"),
    (lambda: from_nodes(classes=("a", 1)), "classes must be two numbers"),
    (lambda: from_nodes(classes=(-1, float("nan"))), "classes must be two numbers"),
    (lambda: from_nodes(longest=5), "longest must be a whole number of at least 6, got 5; node 0 has 6 samples"),
    (lambda: from_nodes(weights=3), "weights must be one array for each node, got 3"),
    (lambda: from_nodes(weights=["a", "b"]), "node 0's weights must be real numbers"),
    (lambda: from_nodes(weights=[np.full(6, 1e300)] * 2), r"node 0's weights\[0\] is 1e\+300"),
    (lambda: from_nodes(weights=[sp.csr_array(A)] * 2), "node 0's weights must be a dense array"),
    (lambda: from_nodes(weights=[np.ones(6)]), "weights must be one array for each of the 2 nodes, got 1"),
    (lambda: from_nodes(weights=[np.ones(6), np.ones(3)]), "node 1 has 4 samples and its weights"),
    (lambda: from_nodes(weights=[np.ones(6), -np.ones(4)]), "finite numbers of at least 0"),
    (lambda: softmax((A, 2 * b)), "labels must be whole numbers from 0 to 1, got .*2"),
    (lambda: softmax((A, b * 1.0)), "labels must be whole numbers from 0 to 1, got .*0.0"),
    (lambda: softmax(classes=1), "classes must be a whole number of at least 2, got 1"),
    (lambda: adom.LeastSquares([(E, ["a", "b"])], l2=1.0), "targets must be real numbers"),
    (lambda: adom.LeastSquares([(E, [1.0, np.nan])], l2=1.0), r"node 0's labels\[1\] is nan"),
    (lambda: adom.LeastSquares([(E, [1.0])], l2=1.0), "one label for every"),
    (lambda: adom.Quadratic(E, np.ones((2, 2))), r"H must have shape \(nodes, dim, dim\), got \(2, 2\)"),
    (lambda: adom.Quadratic([E] * 3, np.ones((2, 2))), r"to match H, got \(2, 2\)"),
    (lambda: adom.Quadratic([E, [[1, 2], [0, 1]]], np.ones((2, 2))), r"H\[1\] is not symmetric"),
    (lambda: adom.Quadratic([E, np.diag([1, -1])], np.ones((2, 2))), r"H\[1\] is not positive definite.*-1"),
    (lambda: adom.Quadratic([E, np.diag([1, np.nan])], np.ones((2, 2))), r"H\[1, 1, 1\] is nan"),
    (lambda: adom.Quadratic([E] * 2, [[1, np.inf], [0, 0]]), r"c\[0, 1\] is inf"),
    (
        lambda: shifted(np.zeros(2), np.zeros((4, 3))),
        r"shapes \(3,\) and \(4, 3\) to match .*, got \(2,\) and \(4, 3\)",
    ),
    (lambda: shifted(np.zeros(3), np.zeros((3, 3))), r"got \(3,\) and \(3, 3\)"),
    (lambda: shifted([0.0, np.nan, 0.0], np.zeros((4, 3))), r"centre\[1\] is nan"),
    (lambda: from_loss(3), "loss must be a function"),
    (lambda: from_loss(Unhashable()), "must be hashable, and a Unhashable is not; wrap it in a function"),
    (lambda: from_loss(lambda x, c: 3), "it returned int.*, not a real number"),
    (lambda: from_loss(lambda x, c: 1j * (x @ x)), "it returned complex128, not a real number"),
    (lambda: from_loss(lambda x, c: x - c), "not a scalar"),
    (lambda: from_loss(lambda x, c: x - c, dim=None), "cannot be told from the data"),
    (lambda: from_loss(lambda x, c: x @ x, np.ones((3, 2, 4)), dim=None), r"accepts \[2, 4\]\); give dim="),
    (lambda: from_loss(square, dim=5), "does not work for x of length 5"),
    (lambda: from_loss(dim=-1), "dim must be a whole number of at least 1, got -1; it is the length of x"),
    (lambda: from_loss(dim=10**12), "dim must be at most"),
    (lambda: from_loss(data=np.float64(1.0)), "leading axis of nodes"),
    (lambda: from_loss(data=(np.ones((2, 3)), np.ones(4))), "leading sizes"),
    (lambda: from_loss(data=np.array([[1.0, np.nan]])), r"data, array 0\[0, 1\] is nan"),
    (lambda: from_loss(data=np.full((2, 3), 1e200)), r"data, array 0\[0, 0\] is 1e\+200"),
    (lambda: from_loss(data=np.array([["a"], ["b"]])), "data, array 0, must be numbers, got an array of <U1"),
    (lambda: from_loss(data=sp.csr_array(np.ones((2, 3)))), "must be a dense array, got a sparse one"),
    (lambda: from_loss(L=[1.0, 2.0, 3.0]), "L must be a positive number, or 2 of them"),
    (lambda: from_loss(mu=2.0, L=1.0), "mu must be at most L"),
    (lambda: from_loss(mu=0.1, L=0.5), r"f_0 has curvature 1 at 0, outside \[mu, L\] = \[0.1, 0.5\]"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_refused_in_one_line_that_says_why(make: Any, message: str) -> None:
    refused(make, match=message)


def test_nodes_of_one_sample_and_of_zeros() -> None:
    problem = adom.LogisticRegression.from_nodes([(A[:1], b[:1]), (np.zeros((1, 2)), [1])], l2=0.5)
    assert problem.L_nodes.tolist() == [0.5 + 4 / 4, 0.5]
    assert np.isfinite(problem.solution()).all()


def test_what_does_not_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "memory", lambda: 2.0**30)
    refused(lambda: from_loss(dim=10**8), match=r"2 nodes x 100000000 coordinates: a run would hold about 25.6 GB")
    refused(lambda: adom.SoftmaxRegression([(A, b)], classes=10**8, l2=1.0), match="1 nodes x 200000000 coordinates")
    uneven = [(np.ones((10**5, 2)), np.arange(10**5) % 2), *[(A, b)] * 1000]
    refused(
        lambda: adom.LogisticRegression.from_nodes(uneven, l2=1.0),
        match="1001 nodes filled up to 100000 samples x 2 features take 1.6 GB, .*scipy.sparse",
    )
    adom.LogisticRegression.from_nodes([(sp.csr_array(one), labels) for one, labels in uneven], l2=1.0)


def test_a_large_sparse_node_without_entries() -> None:
    empty, counts = sp.csr_array((1200, 1100)), np.array([1200])
    assert largest_curvature(empty, counts).tolist() == [0.0]
    stored = sp.csr_array(([0.0], ([5], [7])), shape=(1200, 1100))  # an entry that is 0
    assert largest_curvature(stored, counts).tolist() == [0.0]
    one = sp.csr_array(([3.0], ([5], [7])), shape=(1200, 1100))
    assert largest_curvature(one, counts) == pytest.approx([9 / 1200])


def test_a_large_sparse_node_of_equal_eigenvalues() -> None:
    alike = sp.csr_array(sp.eye_array(1100) * 2.0)
    assert largest_curvature(alike, np.array([1100])) == pytest.approx([4 / 1100], rel=1e-9)
    rng = np.random.default_rng(0)
    random = sp.random_array((1300, 1200), density=0.01, rng=rng, format="csr")
    top = np.linalg.norm(random.toarray(), 2) ** 2 / 1300
    assert largest_curvature(random, np.array([1300])) == pytest.approx([top], rel=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_gradients_of_numpy_arrays_outside_double_precision(kind: Any) -> None:
    assert not jax.config.jax_enable_x64
    problem, x = MAKERS["logistic"](kind(A), b), np.array([0.3, -0.2])
    rows = np.asarray(problem.gradient_rows(np.tile(x, (2, 1))))
    np.testing.assert_allclose(rows.mean(axis=0), problem.mean_gradient(x), rtol=1e-5)


def test_fractions_are_numbers() -> None:
    assert from_loss(mu=[Fraction(1, 2), Fraction(1, 1)]).mu == 0.5
    assert adom.LogisticRegression(A, b, nodes=2, l2=Fraction(1, 2)).mu == 0.5
