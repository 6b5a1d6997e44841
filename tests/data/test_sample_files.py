"""Reading samples: they come back as they were written; faults are reported with file and line."""

import bz2
import gzip
import lzma

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from adom.data import text_files
from adom.data.sample_files import feature_names, read
from adom.errors import InputError

from . import conftest

TWO = "+1 1:0.5 3:-2e1\n-1 2:1. # comment\n\n"
PACKERS = [("bz2", bz2), ("gz", gzip), ("xz", lzma)]


@pytest.fixture
def write(tmp_path):
    def make(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


def refusal(path, **options):
    """Return the one line that reading this file raises, which must name the file."""
    message = conftest.refusal(read, path, **options)
    assert str(path) in message
    return message


@pytest.mark.parametrize("name", ["two.svm", "two.libsvm", "two.txt", "two", "two.t"])
def test_libsvm_by_any_name(write, name):
    A, b = read(write(name, TWO))
    assert isinstance(A, sp.csr_array)
    assert A.indices.dtype == A.indptr.dtype == np.int32
    assert A.toarray().tolist() == [[0.5, 0, -20], [0, 1, 0]]
    assert b.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("text", "indices", "labels"),
    [
        ("1 2:3\r\n-1\r\n", [1], [1, -1]),  # a sample without features, lines of Windows
        ("1 5:1\n1\n1 1:1 5:2\n", [4, 0, 4], [1, 1, 1]),  # a line may begin lower than the one before ended
        ("1 1:0 2:3 # qid_1:2\n", [0, 1], [1]),  # zeros are kept, comments are not read
        ("\ufeff1 1:2\n", [0], [1]),
    ],
)
def test_odd_but_right_libsvm(write, text, indices, labels):
    A, b = read(write("odd.svm", text))
    assert A.indices.tolist() == indices
    assert b.tolist() == labels


@pytest.mark.parametrize(("suffix", "pack"), [*PACKERS, ("txt", gzip)])
def test_packed_files_are_known_by_content(write, suffix, pack):
    A, b = read(write(f"two.{suffix}", pack.compress(TWO.encode())))
    assert A.shape == (2, 3)
    assert b.tolist() == [1, -1]
    if suffix != "txt":
        csv, labels = read(write(f"two.csv.{suffix}", pack.compress(b"1,2,0\n3,4,1\n")))
        assert csv.shape[0] == labels.size == 2


def test_random_sparse_data_come_back(tmp_path):
    rng = np.random.default_rng(0)
    A = sp.random_array((300, 40), density=0.1, rng=rng, format="csr", data_sampler=rng.standard_normal)
    b = rng.choice([-1.0, 1.0], 300)
    path = tmp_path / "random.svm"
    dump_svmlight_file(sp.csr_matrix(A), b, str(path), zero_based=False)
    features, labels = read(path, features=40)
    np.testing.assert_allclose(features.toarray(), A.toarray(), rtol=1e-15)
    np.testing.assert_array_equal(labels, b)


def test_features_may_pad_but_not_cut(write):
    path = write("two.svm", TWO)
    assert read(path, features=5)[0].shape == (2, 5)
    assert "line 1: index 3 exceeds the 2 features" in refusal(path, features=2)
    with pytest.raises(InputError, match="at least 1, got 0"):
        read(path, features=0)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("x 1:2", "label 'x' is not a finite number"),
        ("nan 1:2", "label 'nan' is not a finite number"),
        ("1e999 1:1", "label '1e999' is not a finite number"),
        ("1,2 1:2", "label '1,2'"),
        ("1 5", "'5' has no colon"),
        ("1 1:2 3:", "value '' of index 3"),
        ("1 1:inf", "value 'inf' of index 1"),
        ("1 1:1e999", "value '1e999' of index 1 is not a finite number"),
        ("1 1:1_0", "value '1_0' of index 1"),
        ("1_0 1:1", "label '1_0'"),
        ("1 a:1", "index 'a' is not a whole number"),
        ("1 -1:1", "index '-1' is not a whole number"),
        ("1 1_0:1", "index '1_0' is not a whole number"),
        ("1 1.0:1", "index '1.0' is not a whole number"),
        ("1 2:3:4 5", "value '3:4' of index 2"),
        ("1 qid:3 1:2", "index 'qid'"),
        ("1 0:1", "index 0 is too small"),
        ("1 2:1 2:1", "index 2 does not exceed"),
        ("1 3:1 2:1", "index 2 does not exceed"),
        ("1 3000000000:1", "index 3000000000 exceeds"),
        ("1 99999999999999999999:1", "index 9999999999999999999 exceeds"),
        ("\x00\x01 1:1", "label '\\x00\\x01'"),
    ],
)
def test_malformed_libsvm_names_the_line(write, line, reason):
    message = refusal(write("bad.svm", f"1 1:1\n# comment\n-1 1:1 7:2\n{line}\n1 1:1\n"))
    assert f"line 4: {reason}" in message


