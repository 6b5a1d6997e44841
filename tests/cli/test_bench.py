"""`adom bench` on the command line, without the runs."""

from pathlib import Path
from typing import Any

MINE = Path(__file__).parents[1] / "support" / "own_method.py"


def test_the_schema_is_printed(adom: Any) -> None:
    assert adom("bench", "--schema").json["title"] == "Submission"


def test_wrong_calls(refused: Any) -> None:
    assert "unknown protocol 'thery'" in refused("bench", "--protocols", "thery")
    assert "unknown method 'adm'" in refused("bench", "--methods", "adm")
    assert "names 'nids' twice" in refused("bench", "--methods", "nids,nids")
    assert "the protocols name 'auto' twice" in refused("bench", "--protocols", "auto,auto")
    assert "cannot read" in refused("bench", "--quick", "--add", "nothing.json")


def test_a_method_of_ones_own_that_fails_is_refused_in_one_line(refused: Any) -> None:
    text = MINE.read_text().replace("        x, y = gossip", "        1 / 0\n        x, y = gossip")
    Path("fails_in_bench.py").write_text(text)
    line = refused("bench", "--quick", "--methods", "nids,fails_in_bench:Mine")
    assert (
        "--method fails_in_bench:Mine fails: ZeroDivisionError: division by zero (fails_in_bench.py, line 44)" in line
    )
