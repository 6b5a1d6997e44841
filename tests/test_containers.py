"""The files for containers say what there is: extras, commands, machines."""

import json
import re
import shlex
import tomllib

import pytest
import typer

from adom.cli.main import app
from support.documents import ROOT, blocks

yaml = pytest.importorskip("yaml")
FOLDER = ROOT / "containers"


def test_the_container_file_installs_extras_that_exist():
    text = (FOLDER / "Containerfile").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (wanted,) = re.findall(r"/source\[([\w,]+)\]", text)
    assert set(wanted.split(",")) <= set(extras)
    steps = re.findall(r"^([A-Z]+) ", text, re.MULTILINE)
    assert steps[0] == "FROM"
    assert steps[-1] == "CMD"


def test_the_agents_container_can_write_where_it_is_told_to():
    (text,) = (block.text for block in blocks(ROOT / "docs" / "agents.md", "text") if "ENTRYPOINT" in block.text)
    (user,) = re.findall(r"^USER (\d+)$", text, re.MULTILINE)
    call = json.loads(re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)[0])
    folder = call[call.index("--out") + 1]
    before = text[: text.index("USER ")]
    (owner,) = re.findall(rf"useradd --uid {user} .*?(\w+) &&", before)
    assert f"install --directory --owner {owner} {folder}" in before
    assert re.findall(r"'/source\[(\w+)\]'", text) == ["agents"]
    assert "COPY . /source" in before


def test_nobody_is_told_to_install_what_is_not_published():
    files = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *FOLDER.iterdir(), *(ROOT / "src").rglob("*.py")]
    wrong = [str(file) for file in files if re.search(r"pip install[^\n]*adom-opt", file.read_text())]
    assert wrong == []


def test_the_compose_file_has_four_machines_that_share_a_network_and_nothing_else():
    text = (FOLDER / "compose.yaml").read_text()
    services = yaml.safe_load(text)["services"]
    assert list(services) == ["east", "north", "south", "west"]
    for name, service in services.items():
        assert service["hostname"] == name
        assert (FOLDER / service["build"]["context"] / service["build"]["dockerfile"]).exists()
        assert service["volumes"] == [f"./machines/{name}:/data"]
        assert service["networks"] == ["links"]
    group = typer.main.get_command(app)
    lines = " ".join(line.lstrip("# ").rstrip("\\") for line in text.splitlines() if line.startswith("#"))
    found = re.findall(r" adom ((?:shard|solve) [^#:(]*?)(?= docker|\(|$)", lines)
    called = [shlex.split(words) for words in found]
    assert [words[0] for words in called] == ["shard", "solve"]
    for words in called:
        group.commands[words[0]].make_context(words[0], words[1:])
