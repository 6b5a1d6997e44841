"""`adom report`: one page from what the other commands leave."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adom import load, page


def stored(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_a_folder_becomes_a_page_with_the_network_in_motion(adom: Any, done: Any) -> None:
    outcome = adom("report", done.folder, "-o", "mine.html", "--title", "Mine")
    assert (outcome.code, outcome.err) == (0, "")
    assert re.fullmatch(r"wrote\n  mine\.html \(1\.\d MB, 1 run\)\n", outcome.out)
    content = stored(Path("mine.html"))
    assert content["motion"]["nodes"] == 8
    (line,) = content["figures"][0]["pages"][""][0]["lines"]
    assert line["status"] == "converged"
    assert "<title>Mine</title>" in Path("mine.html").read_text(encoding="utf-8")


def test_json_says_what_was_written(adom: Any, done: Any) -> None:
    said = adom("report", done.folder / "result.npz", "--json").json
    written = Path("report.html")
    assert said["file"] == "report.html"
    assert said["bytes"] == written.stat().st_size
    assert (said["runs"], said["figures"]) == (1, 1)
    assert said["frames"] == len(stored(written)["motion"]["rounds"])


def test_the_same_files_give_the_same_page(adom: Any, done: Any) -> None:
    for name in ("a.html", "b.html"):
        adom("report", done.folder, "-o", name)
    assert Path("a.html").read_bytes() == Path("b.html").read_bytes()


def test_without_its_settings_a_result_says_how_to_see_the_network(adom: Any, done: Any) -> None:
    Path("alone").mkdir()
    Path("alone/result.npz").write_bytes((done.folder / "result.npz").read_bytes())
    outcome = adom("report", "alone")
    assert outcome.code == 0
    assert outcome.err.startswith("no network in motion: alone has no config.toml beside it")
    assert stored(Path("report.html"))["motion"] is None
    remedy = "for results saved from Python, adom.replay(result, problem, network) gives the motion"
    assert remedy in Path("report.html").read_text(encoding="utf-8")
    text = (done.folder / "config.toml").read_text()
    Path("alone/config.toml").write_text(text.replace("kappa = 10.0", "kappa = 11.0"))
    assert "this is a problem with" in adom("report", "alone").err
    assert adom("report", "alone", "--no-network").err == ""


def test_a_comparison_and_a_sweep(adom: Any) -> None:
    small = ["--nodes", 6, "--samples", 6, "--dim", 5, "--kappa", 10, "--network", "ring", "--rounds", 30]
    adom("compare", *small, "--methods", "diging,adom", "--out", "both", "--oracle", "gd:1")
    Path("sweep.toml").write_text("[sweep]\nkappas = [5, 10]\n[sweep.factors]\na = [0.5, 1]\n")
    assert adom("sweep", "sweep.toml", *small, "--method", "diging", "--out", "many").code == 0
    outcome = adom("report", "both", "many", "--json")
    assert (outcome.json["runs"], outcome.json["figures"]) == (6, 2)
    first, second = stored(Path("report.html"))["figures"]
    assert [line["label"] for line in first["pages"][""][0]["lines"]] == ["DIGing", "ADOM"]
    assert len({line["label"] for line in second["pages"][""][0]["lines"]}) == 4
    assert stored(Path("report.html"))["motion"]["title"].startswith("ADOM, parameters auto")
    assert adom("report", "many", "--json").json["frames"] > 1  # one of its members has the kappa of the settings


@pytest.mark.parametrize(
    ("words", "titles"),
    [
        (
            "--seeds 2 --seed 4 --networks ring,star",
            [f"{name}; synthetic on {name}, seed {seed}" for name in ("ring", "star") for seed in (4, 5)],
        ),
        (
            "--networks geometric,ring --graphs 2 --radius 0.9",
            ["geometric; synthetic on geometric", "ring; synthetic on ring"],
        ),
        ("--splits shuffled,label --network ring", ["ring; label on ring, seed 0", "ring; shuffled on ring, seed 0"]),
    ],
    ids=["seeds", "networks", "splits"],
)
def test_of_a_comparison_over_several_the_right_network_is_in_motion(adom: Any, words: str, titles: list[str]) -> None:
    small = ["--nodes", 6, "--samples", 6, "--dim", 5, "--kappa", 10, "--rounds", 30, "--parameters", "unit"]
    adom("compare", *small, *words.split(), "--methods", "diging", "--out", "many")
    seen = []
    for file in Path("many/members").glob("*.npz"):  # so that each has its turn
        shutil.rmtree("alone", ignore_errors=True)
        Path("alone/members").mkdir(parents=True)
        shutil.copy("many/config.toml", "alone")
        shutil.move(file, "alone/members")
        outcome = adom("report", "alone")
        assert (outcome.code, outcome.err) == (0, "")
        seen.append(stored(Path("report.html"))["motion"]["title"].partition("6 nodes, ")[2])
    assert sorted(seen) == titles


def test_of_a_tuned_comparison_a_run_that_is_judged_is_in_motion(adom: Any) -> None:
    small = ["--nodes", 6, "--samples", 6, "--dim", 5, "--kappa", 10, "--rounds", 30, "--graphs", 2, "--radius", 0.9]
    seeds = ["--seeds", 2, "--methods", "diging", "--parameters", "tuned"]
    assert "tuned on seed 1000000," in adom("compare", *small, *seeds, "--out", "tuned").out
    # The search comes first by its name, and is the best by its last error.
    (searched,) = (
        file for file in Path("tuned/members").glob("*.npz") if load(file).provenance["compare"].get("search")
    )
    run = load(searched)
    replace(run, history=run.history.assign(error=run.history["error"] * 1e-9)).save(searched)
    adom("report", "tuned")
    assert re.search(r"synthetic on geometric, seed [01]$", stored(Path("report.html"))["motion"]["title"])


def test_refusals(refused: Any, done: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("blocked").touch()
    assert "cannot make the folder blocked: it is a file" in refused("report", done.folder, "-o", "blocked/page.html")
    monkeypatch.setattr(page, "find_spec", lambda name: None)
    assert "pip install '.[report]'" in refused("report", done.folder)
    assert not Path("report.html").exists()
