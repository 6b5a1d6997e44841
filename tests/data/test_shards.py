"""One file a node: it reads back to the bit, is opened only where it is needed, and is never taken for another."""

import hashlib
import json
import shutil
import tempfile
from pathlib import Path

import jax
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import adom
from adom import native
from adom.data import Shards, split, write_shards
from adom.data import shards as splitting
from adom.data.model import unnamed
from adom.data.node_shards import open_shard, put_shard
from adom.data.sample_files import Block, Table
from adom.data.shards import BY
from adom.errors import InputError
from adom.problems.features import DenseFeatures, SparseFeatures
from support import default_xla

from .conftest import TOY, refusal, samples

# ------------------------------------------------------------------------------------------------ writing


@settings(deadline=None, max_examples=25)  # each writes files
@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_reads_back_to_the_bit(value, label):
    matrix = sp.csr_array((np.array([value]), np.array([2]), np.array([0, 1, 1])), shape=(2, 4))
    table = Table(unnamed(4), "label", iter([Block(matrix, np.array([label, 1.0]))]))
    with tempfile.TemporaryDirectory() as folder:
        shard = open_shard(put_shard(Path("made"), table, "n", Path(folder)))
        assert shard.features.data.tobytes() == matrix.data.tobytes()
        assert shard.features.indices.tolist() == [2]
        assert shard.features.indptr.tolist() == [0, 1, 1]
        assert shard.target.tobytes() == np.array([label, 1.0]).tobytes()


@pytest.mark.parametrize("by", BY)
def test_each_file_has_the_samples_of_its_node(write, by):
    features, labels = samples(density=0.3)
    folder = write(features, labels, by=by, seed=3)
    expected = split(features, labels, 6, BY[by], seed=3)
    nodes = [f"node-{node:05d}" for node in range(6)]
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", *nodes]
    manifest = json.loads((folder / "manifest.json").read_text())
    for node, (A, b) in enumerate(expected):
        found = open_shard(folder / f"node-{node:05d}")
        table = found.features.toarray() if found.facts.layout == "sparse" else found.features
        assert table.tobytes() == A.toarray().tobytes()
        assert found.target.tobytes() == b.tobytes()
        assert manifest["files"][node]["samples"] == len(b)
    assert [manifest[name] for name in ("format", "dim", "by", "seed")] == ["adom-shards-3", 5, by, 3]
    assert (manifest["classes"], manifest["nonzeros"]) == ([0, 2.5], features.nnz)
    assert manifest["alpha"] == (0.5 if by == "dirichlet" else None)
    assert manifest["source"]["name"] == "data.npz"


def test_a_split_gives_the_bytes_that_it_always_gave(write, tmp_path):
    def contents():
        folder = write(*samples(), by="dirichlet", alpha=2.0, overwrite=True)
        return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}

    assert contents() == contents()
    (tmp_path / "data.svm").write_bytes(TOY)
    manifest = write_shards(tmp_path / "data.svm", 2, tmp_path / "toy", by="label") / "manifest.json"
    known = "99fce0326be85ca71538407bb94afce03e39a3691053e73c3abb4f3121c1aac6"
    assert hashlib.sha256(manifest.read_bytes()).hexdigest() == known


def test_a_libsvm_file_and_a_known_data_set(tmp_path, home, small_sets):
    file = tmp_path / "data.svm"
    file.write_bytes(TOY)
    one, other = write_shards(file, 2, tmp_path / "one"), write_shards("toy", 2, str(tmp_path / "other"))
    assert (one, other) == (tmp_path / "one", tmp_path / "other")
    shard = open_shard(one / "node-00000")
    assert (shard.features.tolist(), shard.target.tolist()) == ([[0.5, 0, 2], [0, 1, 0]], [1, -1])
    for node in ("node-00000", "node-00001"):
        assert (one / node / "shard.json").read_bytes() == (other / node / "shard.json").read_bytes()
    sources = [Shards(folder, l2=1.0).manifest.source for folder in (one, other)]
    assert [source.name for source in sources] == ["data.svm", "toy"]
    assert {source.sha256 for source in sources} == {small_sets["toy"].pieces[0].sha256}


def test_only_when_asked_are_shards_replaced(write):
    folder = write(*samples(), nodes=6)
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    (folder / "notes.txt").write_text("mine")
    (folder / "node-1").write_text("mine too")
    assert refusal(write, *samples(), nodes=3) == (
        f"{folder} holds a manifest.json already; take another folder, or overwrite=True (--overwrite) "
        "to replace its shards"
    )
    assert all(path.read_bytes() == content for path, content in before.items())
    write(*samples(seed=1), nodes=3, overwrite=True)
    assert sorted(path.name for path in folder.iterdir()) == [
        "manifest.json",
        "node-00000",
        "node-00001",
        "node-00002",
        "node-1",
        "notes.txt",
    ]
    assert Shards(folder, l2=1.0).whole().nodes == 3


