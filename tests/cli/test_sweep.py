"""`adom sweep`: the library's numbers, resuming, refusals in one line."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adom as package
from adom.cli.config import read_toml, settle, write_toml
from adom.cli.settings import USUAL
from adom.run.progress import Interrupt
from adom.run.result import load

FILE = """
[problem]
nodes = 6
samples = 4
dim = 4
kappa = 8.0
[network]
radius = 0.5
graphs = 5
[run]
rounds = 300
oracle = "gd:2"
rtol = 1e-6
[sweep]
methods = ["adom", "diging"]
kappas = [4, 8.0]
seeds = [0, 1]
[sweep.factors]
eta = [0.5, 1]
"""


@pytest.fixture
def file() -> Path:
    path = Path("sweep.toml")
    path.write_text(FILE)
    return path


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory, adom: Any) -> Any:
    """Return the folder and the words of one `adom sweep --json`."""
    folder = tmp_path_factory.mktemp("swept")
    (folder / "sweep.toml").write_text(FILE)
    outcome = adom("sweep", folder / "sweep.toml", "--json", "--out", folder / "made")
    assert (outcome.code, outcome.err) == (0, "")
    return folder / "made", outcome.json


def test_it_reports_what_the_library_computes(swept: Any) -> None:
    from sklearn.datasets import make_classification

    folder, said = swept

    def problem(seed: int) -> package.LogisticRegression:
        A, b = make_classification(n_samples=24, n_features=4, random_state=seed)
        return package.LogisticRegression(A, b, 6, kappa=8.0)

    network = package.networks.geometric(6, 0.5, graphs=5, seed=0)
    expected = package.sweep(
        *(problem, network, ["adom", "diging"]),
        factors={"eta": [0.5, 1]},
        oracles="gd:2",
        kappas=[4, 8],
        seeds=2,
        rounds=300,
        rtol=1e-6,
    )
    assert (said["members"], said["done"], said["interrupted"], said["refused"]) == (12, 12, False, [])
    table = pd.read_csv(folder / "table.csv")  # a row for each member
    for name in ("label", "status", "rounds", "seed"):
        assert table[name].tolist() == expected.table[name].tolist()
    assert table["error"].tolist() == pytest.approx(expected.table["error"].tolist(), rel=1e-6)
    assert [row["member"] for row in said["rows"]] == expected.ranking()["member"].tolist()
    for row in said["rows"]:  # one for each setting
        pair = table.iloc[[row["member"], row["member"] + 2 - (row["label"] == "diging")]]
        assert (pair["seed"].tolist(), row["seed"], row["seeds"]) == ([0, 1], None, 2)
        rounds = pair["rounds_to_target"].fillna(np.inf)
        spread = [rounds.median(), rounds.min(), rounds.max()]
        expected_row = [value if np.isfinite(value) else None for value in spread]
        assert [row[f"rounds_to_target{end}"] for end in ("", "_low", "_high")] == expected_row
        assert row["reached"] == np.isfinite(rounds).sum()


def test_it_leaves_files_that_can_be_used_again(swept: Any, adom: Any) -> None:
    folder, said = swept
    assert {path.name for path in folder.iterdir()} == {"members", "table.csv", "sweep.png", "config.toml"}
    members = sorted((folder / "members").iterdir())
    assert len(members) == 12
    assert {round(load(path).provenance["problem"]["kappa"], 9) for path in members} == {4.0, 8.0}
    assert said["files"]["table"] == str(folder / "table.csv")
    assert adom("plot", *members[:2], "-o", "two.png").code == 0
    text = (folder / "config.toml").read_text()
    assert "# Run this again with: adom sweep config.toml" in text
    assert read_toml(folder / "config.toml")["sweep"]["factors"] == {"eta": [0.5, 1]}


def test_the_same_command_resumes_and_another_sweep_is_refused(file: Path, adom: Any, refused: Any) -> None:
    first = adom("sweep", file)
    assert first.code == 0
    over = "medians, and [least, greatest] rounds, over 2 seeds"
    for text in ("6 nodes, dim 4; 12 of 12 members done, best first", over, "diging", "out/sweep/table.csv"):
        assert text in first.out
    assert first.out.count("  adom ") == 4  # a row for each setting
    assert first.out.count("2/2") >= 4
    members = sorted(Path("out/sweep/members").iterdir())
    members[0].unlink()
    members[1].write_bytes(b"broken")
    kept = {path: path.stat().st_mtime_ns for path in members[2:]}
    again = adom("sweep", file, "--batch", 2)
    assert again.code == 0
    assert "is not a whole result file" in again.err
    assert again.err.endswith("(it has no checksum at its end); the run is made again\n")
    assert again.err.count("\n") == 1
    assert sorted(Path("out/sweep/members").iterdir()) == members
    assert {path: path.stat().st_mtime_ns for path in members[2:]} == kept
    file.write_text(FILE.replace("seeds = [0, 1]", "seeds = [0]"))
    assert "out/sweep holds 12 runs with seeds [0, 1] (now [0]); take" in refused("sweep", file)
    file.write_text(FILE.replace("eta = [0.5, 1]", "eta = [0.5, 1, 2]").replace("seeds = [0, 1]", "seeds = 2"))
    more = adom("sweep", file, "--rounds", 300)
    assert "16 of 16 members done, best first" in more.out
    longer = sorted(Path("out/sweep/members").iterdir())
    assert {path: path.stat().st_mtime_ns for path in members[2:]} == kept
    assert set(members) < set(longer)
    members = longer
    message = refused("sweep", file, "--rounds", 20)
    assert "out/sweep holds 16 runs with rounds 300 (now 20); take another --out, or --fresh" in message
    assert sorted(Path("out/sweep/members").iterdir()) == members
    fresh = adom("sweep", file, "--rounds", 20, "--fresh")
    assert fresh.code == 0
    assert not set(members) & set(Path("out/sweep/members").iterdir())


def test_lists_win_over_the_one_of_the_run_table(file: Path, adom: Any) -> None:
    file.write_text(FILE + "[sweep.grid]\ntheta = 0.01\n")
    outcome = adom("sweep", file, "--method", "pngd", "--json")
    assert {row["label"] for row in outcome.json["rows"]} == {"adom", "diging"}
    assert {row["theta"] for row in outcome.json["rows"]} == {0.01, None}


def test_without_a_target_reached_the_least_error_is_it(file: Path, adom: Any) -> None:
    outcome = adom("sweep", file, "--rounds", 5, "--json")
    assert outcome.code == 0
    targets = {row["target"] for row in outcome.json["rows"]}
    assert len(targets) == 1
    assert targets.pop() > 1e-6


def test_members_that_cannot_run_are_said(file: Path, adom: Any) -> None:
    file.write_text(FILE.replace("eta = [0.5, 1]", "tau = [1, 1e4]"))
    outcome = adom("sweep", file, "--json")
    assert outcome.code == 0
    assert [row["status"] for row in outcome.json["refused"]] == ["refused"] * 4
    assert "4 members did not run, the first (adom, unit, tau x 1e+04, oracle gd:2): tau must lie in" in outcome.err


def test_interrupting_keeps_what_was_done(file: Path, adom: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Interrupt, "__enter__", lambda self: setattr(self, "asked", True) or self)
        outcome = adom("sweep", file)
    assert outcome.code == 130
    assert "interrupted; what was done is saved, and the same command goes on from there" in outcome.err
    assert adom("sweep", file).code == 0


def test_settings_read_back(file: Path) -> None:
    more = "[sweep.grid.adom]\ntau = [0.01]\n[sweep.assume]\nchi = [1, 2]\n[[sweep.settings]]\nsigma = 1\n"
    file.write_text(FILE + more)
    settings = settle(file, {}, USUAL)
    assert settings.sweep.seeds == [0, 1]
    write_toml(settings, Path("again.toml"), "sweep")
    assert settle(Path("again.toml"), {}, USUAL) == settings
    file.write_text(FILE.replace("seeds = [0, 1]", "seeds = 2") + more)
    assert settle(file, {}, USUAL) == settings
    plain = settle(None, {}, USUAL)
    write_toml(plain, Path("plain.toml"))
    assert "[sweep]" not in Path("plain.toml").read_text()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("kappas = ['x']", "kappas must be a list of numbers, got 'x'; e.g. kappas = [0.5, 1, 2]"),
        ("seeds = [1.5]", "seeds must be a list of whole numbers, got 1.5"),
        ("seeds = 0", "seeds must be a whole number of at least 1, got 0; e.g. seeds = 3, or a list: [0, 1, 2]"),
        ("seeds = 'x'", "seeds must be a whole number of at least 1, got 'x'; e.g. seeds = 3, or a list"),
        ("factors = 3", "factors must be a table of lists, got 3"),
        ("settings = [3]", "settings must be a list of tables of numbers, got 3"),
        ("methods = ['adm']", "unknown method 'adm'; did you mean 'adom'?"),
        ("parameters = ['tuned']", "a sweep cannot start from tuned parameters"),
        ("factors = {eta = ['x']}", "factors['eta'] must be a number, got 'x'"),
        ("factors = {eat = [1]}", "has no parameter 'eat'; did you mean 'eta'?"),
        ("kappas = [1.0]", "kappa must be a finite number above 1 and at most 1e+15, got 1.0"),
    ],
)
def test_bad_lists(table: str, message: str, refused: Any) -> None:
    head = FILE.split("[sweep]", maxsplit=1)[0]
    Path("bad.toml").write_text(f"{head}[sweep]\n{table}\n")
    assert message in refused("sweep", "bad.toml")
    Path("bad.toml").write_text(f"{head}[sweep]\nkappas = [3]\n")  # a refused sweep claims no folder


def test_tuned_parameters_of_a_run(adom: Any) -> None:
    small = ["--nodes", 5, "--samples", 4, "--dim", 4, "--kappa", 8, "--network", "ring", "--method", "diging"]
    outcome = adom("solve", *small, "--parameters", "tuned", "--rounds", 100, "--json")
    assert (outcome.code, outcome.json["protocol"]) == (0, "tuned")
    tuning = load("out/result.npz").provenance["tuning"]
    assert (tuning["candidates"], tuning["rounds"]) == (96, 100)
