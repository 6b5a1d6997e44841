"""Every block of the documents runs, or is read by what would run it; every file and command they name exists."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from adom.agents.configuration import read_config
from adom.algorithms import METHODS, method_class
from adom.cli.config import settle
from adom.cli.main import UsageError, app
from adom.cli.settings import USUAL
from support.documents import DOCUMENTS, LANGUAGES, PYTHON, ROOT, blocks, commands, spans
from support.ranks import ENVIRONMENT, command, needs_mpi

WHOLE = ("quick-start.md", "own-data.md", "own-network.md", "apart.md")
"""Pages of which the commands are run as well, in the order of the page."""
DATA = ROOT.parent / "shared" / "data"
NUMBER = r"[0-9][0-9,]*(?:\.[0-9]+)?(?:e-?[0-9]+)?"
COMMAND = typer.main.get_command(app)


def named(path):
    return str(path.relative_to(ROOT))


def having(*languages):
    return pytest.mark.parametrize("path", [path for path in DOCUMENTS if blocks(path, *languages)], ids=named)


every_document = pytest.mark.parametrize("path", DOCUMENTS, ids=named)


def run(path, *, whole=False):
    """Run the Python blocks of a document, one after the other, as a reader would; return what they defined."""
    names = {"__name__": "document"}
    for block in blocks(path):
        if block.language == "python" and not block.words:
            exec(compile("\n" * block.line + block.text, path.name, "exec"), names)
        elif whole and block.language == "sh":
            for words in commands(block.text):
                if words[0] == "adom":
                    done = CliRunner().invoke(app, words[1:], catch_exceptions=False)
                    assert done.exit_code == 0, (words, done.stderr)
    return names


@every_document
def test_every_block_says_what_it_is(path):
    assert not re.search(r"^( +```|~~~)", path.read_text(), re.MULTILINE), "blocks begin at the margin, with ```"
    for block in blocks(path):
        assert block.language in LANGUAGES, f"{path.name}, line {block.line}: {block.language!r}"
        words = {"python": PYTHON, "toml": ("", "agent")}.get(block.language, ("", "../CONTRIBUTING.md"))
        assert block.words in words, block


@having("python")
def test_python_blocks_run(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    names = run(path, whole=path.name in WHOLE)
    assert names
    if path.name == "comparing.md":
        check_the_students_story(names, path)
    if path.name == "links.md":
        assert ["growing" in line for line in capsys.readouterr().out.splitlines()] == [False, True, False]


def test_the_quick_start_shows_what_its_first_run_prints(tmp_path, monkeypatch):
    """The same lines with nearly the same numbers: the last digits of a run are its machine's, and may move others."""
    monkeypatch.chdir(tmp_path)
    path = ROOT / "docs" / "quick-start.md"
    block = next(block for block in blocks(path, "text") if "assumed chi" in block.text)
    words = next(
        words for each in blocks(path, "sh") for words in commands(each.text) if words[:2] == ["adom", "solve"]
    )
    printed = summary(CliRunner().invoke(app, words[1:], catch_exceptions=False).stdout)
    shown = summary(block.text)
    assert list(shown) == [name for name in printed if name in shown]
    for name, text in shown.items():
        near = {"seconds": np.inf, "error": 0.5}.get(name, 0.05)
        given = [
            [float(number.replace(",", "")) for number in re.findall(NUMBER, each)] for each in (printed[name], text)
        ]
        assert given[0] == pytest.approx(given[1], rel=near), (name, printed[name], text)
        assert re.sub(NUMBER, "", printed[name]).split() == re.sub(NUMBER, "", text).split()


def summary(text):
    """Return what a run prints, by name; what goes on in the next line is put together."""
    found = {}
    for line in text.splitlines():
        name, _, rest = line.strip().partition("  ")
        if line.startswith("  ") and line[2:3].strip() and rest:
            found[name] = rest.strip()
        elif line.strip() and line.startswith("     "):
            found[[*found][-1]] += f" {line.strip()}"
    return found


def check_the_students_story(names, path):
    """An own method on 60 graphs, most of them disconnected, over five seeds, ends in a figure and a table."""
    assert (len(names["graphs"]), names["network"].graphs) == (60, 60)
    assert sum(not nx.is_connected(graph) for graph in names["graphs"]) > 30
    found = names["found"]
    assert {at.seed for at in found.parts} == set(range(5))
    reached = found.summary.set_index("method")["reached"]
    assert reached.to_dict() == {"mine": 5, "adom": 5, "diging": 5}
    for at, part in found.parts.items():
        mine = part.results["mine"]
        assert mine.status == "converged"
        solution = names["problem"](at.seed).solution()
        assert ((mine.x - solution) ** 2).sum() <= 1e-6 * 20 * (solution**2).sum() * (1 + 1e-9)
    printed = [line for line in str(found).splitlines() if line]
    written = "".join(block.text for block in blocks(path, "text"))
    for line in printed[:5]:
        assert line in written
    assert [line.split()[0] for line in printed[6:]] == ["Mine", "ADOM", "DIGing"]
    assert Path("mine.pdf").read_bytes().startswith(b"%PDF")
    assert Path("mine.tex").read_text().count("\\\\") == 4
    assert len(list(Path("mine/members").glob("*.npz"))) == 15