def test_a_split_that_breaks_off_changes_nothing(write, tmp_path, monkeypatch):
    real = splitting.put_shard

    def broken(source, table, name, folder):
        if name == "node-00002":
            raise KeyboardInterrupt
        return real(source, table, name, folder)

    with monkeypatch.context() as patch:
        patch.setattr(splitting, "put_shard", broken)
        with pytest.raises(KeyboardInterrupt):
            write(*samples())
        assert list((tmp_path / "shards").iterdir()) == []
        patch.undo()
        before = Shards(write(*samples()), l2=1.0).listed()
        patch.setattr(splitting, "put_shard", broken)
        with pytest.raises(KeyboardInterrupt):
            write(*samples(seed=1), overwrite=True)
    again = Shards(tmp_path / "shards", l2=1.0)
    assert (again.listed(), again.whole().nodes) == (before, 6)


def test_a_split_is_of_shards_that_lie_apart_too(write):
    data = adom.NodeData(write(*samples()), l2=0.1)
    assert data.nodes == 6
    assert data.open(["node-00002"])[0].facts.samples == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": "contiguous"}, "samples cannot be split by 'contiguous'; known: rows, shuffled, label, dirichlet"),
        ({"alpha": 0.3}, "alpha=0.3 has no effect on a split by rows; it belongs to dirichlet"),
        ({"by": "dirichlet", "alpha": 0.0}, "alpha must be positive and at most 1e"),
        ({"by": "dirichlet", "alpha": "1"}, "alpha must be positive and at most 1e"),
        ({"nodes": 32}, "32 nodes cannot share 31 samples"),
        ({"labels": np.arange(31)}, "must be of exactly two classes, got 31: 0, 1, 2, 3, 4, ...; "),
        ({"labels": np.ones(31)}, "must be of exactly two classes, got 1: 1; "),
        ({"labels": np.where(np.arange(31) < 3, np.nan, 1.0)}, "must be finite; drop the samples"),
        ({"labels": np.array(["a", "b", "a"] * 10 + ["a"])}, "must be numbers, got 'a'"),
        ({"features": np.full((31, 2), np.inf)}, "all values must be finite"),
    ],
)
def test_what_cannot_be_split(write, tmp_path, arguments, message):
    features, labels = samples()
    assert message in refusal(write, **{"features": features, "labels": labels, **arguments})
    assert not (tmp_path / "shards").exists()


def test_places_that_do_not_serve(write, tmp_path):
    folder = write(*samples())
    file = folder / "manifest.json"
    assert "cannot read" in refusal(write_shards, tmp_path / "none.svm", 2, tmp_path / "other")
    message = refusal(write_shards, tmp_path / "data.npz", 2, file)
    assert f"cannot write to {file}" in message or f"cannot write {file}" in message
    assert Shards(folder, l2=1.0).whole().nodes == 6


# ------------------------------------------------------------------------------------------------ opening

BLOCKS = ((0, 1), (1, 4), (4, 6))


def gradients(problem, x):
    return np.asarray(default_xla.jit(lambda problem, x: problem.gradient_rows(x))(problem, x))


@pytest.mark.parametrize("kernels", ["native", "pure"])
@pytest.mark.parametrize("by", ["rows", "dirichlet", "label"])
@pytest.mark.parametrize("density", [1.0, 0.2])
def test_a_block_computes_what_the_whole_does_to_the_bit(write, monkeypatch, density, by, kernels):
    if kernels == "pure":
        monkeypatch.setattr(native, "usable", lambda backend="cpu": False)
    elif native.problem("cpu"):
        pytest.skip(f"no native kernels: {native.problem('cpu')}")
    features, labels = samples(count=100, dim=13, density=density)
    folder = write(features, labels, by=by)
    x = np.random.default_rng(1).standard_normal((6, 13))
    by_l2, by_kappa = Shards(folder, l2=0.01), Shards(folder, kappa=50.0)
    with jax.enable_x64(True):
        whole = by_l2.whole()
        assert isinstance(whole.features, DenseFeatures if density == 1 else SparseFeatures)
        expected = gradients(whole, x)
        direct = adom.LogisticRegression.from_nodes(
            [(A.toarray() if density == 1 else A, b) for A, b in split(features, labels, 6, BY[by])],
            l2=0.01,
            count="samples",
        )
        np.testing.assert_array_equal(expected, gradients(direct, x))
        curvatures = []
        for first, end in BLOCKS:
            block = by_l2.open(first, end)
            assert (block.nodes, block.dim, block.l2) == (end - first, 13, 0.01)
            if density == 1:
                assert block.features.signed.shape[1] == whole.features.signed.shape[1]  # filled up alike
            np.testing.assert_array_equal(gradients(block, x[first:end]), expected[first:end])
            np.testing.assert_array_equal(block.L_nodes, whole.L_nodes[first:end])
            unknown = by_kappa.open(first, end)
            curvatures.append(unknown.L_nodes - unknown.l2)

        whole = by_kappa.whole()
        assert whole.kappa == pytest.approx(50)
        expected = gradients(whole, x)
        l2 = by_kappa.regulariser(float(np.concatenate(curvatures).max()))
        assert l2 == whole.l2
        for first, end in BLOCKS:
            block = by_kappa.open(first, end).with_l2(l2)
            np.testing.assert_array_equal(gradients(block, x[first:end]), expected[first:end])
            np.testing.assert_array_equal(block.L_nodes, whole.L_nodes[first:end])


