"""`adom bench` on the command line, without the runs."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from adom.bench.run import Benchmark
from adom.study.profiles import rank_table

MINE = Path(__file__).parents[1] / "support" / "own_method.py"


def test_the_schema_is_printed(adom: Any) -> None:
    assert adom("bench", "--schema").json["title"] == "Submission"


def test_wrong_calls(refused: Any) -> None:
    assert "unknown protocol 'thery'" in refused("bench", "--protocols", "thery")
    assert "unknown method 'adm'" in refused("bench", "--methods", "adm")
    assert "names 'nids' twice" in refused("bench", "--methods", "nids,nids")
    assert "the protocols name 'auto' twice" in refused("bench", "--protocols", "auto,auto")
    assert "cannot read" in refused("bench", "--quick", "--add", "nothing.json")


def test_ranks_are_numbers_for_machines_and_a_table_for_people(adom: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = pd.DataFrame({"method": ["nids", "dgd"], "status": "converged", "rounds_to_target": [12345.0, float("nan")]})
    done = Benchmark(1e-8, [], {"auto": rank_table(runs)}, [], [], {}, 0.0)
    monkeypatch.setattr("adom.bench.run.bench", lambda *_, **__: done)
    ranks = adom("bench", "--quick", "--json").json["ranks"]["auto"]
    best = {"method": "nids", "mean_rank": 1.0, "first": 1, "reached": 1, "instances": 1, "median": 12345.0}
    assert ranks[0] == {**best, "over_best": 1.0}
    assert ranks[1]["median"] is None
    assert "12.3k" in adom("bench", "--quick").out


def test_a_method_of_ones_own_that_fails_is_refused_in_one_line(refused: Any) -> None:
    text = MINE.read_text().replace("        x, y = gossip", "        1 / 0\n        x, y = gossip")
    Path("fails_in_bench.py").write_text(text)
    line = refused("bench", "--quick", "--methods", "nids,fails_in_bench:Mine")
    assert (
        "--methods fails_in_bench:Mine fails: ZeroDivisionError: division by zero (fails_in_bench.py, line 44)" in line
    )
