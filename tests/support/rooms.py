"""The rooms of the house as imports make them: who imports whom, in a circle or not, and files that grew too long.

`make lint` runs this file; `tests/test_imports.py` checks with it what the table in CONTRIBUTING allows.
"""

import ast
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SRC = Path(__file__).parents[2] / "src"
LONGEST = 600
"""Most lines of a file."""


@cache
def modules(src=SRC):
    """Return the syntax tree of every module, by name."""
    files = sorted(src.rglob("*.py"))
    return {".".join(path.relative_to(src).with_suffix("").parts): ast.parse(path.read_text()) for path in files}


def file_of(name, src=SRC):
    """Return the file of a module."""
    return src / Path(*name.split(".")).with_suffix(".py")


def folder(name):
    """Return the folder of a module below the package, such as "run/local"; "" for the package itself."""
    return "/".join(name.split(".")[1:-1])


def imports(name, src=SRC):
    """Yield (module, names) of what a module imports of this package, late imports too, those for types not."""
    tree, package = modules(src)[name], name.split(".")[:-1]
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


def targets(name, src=SRC):
    """Yield the modules that a module imports."""
    for module, names in imports(name, src):
        for imported in names or [""]:
            for candidate in (f"{module}.{imported}", f"{module}.{imported}.__init__", module, f"{module}.__init__"):
                if candidate in modules(src):
                    yield candidate
                    break


def cycle(edges):
    """Return a cycle among (importer, imported) pairs, or an empty list."""
    graph = {}
    for importer, imported in edges:
        if importer != imported:
            graph.setdefault(importer, set()).add(imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1][::-1]  # each imports the next
    return []


def faults(src=SRC):
    """Describe what the house does not allow, one line each: a cycle of modules or folders, a file too long."""
    pairs = [(name, target) for name in modules(src) for target in targets(name, src)]
    folders = [(folder(a), folder(b)) for a, b in pairs if folder(a) and folder(b)]
    found = []
    for what, edges in (("modules", pairs), ("folders", folders)):
        if circle := cycle(edges):
            found.append(f"{what} import each other in a circle: {' -> '.join(circle)}; move what both need below both")
    for name in modules(src):
        lines = len(file_of(name, src).read_text().splitlines())
        if lines > LONGEST:
            found.append(f"{name} has {lines} lines, more than {LONGEST}; give one of its topics a file of its own")
    return found


if __name__ == "__main__":
    sys.exit("\n".join(faults()) or None)
