"""Result files that were damaged, lie, or hold something else: refused, or read as exactly what was written."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest

import adom
from adom.errors import InputError
from support.damage import archive, attempt, members, mutants, overwrite

NETWORK = adom.networks.path(4)
PROBLEM = adom.Quadratic([np.diag([1.0, node + 1.0]) for node in range(4)], np.arange(8.0).reshape(4, 2))


@pytest.fixture(scope="module")
def result():
    return adom.solve(PROBLEM, NETWORK, "adom", "unit", rounds=6, record_every=1)


@pytest.fixture(scope="module")
def written(result, tmp_path_factory):
    return result.save(tmp_path_factory.mktemp("written") / "run.npz")


def same(one, other):
    tables = one.history.equals(other.history) and list(one.history) == list(other.history)
    rows = one.x.dtype == other.x.dtype and np.array_equal(one.x, other.x)
    return tables and rows and (one.status, one.provenance) == (other.status, other.provenance)


def array(values):
    file = io.BytesIO()
    np.save(file, values, allow_pickle=False)
    return file.getvalue()


def test_what_is_saved_loads_to_the_bit(result, written, tmp_path):
    assert same(adom.load(written), result)
    assert same(adom.load(archive(tmp_path / "run.npz", members(written).items())), result)


def test_no_damage_is_taken_for_a_result(written, tmp_path):
    path = tmp_path / "run.npz"
    path.touch()
    for damaged in mutants(written.read_bytes(), 1500, seed=13):
        overwrite(path, damaged)
        _, refusal = attempt(lambda: adom.load(path))
        assert refusal
        assert "\n" not in refusal


@pytest.mark.parametrize("lost", ["x", "provenance", "history/round", "history/error", "history/consensus"])
def test_an_array_that_is_missing_is_noticed(written, tmp_path, lost):
    parts = [(name, content) for name, content in members(written).items() if name != f"{lost}.npy"]
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
def test_arrays_that_are_no_results_are_refused(written, tmp_path, name, content, why):
    parts = (members(written) | {f"{name}.npy": content}).items()
    with pytest.raises(InputError, match=rf"not a whole result file \(.*{why}"):
        adom.load(archive(tmp_path / "run.npz", parts))


def test_one_name_twice_is_refused(written, tmp_path):
    parts = [*members(written).items(), ("x.npy", array(np.zeros((4, 2))))]
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = archive(tmp_path / "run.npz", parts)
    with pytest.raises(InputError, match="odd names"):
        adom.load(path)


def test_a_header_that_claims_a_petabyte_takes_no_memory(written, tmp_path):
    content = members(written)["x.npy"].replace(b"(4, 2)", b"(4444444444, 22222)")
    with pytest.raises(InputError, match="not a whole result file"):
        adom.load(archive(tmp_path / "run.npz", (members(written) | {"x.npy": content}).items()))


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
def test_a_provenance_that_is_none_is_refused(written, tmp_path, text):
    parts = members(written) | {"provenance.npy": array(np.array(text))}
    with pytest.raises(InputError, match="not a whole result file") as caught:
        adom.load(archive(tmp_path / "run.npz", parts.items()))
    assert "\n" not in str(caught.value)


def test_a_provenance_with_the_least_that_is_needed_shows_itself(written, tmp_path):
    parts = members(written) | {"provenance.npy": array(np.array(json.dumps(GOOD)))}
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