@needs_mpi
def test_python_blocks_for_mpirun_run_on_two_ranks(tmp_path):
    import adom

    rng = np.random.default_rng(0)
    features = rng.standard_normal((200, 4))
    labels = np.where(features[:, 0] + rng.standard_normal(200) > 0, 1, -1)
    np.savez(tmp_path / "data.npz", features=features, labels=labels)
    adom.data.write_shards(tmp_path / "data.npz", 20, tmp_path / "shards")
    found = [block.text for path in DOCUMENTS for block in blocks(path, "python") if block.words == "mpi"]
    assert found
    for text in found:
        program = tmp_path / "program.py"
        program.write_text(text + "\nresult.save('run.npz')\n")
        environment = {**os.environ, **ENVIRONMENT}
        done = subprocess.run(
            command(2, program), cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        result = adom.load(tmp_path / "run.npz")
        assert (result.status, result.provenance["wire"]["ranks"]) == ("converged", 2)


def test_python_blocks_on_the_papers_data_run(monkeypatch):
    import adom

    monkeypatch.setenv("ADOM_DATA", os.environ.get("ADOM_DATA") or str(DATA))
    absent = [name for name in adom.data.SETS if adom.data.state(name).status == "absent"]
    if absent:
        pytest.skip(f"{', '.join(absent)} not at hand: neither ADOM_DATA nor ../shared/data has it")
    found = [block.text for path in DOCUMENTS for block in blocks(path, "python") if block.words == "data"]
    assert found
    for text in found:
        names = {"__name__": "document"}
        exec(compile(text, "block", "exec"), names)
        assert names["problem"].nodes == 100
        assert names["network"].nodes == 50


def accept(words):
    """Let the command line's own parser read a command, and run nothing; it refuses unknown commands and options."""
    if not words or words[0].startswith("-"):  # adom alone, and its own flags, which would act at once
        flags = [flag for option in COMMAND.params for flag in option.opts]
        assert not words or words[0] in (*flags, "--help"), words
        return
    assert words[0] in COMMAND.commands, words
    with suppress(typer.Exit):  # --help is no refusal
        COMMAND.commands[words[0]].make_context(words[0], list(words[1:]))


def test_the_parser_refuses_what_there_is_not():
    for wrong in ("solve --kapa 3", "compare --methods", "split x.svm --nodes many", "network extra words"):
        with pytest.raises(UsageError):
            accept(wrong.split())
    for wrong in ("sovle", "--verison"):
        with pytest.raises(AssertionError):
            accept([wrong])


@having("sh")
def test_commands_of_blocks_exist(path):
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for block in blocks(path, "sh"):
        for words in commands(block.text):
            program, arguments = words[0], words[1:]
            if program in ("mpirun", "srun"):
                program, arguments = "adom", words[words.index("adom") + 1 :]
            match program:
                case "adom":
                    accept(arguments)
                case "make":
                    assert set(arguments) <= set(targets), words
                case "pip":
                    wanted = re.fullmatch(r"\.(?:\[([\w,]+)\])?", arguments[1])  # from a clone: nothing is published
                    assert arguments[0] == "install", words
                    assert wanted, words
                    assert set((wanted[1] or "dev").split(",")) <= set(extras), words
                case "python":
                    assert arguments[0] == "-c"
                    compile(arguments[1], path.name, "exec")
                case _:
                    assert words == ["source", ".venv/bin/activate"], words


@every_document
def test_commands_within_lines_exist(path):
    for words in spans(path):
        try:
            accept(words[1:])
        except UsageError as error:  # a command may be named without what it needs
            if not re.match(r"Missing|Option '\S+' requires an argument", error.format_message()):
                raise


@having("toml")
def test_settings_are_accepted(path, tmp_path):
    for number, block in enumerate(blocks(path, "toml")):
        file = tmp_path / f"{number}.toml"
        file.write_text(block.text)
        if block.words == "agent":
            (tmp_path / "keys").mkdir()
            for name in ("ca.pem", "node-a.pem", "node-a.key"):
                (tmp_path / "keys" / name).touch()
            assert read_config(file, {}).name == "node-a"
        else:
            assert settle(file, {}, USUAL).problem.nodes


def test_the_method_of_the_contributors_guide_does_what_it_says():
    names = run(ROOT / "CONTRIBUTING.md")
    result, solution = names["result"], names["problem"].solution()
    assert result.provenance["method"]["name"] == "small-dgd"
    away = np.abs(result.x - solution).max()
    assert 1e-6 < away < 0.2 * np.abs(solution).max()  # near, and not there
    definition = blocks(ROOT / "CONTRIBUTING.md", "python")[0].text.split("class State")[1]
    assert len([line for line in definition.splitlines() if line.strip()]) <= 30


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_methods_is_what_the_table_gives(generate):
    page = (ROOT / "docs" / "methods.md").read_text()
    assert page == generate.page(), "run `make docs`"
    for name in METHODS:
        section = page.split(f"## {method_class(name).title}\n")[1].split("\n## ")[0]
        assert "$$" in section
        assert "`theory`" in section
        assert "arxiv.org/abs" in section


def test_the_page_of_commands_is_what_the_commands_have(generate):
    page = (ROOT / "docs" / "command-line.md").read_text()
    assert page == generate.command_page(page), "run `make docs`"
    assert not re.findall(r"`[^` ]+,`", page)
    for name, one in COMMAND.commands.items():
        section = page.split(f"### adom {name}\n")[1].split("\n### ")[0]
        for option in one.params:
            if option.param_type_name == "option":
                assert f"`{option.opts[0]}" in section, (name, option.opts)


@every_document
def test_links_inside_the_repository_exist(path):
    for target in re.findall(r"\]\(([^)#]+)", path.read_text()):
        if not target.startswith(("http:", "https:")):
            assert (path.parent / Path(target)).exists(), target