@pytest.mark.parametrize(
    ("text", "label", "features", "labels"),
    [
        ("1,2,-1\n3,4,1\n", None, [[1, 2], [3, 4]], [-1, 1]),
        ("a,b,y\n1,2,-1\n3,4,1\n", None, [[1, 2], [3, 4]], [-1, 1]),
        ("a;b;y\n1;2;-1\n3; 4;1\n", None, [[1, 2], [3, 4]], [-1, 1]),
        ('"1",2,-1\r\n,,\r\n\r\n3,4,1\r\n,,\r\n', None, [[1, 2], [3, 4]], [-1, 1]),  # quotes, rows that hold nothing
        ('"a\nb",c,y\n1,2,-1\n', None, [[1, 2]], [-1]),  # a name of two lines
        ("0,1,y\n1,2,-1\n", None, [[1, 2]], [-1]),  # column numbers and a name
        ("2020,2021,y\n1,2,-1\n", "y", [[1, 2]], [-1]),
        *(('y,"b, quoted",c\n-1,2,3\n\n1,5,6\n', label, [[2, 3], [5, 6]], [-1, 1]) for label in ("y", "0", 0, -3)),
    ],
)
@pytest.mark.parametrize("name", ["table.csv", "table.txt"])
def test_csv(write, name, text, label, features, labels):
    if name == "table.txt" and "," not in text.splitlines()[0]:
        pytest.skip("only commas in the first line make a text file CSV")
    A, b = read(write(name, text), label=label)
    assert A.tolist() == features
    assert b.tolist() == labels


def test_feature_names(write):
    assert feature_names(write("a.csv", "a,b,y\n1,2,0\n")) == ["a", "b"]
    assert feature_names(write("a.csv", "a,b,y\n1,2,0\n"), "a") == ["b", "y"]
    assert feature_names(write("a.csv", "1,2,0\n")) is None
    assert feature_names(write("a.svm", TWO)) is None


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("a,a,y\n1,2,0\n", {}, "several columns named 'a'"),
        ("a,b,y\n1,2,0\n1,two,1\n", {}, "line 3, column 2 (b): 'two' is not a finite number"),
        ("1,two,0\n1,2,1\n", {}, "line 1, column 2: 'two' is not a finite number"),
        ("1,2,0\n1,,1\n", {}, "line 2, column 2: '' is not a finite number"),
        ("1,2,0\n\n1,nan,1\n", {}, "line 3, column 2: 'nan'"),
        ("1,2,0\n1,1_0,1\n", {}, "line 2, column 2: '1_0'"),
        ("1,2,0\n1,2\n", {}, "line 2: 2 columns, but 3"),
        ("a,b,y\n1,2\n3,4\n", {}, "line 2: 2 columns, but 3"),
        ("a,b,y\n1,2,0\n", {"label": "z"}, "no column 'z'; it has a, b, y"),
        ("1,2,0\n", {"label": "z"}, "no column 'z'; it has no line of names"),
        ("1,2,0\n", {"label": 3}, "no column 3; columns count from 0 to 2"),
        ("1,2,0\n", {"features": 3}, "has 2 features beside the label, not 3"),
        ("a,b\n", {}, "holds no samples"),
        ("1\n2\n", {}, "has no column of features beside"),
        (",,\n", {}, "no samples"),
        ('1,"2\n', {}, "line 1: unexpected end of data"),
        (b"1,2\n1,\xff\n", {}, "line 2: not UTF-8"),
    ],
)
def test_malformed_csv_names_the_place(write, text, options, reason):
    assert reason in refusal(write("bad.csv", text), **options)


@pytest.mark.parametrize("block", [3, 20])
def test_samples_are_the_same_in_pieces_of_any_size(write, monkeypatch, block):
    texts = {
        "a.svm": "# first\n1 1:1 7:2\n-1 2:3\n\n# a comment longer than a piece\n1\n-1 9:4\n",
        "a.csv": '"a\nb",c,y\r\n1,"2",-1\r\n,,\r\n\r\n3,"4",1\r\n5,6,1',
        "packed.csv.gz": gzip.compress(b"1,2,-1\n3,4,1\n"),
    }
    whole = {name: read(write(name, text)) for name, text in texts.items()}
    monkeypatch.setattr(text_files, "TEXT_BLOCK", block)
    for name, (features, labels) in whole.items():
        again, found = read(write(name, texts[name]))
        assert sp.issparse(again) == name.endswith("svm")
        np.testing.assert_array_equal(
            again.toarray() if sp.issparse(again) else again, sp.csr_array(features).toarray()
        )
        np.testing.assert_array_equal(found, labels)
    for name, text in (
        ("b.svm", "1 1:1\n# more\n-1 1:x\n"),
        ("b.csv", "a,b,y\n1,2,0\n1,2,x\n"),
        ("c.csv", '1,"2"\n1,2\n1,\n'),
    ):
        assert ", line 3" in refusal(write(name, text))


