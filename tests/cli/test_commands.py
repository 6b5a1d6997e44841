"""The commands: their numbers are the library's, their files can be used again, their refusals say why."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adom as package
from adom.run.calls.theory import Row
from adom.run.progress import Interrupt
from adom.run.result import load

SMALL = ["--nodes", 8, "--samples", 6, "--dim", 5, "--kappa", 10, "--network", "ring", "--oracle", "gd:1"]


def test_solve_reports_what_the_library_computes(done: Any) -> None:
    from sklearn.datasets import make_classification

    A, b = make_classification(n_samples=48, n_features=5, random_state=0)
    problem, network = package.LogisticRegression(A, b, 8, kappa=10.0), package.networks.ring(8)
    start = 8 * float((problem.solution() ** 2).sum())
    result = package.solve(problem, network, "adom", "auto", ("gd", 1), rounds=5000, tol=1e-10 * start)
    last = result.history.iloc[-1]
    summary = done.summary
    assert summary["status"] == "converged"
    assert summary["rounds"] == last["round"]
    assert summary["error"] == last["error"]
    assert summary["relative_error"] == last["error"] / start <= 1e-10
    assert summary["floats_sent"] == last["floats_sent"]
    assert (summary["nodes"], summary["dim"], summary["oracle"]) == (8, 5, "gd:1")
    assert summary["kappa"] == pytest.approx(10)
    assert summary["chi"] == network.chi
    assert summary["parameters"] == result.provenance["method"]["parameters"]


def test_solve_leaves_four_files(done: Any) -> None:
    names = {"result.npz", "history.csv", "convergence.png", "config.toml"}
    assert {path.name for path in done.folder.iterdir()} - {"history.jsonl"} == names  # which a slow run has too
    assert {Path(path).name for path in done.summary["files"].values()} == names
    result, table = load(done.folder / "result.npz"), pd.read_csv(done.folder / "history.csv")
    assert list(table.columns) == list(result.history.columns)
    np.testing.assert_array_equal(table["error"], result.history["error"])
    assert (done.folder / "convergence.png").read_bytes().startswith(b"\x89PNG")


def test_the_saved_configuration_runs_again_to_the_same_errors(done: Any, adom: Any) -> None:
    outcome = adom("solve", done.folder / "config.toml", "--out", "again")
    assert outcome.code == 0
    again = pd.read_csv("again/history.csv")
    np.testing.assert_array_equal(again["error"], pd.read_csv(done.folder / "history.csv")["error"])
    assert Path("again/config.toml").read_text() == (done.folder / "config.toml").read_text()
    for text in ("ADOM, parameters auto", "8 nodes, dim 5, kappa 10", f"{done.summary['rounds']:,}", "converged"):
        assert text in outcome.out
    assert "again/result.npz" in outcome.out
    assert outcome.err == ""


def test_the_budget_may_run_out(adom: Any) -> None:
    summary = adom("solve", *SMALL, "--rounds", 7, "--record-every", 3, "--json").json
    assert (summary["status"], summary["advice"]) == ("max_rounds", "raise --rounds for more")
    assert summary["rounds"] == 7
    assert load("out/result.npz").history["round"].tolist() == [3, 6, 7]


def test_divergence_is_an_exit_code_and_a_line(adom: Any) -> None:
    outcome = adom("solve", *SMALL, "--parameters", "unit,theta=50", "--json")
    assert outcome.code == 1
    assert outcome.json["status"] == "diverged"
    assert outcome.json["protocol"] == {"protocol": "unit", "theta": 50.0}
    assert outcome.err.count("\n") == 1
    assert outcome.err.startswith("diverged: the error reached")
    assert f"by round {outcome.json['rounds']}" in outcome.err
    assert "--parameters theory" in outcome.err


def test_growth_is_an_exit_code_and_a_line(adom: Any) -> None:
    outcome = adom("solve", *SMALL, "--parameters", "unit,theta=6", "--rounds", 10)
    result = load("out/result.npz")
    assert 2 < result.history["error"].iloc[-1] / result.provenance["start_error"] < 1e12
    assert outcome.code == 1
    assert "growing" in outcome.out
    assert outcome.err.startswith("growing: the error rose from ")
    assert outcome.err.endswith("; take --parameters theory and --oracle exact\n")
    assert "--rounds" not in outcome.out + outcome.err


def test_a_tolerance_below_rounding_is_an_exit_code_and_a_line(adom: Any) -> None:
    words = [*SMALL[:-2], "--method", "acc-gt", "--dtype", "float32", "--rounds", 2000, "--json"]
    outcome = adom("solve", *words, "--rtol", 1e-20)
    assert (outcome.code, outcome.json["status"]) == (1, "stalled")
    assert outcome.err.startswith("stalled: at the floor of rounding since round ")
    assert outcome.err.endswith("; take --dtype float64 or ask for less by a larger --rtol\n")
    outcome = adom("solve", *words, "--rtol", 0)
    assert (outcome.code, outcome.json["status"], outcome.err) == (0, "max_rounds", "")
    assert outcome.json["message"].startswith("at the floor of rounding since round ")
    assert outcome.json["advice"] == "more rounds do not help"


def test_interrupting_keeps_what_was_done(adom: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Interrupt, "__enter__", lambda self: setattr(self, "asked", True) or self)
    outcome = adom("solve", *SMALL, "--json")
    assert outcome.code == 130
    summary = outcome.json
    assert summary["status"] == "interrupted"
    assert 0 < summary["rounds"] < 100
    assert outcome.err == f"interrupted after {summary['rounds']} rounds; what was done so far is saved\n"
    assert load("out/result.npz").history["round"].iloc[-1] == summary["rounds"]


def test_samples_from_a_file(adom: Any) -> None:
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((40, 5)), rng.choice(["no", "yes"], 40)
    np.savez("data.npz", features=A, labels=b)
    table = pd.DataFrame(A).assign(y=(b == "yes") * 1)
    table.to_csv("data.csv", index=False)
    shared = ["--nodes", 8, "--network", "ring", "--oracle", "gd:1", "--json", "--rounds", 20]
    first = adom("solve", "--data", "data.npz", *shared).json
    second = adom("solve", "--data", "data.csv", "--label", "y", *shared).json
    assert first["dim"] == 5
    assert first["kappa"] == pytest.approx(100)
    assert second["error"] == pytest.approx(first["error"], rel=1e-12)
    assert first["samples"] == {"fewest": 5, "most": 5, "alike": "nodes"}


def test_solve_says_how_nodes_of_different_sizes_are_weighted(adom: Any) -> None:
    rng = np.random.default_rng(0)
    np.savez("data.npz", features=rng.standard_normal((41, 5)), labels=rng.choice([0, 1], 41))
    shared = ["--data", "data.npz", "--nodes", 8, "--network", "ring", "--rounds", 2]
    words = "nodes count alike: 5 to 6 samples each, so a sample of a small node weighs more"
    assert words in " ".join(adom("solve", "--oracle", "gd:1", "--count", "nodes", *shared).out.split())
    assert adom("compare", "--methods", "diging", "--count", "nodes", *shared).err == f"{words}\n"
    solved = adom("solve", "--oracle", "gd:1", "--C", 0.5, *shared)
    assert "samples count alike, 5 to 6 a node" in " ".join(solved.out.split())
    assert f"l2 {2 / 41:.6g}, C 0.5 as scikit-learn counts" in " ".join(solved.out.split())
    assert package.load("out/result.npz").provenance["problem"]["samples"]["alike"] == "samples"
    assert adom("compare", "--methods", "diging", *shared).err == ""


def test_one_way_to_say_the_penalty(refused: Any) -> None:
    assert "--kappa 10 and --C 2 exclude each other" in refused("solve", "--kappa", 10, "--C", 2)
    assert "--l2 1 and --C 2 exclude each other" in refused("solve", "--l2", 1, "--C", 2)
    assert "nodes count equally; give --l2" in refused("solve", "--count", "nodes", "--C", 2)
    assert "unknown count 'votes'" in refused("solve", "--count", "votes")


def test_network_describes_and_draws(adom: Any) -> None:
    outcome = adom("network", "--network", "ring,star", "--nodes", 10, "--every", 4, "--json")
    described = outcome.json
    ring, star = package.networks.ring(10), package.networks.star(10)
    assert (described["nodes"], described["graphs"], described["period"]) == (10, 2, 8)
    assert described["chi"] == pytest.approx(max(ring.chi, star.chi))
    assert described["chi_rounds"]["best"] == pytest.approx(star.chi)
    assert described["chi_rounds"]["worst"] == pytest.approx(ring.chi)
    assert described["recipe"]["generator"] == "alternate"
    assert Path("out/network.png").read_bytes().startswith(b"\x89PNG")
    table = adom("network", "--network", "star", "--nodes", 10, "--out", "drawn")
    assert "1 to 9, mean 1.8" in table.out
    assert Path("drawn/network.png").exists()


def test_network_from_contacts(adom: Any, refused: Any) -> None:
    Path("met.txt").write_text("0 10 11\n1 11 12\n5 10 12\n")
    message = refused("network", "--contacts", "met.txt", "--nodes", 14)
    assert "all links of rounds 0 to 2 together leave 12 components" in message
    assert "repair" in message
    described = adom("network", "--contacts", "met.txt", "--json").json
    assert (described["window"], described["degree_min"]) == (2, 0)
    text = " ".join(adom("network", "--contacts", "met.txt").out.split())
    assert "connected 0 of 3 rounds; any 2 together, a window" in text
    assert "of windows of 2 rounds over all rounds" in text
    described = adom("network", "--contacts", "met.txt", "--window", 2, "--repair", "--json").json
    assert (described["nodes"], described["graphs"], described["degree_max"]) == (3, 2, 2)
    assert (described["window"], described["recipe"]["links_added"]) == (1, 1)
    assert "links added" in adom("network", "--contacts", "met.txt", "--repair").out


def test_solve_says_that_a_step_is_a_window(adom: Any) -> None:
    outcome = adom(
        "solve", *SMALL, "--failing", 0.6, "--graphs", 30, "--rounds", 60, "--rtol", 0, "--parameters", "unit"
    )
    out = " ".join(outcome.out.split())
    window = package.networks.failing(package.networks.ring(8), 0.6, graphs=30).window
    assert f"of windows of {window} rounds, each of which is one step" in out


def test_plot_draws_from_files_alone(done: Any, adom: Any, refused: Any) -> None:
    result = done.folder / "result.npz"
    outcome = adom("plot", result, result, "-o", "both.svg", "--axis", "floats_sent")
    assert outcome.out == "wrote\n  both.svg\n"
    assert Path("both.svg").read_text().startswith("<?xml")
    assert adom("plot", result).out == "wrote\n  out/plot.png\n"
    Path("cut.npz").write_bytes(result.read_bytes()[:-100])
    assert "cut.npz is not a whole result file" in refused("plot", result, "cut.npz")


def test_verify_reports_every_statement(adom: Any) -> None:
    flags = ["--nodes", 5, "--samples", 4, "--dim", 4, "--network", "ring", "--rounds", 40]
    outcome = adom("verify", *flags, "--json")
    assert outcome.code == 0
    checked = outcome.json
    assert checked["holds"] is True
    assert checked["nodes"] == 5
    assert len(checked["rows"]) >= 5
    for row in checked["rows"]:
        assert row["holds"] is True
        assert 0 <= row["worst_ratio"] <= 1 + 1e-6
        assert 0 <= row["round_of_worst"] < row["rounds_checked"] <= 40
        assert (row["rounds"], row["first_unchecked"], row["why_unchecked"]) == (40, None, "")
    table = adom("verify", *flags)
    assert table.code == 0
    assert "Theorem 1" in table.out
    assert "not checked" not in table.out


def test_verify_says_which_rounds_it_could_not_check_and_why(adom: Any) -> None:
    flags = ["--nodes", 3, "--samples", 4, "--dim", 4, "--kappa", 1.01, "--network", "complete", "--rounds", 400]
    done = adom("verify", *flags)
    assert done.code == 0
    said = done.out.splitlines()[-5:]
    assert [line.partition(":")[0] for line in said] == [*(f"Lemma {number}" for number in range(1, 5)), "Theorem 1"]
    for line in said:
        found = re.search(r": (\d+) of 400 rounds were not checked, .* both sides are within rounding of 0$", line)
        assert found is not None
        assert re.search(rf" {400 - int(found[1])} +yes", done.out)


def test_verify_says_so_when_a_statement_fails(adom: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    row = Row("Lemma 9", "1 <= 0", worst_ratio=np.inf, round_of_worst=3, rounds_checked=7, rounds=7)
    seen = {}

    def verify(problem: Any, network: Any, rounds: int) -> Any:
        seen.update(nodes=problem.nodes, graphs=network.graphs, rounds=rounds)
        return SimpleNamespace(rows=[row], holds=False)

    monkeypatch.setitem(vars(package), "verify", verify)
    outcome = adom("verify")
    assert outcome.code == 1
    assert seen == {"nodes": 20, "graphs": 50, "rounds": 500}
    assert "Lemma 9" in outcome.out
    assert "NO" in outcome.out
    failed = adom("verify", "--json")
    assert failed.code == 1
    assert failed.json["rows"][0]["worst_ratio"] is None


def test_kinds_beside_a_contact_list_take_over_its_number_of_nodes(adom: Any, tmp_path: Path) -> None:
    contacts = tmp_path / "contacts.txt"
    contacts.write_text("0 0 1\n0 1 2\n1 2 0\n1 0 1\n")
    done = adom("network", "--network", "ring,contacts", "--contacts", contacts, "--json", "--out", tmp_path)
    assert json.loads(done.out)["nodes"] == 3
