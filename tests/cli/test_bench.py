"""`adom bench` on the command line, without the runs."""

from pathlib import Path
from typing import Any

import pytest

MINE = Path(__file__).parents[1] / "support" / "own_method.py"


def test_the_schema_is_printed(adom: Any) -> None:
    assert adom("bench", "--schema").json["title"] == "Submission"


def test_wrong_calls(refused: Any) -> None:
    assert "unknown protocol 'thery'" in refused("bench", "--protocols", "thery")
    assert "unknown method 'adm'" in refused("bench", "--methods", "adm")
    assert "names 'nids' twice" in refused("bench", "--methods", "nids,nids")
    assert "the protocols name 'auto' twice" in refused("bench", "--protocols", "auto,auto")
    assert "cannot read" in refused("bench", "--quick", "--add", "nothing.json")


def test_ctrl_c_says_that_the_same_command_goes_on(adom: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("adom.bench.run.bench", stopped)
    outcome = adom("bench", "--quick")
    said = "interrupted; what was done is saved, and the same command goes on from there\n"
    assert (outcome.code, outcome.out, outcome.err) == (130, "", said)


def test_a_method_of_ones_own_that_fails_is_refused_in_one_line(refused: Any) -> None:
    text = MINE.read_text().replace("        x, y = gossip", "        1 / 0\n        x, y = gossip")
    Path("fails_in_bench.py").write_text(text)
    line = refused("bench", "--quick", "--methods", "nids,fails_in_bench:Mine")
    assert (
        "--methods fails_in_bench:Mine fails: ZeroDivisionError: division by zero (fails_in_bench.py, line 44)" in line
    )
