"""The import rules of CONTRIBUTING: rooms import downwards only, nothing private, nothing by name, no cycle."""

import ast
import re
from functools import cache
from pathlib import Path

import networkx as nx

SRC = Path(__file__).parents[1] / "src"
CONTRIBUTING = SRC.parent / "CONTRIBUTING.md"
EVERYWHERE = {"errors", "util", "__init__"}
BY_NAME = {"adom", "adom.algorithms"}
"""Modules that load others by the name in a table: `adom.solve` and the methods."""


def rules():
    """Read the table of rooms: what each may import beside `errors` and `util`."""
    rows = re.findall(r"^\| `(\w+)/` \| .* \| (.*) \|$", CONTRIBUTING.read_text(), re.MULTILINE)
    return {room: set(re.findall(r"`(\w+)`", allowed)) for room, allowed in rows}


@cache
def modules():
    """Return the syntax tree of every module, by name."""
    names = {}
    for path in sorted(SRC.rglob("*.py")):
        name = ".".join(path.relative_to(SRC).with_suffix("").parts)
        names[name] = ast.parse(path.read_text())
    return names


def imports(name):
    """Yield (module, names) of what a module imports of this package, late imports too, those for types not."""
    tree, package = modules()[name], name.split(".")[:-1]
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names if alias.name.split(".")[0] == "adom")
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module.split(".")[0] == "adom":
                yield module, [alias.name for alias in node.names]


def targets(name):
    """Yield the modules that a module imports."""
    for module, names in imports(name):
        for imported in names or [""]:
            for candidate in (f"{module}.{imported}", f"{module}.{imported}.__init__", module, f"{module}.__init__"):
                if candidate in modules():
                    yield candidate
                    break


def room(name):
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


def test_every_room_is_in_the_table():
    rooms = {room(name) for name in modules() if name.count(".") > 1}
    assert rooms - {"util"} == set(rules())


def test_rooms_import_what_their_row_allows():
    for name in modules():
        if room(name) not in rules():
            continue
        allowed = rules()[room(name)] | EVERYWHERE | {room(name)}
        for target in targets(name):
            assert "all" in allowed or room(target) in allowed, f"{name} imports {target}"


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


def test_there_is_no_cycle():
    graph = nx.DiGraph((name, target) for name in modules() for target in targets(name) if target != name)
    assert not [sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1]
    between = nx.DiGraph((room(a), room(b)) for a, b in graph.edges if room(a) != room(b) and room(a) and room(b))
    between.remove_node("__init__")
    assert not [sorted(part) for part in nx.strongly_connected_components(between) if len(part) > 1]


def test_agents_know_nothing_of_their_test_bed():
    bed = "adom.agents.testbed"
    imported = {target for name in modules() if room(name) == "agents" and bed not in name for target in targets(name)}
    assert "adom.agents.agent" in imported
    assert not [target for target in imported if target.startswith(bed)]


def test_files_and_functions_stay_short():
    for name, tree in modules().items():
        path = SRC / Path(*name.split(".")).with_suffix(".py")
        assert len(path.read_text().splitlines()) <= 600, name
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node, clean=False)
                length = node.end_lineno - node.lineno + 1 - (text.count("\n") + 1 if text else 0)
                assert length <= 60, f"{name}.{node.name}"
