import json
import os
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

import adom
from adom.errors import InputError
from adom.problems.shifted import Shifted
from adom.run.recorder import describe_problem
from adom.util.files import atomic
from support.reference import quadratics


@pytest.fixture(scope="module")
def result():
    problem = adom.Quadratic(*quadratics(4, 2, 10.0))
    return adom.solve(problem, adom.networks.ring(4), parameters="theory", oracle="exact", rounds=30)


def test_saves_and_loads_the_same(result, tmp_path):
    path = result.save(tmp_path / "deep" / "run.npz")
    again = adom.load(path)
    np.testing.assert_array_equal(again.x, result.x)
    assert again.history.equals(result.history)
    assert again.history.dtypes.equals(result.history.dtypes)
    assert (again.status, again.provenance, again.message) == (result.status, result.provenance, result.message)
    assert result.save(tmp_path / "other").name == "other.npz"


def test_file_is_open_and_holds_no_pickle(result, tmp_path):
    path = result.save(tmp_path / "run.npz")
    with np.load(path, allow_pickle=False) as archive:
        assert json.loads(str(archive["provenance"]))["method"]["name"] == "adom"
        np.testing.assert_array_equal(archive["history/error"], result.history["error"])
        assert all(archive[name].dtype != object for name in archive.files)


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_truncated_file_is_refused_in_one_line(result, tmp_path, keep):
    path = result.save(tmp_path / "run.npz")
    size = path.stat().st_size
    os.truncate(path, int(keep * size) if isinstance(keep, float) else keep)
    with pytest.raises(InputError, match=r"run.npz is not a whole result file .*run and save again") as caught:
        adom.load(path)
    assert "\n" not in str(caught.value)


def test_flipped_bits_are_noticed(result, tmp_path):
    path = result.save(tmp_path / "run.npz")
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo("history/error.npy")
    data = bytearray(path.read_bytes())
    data[member.header_offset + 60 + member.compress_size // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(InputError, match="not a whole result file"):
        adom.load(path)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*nowhere.npz: No such file"):
        adom.load(tmp_path / "nowhere.npz")
    np.savez(tmp_path / "alien.npz", y=np.ones(3))
    with pytest.raises(InputError, match="not a whole result file"):
        adom.load(tmp_path / "alien.npz")
    np.savez(tmp_path / "pickle.npz", provenance=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError, match="not a whole result file"):
        adom.load(tmp_path / "pickle.npz")


def test_failed_write_leaves_the_old_file(result, tmp_path):
    path = result.save(tmp_path / "run.npz")
    before = path.read_bytes()

    def fail_halfway():
        with atomic(path) as partial:
            partial.write_bytes(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]


def test_a_place_that_cannot_be_written_is_an_error_of_ours(result, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match=r"cannot write .*choose another place"):
        result.save(tmp_path / "file" / "run.npz")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX file modes")
def test_saved_files_have_ordinary_permissions(result, tmp_path):
    path = result.save(tmp_path / "run.npz")
    (tmp_path / "plain").write_text("")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_result_shows_itself(result):
    assert repr(result).startswith("Result(ADOM, max_rounds: error ")
    assert "30 rounds" in repr(result)


@pytest.mark.parametrize("kind", [np.array, scipy.sparse.csr_array])
def test_a_result_says_how_nodes_of_different_sizes_are_weighted(result, kind):
    rng = np.random.default_rng(0)

    def shown(counts, weights=None):
        data = [(kind(rng.standard_normal((count, 2))), np.arange(count)) for count in counts]
        problem = Shifted(adom.LeastSquares(data, l2=0.1, weights=weights), np.zeros(2), np.zeros((len(counts), 2)))
        made = {**result.provenance, "problem": describe_problem(problem)}
        one = replace(result, provenance=json.loads(json.dumps(made)))
        words = "nodes count alike: 3 to 5 samples each, so a sample of a small node weighs more"
        comparison, card = adom.Comparison({"adom": one}), problem.inner._repr_html_()
        said = [
            words in text for text in (repr(one), one._repr_html_(), repr(comparison), comparison._repr_html_(), card)
        ]
        return said, problem.weighting()

    assert shown([3, 5, 4]) == ([True] * 5, {"fewest": 3, "most": 5, "alike": "nodes"})
    assert shown([4, 4]) == ([False] * 5, {"fewest": 4, "most": 4, "alike": "nodes"})
    assert shown([3, 5], [np.full(3, 0.2), np.full(5, 0.2)]) == (
        [False] * 5,
        {"fewest": 3, "most": 5, "alike": "samples"},
    )
    assert shown([3, 5], [np.full(3, 0.2), np.full(5, 0.3)])[1]["alike"] == "neither"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("unit", "unit"),
        (None, ""),
        ({"eta": 0.1}, "theory with eta=0.1"),
        ({"protocol": "unit", "eta": 1, "tau": 1 / 3}, "unit with eta=1, tau=0.333"),
        ({"protocol": "unit"}, "unit"),
    ],
)
def test_parameters_have_a_name(result, given, name):
    assert replace(result, provenance={"protocol": given}).protocol == name
