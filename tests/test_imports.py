"""The import rules of CONTRIBUTING: rooms import downwards only, nothing private, nothing by name, no cycle."""

import ast
import re
import subprocess
import sys
from functools import cache

import pytest

from support.rooms import LONGEST, SRC, faults, folder, imports, modules, targets

CONTRIBUTING = SRC.parent / "CONTRIBUTING.md"
EVERYWHERE = {"errors", "util", "__init__"}
BY_NAME = {"adom", "adom.algorithms"}
"""Modules that load others by the name in a table: `adom.solve` and the methods."""


@cache
def rules():
    """Read the table of rooms: what each may import beside `errors` and `util`."""
    rows = re.findall(r"^\| `([\w/]+)/` \| .* \| (.*) \|$", CONTRIBUTING.read_text(), re.MULTILINE)
    return {room: set(re.findall(r"`([\w/]+)`", allowed)) for room, allowed in rows}


def room(name):
    """Return the room of a module, its topmost folder."""
    return folder(name).partition("/")[0]


def place(name):
    """Return the folder of a module; its own name if it lies in none, as `errors`."""
    return folder(name) or name.rpartition(".")[2]


def allowed(name, target):
    """Return whether a module may import another, by the table.

    A room may import the rooms of its row with all their folders. A folder in a room may import what its room may, and
    of its own room only itself and the folders of its row.
    """
    here, there = place(name), place(target)
    if here == there or there in EVERYWHERE:
        return True
    row = rules()[room(name)] | rules()[here]
    if room(target) == room(name):
        return there in rules()[here]
    return "all" in row or there.partition("/")[0] in row


def test_every_folder_is_in_the_table():
    folders = {folder(name) for name in modules()} - {"", "util"}
    assert folders == set(rules())


def test_rooms_import_what_their_row_allows():
    for name in modules():
        if folder(name) in rules():
            for target in targets(name):
                assert allowed(name, target), f"{name} imports {target}"


def test_a_row_of_the_table_refuses_what_it_does_not_name():
    assert allowed("adom.run.calls.solve", "adom.run.local.backend")
    assert not allowed("adom.run.local.backend", "adom.run.calls.solve")
    assert not allowed("adom.run.recorder", "adom.run.local.backend")
    assert not allowed("adom.dynamics.healing", "adom.run.links")
    assert allowed("adom.study.sweep", "adom.run.local.backend")
    assert not allowed("adom.agents.rows", "adom.run.recorder")


def test_nothing_private_is_imported():
    for name in modules():
        for module, names in imports(name):
            private = [n for n in names if n.startswith("_") and n != "__version__"]
            assert not private, f"{name} imports {private} of {module}"


def test_nothing_of_ours_is_imported_by_a_string():
    for name, tree in modules().items():
        if name.removesuffix(".__init__") in BY_NAME:
            continue
        for node in ast.walk(tree):
            called = getattr(getattr(node, "func", None), "id", getattr(getattr(node, "func", None), "attr", ""))
            if isinstance(node, ast.Call) and called in ("import_module", "__import__"):
                text = node.args[0].value if isinstance(node.args[0], ast.Constant) else "?"
                assert not text.startswith(("adom", ".")), f"{name} imports {text}"


def test_there_is_no_cycle_and_no_file_is_too_long():
    assert faults() == []


def test_agents_know_nothing_of_their_test_bed():
    bed = "adom.agents.testbed"
    imported = {target for name in modules() if room(name) == "agents" and bed not in name for target in targets(name)}
    assert "adom.agents.agent" in imported
    assert not [target for target in imported if target.startswith(bed)]


MADE = {"a/x.py": "from ..b.y import f\n", "a/z.py": "", "b/y.py": "from ..c import y\n", "c/y.py": "x = 1\n"}
"""A house without faults."""


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({}, ""),
        ({"c/y.py": "def f():\n    from ..a.x import g\n"}, "modules import each other in a circle: adom."),
        ({"c/y.py": "if TYPE_CHECKING:\n    from ..a.x import g\n"}, ""),
        ({"c/z.py": "from ..a.z import g\n"}, "folders import each other in a circle: "),
        ({"c/deep/z.py": "from ..y import f\n"}, ""),
        ({"c/deep/z.py": "from ..y import f\n", "c/w.py": "from .deep import z\n"}, "in a circle: c"),
        ({"c/w.py": "x = 1\n" * (LONGEST + 1)}, f"adom.c.w has {LONGEST + 1} lines"),
    ],
)
def test_faults_of_a_house_are_seen(tmp_path, files, fault):
    for file, text in {**MADE, **files}.items():
        path = tmp_path / "adom" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = faults(tmp_path)
    assert bool(found) == bool(fault)
    assert fault in "".join(found)


def test_dynamics_need_no_jax():
    names = ", ".join(name for name in modules() if room(name) == "dynamics").replace(".__init__", "")
    code = f"import sys, {names}; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_functions_stay_short():
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node, clean=False)
                length = node.end_lineno - node.lineno + 1 - (text.count("\n") + 1 if text else 0)
                assert length <= 60, f"{name}.{node.name}"
