"""`adom compare`: the library's numbers, files that can be used again, refusals in one line."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import adom as package
from adom.cli.build import budget, check_run
from adom.cli.config import settle, write_toml
from adom.cli.settings import USUAL
from adom.errors import InputError
from adom.run.progress import Interrupt
from adom.run.result import load

SMALL = ["--nodes", 6, "--samples", 4, "--dim", 4, "--kappa", 8, "--network", "ring", "--oracle", "exact"]
TWO = [*SMALL, "--methods", "pngd, ADOM"]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory, adom: Any) -> Any:
    """Return the folder and the words of one `adom compare --json`."""
    folder = tmp_path_factory.mktemp("compared") / "made"
    outcome = adom("compare", *TWO, "--json", "--out", folder)
    assert (outcome.code, outcome.err) == (0, "")
    return folder, outcome.json


def test_it_reports_what_the_library_computes(compared: Any) -> None:
    from sklearn.datasets import make_classification

    said = compared[1]
    A, b = make_classification(n_samples=24, n_features=4, random_state=0)
    problem, network = package.LogisticRegression(A, b, 6, kappa=8.0), package.networks.ring(6)
    tol = 1e-10 * 6 * float((problem.solution() ** 2).sum())
    expected = package.compare(problem, network, ["pngd", "adom"], "auto", "exact", rounds=5000, tol=tol)
    assert said["target"] == pytest.approx(1e-10, rel=1e-12)
    assert (said["nodes"], said["dim"], said["chi"], said["skipped"]) == (6, 4, network.chi, {})
    assert [row["label"] for row in said["rows"]] == ["pngd", "adom"]
    for row, true in zip(said["rows"], expected.table.to_dict("records"), strict=True):
        for name in ("oracle", "protocol", "status", "rounds", "gradients", "floats_sent", "error"):
            assert row[name] == true[name]
        assert row["rounds_to_target"] == true["rounds_to_target"] == row["rounds"]
        assert row["parameters"] == expected.results[row["label"]].provenance["method"]["parameters"]


def test_methods_outside_of_their_proofs_are_named_once(adom: Any) -> None:
    changing = [*SMALL[:-4], "--network", "ring,star", "--rounds", 3]
    said = adom("compare", *changing, "--methods", "extra,nids,diging").err
    assert said.count("warning: outside of their proofs: EXTRA, NIDS: proved for networks that do not change") == 1
    assert (
        "warning: outside of its proof: NIDS is proved for networks that do not change"
        in adom("solve", *changing, "--method", "nids").err
    )
    late = [*SMALL[:-4], "--network", "ring", "--delay", 1, "--parameters", "unit", "--rounds", 3]
    said = adom("compare", *late, "--methods", "nids,adom").err
    assert "their proofs: NIDS, ADOM: proved for links that carry every message, whole and at once" in said
    assert "change" not in said


def test_it_leaves_files_that_can_be_used_again(compared: Any, adom: Any) -> None:
    folder, said = compared
    files = said["files"]
    assert {path.name for path in folder.iterdir()} == {
        *("pngd.npz", "adom.npz", "table.csv", "comparison.png", "config.toml")
    }
    assert files["results"] == {name: str(folder / f"{name}.npz") for name in ("pngd", "adom")}
    assert load(files["results"]["adom"]).history["round"].iloc[-1] == said["rows"][1]["rounds"]
    assert adom("plot", *files["results"].values(), "-o", "both.png", "--axis", "all").code == 0
    assert "# Run this again with: adom compare config.toml" in (folder / "config.toml").read_text()

    again = adom("compare", folder / "config.toml", "--rounds", 20)
    assert again.code == 0
    table = pd.read_csv("out/compare/table.csv")
    assert table["label"].tolist() == ["pngd", "adom"]
    assert table["rounds"].tolist() == [20, 20]
    assert table["target"].min() > 1e-10  # none reached the tolerance: compared by what one did reach
    assert table["rounds_to_target"].notna().any()
    for text in ("6 nodes, dim 4, kappa 8", "PNGD", "ADOM", "max_rounds", "out/compare/table.csv", "2 result files"):
        assert text in again.out


def test_a_file_may_hold_the_method_of_one_command_and_those_of_the_other() -> None:
    file = Path("both.toml")
    file.write_text("[run]\nmethod = 'adom'\n[compare]\nmethods = 'pngd'\n")
    assert settle(file, {"compare": {"methods": "a,b"}}, USUAL).compare.methods == "a,b"
    settings = settle(file, {}, USUAL)
    assert (settings.run.method, settings.compare.methods) == ("adom", "pngd")
    write_toml(settings, Path("again.toml"))
    assert settle(Path("again.toml"), {}, USUAL) == settings
    write_toml(settle(None, {}, USUAL), Path("none.toml"))
    assert "[compare]" not in Path("none.toml").read_text()


def test_all_methods_by_default(adom: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    true = package.compare

    def one_of_them(problem: Any, network: Any, methods: Any, *rest: Any, **extra: Any) -> Any:
        seen.append(methods)
        return true(problem, network, ["pngd"], *rest, **extra)

    monkeypatch.setitem(vars(package), "compare", one_of_them)
    assert adom("compare", *SMALL, "--rounds", 3, "--json").code == 0
    assert seen == [None]


def test_divergence_is_a_row_and_no_failure(adom: Any) -> None:
    outcome = adom("compare", *TWO, "--parameters", "unit,theta=50", "--rounds", 300)
    assert outcome.code == 0
    assert outcome.out.count("diverged") == 2


def test_interrupting_keeps_what_was_done(adom: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Interrupt, "__enter__", lambda self: setattr(self, "asked", True) or self)
    outcome = adom("compare", *TWO, "--json")
    assert outcome.code == 130
    assert [row["status"] for row in outcome.json["rows"]] == ["interrupted"]
    assert outcome.err == (
        "adom did not run: the comparison was interrupted\ninterrupted; what was done so far is saved\n"
    )
    assert load("out/compare/pngd.npz").status == "interrupted"


@pytest.mark.usefixtures("mine")
def test_interrupted_seeds_say_that_the_same_command_goes_on(adom: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    with monkeypatch.context() as patch:
        patch.setattr(
            Interrupt, "__enter__", lambda self: (runs.append(0), setattr(self, "asked", len(runs) > 2), self)[-1]
        )
        outcome = adom("compare", *SEEDS, "--json")
    assert outcome.code == 130
    assert outcome.err.endswith("interrupted; what was done is saved, and the same command goes on from there\n")
    assert len(list(Path("out/compare/members").iterdir())) == 2
    assert len(adom("compare", *SEEDS, "--json").json["rows"]) == 4


def test_the_budget_is_shared_with_solve() -> None:
    problem = package.Quadratic([[[2.0]], [[2.0]]], [[2.0], [2.0]])  # x* = 1 at both nodes: the start is 2
    relative = settle(None, {"run": {"rounds": 7, "rtol": 1e-3, "record_every": 2}}, USUAL)
    assert budget(relative, problem) == {
        **{"rounds": 7, "record_every": 2, "dtype": "float64"},
        "tol": pytest.approx(2e-3),
    }
    assert budget(settle(None, {"run": {"rtol": 0.0}}, USUAL), problem)["tol"] is None
    assert budget(settle(None, {"run": {"tol": 0.5}}, USUAL), problem)["tol"] == 0.5
    with pytest.raises(InputError, match="got 'eta=x'"):
        check_run(settle(None, {"run": {"parameters": "eta=x"}}, USUAL), [])


MINE = Path(__file__).parents[1] / "support" / "own_method.py"
"""A student's file with a method and a problem."""
SEEDS = ["--problem", "own_method:make", "--nodes", 5, "--methods", "own_method:Mine,diging", "--parameters", "unit"]
SEEDS += ["--rounds", 40, "--seeds", 2, "--network", "ring"]


