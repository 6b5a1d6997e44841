"""Every Python block of the documents runs, and every file they name exists."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from adom.algorithms import METHODS, method_class

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])


def blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)


WITH_CODE = [path for path in DOCUMENTS if blocks(path)]


def run(path):
    """Run all Python blocks of a document, one after the other, as a reader would; return what they defined."""
    names = {"__name__": "document"}
    for block in blocks(path):
        exec(compile(block, path.name, "exec"), names)
    return names


@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: path.name)
def test_python_blocks_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(path)


def test_the_method_of_the_contributors_guide_does_what_it_says():
    names = run(ROOT / "CONTRIBUTING.md")
    result, solution = names["result"], names["problem"].solution()
    assert result.provenance["method"]["name"] == "dgd"
    away = np.abs(result.x - solution).max()
    assert 1e-6 < away < 0.2 * np.abs(solution).max()  # near, and not there
    definition = blocks(ROOT / "CONTRIBUTING.md")[0].split("class State")[1]
    assert len([line for line in definition.splitlines() if line.strip()]) <= 30


def test_the_page_of_methods_is_what_the_table_gives():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    page = (ROOT / "docs" / "methods.md").read_text()
    assert page == generate.page(), "run `make docs`"
    for name in METHODS:
        section = page.split(f"## {method_class(name).title}\n")[1].split("\n## ")[0]
        assert "$$" in section
        assert "`theory`" in section
        assert "arxiv.org/abs" in section


def test_readme_has_an_example_and_the_two_commands():
    text = (ROOT / "README.md").read_text()
    assert blocks(ROOT / "README.md")
    assert "make run" in text
    assert "make test" in text


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_inside_the_repository_exist(path):
    for target in re.findall(r"\]\(([^)#]+)", path.read_text()):
        if not target.startswith(("http:", "https:")):
            assert (path.parent / target).exists(), target
