"""Settings from flags, a TOML file and defaults: merged, checked, completed, and written down again."""

import math
import os
import tomllib
from dataclasses import asdict, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..data.infectious import NODES as INFECTIOUS
from ..data.sets import SAMPLES
from ..data.splits import SPLITS
from ..engine.result import atomic
from ..errors import InputError
from .options import describe, flag
from .settings import TABLES, Config, NetworkTable, Tables

PATHS = (("problem", "data"), ("problem", "shards"), ("network", "contacts"), ("mpi", "checkpoints"))
"""Settings that name files, or a known data set; in a configuration file they are relative to that file."""

KINDS: dict[str, tuple[str, ...]] = {
    "geometric": ("radius", "chi", "graphs"),
    "waypoint": ("radius", "graphs", "speed"),
    "erdos-renyi": ("graphs", "probability"),
    "expander": ("graphs", "degree"),
    "ring": (),
    "star": (),
    "path": (),
    "complete": (),
    "torus": (),
    "contacts": ("contacts", "window", "repair"),
    "infectious": (),
}
"""The kinds of network, and the settings that belong to each alone."""

RIVALS = {
    ("problem", "kappa"): ("l2",),
    ("problem", "l2"): ("kappa",),
    ("problem", "data"): ("samples", "dim", "label"),
    ("problem", "split"): ("concentration",),
    ("network", "radius"): ("chi",),
    ("network", "chi"): ("radius",),
    ("network", "contacts"): ("kind",),
}
"""A flag, and the settings of a file that it does away with."""


RULES: dict[Any, tuple[str, str]] = {
    int: ("a whole number", "100"),
    float: ("a number", "0.5"),
    bool: ("true or false", "true"),
    str: ("text in quotes", '"..."'),
    list[int]: ("a list of whole numbers", "[0, 1, 2]"),
    list[float]: ("a list of numbers", "[0.5, 1, 2]"),
    list[str]: ("a list of texts in quotes", '["...", "..."]'),
    list[dict[str, float]]: ("a list of tables of numbers", "[{eta = 0.1}]"),
    dict[str, Any]: ("a table of lists", "{eta = [0.5, 1, 2]}"),
}
"""What a setting of each type must be, and an example."""


def settle(file: Path | None, flags: Tables, usual: Tables) -> Config:
    """Return the complete settings: flags before the file before what is usual."""
    given = {} if file is None else read_toml(file)
    for table, values in given.items():
        _check_types(table, values, f"{file}, [{table}]")
    for (table, name), displaced in RIVALS.items():
        if name in flags.get(table, {}) and table in given:
            given[table] = {key: value for key, value in given[table].items() if key not in displaced}
    if {"kind", "contacts"} & flags.get("network", {}).keys() and "network" in given:
        kind = flags["network"].get("kind") or "contacts"
        given["network"] = {k: v for k, v in given["network"].items() if k in _common() or k in _belonging(kind)}
    merged = {table: {**given.get(table, {}), **flags.get(table, {})} for table in TABLES}
    for table, values in merged.items():
        _check_bounds(table, values)
    _fill(merged, usual)
    return Config(**{table: cls(**merged[table]) for table, cls in TABLES.items()})