@pytest.fixture
def mine() -> None:
    Path("own_method.py").write_text(MINE.read_text())


@pytest.mark.usefixtures("mine")
def test_seeds_give_medians_latex_and_runs_that_are_found_again(adom: Any, refused: Any) -> None:
    said = adom("compare", *SEEDS, "--json").json
    assert [(row["method"], row["seed"], row["problem"]) for row in said["rows"]] == [
        (method, seed, "own_method:make") for seed in (0, 1) for method in ("mine", "diging")
    ]
    assert said["seeds"] == [0, 1]
    for row in said["summary"]:
        rounds = [each["rounds_to_target"] for each in said["rows"] if each["method"] == row["method"]]
        assert row["rounds"] == (None if None in rounds else sum(rounds) / 2)
    assert len(list(Path(said["files"]["members"]).glob("*.npz"))) == 4
    assert all(Path(file).exists() for file in said["files"].values())

    text = adom("compare", *SEEDS, "--latex")  # which runs nothing
    assert text.out == Path("out/compare/table.tex").read_text()
    assert text.out.startswith("% needs \\usepackage{booktabs}\n\\begin{table}\n")
    assert "Mine & " in text.out
    again = adom("compare", "out/compare/config.toml")
    assert "2 seeds, which draw the problem" in again.out
    members = {path: path.stat().st_mtime_ns for path in Path(said["files"]["members"]).glob("*.npz")}
    assert len(members) == 4

    more = ["--seeds", 3, "--methods", "diging,own_method:Mine,nids"]
    longer = adom("compare", *SEEDS, *more, "--json").json
    assert [(row["method"], row["seeds"]) for row in longer["summary"]] == [("diging", 3), ("mine", 3), ("nids", 3)]
    assert len(list(Path("out/compare/members").iterdir())) == 9
    assert {path: path.stat().st_mtime_ns for path in members} == members  # found, not run
    config = Path("out/compare/config.toml").read_text()
    names = "diging,own_method:Mine"
    for fewer, differs in (
        ([], f"methods {names},nids (now own_method:Mine,diging), seeds 3 (now 2)"),
        ([*more, "--methods", names], f"methods {names},nids (now {names})"),
        ([*more, "--seeds", 2], "seeds 3 (now 2)"),
        ([*more, "--splits", "label"], "splits none (now label)"),
        ([*more, "--rounds", 41, "--nodes", 6], "nodes 5 (now 6), rounds 40 (now 41)"),
    ):
        line = refused("compare", *SEEDS, *fewer)
        assert (
            line == f"error: out/compare holds 9 runs with {differs}; take another --out, or --fresh to remove them\n"
        )
    line = refused("compare", *SEEDS[:-4], "--network", "ring")
    assert "out/compare holds 9 runs of several seeds, splits or networks; take another --out, or --fresh" in line
    assert Path("out/compare/config.toml").read_text() == config


