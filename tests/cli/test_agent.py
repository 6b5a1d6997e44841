"""`adom agent`, `adom agent keys` and `adom swarm`, as they are called."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("zenoh")
pytest.importorskip("cryptography")

SETTINGS = '[agent]\nname = "a"\n[neighbours]\nb = ""\n[problem]\ndata = "a.npz"\nl2 = 0.5\n'


@pytest.fixture(autouse=True)
def files() -> None:
    rng = np.random.default_rng(0)
    np.savez("a.npz", features=rng.standard_normal((9, 3)), labels=np.sign(rng.standard_normal(9)))
    Path("a.toml").write_text(SETTINGS)


def test_check_reads_settings_and_data_and_ends(adom: Any) -> None:
    outcome = adom("agent", "a.toml", "--check", "--set", "l2=0.25", "--set", "count=nodes", "--name", "c")
    assert outcome.code == 0
    found = json.loads(outcome.out)
    assert (found["name"], found["mu"], found["dim"], found["tls"]) == ("c", 0.25, 3, False)


def test_an_agent_alone_runs_and_ends(adom: Any) -> None:
    words = ("--rounds", "60", "--set", "gather=0.05", "--set", "patience=0.05", "--set", "listen=tcp/127.0.0.1:17999")
    outcome = adom("agent", "a.toml", "--out", "lacking", *words)
    last = json.loads(outcome.out.splitlines()[-1])
    assert (outcome.code, last["why"], last["missing"]) == (1, "rounds", "b")
    assert {path.name for path in Path("lacking").iterdir()} == {".lock", "model.candidate.json", "checkpoint.npz"}
    outcome = adom("agent", "a.toml", "--out", "kept", *words, "--set", "require=1")
    assert outcome.code == 0
    events = [json.loads(line) for line in outcome.out.splitlines()]
    assert [events[0]["event"], events[-1]["event"], events[-1]["why"]] == ["start", "end", "rounds"]
    assert {path.name for path in Path("kept").iterdir()} == {".lock", "model.json", "checkpoint.npz"}


def test_keys_are_written_once(adom: Any, refused: Any) -> None:
    outcome = adom("agent", "keys", "a", "b", "--out", "keys", "--json")
    assert [Path(path).name for path in outcome.json["files"]] == [
        *("ca.key", "ca.pem", "a.key", "a.pem", "b.key", "b.pem")
    ]
    assert "a.key exists already" in refused("agent", "keys", "a", "--out", "keys")
    assert "needs the names" in refused("agent", "keys")


def test_wrong_calls_are_refused(refused: Any) -> None:
    assert "cannot read none.toml" in refused("agent", "none.toml")
    assert "did you mean 'patience'" in refused("agent", "a.toml", "--set", "patiense=1")
    assert "takes one file of settings" in refused("agent", "a.toml", "b")
    assert "agents cannot run mudag" in refused("agent", "a.toml", "--check", "--set", "method=mudag")
    assert "cannot read missing" in refused("swarm", "--faults", "missing")


def test_a_swarm_reaches_the_exact_answer(adom: Any) -> None:
    Path("faults.txt").write_text("2.0 start n2\n")
    words = ("--agents", 3, "--late", 1, "--seconds", 2, "--faults", "faults.txt", "--plain", "--port", 21447)
    outcome = adom("swarm", *words, "--seed", 3, "--json")
    assert outcome.code == 0, outcome
    assert outcome.json["error"] <= 1e-8
    assert outcome.json["present"] == ["n0", "n1", "n2"]
