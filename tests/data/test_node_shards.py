"""The shard of one node: every format, a block at a time, whole or not at all, and refusals of one line."""

import gzip
import json
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from adom.data import text_files
from adom.data.node_shards import open_shard, read_facts, shard_names, write_shard
from adom.errors import InputError

X = np.array([[1.5, 0.0, -2.0], [0.1, 1e-300, 3.0], [0.0, 0.0, 7.25], [1 / 3, 2.0, 0.0], [5.0, 0.0, 1.0]])
NAMES = ["age", "dose", "level"]
LABELS = ["no", "yes", "yes", "no", "perhaps"]


@pytest.fixture
def csv(tmp_path):
    file = tmp_path / "own.csv"
    pd.DataFrame(X, columns=NAMES).assign(name="J, R", ill=LABELS).to_csv(file, index=False)
    return file


@pytest.mark.parametrize("block", [text_files.TEXT_BLOCK, 5])  # bytes: all rows, or one at a time
def test_a_csv_file_reads_back_to_the_bit(csv, tmp_path, monkeypatch, block):
    monkeypatch.setattr(text_files, "TEXT_BLOCK", block)
    place = write_shard(csv, "north", tmp_path / "shards", without=["name"])
    shard = open_shard(place)
    assert (shard.facts.features, shard.facts.target, shard.facts.layout) == (NAMES, "ill", "dense")
    assert shard.features.tobytes() == X.tobytes()
    assert [shard.facts.labels[int(code)] for code in shard.target] == LABELS
    assert shard.classes() == ["no", "yes", "perhaps"]
    assert (shard.facts.samples, shard.facts.nonzeros) == (5, np.count_nonzero(X))
    assert shard_names(tmp_path / "shards") == ["north"]
    assert isinstance(shard.features, np.memmap)  # it is read in place
    assert sorted(path.name for path in place.iterdir()) == ["features.npy", "shard.json", "target.npy"]


def test_other_formats_hold_the_same(csv, tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "TEXT_BLOCK", 20)
    y = np.array([1, -1, -1, 1, 1])
    np.savez(tmp_path / "own.npz", X=X, y=y, names=NAMES)
    sparse = sp.csr_array(X)
    np.savez(tmp_path / "thin.npz", format="csr", shape=X.shape, data=sparse.data, indices=sparse.indices,
             indptr=sparse.indptr, y=y)  # fmt: skip
    dump_svmlight_file(X, y, str(tmp_path / "own.svm"), zero_based=False)
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(csv.read_bytes()))
    found = {
        name: open_shard(write_shard(tmp_path / name, "n", tmp_path / name.replace(".", "-"), **more))
        for name, more in {
            "own.npz": {}, "thin.npz": {}, "own.svm": {"dim": 4}, "packed.csv.gz": {"without": ["name"]}
        }.items()
    }  # fmt: skip
    for name, shard in found.items():
        table = shard.features.toarray() if shard.facts.layout == "sparse" else shard.features
        assert table[:, :3].tobytes() == X.tobytes(), name
        assert shard.facts.labels == (None if name != "packed.csv.gz" else ["no", "yes", "perhaps"])
    assert found["own.npz"].facts.features == NAMES
    assert found["own.svm"].facts.features == ["x1", "x2", "x3", "x4"]
    assert [shard.facts.layout for shard in found.values()] == ["dense", "sparse", "sparse", "dense"]
    assert found["own.npz"].target.tolist() == y.tolist()


