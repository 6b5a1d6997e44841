"""`adom reproduce`."""

import json

import pytest

from adom.paper import plan as reproduce_plan
from support.tiny import TINY


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(reproduce_plan.SCALES, "quick", TINY)


def test_it_prints_the_ledger_and_what_it_wrote(adom, tiny, tmp_path):
    done = adom("reproduce", "network", "chi/d4-chi4", "--quick", "--protocols", "unit", "--out", tmp_path)
    assert done.code == 0
    assert "a miniature: --quick" in done.out
    assert "not tested" in done.out
    assert "not judged" in done.out
    assert "the verdict to go by is the full run's" in done.out
    assert "chi-unit.png, chi-unit.pdf" in done.out
    assert "runs.csv" in done.out
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan["quick"]
    assert plan["figures"] == ["network", "chi/d4-chi4"]
    again = adom("reproduce", "chi/d4-chi4", "--quick", "--protocols", "unit", "--out", tmp_path, "--json").json
    assert (again["done"], again["missing"], again["lost"]) == (again["jobs"], {}, {})
    entries = {one["claim"]: one for one in again["ledger"]}
    assert entries.keys() >= {"best-over-chi", "best-over-kappa", "few-inner-steps"}
    assert (entries["best-over-chi"]["verdict"], entries["best-over-chi"]["full_run"]) == (
        "not judged",
        "partly, 11 of 16 panels",
    )