def read_toml(file: Path) -> Tables:
    """Read the tables of a configuration file; paths in it become relative to the working folder."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}; check the path") from None
    except UnicodeDecodeError:
        raise InputError(f"{file} is no text file in UTF-8; give a TOML file such as a run's config.toml") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file} is no TOML: {error}; a line reads `name = value`, text in quotes") from None
    for table, values in content.items():
        if table not in TABLES:
            raise InputError(f"{file}: unknown table [{table}]; {_nearest(table, list(TABLES))}")
        if not isinstance(values, dict):
            raise InputError(f"{file}: {table} must be a table, got {values!r}; write [{table}] on a line of its own")
    for table, name in PATHS:
        value = content.get(table, {}).get(name)
        if isinstance(value, str) and value not in SAMPLES:
            content[table][name] = _no_name(str(file.parent / value))
    return content


def write_toml(config: Config, file: Path, command: str = "solve") -> None:
    """Write all settings to a file that a command can start from; paths become relative to it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "config.toml")
    ...     write_toml(Config(), file)
    ...     read_toml(file)["run"]["method"]
    'adom'
    """
    with atomic(file) as partial:
        partial.write_text(toml_text(config, file, command), encoding="utf-8")


def toml_text(config: Config, file: Path, command: str = "solve") -> str:
    """Return what `write_toml` writes."""
    lines = [f"# Run this again with: adom {command} {file.name}"]
    for table, values in asdict(config).items():
        given = {name: value for name, value in values.items() if value is not None}
        lines += ["", f"[{table}]"] if given else []
        for name, value in given.items():
            lines.append(f"{name} = {_toml(_relative(value, file) if (table, name) in PATHS else value)}")
    return "\n".join(lines) + "\n"


def _no_name(path: str) -> str:
    """Return a path that is not taken for the name of a data set.

    Examples
    --------
    >>> _no_name("a6a"), _no_name("six.svm")
    ('./a6a', 'six.svm')
    """
    return f"./{path}" if path in SAMPLES else path


def _relative(path: str, file: Path) -> str:
    if path in SAMPLES:
        return path
    try:
        return _no_name(Path(os.path.relpath(path, file.parent)).as_posix())
    except ValueError:  # another drive
        return Path(path).absolute().as_posix()


def _toml(value: Any) -> str:
    """Return a value as TOML writes it.

    Examples
    --------
    >>> print(_toml(True), _toml(3), _toml(1e-10), _toml(1e22), _toml('say "hi"'))
    true 3 1e-10 1e+22 "say \\"hi\\""
    >>> print(_toml({"eta": [0.5, 1], "adom+": {}}))
    {"eta" = [0.5, 1], "adom+" = {}}
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(str(name))} = {_toml(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        plain = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in plain) + '"'
    return repr(value)


def _nearest(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    return (f"did you mean {close[0]!r}? " if close else "") + f"known: {', '.join(known)}"


def _check_types(table: str, values: dict[str, Any], where: str) -> None:
    """Check names and types with pydantic; its first complaint becomes one line of ours."""
    from pydantic import ConfigDict, ValidationError, create_model

    known = {field.name: field.type for field in fields(TABLES[table])}
    model: Any = create_model(
        table,
        __config__=ConfigDict(extra="forbid", strict=True),
        **{name: (kind, None) for name, kind in known.items()},  # type: ignore[call-overload]  # names are data
    )
    try:
        model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        if first["type"] == "extra_forbidden":
            raise InputError(f"{where}: unknown key {name!r}; {_nearest(name, list(known))}") from None
        rule, example = RULES[describe(table, name)[0]]
        raise InputError(f"{where}: {name} must be {rule}, got {first['input']!r}; e.g. {name} = {example}") from None


def _check_bounds(table: str, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setting = describe(table, name)[1]
        low, high = setting.least, setting.most
        if (low is not None and not value >= low) or (high is not None and not value <= high):
            rule = f"at least {low}" + (f" and at most {high}" if high is not None else "")
            raise InputError(f"{name} must be {rule}, got {value!r}; {setting.help[0].lower()}{setting.help[1:-1]}")


def _common() -> tuple[str, ...]:
    every = {field.name for field in fields(NetworkTable)}
    return tuple(every.difference(*KINDS.values()))


def _belonging(kind: str) -> set[str]:
    """Return the settings that belong to some of the kinds named."""
    return {name for part in kinds(kind) for name in KINDS[part]}


def kinds(text: str) -> list[str]:
    """Return the kinds that `--network` names.

    Examples
    --------
    >>> kinds("ring, star")
    ['ring', 'star']
    """
    found = [part.strip().lower().replace("_", "-") for part in text.split(",")]
    for part in found:
        if part not in KINDS:
            raise InputError(f"unknown network {part!r}; {_nearest(part, list(KINDS))}")
    return found


def _fill(merged: Tables, usual: Tables) -> None:
    """Complete the settings in place, where what is usual applies; refuse those that would have no effect."""
    problem, network = merged["problem"], merged["network"]
    for name, value in usual.get("run", {}).items():
        merged["run"].setdefault(name, value)
    if {"kappa", "l2"} <= problem.keys():
        raise InputError(
            f"kappa = {problem['kappa']!r} and l2 = {problem['l2']!r} exclude each other; give one of them"
        )
    how = problem.get("split", "contiguous")
    if how not in SPLITS:
        raise InputError(f"unknown split {how!r}; {_nearest(how, list(SPLITS))}")
    if "concentration" in problem and how != "dirichlet":
        raise InputError(
            f"concentration = {problem['concentration']!r} has no effect on split {how}; it belongs to dirichlet"
        )
    _check_engine(merged)
    defaults = dict(usual.get("problem", {}))
    if "shards" in problem:
        _fill_from_shards(problem)
        defaults = {"kappa": defaults["kappa"]} if "kappa" in defaults else {}
    if "data" in problem:
        defaults = {name: defaults[name] for name in ("nodes", "kappa") if name in defaults}
    if "l2" in problem:
        defaults.pop("kappa", None)

    kind = network.setdefault("kind", "contacts" if "contacts" in network else "geometric")
    chosen = kinds(kind)
    network["kind"] = ",".join(chosen)
    if "contacts" in chosen:
        defaults.pop("nodes", None)
        if "contacts" not in network:
            raise InputError("network contacts needs a contact list; give one with --contacts FILE")
    if "infectious" in chosen and problem.setdefault("nodes", INFECTIOUS) != INFECTIOUS:
        raise InputError(
            f"nodes = {problem['nodes']} does not fit network infectious, which has {INFECTIOUS}; leave nodes out"
        )
    belonging = _belonging(kind) | ({"graphs"} if "failing" in network else set())
    for name in network:
        if name not in belonging and name not in _common():
            owners = ", ".join(one for one, names in KINDS.items() if name in names)
            raise InputError(f"{name} = {network[name]!r} has no effect on network {kind}; it belongs to {owners}")
    for name, value in defaults.items():
        problem.setdefault(name, value)
    if "graphs" in belonging:
        network.setdefault("graphs", _affordable(usual["network"]["graphs"], problem.get("nodes")))
    if "contacts" in chosen:
        network.setdefault("window", 1)
    _fill_by_size(network, chosen, problem.get("nodes") or 0)


def _check_engine(merged: Tables) -> None:
    """Refuse settings of engine mpi with another engine, and checkpoints that go nowhere."""
    mpi, engine = merged["mpi"], merged["run"].get("engine", "local")
    if mpi and engine != "mpi":
        name = next(iter(mpi))
        raise InputError(f"{flag('mpi', name)} has no effect on engine {engine}; give --engine mpi")
    for name in ("every_rounds", "every_seconds", "resume"):
        if name in mpi and "checkpoints" not in mpi:
            raise InputError(f"{flag('mpi', name)} needs a folder; give one with --checkpoints DIR")


def _fill_from_shards(problem: dict[str, Any]) -> None:
    """Take the number of nodes from the shards, and refuse what they have of their own."""
    from ..data.shards import Shards

    for name in ("data", "label", "samples", "split", "concentration", "dim"):
        if name in problem:
            raise InputError(f"{name} = {problem[name]!r} has no effect on shards, which have their own; leave it out")
    nodes = Shards(problem["shards"], l2=1.0).nodes
    if problem.setdefault("nodes", nodes) != nodes:
        raise InputError(
            f"nodes = {problem['nodes']} does not fit {problem['shards']}, which has {nodes}; leave it out"
        )


def _affordable(graphs: int, nodes: int | None) -> int:
    """Return fewer graphs than usual for large networks, whose spectra take seconds each."""
    return graphs if not nodes else min(graphs, max(10, int(graphs * (150 / nodes) ** 3)))


def _fill_by_size(network: dict[str, Any], chosen: list[str], nodes: int) -> None:
    """Choose radius and probability for graphs that are connected more often than not."""
    spread = math.log(nodes) / nodes if nodes > 1 else 1.0
    if "geometric" in chosen and "radius" not in network:
        network.setdefault("chi", min(30.0, float(nodes)) if nodes > 2 else 1.0)  # few nodes reach no more
    if "waypoint" in chosen:
        network.setdefault("radius", round(2 * math.sqrt(spread / math.pi), 6))
        network.setdefault("speed", 0.02)
    if "erdos-renyi" in chosen:
        network.setdefault("probability", round(min(1.0, 2 * spread), 6))
    if "expander" in chosen:
        network.setdefault("degree", max(2, min(8, (nodes - 1) // 2 * 2)))