def test_a_parquet_file(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame(X, columns=NAMES).assign(ill=LABELS).to_parquet(tmp_path / "own.parquet")
    shard = open_shard(write_shard(tmp_path / "own.parquet", "n", tmp_path / "shards"))
    assert shard.features.tobytes() == X.tobytes()
    assert shard.classes() == ["no", "yes", "perhaps"]


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "own.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"needs pyarrow: in a clone of adom, pip install '\.\[parquet\]'"):
        write_shard(tmp_path / "own.parquet", "n", tmp_path / "shards")


def test_the_fingerprint_is_that_of_the_columns_alone(csv, tmp_path):
    def fingerprint(node, **columns):
        return read_facts(write_shard(csv, node, tmp_path / "shards", target="ill", **columns)).fingerprint

    assert fingerprint("a", without=["name"]) == fingerprint("b", features=NAMES)
    others = [fingerprint(f"n{i}", features=names) for i, names in enumerate((NAMES, NAMES[::-1], NAMES[:2]))]
    assert len(set(others)) == 3


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        ("age,ill\n1,no\nold,yes\n", {}, r"line 3, column 1 \(age\): 'old' is not a finite number; map it"),
        ("age,ill\n1,no\n2,\n", {}, "line 3, column ill: it is empty"),
        ("age,ill\n1,no\n2,NA\n", {}, "line 3, column ill: it is empty"),
        ("age,ill\n1,no\n1_0,yes\n", {}, r"line 3, column 1 \(age\): '1_0' is not a finite number"),
        ("age,ill\n1,no\n2,yes,3\n", {}, "line 3: 3 columns, but 2 in the first line"),
        ("age,ill\n1,no\n1e80,yes\n", {}, r"line 3, column age: the value is 1e\+80; numbers must be at most"),
        ("age,ill\n", {}, "has no rows; a node needs one at least"),
        ("age,ill\n1,no\n", {"target": "sick"}, "has no column 'sick'"),
        ("age,ill\n1,no\n", {"features": ["ages"]}, "has no column 'ages'; did you mean 'age'"),
        ("age,ill\n1,no\n", {"node": "../up"}, "node must be a plain name of letters"),
        ("age,ill\n1,inf\n", {}, "a label is not finite"),
        ("ill\nno\n", {}, "has no column of features beside 'ill'"),
    ],
)
def test_a_wrong_table_is_refused_and_leaves_nothing(tmp_path, text, more, words):
    (tmp_path / "own.csv").write_text(text)
    settings = {"node": "n", **more}
    with pytest.raises(InputError, match=words) as refused:
        write_shard(tmp_path / "own.csv", settings.pop("node"), tmp_path / "shards", **settings)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "shards").exists() or not list((tmp_path / "shards").iterdir())


def test_a_shard_is_replaced_only_when_asked(csv, tmp_path):
    place = write_shard(csv, "n", tmp_path / "shards", features=NAMES, target="ill")
    with pytest.raises(InputError, match="is there already; name another node, or take overwrite=True"):
        write_shard(csv, "n", tmp_path / "shards", features=NAMES[:1], target="ill")
    assert read_facts(place).features == NAMES
    write_shard(csv, "n", tmp_path / "shards", features=NAMES[:1], target="ill", overwrite=True)
    assert read_facts(place).features == NAMES[:1]
    assert [path.name for path in (tmp_path / "shards").iterdir()] == ["n"]


def test_what_was_changed_cut_or_removed_is_refused(csv, tmp_path):
    place = write_shard(csv, "n", tmp_path / "shards", features=NAMES, target="ill")
    array = place / "features.npy"
    content = array.read_bytes()
    array.write_bytes(content[:-1] + b"\1")
    with pytest.raises(InputError, match=r"features.npy was changed after `adom shard` made it"):
        open_shard(place)
    array.unlink()
    with pytest.raises(InputError, match=r"cannot read .*features.npy: No such file"):
        open_shard(place)
    array.write_bytes(content)
    facts = json.loads((place / "shard.json").read_text())
    (place / "shard.json").write_text(json.dumps({**facts, "target": "other"}))
    with pytest.raises(InputError, match="it was changed"):
        open_shard(place)
    (place / "shard.json").write_text("[]")
    with pytest.raises(InputError, match="is not a whole shard"):
        open_shard(place)
    del facts["sealed"], facts["sha256"]
    (place / "shard.json").write_text(json.dumps({**facts, "samples": 4}))
    with pytest.raises(InputError, match="its arrays do not fit together"):
        open_shard(place)