@pytest.mark.usefixtures("mine")
def test_what_cannot_be_compared_is_refused(refused: Any) -> None:
    folder = Path("out/compare/members")
    folder.mkdir(parents=True)
    (folder / f"{'0' * 32}.npz").write_bytes(b"another's")
    for words in (SEEDS, TWO):
        assert "out/compare holds 1 run of " in refused("compare", *words)
    assert "--latex and --json exclude each other" in refused("compare", *TWO, "--latex", "--json", "--out", "x")
    assert "--splits names 'lable', which is no split; did you mean 'label'" in refused(
        "compare", *TWO, "--splits", "lable", "--out", "x"
    )
    for option, name in {"--splits": "label", "--networks": "ring", "--methods": "dgd"}.items():
        message = refused("compare", *SMALL[:8], option, f"{name},{name}", "--out", "x")
        assert f"{option} names '{name}' twice; leave one out" in message
    Path("few.csv").write_text("".join(f"{i},{i * i % 7},{i % 2}\n" for i in range(12)))
    same = refused("compare", "--data", "few.csv", "--nodes", 4, "--network", "ring", "--seeds", 2, "--out", "x")
    assert "the seeds change neither 'few' nor 'ring': all runs would be the same; take --split shuffled" in same


@pytest.mark.usefixtures("mine")
def test_what_is_refused_leaves_runs_and_settings_as_they_were(adom: Any, refused: Any) -> None:
    folder = Path("out/compare")
    refused("compare", *SEEDS, "--methods", "own_method:Mine,push-pull", "--rounds", 3, "--network", "torus")
    assert not (folder / "config.toml").exists()
    assert adom("compare", *SEEDS, "--rounds", 3).code == 0
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.suffix in (".toml", ".npz")}
    assert len(files) == 5
    for fresh in ([], ["--fresh"]):
        refused("compare", *SEEDS, "--rounds", 3, "--methods", "own_method:Mine,diging,mudag", *fresh)
        assert {path: path.read_bytes() for path in files} == files
    assert "out/compare holds 4 runs of a comparison or a sweep; take another --out\n" in refused(
        "solve", "--out", folder
    )
    assert adom("compare", *SEEDS, "--rounds", 3).code == 0
    assert adom("compare", *SEEDS, "--rounds", 4, "--fresh").code == 0
    assert {path.name for path in (folder / "members").iterdir()}.isdisjoint(path.name for path in files)