def test_a_small_curvature_keeps_all_its_digits(write):
    features, labels = samples()
    folder = write(features * 1e-6, labels)
    blocks = Shards(folder, kappa=10.0)
    found = [blocks.open(node, node + 1) for node in range(6)]
    curvature = max(float((one.L_nodes - one.l2).max()) for one in found)
    assert 1e-15 < curvature < 1e-10
    assert blocks.regulariser(curvature) == blocks.whole().l2


def test_density_decides_the_layout_over_all_nodes(write):
    features = np.zeros((30, 5))
    features[:5] = 1.0
    features[5:, 0] = 1.0  # 50 of 150: the first node's samples are dense, the others' are not
    folder = write(features, np.arange(30) % 2)
    assert isinstance(Shards(folder, l2=1.0).open(0, 1).features, SparseFeatures)
    features[5:, 1] = 1.0  # 75 of 150
    folder = write(features, np.arange(30) % 2, overwrite=True)
    assert isinstance(Shards(folder, l2=1.0).open(5, 6).features, DenseFeatures)


def test_a_block_opens_its_own_files_only(write):
    folder = write(*samples(), by="dirichlet")
    some = Shards(folder, l2=0.1)
    x = np.ones((6, 5))
    with jax.enable_x64(True):
        expected = np.asarray(some.whole().gradient_rows(x))
        for node in (0, 1, 4, 5):
            shutil.rmtree(folder / f"node-{node:05d}")
        here = Shards(folder, l2=0.1)
        np.testing.assert_array_equal(here.open(2, 4).gradient_rows(x[2:4]), expected[2:4])
    assert here.samples.tolist() == some.samples.tolist()
    assert refusal(here.open, 1, 3) == (
        f"cannot read {folder / 'node-00001/shard.json'}: No such file or directory; it holds the samples of node 1: "
        "copy it to this machine, or let another one run the node"
    )
    with pytest.raises(InputError, match=r"node-00000.* the samples of node 0"):
        here.whole()


@pytest.mark.parametrize("density", [1.0, 0.2])
def test_nodes_of_one_class(write, density):
    features, labels = samples(density=density)
    folder = write(features, labels, by="label")
    low, high = (Shards(folder, l2=0.1, count="nodes").open(*part) for part in ((0, 1), (5, 6)))
    (first, b_first), *_, (last, b_last) = split(features, labels, 6, "label")
    assert (set(b_first), set(b_last)) == ({0.0}, {2.5})
    zero = np.zeros((1, 5))
    with jax.enable_x64(True):  # at zero every sample's slope is -b/2 times its features
        np.testing.assert_allclose(low.gradient_rows(zero), [first.toarray().mean(axis=0) / 2], rtol=1e-14)
        np.testing.assert_allclose(high.gradient_rows(zero), [-last.toarray().mean(axis=0) / 2], rtol=1e-14)


def test_what_it_says_of_itself(write):
    folder = write(*samples())
    some = adom.Shards(str(folder), kappa=100.0)
    assert isinstance(some, Shards)
    assert (some.folder, some.nodes, some.dim, some.l2, some.kappa) == (folder, 6, 5, None, 100.0)
    assert some.samples.tolist() == [6, 5, 5, 5, 5, 5]
    assert repr(some) == f"Shards({str(folder)!r}, nodes=6, dim=5, samples=31, kappa=100)"
    assert repr(Shards(folder, l2=0.5)).endswith("l2=0.5)")


@pytest.mark.parametrize(
    "call",
    [
        lambda some, network: adom.compare(some, network, ["adom"]),
        lambda some, network: adom.compare({"a": some}, network, ["adom"], seeds=2),
        lambda some, network: adom.sweep(some, network, "adom", factors={"eta": [1.0]}),
        adom.verify,
    ],
)
def test_calls_that_need_all_samples_say_so(write, call):
    """They ended in an AttributeError."""
    message = refusal(call, Shards(write(*samples()), l2=0.5), adom.networks.ring(6))
    assert message.startswith("problem must be held in memory here, got Shards")
    assert message.endswith("give it to adom.solve, or take the problem of all samples, .whole()")


def test_c_is_refused_where_nodes_count_alike(tmp_path):
    (tmp_path / "a.svm").write_text("+1 1:1\n-1 1:2\n+1 1:3\n")
    folder = write_shards(tmp_path / "a.svm", 2, tmp_path / "out")
    assert Shards(folder, C=2.0).l2 == 1 / 6
    with pytest.raises(InputError, match="C=2 weighs single samples, but here nodes count equally"):
        Shards(folder, C=2.0, count="nodes")
