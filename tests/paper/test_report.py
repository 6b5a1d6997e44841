"""A reproduction as `adom report` shows it: its panels, its runs, its ledger."""

import json
import shutil

import pytest

from adom.page.reading import read as read_inputs
from adom.paper.claims import CLAIMS
from adom.paper.ledger import write
from adom.paper.webpage import read_reproduction
from support.damage import overwrite
from support.made import absent, four, made, panel, saved


def read(*folders, **more):
    return read_inputs(folders, reproduction=read_reproduction, progress=False, **more)


@pytest.fixture
def folder(tmp_path):
    outcomes = [
        *four(panel(), 200, 400, 900, 900),
        made(panel(), "adom", 150, variant="exact", oracle="exact"),
        absent(panel("real_kappa", "a6a-kappa10", data="a6a"), "adom", "not run yet"),
    ]
    return saved(outcomes, tmp_path / "reproduce")


def test_it_has_its_panels_its_runs_and_its_ledger(folder):
    content = read(folder)
    assert content.title == "Reproduction of the ADOM paper"
    (figure,) = content.figures  # none that could only say that there are no runs
    assert "; nothing to draw yet of real_kappa unit" in content.inputs[0]
    assert (figure.name, list(figure.pages)) == ("kappa", ["unit"])
    (place,) = figure.pages["unit"]
    assert [(line.label, line.shown, len(line.runs)) for line in place.lines] == [
        ("ADOM", True, 3),
        ("Mudag", True, 3),
        ("Acc-DNGD", True, 3),
        ("APM", True, 3),
        ("ADOM, oracle exact", False, 1),
    ]
    assert [run.cells["status"] for run in content.runs].count("missing") == 1
    (page,) = content.ledgers
    for claim in CLAIMS.values():
        assert f"<code>{claim.name}</code>" in page
    (_, best) = page.split("<code>best-over-kappa</code>")
    assert 'reproduced</span> <span class="count">1 of 1 panels</span>' in best.split("</article>")[0]
    assert '<a href="#curves/kappa/unit/one">one</a>' in best


def test_beside_another_folder_its_figures_bear_its_name(folder, tmp_path):
    made(panel(), "adom", 200).result.save(tmp_path / "solve" / "result.npz")
    content = read(folder, tmp_path / "solve")
    assert content.figures[0].name == "reproduce: kappa"
    assert 'href="#curves/reproduce%3A%20kappa/unit/one"' in content.ledgers[0]
    assert "The paper's claims: reproduce</h2>" in content.ledgers[0]


def test_a_ledger_outlives_its_results(folder, tmp_path):
    write(folder)
    (tmp_path / "kept").mkdir()
    for name in ("plan.json", "ledger.json"):
        shutil.copyfile(folder / name, tmp_path / "kept" / name)
    (page,) = read(tmp_path / "kept").ledgers
    before = json.loads((folder / "ledger.json").read_text())
    assert f"Computed from {before['runs']} result files" in page
    assert "1 of 1 panels" in page


def test_a_damaged_file_is_named_and_counts_as_missing(folder, tmp_path):
    first, second, *_ = sorted((folder / "results").glob("*.npz"))
    overwrite(first, b"PK")
    other = made(panel("chi"), "adom", 200).result.save(tmp_path / "other.npz")  # a whole file of something else
    overwrite(second, other.read_bytes())
    said = []
    runs = read(folder, say=said.append).runs
    named = sorted(line.partition(" is not")[0].partition(" does not")[0] for line in said)
    assert named == [f"left out: {path}" for path in (first, second)]
    missing = [one.details["reason"] for one in runs if one.cells["status"] == "missing"]
    assert sum("not a whole result file" in reason for reason in missing) == 1
    assert not [reason for reason in missing if str(tmp_path) in reason]
    assert sum("does not hold the run named in its file name" in reason for reason in missing) == 1
