"""Damaged data files by the thousand: each is a problem or is refused in one line, and none takes much memory."""

import bz2
import gzip
import io
import lzma
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import adom
from adom.data import sample_files, text_files
from adom.data.sample_files import read
from adom.problems import limits
from adom.problems.linear_model import LogisticRegression  # loads JAX, before memory is watched
from support.damage import mutants

ROOM = 2**28
"""The memory of the machine that these tests pretend to run on."""


@pytest.fixture(autouse=True)
def small_machine(monkeypatch):
    for module in (limits, sample_files, text_files):
        monkeypatch.setattr(module, "memory", lambda: ROOM)
    tracemalloc.start()
    yield
    tracemalloc.stop()


def libsvm():
    rng = np.random.default_rng(0)
    lines = [f"{'+-'[k % 2]}1 1:{rng.random():.3g} {k + 2}:{k}e-2 40:.5 # {k}" for k in range(8)]
    return ("\n".join(lines) + "\n").encode()


def csv():
    return ("a,b,y\n" + "".join(f"{k / 7:.4g},-{k}e1,{k % 2}\n" for k in range(20))).encode()


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, y=np.arange(8) % 2, **arrays)
    return file.getvalue()


def sparse(layout):
    A = sp.random_array((8, 5), density=0.4, rng=np.random.default_rng(1), format=layout)
    places = {"row": A.coords[0], "col": A.coords[1]} if layout == "coo" else {"indices": A.indices, "indptr": A.indptr}
    return npz(format=np.array(layout.encode()), shape=np.array(A.shape), data=A.data, **places)


@pytest.mark.parametrize(
    ("name", "content", "count"),
    [
        ("data.svm", libsvm(), 1200),
        ("data.csv", csv(), 400),
        ("dense.npz", npz(X=np.arange(24.0).reshape(8, 3)), 400),
        ("csr.npz", sparse("csr"), 300),
        ("coo.npz", sparse("coo"), 300),
        ("data.svm.gz", gzip.compress(libsvm(), mtime=0), 150),
        ("data.svm.bz2", bz2.compress(libsvm()), 150),
        ("data.svm.xz", lzma.compress(libsvm()), 150),
    ],
)
def test_a_damaged_file_is_a_problem_or_is_refused(tmp_path, name, content, count):
    path = tmp_path / name
    said = []
    for damaged in mutants(content, count):
        path.write_bytes(damaged)
        tracemalloc.reset_peak()
        try:
            problem = LogisticRegression(*read(path), nodes=2, l2=1.0)
            assert 1 <= problem.L < np.inf, damaged
        except adom.InputError as error:
            said.append(str(error))
        assert tracemalloc.get_traced_memory()[1] < 2**26, damaged
    assert said
    assert all("\n" not in line and len(line) < 600 for line in said)


@pytest.mark.parametrize("pack", [gzip, bz2, lzma])
def test_little_that_unpacks_to_much_is_refused(tmp_path, pack):
    path = tmp_path / "bomb.svm"
    path.write_bytes(pack.compress(bytes(ROOM // text_files.TEXT + 2**20)))
    with pytest.raises(adom.InputError, match=r"unpacks to more than 33.6 MB"):
        read(path)


def test_an_archive_that_claims_much_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "bomb.npz", X=np.zeros((2**14, 2**10)), y=np.zeros(2**14))
    with pytest.raises(adom.InputError, match=r"not a whole archive of plain arrays \(it claims"):
        read(tmp_path / "bomb.npz")


def test_one_long_line_of_a_table_takes_no_memory_for_all(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text(",".join(["1"] * 20_000) + "\n" + "1\n" * 20_000)  # as a table, 3.2 GB
    with pytest.raises(adom.InputError, match="line 2: 1 columns, but 20000"):
        read(path)
    assert tracemalloc.get_traced_memory()[1] < 2**26


@pytest.mark.parametrize("index", [100_000_000, 2_000_000_000])
def test_an_index_that_no_run_could_hold_is_refused_at_once(tmp_path, index):
    path = tmp_path / "wide.svm"
    path.write_text(f"1 1:1\n-1 {index}:1\n")
    with pytest.raises(adom.InputError, match=rf"wide.svm, line 2: index {index}: a run would hold about .* GB"):
        read(path)
    wide = sp.csr_array(([1.0, 1.0], ([0, 1], [0, index - 1])), shape=(2, index))
    with pytest.raises(adom.InputError, match=rf"2 nodes x {index} coordinates \(2 of {index} features occur\): a run"):
        LogisticRegression(wide, [0, 1], nodes=2, l2=1.0)


def test_wide_data_that_fits_takes_memory_for_what_occurs():
    dim = ROOM // limits.VECTORS // 8 // 2
    wide = sp.csr_array(([1.0, 2.0], ([0, 1], [0, dim - 1])), shape=(2, dim))
    tracemalloc.reset_peak()
    problem = LogisticRegression(wide, [0, 1], nodes=2, l2=1.0)
    assert problem.L_nodes.tolist() == [1.25, 2.0]
    assert tracemalloc.get_traced_memory()[1] < 2**20


def test_a_device_is_no_file():
    if not Path("/dev/zero").exists():
        pytest.skip("there is no /dev/zero here")
    with pytest.raises(adom.InputError, match="it is not a regular file"):
        read("/dev/zero")
