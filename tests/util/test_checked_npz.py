"""Archives with a seal: read back to the bit, readable by NumPy alone, and refused when anything about them changed."""

import io
import os
import zipfile

import numpy as np
import pytest

from adom.errors import Damaged
from adom.util.checked_json import read_json
from adom.util.checked_npz import read_npz, unpack, write_npz
from adom.util.files import open_regular
from support.damage import mutants

ARRAYS = {
    "x": np.arange(12.0).reshape(3, 4),
    "columns": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(3, 2)),
    "history/round": np.arange(5),
    "names": np.array(["a", "bc"]),
    "flags": np.array([True, False]),
    "one": np.array(3),
    "none": np.empty((0, 3)),
}


def same(arrays):
    return list(arrays) == list(ARRAYS) and all(
        arrays[name].dtype == a.dtype and arrays[name].shape == a.shape and (arrays[name] == a).all()
        for name, a in ARRAYS.items()
    )


def test_what_is_written_is_read_back_and_numpy_reads_it_too(tmp_path):
    write_npz(tmp_path / "new.npz", ARRAYS, {"a": "ü"})
    arrays, meta = read_npz(tmp_path / "new.npz")
    assert same(arrays)
    assert meta == {"a": "ü"}
    assert arrays["x"].flags.writeable
    with np.load(tmp_path / "new.npz", allow_pickle=False) as archive:
        assert (archive["x"] == ARRAYS["x"]).all()


def test_no_damage_is_believed(tmp_path):
    path = tmp_path / "file.npz"
    write_npz(path, ARRAYS, {"a": 1})
    for content in mutants(path.read_bytes(), 2000):
        path.write_bytes(content)
        with pytest.raises(Damaged) as refused:
            read_npz(path)
        assert "\n" not in str(refused.value)


def test_an_archive_without_a_seal_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "bare.npz", allow_pickle=False, **ARRAYS, provenance=np.array('{"a": 1}'))
    with pytest.raises(Damaged, match="it has no checksum at its end"):
        read_npz(tmp_path / "bare.npz")


def archived(name="x.npy", content=None, header=None, method=zipfile.ZIP_DEFLATED):
    """Return an archive with one array, whose header may lie."""
    if content is None:
        text = (header or "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }").encode() + b"\n"
        content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(16)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr(name, content)
    return file


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (archived(header="{'descr': '<f8', 'fortran_order': False, 'shape': (2000000000000,), }"), "which it is not"),
        (archived(header="{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"), "which it is not"),
        (archived(header="{'descr': '<U999999999', 'fortran_order': False, 'shape': (2,), }"), "not a whole NumPy"),
        (archived(header="{'descr': '|O', 'fortran_order': False, 'shape': (2,), }"), "a kind that is not"),
        (archived(header="{'descr': '|O8', 'fortran_order': False, 'shape': (2,), }"), "which it is not"),
        (archived(header="{'descr': '<f3', 'fortran_order': False, 'shape': (2,), }"), "not a whole NumPy archive"),
        (archived(header="{'descr': '|b1', 'fortran_order': False, 'shape': (0, 9, " + "9" * 90 + "), }"), "which it"),
        (archived(header="(" * 3000), "a kind that is not written here"),
        (archived(content=b"no array"), "x.npy is not an array"),
        (archived(name="x.txt"), "odd names"),
        (archived(method=zipfile.ZIP_BZIP2), "packed in a way that NumPy does not use"),
        (archived(content=bytes(2**22)), "claims 4194304 bytes of arrays in a file of 4"),
        (io.BytesIO(b""), "not a whole NumPy archive"),
    ],
)
def test_what_an_archive_claims_is_not_believed(file, why):
    with pytest.raises(Damaged, match=why):
        unpack(file, most=2**21)


@pytest.mark.parametrize(
    "text", ["", "[1]", "{", '{"a": ' * 70 + "1" + "}" * 70, '{"a": "\\ud800"}', '{"\\ud800": 1}', "9" * 9000]
)
def test_json_that_is_refused(text):
    with pytest.raises(Damaged, match="JSON"):
        read_json(text)
    with pytest.raises(Damaged, match="more than 3"):
        read_json('{"a": 1}', 3)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes as POSIX has them")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path):
        with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
            open_regular(place)
