"""Result files that were damaged, lie, or hold something else: refused, or read as exactly what was written."""

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import adom
from adom.errors import InputError
from support.damage import attempt, mutants, overwrite

OLD = Path(__file__).with_name("files") / "adom-result-1.npz"
"""Written by version 0.1.0 before files had a checksum."""


@pytest.fixture(scope="module")
def result():
    return adom.load(OLD)


def same(one, other):
    tables = one.history.equals(other.history) and list(one.history) == list(other.history)
    rows = one.x.dtype == other.x.dtype and np.array_equal(one.x, other.x)
    return tables and rows and (one.status, one.provenance) == (other.status, other.provenance)


def members(path):
    """The arrays of a file as bytes, by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive(path, parts):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in parts:
            made.writestr(name, content)
    return path


def array(values):
    file = io.BytesIO()
    np.save(file, values, allow_pickle=False)
    return file.getvalue()


def test_a_file_without_a_checksum_still_loads_to_the_bit(result, tmp_path):
    assert (result.status, result.provenance["versions"]["adom"]) == ("max_rounds", "0.1.0")
    assert result.history["round"].tolist() == [1, 2, 3, 4, 5, 6]
    assert result.history["error"].iloc[-1] == pytest.approx(0.2006, rel=1e-3)
    assert repr(result) == "Result(ADOM, max_rounds: error 2.006e-01 after 6 rounds, 6 gradients a node)"
    assert same(adom.load(result.save(tmp_path / "new.npz")), result)


@pytest.mark.parametrize("sealed", [True, False])
def test_no_damage_is_taken_for_a_result(result, tmp_path, sealed):
    path = tmp_path / "run.npz"
    written = result.save(path).read_bytes()
    content = written if sealed else OLD.read_bytes()
    refused = 0
    for damaged in mutants(content, 1500, seed=13):
        overwrite(path, damaged)
        found, refusal = attempt(lambda: adom.load(path))
        assert "\n" not in refusal
        assert refusal or (not sealed and same(found, result))
        refused += bool(refusal)
    assert refused > 1000


def test_no_single_bit_of_the_directory_loses_a_column(result, tmp_path):
    """Where an archive without a checksum lists its arrays, a flipped bit may make one swallow the next."""
    content, path = OLD.read_bytes(), result.save(tmp_path / "run.npz")
    begin = content.index(b"PK\x01\x02")
    read = 0
    for place in range(begin, len(content)):
        for bit in (0, 1, 3, 5, 7) if place % 2 else (2, 4, 6):
            overwrite(path, content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :])
            found, refusal = attempt(lambda: adom.load(path))
            assert refusal or same(found, result)
            read += not refusal
    assert read > 100  # what says nothing about the arrays, such as a time


@pytest.mark.parametrize("lost", ["x", "provenance", "history/round", "history/error", "history/consensus"])
def test_an_array_that_is_missing_is_noticed(tmp_path, lost):
    parts = [(name, content) for name, content in members(OLD).items() if name != f"{lost}.npy"]
    with pytest.raises(InputError, match=r"not a whole result file \((it lacks|it holds no|some of its columns)"):
        adom.load(archive(tmp_path / "run.npz", parts))


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("x", array(np.ones(3)), "do not fit together"),
        ("x", array(np.array([["a"]])), "are not numbers"),
        ("history/round", array(np.arange(5)), "do not fit together"),
        ("history/round", array(np.ones(6)), "counts are not whole numbers"),
        ("history/mine", array(np.ones((6, 1))), "do not fit together"),
        ("extra", array(np.ones(6)), "it holds extra, which no result has"),
        ("provenance", array(np.ones(6)), "its provenance is not text"),
    ],
)
def test_arrays_that_are_no_results_are_refused(tmp_path, name, content, why):
    parts = (members(OLD) | {f"{name}.npy": content}).items()
    with pytest.raises(InputError, match=rf"not a whole result file \(.*{why}"):
        adom.load(archive(tmp_path / "run.npz", parts))


def test_one_name_twice_is_refused(tmp_path):
    parts = [*members(OLD).items(), ("x.npy", array(np.zeros((4, 2))))]
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = archive(tmp_path / "run.npz", parts)
    with pytest.raises(InputError, match="odd names"):
        adom.load(path)


def test_a_header_that_claims_a_petabyte_takes_no_memory(tmp_path):
    content = members(OLD)["x.npy"].replace(b"(4, 2)", b"(4444444444, 22222)")
    with pytest.raises(InputError, match="not a whole result file"):
        adom.load(archive(tmp_path / "run.npz", (members(OLD) | {"x.npy": content}).items()))


GOOD = {"format": "adom-result-1", "status": "converged", "method": {"name": "adom", "title": "ADOM"}}


@pytest.mark.parametrize(
    "text",
    [
        *(
            "null",
            "7",
            "[]",
            '"text"',
            "",
            "{",
            "NaN",
            "[" * 100_000,
            '{"a":' * 100_000,
            '{"a": "\\ud800"}',
            "1" * 9000,
        ),
        *(json.dumps(GOOD | {"format": one}) for one in (None, "adom-result-2", ["adom-result-1"])),
        *(json.dumps(GOOD | {"status": one}) for one in (None, 3, [])),
        *(json.dumps(GOOD | {"method": one}) for one in (None, 3, [], {}, "adom", {"name": 3, "title": "ADOM"})),
        *(json.dumps(GOOD | {"problem": one}) for one in (3, [], {"nodes": "many"}, {"kappa": []})),
        *(json.dumps(GOOD | one) for one in ({"network": 1}, {"sweep": []}, {"protocol": []}, {"start_error": "x"})),
    ],
)
def test_a_provenance_that_is_none_is_refused(tmp_path, text):
    parts = members(OLD) | {"provenance.npy": array(np.array(text))}
    with pytest.raises(InputError, match="not a whole result file") as caught:
        adom.load(archive(tmp_path / "run.npz", parts.items()))
    assert "\n" not in str(caught.value)


def test_a_provenance_with_the_least_that_is_needed_shows_itself(tmp_path):
    parts = members(OLD) | {"provenance.npy": array(np.array(json.dumps(GOOD)))}
    found = adom.load(archive(tmp_path / "run.npz", parts.items()))
    assert "ADOM, converged" in repr(found)
    assert "ADOM" in found._repr_html_()
    found.plot()


def test_what_cannot_be_saved_is_said_and_what_json_lacks_becomes_null(result, tmp_path):
    infinite = replace(result, provenance={**result.provenance, "tol": float("inf"), "seen": np.float32(0.5)})
    again = adom.load(infinite.save(tmp_path / "run"))
    assert (again.provenance["tol"], again.provenance["seen"]) == (None, 0.5)
    odd = (
        replace(result, provenance={**result.provenance, "odd": object()}),
        replace(result, history=result.history.assign(odd=[object()] * 6)),
    )
    for one in odd:
        with pytest.raises(InputError, match=r"cannot write .*odd.npz: .*; x and history must hold numbers"):
            one.save(tmp_path / "odd.npz")
    for path in (None, 3, "a\0b", tmp_path / "run.npz" / "below"):
        with pytest.raises(InputError):
            result.save(path)
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]
