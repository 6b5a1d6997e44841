"""Reading samples: what comes back is what was written, and what is wrong is said with file and line."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import adom
from adom.data.sample_files import read
from adom.errors import InputError

LIBSVM = Path(__file__).parents[3] / "shared" / "data" / "libsvm"
TWO = "+1 1:0.5 3:-2e1\n-1 2:1. # comment\n\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def make(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


def refusal(path: Path, **options: Any) -> str:
    """Return the one line that reading this file raises, which must name the file."""
    with pytest.raises(InputError) as caught:
        read(path, **options)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", ["two.svm", "two.libsvm", "two.txt", "two", "two.t"])
def test_libsvm_by_any_name(write: Any, name: str) -> None:
    A, b = read(write(name, TWO))
    assert isinstance(A, sp.csr_array)
    assert A.toarray().tolist() == [[0.5, 0, -20], [0, 1, 0]]
    assert b.tolist() == [1, -1]


@pytest.mark.parametrize(("suffix", "pack"), [("bz2", bz2), ("gz", gzip), ("xz", lzma), ("txt", gzip)])
def test_packed_files_are_known_by_content(write: Any, suffix: str, pack: Any) -> None:
    A, b = read(write(f"two.{suffix}", pack.compress(TWO.encode())))
    assert A.shape == (2, 3)
    assert b.tolist() == [1, -1]
    csv, labels = read(write(f"two.csv.{suffix}", pack.compress(b"1,2,0\n3,4,1\n"))) if suffix != "txt" else (A, b)
    assert csv.shape[0] == labels.size == 2


def test_random_sparse_data_agrees_with_sklearn(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    A = sp.random_array((300, 40), density=0.1, rng=rng, format="csr", data_sampler=rng.standard_normal)
    b = rng.choice([-1.0, 1.0], 300)
    path = tmp_path / "random.svm"
    dump_svmlight_file(sp.csr_matrix(A), b, str(path), zero_based=False)
    found, labels = read(path, features=40)
    expected, signs = load_svmlight_file(str(path), n_features=40, zero_based=False)
    np.testing.assert_array_equal(found.toarray(), expected.toarray())
    np.testing.assert_array_equal(labels, signs)


def test_features_may_pad_but_not_cut(write: Any) -> None:
    path = write("two.svm", TWO)
    assert read(path, features=5)[0].shape == (2, 5)
    assert "line 1: index 3 exceeds the 2 features" in refusal(path, features=2)
    with pytest.raises(InputError, match="at least 1, got 0"):
        read(path, features=0)


def test_samples_without_features_and_windows_lines(write: Any) -> None:
    A, b = read(write("empty.svm", "1 2:3\r\n-1\r\n"))
    assert A.toarray().tolist() == [[0, 3], [0, 0]]
    assert b.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("x 1:2", "label 'x' is not a finite number"),
        ("nan 1:2", "label 'nan' is not a finite number"),
        ("1,2 1:2", "label '1,2'"),
        ("1 5", "'5' has no colon"),
        ("1 1:2 3:", "value '' of index 3"),
        ("1 1:inf", "value 'inf' of index 1"),
        ("1 1:1_0", "value '1_0' of index 1"),
        ("1 a:1", "index 'a' is not a whole number"),
        ("1 -1:1", "index '-1' is not a whole number"),
        ("1 1.0:1", "index '1.0' is not a whole number"),
        ("1 2:3:4 5", "value '3:4' of index 2"),
        ("1 qid:3 1:2", "index 'qid'"),
        ("1 0:1", "index 0 is too small"),
        ("1 2:1 2:1", "index 2 does not exceed"),
        ("1 3:1 2:1", "index 2 does not exceed"),
        ("1 3000000000:1", "index 3000000000 exceeds"),
        ("1 1:1e999", "value '1e999' of index 1 is not a finite"),
        ("1e999 1:1", "label '1e999' is not a finite"),
        ("\x00\x01 1:1", "label '\\x00\\x01'"),
    ],
)
def test_malformed_libsvm_names_the_line(write: Any, line: str, reason: str) -> None:
    message = refusal(write("bad.svm", f"1 1:1\n# comment\n-1 1:1 7:2\n{line}\n1 1:1\n"))
    assert f"line 4: {reason}" in message


def test_a_line_may_begin_lower_than_the_one_before_ended(write: Any) -> None:
    A, _ = read(write("order.svm", "1 5:1\n1\n1 1:1 5:2\n"))
    assert A.indices.tolist() == [4, 0, 4]


@pytest.mark.parametrize("text", ["1,2,-1\n3,4,1\n", "a,b,y\n1,2,-1\n3,4,1\n", "a;b;y\n1;2;-1\n3;4;1\n"])
def test_csv_with_and_without_header(write: Any, text: str) -> None:
    A, b = read(write("table.csv", text))
    assert A.tolist() == [[1, 2], [3, 4]]
    assert b.tolist() == [-1, 1]


@pytest.mark.parametrize(("text", "label"), [("0,1,y\n1,2,-1\n", None), ("2020,2021,y\n1,2,-1\n", "y")])
def test_a_header_may_hold_numbers(write: Any, text: str, label: str | None) -> None:
    A, b = read(write("table.csv", text), label=label)
    assert A.tolist() == [[1, 2]]
    assert b.tolist() == [-1]


@pytest.mark.parametrize("label", ["y", "0", 0, -3])
def test_csv_label_by_name_or_number(write: Any, label: str | int) -> None:
    A, b = read(write("table.csv", 'y,"b, quoted",c\n-1,2,3\n\n1,5,6\n'), label=label)
    assert A.tolist() == [[2, 3], [5, 6]]
    assert b.tolist() == [-1, 1]


def test_commas_in_a_plain_text_file_mean_csv(write: Any) -> None:
    assert read(write("table.txt", "1,2,-1\n3,4,1\n"))[0].tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("a,b,y\n1,2,0\n1,two,1\n", {}, "line 3, column 2 (b): 'two' is not a finite number"),
        ("1,two,0\n1,2,1\n", {}, "line 1, column 2: 'two' is not a finite number"),
        ("1,2,0\n1,,1\n", {}, "line 2, column 2: '' is not a finite number"),
        ("1,2,0\n\n1,nan,1\n", {}, "line 3, column 2: 'nan'"),
        ("1,2,0\n1,1_0,1\n", {}, "line 2, column 2: '1_0'"),
        ("1,2,0\n1,2\n", {}, "line 2: 2 columns, but 3"),
        ("a,b,y\n1,2,0\n", {"label": "z"}, "no column 'z'; columns are a, b, y"),
        ("1,2,0\n", {"label": "z"}, "no column 'z'; it has no header"),
        ("1,2,0\n", {"label": 3}, "no column 3; columns count from 0 to 2"),
        ("1,2,0\n", {"features": 3}, "has 2 features beside the label, not 3"),
        ("a,b\n", {}, "header and no samples"),
        ("1\n2\n", {}, "one column only"),
        (",,\n", {}, "no samples"),
        ('1,"2\n', {}, "line 1: unexpected end of data"),
        (b"1,2\n1,\xff\n", {}, "line 2: not UTF-8"),
    ],
)
def test_malformed_csv_names_the_place(write: Any, text: str | bytes, options: Any, reason: str) -> None:
    assert reason in refusal(write("bad.csv", text), **options)


@pytest.mark.parametrize("names", [("features", "labels"), ("X", "y")])
def test_npz(tmp_path: Path, names: tuple[str, str]) -> None:
    A, b = np.arange(6).reshape(3, 2), np.array(["no", "yes", "no"])
    path = tmp_path / "data.npz"
    np.savez(path, **{names[0]: A, names[1]: b})
    found, labels = read(path)
    assert found.dtype == np.float64
    assert found.tolist() == A.tolist()
    assert labels.tolist() == b.tolist()


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_sparse_npz(tmp_path: Path, layout: str) -> None:
    A = sp.random_array((7, 5), density=0.4, rng=np.random.default_rng(1), format=layout)
    sp.save_npz(tmp_path / "pieces.npz", A)
    with np.load(tmp_path / "pieces.npz") as pieces:
        np.savez(tmp_path / "data.npz", labels=np.arange(7), **pieces)
    found, labels = read(tmp_path / "data.npz", features=5)
    assert isinstance(found, sp.csr_array)
    np.testing.assert_array_equal(found.toarray(), A.toarray())
    assert labels.tolist() == list(range(7))


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"features": np.ones((2, 2))}, "no array labels or y; it has features"),
        ({"labels": np.ones(2)}, "no array features or X; it has labels"),
        ({"X": np.ones(2), "y": np.ones(2)}, "must have shape (samples, features), got (2,)"),
        ({"X": np.ones((2, 2)), "y": np.ones(3)}, "must have shape (2,), one for every sample, got (3,)"),
        ({"X": np.ones((2, 2)) * 1j, "y": np.ones(2)}, "must be real numbers, got complex128"),
        ({"X": np.array([[{}]], dtype=object), "y": np.ones(1)}, "not a whole archive of plain arrays"),
        ({"format": np.array(b"dia"), "shape": np.array([1, 1]), "y": np.ones(1)}, "format 'dia'"),
        ({"format": np.array(b"csr"), "shape": np.array([1, 1]), "y": np.ones(1)}, "not a whole archive"),
        (
            {
                "format": np.array(b"csr"),
                "shape": np.array([1, 1]),
                "data": np.ones(1),
                "indices": np.array([5]),
                "indptr": np.array([0, 1]),
                "y": np.ones(1),
            },
            "not a whole archive",
        ),
    ],
)
def test_bad_archives(tmp_path: Path, arrays: dict[str, Any], reason: str) -> None:
    path = tmp_path / "bad.npz"
    np.savez(path, **arrays)
    assert reason in refusal(path)


def test_bad_files_of_every_kind(write: Any, tmp_path: Path) -> None:
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


@pytest.mark.parametrize(("suffix", "pack"), [("bz2", bz2), ("gz", gzip), ("xz", lzma)])
def test_packed_files_cut_short_or_damaged(write: Any, suffix: str, pack: Any) -> None:
    lines = "".join(f"1 1:{k} 2:{k * k}\n" for k in range(2000))
    packed = bytearray(pack.compress(lines.encode()))
    assert "cut short or damaged" in refusal(write(f"cut.svm.{suffix}", bytes(packed[:-20])))
    packed[len(packed) // 2] ^= 0xFF
    assert "cut short or damaged" in refusal(write(f"flip.svm.{suffix}", bytes(packed)))


def test_truncated_archive(tmp_path: Path, write: Any) -> None:
    np.savez_compressed(tmp_path / "data.npz", X=np.random.default_rng(0).random((50, 4)), y=np.ones(50))
    content = (tmp_path / "data.npz").read_bytes()
    assert "not a whole archive" in refusal(write("cut.npz", content[: len(content) // 2]))


@pytest.mark.parametrize(("name", "shape"), [("a6a", (11220, 122)), ("w6a", (17188, 300)), ("ijcnn1.bz2", (49990, 22))])
def test_the_papers_data_sets(name: str, shape: tuple[int, int]) -> None:
    if not (LIBSVM / name).exists():
        pytest.skip(f"{name} is not beside the checkout, in ../shared/data/libsvm")
    A, b = read(LIBSVM / name)
    assert A.shape == shape
    assert np.unique(b).tolist() == [-1, 1]
    if name == "a6a":
        assert (A.data == 1).all()
        problem = adom.LogisticRegression(A, b, nodes=20, kappa=50.0)
        assert problem.dim == 122
        assert problem.kappa == pytest.approx(50)
    if name == "w6a":
        assert int((np.diff(A.indptr) == 0).sum()) == 1445
