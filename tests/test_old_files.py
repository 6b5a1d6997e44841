"""Files that version 0.1 wrote before its modules were moved are still read, and runs go on from them."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import adom
from adom.run.ranks.solve import on_one_rank
from adom.run.request import Request

FILES = Path(__file__).with_name("old_files")
METHODS = [adom.DIGing(a=0.125), ("slow", adom.DIGing(a=0.0625))]
ROUNDS = 12


@pytest.fixture
def old(tmp_path):
    return Path(shutil.copytree(FILES, tmp_path / "old"))


@pytest.fixture(scope="module")
def problem():
    H = np.stack([np.diag([1.0, 1.0 + node]) for node in range(4)])
    return adom.Quadratic(H, np.arange(8.0).reshape(4, 2))


@pytest.fixture(scope="module")
def network():
    return adom.networks.alternate([adom.networks.ring(4), adom.networks.star(4)], every=2)


def same(result, other):
    assert result.status == other.status
    np.testing.assert_allclose(result.x, other.x, rtol=1e-12)
    np.testing.assert_allclose(result.history["error"], other.history["error"], rtol=1e-12)
    assert result.history["floats_sent"].tolist() == other.history["floats_sent"].tolist()


def test_results_of_a_comparison(problem, network):
    for label, method in (("diging", METHODS[0]), ("slow", METHODS[1][1])):
        result = adom.load(FILES / "compare" / f"{label}.npz")
        assert result.provenance["method"]["parameters"] == {"a": method.a}
        same(result, adom.solve(problem, network, method, rounds=ROUNDS))


def test_a_sweep_goes_on_in_its_folder(problem, network, old):
    folder = old / "sweep"
    first, second = sorted(folder.glob("*.npz"))
    before = second.read_bytes(), second.stat().st_mtime_ns
    first.unlink()
    again = adom.sweep(problem, network, METHODS, rounds=ROUNDS, folder=folder, progress=False)
    assert (second.read_bytes(), second.stat().st_mtime_ns) == before, "it was run again"
    same(adom.load(first), adom.load(FILES / "sweep" / first.name))
    assert len(again.results) == 2


def test_a_run_goes_on_from_a_checkpoint(problem, network, old):
    request = Request(rounds=30, engine="mpi", progress=False)
    kept = adom.Checkpoints(old / "checkpoints", every_rounds=5, resume=True)
    result = on_one_rank(problem, network, METHODS[0], "given", request, kept)
    assert result.provenance["resumed"] == 10
    same(result, adom.solve(problem, network, METHODS[0], rounds=30))
