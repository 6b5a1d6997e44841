"""What is finished is kept: resuming after a kill, Ctrl-C, files that are not whole, keys that say everything."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import adom
from adom.errors import InputError
from adom.run.progress import Interrupt
from adom.run.request import Stop
from adom.study import jobs as module
from adom.study.expand import SweepSpec, expand
from adom.study.jobs import Keys
from support.reference import close, logistic_data

HOME = str(Path(adom.__file__).parents[1])


@pytest.fixture(scope="module")
def problem():
    A, b = logistic_data(5, 6, 3)
    return adom.LogisticRegression.from_nodes(list(zip(A, b, strict=True)), kappa=20.0)


@pytest.fixture(scope="module")
def network():
    return adom.networks.geometric(5, 0.5, graphs=4, seed=0)


AXES = {"factors": {"eta": [0.5, 1, 2]}, "oracles": "gd:1", "rounds": 20}


def test_finished_members_are_not_run_again(problem, network, tmp_path, monkeypatch):
    first = adom.sweep(problem, network, folder=tmp_path, **AXES)
    assert len(list(tmp_path.glob("*.npz"))) == 3
    more = {**AXES, "factors": {"eta": [2, 1, 0.5, 4]}}
    ran = []
    true = module.solve_many
    spy = lambda *given, **extra: ran.append(len(given[2])) or true(*given, **extra)  # noqa: E731  # a spy, named
    monkeypatch.setattr(module, "solve_many", spy)
    second = adom.sweep(problem, network, folder=tmp_path, **more)
    assert ran == [1]
    assert len(second.results) == 4
    pd.testing.assert_frame_equal(second.results[0].history, first.results[2].history)
    monkeypatch.setattr(module, "solve_many", lambda *_, **__: pytest.fail("it ran"))
    again = adom.sweep(problem, network, folder=tmp_path, **AXES)
    pd.testing.assert_frame_equal(again.table, first.table)


def test_a_file_that_is_not_whole_is_said_and_done_again(problem, network, tmp_path):
    first = adom.sweep(problem, network, folder=tmp_path, **AXES)
    one, two, three = sorted(tmp_path.glob("*.npz"))
    one.write_bytes(one.read_bytes()[:100])
    two.write_bytes(three.read_bytes())
    with pytest.warns(UserWarning, match="; the run is made again$") as said:
        again = adom.sweep(problem, network, folder=tmp_path, **AXES)
    assert len(said) == 2
    assert any("is not a whole result file" in str(warning.message) for warning in said)
    assert any("does not hold the run named in its file name" in str(warning.message) for warning in said)
    for number, result in first.results.items():
        close(again.results[number], result)
    adom.sweep(problem, network, folder=tmp_path, **AXES)  # now all are whole: no warning


def test_the_key_holds_all_that_determines_a_result(problem, network):
    def key(problem=problem, network=network, asked=AXES["factors"], tol=None, **budget):
        spec = SweepSpec(factors={"eta": 2.0} if asked else None, oracles=oracle)
        made = expand(problem, network, spec, 20, Stop(tol))[0]
        return Keys(**{"rounds": 20, "record_every": 1, "dtype": "float64", **budget}).key(made)

    oracle = "gd:1"
    A, b = logistic_data(5, 6, 3)
    same = adom.LogisticRegression.from_nodes(list(zip(A, b, strict=True)), kappa=20.0)
    other = adom.LogisticRegression.from_nodes(list(zip(A + 1e-9, b, strict=True)), l2=problem.l2)
    assert key() == key(problem=same) == key(network=adom.networks.geometric(5, 0.5, graphs=4, seed=0))
    found = [
        key(),
        key(problem=other),
        key(problem=problem.with_kappa(21.0)),
        key(network=adom.networks.geometric(5, 0.5, graphs=4, seed=1)),
        key(asked=None),
        key(tol=0.1),
        key(rounds=21),
        key(record_every=2),
        key(dtype="float32"),
    ]
    oracle = "gd:2"
    found.append(key())
    assert len(set(found)) == len(found)


def test_a_method_and_a_loss_of_ones_own_are_known_by_their_code(network):
    def key(loss, cls):
        problem = adom.from_loss(loss, np.arange(10.0).reshape(5, 2), mu=1.0, L=2.0)
        member = expand(problem, network, SweepSpec(methods=cls), 9, Stop())[0]
        return Keys(9, 1, "float64").key(member)

    class Slow(adom.DIGing):
        """The same name, another method."""

        name = "diging"

    def loss(x, c):
        return 0.5 * ((x - c) ** 2).sum()

    def more(x, c):
        return ((x - c) ** 2).sum()

    assert key(loss, adom.DIGing) == key(loss, adom.DIGing)
    assert len({key(loss, adom.DIGing), key(more, adom.DIGing), key(loss, Slow)}) == 3


def test_ctrl_c_returns_what_is_done_and_saves_no_half_member(problem, network, tmp_path, monkeypatch):
    axes = {**AXES, "oracles": ["gd:1", "gd:2"]}
    calls = []
    before = Interrupt.__enter__

    def second(self):
        calls.append(self)
        entered = before(self)
        self.asked = len(calls) == 2
        return entered

    monkeypatch.setattr(Interrupt, "__enter__", second)
    found = adom.sweep(problem, network, folder=tmp_path, **{**axes, "rounds": 5000})
    assert found.interrupted
    assert len(found.results) == len(list(tmp_path.glob("*.npz"))) == 3
    assert set(found.table[found.table["oracle"] == "gd:2"]["status"]) == {"interrupted"}
    assert "3 interrupted" in repr(found)
    monkeypatch.setattr(Interrupt, "__enter__", before)
    assert not adom.sweep(problem, network, folder=tmp_path, **{**axes, "rounds": 5000}).interrupted


CHILD = """
import sys
import adom
H = [[[1.0, 0.2], [0.2, 3.0]]] * 2 + [[[2.0, 0.0], [0.0, 5.0]]] * 3
problem = adom.Quadratic(H, [[1.0, 2.0]] * 4 + [[0.0, 1.0]])
network = adom.networks.erdos_renyi(5, 0.4, graphs=50, seed=1)
adom.sweep(problem, network, factors={"eta": [0.25, 0.5, 1, 2], "tau": [0.5, 1, 2]}, oracles="gd:2", rounds=ROUNDS,
           batch=2, folder=sys.argv[1])
"""


def test_a_killed_sweep_goes_on_where_it_was(tmp_path):
    child = CHILD.replace("ROUNDS", "4000")
    environment = {**os.environ, "PYTHONPATH": HOME}
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = subprocess.Popen([sys.executable, "-c", child, str(killed)], env=environment)
    deadline = time.monotonic() + 120
    while len(list(killed.glob("*.npz"))) < 3 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    kept = {path.name: path.stat().st_mtime_ns for path in killed.glob("*.npz")}
    assert 3 <= len(kept) < 12
    for folder in (killed, whole):
        subprocess.run([sys.executable, "-c", child, str(folder)], env=environment, check=True)
    names = {path.name for path in whole.glob("*.npz")}
    assert names == {path.name for path in killed.glob("*.npz")}
    assert len(names) == 12
    for name in names:
        close(adom.load(killed / name), adom.load(whole / name))
        assert name not in kept or (killed / name).stat().st_mtime_ns == kept[name]


def test_a_blocked_folder_is_refused(problem, network, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot make the folder"):
        adom.sweep(problem, network, folder=tmp_path / "file" / "deep", **AXES)
