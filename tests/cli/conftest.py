"""How the tests call the command, and one run that many of them look at."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
from typer.testing import CliRunner

import adom as package
from adom.cli.main import app

SMALL = ["--nodes", 8, "--samples", 6, "--dim", 5, "--kappa", 10, "--network", "ring", "--oracle", "gd:1"]


HOME = str(Path(package.__file__).parents[1])
COMMAND = typer.main.get_command(app)


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def call(*arguments: object) -> Outcome:
    """Run the command in this process; an exception that is no refusal comes through."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", lambda _: COMMAND)  # or Typer would make it anew for every call
        result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    return Outcome(result.exit_code, result.stdout, result.stderr)


@pytest.fixture(scope="session")
def adom() -> Callable[..., Outcome]:
    return call


@pytest.fixture(scope="session")
def python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a fresh interpreter, which finds this package."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": HOME}
        return subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, check=False, env=environment
        )

    return run


@pytest.fixture
def refused() -> Callable[..., str]:
    """Run the command, which must refuse its input in one line and exit code 2; return the line."""

    def check(*arguments: object) -> str:
        outcome = call(*arguments)
        assert outcome.code == 2, outcome
        assert outcome.out == ""
        assert outcome.err.startswith("error: ")
        assert outcome.err.count("\n") == 1
        assert outcome.err.endswith("\n")
        return outcome.err

    return check


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let every test work in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Done(NamedTuple):
    """A finished `adom solve --json`."""

    folder: Path
    summary: dict[str, Any]


@pytest.fixture(scope="session")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder = tmp_path_factory.mktemp("done")
    before = Path.cwd()
    os.chdir(folder)
    try:
        outcome = call("solve", *SMALL, "--json", "--out", "made")
    finally:
        os.chdir(before)
    assert outcome.code == 0, outcome
    assert outcome.err == ""
    return Done(folder / "made", outcome.json)
