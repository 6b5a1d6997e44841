"""`adom bench` on the command line, without the runs."""

from typing import Any


def test_the_schema_is_printed(adom: Any) -> None:
    assert adom("bench", "--schema").json["title"] == "Submission"


def test_wrong_calls(refused: Any) -> None:
    assert "unknown protocol 'thery'" in refused("bench", "--protocols", "thery")
    assert "unknown method 'adm'" in refused("bench", "--methods", "adm")
    assert "names 'nids' twice" in refused("bench", "--methods", "nids,nids")
    assert "cannot read" in refused("bench", "--quick", "--add", "nothing.json")
