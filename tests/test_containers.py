"""The files for containers say what there is: extras, commands, machines."""

import re
import shlex
import tomllib

import pytest
import typer

from adom.cli.main import app
from support.documents import ROOT

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
