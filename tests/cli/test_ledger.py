"""`adom ledger`: the verdicts of a folder's files, on a terminal and as JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

from adom.paper.claims import CLAIMS
from adom.paper.ledger import read
from adom.paper.runs import load_plan
from support.made import four, panel, saved


@pytest.fixture
def folder() -> Path:
    target = Path("made")
    return saved(four(panel(), 200, 400, 900, 900), target)


def test_it_shows_and_writes_every_verdict(adom: Any, folder: Path) -> None:
    outcome = adom("ledger", folder)
    assert (outcome.code, outcome.err) == (0, "")
    for claim in CLAIMS:
        assert claim in outcome.out
    assert "reproduced" in outcome.out
    for name in ("ledger.json", "ledger.md", "findings.md"):
        assert (folder / name).stat().st_size > 100
        assert str(folder / name) in outcome.out


def test_a_claim_is_a_line_of_words_and_its_evidence_is_under_full(adom: Any, folder: Path) -> None:
    brief, full = (adom("ledger", folder, *more).out for more in ((), ("--full",)))
    assert max(map(len, full.splitlines())) <= 80
    heads = [line for line in brief.splitlines() if line.partition(":")[0] in CLAIMS]
    assert [line.partition(":")[0] for line in heads] == list(CLAIMS)
    entry = read(folder).find("best-over-kappa", "unit")
    words = f"{entry.statement} ({entry.where}): unit reproduced in 1 of 1 panels"
    assert words in " ".join(brief.split())
    assert entry.summary
    assert entry.summary not in " ".join(brief.split())
    assert f"- unit: {entry.summary}" in " ".join(full.split())


def test_json_is_the_file(adom: Any, folder: Path) -> None:
    said = adom("ledger", folder, "--json").json
    assert said.pop("files")["ledger"] == str(folder / "ledger.md")
    written = json.loads((folder / "ledger.json").read_text())
    assert (written.pop("sealed"), len(written.pop("sha256"))) == ("sha256", 64)
    assert said == written
    assert read(folder).find("best-over-kappa", "unit").count == "1 of 1 panels"


def test_one_claim_with_its_rule(adom: Any, folder: Path) -> None:
    outcome = adom("ledger", folder, "--claim", "best-over-kappa")
    assert CLAIMS["best-over-kappa"].rule in " ".join(outcome.out.split())
    assert "dnm-diverges" not in outcome.out
    said = adom("ledger", folder, "--claim", "best-over-kappa", "--json").json
    assert {one["claim"] for one in said["entries"]} == {"best-over-kappa"}
    assert {one.claim for one in read(folder).entries} == set(CLAIMS)  # the file stays whole


def test_refusals(refused: Any, folder: Path) -> None:
    assert "there is no claim 'over-kappa'; did you mean 'best-over-kappa'?" in refused(
        "ledger", folder, "--claim", "over-kappa"
    )
    assert "plan.json" in refused("ledger", "nowhere")
    assert not Path("nowhere").exists()


def test_a_damaged_result_is_named_and_nothing_else_is_lost(adom: Any, folder: Path) -> None:
    results = sorted((folder / "results").iterdir())
    broken = bytearray(results[0].read_bytes())
    broken[len(broken) // 2] ^= 1
    results[0].write_bytes(broken)
    results[1].write_bytes(results[2].read_bytes()[:-200])
    outcome = adom("ledger", folder)
    assert outcome.code == 0
    assert [line.partition(" is not a whole")[0] for line in outcome.err.splitlines()] == [
        f"counted as missing: {path}" for path in _in_plan(folder, results[:2])
    ]
    assert f"{len(results) - 2} results, 2 missing" in outcome.out


def _in_plan(folder: Path, paths: list[Path]) -> list[Path]:
    keys = [job.key for job in load_plan(folder).jobs]
    return sorted(paths, key=lambda path: keys.index(path.stem))
