"""The command as a whole: light to load, helpful, and one line for what is wrong."""

import json
from typing import Any

import pytest

import adom as package
from adom.cli.main import OneLine, app
from adom.errors import InputError

COMMANDS = ("solve", "compare", "verify", "network", "methods", "split", "ledger", "plot", "report")
HEAVY = ("jax", "pandas", "matplotlib", "scipy", "sklearn", "networkx", "pydantic", "numpy", "bokeh")


def test_loading_the_command_loads_nothing_heavy(python: Any) -> None:
    script = (
        "import sys, json\n"
        "from adom.cli import compare, describe, main, options, output, report, settings, solve\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    done = python("-c", script)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


def test_without_arguments_it_says_where_to_start(adom: Any) -> None:
    outcome = adom()
    assert outcome.code == 0
    for command in COMMANDS:
        assert f"adom {command}" in outcome.out


def test_shared_options_are_the_same_in_every_command(adom: Any) -> None:
    for command in ("solve", "compare", "verify", "network"):
        text = adom(command, "--help").out
        for flag in ("--nodes", "--seed", "--network", "--chi", "--contacts", "--failing", "--every"):
            assert flag in text
    assert "--kappa" not in adom("network", "--help").out
    assert "--method" not in adom("verify", "--help").out
    assert "--methods" not in adom("solve", "--help").out
    compare = adom("compare", "--help").out
    assert "--methods" in compare
    assert "--engine" not in compare


def test_version(adom: Any) -> None:
    assert adom("--version").out == f"adom {package.__version__}\n"


def test_a_message_of_several_lines_becomes_one(monkeypatch: pytest.MonkeyPatch, refused: Any) -> None:
    def refuse(self: Any, context: Any) -> Any:
        raise InputError("first\nsecond")

    monkeypatch.setattr(OneLine, "invoke", refuse)
    assert refused("methods") == "error: first second\n"
    assert app(["methods"], standalone_mode=False) == 2


def test_methods_lists_the_one_table(adom: Any) -> None:
    from adom.algorithms import METHODS, method_class

    listed = adom("methods", "--json").json
    assert list(listed) == list(METHODS)
    for name, entry in listed.items():
        cls = method_class(name)
        assert entry["title"] == cls.title
        assert entry["oracle"] == cls.oracle
        assert entry["vectors_per_round"] == cls.vectors_per_round
        assert entry["needs"] == cls.needs
    table = adom("methods")
    assert table.code == 0
    for name in METHODS:
        assert name in table.out
