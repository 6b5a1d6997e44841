"""What a run writes while it goes on: the records of its result, in files that can be read meanwhile."""

import json

import numpy as np
import pandas as pd
import pytest

import adom
from adom.run import progress
from support import apart

PROBLEM = adom.Quadratic([[[2.0]], [[4.0]]], [[2.0], [0.0]])


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "BEGIN", 0.0)
    monkeypatch.setattr(progress, "FLUSH", 0.0)


def assert_same(folder, result):
    table = pd.read_csv(folder / "history.csv")
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    expected = result.history[table.columns]
    pd.testing.assert_frame_equal(table, expected, rtol=1e-15, check_dtype=False)
    pd.testing.assert_frame_equal(pd.DataFrame(lines), expected, rtol=1e-15, check_dtype=False)


def test_records_are_those_of_the_result(at_once, tmp_path):
    result = adom.solve(PROBLEM, adom.networks.path(2), "adom", "unit", rounds=100, follow=tmp_path / "new" / "run")
    assert_same(tmp_path / "new" / "run", result)


def test_stages_of_a_fit_go_on_in_one_table(at_once, tmp_path):
    apart.write("wine", [tmp_path])
    data = adom.NodeData(tmp_path / "shards", **apart.SETTINGS["wine"])
    network = adom.networks.complete(4)
    result = adom.solve(data, network, "adom+", "unit", rounds=20_000, record_every=50, follow=tmp_path / "run")
    assert result.history["stage"].iloc[-1] > 2
    assert_same(tmp_path / "run", result)
    assert (np.diff(result.history["seconds"]) >= 0).all()


def test_a_short_run_writes_nothing_and_a_long_one_not_too_much(tmp_path, monkeypatch):
    adom.solve(PROBLEM, adom.networks.path(2), "adom", "unit", rounds=100, follow=tmp_path / "short")
    assert not (tmp_path / "short").exists()
    monkeypatch.setattr(progress, "BEGIN", 0.0)
    monkeypatch.setattr(progress, "FLUSH", 0.0)
    monkeypatch.setattr(progress, "MOST", 3)
    result = adom.solve(PROBLEM, adom.networks.path(2), "adom", "unit", rounds=3000, follow=tmp_path)
    table = pd.read_csv(tmp_path / "history.csv")
    assert 3 <= len(table) < 300
    assert table["round"].iloc[-1] == result.last["round"]
