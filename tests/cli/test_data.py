"""`adom data`, and data sets by name in the other commands; nothing here needs a connection."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from adom.cli.build import network, problem
from adom.cli.config import read_toml, settle, write_toml
from adom.cli.settings import DATA_SETS, USUAL
from adom.data import sets
from adom.data.paper_data import LINKS, MEMBERS
from adom.data.sets import Piece
from adom.errors import InputError

TEXT = "".join(f"{1 if k < 30 else -1} 1:{k % 7} 2:{(k * k) % 5}\n" for k in range(60)).encode()


def test_the_names_for_the_shell_are_those_that_there_are() -> None:
    assert DATA_SETS == sets.SAMPLES


def pinned(name: str, text: bytes) -> Piece:
    return Piece(name, hashlib.sha256(text).hexdigest(), len(text))


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with a small a6a and a small infectious_ct1 in it, and pages that cannot be reached."""
    folder = tmp_path / "kept"
    folder.mkdir()
    monkeypatch.setenv("ADOM_DATA", str(folder))
    for name, chosen in list(sets.SETS.items()):
        monkeypatch.setitem(sets.SETS, name, replace(chosen, url=f"http://127.0.0.1:9/{chosen.file}"))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    (folder / "a6a").write_bytes(TEXT)
    monkeypatch.setitem(sets.SETS, "a6a", replace(sets.SETS["a6a"], pieces=(pinned("a6a", TEXT),), features=2))

    ring = "".join(f"{g * 50 + i + 1}, {g * 50 + (i + 1 + g) % 50 + 1}\n" for g in range(2) for i in range(50))
    ring += "".join(f"{50 + i + 1}, {50 + (i + 1) % 50 + 1}\n" for i in range(50))
    texts = {LINKS: ring.encode(), MEMBERS: b"1\n" * 50 + b"2\n" * 50}
    for name, text in texts.items():
        (folder / name).write_bytes(text)
    pieces = tuple(pinned(name, text) for name, text in texts.items())
    monkeypatch.setitem(sets.SETS, "infectious_ct1", replace(sets.SETS["infectious_ct1"], pieces=pieces))
    return folder


def test_the_list(adom: Any, kept: Path) -> None:
    listed = adom("data", "--json").json
    assert listed["folder"] == str(kept)
    assert {name: one["status"] for name, one in listed["sets"].items()} == {
        "a6a": "present",
        "w6a": "absent",
        "ijcnn1": "absent",
        "infectious_ct1": "present",
    }
    shown = adom("data")
    assert shown.code == 0
    assert "--download fetches absent files" in shown.out
    assert shown.err == ""
    assert list(adom("data", "a6a", "--json").json["sets"]) == ["a6a"]
    assert "fetches" not in adom("data", "a6a").out
    assert adom("data", "a6a", "--download").code == 0


def test_a_wrong_file_is_an_exit_code_and_one_line(adom: Any, refused: Any, kept: Path) -> None:
    (kept / "a6a").write_bytes(b"+1 1:1\n")
    outcome = adom("data", "a6a")
    assert outcome.code == 1
    assert "WRONG CHECKSUM" in outcome.out
    assert outcome.err.count("\n") == 1
    assert "is not the a6a of a6a" in outcome.err
    assert "is not the a6a of a6a" in refused("data", "a6a", "--download")
    assert "is not the a6a of a6a" in refused("solve", "--data", "a6a", "--nodes", 5)


def test_refusals(refused: Any, kept: Path) -> None:
    assert f"w6a is not in {kept} and could not be downloaded: no connection" in refused("data", "w6a", "--download")
    assert "or set ADOM_DATA" in refused("solve", "--data", "w6a", "--network", "ring")
    assert "leave --label and --dim out" in refused("solve", "--data", "a6a", "--dim", 7, "--network", "ring")
    assert "it belongs to dirichlet" in refused("solve", "--split", "label", "--concentration", 1)
    assert "--nodes 20 does not fit network infectious" in refused("network", "--network", "infectious", "--nodes", 20)


def test_a_set_by_name_with_a_split(adom: Any) -> None:
    flags = ["--nodes", 5, "--network", "complete", "--oracle", "gd:1", "--rounds", 5, "--json"]
    alike, unlike = (
        adom("solve", "--data", "a6a", "--split", how, *flags, "--out", how).json for how in ("shuffled", "label")
    )
    assert (alike["dim"], alike["nodes"]) == (2, 5)
    assert alike["error"] != unlike["error"]
    again = adom("solve", "label/config.toml", "--out", "again", "--json")
    assert (again.code, again.json["status"]) == (1, "growing")  # five rounds end far above the start
    assert again.json["error"] == unlike["error"]
    assert 'data = "a6a"' in Path("label/config.toml").read_text()


def test_splits_of_synthetic_data() -> None:
    made = [
        problem(settle(None, {"problem": {"nodes": 4, "samples": 9, "dim": 5, **more}}, USUAL), 4)
        for more in ({}, {"split": "contiguous"}, {"split": "label"}, {"split": "dirichlet", "concentration": 0.1})
    ]
    whole = [np.asarray(one.solution()) for one in made[:3]]
    assert (whole[0] == whole[1]).all()
    with jax.enable_x64(True):
        slopes = [np.asarray(one.gradient_rows(np.zeros((4, 5)))) for one in made]
    assert np.abs(slopes[2].mean(axis=0) - slopes[0].mean(axis=0)).max() < 1e-12  # the same samples, nine a node
    assert np.abs(slopes[2] - slopes[0]).max() > 0.01
    assert np.abs(slopes[3] - slopes[0]).max() > 0.01


def test_infectious_brings_its_own_number_of_nodes() -> None:
    config = settle(None, {"network": {"kind": "infectious"}}, USUAL)
    assert config.problem.nodes == 50
    made = network(config)
    assert (made.nodes, made.period) == (50, 2)
    both = network(settle(None, {"network": {"kind": "infectious,ring", "every": 3}}, USUAL))
    assert (both.nodes, both.period) == (50, 12)
    with pytest.raises(InputError, match="--graphs 5 has no effect on network infectious"):
        settle(None, {"network": {"kind": "infectious", "graphs": 5}}, USUAL)


def test_a_file_with_the_name_of_a_set_is_given_as_a_path() -> None:
    Path("a6a").write_text("+1 1:1\n-1 1:2\n")
    flags = {"problem": {"data": "./a6a", "nodes": 2}}
    config = settle(None, flags, USUAL)
    assert problem(config, 2).dim == 1
    for place in ("config.toml", "out.toml"):
        write_toml(config, Path(place))
        assert read_toml(Path(place))["problem"]["data"] == "./a6a"
    named = settle(None, {"problem": {"data": "a6a", "nodes": 2}}, USUAL)
    assert problem(named, 2).dim == 2
    Path("deep").mkdir()
    write_toml(named, Path("deep/config.toml"))
    assert read_toml(Path("deep/config.toml"))["problem"]["data"] == "a6a"
    write_toml(config, Path("deep/config.toml"))
    assert Path(read_toml(Path("deep/config.toml"))["problem"]["data"]).samefile("a6a")


def test_a_split_on_the_command_line_does_away_with_the_files_concentration() -> None:
    Path("run.toml").write_text('[problem]\nsplit = "dirichlet"\nconcentration = 0.1\n')
    assert settle(Path("run.toml"), {}, USUAL).problem.concentration == 0.1
    assert settle(Path("run.toml"), {"problem": {"split": "label"}}, USUAL).problem.concentration is None
