"""Data on stdout and nothing else there, the rest on stderr; --json is one object with all that a table shows."""

import json
import shlex
import warnings
from pathlib import Path
from typing import Any

import pytest
import typer

from adom.algorithms import METHODS, method_class
from adom.cli import output
from adom.cli.main import EXAMPLES, START, app

GROUP: Any = typer.main.get_command(app)
TINY = ["--nodes", 4, "--samples", 5, "--dim", 4, "--kappa", 10, "--network", "ring"]
RUN = [*TINY, "--oracle", "gd:1", "--rounds", 20]


@pytest.fixture(autouse=True)
def files(elsewhere: Path, done: Any) -> None:
    (elsewhere / "data.svm").write_text("1 1:1\n-1 1:2\n1 2:3\n-1 1:4\n")
    (elsewhere / "sweep.toml").write_text("[sweep.factors]\neta = [0.5, 1]\n")


CALLS: dict[str, tuple[list[Any], tuple[str, ...]]] = {
    "solve": ([*RUN], ("status", "rounds", "floats_sent", "gradients", "seconds", "error", "chi", "files")),
    "compare": ([*RUN, "--methods", "adom,pngd"], ("rows", "target", "chi", "skipped", "interrupted", "files")),
    "sweep": (["sweep.toml", *RUN], ("rows", "members", "done", "refused", "interrupted", "files")),
    "verify": ([*TINY, "--rounds", 5], ("rows", "holds", "chi", "kappa")),
    "network": (["--network", "ring", "--nodes", 5], ("nodes", "graphs", "period", "chi", "chi_rests_on", "files")),
    "methods": ([], ("adom", "pngd", "adom+")),
    "data": ([], ("folder", "sets")),
    "split": (["data.svm", "--nodes", 2], ("nodes", "samples", "by", "samples_per_node", "files", "next")),
    "plot": (["RESULT"], ("runs", "axis", "files")),
    "report": (["RESULT", "--no-network"], ("runs", "bytes", "files")),
}
"""A cheap call of every command, and what its JSON must have; reproduce and ledger have their own tests."""


@pytest.mark.parametrize("command", CALLS)
def test_json_is_one_object_and_the_table_goes_to_stdout_alone(command: str, adom: Any, done: Any) -> None:
    given, keys = CALLS[command]
    words = [done.folder / "result.npz" if word == "RESULT" else word for word in given]
    first, *more = adom(command, *words, "--json").out.splitlines()
    said = json.loads(first)
    assert more == []
    assert set(keys) <= said.keys()
    for path in _paths(said.get("files", {})):
        assert Path(path).exists(), path
    again = [*words, "--overwrite"] if command == "split" else words
    table = adom(command, *again)
    assert (table.code, table.err) == (0, "")
    assert table.out.strip()
    for path in _paths({name: path for name, path in said.get("files", {}).items() if name != "results"}):
        assert Path(path).name in table.out


def _paths(files: Any) -> list[str]:
    return [path for one in files.values() for path in _paths(one)] if isinstance(files, dict) else [files]


def test_what_is_said_beside_the_data_goes_to_stderr(adom: Any, done: Any) -> None:
    outcome = adom("report", done.folder / "result.npz", "-o", "page.html", "--json")
    assert json.loads(outcome.out)["frames"] > 0
    (Path("alone.npz")).write_bytes((done.folder / "result.npz").read_bytes())
    outcome = adom("report", "alone.npz", "--json")
    assert json.loads(outcome.out)["frames"] == 0
    assert outcome.err.startswith("no network in motion: alone.npz has no config.toml beside it")


def test_engine_mpi_says_so_where_it_is_alone(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from adom.cli import ranks
    from adom.cli.config import settle
    from adom.cli.settings import USUAL
    from adom.cli.solve import check

    alone = settle(None, {"run": {"engine": "mpi"}}, USUAL)
    check(alone)
    said = capsys.readouterr()
    assert (said.out, said.err.partition(";")[0]) == ("", "engine mpi in one process only")
    monkeypatch.setattr(ranks, "rank", lambda: 0)
    check(alone)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_no_word_is_broken_and_no_column_squeezed(columns: int, adom: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out = adom("methods").out
    assert max(map(len, out.splitlines())) <= columns
    words = out.split()
    for cls in map(method_class, METHODS):
        assert cls.reference.split()[-1] in words  # the arXiv number
        assert set(cls.complexity.split()) <= set(words)
    assert ("  oracle: dual\n" in out) == (columns == 40)  # each row a list


def test_where_to_start_fits_and_is_right() -> None:
    lines = START.splitlines()
    assert max(map(len, lines)) <= 80
    named = {line.split()[1] for line in lines if line.startswith("  adom ")}
    assert named == set(GROUP.commands)
    for line in (line for line in lines if line.startswith("  adom ")):
        _check_options(line.split("  ")[1].split()[1:])


@pytest.mark.parametrize("command", EXAMPLES, ids=lambda command: command.__name__)
def test_the_help_of_every_command_has_an_example_that_parses(command: Any, adom: Any) -> None:
    text = adom(command.__name__, "--help").out
    assert adom(command.__name__, "-h").out == text
    line = EXAMPLES[command].partition("   ")[0]
    assert " ".join(f"Example: {line}".split()) in " ".join(text.split())
    assert "<bool>" not in text
    assert "--json" in text
    words = shlex.split(line)[1:]
    assert words[0] == command.__name__
    _check_options(words)


def _check_options(words: list[str]) -> None:
    """Parse a call as typer does, which refuses options that there are not, without running it."""
    command = GROUP.commands[words[0]]
    command.make_context(words[0], list(words[1:]), resilient_parsing=True)
    known = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}
    assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize(("quiet", "said"), [(False, "warning: x* is known to about 0.1 only\n"), (True, "")])
def test_a_warning_is_one_plain_line(capsys: pytest.CaptureFixture[str], quiet: bool, said: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        output.plain_warnings(quiet)
        warnings.warn("x* is known to about 0.1 only", stacklevel=1)
    assert capsys.readouterr().err == said