@pytest.mark.parametrize("names", [("features", "labels"), ("X", "y")])
def test_npz(tmp_path, names):
    A, b = np.arange(6).reshape(3, 2), np.array(["no", "yes", "no"])
    path = tmp_path / "data.npz"
    np.savez(path, **{names[0]: A, names[1]: b})
    features, labels = read(path)
    assert features.dtype == np.float64
    assert features.tolist() == A.tolist()
    assert labels.tolist() == b.tolist()


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_sparse_npz(tmp_path, layout):
    A = sp.random_array((7, 5), density=0.4, rng=np.random.default_rng(1), format=layout)
    sp.save_npz(tmp_path / "pieces.npz", A)
    with np.load(tmp_path / "pieces.npz") as pieces:
        np.savez(tmp_path / "data.npz", labels=np.arange(7), **pieces)
    features, labels = read(tmp_path / "data.npz", features=5)
    assert isinstance(features, sp.csr_array)
    np.testing.assert_array_equal(features.toarray(), A.toarray())
    assert labels.tolist() == list(range(7))


CSR = {"format": np.array(b"csr"), "shape": np.array([1, 1]), "y": np.ones(1)}


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"features": np.ones((2, 2))}, "no array labels or y; it has features"),
        ({"labels": np.ones(2)}, "no array features or X; it has labels"),
        ({"X": np.ones(2), "y": np.ones(2)}, "must have shape (samples, features), got (2,)"),
        ({"X": np.ones((2, 2)), "y": np.ones(3)}, "must have shape (2,), one for every sample, got (3,)"),
        ({"X": np.ones((2, 2)) * 1j, "y": np.ones(2)}, "must be real numbers, got complex128"),
        ({"X": np.array([[{}]], dtype=object), "y": np.ones(1)}, "not a whole archive of plain arrays"),
        ({**CSR, "format": np.array(b"dia")}, "format 'dia'"),
        (CSR, "not a whole archive"),
        ({**CSR, "shape": np.array([1, 2**40])}, "of shape (1, 1099511627776) do not fit its 1 labels"),
        ({**CSR, "data": np.ones(1), "indices": np.array([5]), "indptr": np.array([0, 1])}, "not a whole archive"),
        ({**CSR, "data": np.ones(1), "indices": np.ones(1), "indptr": np.array([0, 1])}, "must be whole numbers"),
    ],
)
def test_bad_archives(tmp_path, arrays, reason):
    path = tmp_path / "bad.npz"
    np.savez(path, **arrays)
    assert reason in refusal(path)


def test_bad_files_of_every_kind(write, tmp_path):
    assert "No such file" in refusal(tmp_path / "missing.svm")
    assert "Is a directory" in refusal(tmp_path)
    with pytest.raises(InputError, match="it is not a possible file name"):
        read("nul\0byte")
    for name in ("empty.svm", "empty.csv", "empty.npz", "empty.bz2", "blank.txt"):
        assert "is empty" in refusal(write(name, "  \n" if "blank" in name else ""))
    assert "holds no samples" in refusal(write("comments.svm", "# nothing\n"))
    assert "no features in any" in refusal(write("labels.svm", "1\n-1\n"))
    assert "not a .bz2 file although its name says so" in refusal(write("plain.bz2", TWO))
    assert "is not a NumPy archive" in refusal(write("text.npz", TWO))
    assert "leave it out" in refusal(write("two.svm", TWO), label="y")


@pytest.mark.parametrize(("suffix", "pack"), PACKERS)
def test_packed_files_cut_short_or_damaged(write, suffix, pack):
    lines = "".join(f"1 1:{k} 2:{k * k}\n" for k in range(2000))
    packed = bytearray(pack.compress(lines.encode()))
    assert "cut short or damaged" in refusal(write(f"cut.svm.{suffix}", bytes(packed[:-20])))
    packed[len(packed) // 2] ^= 0xFF
    assert "cut short or damaged" in refusal(write(f"flip.svm.{suffix}", bytes(packed)))