def test_a_seed_of_the_network_keeps_it_the_same(adom: Any) -> None:
    words = [*SMALL[:-4], "--graphs", 2, "--rounds", 2]
    for number, more in enumerate((["--seeds", 2], ["--splits", "label"])):
        given = ["--methods", "diging", "--network-seed", 77, *more]
        said = adom("compare", *words, *given, "--json", "--out", f"out/{number}").json
        runs = [load(path) for path in Path(said["files"]["members"]).iterdir()]
        assert {run.provenance["network"]["seed"] for run in runs} == {77}
    alone = adom("compare", *words, "--methods", "diging", "--splits", "label", "--seed", 3, "--json").json
    expected = adom("solve", *words, "--method", "diging", "--split", "label", "--seed", 3, "--json").json
    assert alone["rows"][0]["error"] == expected["error"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "--network ring --networks star",
            "--network ring has no effect beside --networks star; leave it out, or name",
        ),
        ("--split label --splits shuffled", "--split label has no effect beside --splits shuffled; leave it out, or n"),
        ("--networks ring,star --radius 0.3", "--radius 0.3 has no effect on network ring,star; it belongs to geometr"),
        ("--networks ring --degree 4", "--degree 4 has no effect on network ring; it belongs to expander: leave it o"),
        (
            "--networks ring --graphs 4",
            "belongs to erdos-renyi, expander, geometric, waypoint: leave it out, or change",
        ),
        (
            "--splits label --concentration 0.1",
            "on split label; it belongs to dirichlet: leave it out, or give --splits",
        ),
        (
            "lists.toml --network star",
            "--network star has no effect beside networks = 'ring'; leave it out, or name it",
        ),
        ("lists.toml --split label", "--split label has no effect beside splits = 'dirichlet'; leave it out, or name"),
        ("lists.toml --radius 0.3", "--radius 0.3 has no effect on network ring; it belongs to geometric, waypoint: l"),
    ],
)
def test_options_in_whose_place_there_is_a_list_are_refused(refused: Any, words: str, message: str) -> None:
    Path("lists.toml").write_text('[compare]\nnetworks = "ring"\nsplits = "dirichlet"\n')
    assert message in refused("compare", *words.split(), "--nodes", 6)


def test_a_list_takes_the_options_of_all_that_it_names(adom: Any) -> None:
    size = ["--nodes", 8, "--samples", 4, "--dim", 4, "--kappa", 8, "--rounds", 5, "--methods", "diging"]
    for words in (
        ["--networks", "expander,ring", "--degree", 4, "--graphs", 3],
        ["--networks", "ring,star", "--failing", 0.1, "--graphs", 3],
        ["--network", "ring", "--splits", "label,dirichlet", "--concentration", 2.0],
    ):
        assert adom("compare", *size, *words, "--fresh").code == 0
    members = [load(path) for path in Path("out/compare/members").iterdir()]
    assert len(members) == 2
    assert adom("compare", *size, "--networks", "ring", "--failing", 0.1, "--graphs", 3, "--out", "failing").code == 0
    (member,) = Path("failing/members").iterdir()
    assert load(member).provenance["network"]["graphs"] == 3


def test_latex_of_one_comparison(adom: Any) -> None:
    outcome = adom("compare", *TWO, "--rounds", 3, "--latex")
    assert outcome.out == Path("out/compare/table.tex").read_text()
    assert "ADOM & " in outcome.out
